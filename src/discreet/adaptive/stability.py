"""Release an answer exactly where no unit can change it, after a noisy test of how far away that would be."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, final

from discreet import noise
from discreet.adaptive.paid_release import NO_ANSWER, NOTHING_TO_ENCLOSE, NoAnswer, charge
from discreet.balls import ball, bounds, precision
from discreet.exact import Number, exact, positive
from discreet.mechanisms.parameters import check_noise_scale, read_confidence, read_relation, settle, small_delta
from discreet.mechanisms.release import NoInterval, Release
from discreet.noise.laws import DiscreteLaplaceLaw, Law
from discreet.privacy import outcomes
from discreet.privacy.events import ApproxDP, Composed, DiscreteLaplace
from discreet.privacy.not_private import NotPrivate
from discreet.privacy.outcomes import Outcomes
from discreet.privacy.payer import Payer
from discreet.privacy.relation import Relation

if TYPE_CHECKING:
    from flint import arb

__all__ = [
    "DistanceTest",
    "ReleaseIfStable",
    "StableQuery",
    "least_excess",
    "reliable",
    "share_of_chance",
    "stable_outcomes",
    "stable_release",
]

_EXACT = NoInterval(reason="an answer that is given is exact: there is no noise in it, and no interval around it")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DistanceTest:
    """Ask, with noise, whether a distance is clearly above one.

    The distance is a whole number that one unit moves by at most one. Between neighbours that must not be told
    apart by what comes after the test, it must be at most one on both sides.

    Guarantee   epsilon for the result of the test, and for the noisy distance itself; a data set at distance one or
                less passes with probability delta at most.
    Theorem     Noise on a number that one unit moves by one; the threshold T is the smallest whole number with
                P[1 + noise > T] <= delta. For real Laplace noise it is 1 + ln(1 / (2 delta)) / epsilon. [ST13, DR14]
    Utility     `reliable_distance(confidence)` is far enough.
    """

    epsilon: Fraction
    delta: Fraction

    def __post_init__(self) -> None:
        settle(
            self,
            epsilon=positive(self.epsilon, name="epsilon"),
            delta=small_delta(self.delta, population=None),
        )
        check_noise_scale(self._scale)

    @property
    def law(self) -> DiscreteLaplaceLaw:
        """The law of the noise on the distance."""
        return DiscreteLaplaceLaw(self._scale)

    @property
    def threshold(self) -> int:
        """A noisy distance above this passes."""
        return 1 + least_excess(self.law, self.delta)

    @property
    def event(self) -> Composed:
        """What a test spends before an answer that is exact, or that pays for itself between near neighbours."""
        return Composed([DiscreteLaplace(scale=self._scale, sensitivity=1), ApproxDP(0, self.delta)])

    def passes(self, distance: int) -> bool:
        """Test a private distance."""
        return distance + noise.discrete_laplace(self._scale) > self.threshold

    def chance(self, distance: int) -> arb:
        """Enclose the probability that a distance passes, at the working precision."""
        return self.law.survival(self.threshold - distance)

    def reliable_distance(self, confidence: Number = Fraction(95, 100)) -> int:
        """Return a distance that passes with at least this probability. It is public."""
        return reliable(self.law, self.threshold, exact(confidence, name="confidence"))

    @property
    def _scale(self) -> Fraction:
        return 1 / self.epsilon


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StableQuery:
    """A function of the data, with how many units must change before its answer can change.

    `distance_to_instability` returns a whole number of at least 1 that moves by at most 1 between neighbours and is
    1 on both of two neighbours with different answers. The true distance to a different answer is one; a lower bound
    with these properties does. `verify.sensitivity` and `verify.check` look for a counterexample in small worlds.
    """

    evaluate: Callable[[Any], Hashable]
    distance_to_instability: Callable[[Any], int]
    relation: Relation

    def __post_init__(self) -> None:
        read_relation(self.relation)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseIfStable:
    """Answer exactly if the noisy distance to another answer is above a threshold; otherwise do not answer.

    Guarantee   (epsilon, delta), whether an answer is given or not.
    Theorem     Neighbours with the same answer differ in the noisy distance only. Neighbours with different answers
                are both at distance one: they are refused alike, and answered with probability delta at most.
                [ST13, DR14]
    Utility     the answer has no noise, whatever the size of its domain; it is given with probability c if the
                distance is `reliable_distance(c)`, about (ln(1 / (2 delta)) + ln(1 / (2 - 2c))) / epsilon.
    """

    query: StableQuery
    epsilon: Fraction
    delta: Fraction

    def __post_init__(self) -> None:
        test = DistanceTest(epsilon=self.epsilon, delta=self.delta)
        settle(self, epsilon=test.epsilon, delta=test.delta)

    @property
    def relation(self) -> Relation:
        return self.query.relation

    @property
    def test(self) -> DistanceTest:
        return DistanceTest(epsilon=self.epsilon, delta=self.delta)

    @property
    def event(self) -> Composed:
        return self.test.event

    def release(self, data: Any, *, session: Payer | None = None) -> Release[Any]:
        """Answer, or decline to."""
        charge(self, session, purpose="an answer if it is stable")
        return stable_release(self.test, *self._answer(data), self.relation)

    def distribution(self, data: Any) -> Outcomes:
        return stable_outcomes(self.test, *self._answer(data))

    def true_distance(self, data: Any) -> NotPrivate[int]:
        """Tell the custodian how far the data are from another answer."""
        return NotPrivate(self._answer(data)[1])

    def _answer(self, data: Any) -> tuple[Hashable, int]:
        return self.query.evaluate(data), self.query.distance_to_instability(data)


def stable_release(test: DistanceTest, answer: Any, distance: int, relation: Relation) -> Release[Any]:
    """Release the answer if its distance passes."""
    passed = test.passes(distance) and not isinstance(answer, NoAnswer)
    return Release(
        value=answer if passed else NO_ANSWER,
        event=test.event,
        relation=relation,
        accuracy=_EXACT if passed else NOTHING_TO_ENCLOSE,
        delta=test.delta,
    )


def stable_outcomes(test: DistanceTest, answer: Hashable, distance: int) -> Outcomes:
    """List the law of what `stable_release` releases."""
    chance = test.chance(distance)
    return outcomes.mixture([(chance, outcomes.point(answer)), (1 - chance, outcomes.point(NO_ANSWER))])


# --- thresholds: Thresholds that noise rarely exceeds: exact for noise on the integers. ---


_BITS = 256


@lru_cache(1024)
def least_excess(law: Law, chance: Fraction) -> int:
    """Return the smallest t >= 0 with P[X > t] <= chance, for a law that is symmetric about zero.

    Where no ball can tell the two apart, t is one more than it might be.
    """
    return 0 if 2 * chance >= 1 else law.half_width(1 - 2 * chance)


def reliable(law: Law, threshold: int, confidence: Fraction) -> int:
    """Return a number that exceeds the threshold with at least this probability after noise."""
    # P[n + X > threshold] = P[X < n - threshold], by symmetry.
    return threshold + 1 + least_excess(law, 1 - read_confidence(confidence))


@lru_cache(1024)
def share_of_chance(delta: Fraction, trials: int) -> Fraction:
    """Return the largest p, rounded down, for which one of `trials` independent events of chance p has chance delta.

    That is p = 1 - (1 - delta)^(1 / trials), at least delta / trials.
    """
    if trials == 1:
        return delta
    with precision(_BITS + delta.denominator.bit_length()):
        return bounds(-(((-ball(delta)).log1p() / trials).expm1()))[0]
