"""Private selection: report noisy max, and permute-and-flip."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, final

from discreet import noise
from discreet.balls import ball, bounds
from discreet.exact import Number, positive, positive_integer
from discreet.formatting import record
from discreet.mechanisms.exponential import (
    NO_INTERVAL,
    Scores,
    check_selection,
    read_scores,
    read_whole_scores,
    sampled_scores,
    selection_factor,
    worst_case_shortfall,
)
from discreet.mechanisms.parameters import settle
from discreet.mechanisms.release import NoInterval, Release
from discreet.noise.laws import DiscreteLaplaceLaw
from discreet.noise.limits import check_noise_scale
from discreet.privacy import events
from discreet.privacy.outcomes import CUTOFF, Outcomes
from discreet.privacy.relation import Relation

if TYPE_CHECKING:
    from flint import arb

__all__ = ["PermuteAndFlip", "ReportNoisyMax", "integral", "times_linear"]

# --- noisy_max: Report which candidate is best after noise; never the noisy score. ---


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ReportNoisyMax:
    """Add discrete Laplace noise to every score and report the winner, ties being broken at random.

    Guarantee   epsilon, pure, with noise of scale 2 sensitivity / epsilon (half of it for monotone scores).
    Theorem     Fix the noise of all others. The winner needs noise above t, or at t and luck in a tie. Between
                neighbours t moves by at most 2 sensitivity; if by exactly that, the same others tie, for each of
                them moved as far as it may; if by less, then by at least one step less, and a tie is no longer
                needed. So ties cost nothing on whole numbers. [DR14]
    Utility     the loss of score exceeds (4 sensitivity / epsilon) (ln candidates + t) with probability e^-t at most.

    Args:
        epsilon: What a release spends.
        sensitivity: How far one unit moves any score, a whole number of grid steps.
        candidates: How many candidates there are, a public number.
        relation: The neighbouring relation.
        monotone: Whether one unit moves all scores the same way, as counts under add-remove.

    Raises:
        InvalidParameter: If a field is out of range, or `monotone` is said under replace-one.

    Examples:
        >>> mechanism = dp.mechanisms.ReportNoisyMax(
        ...     epsilon=1, sensitivity=1, candidates=3, relation=dp.Relation.REPLACE_ONE
        ... )
        >>> mechanism.release([0, 1000, 0]).value
        1
    """

    epsilon: Fraction
    sensitivity: int  # of every score, in grid steps, for one unit
    candidates: int  # how many; public
    relation: Relation
    monotone: bool = False

    __repr__ = record

    def __post_init__(self) -> None:
        check_selection(self)
        settle(self, sensitivity=positive_integer(self.sensitivity, name="sensitivity"))
        check_noise_scale(self.scale)

    @property
    def scale(self) -> Fraction:
        """The scale of the noise, in grid steps."""
        return 1 / selection_factor(epsilon=self.epsilon, sensitivity=self.sensitivity, monotone=self.monotone)

    @property
    def event(self) -> events.PureDP:
        return events.PureDP(self.epsilon)

    def release(self, scores: Scores) -> Release[int]:
        """Choose, and return the position of the winner."""
        read = read_whole_scores(scores, self.candidates)
        drawn = noise.discrete_laplace(self.scale, self.candidates).tolist()
        noisy = [score + extra for score, extra in zip(read, drawn, strict=True)]
        best = max(noisy)
        winners = [place for place, score in enumerate(noisy) if score == best]
        return Release(
            value=winners[noise.uniform(len(winners))],
            event=self.event,
            relation=self.relation,
            accuracy=NoInterval(reason=NO_INTERVAL),
        )

    def distribution(self, scores: Scores) -> Outcomes:
        read = read_whole_scores(scores, self.candidates)
        law = DiscreteLaplaceLaw(self.scale)
        reach = law.half_width(1 - CUTOFF)
        window = range(max(read) - reach, max(read) + reach + 1)
        equal, below = lru_cache(None)(law.pmf), lru_cache(None)(law.cdf)  # Candidates share most of the values.
        masses = {
            place: sum((_win_at(read, place, best, equal, below) for best in window), ball(0))
            for place in range(len(read))
        }
        # The winning score is at least that of the best candidate, and some noise must be large for it to be high.
        tail = len(read) * bounds(law.survival(reach))[1] + bounds(law.cdf(-reach - 1))[1]
        return Outcomes(masses, min(tail, Fraction(1)))


def _win_at(scores: list[int], place: int, best: int, equal: Callable[[int], arb], below: Callable[[int], arb]) -> arb:
    """Enclose the chance that `place` wins with the noisy score `best`.

    A tie among m + 1 is won with chance 1 / (m + 1), the integral of s^m; so each other candidate brings the factor
    P[below] + s P[equal].
    """
    product = [ball(1)]
    for other, score in enumerate(scores):
        if other != place:
            product = times_linear(product, below(best - score - 1), equal(best - score))
    return equal(best - scores[place]) * integral(product)


# --- permute_and_flip: Choose among public candidates: look at them in random order and flip a coin for each. ---


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PermuteAndFlip:
    """Take the first candidate, in random order, whose coin of chance exp(factor (score - best)) says yes.

    Guarantee   epsilon, pure. It is *not* of bounded range and is not billed epsilon^2 / 8.
    Theorem     It is noisy max with exponential noise. [MS20, DKSSWXZ21]
    Utility     never worse than the exponential mechanism, whose bound it shares; up to twice as good.

    Args:
        epsilon: What a release spends.
        sensitivity: How far one unit moves any score.
        candidates: How many candidates there are, a public number.
        relation: The neighbouring relation.
        monotone: Whether one unit moves all scores the same way, as counts under add-remove.

    Raises:
        InvalidParameter: If a field is out of range, or `monotone` is said under replace-one.

    Examples:
        >>> mechanism = dp.mechanisms.PermuteAndFlip(
        ...     epsilon=1, sensitivity=1, candidates=3, relation=dp.Relation.ADD_REMOVE, monotone=True
        ... )
        >>> mechanism.release([0, 1000, 0]).value
        1
    """

    epsilon: Fraction
    sensitivity: Fraction  # of every score, for one unit
    candidates: int  # how many; public
    relation: Relation
    monotone: bool = False

    __repr__ = record

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


# --- polynomials: Products of linear polynomials with ball coefficients, and their integrals over [0, 1]. ---


def times_linear(polynomial: list[arb], constant: arb, slope: arb) -> list[arb]:
    """Multiply by constant + slope * s; coefficients are listed from the constant on."""
    zero = ball(0)
    shifted = [zero, *polynomial]
    return [
        constant * (polynomial[power] if power < len(polynomial) else zero) + slope * shifted[power]
        for power in range(len(shifted))
    ]


def integral(polynomial: list[arb]) -> arb:
    """Integrate over s from 0 to 1."""
    return sum((part / (power + 1) for power, part in enumerate(polynomial)), ball(0))
