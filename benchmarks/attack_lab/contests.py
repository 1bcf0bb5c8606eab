"""What an attack on a release comes to: how often it is right, against what, and what nobody exceeds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TypeAlias

from discreet.lab.attacks.success_rates import Success
from discreet.privacy import Event, Relation, best_guess, best_tpr

__all__ = ["DELTA", "Attack", "Contest", "Outcome", "Setting", "added"]

DELTA = Fraction(1, 10**6)


@dataclass(frozen=True, slots=True)
class Setting:
    """How much is tried, as a part of a full run, and where real data sets are, if they are anywhere."""

    size: float = 1.0
    data: Path | None = None

    def times(self, whole: int) -> int:
        """Return a part of a number, at least one."""
        return max(1, round(self.size * whole))


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How often an attack was right, in guesses that are independent of each other."""

    data: str
    success: Success
    without: Success | None  # the same attacker on releases without the person; None where a coin is the baseline
    event: Event | None = None  # what was charged for the release; None if nothing is promised
    relation: Relation | None = None

    @property
    def baseline(self) -> float:
        """What is right without the person."""
        return 0.5 if self.without is None else self.without.share

    def ceiling(self, error: float) -> float | None:
        """Return the share that no attacker exceeds: at the upper limit of the baseline, or at even odds.

        To be right is a test of "with the person" against "without", so the trade-off curve of what was charged bounds
        it at the false positive rate that was measured. [DRS22]
        """
        if self.event is None:
            return None
        if self.without is None:
            return best_guess(self.event, relation=self.relation)
        return best_tpr(self.event, Fraction(self.without.interval(error)[1]), relation=self.relation)

    def kept(self, error: float) -> bool | None:
        """Whether the ceiling is respected, but for a chance of `error` to deny it wrongly; None if there is none."""
        ceiling = self.ceiling(error)
        return None if ceiling is None else self.success.interval(error)[0] <= ceiling


Attack: TypeAlias = Callable[[Fraction | None, Setting], Outcome]  # of an epsilon; None is the raw or naive release


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """One attack, and the two kinds of releases that it is tried on."""

    name: str
    right: str  # what success is
    without_is: str  # what it is compared with
    raw: str  # the release without a guarantee
    ours: str  # the private one
    attack: Attack
    private: bool = True  # whether what is attacked is ever released privately


def added(parts: list[Success]) -> Success:
    """Add up guesses of several runs."""
    return Success(sum(part.hits for part in parts), sum(part.of for part in parts))
