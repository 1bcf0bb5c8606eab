"""Data frames and Arrow columns as the engine can take them: no conversion may fail, and none may tell."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np

__all__ = ["offered", "pandas_schema", "pandas_table", "polars_schema", "polars_table", "safe_table", "sql_type_of"]

# --- arrow ---
# Arrow columns as the engine can take them: of few types, all of whose values it can read without an error.
#
# Times lie between the years 1 and 9999, others are NULL; texts are valid, others are NULL; nested and rare types are
# left out. Which types there are depends on the schema only. Nothing is rounded here, for a column may tell units
# apart:
# what makes two people one makes one of them fill the other's place.


_FIRST = (datetime.min - datetime(1970, 1, 1)) // timedelta(microseconds=1)
_LAST = (datetime.max - datetime(1970, 1, 1)) // timedelta(microseconds=1)
_DAYS = (date.min.toordinal() - date(1970, 1, 1).toordinal(), date.max.toordinal() - date(1970, 1, 1).toordinal())
_PER_UNIT = {"s": 10**6, "ms": 10**3, "us": 1}
_MOST_DIGITS = 38  # of a decimal
_FEW = 1024  # Texts that are looked at one by one if any of them is invalid.
_PLAIN = {
    "bool": "BOOLEAN",
    "int8": "TINYINT",
    "int16": "SMALLINT",
    "int32": "INTEGER",
    "int64": "BIGINT",
    "uint8": "UTINYINT",
    "uint16": "USMALLINT",
    "uint32": "UINTEGER",
    "uint64": "UBIGINT",
    "halffloat": "DOUBLE",
    "float": "FLOAT",
    "double": "DOUBLE",
    "date32[day]": "DATE",
    "date64[ms]": "DATE",
    "null": "VARCHAR",
}


def sql_type_of(kind: Any) -> str | None:
    """Return the type that a column has in the engine once it is safe; None if it is not offered."""
    import pyarrow as pa

    types = pa.types
    if types.is_dictionary(kind):
        return sql_type_of(kind.value_type)
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return "VARCHAR"
    if types.is_timestamp(kind):
        return "TIMESTAMP_NS" if kind.unit == "ns" else "TIMESTAMP"
    if types.is_decimal(kind):
        return _decimal_type(kind)
    return _PLAIN.get(str(kind))


def _decimal_type(kind: Any) -> str | None:
    precision = min(kind.precision, _MOST_DIGITS)
    return f"DECIMAL({precision},{kind.scale})" if 0 <= kind.scale <= precision else None


def offered(schema: Any) -> dict[str, str]:
    """Return the names and types of the columns that can be asked about."""
    types = {field.name: sql_type_of(field.type) for field in schema}
    return {name: sql_type for name, sql_type in types.items() if sql_type is not None}


def safe_table(table: Any) -> Any:
    """Return the columns on offer, each in its safe type."""
    import pyarrow as pa

    names = list(offered(table.schema))
    return pa.table({name: _safe(table.column(name)) for name in names})


def _safe(column: Any) -> Any:
    import pyarrow as pa

    kind = column.type
    if pa.types.is_dictionary(kind) and not _is_text(kind.value_type):
        return _safe(pa.chunked_array([_decoded(chunk) for chunk in column.chunks], kind.value_type))
    if _is_text(kind):
        return pa.chunked_array([piece for chunk in column.chunks for piece in _texts(chunk)], kind)
    make = _maker(kind)
    return (
        column if make is None else pa.chunked_array([make(chunk) for chunk in column.chunks] or [make(_empty(kind))])
    )


def _empty(kind: Any) -> Any:
    import pyarrow as pa

    return pa.array([], kind)


def _maker(kind: Any) -> Any:
    import pyarrow as pa

    types = pa.types
    if types.is_dictionary(kind):
        return _text_dictionary
    if types.is_timestamp(kind) and kind.unit == "ns":
        return lambda chunk: chunk.view(pa.int64()).view(pa.timestamp("ns"))
    if types.is_timestamp(kind):
        return lambda chunk: _times(chunk, _PER_UNIT[kind.unit])
    if types.is_date64(kind):
        return _dates
    if types.is_decimal(kind):
        return None if types.is_decimal128(kind) else _decimals
    if types.is_float16(kind):
        return lambda chunk: chunk.cast(pa.float64())
    return (lambda chunk: pa.nulls(len(chunk), pa.string())) if types.is_null(kind) else None


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _decoded(chunk: Any) -> Any:
    return chunk.dictionary.take(chunk.indices)


def _texts(chunk: Any) -> list[Any]:
    """Return texts as they are, those with invalid characters as NULL, in pieces.

    A piece that is valid is not copied, and an invalid one is halved until it is small: one odd row must not make
    objects of all the others, which takes many times the memory.
    """
    import pyarrow as pa

    try:
        chunk.validate(full=True)
    except pa.ArrowInvalid:
        if len(chunk) > _FEW:
            half = len(chunk) // 2
            return [*_texts(chunk.slice(0, half)), *_texts(chunk.slice(half))]
        parts = (
            chunk.cast(pa.large_binary()) if not pa.types.is_string_view(chunk.type) else chunk.cast(pa.binary_view())
        )
        return [pa.array([_decoded_text(part) for part in parts.to_pylist()], pa.large_string()).cast(chunk.type)]
    return [chunk]


def _decoded_text(part: bytes | None) -> str | None:
    try:
        return None if part is None else part.decode()
    except UnicodeDecodeError:
        return None


def _text_dictionary(chunk: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    pieces, indices = _texts(chunk.dictionary), chunk.indices.cast(pa.int32())
    values = pieces[0] if len(pieces) == 1 else pa.concat_arrays(pieces)
    if values.null_count:
        # Not the texts themselves are taken: they are there once, however many rows have them.
        indices = pc.if_else(values.is_null().take(indices), pa.scalar(None, pa.int32()), indices)
        values = values.fill_null("")
    return pa.DictionaryArray.from_arrays(indices, values)


def _integers(chunk: Any) -> tuple[Any, Any]:
    import pyarrow as pa

    plain = chunk.view(pa.int64())
    missing = np.asarray(plain.is_null())
    return np.asarray(plain.fill_null(0)), missing


def _times(chunk: Any, scale: int) -> Any:
    import pyarrow as pa

    values, missing = _integers(chunk)
    inside = (values >= -(-_FIRST // scale)) & (values <= _LAST // scale)
    micros = np.where(inside, values, 0) * scale
    return pa.array(micros, pa.int64(), mask=missing | ~inside).view(pa.timestamp("us"))


def _dates(chunk: Any) -> Any:
    import pyarrow as pa

    values, missing = _integers(chunk)
    days = values // 86_400_000
    inside = (days >= _DAYS[0]) & (days <= _DAYS[1]) & (values % 86_400_000 == 0)
    return pa.array(np.where(inside, days, 0).astype(np.int32), pa.int32(), mask=missing | ~inside).view(pa.date32())


def _decimals(chunk: Any) -> Any:
    """Read decimals of other widths; those beyond the digits that an engine takes are at their end."""
    import pyarrow as pa

    precision, scale = min(chunk.type.precision, _MOST_DIGITS), chunk.type.scale
    most = Decimal((0, (9,) * precision, -scale))
    values = [None if value is None else max(most.copy_negate(), min(most, value)) for value in chunk.to_pylist()]
    return pa.array(values, pa.decimal128(precision, scale))


# --- frames ---
# Data frames as Arrow tables. Objects are read one by one as texts: no conversion may fail and show a value.


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
