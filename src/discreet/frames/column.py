"""Columns as people have them (lists, NumPy, pandas, polars, Arrow) and as mechanisms see them: arrays or objects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.frames.arrow import is_text, is_time, is_uuid, moments, safe_texts, uuid_texts
from discreet.frames.cells import in_calendar, python_times

__all__ = ["Column", "Data", "as_column", "column_of", "pandas_moments", "reader_for", "taken"]


@final
@dataclass(frozen=True, slots=True)
class Column:
    """Values with an optional mask of the missing ones. It never prints what it holds.

    Args:
        values: The values, an array or a sequence. They are private.
        missing: True where a value is missing, an array of the same length; none are if not said.
    """

    values: NDArray[Any] | Sequence[object] = field(repr=False)
    missing: NDArray[np.bool_] | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.values)

    def objects(self) -> list[object]:
        """Return the rows as Python objects, missing ones as None."""
        values = _rows(self.values) if isinstance(self.values, np.ndarray) else list(self.values)
        if self.missing is None:
            return values
        return [None if gone else value for value, gone in zip(values, self.missing.tolist(), strict=True)]


def _rows(values: NDArray[Any]) -> list[object]:
    return python_times(values) if values.dtype.kind in "mM" else list(values.tolist())


Data: TypeAlias = Column | NDArray[Any] | Sequence[object]


def column_of(data: Data) -> Column:
    """Take a list, a tuple or a one-dimensional array as a column; text and tables are refused."""
    if isinstance(data, Column):
        return data
    if isinstance(data, np.ndarray):
        if data.ndim != 1:
            raise InvalidParameter("a column must have one dimension")
        # Left as it is, what stands under a mask would neither be clamped nor counted.
        missing = np.ma.getmaskarray(data) if isinstance(data, np.ma.MaskedArray) else None
        values = np.asarray(data)
        return Column(in_calendar(values) if values.dtype.kind in "mM" else values, missing)
    if isinstance(data, (str, bytes)) or not isinstance(data, Sequence):
        raise InvalidParameter(f"a column must be a sequence or a one-dimensional array, not {type(data).__name__}")
    return Column(_packed(data))


def taken(column: Column, rows: Any) -> Column:
    """Return some rows of a column: all of them, or those at some places."""
    if isinstance(rows, slice):
        return column
    values = column.values[rows] if isinstance(column.values, np.ndarray) else [column.values[row] for row in rows]
    return Column(values, None if column.missing is None else column.missing[rows])


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


# --- readers: Columns of other libraries, none of which is imported unless it is there. ---
#
# Choosing a reader looks at the type only. Reading happens later, once the answer is paid for.


def as_column(data: Any) -> Column:
    """Read a column of any of the known kinds.

    Args:
        data: A list, an array, or a column of pandas, polars or Arrow. It is private.

    Returns:
        The values with a mask of the missing ones. It never prints them.

    Raises:
        InvalidParameter: If this is no column of a known kind.

    Examples:
        >>> dp.statistics.as_column([1, None, 3]).objects()
        [1, None, 3]
    """
    return reader_for(data)(data)


def reader_for(data: Any) -> Callable[[Any], Column]:
    """Return what reads this kind of column, or refuse; no value is looked at."""
    for kind in type(data).__mro__:
        reader = _READERS.get((kind.__module__.partition(".")[0], kind.__name__))
        if reader is not None:
            return reader
    rows = isinstance(data, (Sequence, Column)) and not isinstance(data, (str, bytes))
    if data.ndim == 1 if isinstance(data, np.ndarray) else rows:
        return column_of
    raise InvalidParameter(
        f"a column must be a list, a one-dimensional NumPy array, a pandas or polars Series or an Arrow array, "
        f"not {type(data).__name__}; of a table, take one column"
    )


def _from_pandas(series: Any) -> Column:
    dtype, kind = series.dtype, getattr(series.dtype, "kind", "O")
    if hasattr(dtype, "pyarrow_dtype"):
        return _from_arrow(series.array.__arrow_array__())
    if hasattr(dtype, "categories"):
        return _labelled(as_column(dtype.categories.to_series()), series.cat.codes.to_numpy())
    if kind in "mM":
        return _of_times(pandas_moments(series), is_universal=hasattr(dtype, "tz"))
    if kind not in "biufc":
        return Column(list(series))
    if isinstance(dtype, np.dtype):
        return Column(series.to_numpy())
    return Column(series.to_numpy(dtype=_WIDEST[kind], na_value=0), series.isna().to_numpy(dtype=bool))


def pandas_moments(series: Any) -> NDArray[Any]:
    """Return the moments, in UTC, or the durations of a pandas column as NumPy has them."""
    plain = series.dt.tz_convert("UTC").dt.tz_localize(None) if hasattr(series.dtype, "tz") else series
    return in_calendar(plain.to_numpy())


def _from_polars(series: Any) -> Column:
    import polars as pl

    # Neither Arrow nor NumPy has whole numbers of 128 bits.
    if series.dtype == pl.Object or "128" in str(series.dtype):
        return Column(series.to_list())
    return _from_arrow(series.to_arrow())


def _from_arrow(array: Any) -> Column:
    import pyarrow as pa

    whole, types = array.combine_chunks() if hasattr(array, "combine_chunks") else array, pa.types
    kind = whole.type
    if types.is_dictionary(kind):
        codes = whole.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
        return _labelled(_from_arrow(whole.dictionary), codes)
    if is_time(kind):
        return _of_times(moments(whole), is_universal=bool(getattr(kind, "tz", None)))
    if is_text(kind):
        return Column([row for piece in safe_texts(whole) for row in piece.to_pylist()])
    if is_uuid(kind):
        return Column(uuid_texts(whole).to_pylist())
    if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind):
        missing = whole.is_null().to_numpy(zero_copy_only=False)
        return Column(whole.fill_null(pa.scalar(0).cast(kind)).to_numpy(zero_copy_only=False), missing)
    return Column(_arrow_objects(whole))


def _labelled(labels: Column, codes: NDArray[Any]) -> Column:
    """Return the label of each code; the last one, -1, is missing."""
    names = [*labels.objects(), None]
    return Column([names[code] for code in codes.tolist()])


def _of_times(times: NDArray[Any], *, is_universal: bool) -> Column:
    """Take times without a zone as an array, and those of one as moments in UTC, which is always known."""
    if not is_universal:
        return Column(times)
    return Column([_universal(moment) for moment in python_times(times)])


def _universal(moment: object) -> object:
    if isinstance(moment, datetime):
        return moment.replace(tzinfo=UTC)
    return None if moment is None else f"{moment}+00:00"


def _arrow_objects(array: Any) -> list[object]:
    """Read what is neither number nor time nor text; what Python cannot hold must not end in an error."""
    try:
        return list(array.to_pylist())
    except (OverflowError, ValueError):
        return [_arrow_object(scalar) for scalar in array]


def _arrow_object(scalar: Any) -> object:
    try:
        return scalar.as_py()
    except (OverflowError, ValueError):
        return None


_WIDEST = {"b": np.bool_, "i": np.int64, "u": np.uint64, "f": np.float64}  # Holds every value of a narrower one.
_READERS: dict[tuple[str, str], Callable[[Any], Column]] = {
    ("pandas", "Series"): _from_pandas,
    ("polars", "Series"): _from_polars,
    ("pyarrow", "Array"): _from_arrow,
    ("pyarrow", "ChunkedArray"): _from_arrow,
}
