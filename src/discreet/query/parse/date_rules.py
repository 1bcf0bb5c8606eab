"""Facts of operators on dates and timestamps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from discreet.errors import Refused
from discreet.query.ast import Expression, Literal, Operator
from discreet.query.column_types import ExpressionFacts, Kind
from discreet.query.parse.evaluation import DAY, a, add_months, time_of, time_or_none, truncate
from discreet.query.parse.number_rules import bounds_of

__all__ = ["TIME_RULES", "TRUNCATIONS"]

_O = Operator
TRUNCATIONS = ("year", "quarter", "month", "week", "day", "hour", "minute")
_MOST = 4_000_000  # days; more than there are in the calendar


def _require_time(argument: Expression) -> None:
    if not argument.facts.kind.is_time:
        raise Refused(
            f"this needs a date or a timestamp, and it is {a(argument.facts.kind)}",
            reason="every operator has one meaning for each kind of value",
            way_out="CAST it to DATE or TIMESTAMP: what is none becomes NULL",
        )


def _part(low: int, high: int) -> Callable[[Sequence[Expression]], ExpressionFacts]:
    def rule(arguments: Sequence[Expression]) -> ExpressionFacts:
        _require_time(arguments[0])
        nullable = arguments[0].facts.nullable
        return ExpressionFacts(kind=Kind.INTEGER, low=Fraction(low), high=Fraction(high), nullable=nullable)

    return rule


def _year(arguments: Sequence[Expression]) -> ExpressionFacts:
    _require_time(arguments[0])
    facts = arguments[0].facts

    def year(bound: Fraction) -> Fraction | None:
        moment = time_of(facts.kind, bound)
        return None if moment is None else Fraction(moment.year)

    low, high = bounds_of(facts).monotone(year)
    return ExpressionFacts(kind=Kind.INTEGER, low=low, high=high, nullable=facts.nullable)


def _truncated(arguments: Sequence[Expression]) -> ExpressionFacts:
    unit, facts = arguments[0], arguments[1].facts
    _require_time(arguments[1])
    if not isinstance(unit, Literal) or unit.value not in TRUNCATIONS:
        raise Refused(
            "times are cut to a year, quarter, month, week, day, hour or minute",
            reason="only these are defined alike on every engine",
            way_out="choose one of them",
        )
    low, high = bounds_of(facts).monotone(lambda bound: _truncated_bound(str(unit.value), facts.kind, bound))
    return ExpressionFacts(kind=facts.kind, low=low, high=high, nullable=facts.nullable)


def _truncated_bound(unit: str, kind: Kind, bound: Fraction) -> Fraction | None:
    moment = time_of(kind, bound)
    return None if moment is None else time_or_none(truncate(unit, moment))


def _steps(argument: Expression) -> int:
    value = argument.value if isinstance(argument, Literal) and argument.facts.kind is Kind.INTEGER else None
    if isinstance(value, int) and abs(value) <= _MOST:
        return value
    raise Refused(
        "an interval must be a constant, and within the calendar",
        reason="a time that is moved by data may leave the calendar for one row only",
        way_out="write INTERVAL 1 MONTH, or count days with DATE_DIFF",
    )


def _add_days(arguments: Sequence[Expression]) -> ExpressionFacts:
    _require_time(arguments[0])
    facts, days = arguments[0].facts, _steps(arguments[1])
    size = days * (1 if facts.kind is Kind.DATE else DAY)
    low, high = bounds_of(facts).monotone(lambda bound: bound + size)
    return replace(facts, low=low, high=high, members=None, nullable=True)


def _add_months(arguments: Sequence[Expression]) -> ExpressionFacts:
    _require_time(arguments[0])
    facts, months = arguments[0].facts, _steps(arguments[1])

    def moved(bound: Fraction) -> Fraction | None:
        moment = time_of(facts.kind, bound)
        return None if moment is None else time_or_none(add_months(moment, months))

    low, high = bounds_of(facts).monotone(moved)
    if facts.kind is Kind.TIMESTAMP:
        # At the end of a month several days become one, so that a later moment may end up earlier on that day.
        low = None if low is None else Fraction(low // DAY * DAY)
        high = None if high is None else Fraction(high // DAY * DAY + DAY - 1)
    return replace(facts, low=low, high=high, members=None, nullable=True)


def _days_between(arguments: Sequence[Expression]) -> ExpressionFacts:
    for argument in arguments:
        _require_time(argument)
    first, last = (bounds_of(argument.facts) for argument in arguments)
    size = 1 if arguments[0].facts.kind is Kind.DATE else DAY
    low, high = last.minus(first).monotone(lambda bound: Fraction(int(bound / size)))
    return ExpressionFacts(kind=Kind.INTEGER, low=low, high=high, nullable=any(a.facts.nullable for a in arguments))


TIME_RULES: Mapping[Operator, Callable[[Sequence[Expression]], ExpressionFacts]] = {
    _O.YEAR: _year,
    _O.QUARTER: _part(1, 4),
    _O.MONTH: _part(1, 12),
    _O.WEEK: _part(1, 53),
    _O.DAY: _part(1, 31),
    _O.WEEKDAY: _part(0, 6),
    _O.DAY_OF_YEAR: _part(1, 366),
    _O.HOUR: _part(0, 23),
    _O.MINUTE: _part(0, 59),
    _O.SECOND: _part(0, 59),
    _O.TRUNCATE_TIME: _truncated,
    _O.ADD_DAYS: _add_days,
    _O.ADD_MONTHS: _add_months,
    _O.DAYS_BETWEEN: _days_between,
}
