"""What is told of people who were looked for in diaries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from discreet.cli.answers.attacks import Share
from discreet.cli.output import Block

if TYPE_CHECKING:
    from discreet.attacks import ItemCounts, Scoreboard, ScoreboardTrial
    from discreet.privacy import NotPrivate

__all__ = ["ItemCountsAnswer", "ScoreboardAnswer", "TrialAnswer"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TrialAnswer:
    """So many things known, dates off by up to so many days: who was named, rightly or wrongly, and though absent."""

    known: int
    days: int
    eligible: int
    right: Share
    wrong: Share
    nobody: Share
    absent: Share

    @classmethod
    def of(cls, trial: ScoreboardTrial) -> TrialAnswer:
        """Read one trial."""
        parts = {name: Share.of_success(getattr(trial, name)) for name in ("right", "wrong", "nobody", "absent")}
        return cls(known=trial.known, days=trial.days, eligible=trial.eligible, **parts)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ItemCountsAnswer:
    """The same people looked for in private counts of items: said to be there, who are and who are not."""

    epsilon: float
    most: int
    known: int
    present: Share
    absent: Share
    ceiling: float

    @classmethod
    def of(cls, counts: ItemCounts) -> ItemCountsAnswer:
        """Read what was found."""
        parts = {name: Share.of_success(getattr(counts, name)) for name in ("present", "absent")}
        return cls(epsilon=counts.epsilon, most=counts.most, known=counts.known, ceiling=counts.ceiling, **parts)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreboardAnswer:
    """How many were found by how much."""

    people: int
    items: int
    baseline: float
    trials: list[TrialAnswer]
    private: ItemCountsAnswer | None  # null unless --epsilon is said
    text: str  # under a heading that says that it is not private

    @classmethod
    def of(cls, found: NotPrivate[Scoreboard], private: NotPrivate[ItemCounts] | None) -> ScoreboardAnswer:
        """Read what was found."""
        result = found.value
        told = str(found) if private is None else f"{found}\n{private.value}"
        return cls(
            people=result.people,
            items=result.items,
            baseline=result.baseline,
            trials=[TrialAnswer.of(trial) for trial in result.trials],
            private=None if private is None else ItemCountsAnswer.of(private.value),
            text=told,
        )

    def blocks(self) -> Iterator[Block]:
        yield self.text
