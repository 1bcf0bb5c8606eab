"""Tables of answers for other programs: Arrow, and through it polars and pandas."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.query.arrow_types import arrow_type
from discreet.query.facts import Kind
from discreet.query.results.columns import AnswerColumn, Values
from discreet.query.results.numbers import ExactNumbers

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.query.results.table import ReleaseTable

__all__ = ["to_arrow"]

Series: TypeAlias = Values | tuple[Any, ...] | NDArray[Any]
_LARGEST = (1 << 63) - 1


def to_arrow(table: ReleaseTable) -> pa.Table:
    """Return an Arrow table; types follow from the question, never from the values that came out.

    Exact fractions become the nearest floats here, and whole numbers stay whole.
    """
    import pyarrow as pa

    arrays: list[Any] = []
    names: list[str] = []
    for name, kind, values in _series(table):
        arrays.append(_array(values, kind))
        names.append(_unused(name, names))
    return pa.Table.from_arrays(arrays, names=names)


def _series(table: ReleaseTable) -> Iterator[tuple[str, Kind, Series]]:
    for column in table.columns:
        yield column.name, column.kind, column.values
        if column.has_interval:
            kind, reach, low, high = _errors(column)
            yield f"{column.name}_plus_minus", kind, reach
            yield f"{column.name}_low", kind, low
            yield f"{column.name}_high", kind, high


def _errors(column: AnswerColumn) -> tuple[Kind, Series, Series, Series]:
    """Return ±, low and high: at once where all are numbers in arrays, else cell by cell."""
    parts = (column.values, column.low, column.high)
    listed = [part for part in parts if isinstance(part, ExactNumbers)]
    if len(listed) < len(parts):
        cells = [column[row] for row in range(len(column))]
        ends = tuple(c.plus_minus for c in cells), tuple(c.low for c in cells), tuple(c.high for c in cells)
        return Kind.REAL, *ends
    whole = [found for part in listed if (found := part.integers()) is not None]
    kind = Kind.INTEGER if len(whole) == len(listed) else Kind.REAL
    values, low, high = whole if kind is Kind.INTEGER else [part.floats() for part in listed]
    return kind, np.maximum(high - values, values - low), _inside(low, column.limits), _inside(high, column.limits)


def _inside(ends: NDArray[Any], limits: tuple[Fraction | None, Fraction | None]) -> NDArray[Any]:
    least, most = (None if limit is None else ends.dtype.type(limit) for limit in limits)
    return ends if least is most is None else np.clip(ends, least, most)


def _unused(name: str, names: list[str]) -> str:
    while name in names:
        name += "_"
    return name


def _array(values: Series, kind: Kind) -> pa.Array:
    import pyarrow as pa

    array = _numbers(values, kind) if isinstance(values, ExactNumbers) else values
    if isinstance(array, np.ndarray):
        return pa.array(array, type=arrow_type(kind))
    return pa.array([None if value is None else _converted(value, kind) for value in array], type=arrow_type(kind))


def _numbers(values: ExactNumbers, kind: Kind) -> NDArray[Any] | tuple[Any, ...]:
    if kind is not Kind.INTEGER:
        return values.floats()
    whole = values.integers()
    return tuple(values[row] for row in range(len(values))) if whole is None else whole


def _converted(value: Any, kind: Kind) -> Any:
    match kind:
        case Kind.INTEGER:
            return min(max(round(value), -_LARGEST), _LARGEST)
        case Kind.REAL:
            return float(value)
        case Kind.TEXT | Kind.UNDECLARED | Kind.IDENTITY:
            return str(value)
        case Kind.BOOLEAN | Kind.DATE | Kind.TIMESTAMP:
            return value
