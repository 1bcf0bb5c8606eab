"""Add atoms up to the cells of all tables, and spread cells back to atoms, coarse tables by way of finer ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.release.tidy.layout import Spot

__all__ = ["Adding", "adding"]

Floats: TypeAlias = NDArray[np.float64]
Places: TypeAlias = NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """How a table follows from a finer one, or from the atoms."""

    table: int
    finer: int | None  # None for the atoms
    of_finer: Places
    cells: int


@final
@dataclass(frozen=True, slots=True, eq=False)
class Adding:
    """The linear map from atoms to the cells of all tables, one table after the other, and its transpose."""

    atoms: int
    steps: tuple[Step, ...]  # finer tables first

    def up(self, atoms: Floats) -> list[Floats]:
        """Add atoms up to the cells of every table."""
        cells: list[Floats] = [np.empty(0)] * len(self.steps)
        for step in self.steps:
            source = atoms if step.finer is None else cells[step.finer]
            cells[step.table] = np.bincount(step.of_finer, source, step.cells).astype(np.float64, copy=False)
        return cells

    def down(self, cells: Sequence[Floats]) -> Floats:
        """Give every atom the sum of what its cells have: the transpose."""
        gathered, atoms = [part.copy() for part in cells], np.zeros(self.atoms)
        for step in reversed(self.steps):
            target = atoms if step.finer is None else gathered[step.finer]
            target += gathered[step.table][step.of_finer]
        return atoms


def adding(spots: Sequence[Spot], atoms: int) -> Adding:
    """Find for every table the smallest finer one."""
    order = sorted(range(len(spots)), key=lambda table: -spots[table].cells)
    steps: list[Step] = []
    for done, table in enumerate(order):
        found = (_through(spots[finer], spots[table], finer, table) for finer in reversed(order[:done]))
        direct = Step(table, None, spots[table].of_atom, spots[table].cells)
        steps.append(next((step for step in found if step is not None), direct))
    return Adding(atoms, tuple(steps))


def _through(finer: Spot, coarser: Spot, number: int, table: int) -> Step | None:
    # A cell without atoms holds nothing, so wherever it is added does not matter.
    of_finer = np.zeros(finer.cells, np.int64)
    of_finer[finer.of_atom] = coarser.of_atom
    fits = np.array_equal(of_finer[finer.of_atom], coarser.of_atom)
    return Step(table, number, of_finer, coarser.cells) if fits else None
