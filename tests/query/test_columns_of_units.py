"""Columns that are one for each unit, and keys that follow from its window: one value in every question, one group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import date, datetime
from itertools import combinations_with_replacement
from typing import Any

import pyarrow as pa
import pytest
from neighbours import SmallWorld

import discreet as dp
from discreet.query.ast import Table
from discreet.query.engine import Deadline
from discreet.query.engines import sql_queries
from discreet.query.engines.duckdb import DuckDBEngine
from discreet.query.engines.sql_writer import Writer
from discreet.query.parse.select import read
from discreet.query.plan import contribution_limits
from discreet.query.plan.contribution_limits import groups_of_a_unit
from discreet.query.plan.draft import Spend
from discreet.query.plan.planner import PricedQuery, plan
from discreet.query.session.catalogue_builder import build_catalogue

KINDS: dict[str, tuple[pa.DataType, list[Any], Any]] = {
    "text": (pa.string(), ["Z", "a", "é", "", None], dp.text(of_unit=True)),
    "listed": (pa.string(), ["b", "a", "?", "", None], dp.categories(["b", "a"], of_unit=True)),
    "codes": (pa.int64(), [7, 2, 3, 99, None], dp.categories([7, 2], of_unit=True)),
    "whole": (pa.int64(), [3, -9, 500, 4, None], dp.between(0, 100, of_unit=True)),
    "real": (pa.float64(), [0.5, -0.0, float("nan"), 9e9, None], dp.between(-1.0, 1.0, of_unit=True)),
    "day": (pa.date32(), [date(2026, 1, 2), date(1, 1, 1), date(2026, 1, 1), None], None),
    "truth": (pa.bool_(), [True, False, None], dp.boolean(of_unit=True)),
}
DAYS = dp.between(date(2026, 1, 1), date(2026, 12, 31), of_unit=True)
CLAMPED: dict[str, Callable[[Any], Any]] = {
    "listed": lambda value: value if value in ("b", "a") else None,
    "codes": lambda value: value if value in (7, 2) else None,
    "whole": lambda value: min(max(value, 0), 100),
    "real": lambda value: None if value != value else min(max(value, -1.0), 1.0),
    "day": lambda value: max(value, date(2026, 1, 1)),
}


def least(kind: str, values: list[Any]) -> Any:
    """Return what the declaration promises: the least that counts, None only where nothing does."""
    read = [CLAMPED.get(kind, lambda value: value)(value) for value in values if value is not None]
    known = [value for value in read if value is not None]
    return min(known, key=lambda value: value.encode() if isinstance(value, str) else value) if known else None


def world(kind: str, rows: list[tuple[str | None, Any, bool]]) -> dict[str, Any]:
    stored, _, declared = KINDS[kind]
    table = pa.table(
        {
            "who": pa.array([row[0] for row in rows], pa.string()),
            "own": pa.array([row[1] for row in rows], stored),
            "keep": pa.array([row[2] for row in rows], pa.bool_()),
        }
    )
    return {"table": table, "columns": {"own": declared or DAYS, "keep": dp.boolean()}}


def counted(kind: str, rows: list[tuple[str | None, Any, bool]], sql: str) -> dict[Any, int]:
    """Count rows by key exactly, as the engine does before noise."""
    made = world(kind, rows)
    with closing(DuckDBEngine({"t": made["table"]}, threads=1)) as engine:
        catalogue = build_catalogue(engine, {"t": None}, unit=dp.Unit("who", 9, 9), columns=made["columns"])
        priced = planned(sql, catalogue)
        assert priced.draft.max_groups == 1
        tallied = engine.run(priced.stage, deadline=Deadline.after(60))
        (keys, rows_of) = tallied.keys(list(range(tallied.groups))), tallied.tally.rows
        return {key[0]: int(count) for key, count in zip(keys, rows_of, strict=True) if count}


def planned(sql: str, catalogue: Any) -> PricedQuery:
    return plan(read(sql, catalogue).question, catalogue, Spend(epsilon=1, delta="1e-6"), pure=False)


QUESTIONS: dict[str, Callable[[tuple[str | None, Any, bool]], bool]] = {
    "SELECT own, COUNT(*) AS n FROM t GROUP BY own": lambda row: True,
    "SELECT own, COUNT(*) AS n FROM t WHERE keep GROUP BY own": lambda row: row[2],
    "SELECT o AS own, COUNT(*) AS n FROM (SELECT own AS o FROM t WHERE NOT keep) AS x GROUP BY o": lambda r: not r[2],
}


def as_declared(kind: str, rows: list[tuple[str | None, Any, bool]], sql: str) -> bool:
    """Whether every kept row counts under the least value of all rows of its unit."""
    values = {who: least(kind, [row[1] for row in rows if row[0] == who]) for who in {row[0] for row in rows}}
    kept = Counter(values[row[0]] for row in rows if row[0] is not None and QUESTIONS[sql](row))
    found = counted(kind, rows, sql)
    return {key: n for key, n in found.items() if key is not None} == {k: n for k, n in kept.items() if k is not None}


def rows_of(kind: str) -> list[tuple[str | None, Any, bool]]:
    """A unit for every pair and triple of values, of which the second row alone passes WHERE; and rows of nobody."""
    values = KINDS[kind][1]
    chosen = [*combinations_with_replacement(values, 2), *combinations_with_replacement(values, 3)]
    rows = [(f"u{at}", value, place == 1) for at, some in enumerate(chosen) for place, value in enumerate(some)]
    return [*rows, *((None, value, True) for value in values)]


@pytest.mark.parametrize("kind", KINDS)
def test_every_question_sees_the_least_value_of_all_rows_of_the_unit(kind: str) -> None:
    assert all(as_declared(kind, rows_of(kind), sql) for sql in QUESTIONS)


def test_a_value_that_is_read_from_the_kept_row_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted mistake: the column as it stands in each row that a question keeps."""
    monkeypatch.setattr(sql_queries, "_of_units", lambda table, rows, writer: rows)
    filtered = list(QUESTIONS)[1]
    assert not as_declared("whole", rows_of("whole"), filtered)


