"""The consistent tables that are nearest to the raw ones, every cell weighed by the inverse of its noise variance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.release.tidy.adding import Adding
from discreet.release.tidy.known import Known

__all__ = ["FamilyColumn", "least_squares"]

Floats: TypeAlias = NDArray[np.float64]
Flags: TypeAlias = NDArray[np.bool_]

MOST_STEPS = 1000
TIGHT = 1e-9  # A slope that is as good as none, where one standard deviation makes a slope of one.


@final
@dataclass(frozen=True, slots=True, eq=False)
class FamilyColumn:
    """One additive column of all tables of a family, in grains."""

    adding: Adding
    raw: tuple[Floats, ...]  # by table, then by cell
    deviations: tuple[float, ...]  # of the noise, by table
    known: Known

    @property
    def weights(self) -> tuple[float, ...]:
        """Inverse variances, the largest of them one."""
        least = min(self.deviations)
        return tuple((least / deviation) ** 2 for deviation in self.deviations)

    def misses(self, atoms: Floats) -> list[Floats]:
        """Return how far cells are from the raw ones."""
        return [cells - raw for cells, raw in zip(self.adding.up(atoms), self.raw, strict=True)]

    def misfit(self, atoms: Floats) -> float:
        """Return the sum of squared distances from the raw values, weighed."""
        return self.length(self.misses(atoms))

    def length(self, cells: Sequence[Floats]) -> float:
        """Return the weighed sum of squares of cells."""
        return sum(weight * _square(part) for weight, part in zip(self.weights, cells, strict=True))

    def slope(self, misses: Sequence[Floats]) -> Floats:
        """Return half the derivative of the misfit by atoms."""
        return self.adding.down([weight * miss for weight, miss in zip(self.weights, misses, strict=True)])


def least_squares(
    family: FamilyColumn, *, start: Floats | None = None, free: Flags | None = None, tolerance: float = TIGHT
) -> Floats:
    """Minimise the misfit over atoms that have all known sums; those that are not `free` stay at zero.

    By conjugate gradients: few steps suffice, since tables that are groupings of the same rows have few eigenvalues.

    Theorem     The consistent tables are an affine space that the exact ones are in, and this is the orthogonal
                projection onto it, with inverse variances as the metric: it is never farther from the exact tables
                than the raw ones are, and the best linear unbiased estimate. [HRMS10]
    """
    free = np.ones(family.adding.atoms, np.bool_) if free is None else free
    allowed = _Allowed(family.known, free)
    atoms = allowed.nearest(np.zeros(free.size) if start is None else np.where(free, start, 0.0))
    misses = family.misses(atoms)
    direction = slope = allowed.moves(-family.slope(misses))
    steep, flat = _square(slope), (tolerance * sum(family.weights) * min(family.deviations)) ** 2 * free.size
    for _ in range(MOST_STEPS):
        if steep <= flat:
            break
        moved = family.adding.up(direction)
        far = steep / family.length(moved)
        atoms = atoms + far * direction
        misses = [miss + far * cells for miss, cells in zip(misses, moved, strict=True)]
        slope = allowed.moves(-family.slope(misses))
        before, steep = steep, _square(slope)
        direction = slope + steep / before * direction
    return allowed.nearest(atoms)


def _square(numbers: Floats) -> float:
    # Not a dot product: its threads wait for each other longer than it takes.
    return float((numbers * numbers).sum())


@final
class _Allowed:
    """Which atoms may move, and which moves keep what is known."""

    def __init__(self, known: Known, free: Flags) -> None:
        self.known, self.free = known, free
        self.inverse: Any = _inverse(known, free) if known.count else None

    def moves(self, moves: Floats) -> Floats:
        """Project onto moves of free atoms that change no known sum."""
        moves = np.where(self.free, moves, 0.0)
        if self.inverse is None:
            return moves
        return moves - self._of_sums(self.known.members @ self.known.sums(moves))

    def nearest(self, atoms: Floats) -> Floats:
        """Move atoms as little as possible to have all known sums."""
        if self.inverse is None:
            return atoms
        missing = self.known.values - self.known.members @ self.known.sums(atoms)
        return atoms + self._of_sums(missing)

    def _of_sums(self, sums: Floats) -> Floats:
        by_class = self.known.members.T @ (self.inverse @ sums)
        return np.where(self.free, self.known.spread(by_class), 0.0)


def _inverse(known: Known, free: Flags) -> Any:
    """Return what turns wanted known sums into moves that are the same within every class."""
    from scipy.sparse import diags_array

    sizes = known.sums(free.astype(np.float64))
    gram = known.members @ diags_array(sizes) @ known.members.T
    own = gram.diagonal()
    if gram.nnz <= np.count_nonzero(own):
        return diags_array(np.divide(1, own, out=np.zeros_like(own), where=own > 0))
    return np.linalg.pinv(gram.toarray(), hermitian=True)
