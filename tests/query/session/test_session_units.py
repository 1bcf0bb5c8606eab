"""Units of several columns, and of windows of time: who is one unit, who is not, and what the ledger calls them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import discreet as dp
from discreet.query.engine import Deadline

PARTS = ("hospital", "patient")
STAYS = pa.table(
    {
        "hospital": ["a", "a", "ab", "a", None, "ab", "a"],
        "patient": ["bc", "bc", "c", "c", "bc", None, "bc"],
        "cost": [1, 2, 4, 8, 16, 32, 64],
    }
)


def opened(folder: Any, table: Any, unit: dp.Unit, **changes: Any) -> dp.Session:
    usual: dict[str, Any] = {
        "unit": unit,
        "budget": dp.Budget(epsilon=100),
        "columns": {"cost": dp.between(0, 100, whole=True)},
        "ledger": folder / "stays.ledger",
        "dataset": "stays",
        "principal": "ana",
    }
    return dp.Session({"stays": table} if not isinstance(table, dict) else table, **usual | changes)


def exact(session: dp.Session, query: str) -> list[int]:
    """Count the units of each group as the engine does, before noise."""
    plan = session.sql(query, epsilon=1)
    tallied = session._desk.engine.run(plan._asked.priced.stage, deadline=Deadline.after(60))
    return [int(count) for count in tallied.tally.units]


def test_a_unit_of_two_columns_is_who_shares_both(tmp_path):
    """("a", "bc") and ("ab", "c") are two, however they are put together; who lacks a part is nobody."""
    with opened(tmp_path, STAYS, dp.Unit(PARTS)) as session:
        assert exact(session, "SELECT COUNT(DISTINCT unit) AS n FROM stays") == [3]


def test_glued_together_without_lengths_two_units_would_be_one():
    glued = {f"{a}{b}" for a, b in zip(*(STAYS[name].to_pylist() for name in PARTS), strict=True) if a and b}
    assert len(glued) == 2


@pytest.mark.parametrize(
    ("window", "expected"), [("hour", 6), ("day", 5), ("week", 3), ("month", 4), ("quarter", 3), ("year", 3)]
)
@pytest.mark.parametrize("stored", ["timestamp", "text"])
def test_windows_are_half_open(tmp_path, window, expected, stored):
    """Midnight is the first moment of its day: a row there is in one window, never in two."""
    moments = [
        datetime(2025, 12, 31, 23, 59, 59, 999_999),
        datetime(2026, 1, 1),
        datetime(2026, 1, 1, 0, 59, 59),
        datetime(2026, 1, 1, 1),
        datetime(2026, 1, 31, 23),
        datetime(2026, 2, 1),
        datetime(1969, 12, 31, 23, 59, 59),
        datetime(1969, 12, 31, 23),
        None,
    ]
    times = pa.array(moments, pa.timestamp("us"))
    if stored == "text":
        times = pa.array([None if one is None else one.isoformat(sep=" ") for one in moments])
    table = pa.table({"user": ["u"] * len(moments), "at": times})
    unit = dp.Unit("user", window=window, time="at")
    columns = {"at": dp.between(datetime(2026, 1, 1), datetime(2026, 1, 2))}
    with opened(tmp_path, table, unit, columns=columns) as session:
        assert exact(session, "SELECT COUNT(DISTINCT unit) AS n FROM stays") == [expected]


def test_bounds_and_expressions_of_the_analyst_move_nobody_into_another_window(tmp_path):
    """The window is that of the stored time, though the column is clamped to one day where it is used."""
    days = [date(2026, 1, 1) + timedelta(days=number) for number in range(5)]
    table = pa.table({"user": ["u"] * 5, "at": pa.array(days, pa.date32())})
    columns = {"at": dp.between(date(2026, 1, 1), date(2026, 1, 2))}
    with opened(tmp_path, table, dp.Unit("user", window="day", time="at"), columns=columns) as session:
        query = "SELECT COUNT(DISTINCT unit) AS n FROM (SELECT unit, DATE '2026-01-01' AS at FROM stays) AS x"
        assert exact(session, query) == [5]


def test_joins_and_subqueries_are_by_unit_and_window(tmp_path):
    days = [date(2026, 1, 1), date(2026, 1, 2)]
    views = pa.table({"user": ["u", "u", "v"], "at": pa.array([days[0], days[1], days[0]], pa.date32())})
    buys = pa.table({"user": ["u", "v"], "at": pa.array([days[0], days[1]], pa.date32())})
    unit = dp.Unit("user", window="day", time="at")
    with opened(tmp_path, {"views": views, "buys": buys}, unit, columns={}) as session:
        joined = "SELECT COUNT(DISTINCT a.unit) AS n FROM views AS a JOIN buys AS b ON {}"
        assert exact(session, joined.format("a.unit = b.unit")) == [1]  # u on the first day; v bought a day later.
        with pytest.raises(dp.Refused, match="joined on the unit column, unit, itself"):
            session.sql(joined.format("a.user = b.user"), epsilon=1)
        with pytest.raises(dp.Refused, match="must GROUP BY the unit, unit, itself"):
            session.sql(
                "SELECT COUNT(*) AS n FROM (SELECT user, COUNT(*) AS c FROM views GROUP BY user) AS x", epsilon=1
            )
        per_unit = "SELECT COUNT(*) AS n FROM (SELECT unit, COUNT(*) AS c FROM views GROUP BY unit) AS x WHERE c = 1"
        assert exact(session, per_unit) == [3]


ROWS = [("u", 1, "x"), ("u", 1, "y"), ("u", 1, "y"), ("u", 2, "x"), ("v", 1, "x"), ("v", 2, "y"), ("u", 2, "y")]


def counts_by_page(folder: Any, rows: list[tuple[str, int, str]], unit: dp.Unit) -> list[int]:
    columns = {
        "user": pa.array([row[0] for row in rows], pa.string()),
        "at": pa.array([date(2026, 1, row[1]) for row in rows], pa.date32()),
        "page": pa.array([row[2] for row in rows], pa.string()),
    }
    with opened(folder, pa.table(columns), unit, columns={"page": dp.categories(["x", "y"])}) as session:
        plan = session.sql("SELECT page, COUNT(*) AS n FROM stays GROUP BY page", epsilon=1)
        tallied = session._desk.engine.run(plan._asked.priced.stage, deadline=Deadline.after(60))
        return [int(count) for count in tallied.tally.rows]


def test_removing_any_unit_takes_its_own_rows_and_no_others(tmp_path):
    """Limits that cut nobody: each (user, day) of a small world taken out, whole."""
    unit = dp.Unit("user", 2, 2, window="day", time="at")
    whole = counts_by_page(tmp_path, ROWS, unit)
    for gone in {row[:2] for row in ROWS}:
        left = counts_by_page(tmp_path, [row for row in ROWS if row[:2] != gone], unit)
        own = Counter(row[2] for row in ROWS if row[:2] == gone)
        assert [one - other for one, other in zip(whole, left, strict=True)] == [own["x"], own["y"]]


@pytest.mark.parametrize(("limits", "counted"), [((1, 1), 4), ((2, 1), 6), ((1, 2), 4), ((2, 2), 7)])
def test_each_window_has_the_limits_for_itself(tmp_path, tmp_path_factory, limits, counted):
    """u is on two days, twice on one page of the first: bounded over all days, fewer rows would be counted."""
    found = sum(counts_by_page(tmp_path, ROWS, dp.Unit("user", *limits, window="day", time="at")))
    assert found in ({4, 5} if limits == (1, 2) else {counted})
    assert found > sum(counts_by_page(tmp_path_factory.mktemp("all"), ROWS, dp.Unit("user", *limits)))


def test_the_ledger_knows_the_unit_by_all_its_parts(tmp_path):
    day = dp.Unit("user", window="day", time="at")
    assert dp.Unit("patient").account == "patient"
    assert dp.Unit(PARTS).account == '["hospital", "patient"]'
    assert day.account == '["user"] per day of "at" in UTC'
    table = pa.table({"user": ["u"], "at": pa.array([date(2026, 1, 1)], pa.date32()), "cost": [1]})
    opened(tmp_path, table, day).close()
    for other in (dp.Unit("user"), dp.Unit("user", window="week", time="at"), dp.Unit(["user", "cost"])):
        with pytest.raises(dp.Refused, match="was declared"):
            opened(tmp_path, table, other, columns={})


def test_a_changed_copy_of_a_unit_is_what_it_says():
    unit = dp.Unit(PARTS, window="day", time="at")
    assert replace(unit, max_groups=2) == dp.Unit(PARTS, 2, window="day", time="at")
    assert dp.Unit(["patient"]) == dp.Unit("patient")


def test_what_protects_a_user_is_not_charged_where_a_day_is_protected(tmp_path):
    """Leaving one day out may change which of a user's rows are taken: that costs twice as much as leaving them out."""
    table = pa.table({"user": ["u"], "at": pa.array([date(2026, 1, 1)], pa.date32()), "cost": [1]})
    domain = dp.synth.Domain({"cost": dp.synth.Numeric(0, 10, whole=True)})
    with opened(tmp_path, table, dp.Unit("user", window="day", time="at")) as session:
        with pytest.raises(dp.Refused, match="this session protects"):
            session.charge(dp.privacy.PureDP(1), relation=dp.Relation.ADD_REMOVE, purpose="x", unit="user")
        for unit in ("user", "unit"):
            with pytest.raises(dp.Refused, match="each day by itself"):
                dp.synth.plan(
                    "stays", domain=domain, epsilon=1, delta=1e-6, unit=unit, rows_per_unit=1, session=session
                )
        assert not [entry for entry in session.history() if entry.kind == "charge"]


