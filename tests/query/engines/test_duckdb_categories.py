"""Whole numbers that are in no list of categories are in no group, whatever type they are stored in."""

from __future__ import annotations

import pyarrow as pa
import pytest

import discreet as dp

STORED = [pa.int8(), pa.int64(), pa.uint64(), pa.float64(), pa.decimal128(5, 0), pa.string()]


@pytest.mark.parametrize("stored", STORED, ids=str)
def test_a_number_beyond_the_categories_is_in_no_group(stored):
    numbers = [1] * 40 + [2] * 30 + [3] * 500 + [0] * 700 + [None] * 5
    column = pa.array([None if n is None else str(n) for n in numbers]).cast(stored)
    columns = {"rooms": dp.categories([1, 2])}
    with dp.Session(
        {"homes": pa.table({"rooms": column})},
        unit="row",
        budget=dp.Budget(epsilon=100),
        ledger="memory",
        dataset="homes",
        principal="me",
        columns=columns,
    ) as session:
        table = session.sql("SELECT rooms, COUNT(*) AS n FROM homes GROUP BY rooms", epsilon=40).release()
    assert [(row["rooms"], row["n"].value) for row in table] == [(1, 40), (2, 30)]
