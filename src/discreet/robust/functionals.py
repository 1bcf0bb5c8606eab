"""Estimators as functions of a distribution: their value, influence and breakdown at data and at the normal model."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol, final

import numpy as np

from discreet.errors import InvalidParameter
from discreet.exact import Number, exact, exact_or_none
from discreet.mechanisms.fields import settle
from discreet.robust import normal_model
from discreet.robust.psi import Floats, Psi, Quantile
from discreet.robust.solving import fit_location, median_absolute_deviation, weighted_quantile

__all__ = [
    "Functional",
    "HodgesLehmann",
    "MLocation",
    "Mean",
    "MedianAbsoluteDeviation",
    "TrimmedMean",
    "WinsorisedMean",
]

_MOST_PAIRS = 4000  # Values; their pairwise means fill the memory beyond.


class Functional(Protocol):
    """A number that belongs to every distribution. Fields are public; what `estimate` returns is private."""

    @property
    def breakdown(self) -> float:
        """The share of values that must be bad before the estimate can be anything, for many values. [HRRS86]"""

    def estimate(self, values: Floats, weights: Floats, /) -> float:
        """Return the value at the distribution that gives each value its weight; weights add up to one."""

    def influence(self, points: Floats, /) -> Floats:
        """Return the influence function at the standard normal law."""

    def gross_error_sensitivity(self) -> float:
        """Return the supremum of |influence| at the standard normal law."""


@final
@dataclass(frozen=True, slots=True)
class Mean:
    """The mean: one value moves it as far as it likes."""

    @property
    def breakdown(self) -> float:
        return 0.0

    def estimate(self, values: Floats, weights: Floats) -> float:
        return float(weights @ values)

    def influence(self, points: Floats) -> Floats:
        return points.copy()

    def gross_error_sensitivity(self) -> float:
        return math.inf


@final
@dataclass(frozen=True, slots=True)
class MLocation:
    """The root of the mean of psi((x - t) / s), with a public scale s, or the median absolute deviation. [Hub64]"""

    psi: Psi
    scale: Number | None = 1

    def __post_init__(self) -> None:
        settle(self, scale=exact_or_none(self.scale, name="scale"))
        if self.scale is not None and Fraction(self.scale) <= 0:
            raise InvalidParameter("scale must be above 0")

    @property
    def breakdown(self) -> float:
        return float(min(Fraction(self.psi.q), 1 - Fraction(self.psi.q))) if isinstance(self.psi, Quantile) else 0.5

    def estimate(self, values: Floats, weights: Floats) -> float:
        return fit_location(values, weights, self.psi, self.scale_at(values, weights))

    def scale_at(self, values: Floats, weights: Floats) -> float:
        """Return the scale that residuals are divided by. This is private unless it was declared."""
        if self.scale is not None:
            return float(self.scale)
        return median_absolute_deviation(values, weights) or 1.0

    def influence(self, points: Floats) -> Floats:
        return self.psi.psi((points - self._centre) / self._unit) * self._unit / self._slope()

    def gross_error_sensitivity(self) -> float:
        return float(self.psi.bound) * self._unit / self._slope()

    def asymptotic_variance(self) -> float:
        """Return the variance of sqrt(n) times the estimate at the standard normal law."""
        return normal_model.mean(lambda x: self.influence(x) ** 2, self._breaks)

    @property
    def _unit(self) -> float:
        return 1.0 if self.scale is None else float(self.scale)

    @property
    def _breaks(self) -> tuple[float, ...]:
        return *(self._unit * at for at in self.psi.breaks), abs(self._centre)

    @property
    def _centre(self) -> float:
        return normal_model.quantile(float(self.psi.q)) if isinstance(self.psi, Quantile) else 0.0

    def _slope(self) -> float:
        """Return minus the derivative in t of the mean of psi, times the scale."""
        if isinstance(self.psi, Quantile):
            return normal_model.density(self._centre) * self._unit
        return normal_model.mean(lambda x: self.psi.derivative(x / self._unit), self._breaks)


@final
@dataclass(frozen=True, slots=True)
class TrimmedMean:
    """The mean without the share `share` at each end. [HRRS86]"""

    share: Number

    def __post_init__(self) -> None:
        settle(self, share=_read_half(self.share))

    @property
    def breakdown(self) -> float:
        return float(self.share)

    def estimate(self, values: Floats, weights: Floats) -> float:
        order = np.argsort(values, kind="stable")
        above = np.cumsum(weights[order])
        low, high = float(self.share), 1 - float(self.share)
        kept = np.clip(above, low, high) - np.clip(above - weights[order], low, high)
        return float(kept @ values[order]) / (high - low)

    def influence(self, points: Floats) -> Floats:
        end = normal_model.quantile(1 - float(self.share))
        return np.clip(points, -end, end) / (1 - 2 * float(self.share))

    def gross_error_sensitivity(self) -> float:
        return normal_model.quantile(1 - float(self.share)) / (1 - 2 * float(self.share))


@final
@dataclass(frozen=True, slots=True)
class WinsorisedMean:
    """The mean after the share `share` at each end is moved to the value next to it. [HRRS86]"""

    share: Number

    def __post_init__(self) -> None:
        settle(self, share=_read_half(self.share))

    @property
    def breakdown(self) -> float:
        return float(self.share)

    def estimate(self, values: Floats, weights: Floats) -> float:
        low = weighted_quantile(values, weights, float(self.share))
        high = weighted_quantile(values, weights, 1 - float(self.share))
        return float(weights @ np.clip(values, low, high))

    def influence(self, points: Floats) -> Floats:
        end, jump = self._end_and_jump()
        return np.where(np.abs(points) <= end, points, np.sign(points) * (end + jump))

    def gross_error_sensitivity(self) -> float:
        return sum(self._end_and_jump())

    def _end_and_jump(self) -> tuple[float, float]:
        end = normal_model.quantile(1 - float(self.share))
        return end, float(self.share) / normal_model.density(end)


@final
@dataclass(frozen=True, slots=True)
class HodgesLehmann:
    """The median of all means of two values. [HL63]"""

    @property
    def breakdown(self) -> float:
        return 1 - math.sqrt(0.5)

    def estimate(self, values: Floats, weights: Floats) -> float:
        if values.size > _MOST_PAIRS:
            raise InvalidParameter(f"pairwise means of more than {_MOST_PAIRS} values are too many: take a sample")
        means = (values[:, None] + values[None, :]) / 2
        return weighted_quantile(means.ravel(), np.outer(weights, weights).ravel(), 0.5)

    def influence(self, points: Floats) -> Floats:
        from scipy.special import ndtr

        return (np.asarray(ndtr(points)) - 0.5) * 2 * math.sqrt(math.pi)

    def gross_error_sensitivity(self) -> float:
        return math.sqrt(math.pi)


@final
@dataclass(frozen=True, slots=True)
class MedianAbsoluteDeviation:
    """The median distance from the median, scaled to the deviation of a normal law. [Ham74]"""

    @property
    def breakdown(self) -> float:
        return 0.5

    def estimate(self, values: Floats, weights: Floats) -> float:
        return median_absolute_deviation(values, weights)

    def influence(self, points: Floats) -> Floats:
        return np.where(np.abs(points) < self._middle, -1.0, 1.0) * self.gross_error_sensitivity()

    def gross_error_sensitivity(self) -> float:
        return 1 / (4 * self._middle * normal_model.density(self._middle))

    @property
    def _middle(self) -> float:
        return normal_model.quantile(0.75)


def _read_half(share: Number) -> Fraction:
    part = exact(share, name="share")
    if not 0 <= part < Fraction(1, 2):
        raise InvalidParameter("share must be at least 0 and below 1/2")
    return part
