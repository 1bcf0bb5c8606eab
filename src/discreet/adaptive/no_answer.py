"""A refusal as a value, `NoAnswer`: it is paid for like an answer, and says nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from discreet.formatting import record
from discreet.mechanisms.release import NoInterval

__all__ = ["NOTHING_TO_ENCLOSE", "NO_ANSWER", "NoAnswer"]


@final
@dataclass(frozen=True, slots=True)
class NoAnswer:
    """What is released when a test was not passed. It costs what an answer costs, and says nothing else.

    Examples:
        >>> mechanism = dp.adaptive.StableMode(
        ...     domain=("a", "b"), epsilon=1, delta=1e-12, relation=dp.Relation.REPLACE_ONE
        ... )
        >>> mechanism.release(["a", "b"]).value == dp.adaptive.NO_ANSWER  # but for a chance of delta
        True
    """

    __repr__ = record

    def __str__(self) -> str:
        return "no answer"


NO_ANSWER = NoAnswer()
NOTHING_TO_ENCLOSE = NoInterval(
    reason="no answer was given: the test was not passed. Asking again costs the same again; more data, a larger "
    "epsilon or a more modest proposal make an answer likelier"
)
