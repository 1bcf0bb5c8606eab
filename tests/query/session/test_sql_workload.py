"""Workloads in SQL: the counts of each question, one cell a row whatever it holds, one charge, and what is refused."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import discreet as dp
from discreet.errors import InvalidParameter, Refused
from discreet.mechanisms.workloads.matrix_mechanism import CountedCells, MatrixMechanism
from discreet.query.ast import Field, walk
from discreet.query.functions.expressions import evaluate
from discreet.query.session import sql_workload
from discreet.query.session.session import Session

COLUMNS: dict[str, Any] = {
    "town": dp.categories(["A", "B", "C"]),
    "age": dp.between(0, 120, whole=True),
    "income": dp.between(0, 1000),
    "smokes": dp.boolean(),
}


def rows(number: int = 300, seed: int = 3) -> pa.Table:
    """Rows with NULLs, values beyond all bounds, and texts that nobody declared."""
    chance = np.random.default_rng(seed)
    towns = chance.choice(["A", "B", "C", "elsewhere", "other"], number).tolist()
    ages = [None if value > 140 else int(value) - 5 for value in chance.integers(0, 150, number)]
    incomes = [None if value < -50 else float(value) for value in chance.normal(300, 400, number)]
    smokes = [None if value == 2 else bool(value) for value in chance.integers(0, 3, number)]
    return pa.table(
        {
            "person": [f"p{value}" for value in chance.integers(0, number // 2, number)],
            "town": [None if town == "other" else town for town in towns],
            "age": pa.array(ages, pa.int64()),
            "income": pa.array(incomes, pa.float64()),
            "smokes": pa.array(smokes, pa.bool_()),
            "note": ["x", "y", "z"] * (number // 3),
        }
    )


def opened(table: pa.Table, unit: Any = "row", **more: Any) -> Session:
    return dp.Session(
        table,
        unit=unit,
        budget=dp.Budget(**more or {"rho": 100}),
        columns=COLUMNS,
        ledger="memory",
        dataset="people",
        principal="ana",
    )


CONDITIONS = [
    "age < 30",
    "age BETWEEN 20 AND 64",
    "age >= 65 AND town = 'A'",
    "town IN ('A', 'C')",
    "NOT (town = 'B')",
    "town IS NULL",
    "age IS NOT NULL AND income > 250.5",
    "income <= 0",
    "income < 100 OR income >= 999.5",
    "smokes",
    "NOT smokes AND age > 17.5",
    "age % 10 = 3",
    "CASE WHEN age < 18 THEN smokes ELSE town = 'C' END",
    "note = 'x'",
    "note <> 'x' AND age > 100",
]
QUERIES = ["SELECT COUNT(*) FROM people", *(f"SELECT COUNT(*) AS n FROM people WHERE {one}" for one in CONDITIONS)]


def counts_of(session: Session, queries: list[str], monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    """Ask, and return the matrix of the queries with the exact counts of the cells, which nobody else sees."""
    seen: list[Any] = []
    kept = MatrixMechanism.release

    def looked(self: MatrixMechanism, data: Any) -> Any:
        assert isinstance(data, CountedCells)
        seen.append((self.queries[0].matrix, data.counts))
        return kept(self, data)

    with monkeypatch.context() as patch:
        patch.setattr(MatrixMechanism, "release", looked)
        sql_workload.workload(session, queries, rho=1)
    ((matrix, counts),) = seen
    return matrix, counts


def clamped(table: pa.Table) -> duckdb.DuckDBPyConnection:
    """What is declared, in plain SQL: numbers are moved into their bounds, and other texts stay what they are."""
    found = duckdb.connect()
    found.register("stored", table)
    found.execute(
        "CREATE TABLE people AS SELECT town, "
        "CASE WHEN age IS NULL THEN NULL ELSE LEAST(GREATEST(age, 0), 120) END AS age, "
        "CASE WHEN income IS NULL THEN NULL ELSE LEAST(GREATEST(income, 0), 1000) END AS income, "
        "smokes, note FROM stored"
    )
    return found


@pytest.mark.parametrize("seed", [1, 2])
def test_cells_add_up_to_the_exact_count_of_every_question(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    table = rows(600, seed)
    with opened(table) as session, clamped(table) as plain:
        for queries in (QUERIES[:9], QUERIES[9:], [QUERIES[0], QUERIES[12], QUERIES[5]]):
            matrix, counts = counts_of(session, queries, monkeypatch)
            assert (matrix @ counts).tolist() == [plain.execute(one).fetchone()[0] for one in queries]  # type: ignore[index]


def test_answers_are_near_and_named_and_charged_once() -> None:
    queries = {f"under {age}": f"SELECT COUNT(*) FROM people WHERE age < {age}" for age in range(10, 100, 10)}
    table = rows(600)
    with opened(table) as session, clamped(table) as plain:
        release: Any = dp.query.workload(session, queries, rho=50)
        truth = [plain.execute(one).fetchone()[0] for one in queries.values()]  # type: ignore[index]
        assert np.allclose([float(value) for value in release.value], truth, atol=3)
        assert release.labels == tuple(queries)
        charged = [entry for entry in session.history() if entry.kind == "charge"]
        assert len(charged) == 1
        assert release.accuracy.covariance([0, 1]).shape == (2, 2)
        assert str(session.spent).endswith("(1 charge, ρ = 50)")


@pytest.mark.parametrize("unit", ["row", dp.Unit("person")])
def test_a_unit_moves_one_cell_by_one_at_most(unit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of every unit that is taken out, whatever its rows hold."""
    table = rows(30)
    queries = QUERIES[:6]
    people = list(range(30)) if unit == "row" else sorted(set(table["person"].to_pylist()))

    def counted(chosen: pa.Table) -> Any:
        with opened(chosen, unit) as session:
            return counts_of(session, queries, monkeypatch)[1]

    def total(chosen: pa.Table) -> int:
        return int(counted(chosen).sum())

    everybody = counted(table)
    assert everybody.sum() <= len(people)
    for who in people[:8]:
        others = [
            place for place in range(30) if (place != who if unit == "row" else table["person"][place].as_py() != who)
        ]
        kept = table.take(others)
        if unit == "row":
            moved = everybody - counted(kept)
            assert np.abs(moved).sum() <= 1
        else:  # Which row of somebody is counted is drawn: how many are, is not.
            assert 0 <= everybody.sum() - total(kept) <= 1


