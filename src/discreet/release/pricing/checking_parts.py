"""What can be found wrong in each part of a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from discreet.errors import InvalidParameter
from discreet.query.catalogue import Catalogue, CatalogueTable
from discreet.query.question import Key, Query, ReleasedMeasure, Statistic
from discreet.query.reading import read
from discreet.query.session.catalogue_building import nearest
from discreet.release.plan import Invariant, Level, ReleasePlan, RunningPlan, TablePlan
from discreet.release.reading.levels import GroupingColumns
from discreet.release.reading.sql_text import identifier

__all__ = ["check_invariant", "check_level", "check_rows", "check_table", "check_time", "check_window"]

_ROWS = "*"
_COUNTS = frozenset({Statistic.ROWS, Statistic.UNITS, Statistic.COUNT, Statistic.DISTINCT})
_LARGEST = 10**15  # Of an invariant: numbers that tidy tables still hold exactly.
_BESIDE = ("_low", "_high", "_noise_sd")  # What is written beside a measured column.


def check_window(plan: ReleasePlan, catalogue: Catalogue) -> None:
    """The column of the schedule is a date or timestamp of every private table."""
    if plan.schedule.column is not None:
        for table in catalogue.tables.values():
            if table.private:
                check_time(table, plan.schedule.column)


def check_time(table: CatalogueTable, column: str) -> None:
    """A column is declared as a date or timestamp."""
    found = next((one for name, one in table.columns.items() if name.casefold() == column.casefold()), None)
    if found is None or not found.facts.kind.is_time:
        times = [name for name, one in table.columns.items() if one.facts.kind.is_time]
        said = f"table {table.name!r} declares no date or timestamp {column!r}"
        declare = f"declare {column} = {{ low = …, high = … }} with its first and last day"
        raise InvalidParameter(f"{said}. {nearest(column, times)}" if times else f"{said}: {declare}")


def check_rows(series: RunningPlan, catalogue: Catalogue) -> None:
    """The condition on the rows of a series can be read."""
    where = "" if series.where is None else f" WHERE ({series.where})"
    read(f"SELECT COUNT(*) AS total FROM {identifier(series.source)}{where}", catalogue)


def check_level(plan: ReleasePlan, level: Level) -> None:
    """A level groups every value of a column that some private table declares, each once."""
    levels = {one.name: one for one in plan.levels}
    lowest = level
    while lowest.of in levels:
        lowest = levels[lowest.of]
    keys = {name: values for table in plan.tables for name, values in table.keys.items()}
    for name, table in plan.policy.tables.items():
        has = any(column.casefold() == lowest.of.casefold() for column in table.columns)
        if not table.public and (has or lowest.of in keys):
            GroupingColumns(table=name, columns=table.columns, levels=levels, keys=keys).axis(level.name)
            return
    known = {column for table in plan.policy.tables.values() for column in table.columns}
    raise InvalidParameter(f"no private table declares a column {lowest.of!r}. {nearest(lowest.of, sorted(known))}")


def check_table(table: TablePlan, question: Query) -> None:
    """What is said of a table beside its question is about that question."""
    names = [output.name for output in question.outputs]
    measured = [output.name for output in question.outputs if isinstance(output.value, ReleasedMeasure)]
    for name in table.expected:
        if name != _ROWS and name not in measured:
            raise InvalidParameter(
                f"something is expected of {name!r}, which is no measured column of {table.name!r}. "
                f"{nearest(name, [*measured, _ROWS])}"
            )
    if table.delta is not None and all(key.domain is not None for key in question.keys):
        raise InvalidParameter(f"all groups of {table.name!r} are listed, so no delta is needed: leave it out")
    taken = {f"{name}{ending}".casefold(): name for name in measured for ending in _BESIDE}
    for name in names:
        if name.casefold() in taken:
            raise InvalidParameter(
                f"a column is called {name!r}, and that is what is written beside {taken[name.casefold()]!r}: rename it"
            )


def check_invariant(plan: ReleasePlan, index: int, questions: Mapping[str, Query | None]) -> None:
    """An invariant names a count or a sum in a row that is surely there; a question that is wrong is told elsewhere."""
    said = plan.invariants[index]
    if said.table not in questions:
        raise InvalidParameter(f"no published table is called {said.table!r}. {nearest(said.table, questions)}")
    if any(_same_cell(said, other) for other in plan.invariants[:index]):
        raise InvalidParameter("this number is said twice: leave one out")
    question = questions[said.table]
    if question is not None:
        _check_row(said, question.keys)
        _check_value(said, question)


def _same_cell(one: Invariant, other: Invariant) -> bool:
    return (one.table, one.column, dict(one.where)) == (other.table, other.column, dict(other.where))


def _check_row(said: Invariant, keys: Sequence[Key]) -> None:
    names = [key.name for key in keys]
    for name in said.where:
        if name not in names:
            known = f"{nearest(name, names)}" if names else "It has one row: write where = {}"
            raise InvalidParameter(f"{said.table!r} has no key {name!r}. {known}")
    for key in keys:
        if key.domain is None:
            raise InvalidParameter(f"the rows of {said.table!r} are found in the data: an invariant needs listed ones")
        if key.name not in said.where:
            raise InvalidParameter(f"say which row is meant: where = {{ {key.name} = … }} too")
        if said.where[key.name] not in key.domain:
            raise InvalidParameter(f"{key.name} is never {said.where[key.name]!r}: write one of its listed values")


def _check_value(said: Invariant, question: Query) -> None:
    measures = {
        output.name: question.measures[output.value.measure]
        for output in question.outputs
        if isinstance(output.value, ReleasedMeasure)
    }
    if said.column not in measures:
        raise InvalidParameter(f"{said.table!r} measures no {said.column!r}. {nearest(said.column, measures)}")
    if abs(said.value) > _LARGEST:
        raise InvalidParameter(f"{said.column!r} is never so large: write the number that everybody knows")
    statistic = measures[said.column].statistic
    if statistic not in _COUNTS and statistic is not Statistic.SUM:
        raise InvalidParameter(f"{said.column!r} is no count and no sum: only these can be held to a number")
    if statistic in _COUNTS and (said.value < 0 or said.value.denominator != 1):
        raise InvalidParameter(f"{said.column!r} counts, so its value is a whole number that is not negative")
