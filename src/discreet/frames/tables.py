"""Tables as people have them (pandas, polars, Arrow, NumPy): the names of their columns, the columns, and all as Arrow.

Names and types are public and may be looked at before payment. A value is read only once it is paid for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from discreet.frames.arrow import arrow_times, safe
from discreet.frames.cells import cell_text
from discreet.frames.column import Column, as_column, pandas_moments

__all__ = ["arrow_column", "arrow_schema", "arrow_table", "column_names", "is_table", "table_columns"]

_Kind = tuple[Callable[[Any], Any], Callable[[Any], Any], Callable[[Any], Any]]
_TABLES: dict[tuple[str, str], _Kind] = {  # names, columns, the same without rows
    ("pandas", "DataFrame"): (
        lambda table: table.columns,
        lambda table: [table.iloc[:, place] for place in range(table.shape[1])],
        lambda table: table.iloc[:0],
    ),
    ("polars", "DataFrame"): (
        lambda table: table.columns,
        lambda table: table.get_columns(),
        lambda table: table.clear(),
    ),
    **dict.fromkeys(
        [("pyarrow", "Table"), ("pyarrow", "RecordBatch")],
        (lambda table: table.schema.names, lambda table: table.columns, lambda table: table.slice(0, 0)),
    ),
}
_SINGLE, _DOUBLE = 4, 8  # bytes


def is_table(data: Any) -> bool:
    """Tell whether it is a table of pandas, polars or Arrow."""
    return _kind(data) is not None


def column_names(table: Any) -> tuple[Any, ...] | None:
    """Return the names of the columns of a table of pandas, polars or Arrow; None where there are none."""
    kind = _kind(table)
    return None if kind is None else tuple(kind[0](table))


def table_columns(table: Any) -> Sequence[Any]:
    """Split a table, or an array of two dimensions, into columns without looking at values."""
    kind = _kind(table)
    if kind is not None:
        return list(kind[1](table))
    values = np.ma.asarray(table) if isinstance(table, np.ma.MaskedArray) else np.asarray(table)
    return [values[:, column] for column in range(values.shape[1])]


def arrow_table(table: Any) -> Any:
    """Return the columns of a table that can be read, each in its safe type. This is private."""
    import pyarrow as pa

    named = zip(column_names(table) or (), table_columns(table), strict=True)
    columns = {_name(name): arrow_column(column) for name, column in named}
    return pa.table({name: column for name, column in columns.items() if column is not None})


def arrow_schema(table: Any) -> Any:
    """Return what the schema of `arrow_table` is, by the types of the columns alone."""
    kind = _kind(table)
    assert kind is not None
    return arrow_table(kind[2](table)).schema


def arrow_column(data: Any) -> Any:
    """Return a column in its safe Arrow type, objects as texts; None if columns of its type are left out."""
    kind = type(data).__module__.partition(".")[0]
    if kind == "pyarrow":
        return safe(data)
    if kind == "polars":
        return _from_polars(data)
    if kind == "pandas":
        return _from_pandas(data)
    # A list is not packed by what is in it: its type must not depend on its rows.
    return _of_column(as_column(data) if isinstance(data, (np.ndarray, Column)) else Column(data))


def _kind(table: Any) -> _Kind | None:
    homes = ((kind.__module__.partition(".")[0], kind.__name__) for kind in type(table).__mro__)
    return next((_TABLES[home] for home in homes if home in _TABLES), None)


def _name(name: object) -> str:
    return name if isinstance(name, str) else repr(name) if isinstance(name, (int, float, tuple)) else str(name)


def _from_polars(series: Any) -> Any:
    import polars as pl

    dtype = series.dtype
    if dtype == pl.Object:
        return _texts(series.to_list())
    if dtype.is_nested() or dtype in (pl.Binary, pl.Time, pl.Duration, pl.Unknown):
        return None
    if dtype in (pl.Categorical, pl.Enum):
        return safe(series.cast(pl.String).to_arrow())
    return safe((series.cast(pl.Int64, strict=False) if "128" in str(dtype) else series).to_arrow())


def _from_pandas(series: Any) -> Any:
    import pandas as pd
    import pyarrow as pa

    dtype = series.dtype
    if hasattr(dtype, "pyarrow_dtype"):
        return safe(series.array.__arrow_array__())
    if isinstance(dtype, (pd.PeriodDtype, pd.IntervalDtype)):
        return None
    if not isinstance(dtype, pd.CategoricalDtype):
        return safe(arrow_times(pandas_moments(series))) if dtype.kind == "M" else _of_column(as_column(series))
    labels, codes = arrow_column(dtype.categories.to_series()), series.cat.codes.to_numpy()
    if labels is None:
        return None
    indices = pa.array(codes.astype(np.int32), mask=codes < 0)
    return safe(pa.DictionaryArray.from_arrays(indices, labels.combine_chunks()))


def _of_column(column: Column) -> Any:
    """Return an array by its type, in the widest one of its kind, and objects as texts."""
    import pyarrow as pa

    values = column.values
    if not isinstance(values, np.ndarray) or values.dtype.kind in "OUT":
        return _texts(column.objects())
    kind, size = values.dtype.kind, values.dtype.itemsize
    if kind == "M":
        return None if np.datetime_data(values.dtype)[0] in ("ps", "fs", "as") else safe(arrow_times(values))
    if kind not in "biuf" or size > _DOUBLE:  # A longer one would be rounded.
        return None
    wide = values.astype({"b": np.bool_, "f": np.float32 if size == _SINGLE else np.float64}.get(kind, f"{kind}8"))
    missing = np.isnan(wide) if kind == "f" else np.zeros(len(wide), bool)
    return safe(pa.array(wide, mask=missing if column.missing is None else missing | column.missing))


def _texts(values: Sequence[object]) -> Any:
    import pyarrow as pa

    return pa.chunked_array([pa.array([cell_text(value) for value in values], pa.large_string())])
