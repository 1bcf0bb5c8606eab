"""Periods follow each other without gaps and without overlap, and each has a name of its own."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import InvalidParameter
from discreet.release.plan import Every, Schedule

REPEATED = [every for every in Every if every is not Every.ONCE]
FIRSTS = st.dates(date(1990, 1, 1), date(2060, 12, 31)).filter(lambda day: day.day <= 28)


@given(every=st.sampled_from(REPEATED), first=FIRSTS, number=st.integers(0, 600))
def test_periods_follow_each_other_for_all_schedules(every, first, number):
    schedule = Schedule(every=every, first=first)
    one, following = schedule.period(number), schedule.period(number + 1)
    assert one.end == following.first
    assert one.label != following.label
    assert one.first < one.end


@given(every=st.sampled_from(REPEATED), first=FIRSTS, days=st.integers(0, 5000))
def test_a_day_is_in_the_period_that_contains_it_for_all_days(every, first, days):
    schedule, day = Schedule(every=every, first=first), first + timedelta(days=days)
    found = schedule.containing(day)
    assert found.first <= day < found.end
    ended = schedule.until(day)
    assert all(period.end <= day for period in ended)
    assert (ended[-1].end if ended else first) == found.first


@given(every=st.sampled_from(REPEATED), first=FIRSTS)
def test_no_two_periods_share_a_label_for_all_schedules(every, first):
    schedule = Schedule(every=every, first=first)
    assert len({schedule.period(number).label for number in range(120)}) == 120


@pytest.mark.parametrize(
    ("every", "first", "label"),
    [
        (Every.MONTH, date(2026, 1, 1), "2026-03"),
        (Every.QUARTER, date(2026, 1, 1), "2026-Q3"),
        (Every.QUARTER, date(2026, 2, 1), "2026-08"),
        (Every.YEAR, date(2026, 1, 1), "2028"),
        (Every.YEAR, date(2026, 4, 1), "2028-04"),
        (Every.WEEK, date(2026, 1, 5), "2026-01-19"),
        (Every.DAY, date(2026, 1, 1), "2026-01-03"),
        (Every.MONTH, date(2026, 1, 15), "2026-03-15"),
    ],
)
def test_the_third_period_is_called(every, first, label):
    assert Schedule(every=every, first=first).period(2).label == label


def test_a_plan_that_releases_once_has_one_period():
    schedule = Schedule()
    assert schedule.period(0).label == schedule.containing(date(2026, 1, 1)).label == "once"
    assert schedule.until(date(2026, 1, 1)) == (schedule.period(0),)
    with pytest.raises(InvalidParameter, match="once"):
        schedule.period(1)


@pytest.mark.parametrize(
    "said",
    [
        {"every": Every.MONTH},
        {"first": date(2026, 1, 1)},
        {"column": "admitted"},
        {"every": Every.MONTH, "first": date(2026, 1, 31)},
    ],
)
def test_a_schedule_that_is_not_one_is_refused(said):
    with pytest.raises(InvalidParameter):
        Schedule(**said)


def test_a_day_before_the_first_period_is_refused():
    with pytest.raises(InvalidParameter, match="begins on 2026-01-01"):
        Schedule(every=Every.MONTH, first=date(2026, 1, 1)).containing(date(2025, 12, 31))
