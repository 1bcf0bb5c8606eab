"""Solving noisy least squares: free, since noisy moments are public, and better for knowing how noisy they are."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.robust.moments import NoisyMoments

__all__ = ["shrunken", "whitening"]

Floats: TypeAlias = NDArray[np.float64]

_SPREADS = np.exp(np.linspace(-20.0, 12.0, 65))  # Variances that coefficients may have before they are seen.


def shrunken(measured: NoisyMoments) -> Floats:
    """Return the coefficients to expect, given noisy moments, for a normal prior of unknown spread.

    Along each eigenvector of X'X, its eigenvalue w and the entry c of X'y tell c = w theta + noise. The noise has the
    variance of X'y, plus that of X'X times |theta|^2 / 2. Every spread that theta may have counts by how likely it
    makes c: where moments tell nothing, most of them do, and the coefficients are near zero.
    """
    values, vectors = np.linalg.eigh(measured.gram)
    values = np.maximum(values, 0.0)
    seen = vectors.T @ measured.cross
    spreads = _SPREADS[:, None]
    noise = measured.cross_deviation**2 + 0.5 * measured.gram_deviation**2 * spreads * len(seen)
    variances = values**2 * spreads + noise
    fitness = -0.5 * (np.log(variances) + seen**2 / variances).sum(axis=1)
    likely = np.exp(fitness - fitness.max())
    found: Floats = vectors @ ((likely / likely.sum()) @ (values * seen * spreads / variances))
    return found


def whitening(measured: NoisyMoments, rows: float) -> Floats:
    """Return a map to coordinates in which X'X is about the identity times the number of rows, where noise allows."""
    values, vectors = np.linalg.eigh(measured.gram)
    # Half the length of the noise: what is shorter than that is not told from nothing.
    least = 0.5 * measured.gram_deviation * (2 * len(values)) ** 0.5
    turned: Floats = vectors * (rows / (np.maximum(values, 0.0) + least)) ** 0.5
    return turned
