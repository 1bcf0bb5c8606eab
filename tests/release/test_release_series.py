"""Series of totals so far: whose price can be told, and in which nobody counts more often than was paid for."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from plan_texts import plan_in

from discreet.errors import InvalidParameter, Refused
from discreet.ledger import look
from discreet.release import check, price, publish, read_release_plan
from discreet.release.cumulative.advance import next_charge, opened_state, state_of
from discreet.release.plan import Period, ReleasePlan

JANUARY = Period(label="2026-01", first=date(2026, 1, 1), end=date(2026, 2, 1))
WARDS = """\
[[publish]]
name = "wards"
sql = "SELECT ward, COUNT(*) AS stays FROM stays GROUP BY ward"
delta = 1e-8
share = 0.1
"""
SERIES = """\
[[running]]
name = "so_far"
from = "stays"
day = "admitted"
first = 2026-01-01
days = 31
rho = 0.1
"""


def plan(folder: Path) -> ReleasePlan:
    return plan_in(folder, ("epsilon = 1\ndelta = 1e-7\n", "epsilon = 1\n"), (WARDS, SERIES))


@pytest.mark.parametrize("asked", [price, check])
def test_a_plan_whose_series_has_no_epsilon_is_refused_with_its_line(tmp_path: Path, asked: object) -> None:
    with pytest.raises(InvalidParameter, match=r"plan.toml, line \d+.*needs the delta of \[release\]"):
        asked(plan(tmp_path))  # type: ignore[operator]


def test_it_is_refused_before_anything_is_charged(tmp_path: Path) -> None:
    known = plan(tmp_path)
    for spend in (lambda: next_charge(known, JANUARY), lambda: publish(known, principal="ana", period=JANUARY)):
        with pytest.raises(InvalidParameter, match=r"needs the delta of \[release\]"):
            spend()
    assert not Path(known.policy.ledger).exists()


BOUNDED = """\
name = "stays"
title = "Stays"
dataset = "hospital"
ledger = "hospital.ledger"
[unit]
column = "UNIT"
[budget]
epsilon = 40
delta = 1e-5
[tables.stays]
source = "stays.parquet"
[tables.stays.columns]
admitted = { low = 2020-01-01, high = LAST }
[release]
epsilon = 1
delta = 1e-7
split = "even"
[schedule]
every = "month"
first = 2026-01-01
column = "admitted"
[[publish]]
name = "all"
sql = "SELECT COUNT(*) AS stays FROM stays"
[[running]]
name = "so_far"
from = "stays"
day = "admitted"
first = 2026-01-01
days = 90
epsilon = 1
"""
UNITS = {"row": "", "patient": "person_day = true\n"}


def bounded(folder: Path, unit: str, last: str, more: str = "") -> ReleasePlan:
    """Forty rows that are dated the first of March, whatever the bounds are."""
    rows = {"patient": list(range(40)), "admitted": [date(2026, 3, 1)] * 40}
    pq.write_table(pa.table(rows), folder / "stays.parquet")
    path = folder / "plan.toml"
    path.write_text(BOUNDED.replace("UNIT", unit).replace("LAST", last) + more)
    return read_release_plan(path)


@pytest.mark.parametrize("unit", UNITS)
def test_moving_the_bounds_of_days_counts_no_row_twice(tmp_path: Path, unit: str) -> None:
    """A row beyond the last day is clamped to it. With later bounds it would be counted on its own day too."""
    first = bounded(tmp_path, unit, "2026-01-31", UNITS[unit])
    publish(first, principal="ana", period=first.schedule.period(0))
    later = bounded(tmp_path, unit, "2026-12-31", UNITS[unit])
    with pytest.raises(Refused, match="was begun with another bounds"):
        publish(later, principal="ana", period=later.schedule.period(2))
    # Nothing was charged for the tables either: they could never be published.
    assert [entry.kind for entry in look(later.policy.ledger).entries("hospital")].count("charge") == 1 + (
        unit == "row"
    )


def test_people_who_are_known_again_may_have_later_bounds(tmp_path: Path) -> None:
    for number, last in ((0, "2026-01-31"), (2, "2026-12-31")):
        plan = bounded(tmp_path, "patient", last)
        publish(plan, principal="ana", period=plan.schedule.period(number))
    with opened_state(state_of(plan, plan.running[0]), may_begin=False) as state:
        assert [count for count, _ in state.days() if count] == [40]
