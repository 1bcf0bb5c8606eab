"""The nearest consistent tables without negative numbers."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.release.tidy.least_squares import LOOSE, Family, least_squares

__all__ = ["nonnegative"]

Floats: TypeAlias = NDArray[np.float64]
Flags: TypeAlias = NDArray[np.bool_]

ROUNDS = 100  # of exchanging atoms at zero with free ones
PATIENCE = 3  # rounds without progress
SMALL = 1e-4  # parts of a standard deviation


def nonnegative(family: Family, start: Floats) -> Floats:
    """Minimise the misfit over atoms that are not negative; the total of every class of atoms must be known.

    Theorem     Atoms at zero whose slope points below zero, and free ones without slope, are the minimum. Atoms that
                break this are exchanged all at once while that helps, and else the last of them alone, which ends
                where the minimum is unique. [KP11] Where that takes too long, atoms are exchanged towards zero only.
    """
    small = SMALL * min(family.deviations)
    free, atoms = _open(family), start
    best, patience = family.adding.atoms + 1, PATIENCE
    for _ in range(ROUNDS):
        atoms = least_squares(family, start=atoms, free=free, tolerance=LOOSE)
        wrong = _wrong(family, atoms, free, small)
        if not wrong.size:
            break
        patience = PATIENCE if wrong.size < best else patience - 1
        best = min(best, wrong.size)
        free = free.copy()
        chosen = wrong if patience >= 0 else wrong[-1:]
        free[chosen] = ~free[chosen]
    else:
        atoms = _shrunk(family, atoms, free, small)
    return np.maximum(atoms, 0.0)


def _wrong(family: Family, atoms: Floats, free: Flags, small: float) -> NDArray[np.intp]:
    """Return the free atoms that are below zero, and those at zero that should be above."""
    below, wanted = free & (atoms < -small), _wanted(family, atoms, free, small) & _open(family)
    return np.flatnonzero(below | wanted)


def _open(family: Family) -> Flags:
    """Return the atoms that may be above zero: all but those of classes without anything in them."""
    empty = family.known.spread((family.known.values == 0).astype(np.float64)) > 0
    return ~empty


def _wanted(family: Family, atoms: Floats, free: Flags, small: float) -> Flags:
    """Return atoms at zero that would make the misfit smaller above it."""
    known, slope = family.known, family.slope(atoms)
    if known.count:
        members = np.maximum(known.sums(free.astype(np.float64)), 1)
        slope = slope - known.spread(known.sums(np.where(free, slope, 0.0)) / members)
    wanted: Flags = ~free & (slope < -small * sum(family.weights))
    return wanted


def _shrunk(family: Family, atoms: Floats, free: Flags, small: float) -> Floats:
    """Set to zero what is below it until nothing is; in a class with a total above zero something stays free."""
    for _ in range(family.adding.atoms):
        atoms = least_squares(family, start=atoms, free=free, tolerance=LOOSE)
        below = free & (atoms < -small)
        if not below.any():
            break
        free = free & ~below
    return atoms
