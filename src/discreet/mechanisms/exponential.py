"""Choose among public candidates, the better ones exponentially more often."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from discreet import noise
from discreet.balls import ball, bounds, precision
from discreet.exact import Number, positive
from discreet.mechanisms.accuracy import NoInterval
from discreet.mechanisms.fields import read_confidence, settle
from discreet.mechanisms.release import Release
from discreet.mechanisms.scores import Scores, check_selection, read_scores, sampled_scores, selection_factor
from discreet.privacy import events
from discreet.privacy.outcomes import Outcomes
from discreet.privacy.relation import Relation

__all__ = ["Exponential"]

NO_INTERVAL = (
    "a choice has no interval: how far it is from the best depends on the data; `shortfall(confidence)` of the "
    "mechanism bounds its loss of score from public facts"
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Exponential:
    """Choose candidate i with probability proportional to exp(epsilon * score_i / (2 sensitivity)).

    For scores that one unit moves all the same way, as counts under add-remove, say `monotone`: the 2 goes.

    Guarantee   epsilon, of bounded range; the only selection billed epsilon^2 / 8.
    Theorem     Between neighbours the scaled scores differ by amounts that span at most epsilon; normalising shifts
                them all by the same. [MT07, DR19]
    Utility     the loss of score exceeds (2 sensitivity / epsilon) (ln candidates + t) with probability e^-t at most.
    """

    epsilon: Fraction
    sensitivity: Fraction  # of every score, for one unit
    candidates: int  # how many; public
    relation: Relation
    monotone: bool = False

    def __post_init__(self) -> None:
        check_selection(self)
        settle(self, sensitivity=positive(self.sensitivity, name="sensitivity"))

    @property
    def factor(self) -> Fraction:
        """What scores are multiplied by."""
        return selection_factor(epsilon=self.epsilon, sensitivity=self.sensitivity, monotone=self.monotone)

    @property
    def event(self) -> events.BoundedRange:
        return events.BoundedRange(self.epsilon)

    def shortfall(self, confidence: Number = Fraction(95, 100)) -> Fraction:
        """Return a loss of score that is not exceeded with at least this probability. It is public."""
        return worst_case_shortfall(factor=self.factor, candidates=self.candidates, confidence=confidence)

    def release(self, scores: Scores) -> Release[int]:
        """Choose, and return the position of the chosen candidate."""
        chosen = noise.categorical(sampled_scores(scores, self.candidates), factor=self.factor)
        return Release(
            value=chosen,
            event=self.event,
            relation=self.relation,
            accuracy=NoInterval(reason=NO_INTERVAL),
        )

    def distribution(self, scores: Scores) -> Outcomes:
        read = read_scores(scores, self.candidates)
        return exponential_outcomes(dict(enumerate(read)), factor=self.factor)


def exponential_outcomes(scores: Mapping[Hashable, Fraction | int], *, factor: Fraction) -> Outcomes:
    """List probabilities proportional to exp(factor * score), scores counted from the best one."""
    best = max(scores.values())
    weights = {key: ball(factor * (score - best)).exp() for key, score in scores.items()}
    total = sum(weights.values(), ball(0))
    return Outcomes({key: weight / total for key, weight in weights.items()})


def worst_case_shortfall(*, factor: Fraction, candidates: int, confidence: Number) -> Fraction:
    """Bound the loss of score by ln(candidates / (1 - confidence)) / factor, rounded up. [MT07]

    At most all candidates but one lie that low, and each of them weighs at most that little next to the best.
    """
    level = read_confidence(confidence)
    with precision(128):
        return bounds(ball(candidates / (1 - level)).log() / ball(factor))[1]
