"""The most frequent value, or the best candidate, exactly, if no few units can change which one it is."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

from discreet.adaptive.bounded_memberships import bounded_totals, shown
from discreet.adaptive.paid_release import NO_ANSWER, NoAnswer, charge
from discreet.adaptive.stability import DistanceTest, stable_outcomes, stable_release
from discreet.errors import InvalidParameter
from discreet.exact import Number, positive_integer
from discreet.mechanisms.column import Data, column_of
from discreet.mechanisms.exponential import Scores, check_selection, read_whole_scores
from discreet.mechanisms.histogram import bin_counts, read_bins
from discreet.mechanisms.parameters import read_relation, settle
from discreet.mechanisms.release import Release
from discreet.privacy.events import Composed
from discreet.privacy.not_private import NotPrivate
from discreet.privacy.outcomes import Outcomes
from discreet.privacy.payer import Payer
from discreet.privacy.relation import Relation

__all__ = ["StableMode", "StableSelection", "counted", "lead", "mode_distance", "steps_to_change"]

# --- mode: The most frequent value, exactly, if no few units can change which one it is. ---


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


# --- stable_selection: Name the best of public candidates exactly, if it is far ahead of all others. ---


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StableSelection:
    """Return the candidate with the highest score if its lead is clear; of equals the first one leads.

    For scores that one unit moves all the same way, as counts under add-remove, say `monotone`.

    Guarantee   (epsilon, delta), whether an answer is given or not.
    Theorem     One unit moves a lead, the difference of two scores, by at most twice their sensitivity, or once if
                they move the same way; so the lead in these units, rounded up, is a distance to another winner.
                [ST13, BNS16]
    Utility     exact if the lead is about 2 sensitivity / epsilon times ln(1 / (2 delta)) + ln(1 / (2 - 2c)),
                whatever the number of candidates; permute-and-flip loses ln(candidates) instead, and never declines.
    """

    epsilon: Fraction
    delta: Fraction
    sensitivity: int  # of every score, for one unit
    candidates: int  # how many; public
    relation: Relation
    monotone: bool = False

    def __post_init__(self) -> None:
        check_selection(self)
        settle(self, sensitivity=positive_integer(self.sensitivity, name="sensitivity"))
        if self.candidates < 2:
            raise InvalidParameter("candidates must be at least 2: of one there is nothing to choose")
        settle(self, delta=self.test.delta)

    @property
    def test(self) -> DistanceTest:
        return DistanceTest(epsilon=self.epsilon, delta=self.delta)

    @property
    def event(self) -> Composed:
        return self.test.event

    def release(self, scores: Scores, *, session: Payer | None = None) -> Release[int | NoAnswer]:
        """Return the position of the leader, or decline to."""
        charge(self, session, purpose="a selection if it is stable")
        return stable_release(self.test, *self._leader(scores), self.relation)

    def distribution(self, scores: Scores) -> Outcomes:
        return stable_outcomes(self.test, *self._leader(scores))

    def true_distance(self, scores: Scores) -> NotPrivate[int]:
        """Tell the custodian how many units away another winner is."""
        return NotPrivate(self._leader(scores)[1])

    def _leader(self, scores: Scores) -> tuple[int, int]:
        place, gap = lead(read_whole_scores(scores, self.candidates))
        unit = self.sensitivity if self.monotone else 2 * self.sensitivity
        return place, steps_to_change(gap, unit)


def lead(scores: Sequence[int]) -> tuple[int, int]:
    """Return the first of the best, and by how much another one must gain on it to win; at least 1.

    A later one must overtake, an earlier one need only draw level.
    """
    best = max(scores)
    place = scores.index(best)
    ahead = [best - score for score in scores[:place]]
    behind = [best - score + 1 for score in scores[place + 1 :]]
    return place, min(ahead + behind)


def steps_to_change(gap: int, unit: int) -> int:
    """Return how many units must change to close a gap, if one closes `unit` of it at most."""
    return -(-gap // unit)
