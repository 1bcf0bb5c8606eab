"""Sparse tables: which cells of a noisy table are taken for empty, so that noise does not scatter rows over them.

Where one column follows from another most cells of their table are empty. Counts are not negative, so a fit keeps the
upper half of the noise of those cells, and rows turn up far from where any row is: of a table of 18 by 18 cells that
noise of a tenth of the rows was added to, about one row in twenty. Whatever is done here reads noisy counts alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self, final

import numpy as np
from numpy.typing import NDArray

from discreet.synth.tables.graphical.belief_propagation import Clique, Floats
from discreet.synth.tables.graphical.effects import NoisyMarginal
from discreet.synth.tables.graphical.graphical_model import Graphical

__all__ = ["MeasuredTable", "emptied", "filled_cells", "rows_moved"]

_LEVELS = (1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0)  # Deviations of noise up to which cells may be taken for empty.
_SURELY = 0.5  # The share of the rows in wrong places that may be left,
_SURE = 2.0  # with so many deviations of what noise adds to their estimate.
_EMPTY = 1e-3  # Deviations: what an empty cell holds, so that every sum can be reached.
_LEFT = -math.log(16)  # Of what a fit leaves in empty cells, a sixteenth is kept: none is impossible.
_LEAST = 1e-9  # Rows, where a model has none.
_SWEEPS = 3  # Over the sums of columns: cells that were nearly empty move them little.
_TURNS = 30  # Of proportional fitting: enough for a thousandth of the sums.


@final
@dataclass(frozen=True, slots=True, eq=False)
class MeasuredTable:
    """A noisy table, and which of its cells are filled; None where all may be. All of it is released."""

    counts: NoisyMarginal
    filled: NDArray[np.bool_] | None = None

    @classmethod
    def of(cls, counts: NoisyMarginal) -> Self:
        """Look for empty cells; single columns are left as they are."""
        return cls(counts, filled_cells(counts) if len(counts.clique) > 1 else None)

    def with_rare_values(self, placed: Sequence[NDArray[np.bool_]]) -> Self:
        """Return the same table with cells for the rare values of numbers: beside the cells of their neighbours.

        A value of few rows has no cell above the level. If it has a place among others, its rows lie near theirs.
        """
        if self.filled is None:
            return self
        ordered = [placed[column] for column in self.clique]
        grown = self.filled.reshape([own.size for own in ordered])
        for axis in range(grown.ndim):
            grown = grown | _grown(grown, axis, ordered)
        return type(self)(self.counts, grown.ravel())

    @property
    def clique(self) -> Clique:
        return self.counts.clique

    def beside(self, model: Graphical) -> NoisyMarginal:
        """Return what to fit: the filled cells in proportion, with the sums of a model's columns.

        Columns are known better than their tables. A fit would spread what a table lacks of a column's sum over all its
        cells, empty or not; in proportion it goes where rows are. [DS40]
        """
        if self.filled is None:
            return self.counts
        shape = tuple(model.sizes[column] for column in self.clique)
        floor = _EMPTY * float(self.counts.deviation)
        held = np.where(self.filled, np.maximum(self.counts.values, floor), floor).reshape(shape)
        sums = [np.maximum(model.marginal((column,)), floor) for column in self.clique]
        for _ in range(_TURNS):
            for axis, wanted in enumerate(sums):
                others = tuple(other for other in range(held.ndim) if other != axis)
                held = held * (
                    wanted.reshape([-1 if other == axis else 1 for other in range(held.ndim)])
                    / held.sum(axis=others, keepdims=True)
                )
        return NoisyMarginal(self.clique, held.ravel(), self.counts.deviation)


def emptied(model: Graphical, tables: Sequence[MeasuredTable]) -> Graphical:
    """Take out of empty cells what a fit leaves in them: it stops about a tenth of a deviation from what it is told.

    The sums of columns are brought back to what the fit found, in proportion.
    """
    sparse = [(one.clique, one.filled) for one in tables if one.filled is not None]
    columns = sorted({column for clique, _ in sparse for column in clique})
    wanted = {column: model.marginal((column,)) for column in columns}
    for clique, filled in sparse:
        model = _raised(model, clique, np.where(filled, 0.0, _LEFT))
    for column in columns * _SWEEPS:
        found = model.marginal((column,))
        raised = np.log(np.maximum(wanted[column], _LEAST) / np.maximum(found, _LEAST))
        model = _raised(model, (column,), raised)
    return model


def _raised(model: Graphical, clique: Clique, by: Floats) -> Graphical:
    """Add to the potentials of a clique's cells."""
    place = next(place for place, held in enumerate(model.cliques) if set(clique) <= set(held))
    shape = [model.sizes[column] if column in clique else 1 for column in model.cliques[place]]
    tables = list(model.potentials)
    tables[place] = tables[place] + by.reshape(shape)
    return replace(model, potentials=tuple(tables))


def _grown(filled: NDArray[np.bool_], axis: int, placed: Sequence[NDArray[np.bool_]]) -> NDArray[np.bool_]:
    """Fill lines without a filled cell from the lines beside them, a cell wider along every column with an order."""
    lines = np.moveaxis(filled, axis, 0).copy()
    others = [own.any() for place, own in enumerate(placed) if place != axis]
    for _ in range(len(lines)):
        bare = ~lines.any(axis=tuple(range(1, lines.ndim))) & placed[axis]
        wide = lines.copy()
        for other, is_ordered in enumerate(others, start=1):
            if is_ordered:
                wide = wide | _beside(wide, other)
        lines[bare] = _beside(wide, 0)[bare]
    return np.moveaxis(lines, 0, axis)


def _beside(cells: NDArray[np.bool_], axis: int) -> NDArray[np.bool_]:
    """Tell which cells have a neighbour along an axis among these."""
    moved, found = np.moveaxis(cells, axis, 0), np.zeros_like(np.moveaxis(cells, axis, 0))
    found[1:] |= moved[:-1]
    found[:-1] |= moved[1:]
    return np.moveaxis(found, 0, axis)


def filled_cells(counts: NoisyMarginal) -> NDArray[np.bool_] | None:
    """Tell which cells are filled, if taking the others for empty surely moves fewer rows than keeping them."""
    deviation, values = float(np.max(counts.deviation)), counts.values.ravel()
    moved = [rows_moved(values, deviation, level) for level in _LEVELS]
    best = int(np.argmin(moved))
    filled = values > _LEVELS[best] * deviation
    unsure = _SURE * deviation * math.sqrt(np.count_nonzero(~filled))
    kept = rows_moved(values, deviation, 0.0)
    return filled if filled.any() and moved[best] + unsure < _SURELY * kept else None


def rows_moved(values: Floats, deviation: float, level: float) -> float:
    """Estimate how many rows are in the wrong place if counts up to a level, in deviations, are taken for none.

    Those of the cells that are taken for empty: their sum, and what noise below the level lacks of it. And what noise
    above the level adds to cells that are empty, of which there are twice as many as counts below zero.
    """
    low = values[values <= level * deviation]
    density = math.exp(-(level**2) / 2) / math.sqrt(2 * math.pi)
    below = (1 + math.erf(level / math.sqrt(2))) / 2
    empty = min(2 * int(np.count_nonzero(values < 0)), values.size)
    held = float(low.sum()) + low.size * deviation * density / below if level else 0.0
    return max(held, 0.0) + empty * deviation * density
