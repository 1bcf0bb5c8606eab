"""Columns as people have them: lists, NumPy, pandas, polars and Arrow; none of these is imported unless it is there.

Choosing a reader looks at the type only. Reading happens later, once the answer is paid for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from discreet.errors import InvalidParameter
from discreet.mechanisms.column import Column, column_of

__all__ = ["as_column", "reader_for"]


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
    kind = getattr(series.dtype, "kind", "O")
    if isinstance(series.dtype, np.dtype):
        return Column(series.to_numpy()) if kind in "biuf" else Column(list(series))
    if kind in "biuf":
        missing = series.isna().to_numpy(dtype=bool)
        return Column(series.to_numpy(dtype=_plain(kind), na_value=0), missing)
    return Column(list(series))


def _from_polars(series: Any) -> Column:
    if not series.dtype.is_numeric() or series.dtype.is_decimal():
        return column_of(series.to_list())
    missing = series.is_null().to_numpy()
    return Column(series.fill_null(0).to_numpy(), missing)


def _from_arrow(array: Any) -> Column:
    if hasattr(array, "combine_chunks"):
        array = array.combine_chunks()
    if array.type.id not in _arrow_numbers():
        return column_of(array.to_pylist())
    missing = array.is_null().to_numpy(zero_copy_only=False)
    return Column(array.fill_null(0).to_numpy(zero_copy_only=False), missing)


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
