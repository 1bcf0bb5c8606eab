"""The question of a table in a period, read from public facts; what is refused names its place in the plan file."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import final

from discreet.errors import InvalidParameter, Refused
from discreet.query.catalogue import Catalogue
from discreet.query.expressions import Field
from discreet.query.facts import Kind
from discreet.query.question import Key, Query
from discreet.query.reading import PrivacyOptions, Reading, read
from discreet.query.sources import column_names
from discreet.release.period import Period
from discreet.release.places import located, place_of
from discreet.release.plan import ReleasePlan, TablePlan
from discreet.release.reading.window import days_of, sql_in

__all__ = ["TableReading", "read_table"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TableReading:
    """What a table asks in one period, and which values of its keys are listed beside those that are declared."""

    sql: str
    question: Query
    options: PrivacyOptions
    keys: Mapping[str, tuple[Hashable, ...]]

    @property
    def hidden(self) -> bool:
        """Whether groups are found in the data."""
        return any(key.domain is None for key in self.question.keys)


def read_table(plan: ReleasePlan, table: TablePlan, catalogue: Catalogue, period: Period) -> TableReading:
    """Read the text as it was written, so that a refusal names its place there, and then that of the period."""
    try:
        _check_clause(_read(table.sql, catalogue, table.keys))
        sql = sql_in(plan, table, period)
        keys = _listed(plan, table, period, _read(sql, catalogue, table.keys).question)
        reading = _read(sql, catalogue, keys)
    except InvalidParameter as error:
        raise located(plan, place_of(plan, table.name, "sql", "keys", "measures"), error) from None
    except Refused as refused:
        raise located(plan, place_of(plan, table.name, "sql", _word(table, refused)), _helpful(refused)) from None
    return TableReading(sql=sql, question=reading.question, options=reading.options, keys=keys)


def _read(sql: str, catalogue: Catalogue, keys: Mapping[str, tuple[Hashable, ...]]) -> Reading:
    return read(sql, catalogue, keys={name: list(values) for name, values in keys.items()})


def _listed(plan: ReleasePlan, table: TablePlan, period: Period, question: Query) -> Mapping[str, tuple[Hashable, ...]]:
    """Where days of the schedule are a key, those of the period are its values: there are no others in the window."""
    column, names = plan.schedule.column, column_names(question.source)
    if column is None or period.first is None:
        return table.keys
    days = {key.name: days_of(period) for key in question.keys if _is_day(key, column, names)}
    return days | dict(table.keys)


def _is_day(key: Key, column: str, names: Mapping[str, str]) -> bool:
    found = names.get(key.expression.name) if isinstance(key.expression, Field) else None
    return found is not None and found.casefold() == column.casefold() and key.expression.facts.kind is Kind.DATE


def _check_clause(reading: Reading) -> None:
    if reading.options.epsilon is not None or reading.options.delta is not None:
        raise InvalidParameter("the price of a table stands in the plan: leave epsilon and delta out of its SQL")


def _word(table: TablePlan, refused: Refused) -> str:
    """Tell what of a family is refused: which rows it counts, or what it measures."""
    before, _, after = table.sql.partition(" WHERE (")
    return "where" if after and (refused.column or 0) > len(before) else "measures"


def _helpful(refused: Refused) -> Refused:
    """Say that a plan names every column, also those of which nothing is known."""
    if "no column of this name" not in refused.problem:
        return refused
    near = f"{refused.way_out} " if refused.way_out.endswith("?") else ""
    return Refused(
        refused.problem,
        reason=refused.reason,
        way_out=f'{near}a plan declares every column that it names, such as note = {{ kind = "text" }}',
        line=refused.line,
        column=refused.column,
        excerpt=refused.excerpt,
        caret=refused.caret,
    )
