"""Columns of a table as numbers for a model: numbers as they are, around their mean; all else one column a value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter

__all__ = ["ColumnEncoder", "Columns", "encoder", "numbered", "read_columns", "taken"]

Columns: TypeAlias = Mapping[str, NDArray[Any]]  # name to values, one for each person
Floats: TypeAlias = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, eq=False)
class ColumnEncoder:
    """How some columns become numbers: of each either its mean and deviation, or the values that it can have."""

    scales: Mapping[str, tuple[float, float]]
    values: Mapping[str, NDArray[Any]]

    def __call__(self, table: Columns) -> Floats:
        """Encode people. A value that was not there when the encoder was made becomes zeros."""
        parts = [_scaled(table[name], *ends)[:, None] for name, ends in self.scales.items()]
        parts += [(_texts(table[name])[:, None] == values).astype(np.float64) for name, values in self.values.items()]
        return np.concatenate(parts, axis=1)


def encoder(table: Columns, names: Sequence[str]) -> ColumnEncoder:
    """Learn how to encode columns of a table. A missing number counts as the mean."""
    unknown = [name for name in names if name not in table]
    if unknown or not names:
        raise InvalidParameter(f"columns must be some of {', '.join(table)}")
    scales, values = {}, {}
    for name in names:
        if np.issubdtype(table[name].dtype, np.number):
            column = table[name].astype(np.float64)
            scales[name] = float(np.nanmean(column)), float(np.nanstd(column)) or 1.0
        else:
            values[name] = np.unique(_texts(table[name]))
    return ColumnEncoder(scales, values)


def numbered(column: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the values of a column in order, and the number of each person's value among them."""
    values, numbers = np.unique(_texts(column), return_inverse=True)
    return values, numbers.astype(np.int64)


def taken(table: Columns, rows: Any) -> Columns:
    """Take some rows of every column."""
    return {name: column[rows] for name, column in table.items()}


def read_columns(table: Any, names: Sequence[str], *, people: int | None = None) -> Columns:
    """Read columns of a table of this machine, of some people drawn at random if `people` says how many."""
    from discreet import noise
    from discreet.attacks.local import laboratory

    with laboratory({"table": table}) as lab:
        listed = ", ".join(lab.column("table", name) for name in dict.fromkeys(names))
        found = lab.select(f"SELECT {listed} FROM {lab.relations['table']}")
    if people is not None and people < found.num_rows:
        found = found.take(np.sort(noise.permutation(found.num_rows)[:people]))
    return {name: found.column(name).to_numpy() for name in found.column_names}


def _texts(column: NDArray[Any]) -> NDArray[Any]:
    return column.astype(str)


def _scaled(column: NDArray[Any], mean: float, spread: float) -> Floats:
    return np.nan_to_num((column.astype(np.float64) - mean) / spread)
