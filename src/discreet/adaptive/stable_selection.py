"""Name the best of public candidates exactly, if it is far ahead of all others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from discreet.adaptive.charging import charge
from discreet.adaptive.no_answer import NoAnswer
from discreet.adaptive.stability import DistanceTest, stable_outcomes, stable_release
from discreet.errors import InvalidParameter
from discreet.exact import positive_integer
from discreet.mechanisms.fields import settle
from discreet.mechanisms.release import Release
from discreet.mechanisms.scores import Scores, check_selection, read_whole_scores
from discreet.privacy.events import Composed
from discreet.privacy.notprivate import NotPrivate
from discreet.privacy.outcomes import Outcomes
from discreet.privacy.payer import Payer
from discreet.privacy.relation import Relation

__all__ = ["StableSelection", "lead", "steps_to_change"]


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
