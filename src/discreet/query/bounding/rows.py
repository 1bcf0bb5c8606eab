"""Rows as they come from a scan, and what is left of them once those that can never count are gone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.query.bounding.contribution_bounds import BoundedColumn
from discreet.query.bounding.unit_codes import Reader, Unread

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Clean", "Indices", "RowChunk", "check_lengths", "clean", "indices"]

Integers: TypeAlias = NDArray[np.int64]
AnyIntegers: TypeAlias = NDArray[np.integer[Any]]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowChunk:
    """A chunk of rows.

    `units` is an Arrow array of any scalar type; a row without a unit (NULL, NaN) is dropped. `groups` are codes from
    0 on, None if there is one group; a row whose code is outside of the groups is dropped. `measures` are indices on
    their grids; `valid` says where they are not NULL: an array, or None where none is; empty if no measure has NULLs.
    """

    units: pa.Array | pa.ChunkedArray
    groups: AnyIntegers | None = None
    measures: tuple[AnyIntegers, ...] = ()
    valid: tuple[NDArray[np.bool_] | None, ...] = ()


@final
@dataclass(frozen=True, slots=True, eq=False)
class Indices:
    """The indices of one measure, all within its range where they are present.

    The level of an index is its place in the range, from 1 on; that of NULL is 0.
    """

    values: AnyIntegers
    low: int
    present: NDArray[np.bool_] | None

    def levels(self) -> Integers:
        levels = np.subtract(self.values, self.low - 1, dtype=np.int64)
        if self.present is not None:
            levels *= self.present
        return levels

    def add_to(self, keys: Integers) -> None:
        """Add levels to keys whose lowest bits are free, without a copy where that is possible."""
        if self.present is None:
            keys += self.values
            keys -= self.low - 1
        else:
            keys += self.levels()

    def where(self, rows: NDArray[np.bool_]) -> Indices:
        return Indices(self.values[rows], self.low, None if self.present is None else self.present[rows])


@final
@dataclass(frozen=True, slots=True, eq=False)
class Clean:
    """Rows that may count: each has a unit and a group."""

    units: Unread
    groups: AnyIntegers
    measures: tuple[Indices, ...]

    @property
    def size(self) -> int:
        return len(self.groups)


def clean(rows: RowChunk, groups: int, measures: Sequence[BoundedColumn], reader: Reader) -> Clean:
    """Drop the rows that belong to no unit or to no group, before anything is bounded."""
    size = len(rows.units)
    check_lengths(rows, size, len(measures))
    units, known = reader.read(rows.units)
    codes = np.zeros(size, np.int8) if rows.groups is None else rows.groups
    if size and not (codes.min() >= 0 and codes.max() < groups):
        inside = (codes >= 0) & (codes < groups)
        known = inside if known is None else known & inside
    columns = tuple(indices(rows, measure, number) for number, measure in enumerate(measures))
    if known is None or known.all():
        return Clean(units, codes, columns)
    return Clean(units.where(known), codes[known], tuple(column.where(known) for column in columns))


def indices(rows: RowChunk, measure: BoundedColumn, number: int) -> Indices:
    """Clamp what lies outside of the range: a level has its bits and no more."""
    values, present = rows.measures[number], rows.valid[number] if rows.valid else None
    if values.size and not (values.min() >= measure.low and values.max() <= measure.high):
        values = np.clip(values.astype(np.int64), measure.low, measure.high)
    return Indices(values, measure.low, present)


def check_lengths(rows: RowChunk, size: int, measures: int) -> None:
    """Refuse what is no chunk of rows."""
    if len(rows.measures) != measures or (rows.valid and len(rows.valid) != measures):
        raise InvalidParameter("a chunk needs one array for each measure")
    arrays = [array for array in (rows.groups, *rows.measures, *rows.valid) if array is not None]
    if any(array.shape != (size,) for array in arrays):
        raise InvalidParameter("all arrays of a chunk must be as long as its units")
    if not all(np.can_cast(array.dtype, np.int64) for array in arrays):
        raise InvalidParameter("groups and measures must be integers that fit 64 bits with a sign")
