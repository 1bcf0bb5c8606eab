"""Where rows are the units a server adds up itself: what is counted, priced and refused is what it is otherwise.

Sums of the server, rows streamed from it and rows of this process are compared to the last bit, before noise; it is
counted how often the server did add up. A mistake that was put into its statement is found.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import date
from fractions import Fraction
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from agreement_questions import NASTY, NASTY_COLUMNS, worlds
from engine_trees import column, field, plain, run, stage, table
from engines_agree import differing
from postgres_cluster import Cluster
from postgres_tables import load
from system_parts import needs_postgres
from test_engines_agree import ANY_CASE, TEXTS

import discreet as dp
from benchmarks.corpus.policies import DATASETS
from benchmarks.corpus.queries import queries
from benchmarks.corpus.worlds import make_world
from benchmarks.peers.discreet_session import opened
from discreet.query.ast import Apply, Field, Filter, Literal, Named, Operator, Project
from discreet.query.engine import Deadline, StageColumn, Wants
from discreet.query.engines.duckdb import DuckDBEngine
from discreet.query.sources import postgres as written
from discreet.query.sources import scan_requests, server_sums
from discreet.query.sources.postgres import PostgresSnapshot, postgres
from discreet.query.workers.worker_engine import WorkerEngine
from discreet.schema.columns import ExpressionFacts, Kind

pytestmark = needs_postgres


@pytest.fixture(scope="module")
def dsn(postgres_cluster: Cluster) -> Iterator[str]:
    with postgres_cluster.database() as made:
        for statement in (ANY_CASE, "CREATE EXTENSION citext"):
            postgres_cluster.execute(statement, made.rpartition("/")[2])
        yield made


@pytest.fixture
def added(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Note every request that a server adds up for."""
    noted: list[Any] = []
    sums = PostgresSnapshot.sums

    def noting(self: PostgresSnapshot, source: Any, request: Any) -> Any:
        noted.append(request)
        return sums(self, source, request)

    monkeypatch.setattr(PostgresSnapshot, "sums", noting)
    return noted


class Streaming:
    """An engine whose servers do not add up."""

    def __enter__(self) -> None:
        self._added, WorkerEngine._added = WorkerEngine._added, lambda *_: None  # type: ignore[method-assign]

    def __exit__(self, *_: object) -> None:
        WorkerEngine._added = self._added  # type: ignore[method-assign]


# --- sessions: The corpus and nasty values, with rows as units. ---

SUMS = (
    "COUNT(*)", "COUNT(city)", "COUNT(small)", "COUNT(day)", "COUNT(open)", "SUM(small)", "AVG(small)",
    "VARIANCE(small)", "SUM(whole)", "AVG(whole)", "VARIANCE(whole)", "COUNT(large)", "SUM(real)", "COUNT(real)",
    "CORR(small, whole)",
)  # fmt: skip
WHERE = (
    "", "city = 'Köln'", "city = 'KÖLN'", "small > 7", "small >= 7", "small = 1000", "small > 1000", "small >= -7",
    "small <= -7", "small < 1000", "small <= 1000", "7 <= small AND day IS NOT NULL", "small IS NOT NULL",
    "day < DATE '1970-01-01'", "day >= DATE '2024-02-29'", "day > DATE '1900-01-01'", "day IS NOT NULL", "open",
    "NOT open AND small > 0", "open IS NULL", "small > 0 OR open", "small > 0 AND city LIKE 'K%'", "real IS NOT NULL",
    "whole > 5", "whole = 5", "large IS NOT NULL", "small > 0 AND real > 0",
)  # fmt: skip
KEYS = ("", "city", "small", "day", "open", "city, open", "EXTRACT(YEAR FROM day)", "UPPER(city)", "who")


def asked_of_rows(every: int) -> list[tuple[str, str | None]]:
    """Combine all sums, conditions and keys, and take one in so many."""
    found: list[tuple[str, str | None]] = []
    for one, condition, key in itertools.product(SUMS, WHERE, KEYS):
        where, grouped = f" WHERE {condition}" if condition else "", f" GROUP BY {key}" if key else ""
        listed = ", ".join([*(f"{part} AS k{place}" for place, part in enumerate(filter(None, key.split(", "))))])
        listed = key if key.startswith(("EXTRACT", "UPPER")) else listed
        named = f"{listed} AS k, " if listed and " AS " not in listed else f"{listed}, " if listed else ""
        found.append((f"SELECT {named}{one} AS m FROM t{where}{grouped}", "1e-6" if key else None))
    return found[::every]


