"""Facts of casts. What has no value of the new kind becomes NULL."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from discreet.errors import Refused
from discreet.query.expressions import Expression
from discreet.query.facts import ExpressionFacts, Kind
from discreet.query.operators import Operator
from discreet.query.reading.arithmetic import bounds_of, number_facts
from discreet.query.reading.calendar import DAY
from discreet.query.reading.constants import LARGEST, a, truth
from discreet.query.reading.intervals import EVERYTHING, Interval, as_double

__all__ = ["CAST_RULES"]

_O = Operator
_K = Kind


def _refuse(argument: Expression, kind: Kind) -> Refused:
    return Refused(
        f"{a(argument.facts.kind)} is not cast to {a(kind)}",
        reason="engines disagree about the result",
        way_out="CASE says what each value shall become",
    )


def _to_integer(arguments: Sequence[Expression]) -> ExpressionFacts:
    facts = arguments[0].facts
    if facts.kind.is_time:
        raise _refuse(arguments[0], _K.INTEGER)
    if facts.kind is _K.TEXT:
        return number_facts(_K.INTEGER, EVERYTHING, nullable=True)
    interval = bounds_of(facts).monotone(_rounded)
    fits = interval.within(-LARGEST, LARGEST)
    return number_facts(_K.INTEGER, interval if fits else EVERYTHING, nullable=facts.nullable or not fits)


def _rounded(bound: Fraction) -> Fraction | None:
    number = as_double(bound)
    return None if number is None else Fraction(round(Fraction(number)))


def _to_real(arguments: Sequence[Expression]) -> ExpressionFacts:
    facts = arguments[0].facts
    if facts.kind.is_time:
        raise _refuse(arguments[0], _K.REAL)
    if facts.kind is _K.TEXT:
        return number_facts(_K.REAL, EVERYTHING, nullable=True)
    step = facts.step if facts.kind is _K.REAL else Fraction(1)
    return number_facts(_K.REAL, bounds_of(facts), nullable=facts.nullable, step=step)


def _to_text(arguments: Sequence[Expression]) -> ExpressionFacts:
    if arguments[0].facts.kind in (_K.REAL, _K.TIMESTAMP):
        raise _refuse(arguments[0], _K.TEXT)
    return ExpressionFacts(kind=_K.TEXT, nullable=arguments[0].facts.nullable)


def _to_date(arguments: Sequence[Expression]) -> ExpressionFacts:
    facts = arguments[0].facts
    if facts.kind is _K.TEXT:
        return ExpressionFacts(kind=_K.DATE)
    if not facts.kind.is_time:
        raise _refuse(arguments[0], _K.DATE)
    size = DAY if facts.kind is _K.TIMESTAMP else 1
    low, high = bounds_of(facts).monotone(lambda bound: Fraction(bound // size))
    return ExpressionFacts(kind=_K.DATE, low=low, high=high, nullable=facts.nullable)


def _to_timestamp(arguments: Sequence[Expression]) -> ExpressionFacts:
    facts = arguments[0].facts
    if facts.kind is _K.TEXT:
        return ExpressionFacts(kind=_K.TIMESTAMP)
    if not facts.kind.is_time:
        raise _refuse(arguments[0], _K.TIMESTAMP)
    size = DAY if facts.kind is _K.DATE else 1
    interval: Interval = bounds_of(facts).monotone(lambda bound: bound * size)
    return ExpressionFacts(kind=_K.TIMESTAMP, low=interval.low, high=interval.high, nullable=facts.nullable)


def _to_boolean(arguments: Sequence[Expression]) -> ExpressionFacts:
    facts = arguments[0].facts
    if facts.kind.is_time or facts.kind is _K.REAL:
        raise _refuse(arguments[0], _K.BOOLEAN)
    return truth(nullable=facts.nullable or facts.kind is _K.TEXT)


CAST_RULES: Mapping[Operator, Callable[[Sequence[Expression]], ExpressionFacts]] = {
    _O.TO_INTEGER: _to_integer,
    _O.TO_REAL: _to_real,
    _O.TO_TEXT: _to_text,
    _O.TO_DATE: _to_date,
    _O.TO_TIMESTAMP: _to_timestamp,
    _O.TO_BOOLEAN: _to_boolean,
}
