"""From exact daily counts to what is told of a day, and from that to a table of totals."""

from __future__ import annotations

import json
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from discreet import noise
from discreet.errors import LedgerDamaged
from discreet.privacy.relation import Relation
from discreet.query import ReleaseTable
from discreet.query.column_types import Kind
from discreet.query.results.columns import AnswerColumn, ExactNumbers, compact
from discreet.release.cumulative.series_price import CONFIDENCE, STEP, PricedRunning

__all__ = ["measured_day", "read_day", "table_of"]


def measured_day(priced: PricedRunning, counts: Sequence[int], token: str) -> str:
    """Measure what a day adds: whole weights of the exact counts so far, with fresh noise. Drawn once, then told."""
    exact = [sum(w * x for w, x in zip(row, counts, strict=True)) for row in priced.strategy.weights(len(counts) - 1)]
    drawn = noise.rounded_gaussian(size=len(exact), variance=priced.variance)
    told = [value + int(extra) for value, extra in zip(exact, drawn, strict=True)]
    return json.dumps({"day": priced.day(len(counts) - 1).isoformat(), "measured": told, "token": token})


def read_day(text: str) -> tuple[list[int], str]:
    """Return what was measured on a day, and its token."""
    try:
        told = json.loads(text)
        return [int(number) for number in told["measured"]], str(told["token"])
    except (ValueError, KeyError, TypeError):
        raise LedgerDamaged("a stored answer is no day of a running series") from None


def table_of(priced: PricedRunning, told: Sequence[str]) -> ReleaseTable:
    """Return the totals of the days that were told, each with its own error: a function of what was told."""
    totals = priced.strategy.totals([read_day(text)[0] for text in told])
    rounded = [round(total / STEP) for total in totals]
    errors = [-(-error // STEP) for error in priced.errors[: len(rounded)]]  # in steps, rounded up
    return ReleaseTable(
        columns=(_days(priced, len(rounded)), _totals(rounded, errors)),
        rows_shown=len(rounded),
        notes=_notes(priced),
        event=priced.event,
        relation=Relation.ADD_REMOVE,
        cost=priced.cost,
        confidence=CONFIDENCE,
    )


def _days(priced: PricedRunning, count: int) -> AnswerColumn:
    days = tuple(priced.day(number) for number in range(count))
    return AnswerColumn(name="day", kind=Kind.DATE, values=days, measured=False)


def _totals(rounded: Sequence[int], errors: Sequence[int]) -> AnswerColumn:
    return AnswerColumn(
        name="total",
        kind=Kind.REAL,
        values=_numbers(rounded),
        low=_numbers([value - error for value, error in zip(rounded, errors, strict=True)]),
        high=_numbers([value + error for value, error in zip(rounded, errors, strict=True)]),
        limits=(Fraction(0), None),
        grain=Fraction(1),
    )


def _numbers(steps: Sequence[int]) -> ExactNumbers:
    return ExactNumbers(compact(np.array(steps, dtype=object)), step=STEP)


def _notes(priced: PricedRunning) -> tuple[str, ...]:
    running = priced.running
    if running.person_day:
        counted = (
            "a unit counts on every day that it has a row on when that day is released; each is protected by itself"
        )
    elif priced.unit == "row":
        counted = (
            "a row counts on the day it is dated, if it is there when that day is released; one that is dated anew is "
            "another row"
        )
    else:
        days = "one day" if running.max_days == 1 else f"{running.max_days} days"
        counted = (
            f"one {priced.unit} is counted on {days} of the series at most, the first ones it has rows on; a row that "
            "comes late is counted later, and one that is taken away stays counted"
        )
    return (
        counted,
        "the whole series was paid for once, before its first day",
        "noise of one day is in those after it",
    )