def test_a_value_that_is_read_after_where_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted mistake: the least of the rows that WHERE has left."""
    written = sql_queries._of_units

    def late(table: Table, rows: str, writer: Writer) -> str:
        keep = next((writer.column(one.field.name) for one in table.columns if one.column == "keep"), None)
        return written(table, rows if keep is None else f"SELECT * FROM ({rows}) WHERE {keep}", writer)

    monkeypatch.setattr(sql_queries, "_of_units", late)
    filtered = list(QUESTIONS)[1]
    assert not as_declared("whole", rows_of("whole"), filtered)


ASKED = (
    "SELECT own, COUNT(*) AS n FROM t GROUP BY own",
    "SELECT own, SUM(x) AS s, COUNT(DISTINCT who) AS u FROM t WHERE keep GROUP BY own",
    "SELECT own, keep, COUNT(*) AS n FROM t GROUP BY own, keep",
    "SELECT own, MEDIAN(x) AS m FROM t GROUP BY own",
    "SELECT n, COUNT(*) AS c FROM (SELECT who, own AS n, COUNT(*) AS c FROM t GROUP BY who, own) AS z GROUP BY n",
    "SELECT a.own, COUNT(*) AS n FROM t AS a LEFT JOIN t AS b ON a.who = b.who AND a.x = b.x GROUP BY a.own",
)


def small_worlds() -> list[pa.Table]:
    """Two units of up to three rows each, whose columns disagree in every way that matters."""
    rows = [(1, True, 3), (1, False, 0), (2, True, 9), (None, True, 9), (7, False, 1)]
    tables = []
    for mine in combinations_with_replacement(rows, 3):
        whole = [("u", *row) for row in mine] + [("v", *row) for row in rows[:2]] + [("w", 2, True, 9)]
        columns = list(zip(*whole, strict=True))
        tables.append(pa.table(dict(zip(("who", "own", "keep", "x"), map(list, columns), strict=True))))
    return tables


def complaints(sql: str, spend: Spend, tables: list[pa.Table]) -> list[str]:
    columns = {"own": dp.categories([1, 2], of_unit=True), "keep": dp.boolean(), "x": dp.between(0, 9, whole=True)}
    found = []
    for table in tables:
        small = SmallWorld(table, table["who"].to_pylist(), dp.Unit("who", 2, 2), columns)
        with small.opened:
            found += small.complaints(small.priced(sql, spend))
    return found


SOME = pytest.param(9, marks=pytest.mark.long, id="every ninth world")
ALL = pytest.param(1, marks=pytest.mark.slow, id="all worlds")


@pytest.mark.some(4)
@pytest.mark.parametrize("step", [SOME, ALL])
@pytest.mark.parametrize("sql", ASKED)
@pytest.mark.parametrize("spend", [Spend(epsilon=1), Spend(rho="0.1", delta="1e-6")], ids=["pure", "gaussian"])
def test_what_noise_tells_of_any_unit_of_small_worlds_is_within_its_price(sql: str, spend: Spend, step: int) -> None:
    assert not complaints(sql, spend, small_worlds()[::step])


def test_a_least_value_of_all_people_together_is_beyond_the_price(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted mistake: without PARTITION BY, whoever leaves changes the group of everybody else."""
    written = sql_queries._of_units
    monkeypatch.setattr(
        sql_queries, "_of_units", lambda *parts: written(*parts).replace(f"PARTITION BY {unit_of(*parts)}", "")
    )
    table = pa.table({"who": list("uvwx"), "own": [1, 2, 2, 2], "keep": [True] * 4, "x": [1] * 4})
    assert complaints(ASKED[0], Spend(epsilon=1), [table])


