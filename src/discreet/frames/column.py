"""Columns as people have them (lists, NumPy, pandas, polars, Arrow) and as mechanisms see them: arrays or objects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter

__all__ = ["Column", "Data", "as_column", "column_of", "is_missing", "reader_for"]


@final
@dataclass(frozen=True, slots=True)
class Column:
    """Values with an optional mask of the missing ones. It never prints what it holds."""

    values: NDArray[Any] | Sequence[object] = field(repr=False)
    missing: NDArray[np.bool_] | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.values)

    def objects(self) -> list[object]:
        """Return the rows as Python objects, missing ones as None."""
        values = self.values.tolist() if isinstance(self.values, np.ndarray) else list(self.values)
        if self.missing is None:
            return values
        return [None if gone else value for value, gone in zip(values, self.missing.tolist(), strict=True)]


Data: TypeAlias = Column | NDArray[Any] | Sequence[object]


def column_of(data: Data) -> Column:
    """Take a list, a tuple or a one-dimensional array as a column; text and tables are refused."""
    if isinstance(data, Column):
        return data
    if isinstance(data, np.ndarray):
        if data.ndim != 1:
            raise InvalidParameter("a column must have one dimension")
        if isinstance(data, np.ma.MaskedArray):
            # Left as it is, what stands under the mask would neither be clamped nor counted.
            return Column(np.asarray(data.data), np.ma.getmaskarray(data))
        return Column(data)
    if isinstance(data, (str, bytes)) or not isinstance(data, Sequence):
        raise InvalidParameter(f"a column must be a sequence or a one-dimensional array, not {_named(data)}")
    return Column(_packed(data))


def _packed(rows: Sequence[object]) -> NDArray[Any] | Sequence[object]:
    """Pack rows of one plain type into an array that holds them exactly; leave all others as they are."""
    kinds = set(map(type, rows))
    if kinds <= {float, type(None)}:
        return np.array(rows, dtype=np.float64)
    if kinds == {bool}:
        return np.array(rows, dtype=np.bool_)
    if kinds == {int}:
        try:
            return np.array(rows, dtype=np.int64)
        except OverflowError:
            return rows
    return rows


def is_missing(value: object) -> bool:
    """Tell whether a single value stands for nothing: None, NaN, NaT, NA."""
    if value is None:
        return True
    if isinstance(value, (float, np.floating)):
        return bool(np.isnan(value))
    if isinstance(value, Decimal):
        return value.is_nan()
    # The marks of pandas, told by name so that pandas need not be there.
    return type(value).__name__ in ("NAType", "NaTType") or (
        isinstance(value, (np.datetime64, np.timedelta64)) and bool(np.isnat(value))
    )


def _named(value: object) -> str:
    return type(value).__name__


# --- readers: Columns of other libraries, none of which is imported unless it is there. ---
#
# Choosing a reader looks at the type only. Reading happens later, once the answer is paid for.


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
