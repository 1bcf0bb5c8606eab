"""A value has one cell, whatever ran before and whatever type a reader gave its column."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal
from io import BytesIO
from typing import Any

import pandas as pd
import polars as pl
import pytest
from pyarrow import csv

from discreet.frames.column import Column
from discreet.synth.domain.category import Category
from discreet.synth.domain.coding import Coder
from discreet.synth.domain.domain import Domain
from discreet.synth.domain.numeric import Numeric


def test_truth_values_are_not_taken_for_the_numbers_they_equal() -> None:
    assert Category([0, 1], null=True).codes(Column(["1", "true"])).tolist() == [1, 2]
    assert Category([False, True], null=True).codes(Column(["1", "true"])).tolist() == [1, 1]
    assert Category([1, 0], null=True).codes(Column(["true", "0"])).tolist() == [2, 1]


READERS: dict[str, Any] = {
    "pandas": pd.read_csv,
    "polars": lambda file: pl.read_csv(file, try_parse_dates=True),
    "arrow": csv.read_csv,
}
COLUMNS = [
    (["1.5", "2.50", "1.5"], Category(["1.5", "2.5"], other=True), [0, 1, 0]),
    (["0.10", "0.2", "-1e-3"], Category(["0.1", "0.2", "-0.001"], other=True), [0, 1, 2]),
    (["1.0", "0.0", "1.0"], Category([False, True], null=True), [1, 0, 1]),
    (["inf", "1", "-inf"], Category(["inf", "1"], other=True), [0, 1, 2]),
    (["12345678901234567", "2", "01"], Category(["12345678901234567", "2", "1"], other=True), [0, 1, 2]),
    (["2020-01-01 00:00:00", "2020-01-02 01:30:00"], Category(["2020-01-01", "2020-01-02 01:30:00"]), [0, 1]),
    (["True", "false", "True"], Numeric(0, 1, whole=True, null=True), [1, 0, 1]),
    # Exactly between two points of the grid as a text, and just above it as a float.
    (["1.000005", "0.1", "1.000005"], Numeric(0, 10, bins=["1.00001"], null=True), [1, 0, 1]),
    (["08:00:00", "09:30:00", "08:00:00"], Category(["09:30:00", "08:00:00"], other=True), [1, 0, 1]),
]


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(("rows", "declared", "wanted"), COLUMNS)
def test_a_row_that_changes_the_type_of_a_column_changes_no_other_row(
    reader: str, rows: list[str], declared: Category | Numeric, wanted: list[int]
) -> None:
    for more in ([], ["abc"], [""], ["3.25"]):
        file = BytesIO("\n".join(["c,d", *(f"{row},0" for row in [*rows, *more])]).encode())
        assert Coder(Domain({"c": declared})).codes(READERS[reader](file))[: len(rows), 0].tolist() == wanted


def test_numbers_and_times_have_one_form_in_all_types() -> None:
    half = Category(["x", "0.5"])
    assert (
        half.codes(Column([0.5, "5e-1", " .5", Decimal("0.50"), 0.25, "1/2", 10**5000])).tolist() == [1] * 4 + [0] * 3
    )
    stamp = Category(["x", "2020-01-02 03:04:05"])
    naive, aware = datetime(2020, 1, 2, 3, 4, 5), datetime(2020, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert stamp.codes(Column([naive, pd.Timestamp(naive), "2020-01-02T03:04:05", aware])).tolist() == [1, 1, 1, 0]
    noon = Category(["x", "12:00", "2020-01-02"])
    assert noon.codes(Column([time(12), "12:00:00", date(2020, 1, 2), datetime(2020, 1, 2)])).tolist() == [1, 1, 2, 2]
    ends = Category(["x"], null=True)
    assert (
        ends.codes(Column(["9999-12-31T23:59:59-14:00", datetime.max.replace(tzinfo=UTC), "25:61"])).tolist() == [1] * 3
    )
