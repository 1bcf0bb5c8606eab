"""Rows as whole numbers of a public shape, by a rule for each row alone; and back to declared values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from discreet import noise
from discreet.adaptive.bounded_memberships import Identity, identity
from discreet.errors import InvalidParameter
from discreet.mechanisms.column import Column
from discreet.synth.domain.domain import Domain
from discreet.synth.domain.numeric import Numeric
from discreet.synth.domain.source_tables import UnreadTable, table_of

__all__ = ["Coder", "TableRows", "kept_rows"]


@final
@dataclass(frozen=True, slots=True)
class Coder:
    """The rule by which values become cells and steps, and the way back. It is public."""

    domain: Domain

    def codes(self, table: Any) -> NDArray[np.int32]:
        """Return the cell of every value, a row for each row. This is private."""
        return self._codes(self._read(table))

    def steps(self, table: Any) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return the numbers in steps from 0 to 65535, and where they are missing and may be. This is private."""
        return self._steps(self._read(table))

    def decode(self, codes: NDArray[Any]) -> dict[str, Column]:
        """Return columns of declared values for cells; within a bin every number is as likely as any other."""
        inside = self._clipped(codes)
        return {name: column.decode(inside[:, place]) for place, (name, column) in enumerate(self._columns)}

    def decode_steps(
        self, codes: NDArray[Any], steps: NDArray[Any], missing: NDArray[np.bool_] | None = None
    ) -> dict[str, Column]:
        """Return columns for cells of the categories and steps of the numbers, each in the order of the domain.

        `codes` has a column for each category, `steps` and `missing` one for each numeric column.
        """
        found: dict[str, Column] = {}
        for name, column in self._columns:
            if isinstance(column, Numeric):
                place = self.domain.numeric.index(name)
                found[name] = column.from_steps(steps[:, place], None if missing is None else missing[:, place])
            else:
                place = self.domain.categorical.index(name)
                found[name] = column.decode(np.clip(codes[:, place], 0, column.size - 1).astype(np.int32))
        return found

    @property
    def _columns(self) -> list[tuple[str, Any]]:
        return list(self.domain.columns.items())

    def _read(self, table: Any) -> dict[str, Column]:
        return table_of(table).columns(self.domain.names, numbers=self.domain.numbers)

    def _clipped(self, codes: NDArray[Any]) -> NDArray[np.int32]:
        if codes.ndim != 2 or codes.shape[1] != len(self.domain.names):
            raise InvalidParameter("codes must have one column for each column of the domain")
        return np.asarray(np.clip(codes, 0, np.array(self.domain.sizes) - 1), dtype=np.int32)

    def _codes(self, columns: Mapping[str, Column]) -> NDArray[np.int32]:
        return np.column_stack([column.codes(columns[name]) for name, column in self._columns])

    def _steps(self, columns: Mapping[str, Column]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        rows = len(columns[self.domain.names[0]])
        numbers = [(column, columns[name]) for name, column in self._columns if isinstance(column, Numeric)]
        if not numbers:
            return np.empty((rows, 0), dtype=np.int64), np.empty((rows, 0), dtype=np.bool_)
        missing = [column.absent(own) if column.null else np.zeros(rows, dtype=bool) for column, own in numbers]
        return np.column_stack([column.steps(own) for column, own in numbers]), np.column_stack(missing)


@final
@dataclass(frozen=True, eq=False)
class TableRows:
    """The rows of a table that count, once they are paid for: what a method reads. It never prints what it holds.

    With a `unit` column, at most `rows_per_unit` rows of each unit are there, chosen by one secret draw that all
    readings share.
    """

    coder: Coder
    _table: UnreadTable = field(repr=False)
    unit: str | None = None
    rows_per_unit: int = 1

    def codes(self) -> NDArray[np.int32]:
        """Return the cell of every value, (rows, columns). This is private."""
        kept: NDArray[np.int32] = self.coder._codes(self._columns)[self._kept]
        return kept

    def steps(self) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return the numeric columns in steps from 0 to 65535, and where they are missing. This is private."""
        steps, missing = self.coder._steps(self._columns)
        return steps[self._kept], missing[self._kept]

    def columns(self) -> dict[str, Column]:
        """Return the values as they are, column by column: only for finding cells that nobody declared. Private."""
        return {name: _taken(self._columns[name], self._kept) for name in self.coder.domain.names}

    def categories(self) -> NDArray[np.int32]:
        """Return the cells of the categorical columns alone. This is private."""
        domain = self.coder.domain
        return self.codes()[:, [domain.place(name) for name in domain.categorical]]

    @cached_property
    def _columns(self) -> dict[str, Column]:
        domain = self.coder.domain
        names = domain.names if self.unit is None else (*domain.names, self.unit)
        return self._table.columns(names, numbers=domain.numbers)

    @cached_property
    def _kept(self) -> Any:
        return slice(None) if self.unit is None else kept_rows(self._columns[self.unit], self.rows_per_unit)


def _taken(column: Column, rows: Any) -> Column:
    """Return some rows of a column: all of them, or those at some places."""
    if isinstance(rows, slice):
        return column
    values = column.values[rows] if isinstance(column.values, np.ndarray) else [column.values[row] for row in rows]
    return Column(values, None if column.missing is None else column.missing[rows])


# --- units: Which rows of a unit count: a limited number of each, chosen by a secret draw. ---


def kept_rows(units: Column, rows_per_unit: int) -> NDArray[np.int64]:
    """Return the places of the rows that count, in their order: at most so many of each unit. This is private.

    Which rows of a unit are kept depends on its own rows and a fresh draw alone, so another unit more or less changes
    nothing for it. A row without a unit belongs to nobody who could be protected, and is left out.
    """
    codes = _codes(units)
    order = noise.permutation(len(codes)) if len(codes) else np.empty(0, dtype=np.int64)
    order = order[codes[order] >= 0]
    order = order[np.argsort(codes[order], kind="stable")]
    ordered = codes[order]
    first = np.searchsorted(ordered, ordered, side="left")
    kept = order[np.arange(len(order)) - first < rows_per_unit]
    return np.sort(kept)


def _codes(units: Column) -> NDArray[np.int64]:
    """Number the units, exactly: equal numbers are one unit whatever their type. -1 where there is none."""
    values = units.values
    if isinstance(values, np.ndarray) and values.dtype.kind in "iu":
        codes = np.unique(values, return_inverse=True)[1].astype(np.int64).reshape(-1)
    else:
        codes = _object_codes(units.objects())
    if units.missing is not None:
        codes[units.missing] = -1
    return codes


def _object_codes(values: list[object]) -> NDArray[np.int64]:
    numbers: dict[Identity, int] = {}
    found = (identity(_plain(value), spelled=True) for value in values)
    return np.array([-1 if key is None else numbers.setdefault(key, len(numbers)) for key in found], dtype=np.int64)


def _plain(value: object) -> object:
    """Return an id of a type of its own as its text: left out like what is no id, nobody would be in the data."""
    # Told by its name: the module that makes such ids also draws them, and all chance here comes from one source.
    return str(value) if type(value).__name__ == "UUID" else value
