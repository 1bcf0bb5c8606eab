"""Tables of answers for other programs: Arrow, and through it polars and pandas."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discreet.query.results.columns import Column, Values
from discreet.query.results.numbers import Numbers

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.query.results.table import ReleaseTable

__all__ = ["to_arrow"]


def to_arrow(table: ReleaseTable) -> pa.Table:
    """Return an Arrow table; exact fractions become the nearest floats here, and whole numbers stay whole."""
    import pyarrow as pa

    arrays: list[Any] = []
    names: list[str] = []
    for name, values in _series(table):
        arrays.append(_array(values))
        names.append(_unused(name, names))
    return pa.Table.from_arrays(arrays, names=names)


def _series(table: ReleaseTable) -> Iterator[tuple[str, Values | NDArray[Any]]]:
    for column in table.columns:
        yield column.name, column.values
        if column.has_interval:
            reach, low, high = _by_array(column) or _by_cell(column)
            yield f"{column.name}_plus_minus", reach
            yield f"{column.name}_low", low
            yield f"{column.name}_high", high


def _by_array(column: Column) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]] | None:
    """Return ±, low and high of a long column at once, where all are numbers in arrays."""
    parts = (column.values, column.low, column.high)
    listed = [part for part in parts if isinstance(part, Numbers)]
    if len(listed) < len(parts):
        return None
    whole = [found for part in listed if (found := part.integers()) is not None]
    values, low, high = whole if len(whole) == len(listed) else [part.floats() for part in listed]
    reach = np.maximum(high - values, values - low)
    return reach, _inside(low, column.limits), _inside(high, column.limits)


def _inside(ends: NDArray[Any], limits: tuple[Fraction | None, Fraction | None]) -> NDArray[Any]:
    least, most = (None if limit is None else ends.dtype.type(limit) for limit in limits)
    return ends if least is most is None else np.clip(ends, least, most)


def _by_cell(column: Column) -> tuple[Values, Values, Values]:
    cells = [column[row] for row in range(len(column))]
    return tuple(c.plus_minus for c in cells), tuple(c.low for c in cells), tuple(c.high for c in cells)


def _unused(name: str, names: list[str]) -> str:
    while name in names:
        name += "_"
    return name


def _array(values: Values | NDArray[Any]) -> pa.Array:
    import pyarrow as pa

    if isinstance(values, np.ndarray):
        return pa.array(values)
    if isinstance(values, Numbers):
        whole = values.integers()
        return pa.array(values.floats() if whole is None else whole)
    present = [value for value in values if value is not None]
    kind = _kind(present)
    plain = [value if value is None else _converted(value, kind) for value in values]
    return pa.array(plain, type=kind)


def _kind(values: list[Any]) -> pa.DataType:
    """Choose the type that holds all values of a column."""
    import pyarrow as pa

    if all(isinstance(value, bool) for value in values):
        return pa.bool_() if values else pa.null()
    if all(isinstance(value, (int, Fraction)) and value.denominator == 1 for value in values):
        return pa.int64() if all(abs(value) < 1 << 63 for value in values) else pa.float64()
    if all(isinstance(value, (int, Fraction, float)) for value in values):
        return pa.float64()
    if all(isinstance(value, datetime) for value in values):
        return pa.timestamp("us")
    return pa.date32() if all(isinstance(value, date) for value in values) else pa.string()


def _converted(value: Any, kind: pa.DataType) -> Any:
    import pyarrow as pa

    if pa.types.is_int64(kind):
        return int(value)
    if pa.types.is_float64(kind):
        return float(np.float64(float(value)))
    return str(value) if pa.types.is_string(kind) else value