def test_the_price_is_that_of_the_strategy_and_a_budget_that_is_too_small_reads_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with opened(rows(), rho="1/2") as session, monkeypatch.context() as patch:
        patch.setattr(type(session._desk.engine), "run", lambda *_, **__: pytest.fail("it was read"))
        with pytest.raises(dp.BudgetExceeded):
            dp.query.workload(session, QUERIES[:3], rho=1)
    with opened(rows(), epsilon=3) as session:
        release = dp.query.workload(session, QUERIES[:3], epsilon=1)
        assert release.cost == "ε = 1"
        assert session.left.epsilon == 2


REFUSED = {
    "groups": ["SELECT town, COUNT(*) FROM people GROUP BY town"],
    "a sum": ["SELECT SUM(age) FROM people"],
    "two": ["SELECT COUNT(*), COUNT(age) FROM people"],
    "a column": ["SELECT COUNT(age) FROM people"],
    "computed": ["SELECT COUNT(*) * 2 FROM people"],
    "nothing": [],
    "never": ["SELECT COUNT(*) FROM people WHERE age > 130"],
    "reals": ["SELECT COUNT(*) FROM people WHERE income * 2 > age"],
    "a pattern": ["SELECT COUNT(*) FROM people WHERE town LIKE 'A%'"],
    "texts in order": ["SELECT COUNT(*) FROM people WHERE note < 'm'"],
    "no table": ["SELECT COUNT(*) FROM nobody"],
    "too many": [
        f"SELECT COUNT(*) FROM people WHERE {column} < {one}" for column in ("income", "age") for one in range(1, 60)
    ],
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_sum_of_few_cells_is_refused_for_free(name: str) -> None:
    with opened(rows()) as session:
        with pytest.raises(Refused):
            dp.query.workload(session, REFUSED[name], rho=1)
        assert [entry for entry in session.history() if entry.kind == "charge"] == []


def test_units_with_several_rows_and_other_mistakes_are_refused() -> None:
    with opened(rows(), dp.Unit("person", max_groups=2)) as session, pytest.raises(Refused, match="one row of each"):
        dp.query.workload(session, QUERIES[:2], rho=1)
    exchanged = dp.Unit("person", relation=dp.Relation.REPLACE_ONE, units=300)
    with opened(rows(), exchanged) as session, pytest.raises(Refused, match="replace-one"):
        dp.query.workload(session, QUERIES[:2], rho=1)
    with opened(rows()) as session:
        mistakes: list[dict[str, Any]] = [{}, {"epsilon": 1, "rho": 1}, {"rho": 1, "aim": "mean"}]
        for wrong in mistakes:
            with pytest.raises(InvalidParameter):
                dp.query.workload(session, QUERIES[:2], **wrong)
        with pytest.raises(Refused, match="costs at least"):
            dp.query.workload(session, QUERIES[:2], epsilon="1e-9")


def test_values_between_constants_stand_for_all_others() -> None:
    """Every value of a whole column, tried one by one, makes the same conditions hold as one that was listed."""
    with opened(rows()) as session:
        queries = [
            f"SELECT COUNT(*) FROM people WHERE age {one}" for one in ("< 3", "<> 7", "IN (7, 9)", "> 119.5", "= 0")
        ]
        asked = sql_workload._asked(session, queries)
        (field,) = {one for condition in asked.conditions for one in walk(condition)
                    if isinstance(one, Field)}  # fmt: skip

        def held(value: Any) -> tuple[bool, ...]:
            return tuple(evaluate(one, {field.name: value}) is True for one in asked.conditions)

        listed = {held(value) for value in sql_workload._values(field, asked.conditions)}
        assert {held(value) for value in [*range(121), None]} <= listed


def test_reals_beyond_all_constants_are_counted_however_large_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Near 1e17 a real less one is the same real: rows below the least constant must have a cell all the same."""
    table = pa.table({"size": [5.0] * 4 + [1e17] * 2 + [2e17]})
    columns: Any = {"size": dp.between(0, 10**18)}
    asked: dict[str, Any] = {"unit": "row", "budget": dp.Budget(rho=10), "ledger": "memory", "principal": "ana"}
    with dp.Session(table, columns=columns, dataset="files", **asked) as session:
        queries = [f"SELECT COUNT(*) FROM files WHERE size {one} 1e17" for one in (">=", "<=", "<>")]
        matrix, counts = counts_of(session, queries, monkeypatch)
        assert (matrix @ counts).tolist() == [3, 6, 5]


def test_work_of_one_row_is_bounded_over_all_questions_together() -> None:
    """One condition is allowed; two hundred would take long only if somebody smokes, which a failure would tell."""
    text = "CASE WHEN smokes THEN 'ab' ELSE '' END"
    for place in range(20):
        text = f"REPLACE({text}, '{'ab'[place % 2]}', '{'ba'[place % 2] * 100}')"
    question = f"SELECT COUNT(*) FROM people WHERE LENGTH({text}) > 5"
    with opened(rows()) as session:
        assert len(sql_workload._asked(session, [question]).conditions) == 1
        with pytest.raises(Refused, match="one row could make"):
            dp.query.workload(session, [question] * 200, rho=1)
        assert [entry for entry in session.history() if entry.kind == "charge"] == []
        compared = [f"SELECT COUNT(*) FROM people WHERE note = '{name}'" for name in range(1000)]
        assert len(sql_workload._asked(session, compared).conditions) == 1000
