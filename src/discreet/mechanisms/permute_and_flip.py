"""Choose among public candidates: look at them in random order and flip a coin for each."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, final

from discreet import noise
from discreet.balls import ball
from discreet.exact import Number, positive
from discreet.mechanisms.accuracy import NoInterval
from discreet.mechanisms.exponential import NO_INTERVAL, worst_case_shortfall
from discreet.mechanisms.fields import settle
from discreet.mechanisms.polynomials import integral, times_linear
from discreet.mechanisms.release import Release
from discreet.mechanisms.scores import Scores, check_selection, read_scores, sampled_scores, selection_factor
from discreet.privacy import events
from discreet.privacy.outcomes import Outcomes
from discreet.privacy.relation import Relation

if TYPE_CHECKING:
    from flint import arb

__all__ = ["PermuteAndFlip"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PermuteAndFlip:
    """Take the first candidate, in random order, whose coin of chance exp(factor (score - best)) says yes.

    Guarantee   epsilon, pure. It is *not* of bounded range and is not billed epsilon^2 / 8.
    Theorem     It is noisy max with exponential noise. [MS20, DKSSWXZ21]
    Utility     never worse than the exponential mechanism, whose bound it shares; up to twice as good.
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
    def event(self) -> events.PureDP:
        return events.PureDP(self.epsilon)

    def shortfall(self, confidence: Number = Fraction(95, 100)) -> Fraction:
        """Return a loss of score that is not exceeded with at least this probability. It is public."""
        return worst_case_shortfall(factor=self.factor, candidates=self.candidates, confidence=confidence)

    def release(self, scores: Scores) -> Release[int]:
        """Choose, and return the position of the chosen candidate."""
        chosen = noise.permute_and_flip(sampled_scores(scores, self.candidates), factor=self.factor)
        return Release(
            value=chosen,
            event=self.event,
            relation=self.relation,
            accuracy=NoInterval(reason=NO_INTERVAL),
        )

    def distribution(self, scores: Scores) -> Outcomes:
        read = read_scores(scores, self.candidates)
        best = max(read)
        chances = [ball(self.factor * (score - best)).exp() for score in read]
        return Outcomes({place: _mass(chances, place) for place in range(len(chances))})


def _mass(chances: list[arb], place: int) -> arb:
    """Enclose p_i times the integral over s in [0, 1] of the product of 1 - s p_j, j being the others.

    s is the time at which i is looked at, all times being uniform: another candidate is not in the way if it comes
    later, or comes earlier and its coin says no.
    """
    product = [ball(1)]
    for other, chance in enumerate(chances):
        if other != place:
            product = times_linear(product, ball(1), -chance)
    return chances[place] * integral(product)
