"""One rule for every cell: what is missing, which moments there are, what an object is as a text. None can fail.

A rule looks at one cell and at the declared type of its column. What Python cannot hold is missing: a text with half a
pair of surrogates, a moment beyond the years 1 to 9999, a duration beyond 10^8 days or finer than
microseconds. A moment of a zone is one in UTC, and a UUID is its text.
"""

from __future__ import annotations

from datetime import MAXYEAR, MINYEAR, UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

__all__ = ["cell_text", "in_calendar", "is_missing", "plain_value", "python_times"]

_DAY = 86_400 * 10**6  # Microseconds, as below.
_MOMENTS = tuple((end - datetime(1970, 1, 1)) // timedelta(microseconds=1) for end in (datetime.min, datetime.max))
_DAYS = 10**8  # of the longest duration; in microseconds it has 63 bits.
_DURATIONS = (-_DAYS * _DAY, _DAYS * _DAY - 1)
_LENGTHS = {"W": 7 * _DAY, "D": _DAY, "h": _DAY // 24, "m": 60 * 10**6, "s": 10**6, "ms": 10**3, "us": 1}
_FINER = ("ns", "ps", "fs", "as")  # Of these, all that fit into 64 bits are within the calendar.
_MONTHS = {"Y": 12, "M": 1}
_EXACT = 1 << 53  # Whole numbers up to here are doubles.
_LARGEST_BITS = 1000  # Of a whole number that is written as a text.


def is_missing(value: object) -> bool:
    """Tell whether a single value stands for nothing: None, NaN, NaT, NA, or what Python cannot hold."""
    if isinstance(value, int):
        return False
    if isinstance(value, str):
        return not value.isascii() and not _is_unicode(value)
    if isinstance(value, (float, np.floating)):
        return bool(np.isnan(value))
    if isinstance(value, Decimal):
        return value.is_nan()
    # The marks of pandas, told by name so that pandas need not be there.
    return type(value).__name__ in ("NAType", "NaTType") or plain_value(value) is None


def _is_unicode(text: str) -> bool:
    """Tell whether a text has no half of a pair of surrogates: replaced by anything it would be another text."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def plain_value(value: object) -> object:
    """Return a scalar of NumPy or a time of pandas as one of Python, and a UUID as its text; None if it cannot be."""
    if isinstance(value, np.datetime64 | np.timedelta64):
        return python_times(np.array([value]))[0]
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, datetime):
        return _plain_moment(value)
    if isinstance(value, timedelta):
        exact = not getattr(value, "nanoseconds", 0)  # of pandas, as below
        return value if exact and -_DAYS <= value.days < _DAYS else None
    return str(value) if isinstance(value, UUID) else value


def _plain_moment(value: datetime) -> datetime | str | None:
    """Return a moment of a zone in UTC, one that is finer than microseconds as a text, as a column of its type does."""
    try:
        plain = value.astimezone(UTC) if value.tzinfo is not None and value.utcoffset() is not None else value
    except (OverflowError, ValueError, TypeError, NotImplementedError):
        return None
    if not MINYEAR <= plain.year <= MAXYEAR:  # pandas has such moments, and can write down hardly any of them.
        return None
    return plain.isoformat() if getattr(plain, "nanosecond", 0) else plain


def in_calendar(times: NDArray[Any]) -> NDArray[Any]:
    """Return moments or durations in days, microseconds or less; those that Python cannot hold are missing."""
    unit, many = np.datetime_data(times.dtype)
    moments = times.dtype.kind == "M"
    low, high = _MOMENTS if moments else _DURATIONS
    length = many * _LENGTHS.get(unit, 0)
    if unit in _FINER:
        return times
    if unit in _MONTHS and moments:
        months = many * _MONTHS[unit]
        low, high, length = (datetime.min.year - 1970) * 12, (datetime.max.year - 1969) * 12 - 1, months
    counts = times.astype(np.int64)
    # No unit at all, or months and years of a duration, whose length nobody knows.
    inside = (counts >= -(-low // length)) & (counts <= high // length) if length else np.zeros(len(times), bool)
    days = length % _DAY == 0 or unit in _MONTHS
    found = np.where(inside, times, np.array("NaT", times.dtype))
    return found.astype(f"{times.dtype.kind}8[{'D' if days and moments else 'us'}]")


def python_times(times: NDArray[Any]) -> list[object]:
    """Return dates, moments or durations as those of Python, missing ones as None.

    A moment that is finer is a text, and such a duration is missing: rounded, two of them might be one, and a column
    may tell people apart.
    """
    found = in_calendar(times)
    if np.datetime_data(found.dtype)[0] not in _FINER:
        return list(found.tolist())
    coarse = found.astype(f"{found.dtype.kind}8[us]")
    rows: list[object] = coarse.tolist()
    for place in np.flatnonzero(~np.isnat(found) & (coarse.astype(found.dtype) != found)).tolist():
        rows[place] = str(found[place]) if found.dtype.kind == "M" else None
    return rows


def cell_text(value: object) -> str | None:
    """Return an object as a text: numbers and times as they print; None for anything else that is no text."""
    if isinstance(value, np.float32):
        # One of single precision is the number that it is written as, as it is in a column of its kind.
        value = float(str(value))
    value = plain_value(value)
    if value is None or is_missing(value):
        return None
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value) if value.bit_length() <= _LARGEST_BITS else None
    if isinstance(value, (float, np.floating)):
        return _real(float(value))
    if isinstance(value, Decimal):
        return str(value) if value.is_finite() else None
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    return value.isoformat() if isinstance(value, date) else None


def _real(value: float) -> str:
    """Write a whole number as one: 7 and 7.0 are one person, as they are in a column of numbers."""
    return str(int(value)) if value.is_integer() and abs(value) <= _EXACT else repr(value)
