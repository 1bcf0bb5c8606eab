"""OVER (PARTITION BY unit) and QUALIFY: what a row knows of its own unit follows from its rows, and from no others."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import datetime
from itertools import combinations_with_replacement
from typing import Any

import pyarrow as pa
import pytest
from neighbours import SmallWorld

import discreet as dp
from discreet.query.engine import Deadline
from discreet.query.engines import sql_queries
from discreet.query.engines.duckdb import DuckDBEngine
from discreet.query.parse.select import read
from discreet.query.plan.draft import Spend
from discreet.query.plan.planner import PricedQuery, plan
from discreet.query.session.catalogue_builder import build_catalogue

Row = dict[str, Any]
MANY = dp.Unit("who", 99, 99)
SCHEMA = {"who": pa.string(), "at": pa.int64(), "page": pa.string(), "x": pa.int64(), "z": pa.float64()}
COLUMNS = {
    "at": dp.between(0, 9),
    "page": dp.categories(["p", "q", "r"]),
    "x": dp.between(0, 9),
    "z": dp.between(-1.0, 1.0, step=0.5),
}
ROWS = [(1, "p", 3, 0.0), (1, "q", 0, -0.0), (2, "p", 9, 0.5), (None, "r", 1, None), (1, None, None, -1.0)]
OVER = "OVER (PARTITION BY who{})"
BY_TIME = OVER.format(" ORDER BY at")
WHOLE = OVER.format(" ORDER BY at ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING")


def table_of(rows: Sequence[Row]) -> pa.Table:
    return pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in SCHEMA.items()})


def units(size: int) -> list[Row]:
    """A unit for every choice of some rows, equal ones among them."""
    chosen = [some for n in range(1, size + 1) for some in combinations_with_replacement(ROWS, n)]
    return [dict(zip(SCHEMA, (f"u{number}", *row), strict=True)) for number, some in enumerate(chosen) for row in some]


def priced(engine: DuckDBEngine, inner: str, unit: dp.Unit = MANY) -> PricedQuery:
    catalogue = build_catalogue(engine, {"t": None}, unit=unit, columns=COLUMNS)
    sql = f"SELECT k, COUNT(*) AS n FROM ({inner}) AS inside GROUP BY k"
    return plan(read(sql, catalogue).question, catalogue, Spend(epsilon=1, delta="1e-6"), pure=False)


def counted(rows: Sequence[Row], inner: str) -> dict[Any, int]:
    """Count rows by k exactly, as the engine does before noise; limits cut nobody."""
    with closing(DuckDBEngine({"t": table_of(rows)}, threads=1)) as engine:
        tallied = engine.run(priced(engine, inner).stage, deadline=Deadline.after(60))
        keys = tallied.keys(list(range(tallied.groups)))
        return {key[0]: int(n) for key, n in zip(keys, tallied.tally.rows, strict=True) if n and key[0] is not None}


# --- what is meant ---


def last_null(value: Any) -> tuple[bool, Any]:
    return (value is None, 0 if value is None else value.encode() if isinstance(value, str) else value)


def canonical(row: Row) -> tuple[Any, ...]:
    """The order of rows that are equal otherwise: by all columns as the table has them; -0 is behind 0."""
    minus = row["z"] is not None and str(row["z"]).startswith("-")
    return (*(last_null(row[name]) for name in ("at", "page", "x", "z")), minus)


def by_time(rows: Sequence[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: (last_null(row["at"]), canonical(row)))


def latest_first(rows: Sequence[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: (row["at"] is None, -(row["at"] or 0), canonical(row)))


def added(values: list[Any]) -> int:
    known = [value for value in values if value is not None]
    return sum(known) if known else 90  # LEAST leaves NULL out


def so_far(rows: Sequence[Row], row: Row) -> list[Row]:
    return [one for one in rows if last_null(one["at"]) <= last_null(row["at"])]


Meaning = Callable[[list[Row], Row], Any]
MEANINGS: dict[str, Meaning] = {
    f"SELECT FIRST_VALUE(page) {BY_TIME} AS k FROM t": lambda rows, row: by_time(rows)[0]["page"],
    f"SELECT FIRST(x) {BY_TIME} AS k FROM t": lambda rows, row: by_time(rows)[0]["x"],
    f"SELECT LAST_VALUE(page) {WHOLE} AS k FROM t": lambda rows, row: by_time(rows)[-1]["page"],
    f"SELECT LAST(x) {OVER.format('')} AS k FROM t": lambda rows, row: by_time(rows)[-1]["x"],
    "SELECT FIRST_VALUE(page) OVER (PARTITION BY who ORDER BY at DESC) AS k FROM t": lambda rows, row: latest_first(
        rows
    )[0]["page"],
    f"SELECT LEAST(COUNT(*) {OVER.format('')}, 9) AS k FROM t": lambda rows, row: len(rows),
    f"SELECT LEAST(COUNT(x) {OVER.format('')}, 9) AS k FROM t": lambda rows, row: sum(
        one["x"] is not None for one in rows
    ),
    f"SELECT LEAST(COUNT(*) {BY_TIME}, 9) AS k FROM t": lambda rows, row: len(so_far(rows, row)),
    f"SELECT LEAST(SUM(x) {OVER.format('')}, 90) AS k FROM t": lambda rows, row: added([one["x"] for one in rows]),
    f"SELECT LEAST(SUM(x) {BY_TIME}, 90) AS k FROM t": lambda rows, row: added([one["x"] for one in so_far(rows, row)]),
    f"SELECT MIN(x) {OVER.format('')} AS k FROM t": lambda rows, row: min(
        (one["x"] for one in rows if one["x"] is not None), default=None
    ),
    f"SELECT MAX(x) {BY_TIME} AS k FROM t": lambda rows, row: max(
        (one["x"] for one in so_far(rows, row) if one["x"] is not None), default=None
    ),
    f"SELECT MAX(at) FILTER (WHERE page = 'p') {OVER.format('')} AS k FROM t": lambda rows, row: max(
        (one["at"] for one in rows if one["page"] == "p"), default=None
    ),
}


def expected(rows: Sequence[Row], meaning: Meaning) -> dict[Any, int]:
    people = {who: [row for row in rows if row["who"] == who] for who in {row["who"] for row in rows} - {None}}
    values = Counter(meaning(own, row) for own in people.values() for row in own)
    return {value: count for value, count in values.items() if value is not None}


NOBODY = [dict(zip(SCHEMA, (None, 1, "p", 9, 0.0), strict=True))]


@pytest.mark.parametrize("inner", MEANINGS)
def test_a_window_is_what_it_means_for_every_small_unit(inner: str) -> None:
    rows = units(3)
    assert counted(rows + NOBODY, inner) == expected(rows, MEANINGS[inner])


@pytest.mark.parametrize(
    ("inner", "places"),
    [
        (f"SELECT page AS k FROM t QUALIFY ROW_NUMBER() {BY_TIME} = 1", slice(0, 1)),
        (f"SELECT page AS k, ROW_NUMBER() {BY_TIME} AS r FROM t QUALIFY r BETWEEN 2 AND 3", slice(1, 3)),
        (f"SELECT k FROM (SELECT page AS k, ROW_NUMBER() {BY_TIME} AS r FROM t) AS y WHERE r = 2", slice(1, 2)),
    ],
)
def test_qualify_keeps_rows_by_their_place(inner: str, places: slice) -> None:
    rows = units(3)
    people = {who: [row for row in rows if row["who"] == who] for who in {row["who"] for row in rows}}
    kept = Counter(row["page"] for own in people.values() for row in by_time(own)[places])
    assert counted(rows + NOBODY, inner) == {page: count for page, count in kept.items() if page is not None}


ORDERED = (
    f"SELECT FIRST_VALUE(page) {BY_TIME} AS k FROM t",
    f"SELECT LAST_VALUE(x) {WHOLE} AS k FROM t",
    f"SELECT page AS k FROM t QUALIFY ROW_NUMBER() {BY_TIME} <= 2",
    f"SELECT x AS k FROM t QUALIFY ROW_NUMBER() {OVER.format(' ORDER BY z')} = 1",
    f"SELECT MAX(z) {OVER.format('')} AS k FROM t",
)


def follows_from_rows_alone(inner: str) -> bool:
    """Whether the same rows in another order are answered alike."""
    rows = units(2)
    found = counted(rows, inner)
    return all(counted(random.Random(seed).sample(rows, len(rows)), inner) == found for seed in range(4))


@pytest.mark.parametrize("inner", ORDERED)
def test_the_order_in_which_an_engine_has_rows_decides_nothing(inner: str) -> None:
    assert follows_from_rows_alone(inner)


def test_ties_that_are_left_to_the_engine_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted mistake: ORDER BY as it was written, and nothing behind it."""
    written = sql_queries._window

    def tied(window: Any, *rest: Any) -> str:
        return written(type(window)(window.total, window.order, (), window.running), *rest)

    monkeypatch.setattr(sql_queries, "_window", tied)
    assert not follows_from_rows_alone(ORDERED[0])


