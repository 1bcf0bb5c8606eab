"""How much a question may use of the machine. Part of the policy: an analyst cannot change it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

from discreet.errors import InvalidParameter
from discreet.exact import Number, positive, positive_integer

__all__ = ["Resources"]

_LEAST_MEMORY = 64 << 20


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """Seconds from the charge to the answer, bytes of memory, threads, and who is told how the time goes.

    Rows are read in a process of its own: one for each question that is under way, which on Linux the kernel holds to
    `memory` and what its libraries take, 320 MB and 32 MB for each thread. It is killed if it overruns.

    `on_progress` gets the seconds that are gone and those that are allowed. It never hears how much is done: that would
    tell how many rows there are.
    """

    seconds: Number = 600
    memory: int = 3 << 30
    threads: int | None = None  # as many as the machine has, up to eight
    on_progress: Callable[[float, float], None] | None = None

    def __post_init__(self) -> None:
        positive(self.seconds, name="seconds")
        if positive_integer(self.memory, name="memory") < _LEAST_MEMORY:
            raise InvalidParameter(f"memory must be at least {_LEAST_MEMORY:,} bytes")
        if self.threads is not None:
            positive_integer(self.threads, name="threads")
        if self.on_progress is not None and not callable(self.on_progress):
            raise InvalidParameter("on_progress must be a function of the seconds gone and the seconds allowed")
