"""One form of a number or a time for all types that readers of files keep it in.

Readers choose the type of a whole column, and one row may change their choice: "1.50" is a text beside "abc" and 1.5
without it. Whatever the type, a value must have one form, or that row would change how all others are coded.
"""

from __future__ import annotations

import math
import re
from datetime import MAXYEAR, MINYEAR, UTC, date, datetime, time

import numpy as np

from discreet.mechanisms.column import Column, column_of
from discreet.mechanisms.grid import exact_number

__all__ = ["TRUTHS", "as_numbers", "moment", "numeral"]

TRUTHS = {"true": True, "false": False}
_WHOLE = 2.0**64  # Below it a whole number is written with all its digits.
_ENDLESS = re.compile(r"[+-]?inf(inity)?", re.ASCII | re.IGNORECASE)
_CLOCK = r"\d\d:\d\d(:\d\d(\.\d{1,9})?)?"
_TIME = re.compile(_CLOCK, re.ASCII)
_MOMENT = re.compile(rf"\d{{4}}-\d\d-\d\d[ T]{_CLOCK}(Z|[+-]\d\d:?\d\d)?", re.ASCII)


def numeral(value: object) -> str | None:
    """Write a number, or a text that readers take for one, as the nearest float would be; None if it is none."""
    near = _near(value)
    if near is None:
        return None
    # Some readers are off by the last bit of a float; fifteen digits are the same for all.
    return str(int(near)) if abs(near) < _WHOLE and near.is_integer() else f"{near:.15g}"


def _near(value: object) -> float | None:
    if isinstance(value, str):
        text = value.strip()
        if _ENDLESS.fullmatch(text):
            return float(text)
        return None if "/" in text or exact_number(text) is None else float(text)
    if isinstance(value, float):
        return None if math.isnan(value) else value
    number = exact_number(value)
    if number is None:
        return None
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def as_numbers(column: Column) -> Column:
    """Return a column whose texts are the numbers or truth values that readers take them for, or None."""
    values = column.values
    if isinstance(values, np.ndarray) and values.dtype.kind not in "OUT":
        return column
    read = [_number(value) if isinstance(value, str) else value for value in values]
    return Column(column_of(read).values, column.missing)


def _number(text: str) -> float | None:
    truth = TRUTHS.get(text.strip().lower())
    return _near(text) if truth is None else float(truth)


def moment(value: object) -> str | None:
    """Write a date or a time, or a text that readers take for one, in one form; midnight as its date."""
    if isinstance(value, str):
        value = _read(value.strip())
    if isinstance(value, datetime):
        plain = _universal(value)
        if not MINYEAR <= plain.year <= MAXYEAR:
            return None  # pandas has such moments, and can write down hardly any of them.
        at_midnight = plain.tzinfo is None and plain.time() == time()
        return plain.date().isoformat() if at_midnight else datetime.isoformat(plain)
    return value.isoformat() if isinstance(value, (date, time)) else None


def _read(text: str) -> datetime | time | None:
    try:
        if _TIME.fullmatch(text):
            return time.fromisoformat(text)
        return datetime.fromisoformat(text) if _MOMENT.fullmatch(text) else None
    except ValueError:
        return None


def _universal(value: datetime) -> datetime:
    """Move a time with a zone to the zone that readers use; at the ends of the calendar it stays where it is."""
    try:
        return value if value.tzinfo is None else value.astimezone(UTC)
    except (OverflowError, ValueError, NotImplementedError):
        return value
