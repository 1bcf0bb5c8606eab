"""Periods: a plan that repeats releases once for each stretch of time, and never twice for the same."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from enum import Enum
from typing import final

from discreet.errors import InvalidParameter

__all__ = ["Every", "Period", "Schedule", "release_key", "running_key"]


@final
class Every(Enum):
    """How often a plan releases."""

    ONCE = "once"
    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    QUARTER = "quarter"
    YEAR = "year"


_MONTHS = {Every.MONTH: 1, Every.QUARTER: 3, Every.YEAR: 12}
_DAYS = {Every.DAY: 1, Every.WEEK: 7}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """A stretch of time: its first day, and the day after its last. A plan that releases once has neither."""

    label: str  # such as 2026-10, unique within a plan; in names of folders and in keys of the ledger
    first: date | None = None
    end: date | None = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """When a plan releases: periods follow each other from `first` on, without gaps and without overlap.

    With `column`, a date or timestamp of every private source, a release is about rows of its period only.
    """

    every: Every = Every.ONCE
    first: date | None = None  # the first day of the first period
    column: str | None = None

    def __post_init__(self) -> None:
        if (self.every is Every.ONCE) != (self.first is None):
            raise InvalidParameter('say the first day of the first period, or every = "once" without one')
        if self.every is Every.ONCE and self.column is not None:
            raise InvalidParameter("a plan that releases once has no periods: leave the column out")
        if self.first is not None and self.every in _MONTHS and self.first.day > 28:
            raise InvalidParameter("a period of months begins on a day from 1 to 28")

    def period(self, number: int) -> Period:
        """Return a period by its number, the first being 0."""
        if self.first is None:
            if number:
                raise InvalidParameter("this plan releases once")
            return Period(label="once")
        return self._labelled(self._start(number), self._start(number + 1))

    def containing(self, day: date) -> Period:
        """Return the period that a day is in."""
        return self.period(self._number(day))

    def until(self, day: date) -> tuple[Period, ...]:
        """Return all periods that have ended before a day, in order."""
        if self.first is None:
            return (self.period(0),)
        if day <= self.first:
            return ()
        return tuple(self.period(number) for number in range(self._number(day)))

    def _number(self, day: date) -> int:
        if self.first is None:
            return 0
        if day < self.first:
            raise InvalidParameter(f"the first period begins on {self.first}")
        number = (day - self.first).days // (_DAYS[self.every] if self.every in _DAYS else 28 * _MONTHS[self.every])
        while self._start(number) > day:
            number -= 1
        return number

    def _start(self, number: int) -> date:
        assert self.first is not None
        if self.every in _DAYS:
            return self.first + timedelta(days=number * _DAYS[self.every])
        months = self.first.month - 1 + number * _MONTHS[self.every]
        return self.first.replace(year=self.first.year + months // 12, month=months % 12 + 1)

    def _labelled(self, start: date, end: date) -> Period:
        return Period(label=self._label(start), first=start, end=end)

    def _label(self, start: date) -> str:
        if start.day != 1 or self.every in _DAYS:
            return start.isoformat()
        match self.every:
            case Every.YEAR if start.month == 1:
                return f"{start.year}"
            case Every.QUARTER if start.month % 3 == 1:
                return f"{start.year}-Q{start.month // 3 + 1}"
        return f"{start.year}-{start.month:02d}"


# --- keys ---
# Under which keys the ledger has what a plan releases: a release of a period is charged once, and so is a series.


def release_key(plan: object, label: object) -> str:
    """Return the key of the release of a period, from the name of the plan and the label of the period."""
    return f"release/{plan}/{label}"


def running_key(plan: object, series: object) -> str:
    """Return the key of a series, from the name of the plan and its own."""
    return f"running/{plan}/{series}"
