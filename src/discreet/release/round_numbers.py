"""Numbers and days that people like to read: steps of 1, 2 and 5, months, quarters, years."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from fractions import Fraction

from discreet.formatting import exponent

__all__ = ["Calendar", "calendar_cuts", "calendar_step", "day_at", "friendly_step", "number_cuts", "outwards"]

_DIGITS = (1, 2, 5, 10)
Calendar = tuple[str, int]  # days or months, and how many of them

_CALENDAR: tuple[Calendar, ...] = (
    ("day", 1), ("day", 7), ("month", 1), ("month", 3), ("month", 12), ("month", 60), ("month", 120), ("month", 1200),
)  # fmt: skip
_DAYS = {"day": 1, "month": 28}  # at least
_FIRST = date(1, 1, 1)


def friendly_step(span: Fraction, most: int, *, whole: bool = False) -> Fraction:
    """Return the least step of 1, 2 or 5 times a power of ten that goes into a span at most so many times."""
    if span <= 0:
        return Fraction(1)
    least = span / most
    power = Fraction(10) ** exponent(least)
    step = next(digit * power for digit in _DIGITS if digit * power >= least)
    return max(step, Fraction(1)) if whole else step


def number_cuts(low: Fraction, high: Fraction, most: int, *, whole: bool = False) -> tuple[Fraction, ...]:
    """Return the multiples of a friendly step that lie strictly between two numbers."""
    step = friendly_step(high - low, most, whole=whole)
    first, last = low // step + 1, -(-high // step) - 1
    return tuple(place * step for place in range(int(first), int(last) + 1))


def outwards(low: Fraction, high: Fraction, *, whole: bool = False) -> tuple[Fraction, Fraction]:
    """Return friendly numbers around two: at most a tenth of their distance, or of a single one's size, away."""
    span = high - low if high > low else max(abs(high), Fraction(1))
    step = friendly_step(span, 10, whole=whole)
    below, above = low // step * step, -(-high // step) * step
    return (below, above) if below < above else (below, above + step)


def calendar_step(first: date, last: date, most: int) -> Calendar:
    """Return the finest of days, weeks, months, quarters, years and so on that makes at most so many steps."""
    days = (last - first).days
    for unit, size in _CALENDAR:
        if days <= most * size * _DAYS[unit]:
            return unit, size
    return _CALENDAR[-1]


def calendar_cuts(first: date, last: date, step: Calendar) -> tuple[date, ...]:
    """Return the starts of days, weeks, months and so on that lie strictly between two days."""
    return tuple(day for day in _starts(first, last, step) if first < day < last)


def _starts(first: date, last: date, step: Calendar) -> Iterator[date]:
    unit, size = step
    if unit == "day":
        # Weeks begin on Mondays, as the first of January of year 1 did.
        numbers = range(first.toordinal() - (first - _FIRST).days % size, last.toordinal() + 1, size)
        yield from (date.fromordinal(number) for number in numbers if number >= 1)
        return
    month = (first.year * 12 + first.month - 1) // size * size
    while month // 12 <= last.year:
        if month >= 12:
            yield date(month // 12, month % 12 + 1, 1)
        month += size


def day_at(first: date, last: date, share: Fraction) -> date:
    """Return the day at a share of the way between two."""
    return date.fromordinal(first.toordinal() + int((last - first).days * share))
