"""Cells in which two tables are compared: finer than those of the model, so that what the model never saw counts.

A model draws the label `other` for every value that nobody declared, and even numbers within a bin. Compared in its own
cells it would look perfect in both. Here a value that is not declared is a value of its own, which only an equal one
meets, and bins are cut once more where the compared rows have their quantiles.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from discreet.evaluation.rows import Codes, ColumnLayout, EvaluatedRows

__all__ = ["ExactCells", "exact_cells"]

_BANDS = 16  # Of about equal counts, into which the compared rows' numbers are cut besides the declared bins.
_FINE = 256  # Bins of a column that are fine enough.
_SHARED = 1000  # Undeclared values that both tables have and that are told apart; more of them count as one.


@final
@dataclass(frozen=True, slots=True, eq=False)
class ExactCells:
    """Both tables in common cells."""

    synthetic: Codes
    real: Codes
    sizes: tuple[int, ...]
    lost: tuple[float, ...]  # by column: the share of real rows whose value no synthetic row has, nor any declared cell


def exact_cells(layout: ColumnLayout, synthetic: EvaluatedRows, real: EvaluatedRows) -> ExactCells:
    """Place both tables in cells that tell what the declared ones do not."""
    columns = [_column(layout, synthetic, real, place) for place in range(len(layout.names))]
    return ExactCells(
        np.column_stack([ours for ours, _, _ in columns]),
        np.column_stack([theirs for _, theirs, _ in columns]),
        tuple(int(max(ours.max(), theirs.max())) + 1 for ours, theirs, _ in columns),
        tuple(lost for _, _, lost in columns),
    )


def _column(
    layout: ColumnLayout, synthetic: EvaluatedRows, real: EvaluatedRows, place: int
) -> tuple[Codes, Codes, float]:
    ours, theirs = (rows.codes[:, place].astype(np.int64) for rows in (synthetic, real))
    if place in layout.numbers:
        number = layout.numbers.index(place)
        bands = _bands(synthetic.places[:, number], real.places[:, number])
        if layout.sizes[place] <= _FINE:
            ours, theirs = ours * _BANDS + bands[0], theirs * _BANDS + bands[1]
        return *_numbered(ours, theirs), 0.0
    keys = [rows.undeclared[:, layout.others.index(place)] for rows in (synthetic, real)]
    shared = np.intersect1d(keys[0], keys[1])
    told_apart, size = shared[shared != 0], layout.sizes[place]
    ours = _with_undeclared(ours, keys[0], told_apart, size, size)
    # What only the one table has, and what only the other has, are two cells.
    theirs = _with_undeclared(theirs, keys[1], told_apart, size, size + 1)
    lost = float(np.mean((keys[1] != 0) & ~np.isin(keys[1], told_apart)))
    return *_numbered(ours, theirs), lost


def _bands(ours: NDArray[np.float32], theirs: NDArray[np.float32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Number the quantiles of the compared rows in which numbers lie; missing ones are in the first."""
    known = theirs[~np.isnan(theirs)]
    cuts = np.unique(np.quantile(known, np.arange(1, _BANDS) / _BANDS)) if known.size else np.empty(0)
    both = [np.searchsorted(cuts, np.nan_to_num(own), side="right") for own in (ours, theirs)]
    return both[0], both[1]


def _with_undeclared(
    codes: NDArray[np.int64], keys: NDArray[np.int64], shared: NDArray[np.int64], size: int, alone: int
) -> NDArray[np.int64]:
    place = np.searchsorted(shared, keys) if shared.size <= _SHARED else np.zeros(len(keys), np.int64)
    both = np.isin(keys, shared) & (keys != 0)
    return np.where(keys == 0, codes, np.where(both, size + 2 + place, alone))


def _numbered(ours: NDArray[np.int64], theirs: NDArray[np.int64]) -> tuple[Codes, Codes]:
    """Number the cells that occur, without gaps."""
    cells = np.unique(np.concatenate([ours, theirs]))
    return np.searchsorted(cells, ours).astype(np.int32), np.searchsorted(cells, theirs).astype(np.int32)
