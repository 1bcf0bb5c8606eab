"""Dates as whole numbers of days since the first of January 1970, by a rule that is total and takes one value alone."""

from __future__ import annotations

from datetime import date
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.mechanisms.column import Column
from discreet.synth.domain.readings import moment

__all__ = ["as_days", "day_number", "day_of"]

_FIRST = date(1970, 1, 1).toordinal()
_LENGTH = len("1970-01-01")
_FARTHEST = 1 << 40  # Days; no date is that far away.


def day_number(day: date) -> int:
    """Count the days from 1970 on; of a moment, its day counts."""
    return day.toordinal() - _FIRST


def day_of(number: int) -> date:
    """Return the day of a number."""
    return date.fromordinal(number + _FIRST)


def as_days(column: Column) -> Column:
    """Return dates, moments, and texts that begin with a date, as numbers; whatever else stands there is missing."""
    values = column.values
    if isinstance(values, np.ndarray) and values.dtype.kind == "M":
        return _of_moments(values, column.missing)
    if isinstance(values, np.ndarray) and values.dtype.kind in "biufc":
        return Column(np.zeros(len(values), dtype=np.int64), np.ones(len(values), dtype=bool))
    days = [_day(value) for value in column.objects()]
    gone = np.array([day is None for day in days], dtype=bool)
    return Column(np.array([day or 0 for day in days], dtype=np.int64), gone)


def _of_moments(values: NDArray[Any], missing: NDArray[np.bool_] | None) -> Column:
    gone = np.isnat(values) if missing is None else np.isnat(values) | missing
    days = values.astype("datetime64[D]").astype(np.int64)
    return Column(np.clip(np.where(gone, 0, days), -_FARTHEST, _FARTHEST), gone)


def _day(value: object) -> int | None:
    if isinstance(value, np.datetime64):
        return None if np.isnat(value) else int(value.astype("datetime64[D]").astype(np.int64))
    # Of texts, those with hyphens: readers take others for numbers.
    text = moment(value) or (value.strip() if isinstance(value, str) else "")
    try:
        return day_number(date.fromisoformat(text[:_LENGTH])) if text[4:8:3] == "--" else None
    except ValueError:
        return None
