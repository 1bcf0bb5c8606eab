"""PostgreSQL counts what DuckDB counts, to the last bit, under one key (check C43): all questions of all worlds.

A refusal is the same, a price is the same, and what is counted before noise is the same; a mistake that was put into
the way of the rows is found. Spark is asked the same in test_spark_engine.py.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pytest
from agreement_questions import NASTY, distinct, few, nasty_opener, worlds
from engines_agree import HandOver, agree, differing
from postgres_cluster import Cluster
from postgres_tables import load
from system_parts import needs_postgres

import discreet as dp
from discreet.query.policy import PublicTable
from discreet.query.sources import postgres as postgres_source
from discreet.query.sources.postgres import PostgresSnapshot

# How texts are declared there, in turn: in each of these something else is equal, longer or ordered otherwise.
TEXTS = ("text", 'text COLLATE "any_case"', "citext", 'varchar(60) COLLATE "any_case"')
LONG_TEXTS = TEXTS[:3]
ANY_CASE = "CREATE COLLATION any_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false)"


def test_there_are_five_hundred_questions_each_of_its_own() -> None:
    assert len(distinct()) >= 970
    assert sum(len(worlds()[name].asked[::every]) for name, every in few().items()) >= 40


@pytest.mark.slow
def test_five_hundred_of_them_are_answered() -> None:
    answered = set[str]()
    for world in worlds().values():
        with world.open(world.tables) as session:
            for sql, delta in world.asked:
                try:
                    session.sql(sql, epsilon=1, delta=delta)
                except (dp.Refused, dp.InvalidParameter):
                    continue
                answered.add(" ".join(sql.split()))
    assert len(answered) >= 840


@pytest.fixture(scope="module")
def dsn(postgres_cluster: Cluster) -> Iterator[str]:
    with postgres_cluster.database() as made:
        for statement in (ANY_CASE, "CREATE EXTENSION citext"):
            postgres_cluster.execute(statement, made.rpartition("/")[2])
        yield made


@pytest.fixture
def in_postgres(dsn: str) -> HandOver:
    turn = itertools.cycle(LONG_TEXTS)

    def one(table: Any) -> Any:
        if isinstance(table, PublicTable):
            return PublicTable(one(table.table))
        return load(dsn, table, types={c.name: next(turn) for c in table.schema if c.type == "string"})

    def hand_over(tables: Mapping[str, Any]) -> Mapping[str, Any]:
        return {name: one(table) for name, table in tables.items()}

    return hand_over


@needs_postgres
@pytest.mark.long
@pytest.mark.parametrize("name", few())
def test_some_questions_are_counted_alike(in_postgres: HandOver, name: str) -> None:
    assert agree(worlds()[name], in_postgres, every=few()[name])


@needs_postgres
@pytest.mark.slow
@pytest.mark.parametrize("name", worlds())
def test_all_questions_are_counted_alike(in_postgres: HandOver, name: str) -> None:
    assert agree(worlds()[name], in_postgres)


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


@needs_postgres
@pytest.mark.parametrize("mistake", ["a collation decides what is equal", "a batch is lost"])
def test_a_mistake_on_the_way_is_found(dsn: str, mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = NASTY.select(["who", "city", "small"])
    source = load(dsn, rows, types={"who": TEXTS[1], "city": TEXTS[1]})
    asked = [("SELECT COUNT(*) AS n FROM t WHERE who = 'a'", None), ("SELECT SUM(small) AS s FROM t", None)]
    opener = nasty_opener(dp.Unit("who", 2, 3), "city", "small")
    with opener({"t": rows}) as one, opener({"t": source}) as other:
        assert differing(one, other, asked) == []
        if mistake == "a batch is lost":
            monkeypatch.setattr(PostgresSnapshot, "stream", _without_a_batch(PostgresSnapshot.stream))
        else:
            monkeypatch.setattr(postgres_source, "_value", _collated)
        assert differing(one, other, asked) != []
