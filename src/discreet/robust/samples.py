"""Reading data for exact diagnostics, whose results are marked as not private: here, what is no number is refused."""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.errors import InvalidParameter
from discreet.robust.psi import Floats

__all__ = ["read_rows", "read_sample"]


def read_sample(values: Any) -> Floats:
    """Read a column of finite numbers."""
    sample = _numbers(values)
    if sample.ndim != 1 or not sample.size:
        raise InvalidParameter("values must be a column of at least one number")
    return sample


def read_rows(rows: Any, targets: Any) -> tuple[Floats, Floats]:
    """Read a table of finite numbers and the column that it is to predict."""
    table, column = _numbers(rows), read_sample(targets)
    table = table[:, None] if table.ndim == 1 else table
    if table.ndim != 2 or len(table) != len(column):
        raise InvalidParameter("X must have a row for each value of y")
    return table, column


def _numbers(values: Any) -> Floats:
    try:
        numbers = np.asarray(values.to_numpy() if hasattr(values, "to_numpy") else values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidParameter("an exact diagnostic takes numbers only") from None
    if not np.isfinite(numbers).all():
        raise InvalidParameter("an exact diagnostic takes finite numbers only: leave out what is missing")
    return numbers
