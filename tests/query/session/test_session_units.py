"""Units of several columns, and of windows of time: who is one unit, who is not, and what the ledger calls them."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest

import discreet as dp
from discreet.query.engine import Deadline
from discreet.query.policy import clock_changes
from discreet.query.session import catalogue_builder

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


# --- zones ---


BERLIN = ZoneInfo("Europe/Berlin")


def local_days(moments: list[datetime], window: str, zone: str) -> int:
    """Count the windows that moments lie in, by Python's own calendar."""
    local = [moment.replace(tzinfo=UTC).astimezone(ZoneInfo(zone)).date() for moment in moments]
    starts = {"day": lambda d: d, "month": lambda d: (d.year, d.month), "week": lambda d: d.isocalendar()[:2]}
    return len({starts[window](day) for day in local})


def units_of(folder: Any, moments: list[Any], kind: Any = None, **said: str) -> int:
    """Count units as the engine does: one user, at some moments."""
    table = pa.table({"user": ["u"] * len(moments), "at": pa.array(moments, kind or pa.timestamp("us"))})
    columns = {"at": dp.between(datetime(2026, 1, 1), datetime(2026, 1, 2))}
    with opened(folder, table, dp.Unit("user", time="at", **said), columns=columns, ledger="memory") as session:
        return exact(session, "SELECT COUNT(DISTINCT unit) AS n FROM stays")[0]


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/St_Johns", "Pacific/Apia", "Africa/Casablanca"])
@pytest.mark.parametrize("window", ["day", "week", "month"])
def test_windows_of_a_zone_are_those_of_its_calendar(tmp_path, zone, window):
    """A second before and at every clock change, and about every midnight of some weeks, of both kinds of years."""
    changes = [moment // 10**6 for moment, _ in clock_changes(zone)[1:-1]]
    epoch = datetime(1970, 1, 1)
    moments = [epoch + timedelta(seconds=at + shift) for at in changes[-40:] for shift in (-86_400, -1, 0, 86_400)]
    moments += [datetime(2026, 3, 20) + timedelta(minutes=30 * step, seconds=-1) for step in range(48 * 14)]
    assert units_of(tmp_path, moments, window=window, zone=zone) == local_days(moments, window, zone)


@pytest.mark.parametrize(("day", "hours"), [((2026, 3, 29), 23), ((2026, 10, 25), 25), ((2026, 6, 1), 24)])
def test_a_day_on_which_clocks_change_is_one_window_of_23_or_25_hours(tmp_path, day, hours):
    start = datetime(*day, tzinfo=BERLIN).astimezone(UTC).replace(tzinfo=None)
    within = [start, start + timedelta(hours=hours, microseconds=-1)]
    assert units_of(tmp_path, within, window="day", zone="Europe/Berlin") == 1
    assert units_of(tmp_path, [*within, start + timedelta(hours=hours)], window="day", zone="Europe/Berlin") == 2
    assert units_of(tmp_path, [start - timedelta(microseconds=1), *within], window="day", zone="Europe/Berlin") == 2


def test_a_moment_is_in_one_window_however_it_is_stored(tmp_path):
    """Half past eleven in UTC is the next day in Berlin, as a plain time, with a zone, and as text with an offset."""
    plain = [datetime(2026, 1, 1, 22, 59, 59), datetime(2026, 1, 1, 23), datetime(2026, 1, 1, 23, 30)]
    aware = [moment.replace(tzinfo=UTC) for moment in plain]
    texts = [moment.astimezone(BERLIN).isoformat() for moment in aware]
    for moments, kind in ((plain, None), (aware, pa.timestamp("us", tz="Europe/Berlin")), (texts, pa.string())):
        assert units_of(tmp_path, moments, kind, window="day", zone="Europe/Berlin") == 2
        assert units_of(tmp_path, moments, kind, window="day") == 1


def test_removing_a_local_day_takes_its_own_rows_and_no_others(tmp_path):
    """All neighbours of a small world about midnight: each row is in one unit, and leaves with it."""
    moments = [datetime(2026, 3, 28, 22) + timedelta(hours=hour) for hour in range(0, 60, 3)]
    days = [moment.replace(tzinfo=UTC).astimezone(BERLIN).date() for moment in moments]

    def counts(kept: list[datetime]) -> int:
        return units_of(tmp_path, kept, window="day", zone="Europe/Berlin")

    for gone in set(days):
        left = [moment for moment, day in zip(moments, days, strict=True) if day != gone]
        assert counts(moments) - counts(left) == 1


def test_a_window_in_two_zones_is_found_out(tmp_path, monkeypatch):
    """The planted mistakes: midnight of another zone, and clocks that never change."""
    moments = [
        datetime(2026, 3, 28, 23),
        datetime(2026, 3, 29, 21, 59),
        datetime(2026, 10, 24, 22),
        datetime(2026, 10, 25, 22),
    ]
    right = local_days(moments, "day", "Europe/Berlin")
    assert units_of(tmp_path, moments, window="day", zone="Europe/Berlin") == right
    assert units_of(tmp_path, moments, window="day") != right
    winter = clock_changes("Europe/Berlin")
    monkeypatch.setattr(catalogue_builder, "clock_changes", lambda zone: (winter[0], winter[-1]))
    assert units_of(tmp_path, moments, window="day", zone="Europe/Berlin") != right


def test_tables_of_one_session_have_one_zone_and_the_ledger_knows_it(tmp_path):
    unit = dp.Unit("user", window="day", time="at", zone="Europe/Berlin")
    assert unit.account == '["user"] per day of "at" in Europe/Berlin'
    assert unit.shared.endswith("one day of “at” in Europe/Berlin")
    table = pa.table({"user": ["u"], "at": pa.array([datetime(2026, 1, 1)], pa.timestamp("us"))})
    opened(tmp_path, table, unit, columns={}).close()
    with pytest.raises(dp.Refused, match="was declared"):
        opened(tmp_path, table, replace(unit, zone="UTC"), columns={})


def test_a_day_of_sql_is_no_local_day(tmp_path):
    """DATE_TRUNC means UTC, where a local day lies in two days: the declared max_groups holds."""
    table = pa.table({"user": ["u"], "at": pa.array([datetime(2026, 1, 1)], pa.timestamp("us"))})
    columns = {"at": dp.between(datetime(2026, 1, 1), datetime(2026, 2, 1))}
    for zone, groups in (("UTC", 1), ("Europe/Berlin", 2)):
        unit = dp.Unit("user", 2, window="day", time="at", zone=zone)
        with opened(tmp_path, table, unit, columns=columns, ledger="memory") as session:
            plan = session.sql("SELECT CAST(at AS DATE) AS d, COUNT(*) AS n FROM stays GROUP BY d", epsilon=1)
            assert plan._asked.priced.draft.max_groups == groups


def test_times_that_no_rule_is_known_for_belong_to_nobody(tmp_path):
    moments = [datetime(1899, 12, 31), datetime(1900, 1, 1), datetime(2099, 12, 31, 23), datetime(2100, 1, 1), None]
    assert units_of(tmp_path, moments, window="day", zone="Europe/Berlin") == 2


@pytest.mark.parametrize(
    "zone", ["Europe/Berlin", "Asia/Kolkata", "Australia/Lord_Howe", "America/New_York", "Asia/Gaza"]
)
def test_clock_changes_are_those_of_the_zone(zone):
    """At times all over two centuries, and about each change."""
    changes = clock_changes(zone)
    starts = [moment for moment, _ in changes]
    asked = [starts[0] + step * 6_307_919_000_001 for step in range(1000)]
    asked += [moment + shift for moment in starts[1:-1] for shift in (-1, 0, 1)]
    for moment in asked:
        known = changes[bisect_right(starts, moment) - 1][1]
        local = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=moment)).astimezone(ZoneInfo(zone))
        assert local.utcoffset() == timedelta(microseconds=known)


@pytest.mark.parametrize(
    "said",
    [
        {"zone": "Europe/Berlin"},
        {"window": "hour", "time": "at", "zone": "Europe/Berlin"},
        {"window": "day", "time": "at", "zone": "Europe/Atlantis"},
        {"window": "day", "time": "at", "zone": "../../etc/passwd"},
        {"window": "day", "time": "at", "zone": ""},
        {"window": "day", "time": "at", "zone": 1},
    ],
)
def test_a_zone_that_makes_no_sense_is_refused(said):
    with pytest.raises(dp.InvalidParameter, match="zone"):
        dp.Unit("user", **said)


def test_a_date_is_of_no_zone(tmp_path):
    table = pa.table({"user": ["u"], "at": pa.array([date(2026, 1, 1)], pa.date32())})
    with pytest.raises(dp.InvalidParameter, match="must be a timestamp"):
        opened(tmp_path, table, dp.Unit("user", window="day", time="at", zone="Europe/Berlin"), columns={})
