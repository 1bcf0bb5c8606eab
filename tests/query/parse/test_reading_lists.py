"""Clauses and rewrites: each is refused, or answered with the unit it had."""

from __future__ import annotations

from pathlib import Path

import pytest
from reading_worlds import BY_ROW, BY_UNIT

from discreet.errors import Refused
from discreet.query.ast import (
    Expression,
    Field,
    Filter,
    Join,
    JoinKind,
    PerUnit,
    Project,
    Query,
    Source,
    Table,
    UnionAll,
    WithinUnit,
    is_private,
    unit_of,
)
from discreet.query.parse.select import read

HERE = Path(__file__).parent


def listed(name: str, sign: str) -> list[str]:
    lines = (HERE / name).read_text(encoding="utf-8").splitlines()
    return [line[2:] for line in lines if line.startswith(f"{sign} ")]


def origins(source: Source, name: str) -> set[str]:
    """Return the columns of tables that a field comes from unchanged; something else if it was computed."""
    match source:
        case Table():
            return {f"{source.table}.{c.column}" for c in source.columns if c.field.name == name}
        case Filter() | WithinUnit():
            return origins(source.source, name)
        case Project():
            return _plain(source.source, [n.expression for n in source.columns if n.field.name == name])
        case Join():
            return origins(source.left, name) | origins(source.right, name)
        case PerUnit():
            if source.unit.name == name:
                return origins(source.source, unit_of(source.source) or "")
            return _plain(source.source, [n.expression for n in source.keys if n.field.name == name])
        case UnionAll():
            place = [field.name for field in source.columns].index(name)
            sides = [origins(part, part.columns[place].field.name) for part in source.sources]  # type: ignore[union-attr]
            return set().union(*sides)


def _plain(source: Source, expressions: list[Expression]) -> set[str]:
    found: set[str] = set()
    for expression in expressions:
        found |= origins(source, expression.name) if isinstance(expression, Field) else {"computed"}
    return found


def joins_in(source: Source) -> list[Join]:
    match source:
        case Table():
            return []
        case Join():
            return [source, *joins_in(source.left), *joins_in(source.right)]
        case UnionAll():
            return [join for part in source.sources for join in joins_in(part)]
    return joins_in(source.source)


def check_unit(question: Query) -> None:
    """The unit of every private source is a column uid, unchanged; and units meet where private tables are joined."""
    unit = unit_of(question.source)
    assert unit is not None
    assert origins(question.source, unit) <= {"people.uid", "orders.uid"}
    for join in joins_in(question.source):
        assert is_private(join.left)
        if is_private(join.right):
            pairs = [(a, b) for a, b in join.pairs if isinstance(a, Field) and isinstance(b, Field)]
            assert any(_is_unit(join.left, a) and _is_unit(join.right, b) for a, b in pairs)
            assert join.kind in (JoinKind.INNER, JoinKind.LEFT)


def _is_unit(source: Source, field: Field) -> bool:
    found = origins(source, field.name)
    return bool(found) and found <= {"people.uid", "orders.uid"}


def test_the_lists_are_long_enough() -> None:
    assert len(listed("clauses.txt", "+")) + len(listed("clauses.txt", "-")) >= 80
    assert len(listed("lineage.txt", "+")) + len(listed("lineage.txt", "-")) >= 60


@pytest.mark.parametrize("sql", listed("clauses.txt", "-") + listed("lineage.txt", "-"))
def test_what_is_not_private_is_refused(sql: str) -> None:
    with pytest.raises(Refused) as refusal:
        read(sql, BY_UNIT)
    assert refusal.value.line == 1
    assert refusal.value.reason
    assert refusal.value.way_out


@pytest.mark.parametrize("sql", listed("clauses.txt", "+") + listed("lineage.txt", "+"))
def test_what_is_private_keeps_its_unit(sql: str) -> None:
    check_unit(read(sql, BY_UNIT).question)


@pytest.mark.parametrize("sql", listed("clauses.txt", "-") + listed("lineage.txt", "-"))
def test_what_is_refused_for_units_is_refused_for_rows(sql: str) -> None:
    """A unit may be no key of an answer; where rows are protected, uid is a column as any other."""
    if " GROUP BY uid" in sql or ("GROUP BY who" in sql and "(SELECT uid AS who" in sql):
        return
    with pytest.raises(Refused):
        read(sql, BY_ROW)


ONLY_ROWS = [
    "SELECT COUNT(*) FROM people JOIN orders USING (uid)",
    "SELECT COUNT(*) FROM people p JOIN regions r ON p.country = r.code",
    "SELECT COUNT(*) FROM people p JOIN (SELECT code AS k, size + 1 AS s FROM countries) c ON p.country = c.k",
    "SELECT COUNT(*) FROM people p JOIN countries c ON p.age = c.size",
    "SELECT AVG(LEAST(n, 9)) FROM (SELECT uid, COUNT(*) AS n FROM orders GROUP BY uid)",
    "SELECT AVG(a) FROM (SELECT age AS a FROM people UNION ALL SELECT age FROM people)",
    "SELECT COUNT(*) FROM people WHERE uid IN (SELECT uid FROM orders)",
    "SELECT COUNT(*) FROM (SELECT DISTINCT uid FROM orders)",
]


@pytest.mark.parametrize("sql", ONLY_ROWS)
def test_what_duplicates_rows_is_refused_where_rows_are_protected(sql: str) -> None:
    with pytest.raises(Refused):
        read(sql, BY_ROW)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM people p JOIN countries c ON p.country = c.code",
        "SELECT COUNT(*) FROM people p LEFT JOIN countries c ON p.country = c.code AND c.size > 3",
        "SELECT AVG(a) FROM (SELECT age AS a FROM people UNION ALL SELECT amount FROM orders)",
        "SELECT uid, COUNT(*) FROM people GROUP BY uid",
        "SELECT SUM(age, contribution_bounds_per_group => (0, 50)) FROM people",
    ],
)
def test_rows_have_no_unit_column(sql: str) -> None:
    question = read(sql, BY_ROW).question
    assert unit_of(question.source) is None
    assert is_private(question.source)
