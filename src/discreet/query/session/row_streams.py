"""Rows of a private table for what was paid for as a whole: all as they are stored, or day by day."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import TYPE_CHECKING, final

from discreet.errors import InvalidParameter, Refused
from discreet.query.ast import Filter, Join, Project, Source, Table, is_private, unit_of
from discreet.query.catalogue import Catalogue, CatalogueTable
from discreet.query.engine import Deadline, RowEngine, Stage, StageKey
from discreet.query.parse.select import read
from discreet.query.session.builder import name
from discreet.query.session.catalogue_builder import nearest
from discreet.query.session.private_bounds_and_keys import private_table
from discreet.query.session.session import Session
from discreet.schema.columns import Kind

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["DailyRows", "StoredRows", "check_days_apart"]

# --- stored: The rows of a private table as they are stored, for what is fitted to a whole table and was paid for. ---


@final
@dataclass(frozen=True, slots=True)
class StoredRows:
    """A private table of a session before it is read."""

    engine: RowEngine
    table: str
    names: tuple[str, ...]
    seconds: float

    @classmethod
    def of(cls, session: Session, table: str) -> StoredRows:
        """Name a private table of a session; nothing is read."""
        known = private_table(session.catalogue, table).name
        engine = _of_rows(session)
        return cls(engine, known, tuple(engine.columns(known)), session._desk.seconds)

    def read(self, columns: Sequence[str], numbers: Sequence[str]) -> pa.Table:
        """Return columns of all rows, texts of `numbers` as doubles or NULL. The charge is the caller's."""
        return self.engine.rows(self.table, columns, numbers, deadline=Deadline.after(self.seconds))


def _of_rows(session: Session) -> RowEngine:
    """Return the engine of a session if it hands over rows: whoever finds out later has paid for nothing."""
    engine = session._desk.engine
    if not isinstance(engine, RowEngine):
        raise Refused(
            "the engine of this session counts where the data are, and hands over no rows",
            reason="series over time, synthetic data and models are made from rows, which stay there",
            way_out="open a session on the files themselves, or on an export of them, and ask it",
        )
    return engine


# --- streams ---
# Rows by the day, for totals so far: what a day of the series counts, and which days a unit was there on.
#
# What is returned here is exact and private. It goes nowhere but into the state of a series and into noise.


_TOLD_APART = (Kind.INTEGER, Kind.TEXT)  # Units that are written as text in one way only, today and in a year.


@final
@dataclass(frozen=True, slots=True)
class DailyRows:
    """The rows of a private table by the day they are dated, from the first day of a series on."""

    engine: RowEngine
    stage: Stage
    kind: Kind | None  # of the unit's column; None where rows are units
    seconds: float

    @classmethod
    def of(
        cls, session: Session, table: str, day: str, *, where: str | None, first: date, days: int, apart: bool = False
    ) -> DailyRows:
        """Read which rows are meant: SQL for a condition goes the way of all SQL, of one row where days are `apart`."""
        engine, known = _of_rows(session), private_table(session.catalogue, table)
        question = read(_asked(known, day, where), session.catalogue, keys={"day": _days(first, days)}).question
        if apart:
            _refuse_other_days(question.source)
        (key,) = question.keys
        stage = Stage(
            source=question.source,
            unit=None if session.unit.is_row else unit_of(question.source),
            keys=(StageKey(expression=key.expression, domain=key.domain),),
            columns=(),
            max_groups=days,
            max_rows_per_group=1,
        )
        return cls(engine, stage, _kind(session, known), session._desk.seconds)

    def counts(self, days: int) -> list[int]:
        """Count on each of the first days the units that have a row dated so, or the rows where these are units."""
        tallied = self.engine.run(self._until(days), deadline=Deadline.after(self.seconds))
        return [int(count) for count in tallied.tally.rows]

    def first_days(self, days: int, most: int) -> pa.Table:
        """Return of every unit the first `most` days of these on which it has rows: unit, place from 1, day from 0."""
        return self.engine.first_groups(self._until(days), most, deadline=Deadline.after(self.seconds))

    def _until(self, days: int) -> Stage:
        (key,) = self.stage.keys
        domain = (key.domain or ())[:days]
        return replace(self.stage, keys=(replace(key, domain=domain),), max_groups=days)


def check_days_apart(catalogue: Catalogue, table: str, day: str, where: str | None, first: date) -> None:
    """Refuse a series whose days are not apart: one day of a unit would change what is counted on others."""
    asked = _asked(private_table(catalogue, table), day, where)
    _refuse_other_days(read(asked, catalogue, keys={"day": _days(first, 1)}).question.source)


def _refuse_other_days(source: Source) -> None:
    if not _by_row(source):
        raise Refused(
            "each day of a unit is protected by itself, and this series looks at other days of the unit",
            reason="a sub-query on the unit and columns with of_unit=True follow from all its rows, so that one "
            "day of a unit would change what is counted on others",
            way_out="leave person_day out, or say conditions of single rows, on columns without of_unit",
        )


def _by_row(source: Source) -> bool:
    """Whether every row follows from one row of the private table, and from public tables."""
    match source:
        case Table():
            return not any(column.of_unit for column in source.columns)
        case Filter() | Project():
            return _by_row(source.source)
        case Join():
            return _by_row(source.left) and not is_private(source.right)
        case _:
            return False


def _asked(table: CatalogueTable, day: str, where: str | None) -> str:
    found = next((one for one in table.columns.values() if one.name.casefold() == day.casefold()), None)
    times = [one.name for one in table.columns.values() if one.facts.kind.is_time]
    if found is None or not found.facts.kind.is_time:
        raise InvalidParameter(f"table {table.name!r} has no date or timestamp {day!r}. {nearest(day, times)}")
    date_of = f"CAST({name(found.name)} AS DATE)" if found.facts.kind is Kind.TIMESTAMP else name(found.name)
    condition = "" if where is None else f" WHERE {where}"
    return f"SELECT {date_of} AS day, COUNT(*) AS n FROM {name(table.name)}{condition} GROUP BY {date_of}"


def _days(first: date, days: int) -> list[date]:
    return [first + timedelta(days=number) for number in range(days)]


def _kind(session: Session, table: CatalogueTable) -> Kind | None:
    if table.unit is None:
        return None
    if table.columns[table.unit].unit_key is not None:
        return Kind.TEXT
    kind = session._desk.engine.columns(table.name)[table.unit]
    if kind not in _TOLD_APART:
        raise Refused(
            f"column {table.unit!r} tells units apart by neither whole numbers nor texts",
            reason="a series must know each unit again on every later day, to the letter",
            way_out="number the units, or name them by texts",
        )
    return kind
