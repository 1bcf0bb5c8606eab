"""M-estimates of location, scale and regression with their sandwich errors, exact and therefore not private."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from discreet.errors import InvalidParameter
from discreet.exact import Number, exact_or_none, positive
from discreet.formatting import record
from discreet.mechanisms.parameters import read_confidence
from discreet.privacy.not_private import NotPrivate
from discreet.robust import functionals
from discreet.robust.functionals import fit_location, fit_regression, median_absolute_deviation
from discreet.robust.loss_functions import Floats, Huber, Psi

__all__ = [
    "MEstimateFit",
    "leverage_weights",
    "location_fit",
    "median_absolute_deviation_of",
    "proposal_2",
    "read_rows",
    "read_sample",
    "regression_fit",
    "with_intercept",
]

# --- samples ---
# Reading data for exact diagnostics, whose results are marked as not private: here, what is no number is refused.


def read_sample(values: Any) -> Floats:
    """Read a column of finite numbers."""
    sample = _numbers(values)
    if sample.ndim != 1 or not sample.size:
        raise InvalidParameter("values must be a column of at least one number")
    return sample


def read_rows(rows: Any, targets: Any) -> tuple[Floats, Floats]:
    """Read a table of finite numbers and the column that it is to predict."""
    table, column = _numbers(rows), read_sample(targets)
    table = table[:, None] if table.ndim == 1 else table
    if table.ndim != 2 or len(table) != len(column):
        raise InvalidParameter("X must have a row for each value of y")
    return table, column


def _numbers(values: Any) -> Floats:
    try:
        numbers = np.asarray(values.to_numpy() if hasattr(values, "to_numpy") else values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidParameter("an exact diagnostic takes numbers only") from None
    if not np.isfinite(numbers).all():
        raise InvalidParameter("an exact diagnostic takes finite numbers only: leave out what is missing")
    return numbers


_HUBER = Huber()
_CLOSE = 1e-12
_ROUNDS = 50


@final
@dataclass(frozen=True, slots=True)
class MEstimateFit:
    """Estimates with their standard errors, and the scale of the residuals."""

    estimates: tuple[float, ...]
    standard_errors: tuple[float, ...]
    scale: float

    __repr__ = record

    def interval(self, confidence: Number = 0.95) -> tuple[tuple[float, float], ...]:
        """Return an interval around each estimate that covers so often in many repetitions with many values."""
        reach = functionals.quantile((1 + float(read_confidence(confidence))) / 2)
        pairs = zip(self.estimates, self.standard_errors, strict=True)
        return tuple((value - reach * error, value + reach * error) for value, error in pairs)


def location_fit(values: Any, *, psi: Psi = _HUBER, scale: Number | None = None) -> NotPrivate[MEstimateFit]:
    """Estimate a location; without a scale, in units of the median absolute deviation. [Hub64]

    Args:
        values: The private values.
        psi: The loss.
        scale: The scale of the residuals; the median absolute deviation if not said.

    Returns:
        The estimate with its standard error and the scale, marked as not private.

    Raises:
        InvalidParameter: If there are no values, or the scale is not above 0.

    Examples:
        >>> fit = dp.robust.location_fit([1, 2, 3, 4, 100], scale=1).value
        >>> round(fit.estimates[0], 3)
        3.0
    """
    sample = read_sample(values)
    equal = np.full(sample.size, 1 / sample.size)
    spread = _read_scale(scale, sample)
    centre = fit_location(sample, equal, psi, spread)
    u = (sample - centre) / spread
    slope, square = float(psi.derivative(u).sum()), float((psi.psi(u) ** 2).sum())
    error = spread * math.sqrt(square) / slope if slope > 0 else math.inf
    return NotPrivate(MEstimateFit((centre,), (error,), spread))


def median_absolute_deviation_of(values: Any) -> NotPrivate[float]:
    """Return the median distance from the median, scaled to the deviation of a normal law. [Ham74]

    Args:
        values: The private values.

    Returns:
        The deviation, marked as not private.

    Raises:
        InvalidParameter: If there are no values.

    Examples:
        >>> round(dp.robust.median_absolute_deviation_of([1, 2, 3, 4, 100]).value, 4)
        1.4826
    """
    sample = read_sample(values)
    return NotPrivate(median_absolute_deviation(sample, np.full(sample.size, 1 / sample.size)))


def proposal_2(values: Any, *, psi: Psi = _HUBER) -> NotPrivate[MEstimateFit]:
    """Estimate location and scale together: the mean of psi is 0, that of psi^2 what it is for a normal law. [Hub64]

    Args:
        values: The private values.
        psi: The loss.

    Returns:
        The estimate with its standard error and the scale, marked as not private.

    Raises:
        InvalidParameter: If there are no values.

    Examples:
        >>> fit = dp.robust.proposal_2([1, 2, 3, 4, 5]).value
        >>> round(fit.estimates[0], 3)
        3.0
    """
    sample = read_sample(values)
    equal = np.full(sample.size, 1 / sample.size)
    target = functionals.mean(lambda x: psi.psi(x) ** 2, psi.breaks)
    scale = _read_scale(None, sample)
    for _ in range(_ROUNDS):
        centre = fit_location(sample, equal, psi, scale)
        moved = scale * math.sqrt(float((psi.psi((sample - centre) / scale) ** 2).mean()) / target)
        if not moved or abs(moved - scale) <= _CLOSE * scale:
            break
        scale = moved
    return location_fit(sample, psi=psi, scale=repr(scale))


def regression_fit(
    X: Any,
    y: Any,
    *,
    psi: Psi = _HUBER,
    scale: Number | None = None,
    leverage: Number | None = None,
    intercept: bool = True,
) -> NotPrivate[MEstimateFit]:
    """Regress y on the columns of X; rows longer than `leverage` count less, by the square of the ratio. [HRRS86]

    Without a scale, residuals are measured by their median absolute deviation, which is found along with the fit.

    Args:
        X: The private features: an array or a table.
        y: The private responses, one a row.
        psi: The loss.
        scale: The scale of the residuals.
        leverage: The length from which on a row counts less; no row does if not said.
        intercept: Whether there is an intercept, which comes first.

    Returns:
        The coefficients with their standard errors and the scale, marked as not private.

    Raises:
        InvalidParameter: If rows and responses do not fit together.

    Examples:
        >>> fit = dp.robust.regression_fit([[1], [2], [3], [4]], [3, 5, 7, 900], scale=1).value
        >>> len(fit.estimates)
        2
    """
    table, targets = read_rows(X, y)
    rows = with_intercept(table) if intercept else table
    weights = leverage_weights(rows, None if leverage is None else float(positive(leverage, name="leverage")))
    spread = _read_scale(scale, targets)
    found = fit_regression(rows, targets, weights, psi, spread)
    for _ in range(_ROUNDS if scale is None else 0):
        moved = _read_scale(None, targets - rows @ found)
        if abs(moved - spread) <= 1e-7 * spread:
            break
        spread = moved
        found = fit_regression(rows, targets, weights, psi, spread)
    return NotPrivate(
        MEstimateFit(tuple(found.tolist()), _sandwich(rows, targets, weights, psi, spread, found), spread)
    )


def with_intercept(rows: Floats) -> Floats:
    """Put a column of ones before the others."""
    return np.column_stack([np.ones(len(rows)), rows])


def leverage_weights(rows: Floats, leverage: float | None) -> Floats:
    """Return min(1, (m / |x|)^2) for each row, ones without a bound m. [ABL23]"""
    if leverage is None:
        return np.ones(len(rows))
    squares = np.zeros(len(rows))
    for column in rows.T:  # One by one: a row's sum must not depend on where the row stands.
        squares += column * column
    return np.minimum(1.0, leverage * leverage / np.maximum(squares, 1e-300))


def _sandwich(
    rows: Floats, targets: Floats, weights: Floats, psi: Psi, scale: float, found: Floats
) -> tuple[float, ...]:
    u = (targets - rows @ found) / scale
    scores = rows * (weights * psi.psi(u))[:, None]
    bread = np.linalg.pinv(rows.T @ (rows * (weights * psi.derivative(u))[:, None]))
    variances = np.diag(bread @ scores.T @ scores @ bread)
    return tuple((scale * np.sqrt(np.maximum(variances, 0))).tolist())


def _read_scale(scale: Number | None, sample: Floats) -> float:
    declared = exact_or_none(scale, name="scale")
    if declared is not None:
        return float(positive(declared, name="scale"))
    return median_absolute_deviation(sample, np.full(sample.size, 1 / sample.size)) or 1.0
