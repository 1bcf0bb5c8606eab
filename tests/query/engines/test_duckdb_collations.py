"""Every text is compared by its bytes, whatever collation a database declares for its column."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from engine_trees import plain
from review_sql import counted

import discreet as dp
from discreet.query.engine import Deadline
from discreet.query.engines.duckdb import DuckDBEngine, is_unique
from discreet.query.engines.duckdb_sandbox import Sandbox
from discreet.query.parse.select import read
from discreet.query.plan.draft import Spend
from discreet.query.plan.planner import plan
from discreet.query.session.catalogue_builder import build_catalogue
from discreet.release.draft.custodian_look import looking

ALIKE = {  # texts that are one under a collation, and several to everybody else
    "NOCASE": ("ann", "Ann", "aNN", "ANN"),
    "NOACCENT": ("ann", "ânn", "änn", "ånn"),
    "NOCASE.NOACCENT": ("ann", "ÄNN", "Ånn", "ânn"),
    "de": ("ann", "Ann", "änn", "ann\x01"),  # of ICU; it takes control characters for nothing
    "icu_noaccent": ("ann", "ânn", "änn", "ånn"),
}
TEXTS = tuple(text for alike in list(ALIKE.values())[:4] for text in alike)
UNIT = dp.Unit("who", 100, 1000)  # nothing is left out by chance
LISTED = {"name": dp.categories(["ann", "Ann", "ânn", "ÄNN", "änn"])}
QUERIES = (
    "SELECT COUNT(*) AS n FROM t WHERE name = 'ann'",
    "SELECT COUNT(*) AS n FROM t WHERE name <> 'ann'",
    "SELECT COUNT(*) AS n FROM t WHERE name IN ('ann', 'ânn', 'x')",
    "SELECT COUNT(*) AS n FROM t WHERE name < 'ann'",
    "SELECT COUNT(*) AS n FROM t WHERE name BETWEEN 'A' AND 'z'",
    "SELECT COUNT(*) AS n FROM t WHERE name LIKE 'a%'",
    "SELECT COUNT(*) AS n FROM t WHERE UPPER(name) = 'ANN'",
    "SELECT COUNT(*) AS n FROM t WHERE SUBSTRING(name, 1, 1) = 'a'",
    "SELECT COUNT(*) AS n FROM t WHERE CONCAT(name, 'x') = 'annx'",
    "SELECT COUNT(*) AS n FROM t WHERE COALESCE(name, 'ann') = 'ann'",
    "SELECT COUNT(*) AS n FROM t WHERE CASE WHEN v > 2 THEN name ELSE 'ann' END = 'ann'",
    "SELECT COUNT(CASE WHEN name = 'ann' THEN 1 END) AS a, COUNT(CASE WHEN name = 'ânn' THEN 1 END) AS b FROM t",
    "SELECT name, COUNT(*) AS n FROM t GROUP BY name",
    "SELECT LOWER(name) AS l, COUNT(*) AS n FROM t GROUP BY LOWER(name)",
    "SELECT COUNT(DISTINCT name) AS n FROM t",
    "SELECT COUNT(DISTINCT who) AS n FROM t",
    "SELECT COUNT(*) AS n FROM (SELECT who, COUNT(DISTINCT name) AS d FROM t GROUP BY who) AS p WHERE d > 1",
    "SELECT COUNT(*) AS n FROM (SELECT who, name FROM t GROUP BY who, name) AS p",
    "SELECT COUNT(*) AS n FROM t JOIN other ON t.who = other.who",
    "SELECT COUNT(*) AS n FROM t JOIN other ON t.who = other.who AND t.name = other.name",
    "SELECT COUNT(*) AS n FROM t JOIN other ON t.who = other.who WHERE t.name < other.name",
    "SELECT COUNT(*) AS n FROM t JOIN shops ON t.name = shops.name",
    "SELECT label, COUNT(*) AS n FROM t JOIN shops ON t.name = shops.name GROUP BY label",
    "SELECT COUNT(*) AS n FROM t LEFT JOIN shops ON t.name = shops.name WHERE label IS NULL",
    "SELECT COUNT(*) AS n FROM t WHERE name IN (SELECT name FROM shops)",
    "SELECT COUNT(*) AS n FROM (SELECT who, name FROM t UNION ALL SELECT who, name FROM other) AS u WHERE name = 'ann'",
)


def as_database(folder: Path, collation: str | None, *, indexed: bool = False) -> dict[str, Any]:
    """Write the same rows with a collation, or with none, and open them as three tables."""
    text = "VARCHAR" if collation is None else f"VARCHAR COLLATE {collation}"
    file = folder / f"{collation}{indexed}.duckdb"
    with duckdb.connect(str(file)) as connection:
        for name in ("t", "other"):
            connection.execute(f"CREATE TABLE {name} (who {text}, name {text}, v INTEGER)")
            rows = [(TEXTS[n % 16], TEXTS[n * 7 % 16], n % 5) for n in range(48)]
            connection.executemany(f"INSERT INTO {name} VALUES (?, ?, ?)", rows)
        connection.execute(f"CREATE TABLE shops (name {text}, label {text})")
        connection.executemany("INSERT INTO shops VALUES (?, ?)", [(one, one[:1]) for one in dict.fromkeys(TEXTS)])
        if indexed:
            connection.execute("CREATE INDEX i ON t (name)")
            connection.execute("CREATE INDEX j ON shops (name)")
    return {"t": file, "other": file, "shops": dp.public(file)}


def numbers(tables: dict[str, Any], unit: dp.Unit) -> dict[str, Any]:
    """Return all exact numbers of every query, and the price it has."""
    found = {}
    with closing(DuckDBEngine(tables, threads=1)) as engine:
        catalogue = build_catalogue(engine, tables, unit=unit, columns={"t": LISTED, "other": {}})
        for sql in QUERIES:
            if not (unit.is_row and "who" in sql):
                priced = plan(read(sql, catalogue).question, catalogue, Spend(epsilon=1, delta="1e-6"), pure=False)
                found[sql] = plain(engine.run(priced.stage, deadline=Deadline.after(60))), priced.event
    return found


@cache
def numbers_of_bytes(unit: dp.Unit) -> dict[str, Any]:
    """Return the same of a database without a collation."""
    with TemporaryDirectory() as folder:
        return numbers(as_database(Path(folder), None), unit)


@pytest.mark.long
@pytest.mark.parametrize("collation", ALIKE)
@pytest.mark.parametrize("unit", [UNIT, dp.Unit("row")], ids=["people", "rows"])
def test_a_collated_column_is_compared_in_binary(tmp_path: Path, collation: str, unit: dp.Unit) -> None:
    collated = as_database(tmp_path, collation)
    assert_differ(collated["t"], collation)
    assert numbers(collated, unit) == numbers_of_bytes(unit)


def assert_differ(file: Path, collation: str) -> None:
    """The engine alone takes these texts for one: so the rule has something to do here."""
    one, *others = ALIKE[collation]
    with duckdb.connect(str(file), read_only=True) as connection:
        (found,) = connection.execute("SELECT count(DISTINCT name) FROM t WHERE name = $x", {"x": one}).fetchone() or ()
        (texts,) = connection.execute("SELECT count(DISTINCT encode(name)) FROM t").fetchone() or ()
    assert found == 1 < texts
    assert others


@pytest.mark.long
@pytest.mark.parametrize("collation", ["NOCASE", "NOACCENT"])
def test_an_index_on_a_collated_column_changes_nothing(tmp_path: Path, collation: str) -> None:
    assert numbers(as_database(tmp_path, collation, indexed=True), UNIT) == numbers_of_bytes(UNIT)


@pytest.mark.parametrize("collation", ALIKE)
def test_a_unique_public_list_is_unique_by_its_bytes(tmp_path: Path, collation: str) -> None:
    with closing(DuckDBEngine(as_database(tmp_path, collation))) as engine:
        columns = engine.public_columns("shops")
        assert len(columns["name"].facts.members or ()) == len(set(TEXTS))
        assert engine.public_is_unique("shops", frozenset(["name"]))
        assert not engine.public_is_unique("shops", frozenset(["label"]))


def test_sixteen_accents_are_sixteen_values(tmp_path: Path) -> None:
    """What is counted apart is exclusive: one row is in one of the counts, and pays for one."""
    accents = [f"{letter}{mark}" for letter in "eE" for mark in ("", *map(chr, range(0x300, 0x307)))]
    file = tmp_path / "accents.duckdb"
    with duckdb.connect(str(file)) as connection:
        connection.execute("CREATE TABLE t (who INTEGER, x VARCHAR COLLATE NOACCENT)")
        connection.executemany("INSERT INTO t VALUES (?, ?)", [(n, accents[n % 3]) for n in range(1000)])
    counts = ", ".join(f"COUNT(CASE WHEN x = '{one}' THEN 1 END) AS n{n}" for n, one in enumerate(accents))
    found = counted(f"SELECT {counts} FROM t", {"t": file}, unit=dp.Unit("who", 1, 1))
    measured = [int(one["count"]) for one in plain(found.tallied)[()]["columns"]]
    assert sum(measured) == 1000
    assert sorted(measured, reverse=True)[:3] == [334, 333, 333]


@pytest.mark.parametrize("collation", ["NOCASE", "NOACCENT", "NOCASE.NOACCENT"])
def test_a_row_meets_one_row_of_a_unique_list(tmp_path: Path, collation: str) -> None:
    file = tmp_path / "list.duckdb"
    texts = ALIKE[collation]
    with duckdb.connect(str(file)) as connection:
        connection.execute(f"CREATE TABLE t (who INTEGER, x VARCHAR COLLATE {collation})")
        connection.execute("INSERT INTO t VALUES (1, $x)", {"x": texts[0]})
    for shops in (pa.table({"x": texts}), file_of(tmp_path, texts, collation)):
        tables = {"t": file, "shops": dp.public(shops)}
        found = counted("SELECT COUNT(*) AS n FROM t JOIN shops ON t.x = shops.x", tables)
        assert found.numbers == ([1],)


def file_of(folder: Path, texts: Sequence[str], collation: str) -> Path:
    file = folder / "public.duckdb"
    with duckdb.connect(str(file)) as connection:
        connection.execute(f"CREATE TABLE shops (x VARCHAR COLLATE {collation})")
        connection.executemany("INSERT INTO shops VALUES (?)", [(text,) for text in texts])
    return file


def test_units_under_a_collation_are_not_merged(tmp_path: Path) -> None:
    file = tmp_path / "units.duckdb"
    with duckdb.connect(str(file)) as connection:
        connection.execute("CREATE TABLE t (who VARCHAR COLLATE NOCASE, v INTEGER)")
        connection.executemany("INSERT INTO t VALUES (?, 1)", [(who,) for who in ALIKE["NOCASE"] for _ in range(5)])
    asked = "SELECT COUNT(*) AS n FROM t"
    assert counted(asked, {"t": file}, unit=dp.Unit("who", 1, 1)).numbers == ([4],)
    with duckdb.connect(str(file)) as connection:
        assert counted(asked, {"t": connection}, unit=dp.Unit("who", 1, 1)).numbers == ([4],)


def test_no_connection_has_a_collation_of_its_own() -> None:
    cage = Sandbox([], memory=1 << 28, threads=1)
    with closing(cage):
        connection = cage.connection()
        assert connection.execute("SELECT current_setting('default_collation')").fetchone() == ("",)
        for text in ("SET default_collation = 'NOCASE'", "PRAGMA default_collation = NOCASE"):
            with pytest.raises(duckdb.Error):
                connection.execute(text)
        assert connection.execute("SELECT 'a' = 'A'").fetchone() == (False,)


def test_a_default_collation_of_the_writer_is_not_taken_over(tmp_path: Path) -> None:
    file = tmp_path / "written.duckdb"
    with duckdb.connect(str(file), config={"default_collation": "NOCASE"}) as connection:
        connection.execute("CREATE TABLE t (who VARCHAR, x VARCHAR)")
        connection.execute("INSERT INTO t VALUES ('a', 'x'), ('A', 'X'), ('a', 'x')")
        ours = counted("SELECT COUNT(*) AS n FROM t WHERE x = 'x'", {"t": connection}, unit=dp.Unit("who", 1, 1))
        assert ours.numbers == ([1],)
    ours = counted("SELECT COUNT(*) AS n FROM t WHERE x = 'x'", {"t": file}, unit=dp.Unit("who", 1, 1))
    assert ours.numbers == ([1],)


def test_a_view_is_refused_whatever_its_collation(tmp_path: Path) -> None:
    file = tmp_path / "view.duckdb"
    with duckdb.connect(str(file)) as connection:
        connection.execute("CREATE TABLE base (who VARCHAR)")
        connection.execute("CREATE VIEW t AS SELECT who COLLATE NOCASE AS who FROM base")
    with pytest.raises(dp.InvalidParameter, match="not a view"):
        DuckDBEngine({"t": file})


def test_a_draft_proposes_no_value_that_few_have(tmp_path: Path) -> None:
    """Texts that are one under a collation are not counted together when a draft looks which are common."""
    file = tmp_path / "t.duckdb"
    with duckdb.connect(str(file)) as connection:
        connection.execute("CREATE TABLE t (who INTEGER, x VARCHAR COLLATE NOCASE)")
        connection.executemany("INSERT INTO t VALUES (?, ?)", [(n, "Rare" if n == 0 else "rare") for n in range(30)])
    with looking(file, "t", lambda _: None) as look:
        seen = look.column("x", "who")
    assert (seen.distinct, seen.common, seen.rare) == (2, ("rare",), 1)


def test_uniqueness_is_judged_as_a_join_compares(tmp_path: Path) -> None:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE p (x VARCHAR COLLATE NOCASE)")
        connection.execute("INSERT INTO p VALUES ('a'), ('A')")
        assert is_unique(connection, "p", frozenset(["x"]))
        connection.execute("INSERT INTO p VALUES ('a')")
        assert not is_unique(connection, "p", frozenset(["x"]))
