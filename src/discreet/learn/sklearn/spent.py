"""What a fit has spent."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import final

from discreet.mechanisms.cost import cost_text
from discreet.privacy import epsilon
from discreet.privacy.events import Event
from discreet.privacy.relation import Relation

__all__ = ["PrivacySpent"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PrivacySpent:
    """The event of one fit, charged before it read a value, and what it means at `delta`."""

    event: Event
    relation: Relation
    delta: Fraction  # at which epsilon is quoted; 0 for pure privacy

    @property
    def epsilon(self) -> float:
        """The best bound known, rounded up."""
        return epsilon(self.event, self.delta, relation=self.relation)

    def __str__(self) -> str:
        cost = cost_text(self.event, relation=self.relation, delta=self.delta or None)
        return f"{cost} ({self.relation.value} neighbours)"
