"""An error that only one row causes tells that the row is there; its message must not quote it either."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import discreet as dp
from discreet.errors import InvalidParameter
from discreet.exact import exact
from discreet.frames.column import as_column
from discreet.mechanisms.grid import exact_number

_SPENT: dict[str, Any] = {"relation": dp.Relation.ADD_REMOVE, "epsilon": 1}


@pytest.mark.parametrize("text", ["1.5/3", ".5/2", "1./2", "-0.1/7"])
def test_a_decimal_over_a_number_is_no_number_and_no_error(text: str) -> None:
    assert exact_number(text) is None
    dp.sum([text], bounds=(0, 10), **_SPENT)
    with pytest.raises(InvalidParameter) as caught:
        exact(text, name="epsilon")
    assert text not in str(caught.value)


@pytest.mark.parametrize("text", ["1", "-2.", ".5", "3e-2", "4.e1", "5/6", " +7/8 "])
def test_numbers_in_text_are_still_read(text: str) -> None:
    assert exact_number(text) is not None


@pytest.mark.parametrize("row", [None, 5, 1.5, float("nan"), object(), np.array(3)])
def test_what_is_no_row_counts_as_zero_in_a_vector_mean(row: object) -> None:
    mechanism = dp.mechanisms.VectorMean(
        bound=4, step=1, dimension=2, relation=dp.Relation.ADD_REMOVE, noise=dp.mechanisms.LaplaceNoise(epsilon=1)
    )
    assert mechanism.clip([[1, 2], row]).tolist() == [[1, 2], [0, 0]]


@pytest.mark.parametrize("value", [np.timedelta64(5, "s"), np.timedelta64("NaT")])
def test_a_duration_of_numpy_is_no_number(value: object) -> None:
    assert exact_number(value) is None
    rows: Any = [value]
    assert dp.mechanisms.RandomizedResponse.for_epsilon(1).respond_all(rows)[0] in (0, 1)


def test_a_huge_value_does_not_even_warn() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dp.histogram(np.array([np.longdouble(10) ** 1000]), edges=[0, 1], **_SPENT)


def test_edges_that_are_no_floats_are_refused_before_anything_is_paid() -> None:
    class Untouched:
        def charge(
            self,
            event: object,
            *,
            relation: object,
            purpose: str,
            unit: str = "row",
            idempotency_key: str | None = None,
        ) -> None:
            raise AssertionError("charged for a refused request")

    with pytest.raises(InvalidParameter):
        dp.histogram([1], edges=[0, "1e400"], session=Untouched(), **_SPENT)


def _arrow_columns() -> list[Any]:
    pa = import_module("pyarrow")
    offsets = pa.array([0, 1, 3], pa.int32()).buffers()[1]
    return [
        pa.array([1, 2**60], pa.timestamp("us")),
        pa.array([1, 2**30], pa.date32()),
        pa.array([1, 2**62], pa.duration("s")),
        pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"a\xff\xfe")]),
    ]


@pytest.mark.parametrize("which", range(4))
def test_what_python_cannot_hold_in_an_arrow_column_is_missing(which: int) -> None:
    _check_second_row_is_missing(_arrow_columns()[which])


@pytest.mark.parametrize("kind", ["Date", "Datetime", "Duration"])
def test_what_python_cannot_hold_in_a_polars_column_is_missing(kind: str) -> None:
    pl = import_module("polars")
    made = {"Date": pl.Date, "Datetime": pl.Datetime("us"), "Duration": pl.Duration("ms")}[kind]
    far = 2**30 if kind == "Date" else 2**62
    _check_second_row_is_missing(pl.Series([1, far], dtype=pl.Int32 if kind == "Date" else pl.Int64).cast(made))


def test_what_python_cannot_hold_in_an_arrow_column_of_pandas_is_missing() -> None:
    pd, pa = import_module("pandas"), import_module("pyarrow")
    kind = pa.timestamp("s")
    _check_second_row_is_missing(pd.Series(pa.array([1, 2**62], kind), dtype=pd.ArrowDtype(kind)))


def _check_second_row_is_missing(column: Any) -> None:
    first, second = as_column(column).objects()
    assert second is None
    assert first is not None
    dp.count(column, **_SPENT)
    dp.histogram(column, bins=["a", None], **_SPENT)
    dp.sum(column, bounds=(0, 1), **_SPENT)


def test_a_missing_truth_in_an_arrow_column_of_pandas_is_no_error() -> None:
    pd = import_module("pandas")
    column = pd.Series([True, False, None], dtype="bool[pyarrow]")
    assert as_column(column).objects() == [True, False, None]
