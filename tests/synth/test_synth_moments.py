"""No moment of one row makes a fit fail or moves another row: those beyond Python's calendar count as missing."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pandas as pd
import pytest

import discreet as dp
from discreet.adaptive.bounded_memberships import kept_rows
from discreet.frames.column import Column, as_column
from discreet.synth.domain.category import Category
from discreet.synth.domain.numeric import Numeric

FAR = pd.Series(np.array(["2020-01-02", "99999-01-01", "-5000-01-01", "NaT"], "datetime64[s]"))
KINDS: dict[str, Any] = {
    "naive": FAR,
    "universal": FAR.dt.tz_localize("UTC"),
    "zone": FAR.dt.tz_localize("Asia/Tokyo"),
    "objects": pd.Series(list(FAR), dtype=object),
    "list": list(FAR.dt.tz_localize("Asia/Tokyo")),
}
DAYS = Numeric.dates(date(2020, 1, 1), date(2020, 1, 31), bins=31, null=True)


@pytest.mark.parametrize("kind", KINDS)
def test_a_moment_beyond_the_calendar_is_missing_and_no_error(kind: str) -> None:
    column = as_column(KINDS[kind])
    assert DAYS.codes(column).tolist() == [0 if kind in ("zone", "list") else 1, 31, 31, 31]
    assert Category(["2020-01-02"], null=True).codes(column).tolist()[1:] == [1, 1, 1]
    assert kept_rows(column, 1).tolist() == [0]


def test_one_far_row_does_not_make_a_fit_fail() -> None:
    table = {"day": KINDS["naive"], "who": KINDS["zone"]}
    asked: dict[str, Any] = {"epsilon": 1, "delta": 1e-6, "unit": "who", "rows_per_unit": 1, "progress": False}
    assert len(dp.synthesize(table, "independent", domain={"day": DAYS}, **asked).sample(5)) == 5


def test_a_day_is_the_same_in_all_types_that_readers_keep_it_in() -> None:
    west = datetime(2020, 1, 2, 23, tzinfo=timezone(timedelta(hours=-5)))
    texts = ["2020-01-02T23:00:00-05:00", "2020-01-03T04:00:00Z", "2020-01-03", "2020-01-03 04:00"]
    objects = [west, west.astimezone(UTC), pd.Timestamp(west), date(2020, 1, 3)]
    assert DAYS.codes(Column([*texts, *objects])).tolist() == [2] * 8
    # As a number it is no date, so as a text it is none either.
    assert DAYS.codes(Column(["20200103", "08:00:00", "2020-W01-3"])).tolist() == [31] * 3
    assert DAYS.codes(Column(np.array([20200103, 8, 3]))).tolist() == [31] * 3