def unit_of(table: Table, rows: str, writer: Writer) -> str:
    assert table.unit is not None
    return writer.column(table.unit)


# --- what it costs ---


VIEWS = pa.table(
    {
        "user": ["u", "u", "v"],
        "land": ["de", "de", "fr"],
        "page": ["x", "y", "x"],
        "at": pa.array([datetime(2026, 1, 1, 9), datetime(2026, 1, 1, 23), datetime(2026, 1, 2)], pa.timestamp("us")),
    }
)
DECLARED = {
    "land": dp.categories(["de", "fr"]),
    "page": dp.categories(["x", "y", "z"]),
    "at": dp.between(datetime(2026, 1, 1), datetime(2026, 12, 31)),
}


def limit_of(unit: dp.Unit, key: str, columns: dict[str, Any] | None = None, **limits: int) -> int:
    """Return in how many groups a unit is counted where rows are grouped by these keys."""
    with dp.Session(
        {"t": VIEWS, "lands": dp.public(pa.table({"code": ["de", "fr"], "part": ["a", "b"]}))},
        unit=unit,
        budget=dp.Budget(epsilon=1, delta=1e-6),
        columns={"t": DECLARED | (columns or {})},
        ledger="memory",
        dataset="views",
        principal="ana",
    ) as session:
        sql = f"SELECT {key}, COUNT(*) AS n FROM t GROUP BY {key}"
        if "lands." in key:
            sql = f"SELECT {key}, COUNT(*) AS n FROM t JOIN lands ON t.land = lands.code GROUP BY {key}"
        return session.sql(sql, epsilon=1)._asked.priced.draft.max_groups


@pytest.mark.parametrize(
    ("key", "groups"),
    [
        ("land", 1),
        ("UPPER(land)", 1),
        ("land = 'de'", 1),
        ("lands.part", 1),
        ("land, page", 3),  # of the six groups a unit is in those of its land
        ("page", 3),
        ("CASE WHEN page = 'x' THEN land END", 2),
    ],
)
def test_a_key_of_columns_of_the_unit_costs_one_group(key: str, groups: int) -> None:
    own = {"land": dp.categories(["de", "fr"], of_unit=True)}
    assert limit_of(dp.Unit("user", 9, 9), key, own) == groups


@pytest.mark.parametrize(
    ("window", "key", "groups"),
    [
        ("day", "DATE_TRUNC('day', at)", 1),
        ("day", "CAST(at AS DATE)", 1),
        ("day", "DATE_TRUNC('week', at)", 1),
        ("day", "EXTRACT(YEAR FROM at)", 1),
        ("day", "DAYOFWEEK(at)", 1),
        ("day", "STRFTIME(at, '%Y-%m')", 1),
        ("day", "DATE_TRUNC('day', at), page", 3),
        ("day", "DATE_TRUNC('day', at + INTERVAL 1 DAY)", 9),  # not the time itself: nothing is claimed of it
        ("day", "HOUR(at)", 9),
        ("hour", "HOUR(at)", 1),
        ("hour", "DATE_TRUNC('day', at)", 1),
        ("week", "DATE_TRUNC('week', at)", 1),
        ("week", "WEEK(at)", 1),
        ("week", "DATE_TRUNC('month', at)", 9),  # a week may lie in two
        ("week", "EXTRACT(YEAR FROM at)", 1),  # of the bounds of `at`, which are in one year
        ("month", "DATE_TRUNC('month', at)", 1),
        ("month", "DATE_TRUNC('quarter', at)", 1),
        ("month", "DATE_TRUNC('week', at)", 9),
        ("quarter", "MONTH(at)", 9),
        ("year", "QUARTER(at)", 4),
    ],
)
def test_a_key_that_follows_from_the_window_costs_one_group(window: str, key: str, groups: int) -> None:
    unit = dp.Unit("user", 9, 9, window=window, time="at")
    assert limit_of(unit, key) == groups


