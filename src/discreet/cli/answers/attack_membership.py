"""What came of guessing who was in the data of a model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from discreet.cli.answers.attacks import Share
from discreet.cli.output import Block

if TYPE_CHECKING:
    from discreet.attacks import Attacker, Membership
    from discreet.privacy import NotPrivate

__all__ = ["MembershipAnswer"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FoundAnswer:
    """Who was found, with at most a given rate of false alarms, which is also what guessing finds."""

    rate: float
    members: Share
    alarms: Share


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AttackerAnswer:
    """One attacker; the limits of the AUC are at 95 %."""

    name: str
    auc: float
    auc_low: float
    auc_high: float
    found: list[FoundAnswer]

    @classmethod
    def of(cls, attacker: Attacker) -> AttackerAnswer:
        """Read one of the attackers."""
        found = [
            FoundAnswer(rate=one.rate, members=Share.of_success(one.members), alarms=Share.of_success(one.alarms))
            for one in attacker.found
        ]
        low, high = attacker.auc_limits
        return cls(name=attacker.name, auc=attacker.auc, auc_low=low, auc_high=high, found=found)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MembershipAnswer:
    """How many people each attacker found."""

    people: int
    targets: int
    shadows: int
    attackers: list[AttackerAnswer]
    text: str  # under a heading that says that it is not private

    @classmethod
    def of(cls, found: NotPrivate[Membership]) -> MembershipAnswer:
        """Read what was found."""
        result = found.value
        return cls(
            people=result.people,
            targets=result.targets,
            shadows=result.shadows,
            attackers=[AttackerAnswer.of(one) for one in result.attackers],
            text=str(found),
        )

    def blocks(self) -> Iterator[Block]:
        yield self.text