# --- what it costs ---


ASKED = (
    f"SELECT page, COUNT(*) AS n FROM (SELECT page FROM t QUALIFY ROW_NUMBER() {BY_TIME} = 1) AS y GROUP BY page",
    f"SELECT page, COUNT(*) AS n FROM (SELECT page FROM t QUALIFY ROW_NUMBER() {BY_TIME} <= 2) AS y GROUP BY page",
    f"SELECT f, SUM(x) AS s FROM (SELECT x, FIRST_VALUE(page) {BY_TIME} AS f FROM t) AS y GROUP BY f",
    f"SELECT SUM(LEAST(s, 20)) AS s FROM (SELECT SUM(x) {BY_TIME} AS s FROM t) AS y",
    f"SELECT MEDIAN(m) AS m FROM (SELECT MAX(x) {OVER.format('')} AS m FROM t) AS y",
    f"SELECT AVG(x) AS m FROM (SELECT x FROM t QUALIFY COUNT(*) {OVER.format('')} > 1) AS y",
)


def small_worlds() -> list[list[Row]]:
    """One unit of every three rows, beside two that stay the same."""
    others = [("v", *ROWS[0]), ("v", *ROWS[1]), ("w", *ROWS[2])]
    return [
        [dict(zip(SCHEMA, row, strict=True)) for row in [*(("u", *own) for own in mine), *others]]
        for mine in combinations_with_replacement(ROWS, 3)
    ]


