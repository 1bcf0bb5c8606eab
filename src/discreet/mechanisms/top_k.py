"""Top-k selection by the exponential mechanism, one candidate after the other (peeling)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, final

from discreet import noise
from discreet.balls import ball
from discreet.errors import InvalidParameter
from discreet.exact import Number, positive, positive_integer
from discreet.formatting import record
from discreet.mechanisms.exponential import (
    NO_INTERVAL,
    Scores,
    check_selection,
    read_scores,
    selection_factor,
    worst_case_shortfall,
)
from discreet.mechanisms.parameters import read_confidence, settle
from discreet.mechanisms.release import NoInterval, Release
from discreet.privacy import events
from discreet.privacy.outcomes import Outcomes
from discreet.privacy.relation import Relation

if TYPE_CHECKING:
    from flint import arb

__all__ = ["TopK"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TopK:
    """Run the exponential mechanism k times, each time without those already chosen.

    Guarantee   k choices of epsilon / k each, of bounded range; in the order chosen.
    Theorem     Adaptive composition: what is left to choose from depends on earlier choices only. [DR19]
    Utility     each choice loses more than (2 k sensitivity / epsilon) (ln candidates + t) with chance e^-t at most.

    Args:
        epsilon: What all choices together spend.
        sensitivity: How far one unit moves any score.
        candidates: How many candidates there are, a public number.
        count: How many to choose.
        relation: The neighbouring relation.
        monotone: Whether one unit moves all scores the same way, as counts under add-remove.

    Raises:
        InvalidParameter: If there are fewer candidates than choices.

    Examples:
        >>> mechanism = dp.mechanisms.TopK(
        ...     epsilon=1, sensitivity=1, candidates=4, count=2, relation=dp.Relation.REPLACE_ONE
        ... )
        >>> mechanism.release([0, 1000, 5000, 0]).value
        (2, 1)
    """

    epsilon: Fraction  # for all choices together
    sensitivity: Fraction  # of every score, for one unit
    candidates: int  # how many; public
    count: int  # how many to choose
    relation: Relation
    monotone: bool = False

    __repr__ = record

    def __post_init__(self) -> None:
        check_selection(self)
        settle(
            self,
            sensitivity=positive(self.sensitivity, name="sensitivity"),
            count=positive_integer(self.count, name="count"),
        )
        if self.count > self.candidates:
            raise InvalidParameter("count must not exceed the number of candidates")

    @property
    def factor(self) -> Fraction:
        """What scores are multiplied by."""
        each = self.epsilon / self.count
        return selection_factor(epsilon=each, sensitivity=self.sensitivity, monotone=self.monotone)

    @property
    def event(self) -> events.Repeated:
        return events.Repeated(events.BoundedRange(self.epsilon / self.count), self.count)

    def shortfall(self, confidence: Number = Fraction(95, 100)) -> Fraction:
        """Return a loss of score, against the best left, that no choice exceeds with this probability. Public."""
        each = 1 - (1 - read_confidence(confidence)) / self.count
        return worst_case_shortfall(factor=self.factor, candidates=self.candidates, confidence=each)

    def release(self, scores: Scores) -> Release[tuple[int, ...]]:
        """Choose, and return the positions of the chosen candidates in the order chosen."""
        left = dict(enumerate(read_scores(scores, self.candidates)))
        chosen: list[int] = []
        for _ in range(self.count):
            places = list(left)
            chosen.append(places[noise.categorical(list(left.values()), factor=self.factor)])
            del left[chosen[-1]]
        return Release(
            value=tuple(chosen),
            event=self.event,
            relation=self.relation,
            accuracy=NoInterval(reason=NO_INTERVAL),
        )

    def distribution(self, scores: Scores) -> Outcomes:
        read = read_scores(scores, self.candidates)
        best = max(read)
        weights = [ball(self.factor * (score - best)).exp() for score in read]
        return Outcomes(_listed(weights, (), ball(1), self.count))


def _listed(weights: list[arb], chosen: tuple[int, ...], mass: arb, count: int) -> dict[tuple[int, ...], arb]:
    """List all ways to go on from what is chosen, with their probabilities."""
    if len(chosen) == count:
        return {chosen: mass}
    left = [place for place in range(len(weights)) if place not in chosen]
    total = sum((weights[place] for place in left), ball(0))
    listed: dict[tuple[int, ...], arb] = {}
    for place in left:
        listed |= _listed(weights, (*chosen, place), mass * weights[place] / total, count)
    return listed