def test_limits_of_numpy_are_whole_numbers_of_python():
    unit = dp.Unit("user", np.int64(2), np.int32(3))
    assert [type(limit) for limit in (unit.max_groups, unit.max_rows_per_group)] == [int, int]


def test_texts_say_what_is_protected():
    unit = dp.Unit("user", window="day", time="at", name="visitor")
    assert unit.noun == "day of one visitor"
    assert "each day by itself (for k days of one person ε is k times as large)" in unit.whom
    assert unit.shared == "one value of the column “user” and one day of “at” in UTC"
    assert unit.missing == "user or at"
    assert dp.Unit(PARTS).noun == "combination of hospital and patient", "hospitals are promised nothing"
    assert dp.Unit(PARTS).shared == "one value of each of the columns “hospital” and “patient”"
    assert dp.Unit(PARTS).whom == "everybody who shares a hospital and patient"


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"column": []}, "several different ones"),
        ({"column": ["a", "a"]}, "several different ones"),
        ({"column": ["a", 1]}, "must name a column"),
        ({"column": "user", "window": "day"}, "a window needs a time"),
        ({"column": "user", "time": "at"}, "a window needs a time"),
        ({"column": "user", "window": "minute", "time": "at"}, "window must be one of"),
        ({"column": "user", "window": "day", "time": "user"}, "time must name the column"),
        ({"column": "row", "window": "day", "time": "at"}, "leave other columns and window out"),
        ({"column": ["row", "user"]}, "leave other columns and window out"),
    ],
)
def test_a_unit_that_makes_no_sense_is_refused(said, message):
    with pytest.raises(dp.InvalidParameter, match=message):
        dp.Unit(**said)


