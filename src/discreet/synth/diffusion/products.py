"""Sums of products of whole numbers, with noise: how coordinates of a row go together, whatever rows there are.

Theorem     A row x of norm at most r adds x_i x_j to the symmetric matrix of sums. With noise of variance v beside the
            diagonal, each number drawn once, and 2 v on it, the squared shift in units of the noise is
            sum_{i<j} x_i^2 x_j^2 / v + sum_i x_i^4 / (2 v) = |x|^4 / (2 v) <= r^4 / (2 v). So it is a Gaussian release
            with noise multiplier z for v = z^2 r^4 / 2. [BW18]
Utility     The matrix of noise has eigenvalues up to about 2 sqrt(v p) for p coordinates.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet import noise

__all__ = ["edge", "noisy_products", "products_variance", "shortened"]


def shortened(rows: NDArray[np.int64], longest: int) -> NDArray[np.int64]:
    """Bring rows to norm at most `longest`: towards zero to whole numbers, by a length that is rounded up."""
    squared = (rows**2).sum(1)
    long = squared > longest**2
    length = np.sqrt(squared[long]).astype(np.int64) + 1
    short = rows.copy()
    short[long] = np.sign(rows[long]) * (np.abs(rows[long]) * longest // length[:, None])
    return short


def products_variance(longest: int, noise_multiplier_squared: Fraction) -> Fraction:
    """Return the variance of noise beside the diagonal for rows of norm at most `longest`."""
    return noise_multiplier_squared * longest**4 / 2


def noisy_products(exact: NDArray[np.int64], variance: Fraction) -> NDArray[np.int64]:
    """Add noise to symmetric matrices of sums, (…, p, p), and keep them symmetric."""
    size = exact.shape[-1]
    beside = np.triu(noise.rounded_gaussian(variance=variance, size=exact.shape), 1)
    on = np.eye(size, dtype=np.int64) * noise.rounded_gaussian(variance=2 * variance, size=(*exact.shape[:-1], 1))
    noisy: NDArray[np.int64] = exact + beside + np.swapaxes(beside, -1, -2) + on
    return noisy


def edge(size: int, variance: Fraction) -> float:
    """The largest eigenvalue that a matrix of such noise has, about."""
    return 2 * float(np.sqrt(size * float(variance)))
