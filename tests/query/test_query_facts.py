"""Bounds that are derived from bounds hold for every value in between."""

from __future__ import annotations

from datetime import datetime, timedelta

import pyarrow as pa
import pytest
from review_sql import ROW, planned

import discreet as dp
from discreet.query.functions.constants import add_months
from discreet.schema.columns import time_number

ENDS = [
    (datetime(2021, 1, 30, 23), datetime(2021, 1, 31, 1)),
    (datetime(2024, 1, 28, 23, 59), datetime(2024, 3, 1)),
    (datetime(2021, 3, 28, 12), datetime(2021, 3, 31, 6)),
]


@pytest.mark.parametrize("months", [1, -1, 11, 12])
@pytest.mark.parametrize("ends", ENDS, ids=str)
def test_moments_moved_by_months_stay_within_their_bounds(ends: tuple[datetime, datetime], months: int) -> None:
    """Days that a month lacks become its last, so that moving is not monotone in the time of day."""
    first, last = ends
    tables = {"t": pa.table({"at": pa.array([first], pa.timestamp("us"))})}
    sql = f"SELECT MEDIAN(at + INTERVAL {months} MONTH) AS m FROM t"
    argument = planned(sql, tables, unit=ROW, columns={"at": dp.between(first, last)}).question.measures[0].argument
    assert argument is not None
    low, high = argument.facts.low, argument.facts.high
    assert low is not None
    assert high is not None
    moments = [first + timedelta(minutes=30) * step for step in range((last - first) // timedelta(minutes=30) + 1)]
    moved = [add_months(moment, months) for moment in moments]
    assert all(moment is not None and low <= time_number(moment) <= high for moment in moved)
