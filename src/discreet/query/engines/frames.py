"""Data frames as Arrow tables. Objects are read one by one as texts: no conversion may fail and show a value."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np

from discreet.query.engines.arrow import offered, safe_table

__all__ = ["pandas_schema", "pandas_table", "polars_schema", "polars_table"]

_DOUBLE = 8  # bytes
_SINGLE = 4  # bytes
_EXACT = 1 << 53  # Whole numbers up to here are doubles.
_LARGEST_BITS = 1000  # Of a whole number that is written as a text.


def pandas_schema(frame: Any) -> dict[str, str]:
    """Return the names and types of a pandas frame's columns by their dtypes alone."""
    types = {_name(name): _pandas_type(frame.dtypes.iloc[place]) for place, name in enumerate(frame.columns)}
    return {name: sql_type for name, sql_type in types.items() if sql_type is not None}


def _name(name: object) -> str:
    return name if isinstance(name, str) else repr(name) if isinstance(name, (int, float, tuple)) else str(name)


def _pandas_type(dtype: Any) -> str | None:
    import pandas as pd

    if hasattr(dtype, "pyarrow_dtype"):
        return offered([_SchemaField(dtype.pyarrow_dtype)]).get("")
    if isinstance(dtype, pd.CategoricalDtype):
        return _pandas_type(dtype.categories.dtype)
    if isinstance(dtype, (pd.DatetimeTZDtype,)) or getattr(dtype, "kind", "") == "M":
        return "TIMESTAMP_NS" if _unit_of(dtype) == "ns" else "TIMESTAMP"
    if isinstance(dtype, (pd.PeriodDtype, pd.IntervalDtype)):
        return None
    kinds = {
        "b": "BOOLEAN",
        "i": "BIGINT",
        "u": "UBIGINT",
        "f": "DOUBLE",
        "O": "VARCHAR",
        "U": "VARCHAR",
        "T": "VARCHAR",
    }
    kind = getattr(dtype, "kind", "")
    size = getattr(getattr(dtype, "subtype", dtype), "itemsize", 0)  # A sparse column has one type within another.
    if kind == "f" and size == _SINGLE:
        return "FLOAT"
    return None if kind == "f" and size > _DOUBLE else kinds.get(kind)  # A longer one would be rounded.


def _unit_of(dtype: Any) -> str:
    return str(dtype.unit) if hasattr(dtype, "unit") else str(np.datetime_data(dtype)[0])


class _SchemaField:
    """A type that looks like a field of a schema."""

    def __init__(self, kind: Any) -> None:
        self.name, self.type = "", kind


def pandas_table(frame: Any) -> Any:
    """Convert a pandas frame; the types are those of `pandas_schema`."""
    import pyarrow as pa

    schema = pandas_schema(frame)
    columns = {}
    for place, name in enumerate(map(_name, frame.columns)):
        if name in schema:
            columns[name] = _pandas_column(frame.iloc[:, place], schema[name])
    return safe_table(pa.table(columns))


def _pandas_column(series: Any, sql_type: str) -> Any:
    import pandas as pd
    import pyarrow as pa

    if hasattr(series.dtype, "pyarrow_dtype"):
        return series.array.__arrow_array__()
    if isinstance(series.dtype, pd.CategoricalDtype):
        codes = series.cat.codes.to_numpy()
        values = _pandas_column(pd.Series(series.cat.categories), sql_type)
        plain = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
        indices = pa.array(codes.astype(np.int32), mask=codes < 0)
        return pa.DictionaryArray.from_arrays(indices, plain) if sql_type == "VARCHAR" else plain.take(indices)
    if sql_type.startswith("TIMESTAMP"):
        return _pandas_times(series)
    if sql_type == "VARCHAR":
        return texts(series.tolist())
    missing = series.isna().to_numpy(dtype=bool)
    plain_type = {
        "BOOLEAN": np.bool_,
        "BIGINT": np.int64,
        "UBIGINT": np.uint64,
        "FLOAT": np.float32,
        "DOUBLE": np.float64,
    }[sql_type]
    if isinstance(series.dtype, np.dtype):
        return pa.array(series.to_numpy().astype(plain_type), mask=missing)
    return pa.array(series.to_numpy(dtype=plain_type, na_value=0), mask=missing)


def _pandas_times(series: Any) -> Any:
    import pyarrow as pa

    naive = series.dt.tz_convert("UTC").dt.tz_localize(None) if series.dt.tz is not None else series
    values = naive.to_numpy()
    unit = np.datetime_data(values.dtype)[0]
    return pa.array(values.view(np.int64), mask=np.isnat(values)).view(pa.timestamp(unit))


def texts(values: list[Any]) -> Any:
    """Read objects as texts: numbers and times as they print, anything else that is no text as NULL."""
    import pyarrow as pa

    return pa.array([_text(value) for value in values], pa.large_string())


def _text(value: object) -> str | None:
    if isinstance(value, str):
        return value if value.isascii() else _valid(value)
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (int, np.integer)):
        return str(value) if int(value).bit_length() <= _LARGEST_BITS else None
    if isinstance(value, (float, np.floating)):
        # One of single precision is the number that it is written as, as it is in a column of its kind.
        return None if value != value else _real(float(str(value) if isinstance(value, np.float32) else value))
    if isinstance(value, Decimal):
        return str(value) if value.is_finite() else None
    if isinstance(value, datetime):
        return _moment(value)
    return value.isoformat() if isinstance(value, date) else None


def _real(value: float) -> str:
    """Write a whole number as one: 7 and 7.0 are one person, as they are in a column of numbers."""
    return str(int(value)) if value.is_integer() and abs(value) <= _EXACT else repr(value)


def _valid(text: str) -> str | None:
    """Leave out a text with half a pair of surrogates in it: replaced by anything it would be another text."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return None
    return text


def _moment(value: datetime) -> str | None:
    if value != value:  # NaT
        return None
    return value.isoformat(sep=" ")


def polars_schema(frame: Any) -> dict[str, str]:
    """Return the names and types of a polars frame's columns by their dtypes alone."""
    return offered(_polars_plain(frame.clear()).to_arrow().schema)


def polars_table(frame: Any) -> Any:
    """Convert a polars frame; the types are those of `polars_schema`."""
    return safe_table(_polars_plain(frame).to_arrow())


def _polars_plain(frame: Any) -> Any:
    """Leave out what is nested or has no counterpart; wide whole numbers and labels become plain ones."""
    import polars as pl

    columns = []
    for name, dtype in frame.schema.items():
        if dtype.is_nested() or dtype in (pl.Object, pl.Binary, pl.Time, pl.Duration, pl.Unknown):
            continue
        if dtype in (pl.Categorical, pl.Enum):
            columns.append(pl.col(name).cast(pl.String))
        elif "128" in str(dtype):
            columns.append(pl.col(name).cast(pl.Int64, strict=False))
        else:
            columns.append(pl.col(name))
    return frame.select(columns)
