"""The Laplace mechanism on whole numbers (geometric mechanism)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from discreet import noise
from discreet.exact import Number, integer, positive, positive_integer
from discreet.formatting import record
from discreet.mechanisms.gaussian import read_vector
from discreet.mechanisms.parameters import settle
from discreet.mechanisms.release import EachCell, NoiseAccuracy, Release
from discreet.noise.laws import DiscreteLaplaceLaw
from discreet.noise.limits import check_noise_scale
from discreet.privacy import events, outcomes
from discreet.privacy.outcomes import Outcomes
from discreet.privacy.relation import Relation, read_relation

__all__ = ["Laplace", "VectorLaplace"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Laplace:
    """Add discrete Laplace noise to a whole number.

    Guarantee   epsilon = sensitivity / scale, pure.
    Theorem     Shifting a geometric tail by k multiplies each probability by at most exp(k / scale). [DMNS06, GRS12]
    Utility     variance 2 scale^2 - 1/6 + O(scale^-2); P(|noise| > t) <= 2 exp(-(t + 1) / scale).

    Args:
        sensitivity: How far one unit moves the answer, in grid steps.
        scale: The scale of the noise, in grid steps.
        relation: The neighbouring relation.

    Examples:
        >>> mechanism = dp.mechanisms.Laplace.for_epsilon(0.5, sensitivity=1, relation=dp.Relation.ADD_REMOVE)
        >>> mechanism.scale
        Fraction(2, 1)
        >>> release = mechanism.release(100)
        >>> release.cost, abs(release.value - 100) < 100
        ('ε = 0.5', True)
    """

    sensitivity: int  # in grid steps, for one unit under the relation
    scale: Fraction  # in grid steps
    relation: Relation

    __repr__ = record

    def __post_init__(self) -> None:
        settle(
            self,
            scale=check_noise_scale(positive(self.scale, name="scale")),
            sensitivity=positive_integer(self.sensitivity, name="sensitivity"),
        )
        settle(self, relation=read_relation(self.relation))

    @classmethod
    def for_epsilon(cls, epsilon: Number, *, sensitivity: int, relation: Relation | str) -> Laplace:
        """Choose the scale that spends epsilon exactly."""
        relation = read_relation(relation)
        size = positive_integer(sensitivity, name="sensitivity")
        return cls(sensitivity=size, scale=size / positive(epsilon, name="epsilon"), relation=relation)

    @property
    def event(self) -> events.DiscreteLaplace:
        return events.DiscreteLaplace(scale=self.scale, sensitivity=self.sensitivity)

    def release(self, answer: int) -> Release[int]:
        """Add noise to a private answer."""
        return Release(
            value=integer(answer, name="answer") + noise.discrete_laplace(self.scale),
            event=self.event,
            relation=self.relation,
            accuracy=_accuracy(self.scale),
        )

    def distribution(self, answer: int) -> Outcomes:
        return outcomes.from_law(DiscreteLaplaceLaw(self.scale), answer)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class VectorLaplace:
    """Add independent discrete Laplace noise to each of several whole numbers.

    Guarantee   epsilon = sensitivity / scale, pure, for the l1 sensitivity of the vector.
    Theorem     The ratios of the coordinates multiply, so the distances add up. [DMNS06]
    Utility     noise of one size in each coordinate, whatever their number.

    Args:
        sensitivity: The l1 norm of the largest change by one unit, in grid steps.
        scale: The scale of the noise on each number, in grid steps.
        dimension: How many numbers there are.
        relation: The neighbouring relation.

    Examples:
        >>> mechanism = dp.mechanisms.VectorLaplace(
        ...     sensitivity=2, scale=4, dimension=3, relation=dp.Relation.REPLACE_ONE
        ... )
        >>> mechanism.release([10, 20, 30]).cost
        'ε = 0.5'
    """

    sensitivity: int  # l1, in grid steps, for one unit under the relation
    scale: Fraction  # in grid steps
    dimension: int
    relation: Relation

    __repr__ = record

    def __post_init__(self) -> None:
        settle(
            self,
            scale=check_noise_scale(positive(self.scale, name="scale")),
            sensitivity=positive_integer(self.sensitivity, name="sensitivity"),
        )
        settle(self, dimension=positive_integer(self.dimension, name="dimension"))
        settle(self, relation=read_relation(self.relation))

    @property
    def event(self) -> events.DiscreteLaplace:
        return events.DiscreteLaplace(scale=self.scale, sensitivity=self.sensitivity)

    def release(self, answer: Sequence[int]) -> Release[tuple[int, ...]]:
        """Add noise to a private vector."""
        exact = read_vector(answer, self.dimension)
        drawn = noise.discrete_laplace(self.scale, self.dimension).tolist()
        return Release(
            value=tuple(value + extra for value, extra in zip(exact, drawn, strict=True)),
            event=self.event,
            relation=self.relation,
            accuracy=EachCell(cells=(_accuracy(self.scale),)),
        )

    def distribution(self, answer: Sequence[int]) -> Outcomes:
        law = DiscreteLaplaceLaw(self.scale)
        return outcomes.product(*(outcomes.from_law(law, value) for value in read_vector(answer, self.dimension)))


def _accuracy(scale: Fraction) -> NoiseAccuracy:
    return NoiseAccuracy(noise=DiscreteLaplaceLaw(scale), step=Fraction(1))
