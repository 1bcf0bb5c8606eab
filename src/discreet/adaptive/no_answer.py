"""A refusal as a value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from discreet.mechanisms.accuracy import NoInterval

__all__ = ["NOTHING_TO_ENCLOSE", "NO_ANSWER", "NoAnswer"]


@final
@dataclass(frozen=True, slots=True)
class NoAnswer:
    """What is released when a test was not passed. It costs what an answer costs, and says nothing else."""

    def __str__(self) -> str:
        return "no answer"


NO_ANSWER = NoAnswer()
NOTHING_TO_ENCLOSE = NoInterval(
    reason="no answer was given: the test was not passed. Asking again costs the same again; more data, a larger "
    "epsilon or a more modest proposal make an answer likelier"
)
