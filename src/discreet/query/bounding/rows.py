"""Rows as they come from a scan, and what is left of them once those that can never count are gone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.query.bounding.identity import Units, read_units
from discreet.query.bounding.limits import Measure

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Clean", "Integers", "Rows", "clean"]

Integers: TypeAlias = NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rows:
    """A chunk of rows.

    `units` is an Arrow array of any scalar type; a row without a unit (NULL, NaN) is dropped. `groups` are codes from
    0 on, None if there is one group; a row whose code is outside of the groups is dropped. `measures` are indices on
    their grids; `valid` says where they are not NULL: an array, or None where none is; empty if no measure has NULLs.
    """

    units: pa.Array | pa.ChunkedArray
    groups: NDArray[np.integer[Any]] | None = None
    measures: tuple[NDArray[np.integer[Any]], ...] = ()
    valid: tuple[NDArray[np.bool_] | None, ...] = ()


@final
@dataclass(frozen=True, slots=True, eq=False)
class Clean:
    """Rows that may count. The first of `columns` are groups, the others the levels of each measure."""

    units: Units
    columns: tuple[Integers, ...]

    @property
    def size(self) -> int:
        return len(self.columns[0])


def clean(rows: Rows, groups: int, measures: Sequence[Measure]) -> Clean:
    """Drop the rows that belong to no unit or to no group, before anything is bounded."""
    size = len(rows.units)
    _check_lengths(rows, size, len(measures))
    units, known = read_units(rows.units)
    codes = np.zeros(size, np.int64) if rows.groups is None else rows.groups.astype(np.int64, copy=False)
    if size and not (codes.min() >= 0 and codes.max() < groups):
        inside = (codes >= 0) & (codes < groups)
        known = inside if known is None else known & inside
    columns = (codes, *_levels(rows, measures))
    if known is None or known.all():
        return Clean(units, columns)
    return Clean(units.where(known), tuple(column[known] for column in columns))


def _levels(rows: Rows, measures: Sequence[Measure]) -> list[Integers]:
    valid = rows.valid or (None,) * len(measures)
    triples = zip(measures, rows.measures, valid, strict=True)
    return [_level(measure, indices, present) for measure, indices, present in triples]


def _level(measure: Measure, indices: NDArray[np.integer[Any]], present: NDArray[np.bool_] | None) -> Integers:
    """Count an index from the low end, from 1 on; 0 is NULL. What lies outside is clamped: a level has its bits."""
    level = indices.astype(np.int64, copy=False)
    if level.size and not (level.min() >= measure.low and level.max() <= measure.high):
        level = np.clip(level, measure.low, measure.high)
    level = level - (measure.low - 1)
    if present is not None:
        level *= present
    return level


def _check_lengths(rows: Rows, size: int, measures: int) -> None:
    if len(rows.measures) != measures or (rows.valid and len(rows.valid) != measures):
        raise InvalidParameter("a chunk needs one array for each measure")
    arrays = [rows.groups, *rows.measures, *rows.valid]
    if any(array is not None and array.shape != (size,) for array in arrays):
        raise InvalidParameter("all arrays of a chunk must be as long as its units")
