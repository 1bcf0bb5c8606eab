"""What a fit has spent."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isfinite
from typing import final

from discreet.mechanisms.cost import cost_text
from discreet.mechanisms.text import significant_up
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
        spent, told = self.epsilon, cost_text(self.event, relation=self.relation, delta=self.delta or None)
        if self.delta and isfinite(spent):
            # Many choices cost less at a delta than their epsilons add up to.
            told = f"ε = {significant_up(Fraction(spent))}, δ = {significant_up(self.delta)}"
        return f"{told} ({self.relation.value} neighbours)"
