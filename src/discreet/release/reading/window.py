"""The rows of a period: a question about all rows becomes one about those of its window."""

from __future__ import annotations

from datetime import date, timedelta

from discreet.release.period import Period
from discreet.release.plan import ReleasePlan, TablePlan
from discreet.release.reading.sql_text import constant, identifier

__all__ = ["days_of", "sql_in"]


def sql_in(plan: ReleasePlan, table: TablePlan, period: Period) -> str:
    """Return the question of a table for one period: every private source has only the rows of its window.

    Each source is shadowed by a common table expression of its own name, in front of the text: whatever the question
    says of the source, it says of the rows in the window.
    """
    column = plan.schedule.column
    if column is None or period.first is None or period.end is None:
        return table.sql
    named = identifier(column)
    rows = f"{named} >= {constant(period.first)} AND {named} < {constant(period.end)}"
    private = [identifier(name) for name, source in plan.policy.tables.items() if not source.public]
    return _shadowed(table.sql, {name: f"SELECT * FROM {name} WHERE {rows}" for name in private})


def days_of(period: Period) -> tuple[date, ...]:
    """Return all days of a period."""
    if period.first is None or period.end is None:
        return ()
    return tuple(period.first + timedelta(days=day) for day in range((period.end - period.first).days))


def _shadowed(sql: str, sources: dict[str, str]) -> str:
    from discreet.query.reading.refusals import Script
    from discreet.query.reading.tokens import tokenize

    shadows = ", ".join(f"{name} AS ({rows})" for name, rows in sources.items())
    first = tokenize(Script(sql))[0]
    if first.text.upper() == "WITH":
        return f"WITH {shadows}, {sql[first.end + 1 :].lstrip()}"
    return f"WITH {shadows} {sql[first.start :]}"
