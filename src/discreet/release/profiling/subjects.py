"""What is profiled: every column but the unit's, with what is publicly known of it. No row is looked at."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import final

from discreet.errors import InvalidParameter
from discreet.query import CatalogueColumn, CatalogueTable, ExpressionFacts, Kind
from discreet.query.facts import INFERRED
from discreet.query.planning.measurements import plain_value
from discreet.query.session.catalogue_building import nearest
from discreet.query.session.words import name
from discreet.release.profiling.cutting import declared_cells
from discreet.release.profiling.partition import Bound, ListedCells, Partition, Presence

__all__ = ["ColumnSearch", "ProfiledColumn", "subjects_of"]


_OPEN = Presence()


@final
class ColumnSearch(Enum):
    """What has to be found, and paid for, before a column can be counted."""

    NOTHING = "nothing"
    NUMBERS = "bounds of numbers"
    TIMES = "bounds of times"
    VALUES = "values"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ProfiledColumn:
    """A column: as what it is counted, and either its public cells or what to search for."""

    name: str
    kind: Kind
    value: str  # SQL
    search: ColumnSearch
    cells: Partition = _OPEN
    basis: str  # where the cells come from, in words

    @property
    def is_open(self) -> bool:
        """Whether only how much is missing can be counted."""
        return self.search is ColumnSearch.NOTHING and isinstance(self.cells, Presence)


def subjects_of(
    table: CatalogueTable, *, numbers: Iterable[str], dates: Iterable[str], with_delta: bool
) -> tuple[ProfiledColumn, ...]:
    """List the columns of a table. Texts that hold numbers or dates are read so where the custodian says so."""
    read_as = _read_as(table, numbers, dates)
    columns = (column for column in table.columns.values() if column.name != table.unit)
    found = tuple(_subject(column, read_as.get(column.name), with_delta) for column in columns)
    if not found:
        raise InvalidParameter(
            f"table {table.name!r} has no column besides {table.unit!r}: there is nothing to profile"
        )
    return found


def _read_as(table: CatalogueTable, numbers: Iterable[str], dates: Iterable[str]) -> dict[str, Kind]:
    said: dict[str, Kind] = {}
    for kind, names in ((Kind.REAL, numbers), (Kind.DATE, dates)):
        for wanted in names:
            column = _column(table, wanted)
            if column.facts.kind is not Kind.TEXT or column.facts.members is not None:
                raise InvalidParameter(f"column {wanted!r} is no text of which nothing is declared: leave it out here")
            if said.setdefault(column.name, kind) is not kind:
                raise InvalidParameter(f"column {wanted!r} cannot be read as a number and as a date: say one of them")
    return said


def _column(table: CatalogueTable, wanted: str) -> CatalogueColumn:
    for column in table.columns.values():
        if column.name.casefold() == wanted.casefold() and column.name != table.unit:
            return column
    raise InvalidParameter(f"table {table.name!r} has no column {wanted!r}. {nearest(wanted, table.columns)}")


def _subject(column: CatalogueColumn, read_as: Kind | None, with_delta: bool) -> ProfiledColumn:
    facts, value = column.facts, name(column.name)
    if facts.kind is Kind.UNDECLARED:
        raise InvalidParameter(
            f"nothing is declared of column {column.name!r}: {INFERRED}. Declare it in columns=, leave it out of the "
            "frame, or hand the table over as Arrow or polars"
        )
    if read_as is not None:
        written = "DOUBLE" if read_as is Kind.REAL else "DATE"
        return _searched(column.name, read_as, f"CAST({value} AS {written})", with_delta)
    if facts.kind is Kind.BOOLEAN:
        cells: Partition = ListedCells((False, True), rest=False)
        return _known(column.name, facts.kind, value, cells, "true or false, by its type")
    if facts.members is not None:
        return _known(column.name, facts.kind, value, ListedCells(facts.members), "the values that were declared")
    if facts.is_bounded:
        low, high = _bounds(facts)
        cells = declared_cells(low, high, facts.kind)
        return _known(column.name, facts.kind, value, cells, "between the bounds that were declared")
    return _searched(column.name, facts.kind, value, with_delta)


def _known(column: str, kind: Kind, value: str, cells: Partition, basis: str) -> ProfiledColumn:
    return ProfiledColumn(name=column, kind=kind, value=value, search=ColumnSearch.NOTHING, cells=cells, basis=basis)


def _bounds(facts: ExpressionFacts) -> tuple[Bound, Bound]:
    low, high = (_bound(end, facts.kind) for end in (facts.low, facts.high))
    return low, high


def _bound(end: Fraction | None, kind: Kind) -> Bound:
    assert end is not None
    return plain_value(end, kind) if kind.is_time else end  # type: ignore[return-value]


def _searched(column: str, kind: Kind, value: str, with_delta: bool) -> ProfiledColumn:
    if kind.is_number or kind.is_time:
        search = ColumnSearch.NUMBERS if kind.is_number else ColumnSearch.TIMES
        return ProfiledColumn(
            name=column, kind=kind, value=value, search=search, basis="bounds that were found privately"
        )
    if with_delta:
        basis = "values that enough people share, found privately"
        return ProfiledColumn(name=column, kind=kind, value=value, search=ColumnSearch.VALUES, basis=basis)
    basis = "no value is named: declare categories, or spend a delta, with which values that many share are found"
    return _known(column, kind, value, Presence(), basis)
