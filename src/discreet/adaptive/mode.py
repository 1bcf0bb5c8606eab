"""The most frequent value, exactly, if no few units can change which one it is."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

from discreet.adaptive.charging import charge
from discreet.adaptive.keys import shown
from discreet.adaptive.memberships import bounded_totals
from discreet.adaptive.no_answer import NO_ANSWER
from discreet.adaptive.stability import DistanceTest, stable_outcomes, stable_release
from discreet.adaptive.stable_selection import lead, steps_to_change
from discreet.errors import InvalidParameter
from discreet.exact import Number
from discreet.mechanisms.column import Data, column_of
from discreet.mechanisms.fields import read_relation, settle
from discreet.mechanisms.histogram import bin_counts, read_bins
from discreet.mechanisms.release import Release
from discreet.privacy.events import Composed
from discreet.privacy.notprivate import NotPrivate
from discreet.privacy.outcomes import Outcomes
from discreet.privacy.payer import Payer
from discreet.privacy.relation import Relation

__all__ = ["StableMode", "counted", "mode_distance"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StableMode:
    """Return the most frequent value if it is clearly the most frequent one.

    The domain is public, and its order breaks ties: of equals the first one wins. Rows outside it are not counted.
    With `domain=None` every key counts, ties are broken by the order of keys, and a value nobody has is a rival.

    Guarantee   (epsilon, delta), whether an answer is given or not.
    Theorem     Another value wins once its count exceeds the winner's, or equals it if it comes first. Under
                add-remove that takes min over b of c_a - c_b + [a before b] units, under replace-one half of it,
                rounded up, because one unit takes from the one and gives to the other. b runs over the whole
                domain, also where nobody is. [ST13, DR14]
    Utility     exact if the lead is `reliable_lead(confidence)`, whatever the size of the domain.
    """

    domain: tuple[Hashable, ...] | None
    epsilon: Fraction
    delta: Fraction
    relation: Relation

    def __post_init__(self) -> None:
        read_relation(self.relation)
        settle(self, epsilon=self.test.epsilon, delta=self.test.delta)
        if self.domain is not None:
            settle(self, domain=read_bins(self.domain))
        if self.domain is not None and len(self.domain) < 2:
            raise InvalidParameter("domain must name at least two values: of one there is nothing to choose")

    @property
    def test(self) -> DistanceTest:
        return DistanceTest(epsilon=self.epsilon, delta=self.delta)

    @property
    def event(self) -> Composed:
        return self.test.event

    def reliable_lead(self, confidence: Number = Fraction(95, 100)) -> int:
        """Return by how much a value must be ahead to be named with at least this probability. It is public."""
        return _unit(self.relation) * self.test.reliable_distance(confidence)

    def release(self, data: Data, *, session: Payer | None = None) -> Release[Any]:
        """Name the most frequent value, or decline to."""
        charge(self, session, purpose="the most frequent value if it is stable")
        return stable_release(self.test, *self._winner(data), self.relation)

    def distribution(self, data: Data) -> Outcomes:
        return stable_outcomes(self.test, *self._winner(data))

    def true_distance(self, data: Data) -> NotPrivate[int]:
        """Tell the custodian how many units away another winner is."""
        return NotPrivate(self._winner(data)[1])

    def _winner(self, data: Data) -> tuple[Any, int]:
        names, counts = counted(data, self.domain)
        place, gap = lead(counts)
        return names[place], steps_to_change(gap, _unit(self.relation))


def counted(data: Data, domain: tuple[Hashable, ...] | None) -> tuple[Sequence[Any], list[int]]:
    """Name the values of a domain, or all keys that are there, and count each. The counts are private."""
    if domain is not None:
        return domain, list(bin_counts(column_of(data), domain))
    totals = bounded_totals(data, bins_per_unit=1, contribution=1)
    # Values that nobody has, before and after all others: one wins where there is nothing, and rivals every winner,
    # as any value might; the other is its rival.
    return [NO_ANSWER, *map(shown, totals), NO_ANSWER], [0, *totals.values(), 0]


def mode_distance(counts: Sequence[int], relation: Relation) -> int:
    """Return how many units must change before another of the counted values is the first most frequent one."""
    return steps_to_change(lead(list(counts))[1], _unit(relation))


def _unit(relation: Relation) -> int:
    """How much of a lead one unit closes."""
    return 1 if relation is Relation.ADD_REMOVE else 2
