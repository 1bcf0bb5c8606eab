"""Additive noise, calibrated to the sensitivity of a query and to nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import Protocol, Self, final

from discreet import noise
from discreet.errors import InvalidParameter
from discreet.exact import Number, nonnegative, positive, positive_integer, probability
from discreet.formatting import record
from discreet.mechanisms.parameters import settle, small_delta
from discreet.noise.laws import DiscreteLaplaceLaw, RoundedGaussianLaw
from discreet.noise.limits import check_noise_scale, check_noise_variance
from discreet.privacy import events
from discreet.privacy.events import Event

__all__ = ["GaussianNoise", "LaplaceNoise", "Noise", "Sensitivity"]

_FINEST = 1 << 38  # Steps to the scale of noise, up to twice as many: then samplers still take it.
_ROUNDED_UP = 1 << 20  # Rounding a sensitivity up to a unit costs at most this part of it.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """The l1 and squared l2 sensitivity of a vector of whole numbers, in grid steps.

    Args:
        l1: The sum of absolute changes, in grid steps.
        squared_l2: The sum of squared changes.
        dimension: How many numbers there are.

    Raises:
        InvalidParameter: If no change of whole numbers has these norms.

    Examples:
        >>> dp.mechanisms.Sensitivity.scalar(3)
        Sensitivity(l1=3, squared_l2=9)
    """

    l1: int
    squared_l2: int
    dimension: int = 1

    __repr__ = record

    def __post_init__(self) -> None:
        for name in ("l1", "squared_l2", "dimension"):
            settle(self, **{name: positive_integer(getattr(self, name), name=name)})

    @classmethod
    def scalar(cls, size: int) -> Sensitivity:
        """The sensitivity of one whole number."""
        return cls(l1=size, squared_l2=size**2)

    def coarser(self, unit: int) -> Sensitivity:
        """The sensitivity of the same number, rounded to a multiple of `unit` and counted in that unit.

        Two numbers at most s apart, both rounded half up, are at most ceil(s / unit) multiples apart.
        """
        if unit == 1:
            return self
        if self.dimension != 1:
            raise InvalidParameter("only a single number can be made coarser")
        return Sensitivity.scalar(-(-self.l1 // unit))


class Noise(Protocol):
    """A family of noise that is calibrated to a sensitivity: a frozen value."""

    def __hash__(self) -> int: ...

    def part(self, share: Fraction) -> Self:
        """Return noise that spends this share of the budget."""

    def unit(self, sensitivity: Sensitivity) -> int:
        """Return how coarse a single number may be made without losing anything worth having."""

    def event(self, sensitivity: Sensitivity) -> Event:
        """Return what is spent."""

    def law(self, sensitivity: Sensitivity) -> DiscreteLaplaceLaw | RoundedGaussianLaw:
        """Return the law of each coordinate, in grid steps."""

    def draw(self, sensitivity: Sensitivity) -> list[int]:
        """Draw fresh noise, one whole number a coordinate."""


def _unit(scale: int, sensitivity: int) -> int:
    """Return a unit that is tiny next to the noise and next to the sensitivity, which it rounds up."""
    return max(1, min(scale // _FINEST, sensitivity // _ROUNDED_UP))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LaplaceNoise:
    """Discrete Laplace noise for `epsilon`, calibrated to the l1 sensitivity.

    Args:
        epsilon: What the noise spends, above 0.

    Examples:
        >>> noise = dp.mechanisms.LaplaceNoise(epsilon=0.5)
        >>> noise.law(dp.mechanisms.Sensitivity.scalar(3)).scale
        Fraction(6, 1)
    """

    epsilon: Fraction

    __repr__ = record

    def __post_init__(self) -> None:
        settle(self, epsilon=positive(self.epsilon, name="epsilon"))

    def part(self, share: Fraction) -> LaplaceNoise:
        return LaplaceNoise(epsilon=self.epsilon * share)

    def unit(self, sensitivity: Sensitivity) -> int:
        return _unit(int(sensitivity.l1 / self.epsilon), sensitivity.l1)

    def event(self, sensitivity: Sensitivity) -> events.DiscreteLaplace:
        return events.DiscreteLaplace(scale=self._scale(sensitivity), sensitivity=sensitivity.l1)

    def law(self, sensitivity: Sensitivity) -> DiscreteLaplaceLaw:
        return DiscreteLaplaceLaw(self._scale(sensitivity))

    def draw(self, sensitivity: Sensitivity) -> list[int]:
        scale = self._scale(sensitivity)
        if sensitivity.dimension == 1:
            return [noise.discrete_laplace(scale)]
        return list(noise.discrete_laplace(scale, sensitivity.dimension).tolist())

    def _scale(self, sensitivity: Sensitivity) -> Fraction:
        return check_noise_scale(sensitivity.l1 / self.epsilon)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianNoise:
    """Rounded Gaussian noise, calibrated to the l2 sensitivity.

    The answer lies on the grid, so adding rounded noise is rounding the answer of the continuous mechanism.

    Args:
        squared_multiplier: The variance over the squared l2 sensitivity.
        delta: The delta at which the cost is quoted, if the noise was made for one.

    Examples:
        >>> dp.mechanisms.GaussianNoise.for_rho(0.5).squared_multiplier
        Fraction(1, 1)
        >>> noise = dp.mechanisms.GaussianNoise.for_epsilon(1, 1e-6)
    """

    squared_multiplier: Fraction  # variance over squared l2 sensitivity
    delta: Fraction | None = None  # at which the cost is quoted, if it was made for one

    __repr__ = record

    def __post_init__(self) -> None:
        settle(
            self,
            squared_multiplier=positive(self.squared_multiplier, name="squared_multiplier"),
            delta=None if self.delta is None else probability(self.delta, name="delta"),
        )

    @classmethod
    def for_rho(cls, rho: Number) -> GaussianNoise:
        """Spend rho of zero-concentrated privacy: variance = squared sensitivity / (2 rho). [BS16]"""
        return cls(squared_multiplier=1 / (2 * positive(rho, name="rho")))

    @classmethod
    def for_epsilon(
        cls,
        epsilon: Number,
        delta: Number,
        *,
        public_rows: int | None = None,
        allow_large_delta: bool = False,
    ) -> GaussianNoise:
        """Spend (epsilon, delta) by the exact calibration. [BW18]"""
        from discreet.privacy import gaussian_sigma

        spent = nonnegative(epsilon, name="epsilon")
        chance = small_delta(delta, public_rows=public_rows, allow_large_delta=allow_large_delta)
        return cls(squared_multiplier=Fraction(gaussian_sigma(spent, chance)) ** 2, delta=chance)

    def part(self, share: Fraction) -> GaussianNoise:
        # The squares of mu, that is the inverses of the squared multipliers, add up. [DRS22]
        return GaussianNoise(squared_multiplier=self.squared_multiplier / share, delta=self.delta)

    def unit(self, sensitivity: Sensitivity) -> int:
        scale = isqrt(int(self.squared_multiplier * sensitivity.squared_l2))
        return _unit(scale, isqrt(sensitivity.squared_l2))

    def event(self, sensitivity: Sensitivity) -> events.Gaussian:
        return events.Gaussian(variance=self._variance(sensitivity), squared_sensitivity=sensitivity.squared_l2)

    def law(self, sensitivity: Sensitivity) -> RoundedGaussianLaw:
        return RoundedGaussianLaw(self._variance(sensitivity))

    def draw(self, sensitivity: Sensitivity) -> list[int]:
        variance = self._variance(sensitivity)
        if sensitivity.dimension == 1:
            return [noise.rounded_gaussian(variance=variance)]
        return list(noise.rounded_gaussian(size=sensitivity.dimension, variance=variance).tolist())

    def _variance(self, sensitivity: Sensitivity) -> Fraction:
        return check_noise_variance(self.squared_multiplier * sensitivity.squared_l2)
