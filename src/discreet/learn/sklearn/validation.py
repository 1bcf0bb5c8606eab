"""Rows as floats, and how well a fitted estimator does on them: one bounded whole number a row, exact and private."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context

from discreet.learn.sklearn.bounds import Pair
from discreet.learn.sklearn.classes import class_codes
from discreet.learn.sklearn.rows_alone import keeps_rows_alone
from discreet.mechanisms.column import Column
from discreet.robust.coinpress import as_floats
from discreet.statistics.columns import as_column

__all__ = ["BEST", "floats", "named", "nearness", "rightness", "split"]

Floats: TypeAlias = NDArray[np.float64]

BEST = 1 << 10  # The score of a row that is predicted perfectly; none is below zero.


def floats(data: Any) -> Floats:
    """Read a column as floats by a total rule: what is no number is NaN. This is private."""
    column = data if isinstance(data, Column) else as_column(data)
    values = column.values
    if not (isinstance(values, np.ndarray) and values.dtype.kind in "biuf"):
        return as_floats([[value] for value in column.objects()], 1)[:, 0]
    found = values.astype(np.float64)
    return found if column.missing is None else np.where(column.missing, np.nan, found)


def rightness(estimator: Any, rows: Floats, labels: Any) -> int:
    """Return BEST times how many labels are predicted. This is private."""
    wanted = class_codes(labels, estimator.classes_)
    told = class_codes(_each(estimator, rows, dtype=estimator.classes_.dtype), estimator.classes_)
    return BEST * int(np.count_nonzero((wanted == told) & (wanted >= 0) & _complete(rows)))


def nearness(estimator: Any, rows: Floats, targets: Floats, within: Pair) -> int:
    """Add up how near predictions are, each from 0, a whole width of the bounds off, to BEST. This is private."""
    low, high = (float(bound) for bound in within)
    told = _each(estimator, rows, dtype=np.float64)
    apart = np.abs(np.clip(told, low, high) - np.clip(targets, low, high)) / (high - low)
    points = np.rint(BEST * (1 - np.where(np.isfinite(apart), np.minimum(apart, 1.0), 1.0))).astype(np.int64)
    return int(points[_complete(rows)].sum())


def _complete(rows: Floats) -> NDArray[np.bool_]:
    return np.asarray(np.isfinite(rows).all(axis=1), dtype=np.bool_)


def _each(estimator: Any, rows: Floats, *, dtype: Any) -> NDArray[Any]:
    """Predict each row by itself; what has a gap is predicted as if it were zero, and counts for nothing.

    Rows are handed over one at a time, which is slow, unless the estimator says that it keeps them apart anyway.
    """
    filled, names = np.where(_complete(rows)[:, None], rows, 0.0), getattr(estimator, "feature_names_in_", None)
    if keeps_rows_alone(estimator) and len(rows):
        return np.asarray(estimator.predict(named(filled, names)), dtype=dtype)
    found = np.empty(len(rows), dtype=dtype)
    with config_context(assume_finite=True, skip_parameter_validation=True):
        for place, row in enumerate(filled):
            found[place] = estimator.predict(named(row[None, :], names))[0]
    return found


def named(rows: Floats, names: Any) -> Any:
    """Return rows as a table whose columns have these names, where there are any and pandas is there."""
    if names is None:
        return rows
    try:
        from pandas import DataFrame
    except ImportError:
        return rows
    return DataFrame(rows, columns=names, copy=False)


def split(X: Any) -> Iterable[Any]:
    """Split a table into columns without looking at values."""
    kind = type(X).__module__.partition(".")[0]
    if kind in _TABLES:
        return _TABLES[kind](X)
    values = np.ma.asarray(X) if isinstance(X, np.ma.MaskedArray) else np.asarray(X)
    return (values[:, column] for column in range(values.shape[1]))


_TABLES: dict[str, Callable[[Any], Iterable[Any]]] = {
    "pandas": lambda table: (table.iloc[:, column] for column in range(table.shape[1])),
    "polars": lambda table: table.get_columns(),
    "pyarrow": lambda table: table.columns,
}
