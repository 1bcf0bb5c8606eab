"""Solving noisy least squares: free, since noisy moments are public, and better for knowing how noisy they are."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.robust.moments import Measured

__all__ = ["shrunken", "whitening"]

Floats: TypeAlias = NDArray[np.float64]

_SPREADS = np.exp(np.linspace(-20.0, 12.0, 65))  # Variances that coefficients may have before they are seen.


def shrunken(measured: Measured) -> Floats:
    """Return the coefficients that a normal prior and the noise make likeliest, the prior itself fitted to the moments.

    Along each eigenvector of X'X, its eigenvalue w and the entry c of X'y tell c = w theta + noise. The noise has the
    variance of X'y, plus that of X'X times |theta|^2 / 2. The spread of theta is the one under which c is likeliest.
    """
    values, vectors = np.linalg.eigh(measured.gram)
    values = np.maximum(values, 0.0)
    seen = vectors.T @ measured.cross
    spreads = _SPREADS[:, None]
    noise = measured.cross_deviation**2 + 0.5 * measured.gram_deviation**2 * spreads * len(seen)
    variances = values**2 * spreads + noise
    best = int(np.argmin((np.log(variances) + seen**2 / variances).sum(axis=1)))
    found: Floats = vectors @ (values * seen * _SPREADS[best] / variances[best])
    return found


def whitening(measured: Measured, rows: float) -> Floats:
    """Return a map to coordinates in which X'X is about the identity times the number of rows, where noise allows."""
    values, vectors = np.linalg.eigh(measured.gram)
    # Half the length of the noise: what is shorter than that is not told from nothing.
    least = 0.5 * measured.gram_deviation * (2 * len(values)) ** 0.5
    turned: Floats = vectors * (rows / (np.maximum(values, 0.0) + least)) ** 0.5
    return turned