@pytest.mark.parametrize(
    ("table", "unit", "message"),
    [
        ({"user": ["u"]}, dp.Unit("user", window="day", time="at"), "no column 'at'"),
        ({"user": ["u"], "at": ["2026-01-01"]}, dp.Unit("user", window="day", time="at"), "date or timestamp"),
        ({"user": ["u"], "at": [1]}, dp.Unit("user", window="day", time="at"), "date or timestamp"),
        ({"a": [1.5], "b": ["x"]}, dp.Unit(["a", "b"]), "whole numbers or texts"),
        ({"a": ["x"]}, dp.Unit(["a", "b"]), "no column 'b'"),
        ({"a": ["x"], "b": ["y"], "Unit": [1]}, dp.Unit(["a", "b"]), "rename the column"),
    ],
)
def test_a_table_that_does_not_carry_the_whole_unit_is_refused(tmp_path, table, unit, message):
    with pytest.raises(dp.InvalidParameter, match=message):
        opened(tmp_path, pa.table(table), unit, columns={})


def test_an_hour_needs_a_timestamp(tmp_path):
    table = pa.table({"user": ["u"], "at": pa.array([date(2026, 1, 1)], pa.date32())})
    with pytest.raises(dp.InvalidParameter, match="must be a timestamp"):
        opened(tmp_path, table, dp.Unit("user", window="hour", time="at"), columns={})


def test_answers_explanations_and_made_up_rows_work(tmp_path):
    table = pa.table({"user": ["u", "v"], "at": pa.array([date(2026, 1, 1)] * 2, pa.date32()), "cost": [1, 2]})
    with opened(tmp_path, table, dp.Unit("user", window="day", time="at")) as session:
        plan = session.sql("SELECT COUNT(*) AS n, SUM(cost) AS s FROM stays", epsilon=1)
        assert "day of one user" in str(plan.explain())
        assert len(plan.dummy()) == 1
        plan.release()
        assert session.history()[-1].kind == "answer"
