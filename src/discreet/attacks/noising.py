"""Exact tables turned into private ones, to be attacked in the same way."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from discreet import privacy
from discreet.attacks.counts import CountNoise, CountTable
from discreet.errors import InvalidParameter
from discreet.exact import Number, exact
from discreet.noise import rounded_gaussian

__all__ = ["noised"]


def noised(
    tables: Sequence[CountTable], *, epsilon: Number, delta: Number
) -> tuple[tuple[CountTable, ...], privacy.Event]:
    """Return tables with Gaussian noise that costs `epsilon` at `delta` for all of them together, and what it costs.

    Guarantee   for one row more or less, which changes one count of each table by one.
    Theorem     k Gaussian releases of deviation sqrt(k) sigma cost together what one of sigma does. [DRS22]
    """
    if not tables or any(table.noise is not CountNoise.NONE for table in tables):
        raise InvalidParameter("give at least one table, and exact ones")
    alone = privacy.gaussian_sigma(epsilon, exact(delta, name="delta"))
    # The root is rounded up, so that the noise is not too small.
    sigma = Fraction(alone) * Fraction(math.isqrt(len(tables) * 10**18) + 1, 10**9)
    private = [
        replace(
            table,
            counts=table.counts + np.asarray(rounded_gaussian(sigma, len(table.counts)), dtype=np.float64),
            noise=CountNoise.GAUSSIAN,
            deviation=float(sigma),
        )
        for table in tables
    ]
    return tuple(private), privacy.Repeated(privacy.Gaussian(sigma), len(tables))
