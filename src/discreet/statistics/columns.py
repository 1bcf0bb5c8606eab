"""Columns as people have them: lists, NumPy, pandas, polars and Arrow; none of these is imported unless it is there.

Choosing a reader looks at the type only. Reading happens later, once the answer is paid for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, timedelta
from typing import Any

import numpy as np

from discreet.errors import InvalidParameter
from discreet.mechanisms.column import Column, column_of

__all__ = ["as_column", "reader_for"]

_UNREADABLE = object()  # It is there, has no number and is in no bin.


def as_column(data: Any) -> Column:
    """Read a column of any of the known kinds."""
    return reader_for(data)(data)


def reader_for(data: Any) -> Callable[[Any], Column]:
    """Return what reads this kind of column, or refuse; no value is looked at."""
    for kind in type(data).__mro__:
        reader = _READERS.get((kind.__module__.partition(".")[0], kind.__name__))
        if reader is not None:
            return reader
    if isinstance(data, np.ndarray) and data.ndim == 1:
        return _from_numpy
    if isinstance(data, Column) or (isinstance(data, Sequence) and not isinstance(data, (str, bytes))):
        return column_of
    raise InvalidParameter(
        f"a column must be a list, a one-dimensional NumPy array, a pandas or polars Series or an Arrow array, "
        f"not {type(data).__name__}; of a table, take one column"
    )


def _from_numpy(array: Any) -> Column:
    if isinstance(array, np.ma.MaskedArray):
        return Column(np.asarray(array.data), np.ma.getmaskarray(array))
    return Column(np.asarray(array))


def _from_pandas(series: Any) -> Column:
    if hasattr(series.dtype, "pyarrow_dtype"):
        return _from_arrow(series.array.__arrow_array__())
    kind = getattr(series.dtype, "kind", "O")
    if isinstance(series.dtype, np.dtype):
        return Column(series.to_numpy()) if kind in "biuf" else Column(list(series))
    if kind in "biuf":
        missing = series.isna().to_numpy(dtype=bool)
        return Column(series.to_numpy(dtype=_plain(kind), na_value=0), missing)
    return Column(list(series))


def _from_polars(series: Any) -> Column:
    if series.dtype.is_temporal():
        return column_of(_polars_times(series))
    # NumPy has no whole numbers of 128 bits.
    if not series.dtype.is_numeric() or series.dtype.is_decimal() or "128" in str(series.dtype):
        return column_of(series.to_list())
    missing = series.is_null().to_numpy()
    return Column(series.fill_null(0).to_numpy(), missing)


def _from_arrow(array: Any) -> Column:
    if hasattr(array, "combine_chunks"):
        array = array.combine_chunks()
    if array.type.id not in _arrow_numbers():
        return column_of(_arrow_objects(array))
    missing = array.is_null().to_numpy(zero_copy_only=False)
    return Column(array.fill_null(0).to_numpy(zero_copy_only=False), missing)


def _polars_times(series: Any) -> list[object]:
    """Read dates and durations, of which some are beyond those of Python; asking for these would fail or panic."""
    import polars as pl

    if series.dtype == pl.Time:
        return list(series.to_list())
    low, high = _python_times(series.dtype, is_duration=series.dtype == pl.Duration)
    known = series.to_physical().cast(pl.Int64).is_between(low, high).fill_null(True)
    inside = iter(series.filter(known).to_list())
    return [next(inside) if here else _UNREADABLE for here in known.to_list()]


def _python_times(dtype: Any, *, is_duration: bool) -> tuple[int, int]:
    """Return the first and the last date or duration that Python knows, as polars stores them."""
    ticks = {"ms": 10**3, "us": 10**6, "ns": 10**9}.get(getattr(dtype, "time_unit", ""))
    per_day = 1 if ticks is None else 86400 * ticks  # A date is a whole number of days.
    # A time zone may move a time into another day.
    room = 2 if getattr(dtype, "time_zone", None) else 0
    start = date(1970, 1, 1).toordinal()
    days = (date.min.toordinal() - start + room, date.max.toordinal() - start - room)
    first, last = (timedelta.min.days, timedelta.max.days) if is_duration else days
    return max(first * per_day, -(1 << 63)), min((last + 1) * per_day - 1, (1 << 63) - 1)


def _arrow_objects(array: Any) -> list[object]:
    """Read what is no number; a date beyond Python's or a text that is none must not end in an error."""
    try:
        return list(array.to_pylist())
    except (OverflowError, ValueError):
        return [_arrow_object(scalar) for scalar in array]


def _arrow_object(scalar: Any) -> object:
    try:
        return scalar.as_py()
    except (OverflowError, ValueError):
        return _UNREADABLE


def _arrow_numbers() -> set[int]:
    import pyarrow as pa

    whole = (pa.int8, pa.int16, pa.int32, pa.int64, pa.uint8, pa.uint16, pa.uint32, pa.uint64)
    return {make().id for make in (*whole, pa.float16, pa.float32, pa.float64)}


def _plain(kind: str) -> type[Any]:
    """Return the widest plain type of a kind; it holds every value of a narrower one exactly."""
    kinds: dict[str, type[Any]] = {"b": np.bool_, "i": np.int64, "u": np.uint64, "f": np.float64}
    return kinds[kind]


_READERS: dict[tuple[str, str], Callable[[Any], Column]] = {
    ("pandas", "Series"): _from_pandas,
    ("polars", "Series"): _from_polars,
    ("pyarrow", "Array"): _from_arrow,
    ("pyarrow", "ChunkedArray"): _from_arrow,
}