def test_a_month_of_one_country_is_one_group() -> None:
    unit = dp.Unit(["user", "land"], 9, 9, window="month", time="at")
    assert limit_of(unit, "DATE_TRUNC('month', at), land") == 1
    assert limit_of(unit, "DATE_TRUNC('month', at), land, page") == 3
    assert limit_of(unit, "CASE WHEN land = 'de' THEN 1 ELSE 0 END") == 1


def test_bounds_leave_all_times_of_a_window_in_one_group() -> None:
    """Clamped in the middle of a day, its rows stay together: what max_groups = 1 assumes is true of the engine."""
    times = [datetime(2026, 1, day, hour) for day in (1, 2, 3, 4) for hour in (0, 5, 12, 18, 23)]
    table = pa.table({"user": ["u"] * len(times), "at": pa.array(times, pa.timestamp("us"))})
    columns = {"at": dp.between(datetime(2026, 1, 2, 12), datetime(2026, 1, 3, 12))}
    with closing(DuckDBEngine({"t": table}, threads=1)) as engine:
        unit = dp.Unit("user", 1, 100, window="day", time="at")
        catalogue = build_catalogue(engine, {"t": None}, unit=unit, columns=columns)
        sql = "SELECT DATE_TRUNC('day', at) AS d, COUNT(*) AS n FROM t GROUP BY d"
        tallied = engine.run(planned(sql, catalogue).stage, deadline=Deadline.after(60))
        assert tallied.tally.rows.tolist() == [10, 10], "nobody was left out"


def test_a_column_of_the_unit_is_another_question_to_the_ledger() -> None:
    """What was paid for under one reading is not handed out under the other."""
    prints = set()
    for of_unit in (False, True):
        with dp.Session(
            {"t": VIEWS},
            unit=dp.Unit("user"),
            budget=dp.Budget(epsilon=1),
            columns={"land": dp.categories(["de", "fr"], of_unit=of_unit)},
            ledger="memory",
            dataset="views",
            principal="ana",
        ) as session:
            prints.add(
                session.sql("SELECT COUNT(*) AS n FROM t WHERE land = 'de'", epsilon=1)._asked.priced.fingerprint
            )
    assert len(prints) == 2


def test_it_is_told_where_columns_and_prices_are() -> None:
    with dp.Session(
        {"t": VIEWS},
        unit=dp.Unit("user", 2, 2),
        budget=dp.Budget(epsilon=1),
        columns={"land": dp.categories(["de", "fr"], of_unit=True)},
        ledger="memory",
        dataset="views",
        principal="ana",
    ) as session:
        assert "one for each unit, the least of its rows" in str(session.describe())
        told = str(session.sql("SELECT land, COUNT(*) AS n FROM t GROUP BY land", epsilon=1).explain())
        assert "the group is one for each user" in told
        assert "in several groups" not in told


# --- what is refused ---


@pytest.mark.parametrize(
    ("unit", "columns", "message"),
    [
        ("row", {"land": dp.text(of_unit=True)}, "each row is a unit of its own"),
        (dp.Unit(["user", "land"]), {"land": dp.text(of_unit=True)}, "tells units apart"),
        (
            dp.Unit("user", window="day", time="at"),
            {"at": dp.between(datetime(2026, 1, 1), datetime(2026, 2, 1), of_unit=True)},
            "tells units apart",
        ),
    ],
)
def test_a_column_that_cannot_be_of_a_unit_is_refused(unit: Any, columns: dict[str, Any], message: str) -> None:
    with pytest.raises(dp.InvalidParameter, match=message):
        dp.Session(
            {"t": VIEWS},
            unit=unit,
            budget=dp.Budget(epsilon=1),
            columns=columns,
            ledger="memory",
            dataset="views",
            principal="ana",
        )


