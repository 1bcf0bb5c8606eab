"""A column of private values as the mechanisms see it: a numeric array, or any objects, one a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter

__all__ = ["Column", "Data", "column_of", "is_missing"]


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
