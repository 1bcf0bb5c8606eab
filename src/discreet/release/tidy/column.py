"""One additive column of a family, from raw values to tidy ones: consistent, then not negative, then whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.release.tidy.adding import adding
from discreet.release.tidy.known import known_cells, whole_totals
from discreet.release.tidy.layout import CellLayout
from discreet.release.tidy.least_squares import FamilyColumn, least_squares
from discreet.release.tidy.nonnegative import nonnegative
from discreet.release.tidy.whole import whole

__all__ = ["RawColumn", "estimate", "family_of", "tidy_column"]

Floats: TypeAlias = NDArray[np.float64]
Places: TypeAlias = NDArray[np.int64]

LARGEST = float(1 << 50)  # Beyond, floats would not tell whole numbers apart.


@final
@dataclass(frozen=True, slots=True, eq=False)
class RawColumn:
    """A column of every table of a family, in grains: raw values by cell, their noise, and what is known."""

    values: Mapping[str, Floats]  # by table
    deviations: Mapping[str, Fraction]  # by table, in grains
    known: Mapping[tuple[str, int], int]  # by table and cell
    not_negative: bool


def estimate(layout: CellLayout, column: RawColumn) -> dict[str, Floats]:
    """Return the weighted least squares estimate of every cell: consistent and unbiased, neither whole nor positive."""
    family = family_of(layout, column)
    return dict(zip(column.values, family.adding.up(least_squares(family)), strict=True))


def tidy_column(layout: CellLayout, column: RawColumn) -> dict[str, Places]:
    """Return whole numbers of grains that add up in all tables."""
    family = family_of(layout, column)
    atoms = least_squares(family)
    known = family.known
    settled = known.each_class(whole_totals(known, known.sums(atoms), not_negative=column.not_negative))
    family = replace(family, known=settled)
    atoms = nonnegative(family, atoms) if column.not_negative else least_squares(family, start=atoms)
    spots = [layout.spots[table] for table in column.values]
    rounded = whole(family, spots, atoms, not_negative=column.not_negative)
    return {table: _added(layout, table, rounded) for table in column.values}


def _added(layout: CellLayout, table: str, atoms: Places) -> Places:
    spot = layout.spots[table]
    cells = np.zeros(spot.cells, np.int64)
    np.add.at(cells, spot.of_atom, atoms)
    return cells


def family_of(layout: CellLayout, column: RawColumn) -> FamilyColumn:
    """Return the least squares problem of a column."""
    if sum(float(np.abs(values).sum()) for values in column.values.values()) > LARGEST:
        raise InvalidParameter("its values are too many grains to be added up in floats: declare a coarser step")
    spots = [layout.spots[table] for table in column.values]
    numbers = {table: number for number, table in enumerate(column.values)}
    known = {(numbers[table], cell): value for (table, cell), value in column.known.items()}
    return FamilyColumn(
        adding(spots, layout.shape),
        tuple(_there(layout, table, values) for table, values in column.values.items()),
        tuple(float(column.deviations[table]) for table in column.values),
        known_cells(known, spots, layout.atoms),
    )


def _there(layout: CellLayout, table: str, values: Floats) -> Floats:
    """Leave out what is in cells that no atom is in, such as a district of another region: those are zero."""
    spot = layout.spots[table]
    there = np.zeros(spot.cells, np.bool_)
    there[spot.of_atom] = True
    return np.where(there, values, 0.0)
