"""One form of every value, whatever type a reader kept it in: numbers, times, days; and draws that are no noise."""

from __future__ import annotations

import math
import re
from datetime import date, datetime, time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import noise
from discreet.frames.cells import in_calendar, plain_value
from discreet.frames.column import Column, column_of
from discreet.mechanisms.grid import exact_number

__all__ = ["TRUTHS", "as_days", "as_numbers", "below", "day_number", "day_of", "fractions", "moment", "numeral"]

# --- readings: One form of a number or a time for all types that readers of files keep it in. ---
#
# Readers choose the type of a whole column, and one row may change their choice: "1.50" is a text beside "abc" and 1.5
# without it. Whatever the type, a value must have one form, or that row would change how all others are coded.


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
    value = plain_value(value)
    if isinstance(value, str):
        value = plain_value(_read(value.strip()))
    if isinstance(value, datetime):
        at_midnight = value.tzinfo is None and value.time() == time()
        return value.date().isoformat() if at_midnight else datetime.isoformat(value)
    return value.isoformat() if isinstance(value, (date, time)) else None


def _read(text: str) -> datetime | time | None:
    try:
        if _TIME.fullmatch(text):
            return time.fromisoformat(text)
        return datetime.fromisoformat(text) if _MOMENT.fullmatch(text) else None
    except ValueError:
        return None


# --- days ---
# Dates as whole numbers of days since the first of January 1970, by a rule that is total and takes one value alone.


_FIRST = date(1970, 1, 1).toordinal()
_LENGTH = len("1970-01-01")


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
    days = [_day(value) for value in column.objects()]
    gone = np.array([day is None for day in days], dtype=bool)
    return Column(np.array([day or 0 for day in days], dtype=np.int64), gone)


def _of_moments(values: NDArray[Any], missing: NDArray[np.bool_] | None) -> Column:
    days = in_calendar(values).astype("datetime64[D]")
    gone = np.isnat(days) if missing is None else np.isnat(days) | missing
    return Column(np.where(gone, 0, days.astype(np.int64)), gone)


def _day(value: object) -> int | None:
    # Of texts, those with hyphens: readers take others for numbers.
    text = moment(value) or (value.strip() if isinstance(value, str) else "")
    try:
        return day_number(date.fromisoformat(text[:_LENGTH])) if text[4:8:3] == "--" else None
    except ValueError:
        return None


# --- draws: Draws that are no privacy noise: where in its bin a number lies, which of a unit's rows are kept. ---


_BITS = 53


def fractions(count: int) -> NDArray[np.float64]:
    """Draw numbers from [0, 1), multiples of 2^-53, all alike."""
    return noise.uniform(1 << _BITS, count).astype(np.float64) * 2.0**-_BITS


def below(limits: NDArray[Any]) -> NDArray[np.int64]:
    """Draw for each limit one of 0, …, limit - 1."""
    drawn = np.floor(fractions(len(limits)) * limits).astype(np.int64)
    inside: NDArray[np.int64] = np.minimum(drawn, limits - 1)
    return inside
