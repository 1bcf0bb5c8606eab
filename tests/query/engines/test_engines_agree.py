"""PostgreSQL counts what DuckDB counts, to the last bit, under one key (check C43): the corpus, and nasty values.

A refusal is the same, a price is the same, and what is counted before noise is the same; a mistake that was put into
the way of the rows is found.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from datetime import date, datetime
from typing import Any

import pyarrow as pa
import pytest
from engines_agree import differing
from postgres_cluster import Cluster
from postgres_tables import load
from system_parts import needs_postgres

import discreet as dp
from benchmarks.corpus.policies import DATASETS
from benchmarks.corpus.queries import queries
from benchmarks.corpus.worlds import make_world
from benchmarks.peers.discreet_session import opened
from discreet.query.sources import postgres as postgres_source
from discreet.query.sources.postgres import PostgresSnapshot, PostgresSource

pytestmark = needs_postgres

# How texts are declared there, in turn: in each of these something else is equal, longer or ordered otherwise.
TEXTS = ("text", 'text COLLATE "any_case"', "citext", 'varchar(60) COLLATE "any_case"')
ANY_CASE = "CREATE COLLATION any_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false)"
LIMITS = {"max_groups": 3, "max_rows": 4, "epsilon": 10_000}


@pytest.fixture(scope="module")
def dsn(postgres_cluster: Cluster) -> Iterator[str]:
    with postgres_cluster.database() as made:
        for statement in (ANY_CASE, "CREATE EXTENSION citext"):
            postgres_cluster.execute(statement, made.rpartition("/")[2])
        yield made


def there(dsn: str, tables: dict[str, pa.Table]) -> dict[str, PostgresSource]:
    turn = itertools.cycle(TEXTS)
    texts = {name: {c.name: next(turn) for c in table.schema if c.type == "string"} for name, table in tables.items()}
    return {name: load(dsn, table, types=texts[name]) for name, table in tables.items()}


@pytest.mark.long
@pytest.mark.parametrize("world", ["whole", pytest.param("whale", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", DATASETS)
def test_the_corpus_is_counted_alike(dsn: str, name: str, world: str) -> None:
    tables = make_world(DATASETS[name], world)
    asked = [(query.sql, "1e-6" if query.unknown_keys else None) for query in queries() if query.dataset == name]
    assert len(asked) >= 12
    with opened(DATASETS[name], tables, **LIMITS) as one, opened(DATASETS[name], there(dsn, tables), **LIMITS) as other:
        assert differing(one, other, asked) == []


# --- nasty: Values that engines read in many ways, and questions that tell these ways apart. ---

NASTY = pa.table(
    {
        "who": ["a", "A", "á", "a\u0301", "a ", " a", "", None, "ß", "SS", "İ", "i", "K", "\u212a", "日本", "a\tb"] * 6,
        "city": (["Köln", "KÖLN", "Ko\u0308ln", "Köln ", "", None, "x" * 12_000, "😀"] * 12),
        "small": pa.array(([-32768, 32767, 0, None, 7, -7] * 16), pa.int16()),
        "large": [(1 << 63) - 1, -(1 << 63) + 1, 0, None, (1 << 53) + 1, -(1 << 53) - 1, 5, -5] * 12,
        "real": [0.1, -0.0, 0.0, float("nan"), float("inf"), -float("inf"), 5e-324, 1.7976931348623157e308] * 12,
        "single": pa.array([0.1, 2.5, -0.5, None, 16777217.0, 1e-45, 3.4e38, 7.0] * 12, pa.float32()),
        "exact": pa.nulls(96, pa.decimal128(12, 2)),
        "day": [date(1, 1, 1), date(9999, 12, 31), date(1970, 1, 1), date(1969, 12, 31), None, date(2024, 2, 29)] * 16,
        "at": [datetime(1969, 12, 31, 23, 59, 59, 999999), datetime(2000, 1, 1), None, datetime(9999, 12, 31)] * 24,
        "open": [True, False, None] * 32,
    }
)
CONDITIONS = (
    "who = 'a'", "who = 'A'", "who = 'á'", "who <> 'a'", "who = ''", "who IS NOT NULL", "who IN ('a', 'SS', 'K')",
    "city = 'Köln'", "city = 'KÖLN'", "city = 'Köln '", "city LIKE 'K%'", "city IS NULL", "LOWER(city) = 'köln'",
    "LENGTH(city) > 100", "small > 7", "small >= 7", "small = 32767", "small < -7", "small <= -32768", "7 <= small",
    "small <> 0", "small IS NOT NULL", "small BETWEEN -7 AND 7", "large > 5", "large >= 9007199254740993",
    "large = 0", "large < -5", "real > 0", "real = 0", "real < 1e300", "real IS NULL", "single = 0.1", "single > 2.4",
    "exact >= 1", "exact = 0.01", "day = DATE '1970-01-01'", "day < DATE '1970-01-01'", "day >= DATE '2024-02-29'",
    "day IS NOT NULL", "EXTRACT(YEAR FROM day) = 9999", "at < TIMESTAMP '1970-01-01 00:00:00'", "at IS NOT NULL",
    "open", "NOT open", "open IS NULL", "small > 0 AND day IS NOT NULL AND who = 'a'", "small > 0 OR who = 'a'",
)  # fmt: skip
MEASURES = ("COUNT(*)", "SUM(small)", "AVG(real)", "SUM(exact)", "COUNT(DISTINCT city)", "MEDIAN(small)", "SUM(large)")
COLUMNS = {
    "small": dp.between(-7, 1000, whole=True),
    "large": dp.between(-(1 << 53), 1 << 53, whole=True),
    "real": dp.between(-10, 10),
    "single": dp.between(0, 3, step="0.1"),
    "exact": dp.between(-5, 5, step="0.01"),
    "day": dp.between(date(1900, 1, 1), date(2024, 2, 29)),
    "at": dp.between(datetime(1900, 1, 1), datetime(2100, 1, 1)),
    "city": dp.text(),
    "open": dp.boolean(),
}


def nasty() -> pa.Table:
    from decimal import Decimal

    cents = [None, Decimal("0.01"), Decimal("-99999999.99"), Decimal("1.00"), Decimal("1.05"), Decimal("0.00")] * 16
    place = NASTY.schema.get_field_index("exact")
    return NASTY.set_column(place, "exact", pa.array(cents, pa.decimal128(12, 2)))


def asked_of_nasty(times: int) -> list[tuple[str, str | None]]:
    plain = [
        (f"SELECT {measure} AS m FROM t WHERE {condition}", None)
        for condition, measure in zip(CONDITIONS * times, itertools.cycle(MEASURES), strict=False)
    ]
    grouped = [
        (f"SELECT {key} AS k, COUNT(*) AS n FROM t WHERE {condition} GROUP BY {key}", "1e-6")
        for key, condition in itertools.product(("city", "small", "day", "who"), CONDITIONS[::5])
    ]
    joined = [
        (f"SELECT COUNT(*) AS n FROM t JOIN t AS u ON t.who = u.who WHERE t.{c}", None) for c in CONDITIONS[13:20]
    ]
    return [*plain, *grouped, *joined] if times > 1 else [*plain[::2], *grouped[::4], *joined[:2]]


def session(table: Any, unit: Any) -> dp.Session:
    return dp.Session(
        {"t": table},
        unit=unit,
        budget=dp.Budget(epsilon=10_000, delta="1e-2"),
        columns={name: column for name, column in COLUMNS.items() if unit == "row" or name != unit.column},
        ledger="memory",
        dataset="nasty",
        principal="analyst",
    )


UNITS = {"row": "row", "text": dp.Unit("who", 2, 3), "number": dp.Unit("large", 2, 3)}


@pytest.mark.long
@pytest.mark.parametrize("times", [1, pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.parametrize("unit", UNITS)
def test_nasty_values_are_counted_alike(dsn: str, unit: str, times: int) -> None:
    rows = nasty()
    source = load(dsn, rows, types={"who": TEXTS[1], "city": TEXTS[2]})
    with session(rows, UNITS[unit]) as one, session(source, UNITS[unit]) as other:
        assert differing(one, other, asked_of_nasty(times)) == []


# --- planted: What would be wrong is found. ---


def _collated(name: str, column: Any) -> str:
    value = postgres_source.quoted(name)
    least = f"(pg_catalog.min({value}) OVER (PARTITION BY {value}))"
    return f"CAST({least} AS pg_catalog.text)" if column.arrives == "VARCHAR" else value


def _without_a_batch(stream: Any) -> Any:
    def mistaken(self: PostgresSnapshot, source: Any, request: Any) -> Any:
        batches = stream(self, source, request).read_all().to_batches(max_chunksize=10)
        return pa.RecordBatchReader.from_batches(batches[0].schema, batches[1:])

    return mistaken


@pytest.mark.parametrize("mistake", ["a collation decides what is equal", "a batch is lost"])
def test_a_mistake_on_the_way_is_found(dsn: str, mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = nasty().select(["who", "city", "small"])
    source = load(dsn, rows, types={"who": TEXTS[1], "city": TEXTS[1]})
    asked = [("SELECT COUNT(*) AS n FROM t WHERE who = 'a'", None), ("SELECT SUM(small) AS s FROM t", None)]
    declared = {"city": dp.text(), "small": COLUMNS["small"]}
    monkeypatch.setitem(globals(), "COLUMNS", declared)
    with session(rows, UNITS["text"]) as one, session(source, UNITS["text"]) as other:
        assert differing(one, other, asked) == []
        if mistake == "a batch is lost":
            monkeypatch.setattr(PostgresSnapshot, "stream", _without_a_batch(PostgresSnapshot.stream))
        else:
            monkeypatch.setattr(postgres_source, "_value", _collated)
        assert differing(one, other, asked) != []
