"""The choosing mechanism: select among unboundedly many candidates, of which each record supports a few."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from discreet import noise
from discreet.adaptive.bounded_memberships import identity, shown
from discreet.adaptive.no_answer import NO_ANSWER, NOTHING_TO_ENCLOSE, NoAnswer
from discreet.adaptive.stability import least_excess, reliable
from discreet.balls import ball, bounds, precision
from discreet.errors import InvalidParameter
from discreet.exact import Number, exact, positive, positive_integer
from discreet.formatting import record
from discreet.mechanisms.exponential import exponential_outcomes
from discreet.mechanisms.parameters import read_share, settle, small_delta
from discreet.mechanisms.release import NoInterval, Release
from discreet.noise.laws import DiscreteLaplaceLaw
from discreet.noise.limits import check_noise_scale
from discreet.privacy import outcomes
from discreet.privacy.events import ApproxDP
from discreet.privacy.outcomes import Outcomes
from discreet.privacy.payer import Payer, paid
from discreet.privacy.relation import Relation, read_relation

if TYPE_CHECKING:
    from flint import arb

__all__ = ["Choosing", "PointFunction", "PointFunctionLearner"]

_BITS = 256
_CHOSEN = NoInterval(reason="a choice has no confidence interval: how far it is from the best depends on the data")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Choosing:
    """Choose one of the candidates that have any support, the better supported exponentially more often.

    A quality is a whole number, 0 without data. One record more raises the qualities of at most `growth`
    candidates, by one each, and lowers none. First the best quality is tested, with noise, against a threshold;
    then a candidate of quality 1 or more is chosen, with weight e^(rate quality).

    Guarantee   (epsilon, delta), whether a choice is made or not.
    Theorem     Let x' have one record more than x, and best quality b. The weights of old candidates and their total
                grow by e^rate at most, but for k new ones of weight e^rate each, chosen with chance k e^(rate (1 - b))
                at most; the same number bounds how much the total may grow beyond e^rate, seen from x. So the choice
                is (rate, k e^(rate (1 - b))), made with chance P[b + noise > T], and T is such that the product never
                exceeds delta. Where a record is replaced, old weights and their total move by e^rate each, and new
                candidates count twice: the choice is (2 rate, 2 k e^(rate (1 - b))). [BNS16]
    Utility     the domain of candidates does not matter; with probability 1 - e^-t the choice is within
                (ln m + t) / rate of the best of m supported ones, if the best is `reliable_quality`.

    Args:
        epsilon: What a release spends.
        delta: The delta that goes with it.
        growth: How many candidates one record supports at most.
        relation: The neighbouring relation.
        test_share: The part of epsilon that the test of the best quality spends.

    Examples:
        >>> choosing = dp.adaptive.Choosing(epsilon=1, delta=1e-6, growth=1, relation=dp.Relation.ADD_REMOVE)
        >>> choosing.release({"flu": 1000, "cold": 3}).value
        'flu'
    """

    epsilon: Fraction
    delta: Fraction
    growth: int  # candidates that one record supports, at most
    relation: Relation
    test_share: Fraction = Fraction(1, 2)  # of epsilon

    __repr__ = record

    def __post_init__(self) -> None:
        settle(
            self,
            epsilon=positive(self.epsilon, name="epsilon"),
            delta=small_delta(self.delta, public_rows=None),
            test_share=read_share(self.test_share, name="test_share"),
            growth=positive_integer(self.growth, name="growth"),
        )
        settle(self, relation=read_relation(self.relation))
        check_noise_scale(self.law.scale)

    @property
    def event(self) -> ApproxDP:
        return ApproxDP(self.epsilon, self.delta)

    @property
    def rate(self) -> Fraction:
        """What qualities are multiplied by."""
        return self.epsilon * (1 - self.test_share) / self._moves

    @property
    def law(self) -> DiscreteLaplaceLaw:
        """The law of the noise on the best quality."""
        return DiscreteLaplaceLaw(1 / (self.epsilon * self.test_share))

    @property
    def threshold(self) -> int:
        """A choice is made if the noisy best quality is above this."""
        return _threshold(self.law, self.rate, self.growth * self._moves, self.delta)

    @property
    def _moves(self) -> int:
        """How many records come or go when one unit changes."""
        return 1 if self.relation is Relation.ADD_REMOVE else 2

    def reliable_quality(self, confidence: Number = Fraction(95, 100)) -> int:
        """Return a best quality at which a choice is made with at least this probability. It is public."""
        return reliable(self.law, self.threshold, exact(confidence, name="confidence"))

    def release(self, qualities: Mapping[Any, int], *, session: Payer | None = None) -> Release[Any]:
        """Choose a candidate, or decline to; candidates that are not named have quality 0."""
        with paid(session, self, purpose="a choice among supported candidates"):
            supported = _supported(qualities)
            best = max(supported.values(), default=0)
            passed = best + noise.discrete_laplace(self.law.scale) > self.threshold
            place = noise.categorical(_scores(supported), factor=self.rate)
            made = passed and best > 0
            return Release(
                value=list(supported)[place] if made else NO_ANSWER,
                event=self.event,
                relation=self.relation,
                accuracy=_CHOSEN if made else NOTHING_TO_ENCLOSE,
                delta=self.delta,
            )

    def distribution(self, qualities: Mapping[Any, int]) -> Outcomes:
        supported = _supported(qualities)
        if not supported:
            return outcomes.point(NO_ANSWER)
        made = self.law.survival(self.threshold - max(supported.values()))
        choice = exponential_outcomes(supported, factor=self.rate)
        return outcomes.mixture([(made, choice), (1 - made, outcomes.point(NO_ANSWER))])


def _supported(qualities: Mapping[Any, int]) -> dict[Hashable, int]:
    if not all(isinstance(quality, int) for quality in qualities.values()):
        raise InvalidParameter("qualities must be whole numbers")
    return {candidate: quality for candidate, quality in qualities.items() if quality > 0}


def _scores(supported: Mapping[Hashable, int]) -> NDArray[np.int64] | list[int]:
    """Return what to choose by, something also where nothing is supported: the same is done then."""
    scores = list(supported.values()) or [0]
    return np.array(scores, np.int64) if max(scores) < 1 << 62 else scores


@lru_cache(256)
def _threshold(law: DiscreteLaplaceLaw, rate: Fraction, growth: int, delta: Fraction) -> int:
    """Return a T with P[b + X > T] min(1, k e^(rate (1 - b))) <= delta for all b >= 1.

    Let c be the last b for which the second factor is 1. Up to c the product rises with b. From c + 1 to T it is a
    geometric sequence in b, largest at an end. Beyond T it is at most k e^(rate (1 - T)) `_peak`.
    """
    with precision(_BITS + delta.denominator.bit_length()):
        free = 1 + math.floor(bounds(ball(growth).log() / ball(rate))[1])
        next_chance = min(Fraction(1), bounds(ball(delta / growth) * ball(rate * free).exp())[0])
        most = law.survival(0).max(_peak(law, rate))
        late = math.ceil(bounds((ball(growth) * most / ball(delta)).log() / ball(rate))[1])
    return max(free + least_excess(law, delta), free + 1 + least_excess(law, next_chance), 1 + late)


def _peak(law: DiscreteLaplaceLaw, rate: Fraction) -> arb:
    """Bound the largest (1 - a^m / (1 + a)) e^(-rate m) over m >= 1, with a = e^(-1 / scale).

    Over real m the largest is where a^m = rate (1 + a) / (rate + 1 / scale); it falls after that.
    """
    fall = ball(-1 / law.scale).exp()
    at_peak = ball(rate / (rate + 1 / law.scale)) * (1 + fall)
    place = (-at_peak.log() * ball(law.scale)).max(ball(1))
    return (1 - (-place / ball(law.scale)).exp() / (1 + fall)) * (-ball(rate) * place).exp()


# --- point_functions: Learn which single point is different: the worked example of choosing by support. ---
#
# A point function is 1 at one point and 0 everywhere else; the points may be anything, without number. Pure privacy
# needs a sample that grows with the logarithm of the number of points; here it does not matter. [BNS16]


Examples = Sequence[tuple[object, object]]


@final
@dataclass(frozen=True, slots=True)
class PointFunction:
    """1 at a point and 0 elsewhere; 0 everywhere without a point."""

    point: Any = None

    def __call__(self, value: object) -> int:
        return int(self.point is not None and identity(value) == identity(self.point))

    def __str__(self) -> str:
        return "0 everywhere" if self.point is None else f"1 at {self.point} only"

    __repr__ = __str__


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PointFunctionLearner:
    """Learn a point function from examples (point, label), of which those with label 1 tell something.

    Guarantee   (epsilon, delta).
    Theorem     An example supports one point, or none: the choosing mechanism with growth 1. Where it declines, the
                function that is 0 everywhere is returned, which is post-processing. [BNS16]
    Utility     if all labels come from one point function, `reliable_positives(c)` examples of its point make it
                known with probability c. A point that is rarer may be missed, and then hardly matters.
    """

    epsilon: Fraction
    delta: Fraction
    relation: Relation

    def __post_init__(self) -> None:
        choosing = self.choosing
        settle(self, epsilon=choosing.epsilon, delta=choosing.delta, relation=choosing.relation)

    @property
    def choosing(self) -> Choosing:
        return Choosing(epsilon=self.epsilon, delta=self.delta, growth=1, relation=self.relation)

    @property
    def event(self) -> ApproxDP:
        return self.choosing.event

    def reliable_positives(self, confidence: Number = Fraction(95, 100)) -> int:
        """Return how many examples of one point make it known with at least this probability. It is public."""
        return self.choosing.reliable_quality(confidence)

    def release(self, examples: Examples, *, session: Payer | None = None) -> Release[PointFunction]:
        """Learn from private examples."""
        with paid(session, self, purpose="learning a point function"):
            chosen = self.choosing.release(support(examples))
            return Release(
                value=learned(chosen.value),
                event=self.event,
                relation=self.relation,
                accuracy=chosen.accuracy,
                delta=self.delta,
            )

    def distribution(self, examples: Examples) -> Outcomes:
        return outcomes.map(self.choosing.distribution(support(examples)), learned)


def support(examples: Examples) -> dict[Any, int]:
    """Count how often each point was seen with label 1; this is private."""
    seen = Counter(identity(point) for point, label in examples if _is_one(label))
    return {key: count for key, count in seen.items() if key is not None}


def _is_one(label: object) -> bool:
    return identity(label) in (identity(1), identity(True))


def learned(chosen: Any) -> PointFunction:
    """Turn a choice into a function."""
    return PointFunction() if isinstance(chosen, NoAnswer) else PointFunction(shown(chosen))