WHOLE = pa.array([(1 << 31) - 1, -(1 << 31), 0, None, 5, -5, 1 << 20, 7] * 12, pa.int32())
ROWS = NASTY.append_column("whole", WHOLE)  # Its sums come in two halves.
COLUMNS = NASTY_COLUMNS | {"whole": dp.between(-1_000_000, 1_000_000, step=1, whole=True), "who": dp.text()}
LIMITS = {"max_groups": 3, "max_rows": 4, "epsilon": 10_000}


def opened_rows(table: Any) -> dp.Session:
    return dp.Session(
        {"t": table},
        unit="row",
        budget=dp.Budget(epsilon=10_000, delta="1e-2"),
        columns=COLUMNS,
        ledger="memory",
        dataset="nasty",
        principal="analyst",
    )


@pytest.mark.long
@pytest.mark.parametrize("every", [89, pytest.param(17, marks=pytest.mark.slow)])
def test_nasty_rows_are_added_up_alike(dsn: str, added: list[Any], every: int) -> None:
    source = load(dsn, ROWS, types={"who": TEXTS[1], "city": TEXTS[1]})
    asked = [*asked_of_rows(every), *worlds()["nasty row"].asked[::4]]
    with opened_rows(ROWS) as one, opened_rows(source) as other:
        assert differing(one, other, asked) == []
        pushed = len(added)
        with Streaming():
            assert differing(one, other, asked[::3]) == []
        assert len(added) == pushed  # what was streamed was not added up there
    assert pushed >= len(asked) // 4


@pytest.mark.some(2)
@pytest.mark.long
@pytest.mark.parametrize("name", DATASETS)
def test_the_corpus_is_added_up_alike(dsn: str, name: str, added: list[Any]) -> None:
    """Whatever its unit is: here every row is one."""
    dataset, tables = replace(DATASETS[name], unit="row"), make_world(DATASETS[name], "whole")
    asked = [(query.sql, "1e-6" if query.unknown_keys else None) for query in queries() if query.dataset == name]
    there = {
        name: load(dsn, rows, types={c.name: TEXTS[1] for c in rows.schema if c.type == "string"})
        for name, rows in tables.items()
    }
    with opened(dataset, tables, **LIMITS) as one, opened(dataset, there, **LIMITS) as other:
        assert differing(one, other, asked, answered=0.2) == []
    assert added  # at least one of them


# --- stages: Sums beyond 64 bits, days that are none, and one state of the data. ---


def compared(operator: Operator, one: Field, value: Any) -> Apply:
    facts = ExpressionFacts(kind=Kind.BOOLEAN)
    return Apply(operator, (one, Literal(value, replace(one.facts, low=None, high=None))), facts)


def present(one: Field) -> Apply:
    facts = ExpressionFacts(kind=Kind.BOOLEAN)
    return Apply(Operator.NOT, (Apply(Operator.IS_NULL, (one,), facts),), facts)