@pytest.mark.parametrize(
    "said",
    [
        lambda: dp.mean([1, 2], bounds=dp.between(0, 9, of_unit=True), epsilon=1, relation="add-remove"),
        lambda: dp.synth.Domain({"a": dp.between(0, 9, whole=True, of_unit=True)}),
        lambda: dp.histogram(["a"], bins=dp.categories(["a"], of_unit=True), epsilon=1, relation="add-remove"),
        lambda: dp.between(0, 1, of_unit=1),  # type: ignore[arg-type]
        lambda: dp.categories(range(10_001), of_unit=True),
    ],
)
def test_of_unit_is_never_dropped_silently(said: Callable[[], Any]) -> None:
    with pytest.raises(dp.InvalidParameter, match="of_unit"):
        said()


# --- in how many groups a unit really is ---


SOMETIMES = "t AS a LEFT JOIN (SELECT * FROM t WHERE page = 'x') AS b ON a.unit = b.unit AND a.page = b.page"


def groups_found(key: str, origin: str) -> tuple[int, int | None]:
    """Return in how many groups one unit with nasty rows is, where no limit cuts, and in how many it can be."""
    days = [datetime(2026, 1, 1), datetime(2026, 1, 1, 12)]  # before and behind the lower bound, on one day
    rows = [(day, land, page) for day in days for land in ("fr", "de", "??", None) for page in ("x", "y", "z")]
    table = pa.table(
        {
            "user": ["u"] * len(rows),
            "at": pa.array([row[0] for row in rows], pa.timestamp("us")),
            "land": [row[1] for row in rows],
            "page": [row[2] for row in rows],
        }
    )
    columns = DECLARED | {
        "land": dp.categories(["de", "fr"], of_unit=True),
        "at": dp.between(datetime(2026, 1, 1, 6), datetime(2026, 12, 31)),
    }
    lands = dp.public(pa.table({"code": ["de", "fr"], "part": ["a", "b"]}))
    with closing(DuckDBEngine({"t": table, "lands": lands}, threads=1)) as engine:
        unit = dp.Unit("user", 99, 99, window="day", time="at")
        catalogue = build_catalogue(engine, {"t": None, "lands": lands}, unit=unit, columns={"t": columns})
        priced = planned(f"SELECT {key} AS k, COUNT(*) AS n FROM {origin} GROUP BY k", catalogue)
        stage = replace(priced.stage, max_groups=99, max_rows_per_group=99)
        tallied = engine.run(stage, deadline=Deadline.after(60))
        asked = priced.draft.question
        return int((tallied.tally.rows > 0).sum()), groups_of_a_unit(asked.source, asked.keys, catalogue)


@pytest.mark.parametrize(
    ("key", "origin"),
    [
        ("DATE_TRUNC('day', at)", "t"),
        ("CAST(at AS DATE)", "t WHERE page = 'x'"),
        ("COALESCE(land, 'none')", "t"),
        ("COALESCE(b.land, 'none')", SOMETIMES),
        ("COALESCE(b.land, 'none')", "t AS a LEFT JOIN t AS b ON a.unit = b.unit"),
        ("COALESCE(b.page, 'none')", "t AS a LEFT JOIN t AS b ON a.unit = b.unit AND a.land = b.land"),
        ("COALESCE(lands.part, 'none')", "t LEFT JOIN lands ON t.land = lands.code"),
        ("COALESCE(lands.part, 'none')", "t LEFT JOIN lands ON t.page = lands.code"),
        ("f", "(SELECT FIRST_VALUE(page) OVER (PARTITION BY unit ORDER BY at) AS f FROM t) AS y"),
        ("f", "(SELECT MIN(HOUR(at)) OVER (PARTITION BY unit ORDER BY page) AS f FROM t) AS y"),
        ("l", "(SELECT land AS l FROM t UNION ALL SELECT page AS l FROM t) AS y"),
        ("l", "(SELECT unit, land AS l, page, COUNT(*) AS n FROM t GROUP BY unit, land, page) AS y"),
        ("page", "t"),
    ],
)
def test_a_unit_is_in_no_more_groups_than_it_is_said_to_be(key: str, origin: str) -> None:
    """Units of a family are priced by this: where rows can put a unit into a second group, nothing is claimed."""
    found, most = groups_found(key, origin)
    assert most is None or found <= most


def test_a_side_that_some_rows_do_not_meet_is_not_one_for_the_unit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted mistake: of a LEFT JOIN, what is one for the unit on the right is so in what is joined."""
    monkeypatch.setattr(contribution_limits.FixedInUnit, "meets", lambda self, side: True)
    found, most = groups_found("COALESCE(b.land, 'none')", SOMETIMES)
    assert most is not None
    assert found > most
