"""Rows as whole numbers of the declared domain; what lies outside it is told apart, and never shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet import noise
from discreet.errors import InvalidParameter
from discreet.mechanisms.column import Column, is_missing
from discreet.synth.domain import Category, Coder, Domain, Numeric, TableRows
from discreet.synth.domain.category import text_of
from discreet.synth.domain.numeric import STEPS
from discreet.synth.domain.tables import table_of

__all__ = ["ColumnLayout", "EvaluatedRows", "layout_of", "read_rows"]

Codes: TypeAlias = NDArray[np.int32]
Places: TypeAlias = NDArray[np.float32]
Keys: TypeAlias = NDArray[np.int64]
_BINS = 32  # Of a column whose bins nobody has found yet.


@final
@dataclass(frozen=True, slots=True)
class ColumnLayout:
    """What is public about the columns: their names, their cells and which of them are numbers."""

    domain: Domain
    names: tuple[str, ...]
    sizes: tuple[int, ...]
    labels: tuple[tuple[str, ...], ...]  # of the cells of each column
    numbers: tuple[int, ...]  # the places of numeric columns

    def place(self, name: str, *, what: str) -> int:
        """Return where a column stands."""
        if name not in self.names:
            raise InvalidParameter(f"{what} must be one of the declared columns: {', '.join(self.names)}")
        return self.names.index(name)

    @property
    def others(self) -> tuple[int, ...]:
        """The places of columns that are no numbers."""
        return tuple(place for place in range(len(self.names)) if place not in self.numbers)


@final
@dataclass(frozen=True, slots=True, eq=False)
class EvaluatedRows:
    """Rows: the cell of every value, where in its bounds every number lies, and what has no cell of its own."""

    codes: Codes  # rows by columns
    places: Places  # rows by numeric columns, from 0 to 1; NaN if missing
    undeclared: Keys  # rows by the other columns: 0 for a declared value, else a number for each undeclared one

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, chosen: Any) -> EvaluatedRows:
        """Take some rows."""
        return EvaluatedRows(self.codes[chosen], self.places[chosen], self.undeclared[chosen])

    def some(self, most: int) -> EvaluatedRows:
        """Take at most so many rows, drawn at random."""
        return self if len(self) <= most else self.take(noise.permutation(len(self))[:most])

    def split(self, first: int) -> tuple[EvaluatedRows, EvaluatedRows]:
        """Take so many rows at random, and the rest."""
        order = noise.permutation(len(self))
        return self.take(order[:first]), self.take(order[first:])


def layout_of(domain: Domain) -> ColumnLayout:
    """Read the public facts of a domain; bins that are still to be found become equal ones."""
    columns = {name: _settled(column) for name, column in domain.columns.items()}
    return ColumnLayout(
        domain=Domain(columns),
        names=tuple(columns),
        sizes=tuple(column.size for column in columns.values()),
        labels=tuple(_labels(column) for column in columns.values()),
        numbers=tuple(place for place, column in enumerate(columns.values()) if isinstance(column, Numeric)),
    )


def read_rows(layout: ColumnLayout, table: Any) -> EvaluatedRows:
    """Place all rows of a table, a frame or a file in the domain. This is private if they are."""
    found = table_of(table)
    found.check_has(layout.names)
    read = TableRows(Coder(layout.domain), found)
    steps, missing = read.steps()
    places = (steps / STEPS).astype(np.float32)
    places[missing] = np.nan
    rows = EvaluatedRows(read.codes(), places, _undeclared(layout, read.columns()))
    if len(rows) < 2:
        raise InvalidParameter("a table that is compared must have at least two rows")
    return rows


def _undeclared(layout: ColumnLayout, columns: Mapping[str, Column]) -> Keys:
    """Number the values that have no cell of their own."""
    keys = np.zeros((len(next(iter(columns.values()))), len(layout.others)), np.int64)
    for at, place in enumerate(layout.others):
        declared, known = layout.domain.columns[layout.names[place]], dict[object, int]()
        for row, value in enumerate(columns[layout.names[place]].objects()):
            if not isinstance(value, (str, int, float)):
                keys[row, at] = _key(declared, value)
            elif (found := known.get((type(value), value))) is not None:
                keys[row, at] = found
            else:
                keys[row, at] = known[type(value), value] = _key(declared, value)
    return keys


def _key(declared: Category | Numeric, value: object) -> int:
    assert isinstance(declared, Category)
    if is_missing(value):
        return 0 if declared.null else 1
    # With a cell for missing values only, that is where a value goes that nobody declared.
    if declared.values and Category(declared.values, null=True).code(value) < len(declared.values):
        return 0
    text = text_of(value)
    told = b"" if text is None else text.encode("utf-8", "surrogatepass")
    return 2 + int.from_bytes(blake2b(told, digest_size=7).digest(), "big")


def _settled(column: Category | Numeric) -> Category | Numeric:
    if isinstance(column, Category) or column.is_settled:
        return column
    return Numeric(column.low, column.high, whole=column.whole, bins=_BINS, null=column.null)


def _labels(column: Category | Numeric) -> tuple[str, ...]:
    if isinstance(column, Category):
        return tuple("missing" if label is None else str(label) for label in column.labels)
    return (*(column.label(int(start)) for start in column.starts), *(("missing",) if column.null else ()))
