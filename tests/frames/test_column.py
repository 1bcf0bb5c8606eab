"""Columns of every kind are read alike, and nothing is read to find out which kind it is."""

from __future__ import annotations

import datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from discreet.errors import InvalidParameter
from discreet.frames.column import Column, reader_for
from discreet.mechanisms import Count, Grid, Histogram, LaplaceNoise, Sum
from discreet.privacy.relation import Relation
from discreet.statistics import as_column

GRID = Grid(low=Fraction(-10), high=Fraction(10), step=Fraction(1, 2), default=Fraction(5))
WHOLE, REAL = [3, None, -2, 100], [2.5, None, -0.0, float("nan")]

NUMBERS: dict[str, Any] = {
    "list": WHOLE,
    "tuple": tuple(WHOLE),
    "numpy object": np.array(WHOLE, dtype=object),
    "numpy masked": np.ma.masked_array([3, 0, -2, 100], mask=[False, True, False, False]),
    "pandas float": pd.Series([3, None, -2, 100]),
    "pandas Int64": pd.Series(WHOLE, dtype="Int64"),
    "pandas int8": pd.Series(WHOLE, dtype="Int8"),
    "pandas Float32": pd.Series(WHOLE, dtype="Float32"),
    "pandas arrow": pd.Series(WHOLE, dtype="int64[pyarrow]"),
    "pandas object": pd.Series(WHOLE, dtype=object),
    "polars": pl.Series(WHOLE),
    "polars Int8": pl.Series(WHOLE, dtype=pl.Int8),
    "polars Float32": pl.Series(WHOLE, dtype=pl.Float32),
    "polars Decimal": pl.Series([None if v is None else Decimal(v) for v in WHOLE]),
    "arrow": pa.array(WHOLE),
    "arrow float32": pa.array(WHOLE, type=pa.float32()),
    "arrow decimal": pa.array([None if v is None else Decimal(v) for v in WHOLE]),
    "arrow chunked": pa.chunked_array([[3, None], [-2, 100]]),
    "arrow chunks of nothing": pa.chunked_array([[3, None, -2], [], [100]], type=pa.int64()),
    "text": ["3", "", "-2", "1e2"],
    "pandas text": pd.Series(["3", None, "-2", "100"]),
    "polars text": pl.Series(["3", None, "-2", "100"]),
    "arrow text": pa.array(["3", None, "-2", "100"]),
    "pandas categorical": pd.Series(["3", None, "-2", "100"], dtype="category"),
}


@pytest.mark.parametrize("kind", NUMBERS)
def test_every_kind_of_column_gives_the_same_indices(kind: str) -> None:
    assert GRID.indices(as_column(NUMBERS[kind])).tolist() == [6, 10, -4, 20]


@pytest.mark.parametrize(
    "column",
    [REAL, np.array([2.5, np.nan, -0.0, np.nan]), pd.Series(REAL), pl.Series(REAL, strict=False), pa.array(REAL),
     pd.Series(REAL, dtype="float64[pyarrow]")],
    ids=["list", "numpy", "pandas", "polars", "arrow", "pandas arrow"],
)  # fmt: skip
def test_missing_and_not_a_number_are_the_same(column: Any) -> None:
    assert GRID.indices(as_column(column)).tolist() == [5, 10, 0, 10]
    count = Count(relation=Relation.ADD_REMOVE, noise=LaplaceNoise(epsilon=Fraction(1)))
    assert count.measurements[0].query.evaluate(as_column(column)) == (2,)


@pytest.mark.parametrize(
    "column",
    [[True, None, False, True], pd.Series([True, None, False, True], dtype="boolean"),
     pl.Series([True, None, False, True]), pa.array([True, None, False, True]),
     pd.Series([True, None, False, True], dtype=object)],
    ids=["list", "pandas", "polars", "arrow", "pandas object"],
)  # fmt: skip
def test_conditions_are_counted_where_they_hold(column: Any) -> None:
    count = Count(relation=Relation.ADD_REMOVE, noise=LaplaceNoise(epsilon=Fraction(1)))
    assert count.measurements[0].query.evaluate(as_column(column)) == (2,)
    total = Sum(grid=GRID, relation=Relation.ADD_REMOVE, noise=LaplaceNoise(epsilon=Fraction(1)))
    assert total.measurements[0].query.evaluate(as_column(column)) == (2 + 10 + 0 + 2,)


@pytest.mark.parametrize(
    "column",
    [["a", None, "b", "a"], np.array(["a", "", "b", "a"]), pd.Series(["a", None, "b", "a"]),
     pd.Series(["a", None, "b", "a"], dtype="category"), pl.Series(["a", None, "b", "a"]),
     pl.Series(["a", None, "b", "a"], dtype=pl.Categorical), pa.array(["a", None, "b", "a"]),
     pa.array(["a", None, "b", "a"]).dictionary_encode()],
    ids=["list", "numpy", "pandas", "pandas categorical", "polars", "polars categorical", "arrow", "arrow dictionary"],
)  # fmt: skip
def test_labels_are_counted_alike(column: Any) -> None:
    histogram = Histogram(bins=("a", "b"), relation=Relation.ADD_REMOVE, noise=LaplaceNoise(epsilon=Fraction(1)))
    assert histogram.measurements[0].query.evaluate(as_column(column)) == (2, 1)


@pytest.mark.parametrize(
    "column",
    [pd.Series(pd.to_datetime(["2020-01-01", None])), pl.Series([datetime.date(2020, 1, 1), None]),
     pa.array([datetime.date(2020, 1, 1), None]), np.array(["2020-01-01", "NaT"], "M8[D]")],
    ids=["pandas", "polars", "arrow", "numpy"],
)  # fmt: skip
def test_dates_are_no_numbers_but_count(column: Any) -> None:
    assert GRID.indices(as_column(column)).tolist() == [10, 10]
    count = Count(relation=Relation.ADD_REMOVE, noise=LaplaceNoise(epsilon=Fraction(1)))
    assert count.measurements[0].query.evaluate(as_column(column)) == (1,)


@pytest.mark.parametrize(
    "thing",
    ["text", b"text", 5, None, {1: 2}, {1, 2}, np.zeros((2, 2)), np.float64(3), pd.DataFrame({"a": [1]}),
     pl.DataFrame({"a": [1]}), pa.table({"a": [1]}), iter([1]), (x for x in [1]), object()],
    ids=lambda thing: type(thing).__name__,
)  # fmt: skip
def test_what_is_no_column_is_refused(thing: Any) -> None:
    with pytest.raises(InvalidParameter, match="column"):
        reader_for(thing)


def test_choosing_a_reader_looks_at_no_value() -> None:
    class Guarded(list[int]):
        def __getitem__(self, index: Any) -> Any:
            raise AssertionError("read")

        def __iter__(self) -> Any:
            raise AssertionError("read")

        def __len__(self) -> int:
            raise AssertionError("counted")

    reader_for(Guarded([1, 2]))


def test_a_column_prints_nothing_of_what_it_holds() -> None:
    assert "1234567" not in repr(Column([1234567]))
    assert "1234567" not in str(as_column(np.array([1234567])))
