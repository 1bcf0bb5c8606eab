"""The nearest consistent tables without negative numbers."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.release.tidy.least_squares import FamilyColumn, least_squares

__all__ = ["nonnegative"]

Floats: TypeAlias = NDArray[np.float64]
Flags: TypeAlias = NDArray[np.bool_]

ROUNDS = 100  # of exchanging atoms at zero with free ones
PATIENCE = 3  # rounds without progress
PROGRESS = 0.9  # of the fewest that were wrong before
FEW = 50  # Atoms that are worth being exchanged one by one.
ROUGH, FINE = 1e-3, 1e-5  # First most of it with little effort, then the rest.


def nonnegative(family: FamilyColumn, start: Floats) -> Floats:
    """Minimise the misfit over atoms that are not negative; the total of every class of atoms must be known.

    Theorem     Atoms at zero whose slope points below zero, and free ones without slope, are the minimum. Atoms that
                break this are exchanged all at once while that helps, and else the last of them alone, which ends
                where the minimum is unique. [KP11] Where that takes too long, atoms are exchanged towards zero only.
    """
    free, atoms = _open(family), start
    for tolerance in (ROUGH, FINE):
        atoms, free, found = _exchanged(family, atoms, free, tolerance)
        if not found:
            return _shrunk(family, atoms, free)
    return np.maximum(atoms, 0.0)


def _exchanged(family: FamilyColumn, atoms: Floats, free: Flags, tolerance: float) -> tuple[Floats, Flags, bool]:
    """Return atoms, which of them are free, and whether that is the minimum."""
    best, patience = family.adding.atoms + 1, PATIENCE
    for _ in range(ROUNDS):
        atoms = least_squares(family, start=atoms, free=free, tolerance=tolerance)
        wrong = _wrong(family, atoms, free, _small(family, tolerance))
        if not wrong.size:
            return atoms, free, True
        patience = PATIENCE if wrong.size < PROGRESS * best else patience - 1
        best = min(best, wrong.size)
        if patience < 0 and wrong.size > FEW:
            break
        free = free.copy()
        chosen = wrong if patience >= 0 else wrong[-1:]
        free[chosen] = ~free[chosen]
    return atoms, free, False


def _small(family: FamilyColumn, tolerance: float) -> float:
    """What is as good as zero: ten times what the tolerance leaves of slopes, as a part of a standard deviation."""
    return 10 * tolerance * min(family.deviations)


def _wrong(family: FamilyColumn, atoms: Floats, free: Flags, small: float) -> NDArray[np.intp]:
    """Return the free atoms that are below zero, and those at zero that should be above."""
    below, wanted = free & (atoms < -small), _wanted(family, atoms, free, small) & _open(family)
    return np.flatnonzero(below | wanted)


def _open(family: FamilyColumn) -> Flags:
    """Return the atoms that may be above zero: all but those of classes without anything in them."""
    empty = family.known.spread((family.known.values == 0).astype(np.float64)) > 0
    return ~empty


def _wanted(family: FamilyColumn, atoms: Floats, free: Flags, small: float) -> Flags:
    """Return atoms at zero that would make the misfit smaller above it."""
    known, slope = family.known, family.slope(family.misses(atoms))
    if known.count:
        members = np.maximum(known.sums(free.astype(np.float64)), 1)
        slope = slope - known.spread(known.sums(np.where(free, slope, 0.0)) / members)
    wanted: Flags = ~free & (slope < -small * sum(family.weights))
    return wanted


def _shrunk(family: FamilyColumn, atoms: Floats, free: Flags) -> Floats:
    """Set to zero what is below it until nothing is; in a class with a total above zero something stays free."""
    for _ in range(family.adding.atoms):
        atoms = least_squares(family, start=atoms, free=free, tolerance=ROUGH)
        below = free & (atoms < -_small(family, ROUGH))
        if not below.any():
            break
        free = free & ~below
    return np.maximum(atoms, 0.0)
