"""Roots and weighted fits by which M-estimates are found. What goes in is private, and so is what comes out."""

from __future__ import annotations

import numpy as np

from discreet.errors import InvalidParameter
from discreet.robust.psi import Floats, Huber, Psi, Quantile

__all__ = ["fit_location", "fit_regression", "median_absolute_deviation", "weighted_quantile"]

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
