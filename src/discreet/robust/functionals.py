"""Estimators as functions of a distribution: their value and breakdown, the normal model, and how roots are found."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Protocol, final

import numpy as np

from discreet.errors import InvalidParameter
from discreet.exact import Number, exact, exact_or_none
from discreet.formatting import record
from discreet.mechanisms.parameters import settle
from discreet.robust.loss_functions import Floats, Huber, Psi, Quantile

__all__ = [
    "Functional",
    "HodgesLehmann",
    "MLocation",
    "Mean",
    "MedianAbsoluteDeviation",
    "TrimmedMean",
    "WinsorisedMean",
    "cumulative",
    "density",
    "fit_location",
    "fit_regression",
    "mean",
    "median_absolute_deviation",
    "quantile",
    "weighted_quantile",
]

# --- normal_model: Expectations under the standard normal law, the model at which robust estimators are compared. ---


_END = 12.0  # Beyond it the normal law has less than 1e-32.
_NODES = 24  # In each piece of length one at most.


def density(x: float) -> float:
    """Return the standard normal density."""
    return math.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def cumulative(x: float) -> float:
    """Return the standard normal distribution function."""
    return math.erfc(-x / math.sqrt(2)) / 2


def quantile(share: float) -> float:
    """Return the standard normal quantile."""
    from scipy.special import ndtri

    return float(ndtri(share))


def mean(function: Callable[[Floats], Floats], breaks: Iterable[float] = ()) -> float:
    """Integrate a function that is smooth between its breaks, to about twelve digits."""
    inner = [sign * at for at in breaks if 0 < at < _END for sign in (-1, 1)]
    ends = np.unique(np.array([*np.arange(-_END, _END + 1), *inner]))
    nodes, weights = _gauss()
    half = np.diff(ends) / 2
    points = (ends[:-1] + half)[:, None] + half[:, None] * nodes
    masses = half[:, None] * weights * np.exp(-points * points / 2) / math.sqrt(2 * math.pi)
    return float(np.sum(masses * function(points)))


@lru_cache(1)
def _gauss() -> tuple[Floats, Floats]:
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    return nodes, weights


# --- solving ---
# Roots and weighted fits by which M-estimates are found. What goes in is private, and so is what comes out.


_ROUNDS = 200
_CLOSE = 1e-13  # Relative to the scale.
_CLOSE_FIT = 1e-10  # Relative to the largest coefficient.
_WELL_CONDITIONED = 1e6
_NORMAL_MAD = 0.6744897501960817  # The median of |Z|.


def weighted_quantile(values: Floats, weights: Floats, q: float) -> float:
    """Return the least value with the share `q` of the weight at or below it; of two that do, the middle."""
    order = np.argsort(values, kind="stable")
    ranked, below = values[order], np.cumsum(weights[order])
    target = q * below[-1]
    first = int(np.searchsorted(below, target * (1 - 1e-15), side="left"))
    if first + 1 < ranked.size and np.isclose(below[first], target, rtol=1e-14, atol=0):
        return float((ranked[first] + ranked[first + 1]) / 2)
    return float(ranked[min(first, ranked.size - 1)])


def median_absolute_deviation(values: Floats, weights: Floats) -> float:
    """Return the median distance from the median, scaled to the deviation of a normal law."""
    centre = weighted_quantile(values, weights, 0.5)
    return weighted_quantile(np.abs(values - centre), weights, 0.5) / _NORMAL_MAD


def fit_location(values: Floats, weights: Floats, psi: Psi, scale: float) -> float:
    """Solve sum w psi((x - t) / s) = 0; for a psi that falls again, the root next to the median."""
    if isinstance(psi, Quantile):
        return weighted_quantile(values, weights, float(psi.q))
    start = weighted_quantile(values, weights, 0.5)
    return _bisected(values, weights, psi, scale) if psi.is_monotone else _iterated(values, weights, psi, scale, start)


def _bisected(values: Floats, weights: Floats, psi: Psi, scale: float) -> float:
    low, high = float(values.min()), float(values.max())
    while high - low > _CLOSE * scale:
        middle = (low + high) / 2
        if middle in (low, high):
            break
        rising = float(weights @ psi.psi((values - middle) / scale)) > 0
        low, high = (middle, high) if rising else (low, middle)
    return (low + high) / 2


def _iterated(values: Floats, weights: Floats, psi: Psi, scale: float, start: float) -> float:
    """Reweight: each round lowers the loss, from the median on."""
    centre = start
    for _ in range(_ROUNDS):
        shares = weights * _ratio(psi, (values - centre) / scale)
        total = float(shares.sum())
        moved = float(shares @ values) / total if total > 0 else centre
        if abs(moved - centre) <= _CLOSE * scale:
            return moved
        centre = moved
    return centre


def fit_regression(rows: Floats, targets: Floats, leverages: Floats, psi: Psi, scale: float) -> Floats:
    """Solve sum v x psi((y - x b) / s) = 0 by reweighted least squares.

    It starts from the least-squares fit; for a psi that falls again from Huber's, or all residuals might be too far.
    """
    if psi.is_monotone:
        found = _least_squares(rows, targets, leverages)
    else:
        found = fit_regression(rows, targets, leverages, Huber(), scale)
    for _ in range(_ROUNDS):
        shares = leverages * _ratio(psi, (targets - rows @ found) / scale)
        moved = _least_squares(rows, targets, shares)
        if np.max(np.abs(moved - found)) <= _CLOSE_FIT * max(1.0, float(np.max(np.abs(moved)))):
            return moved
        found = moved
    return found


def _least_squares(rows: Floats, targets: Floats, weights: Floats) -> Floats:
    """Solve the normal equations, which is quick, unless they are nearly singular."""
    weighted = rows * weights[:, None]
    gram = weighted.T @ rows
    if np.linalg.cond(gram) < _WELL_CONDITIONED:
        return np.asarray(np.linalg.solve(gram, weighted.T @ targets), dtype=np.float64)
    roots = np.sqrt(weights)
    found, _, rank, _ = np.linalg.lstsq(rows * roots[:, None], targets * roots, rcond=None)
    if rank < rows.shape[1]:
        raise InvalidParameter("the rows do not determine the coefficients: leave out columns that follow from others")
    return np.asarray(found, dtype=np.float64)


def _ratio(psi: Psi, u: Floats) -> Floats:
    """Return psi(u) / u, and the slope at zero where u is zero."""
    size = np.maximum(np.abs(u), 1e-9)  # A quantile loss has an infinite ratio at zero.
    return psi.psi(np.copysign(size, u)) / np.copysign(size, u)


# --- functionals ---
# Estimators as functions of a distribution: their value, influence and breakdown at data and at the normal model.


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
    """The mean: one value moves it as far as it likes.

    Examples:
        >>> dp.robust.gross_error_sensitivity(dp.robust.Mean())
        inf
        >>> dp.robust.breakdown_point(dp.robust.Mean())
        0.0
    """

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
    """The root of the mean of psi((x - t) / s), with a public scale s, or the median absolute deviation. [Hub64]

    Args:
        psi: The loss, such as `Huber()` or `Tukey()`.
        scale: The public scale of the residuals, above 0; None takes the median absolute deviation of the data.

    Raises:
        InvalidParameter: If the scale is not above 0.

    Examples:
        >>> round(dp.robust.gross_error_sensitivity(dp.robust.MLocation(dp.robust.Huber(), scale=1)), 4)
        1.6375
    """

    psi: Psi
    scale: Number | None = 1

    __repr__ = record

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
        return mean(lambda x: self.influence(x) ** 2, self._breaks)

    @property
    def _unit(self) -> float:
        return 1.0 if self.scale is None else float(self.scale)

    @property
    def _breaks(self) -> tuple[float, ...]:
        return *(self._unit * at for at in self.psi.breaks), abs(self._centre)

    @property
    def _centre(self) -> float:
        return quantile(float(self.psi.q)) if isinstance(self.psi, Quantile) else 0.0

    def _slope(self) -> float:
        """Return minus the derivative in t of the mean of psi, times the scale."""
        if isinstance(self.psi, Quantile):
            return density(self._centre) * self._unit
        return mean(lambda x: self.psi.derivative(x / self._unit), self._breaks)


@final
@dataclass(frozen=True, slots=True)
class TrimmedMean:
    """The mean without the share `share` at each end. [HRRS86]

    Args:
        share: The share of values that is left out at each end; below one half.

    Raises:
        InvalidParameter: If the share is out of range.

    Examples:
        >>> dp.robust.breakdown_point(dp.robust.TrimmedMean("0.1"))
        0.1
    """

    share: Number

    __repr__ = record

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
        end = quantile(1 - float(self.share))
        return np.clip(points, -end, end) / (1 - 2 * float(self.share))

    def gross_error_sensitivity(self) -> float:
        return quantile(1 - float(self.share)) / (1 - 2 * float(self.share))


@final
@dataclass(frozen=True, slots=True)
class WinsorisedMean:
    """The mean after the share `share` at each end is moved to the value next to it. [HRRS86]

    Args:
        share: The share of values that is moved inward at each end; below one half.

    Raises:
        InvalidParameter: If the share is out of range.

    Examples:
        >>> dp.robust.breakdown_point(dp.robust.WinsorisedMean("0.1"))
        0.1
    """

    share: Number

    __repr__ = record

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
        end = quantile(1 - float(self.share))
        return end, float(self.share) / density(end)


@final
@dataclass(frozen=True, slots=True)
class HodgesLehmann:
    """The median of all means of two values. [HL63]

    Examples:
        >>> dp.robust.breakdown_point(dp.robust.HodgesLehmann())
        0.2928932188134524
    """

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
    """The median distance from the median, scaled to the deviation of a normal law. [Ham74]

    Examples:
        >>> dp.robust.breakdown_point(dp.robust.MedianAbsoluteDeviation())
        0.5
    """

    @property
    def breakdown(self) -> float:
        return 0.5

    def estimate(self, values: Floats, weights: Floats) -> float:
        return median_absolute_deviation(values, weights)

    def influence(self, points: Floats) -> Floats:
        return np.where(np.abs(points) < self._middle, -1.0, 1.0) * self.gross_error_sensitivity()

    def gross_error_sensitivity(self) -> float:
        return 1 / (4 * self._middle * density(self._middle))

    @property
    def _middle(self) -> float:
        return quantile(0.75)


def _read_half(share: Number) -> Fraction:
    part = exact(share, name="share")
    if not 0 <= part < Fraction(1, 2):
        raise InvalidParameter("share must be at least 0 and below 1/2")
    return part