def complaints(sql: str, spend: Spend, worlds: Sequence[list[Row]]) -> list[str]:
    found = []
    for rows in worlds:
        small = SmallWorld(table_of(rows), [row["who"] for row in rows], dp.Unit("who", 2, 2), COLUMNS)
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


def test_a_window_over_all_people_is_beyond_the_price(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted mistake: a window that is not the unit's lets one row in who is somebody else's."""
    written = sql_queries._window
    monkeypatch.setattr(
        sql_queries,
        "_window",
        lambda window, unit, writer: written(window, unit, writer).replace(f"PARTITION BY {unit}", "PARTITION BY 1"),
    )
    rows = [dict(zip(SCHEMA, (who, 1, "p", 9, 0.0), strict=True)) for who in "vwxyz"]
    rows.append(dict(zip(SCHEMA, ("u", 0, "q", 9, 0.0), strict=True)))
    first = f"SELECT f, COUNT(*) AS n FROM (SELECT FIRST_VALUE(page) {BY_TIME} AS f FROM t) AS y GROUP BY f"
    assert complaints(first, Spend(epsilon=1), [rows])


@pytest.mark.parametrize(
    ("inner", "drawn"),
    [
        (f"SELECT page AS k FROM t QUALIFY ROW_NUMBER() {BY_TIME} = 1", False),
        (f"SELECT page AS k FROM t QUALIFY ROW_NUMBER() {BY_TIME} <= 2", True),
        ("SELECT who, MIN(x) AS k FROM t GROUP BY who", False),
        ("SELECT page AS k FROM t", True),
    ],
)
def test_a_note_says_that_rows_are_drawn_where_there_can_be_more_than_one(inner: str, drawn: bool) -> None:
    with closing(DuckDBEngine({"t": table_of(units(1))}, threads=1)) as engine:
        first = next(note for note in priced(engine, inner, dp.Unit("who")).notes if "is counted" in note)
    assert ("taken at random if there are more" in first) is drawn


def limits(inner: str) -> tuple[int, int]:
    with closing(DuckDBEngine({"t": table_of(units(1))}, threads=1)) as engine:
        draft = priced(engine, inner, dp.Unit("who", 7, 5)).draft
        return draft.max_groups, draft.max_rows


@pytest.mark.parametrize(
    ("inner", "known"),
    [
        (f"SELECT page AS k FROM t QUALIFY ROW_NUMBER() {BY_TIME} = 1", (1, 1)),
        (f"SELECT page AS k FROM t QUALIFY x > 1 AND ROW_NUMBER() {BY_TIME} <= 1", (1, 1)),
        (f"SELECT k FROM (SELECT page AS k, ROW_NUMBER() {BY_TIME} AS r FROM t) AS y WHERE r = 3", (1, 1)),
        (f"SELECT page AS k FROM t QUALIFY ROW_NUMBER() {BY_TIME} <= 2", (3, 5)),
        (f"SELECT page AS k FROM t QUALIFY ROW_NUMBER() {BY_TIME} = 1 OR x = 1", (3, 5)),
        (f"SELECT page AS k FROM t QUALIFY COUNT(*) {BY_TIME} = 1", (3, 5)),
        (f"SELECT FIRST_VALUE(page) {BY_TIME} AS k FROM t", (1, 5)),
        (f"SELECT MAX(x) {OVER.format('')} AS k FROM t", (1, 5)),
        (f"SELECT MAX(x) {BY_TIME} AS k FROM t", (7, 5)),  # a running maximum is another in every row
        (
            f"SELECT a.page AS k FROM t AS a JOIN (SELECT who, ROW_NUMBER() {BY_TIME} AS r FROM t) AS b "
            "ON a.who = b.who WHERE r = 1",
            (3, 5),
        ),
    ],
)
def test_what_follows_from_a_window_costs_no_more_than_it_can(inner: str, known: tuple[int, int]) -> None:
    assert limits(inner) == known


def test_bounds_of_a_window_are_those_of_its_rows() -> None:
    """A sum of any number of rows has none: it is clamped where it is used, or refused."""
    with closing(DuckDBEngine({"t": table_of(units(1))}, threads=1)) as engine:
        catalogue = build_catalogue(engine, {"t": None}, unit=dp.Unit("who"), columns=COLUMNS)
        sql = "SELECT SUM({}) AS s FROM (SELECT {} {} AS w FROM t) AS y"
        for function in ("SUM(x)", "COUNT(*)", "ROW_NUMBER()"):
            with pytest.raises(dp.Refused, match="has no bounds"):
                read(sql.format("w", function, OVER.format("")), catalogue)
            assert read(sql.format("LEAST(GREATEST(w, 0), 5)", function, OVER.format("")), catalogue)
        for function in ("MIN(x)", "MAX(x)", "FIRST_VALUE(x)"):
            assert read(sql.format("w", function, OVER.format("")), catalogue)


# --- what is refused ---


@pytest.mark.parametrize(
    ("inner", "message"),
    [
        ("SELECT MIN(x) OVER () AS k FROM t", "OVER (PARTITION BY who), the unit itself and nothing else"),
        ("SELECT MIN(x) OVER (PARTITION BY page) AS k FROM t", "the unit itself and nothing else"),
        ("SELECT MIN(x) OVER (PARTITION BY who, page) AS k FROM t", "the unit itself and nothing else"),
        ("SELECT MIN(x) OVER (PARTITION BY UPPER(who)) AS k FROM t", "the unit itself and nothing else"),
        ("SELECT ROW_NUMBER() OVER (ORDER BY at) AS k FROM t", "the unit itself and nothing else"),
        (f"SELECT LAST_VALUE(x) {BY_TIME} AS k FROM t", "needs a frame"),
        (f"SELECT AVG(x) {OVER.format('')} AS k FROM t", "is answered for MIN"),
        (f"SELECT LAG(x) {BY_TIME} AS k FROM t", "is answered for MIN"),
        (f"SELECT RANK() {BY_TIME} AS k FROM t", "is answered for MIN"),
        (f"SELECT FIRST_VALUE(who) {BY_TIME} AS k FROM t", "is answered for MIN"),
        (f"SELECT FIRST_VALUE(x IGNORE NULLS) {BY_TIME} AS k FROM t", "is answered for MIN"),
        (f"SELECT COUNT(DISTINCT x) {OVER.format('')} AS k FROM t", "is answered for MIN"),
        ("SELECT ROW_NUMBER() OVER (PARTITION BY who ORDER BY 1) AS k FROM t", "the same in every row"),
        ("SELECT MIN(x) OVER (PARTITION BY who ORDER BY at NULLS FIRST) AS k FROM t", "NULLS FIRST"),
        ("SELECT SUM(x) OVER (PARTITION BY who ORDER BY at ROWS UNBOUNDED PRECEDING) AS k FROM t", "a frame is"),
        (
            "SELECT SUM(x) OVER (PARTITION BY who ORDER BY at RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) AS k FROM t",
            "a frame is",
        ),
        ("SELECT SUM(x) OVER w AS k FROM t WINDOW w AS (PARTITION BY who)", "stand in a sub-query"),
        (f"SELECT x AS k FROM t WHERE ROW_NUMBER() {BY_TIME} = 1", "stand in a sub-query"),
        (f"SELECT SUM(SUM(x) {BY_TIME}) {BY_TIME} AS k FROM t", "stand in a sub-query"),
        (f"SELECT who, COUNT(*) AS k, MIN(at) {BY_TIME} AS m FROM t GROUP BY who", "stand in a sub-query"),
        (f"SELECT who, COUNT(*) AS k FROM t GROUP BY who QUALIFY ROW_NUMBER() {BY_TIME} = 1", "QUALIFY stands"),
        ("SELECT x AS k FROM t QUALIFY x = 1", "no window that QUALIFY could look at"),
        (f"SELECT x AS k FROM t QUALIFY ROW_NUMBER() {BY_TIME}", "a condition is needed"),
    ],
)
def test_what_is_not_of_one_unit_is_refused(inner: str, message: str) -> None:
    with closing(DuckDBEngine({"t": table_of(units(1))}, threads=1)) as engine:
        with pytest.raises(dp.Refused) as refused:
            priced(engine, inner)
        assert message in str(refused.value)


def test_a_window_of_time_is_part_of_the_unit() -> None:
    """OVER (PARTITION BY user) would look at other days of a user, which are other units."""
    moments = [datetime(2026, 1, 1, 9), datetime(2026, 1, 1, 10), datetime(2026, 1, 2)]
    table = pa.table({"user": ["u"] * 3, "at": pa.array(moments, pa.timestamp("us"))})
    with closing(DuckDBEngine({"t": table}, threads=1)) as engine:
        unit = dp.Unit("user", 9, 9, window="day", time="at")
        catalogue = build_catalogue(engine, {"t": None}, unit=unit, columns={})
        inner = "SELECT LEAST(COUNT(*) OVER (PARTITION BY {}), 3) AS k FROM t"
        sql = f"SELECT k, COUNT(*) AS n FROM ({inner}) AS y GROUP BY k"
        with pytest.raises(dp.Refused, match="another window of time"):
            read(sql.format("user"), catalogue)
        made = plan(read(sql.format("unit"), catalogue).question, catalogue, Spend(epsilon=1), pure=False)
        tallied = engine.run(made.stage, deadline=Deadline.after(60))
        assert tallied.tally.rows.tolist() == [1, 2, 0]


@pytest.mark.parametrize(("unit", "table"), [("row", "t"), (dp.Unit("who"), "open")])
def test_rows_of_nobody_have_no_window(unit: Any, table: str) -> None:
    with (
        dp.Session(
            {"t": table_of(units(1)), "open": dp.public(pa.table({"who": ["u"]}))},
            unit=unit,
            budget=dp.Budget(epsilon=1),
            columns={"t": COLUMNS},
            ledger="memory",
            dataset="t",
            principal="ana",
        ) as session,
        pytest.raises(dp.Refused, match="no column of a unit here"),
    ):
        session.sql(f"SELECT COUNT(*) AS n FROM (SELECT COUNT(*) {OVER.format('')} AS k FROM {table}) AS y", epsilon=1)


def test_columns_that_are_not_declared_put_no_rows_in_order() -> None:
    """Their type in a pandas frame follows from everybody's rows: one text would turn 9 < 10 into '10' < '9'."""
    frame = table_of(units(2)).to_pandas()
    declared = {name: COLUMNS[name] for name in ("at", "page")}
    with dp.Session(
        {"t": frame},
        unit=dp.Unit("who"),
        budget=dp.Budget(epsilon=1),
        columns=declared,
        ledger="memory",
        dataset="t",
        principal="ana",
    ) as session:
        sql = f"SELECT k, COUNT(*) AS n FROM (SELECT FIRST_VALUE(page) {BY_TIME} AS k FROM t) AS y GROUP BY k"
        made = session.sql(sql, epsilon=1)
        assert {one.column for one in _columns(made)} == {"who", "at", "page"}
        assert made.release()["n"]


def _columns(made: Any) -> Sequence[Any]:
    from discreet.query.ast import columns_read

    return [column for _, column in columns_read(made._asked.priced.stage.source)]
