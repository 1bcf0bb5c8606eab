"""The Gaussian mechanism on whole numbers: the exact rounding of the continuous one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np

from discreet import noise
from discreet.errors import InvalidParameter
from discreet.exact import Number, integer, positive, positive_integer
from discreet.formatting import record
from discreet.mechanisms.parameters import settle
from discreet.mechanisms.release import EachCell, NoiseAccuracy, Release
from discreet.noise.laws import DiscreteGaussianLaw, RoundedGaussianLaw
from discreet.noise.limits import check_noise_variance
from discreet.privacy import events, outcomes
from discreet.privacy.outcomes import Outcomes
from discreet.privacy.relation import Relation, read_relation

__all__ = ["DiscreteGaussian", "Gaussian", "VectorGaussian", "read_vector"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Gaussian:
    """Add rounded Gaussian noise to a whole number.

    Guarantee   Gaussian privacy with mu = sensitivity / sigma: every (epsilon, delta) of the analytic formula.
    Theorem     On whole numbers f + round(Z) = round(f + Z), which is post-processing of the continuous mechanism.
                [BW18, DRS22]
    Utility     standard deviation sqrt(variance + 1/12), nearly.

    Args:
        squared_sensitivity: The square of how far one unit moves the answer, in squared grid steps.
        variance: The variance of the noise before rounding, in squared grid steps.
        relation: The neighbouring relation.

    Examples:
        >>> mechanism = dp.mechanisms.Gaussian(
        ...     squared_sensitivity=1, variance=16, relation=dp.Relation.ADD_REMOVE
        ... )
        >>> round(dp.privacy.epsilon(mechanism.event, 1e-5), 3)
        0.926
        >>> abs(mechanism.release(100).value - 100) < 60
        True
    """

    squared_sensitivity: Fraction  # in squared grid steps, for one unit under the relation
    variance: Fraction  # in squared grid steps
    relation: Relation

    __repr__ = record

    def __post_init__(self) -> None:
        _check(self)

    @property
    def event(self) -> events.Gaussian:
        return events.Gaussian(variance=self.variance, squared_sensitivity=self.squared_sensitivity)

    def release(self, answer: int) -> Release[int]:
        """Add noise to a private answer."""
        return Release(
            value=integer(answer, name="answer") + noise.rounded_gaussian(variance=self.variance),
            event=self.event,
            relation=self.relation,
            accuracy=_accuracy(self.variance),
        )

    def distribution(self, answer: int) -> Outcomes:
        return outcomes.from_law(RoundedGaussianLaw(self.variance), answer)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class VectorGaussian:
    """Add independent rounded Gaussian noise to each of several whole numbers.

    Guarantee   Gaussian privacy with mu = sensitivity / sigma, for the l2 sensitivity of the vector.
    Theorem     A Gaussian of equal variances looks the same in all directions. [BW18, DRS22]
    Utility     noise of one size in each coordinate, whatever their number.

    Args:
        squared_sensitivity: The squared l2 norm of the largest change by one unit, in squared grid steps.
        variance: The variance of the noise on each number, in squared grid steps.
        dimension: How many numbers there are.
        relation: The neighbouring relation.

    Examples:
        >>> mechanism = dp.mechanisms.VectorGaussian(
        ...     squared_sensitivity=2, variance=16, dimension=3, relation=dp.Relation.REPLACE_ONE
        ... )
        >>> len(mechanism.release([10, 20, 30]).value)
        3
    """

    squared_sensitivity: Fraction  # l2, squared, in squared grid steps, for one unit under the relation
    variance: Fraction  # in squared grid steps
    dimension: int
    relation: Relation

    __repr__ = record

    def __post_init__(self) -> None:
        _check(self)
        settle(self, dimension=positive_integer(self.dimension, name="dimension"))

    @property
    def event(self) -> events.Gaussian:
        return events.Gaussian(variance=self.variance, squared_sensitivity=self.squared_sensitivity)

    def release(self, answer: Sequence[int]) -> Release[tuple[int, ...]]:
        """Add noise to a private vector."""
        exact = read_vector(answer, self.dimension)
        drawn = noise.rounded_gaussian(size=self.dimension, variance=self.variance).tolist()
        return Release(
            value=tuple(value + extra for value, extra in zip(exact, drawn, strict=True)),
            event=self.event,
            relation=self.relation,
            accuracy=EachCell(cells=(_accuracy(self.variance),)),
        )

    def distribution(self, answer: Sequence[int]) -> Outcomes:
        law = RoundedGaussianLaw(self.variance)
        return outcomes.product(*(outcomes.from_law(law, value) for value in read_vector(answer, self.dimension)))


def _check(mechanism: Gaussian | VectorGaussian) -> None:
    settle(
        mechanism,
        squared_sensitivity=positive(mechanism.squared_sensitivity, name="squared_sensitivity"),
        variance=check_noise_variance(positive(mechanism.variance, name="variance")),
    )
    settle(mechanism, relation=read_relation(mechanism.relation))


def _accuracy(variance: Fraction) -> NoiseAccuracy:
    return NoiseAccuracy(noise=RoundedGaussianLaw(variance), step=Fraction(1))


# --- vectors: Vectors of whole numbers. ---


def read_vector(answer: Sequence[int], dimension: int) -> tuple[int, ...]:
    """Read a private vector of the public length."""
    values = answer.tolist() if isinstance(answer, np.ndarray) else answer
    if len(values) != dimension:
        raise InvalidParameter("the answer must have the declared dimension")
    return tuple(integer(value, name="answer") for value in values)


# --- discrete_gaussian: Discrete Gaussian noise on whole numbers. ---


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteGaussian:
    """Add discrete Gaussian noise to a whole number.

    Guarantee   rho = sensitivity^2 / (2 variance) of zero-concentrated privacy, or its own loss distribution; *not*
                the analytic formula of the continuous law, of which it falls short.
    Theorem     Its Renyi divergences are at most those of the continuous law, at every order. [CKS20]
    Utility     standard deviation at most sigma.

    Args:
        sensitivity: How far one unit moves the answer, in grid steps.
        variance: The parameter sigma^2, in squared grid steps.
        relation: The neighbouring relation.

    Examples:
        >>> mechanism = dp.mechanisms.DiscreteGaussian.for_rho(0.5, sensitivity=1, relation=dp.Relation.ADD_REMOVE)
        >>> mechanism.variance, mechanism.event.rho
        (Fraction(1, 1), Fraction(1, 2))
    """

    sensitivity: int  # in grid steps, for one unit under the relation
    variance: Fraction  # the parameter sigma^2, in squared grid steps
    relation: Relation

    __repr__ = record

    def __post_init__(self) -> None:
        settle(
            self,
            variance=check_noise_variance(positive(self.variance, name="variance")),
            sensitivity=positive_integer(self.sensitivity, name="sensitivity"),
        )
        settle(self, relation=read_relation(self.relation))

    @classmethod
    def for_rho(cls, rho: Number, *, sensitivity: int, relation: Relation | str) -> DiscreteGaussian:
        """Choose the variance that spends rho exactly."""
        relation = read_relation(relation)
        size = positive_integer(sensitivity, name="sensitivity")
        variance = Fraction(size**2) / (2 * positive(rho, name="rho"))
        return cls(sensitivity=size, variance=variance, relation=relation)

    @property
    def event(self) -> events.DiscreteGaussian:
        return events.DiscreteGaussian(variance=self.variance, sensitivity=self.sensitivity)

    def release(self, answer: int) -> Release[int]:
        """Add noise to a private answer."""
        return Release(
            value=integer(answer, name="answer") + noise.discrete_gaussian(variance=self.variance),
            event=self.event,
            relation=self.relation,
            accuracy=NoiseAccuracy(noise=DiscreteGaussianLaw(self.variance), step=Fraction(1)),
        )

    def distribution(self, answer: int) -> Outcomes:
        return outcomes.from_law(DiscreteGaussianLaw(self.variance), answer)
