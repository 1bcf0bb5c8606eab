"""Objective perturbation: a random slope is added to the loss, and the minimum is told, nearly exactly."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import final

from discreet import noise
from discreet.errors import InvalidParameter
from discreet.exact import positive, positive_integer
from discreet.learn.convex.curve import STEEPEST
from discreet.learn.convex.gradient import FINE, Labelled
from discreet.learn.convex.minimum import UNIT, LogisticProblem, minimum
from discreet.mechanisms.fields import check_noise_variance, settle

__all__ = ["ObjectivePerturbation"]

_RIDGES = (Fraction(1, 1 << 20), Fraction(1 << 30))
_FINEST = 60  # Bits of the slope's step.
_WIDEST = 79  # Bits of a variance that samplers take.
_PREPARED = 1 << 20


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectivePerturbation:
    """Release the minimum of sum l(x theta, y) + ridge |theta|^2 / 2 + b theta, with b ~ N(0, 1 / mu_squared).

    Rows are whole numbers in the unit ball; l is the logistic loss made of straight pieces (`curve`).

    Guarantee   of the ideal minimum, what `calibrated` says for each = `mu_squared` and
                kappa = log(1 + steepest / ridge); of what is told about where the search ended, Gaussian privacy with
                mu^2 = `output_mu_squared`, which counts among the sums.
    Theorem     Let b be continuous; the slope that is drawn is b rounded to a public grid, exactly. The gradient of the
                loss with that slope is at most `tolerance` long where the search ended, in exact arithmetic. The loss
                is convex with the ridge, so the end is at most `reach` from the ideal minimum, whatever the search
                did. Given the ideal minimum, the ends of two searches are therefore at most 2 `reach` apart, and
                Gaussian noise for that distance hides which of them it was. [INS19, KST12]
    Utility     the error of the minimum is that of one noisy gradient over the second derivative; the noise on the
                end is smaller by orders.
    """

    dimension: int
    mu_squared: Fraction  # 1 / variance of the slope, in units of the longest row
    ridge: Fraction  # in units of the squared longest row
    output_mu_squared: Fraction
    rows: int = _PREPARED  # how many rows are prepared for: more make the search slow, not wrong

    def __post_init__(self) -> None:
        settle(
            self,
            dimension=positive_integer(self.dimension, name="dimension"),
            mu_squared=positive(self.mu_squared, name="mu_squared"),
            ridge=positive(self.ridge, name="ridge"),
            output_mu_squared=positive(self.output_mu_squared, name="output_mu_squared"),
            rows=positive_integer(self.rows, name="rows"),
        )
        if not _RIDGES[0] <= self.ridge <= _RIDGES[1]:
            raise InvalidParameter("the ridge must lie between 2^-20 and 2^30, in units of the squared longest row")
        check_noise_variance(self.slope_variance)
        check_noise_variance(self.output_variance)

    @property
    def ridge_units(self) -> int:
        """The ridge in units of 2^-42, rounded up."""
        return -int(-self.ridge * (1 << FINE) // 1)

    @property
    def tolerance(self) -> Fraction:
        """How long the gradient may be where the search ends: twice what the nearest point of the grid may have."""
        root = Fraction(isqrt(self.dimension << 20) + 1, 1 << 10)
        return (self.rows * STEEPEST + self.ridge) * root / (1 << FINE)

    @property
    def bits(self) -> int:
        """The slope is a multiple of 2^-bits: rounding moves it by half the tolerance, or more if noise is too wide."""
        step = self.tolerance / (isqrt(self.dimension) + 1)
        widest = (_WIDEST - int(1 / self.mu_squared).bit_length()) // 2
        return max(min(int(1 / step).bit_length(), widest, _FINEST), 1)

    @property
    def reach(self) -> Fraction:
        """How far the end of the search may be from the ideal minimum."""
        rounding = Fraction(isqrt(self.dimension) + 1, 1 << (self.bits + 1))
        return (self.tolerance + rounding) / Fraction(self.ridge_units, 1 << FINE)

    @property
    def slope_variance(self) -> Fraction:
        """In squared steps of 2^-bits."""
        return (1 << (2 * self.bits)) / self.mu_squared

    @property
    def output_variance(self) -> Fraction:
        """In squared steps of 2^-42; two ends of a search are at most twice the reach apart, rounded to a step each."""
        apart = 2 * self.reach * (1 << FINE) + isqrt(self.dimension) + 1
        return apart**2 / self.output_mu_squared

    def release(self, data: Labelled) -> tuple[Fraction, ...]:
        """Draw a slope, search, and tell the end of the search with noise."""
        slope = noise.rounded_gaussian(size=self.dimension, variance=self.slope_variance)
        place = self.search(data, slope.tolist())
        drawn = noise.rounded_gaussian(size=self.dimension, variance=self.output_variance)
        return tuple(Fraction(at + extra, 1 << FINE) for at, extra in zip(place, drawn.tolist(), strict=True))

    def search(self, data: Labelled, slope: list[int]) -> list[int]:
        """Return where the search ends for a slope, in steps of 2^-42. This is private."""
        allowed = int(self.tolerance * (1 << UNIT))
        whole = tuple(part << (UNIT - self.bits) for part in slope)
        place, fine = minimum(LogisticProblem(ridge=self.ridge_units, slope=whole, tolerance=allowed), data)
        return [round(Fraction(at, 1 << (fine - FINE))) for at in place]