def test_days_that_are_none_pass_no_filter(dsn: str, added: list[Any]) -> None:
    """PostgreSQL has infinite days, and some before the first year: they are NULL to every question."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("CREATE TABLE days (day date)")
        for written_day in ("infinity", "-infinity", "0044-03-15 BC", "10000-01-01", "2024-02-29", "1999-01-01", None):
            connection.execute("INSERT INTO days VALUES (%s)", (written_day,))
    day = field("day", Kind.DATE, *((date(year, 1, 1) - date(1970, 1, 1)).days for year in (2000, 2100)))
    source = table("t", day)
    conditions = [
        present(day),
        compared(Operator.LESS, day, date(2024, 3, 1)),
        compared(Operator.GREATER, day, date(2024, 1, 1)),
    ]
    with closing(WorkerEngine({"t": postgres(dsn, "days")})) as engine:
        found = [run(engine, stage(Filter(source, one))).tally.rows.tolist() for one in conditions]
        by_day = run(engine, stage(source, keys=[(day, None)]))
        there = StageColumn(expression=day, wants=Wants())
        (counted,) = run(engine, stage(source, columns=[there])).tally.measures
    assert found == [[2], [2], [1]]
    assert sorted(by_day.tally.rows.tolist()) == [1, 1, 5]
    assert counted.counts.tolist() == [2]
    assert len(added) == 5


@pytest.mark.parametrize("kind", ["int16", "int32", "int64"])
@pytest.mark.parametrize("ends", [(-7, 5), (0, 1000), (-(1 << 20), 1 << 30), (-(1 << 52), 1 << 52), (7, 8)])
def test_sums_are_exact_whatever_their_size(dsn: str, added: list[Any], kind: str, ends: tuple[int, int]) -> None:
    bits = int(kind[3:]) - 1
    values = [None, 0, 1, -1, 5, 6, 7, 8, 999, 1000, 1001, -(1 << bits), (1 << bits) - 1, -(1 << bits) + 1] * 3
    rows = pa.table({"x": pa.array(values, kind), "k": ["a", "A", None] * 14})
    x, k = field("x", Kind.INTEGER, *ends), field("k", Kind.TEXT)
    wanted = [{"total": True}] if ends[1] - ends[0] >= 1 << 31 else [{"total": True}, {"total": True, "squares": True}]
    with (
        closing(DuckDBEngine({"t": rows})) as here,
        closing(WorkerEngine({"t": load(dsn, rows, types={"k": TEXTS[1]})})) as engine,
    ):
        for wants, keys in itertools.product(wanted, ([], [(k, None)], [(k, ("A", None))])):
            asked = stage(table("t", x, k), keys=keys, columns=[replace(column(x, *ends, **wants), centre=3)])
            assert plain(run(engine, asked)) == plain(run(here, asked))
    assert len(added) == 3 * len(wanted)


def test_stages_of_one_question_see_one_state(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source = load(dsn, pa.table({"x": [1, 2, 3]}), name="growing")
    sums = PostgresSnapshot.sums

    def meanwhile(self: PostgresSnapshot, of: Any, request: Any) -> Any:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("INSERT INTO growing SELECT x FROM growing")
        return sums(self, of, request)

    monkeypatch.setattr(PostgresSnapshot, "sums", meanwhile)
    x = field("x", Kind.INTEGER, 0, 9)
    asked = [stage(table("t", x)), stage(table("t", x), columns=[column(x, 0, 9, total=True)])]
    with closing(WorkerEngine({"t": source})) as engine:
        found = engine.run_all(asked, deadline=Deadline.after(60))
    assert [one.tally.rows.tolist() for one in found] == [[3], [3]]


def test_what_runs_at_the_deadline_is_cancelled_there(dsn: str, added: list[Any]) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("CREATE TABLE slow AS SELECT 1 AS x FROM generate_series(1, 600)")
        connection.execute("CREATE VIEW sleepy AS SELECT x + (pg_sleep(0.1) IS NULL)::int AS x FROM slow")
        x = field("x", Kind.INTEGER, 0, 9)
        asked = stage(table("t", x), columns=[column(x, 0, 9, total=True)])
        with closing(WorkerEngine({"t": postgres(dsn, "sleepy", view=True)})) as engine, pytest.raises(dp.AnswerFailed):
            engine.run(asked, deadline=Deadline.after(1))
        running = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%sleepy%' AND state = 'active'"
        assert connection.execute(f"{running} AND pid <> pg_backend_pid()".encode()).fetchall() == [(0,)]
    assert len(added) == 1


# --- what is streamed ---


def test_what_cannot_be_added_up_exactly_is_streamed(dsn: str, added: list[Any]) -> None:
    source = load(dsn, ROWS)
    small, real = field("small", Kind.INTEGER, -7, 1000), field("real", Kind.REAL, -10, 10)
    city = field("city", Kind.TEXT)
    base = table("t", small, real, city)
    streamed = [
        stage(base, columns=[column(real, -10, 10, total=True)]),
        stage(base, keys=[(real, None)]),
        stage(base, columns=[column(small, -7, 1000, distinct=True)]),
        stage(base, columns=[column(small, -7, 1000, values=True)]),
        stage(base, columns=[column(small, -8, 1000, total=True, step=Fraction(2))]),
        stage(Filter(base, compared(Operator.GREATER, real, Fraction(0)))),
        stage(Filter(base, compared(Operator.GREATER, small, 1000))),  # 32767 is read as 1000
        stage(Filter(base, compared(Operator.NOT_EQUAL, city, "a"))),
        stage(table("t", small, real, city, unit="city"), unit="city", max_rows=3),
        stage(Project(base, (Named(field("y", Kind.INTEGER, -7, 1000), small),))),
    ]
    with closing(DuckDBEngine({"t": ROWS})) as here, closing(WorkerEngine({"t": source})) as engine:
        for asked in streamed[:8]:
            assert plain(run(engine, asked)) == plain(run(here, asked))
        for asked in streamed[8:]:
            run(engine, asked)
        assert added == []
        pushed = stage(base, columns=[column(small, -7, 1000, total=True)])
        assert plain(run(engine, pushed)) == plain(run(here, pushed))
        assert len(added) == 1
        # One of several that is streamed, or too many of them: then all come from one stream.
        for several in ([pushed, streamed[0]], [pushed] * 5):
            found = engine.run_all(several, deadline=Deadline.after(60))
            assert [plain(one) for one in found] == [plain(run(here, one)) for one in several]
    assert len(added) == 1


# --- planted: What would be wrong is found. ---


def _null_is_a_bound(value: str, one: Any, *, narrow: bool) -> str:
    return f"(GREATEST(LEAST({value}, {one.high}), {one.low}) - ({one.low}))"


def _half(condition: Any, of: Any, columns: Any) -> Any:
    """Take what every counted row fulfils for the whole condition."""
    return scan_requests._filter(condition, {one.field.name: one for one in of.columns}, columns)


PLANTED = {
    "NULL is left to LEAST": ((written, "_level", _null_is_a_bound), "SELECT SUM(small) AS s FROM t"),
    "a filter says half of a condition": (
        (server_sums, "whole_filter", _half), "SELECT COUNT(*) AS n FROM t WHERE small > 1000"),
    "days that are none": (
        (written, "_whole_filter", written.written_filter), "SELECT COUNT(*) AS n FROM t WHERE day IS NOT NULL"),
    "a collation decides what is equal": (
        (written, "_key", lambda name, _: written.quoted(name)), "SELECT city, COUNT(*) AS n FROM t GROUP BY city"),
    "half of a sum is lost": (
        (written, "_halves", lambda value, _: (f"CAST({value} % 65536 AS int8)", "CAST(0 AS int8)")),
        "SELECT SUM(whole) AS s FROM t"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", PLANTED)
def test_a_mistake_of_the_statement_is_found(dsn: str, mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source = load(dsn, ROWS, types={"city": TEXTS[1]}, name="planted")
    with (
        psycopg.connect(dsn, autocommit=True) as connection,
        opened_rows(ROWS) as one,
        opened_rows(source) as other,
    ):
        connection.execute("UPDATE planted SET day = 'infinity' WHERE day IS NULL")
        planted, sql = PLANTED[mistake]
        asked = [(sql, "1e-6" if "GROUP BY" in sql else None)]
        assert differing(one, other, asked) == []
        monkeypatch.setattr(*planted)
        assert differing(one, other, asked) == [sql]
        connection.execute("DROP TABLE planted")


def test_floats_that_were_added_up_there_would_be_found(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Grouped by a server -0 and 0 are one value, and which of the two arrives is left to it; sums are rounded."""
    monkeypatch.setitem(scan_requests.READ_AS_STORED, "FLOAT", Kind.REAL)
    rows = pa.table({"single": pa.array([0.1, 0.2, float("nan"), None] * 5, pa.float32())})
    single = field("single", Kind.REAL, 0, 3)
    there_is = stage(table("t", single), columns=[StageColumn(expression=single, wants=Wants())])
    with closing(DuckDBEngine({"t": rows})) as here, closing(WorkerEngine({"t": load(dsn, rows)})) as engine:
        assert plain(run(engine, there_is)) != plain(run(here, there_is))  # NaN is a value there
