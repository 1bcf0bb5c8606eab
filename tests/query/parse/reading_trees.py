"""Random expressions of random columns, with values that lie where their facts say."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from fractions import Fraction
from random import Random
from typing import Any

from discreet.errors import Refused
from discreet.query.ast import Expression, Field, Operator
from discreet.query.functions.constants import literal
from discreet.query.functions.expressions import apply, cast, clamp, when
from discreet.schema.columns import ExpressionFacts, Kind

OP = Operator
EPOCH = datetime(1970, 1, 1)
REALS = (0.0, -0.0, 0.1, 1 / 3, -2.5, 7.0, 1e-300, 5e-324, 1e15, 2.0**53 + 2, 1e300, -1e300, 99.995)
INTEGERS = (0, 1, -1, 2, 3, 7, -8, 100, 10**6, 2**31, 2**53 + 1, -(2**61), 2**62)
UNARY = (OP.NEGATE, OP.ABSOLUTE, OP.SIGN, OP.FLOOR, OP.CEILING, OP.SQUARE_ROOT, OP.LOGARITHM, OP.EXPONENTIAL)
BINARY = (OP.ADD, OP.SUBTRACT, OP.MULTIPLY, OP.DIVIDE, OP.FLOOR_DIVIDE, OP.MODULO, OP.LEAST, OP.GREATEST, OP.COALESCE)
PARTS = (OP.YEAR, OP.QUARTER, OP.MONTH, OP.WEEK, OP.DAY, OP.WEEKDAY, OP.DAY_OF_YEAR, OP.HOUR, OP.MINUTE, OP.SECOND)
COMPARISONS = (OP.EQUAL, OP.NOT_EQUAL, OP.LESS, OP.LESS_OR_EQUAL, OP.GREATER, OP.GREATER_OR_EQUAL)


@dataclass
class Trees:
    """A source of expressions; `fields` collects what they read."""

    random: Random
    fields: dict[str, ExpressionFacts]

    def number(self, depth: int) -> Expression:
        if depth == 0 or self.random.random() < 0.15:
            return self._number_leaf()
        for _ in range(20):
            try:
                return self._number_node(depth - 1)
            except Refused:
                continue
        return self._number_leaf()

    def _number_leaf(self) -> Expression:
        if self.random.random() < 0.3:
            value = self.random.choice([*INTEGERS[:10], *(Fraction(x) for x in (0.5, -0.1, 3.0, 1e-3))])
            return literal(Fraction(str(float(value))), Kind.REAL) if isinstance(value, Fraction) else literal(value)
        return self._field(self.random.choice((Kind.INTEGER, Kind.REAL)))

    def _field(self, kind: Kind) -> Field:
        pool: tuple[Any, ...] = REALS if kind is Kind.REAL else INTEGERS
        ends = sorted(
            Fraction(repr(x)) if isinstance(x, float) else Fraction(x) for x in self.random.choices(pool, k=2)
        )
        known = self.random.random()
        facts = ExpressionFacts(
            kind=kind,
            low=ends[0] if known > 0.1 else None,
            high=ends[1] if known > 0.2 else None,
            step=self.random.choice((None, Fraction(1, 100))) if kind is Kind.REAL else None,
            nullable=self.random.random() < 0.7,
        )
        name = f"f{len(self.fields) + 1}"
        self.fields[name] = facts
        return Field(name, facts)

    def _number_node(self, depth: int) -> Expression:
        choice = self.random.random()
        if choice < 0.5:
            return apply(self.random.choice(BINARY), self.number(depth), self.number(depth))
        if choice < 0.75:
            return apply(self.random.choice(UNARY), self.number(depth))
        if choice < 0.82:
            return apply(OP.POWER, self.number(depth), literal(self.random.randint(0, 8)))
        if choice < 0.88:
            return apply(OP.ROUND, self.number(depth), literal(self.random.randint(-3, 4)))
        if choice < 0.91:
            return cast(self.number(depth), self.random.choice((Kind.INTEGER, Kind.REAL)))
        if choice < 0.94:
            return clamp(self.number(depth), Fraction(-3), Fraction(5, 2))
        if choice < 0.97:
            return apply(self.random.choice(PARTS), self.time(depth))
        return when([(self.condition(depth), self.number(depth))], self.number(depth))

    def condition(self, depth: int) -> Expression:
        one, other = self.number(depth), self.number(depth)
        return self.random.choice(
            (
                apply(self.random.choice(COMPARISONS), one, other),
                apply(OP.IS_NULL, one),
                apply(OP.NOT, apply(OP.LESS, one, other)),
                apply(OP.AND, apply(OP.LESS, one, other), apply(OP.IS_NULL, other)),
            )
        )

    def time(self, depth: int) -> Expression:
        if depth <= 0:
            return self._time_field()
        units = ("year", "quarter", "month", "week", "day", "hour", "minute")
        inner = self.time(depth - 1)
        return self.random.choice(
            (
                apply(OP.TRUNCATE_TIME, literal(self.random.choice(units)), inner),
                apply(OP.ADD_DAYS, inner, literal(self.random.randint(-400, 400))),
                apply(OP.ADD_MONTHS, inner, literal(self.random.randint(-40, 40))),
                cast(inner, self.random.choice((Kind.DATE, Kind.TIMESTAMP))),
            )
        )

    def _time_field(self) -> Field:
        kind = self.random.choice((Kind.DATE, Kind.TIMESTAMP))
        ends = sorted(self.random.choices(range(-20_000, 20_000), k=2))
        size = 1 if kind is Kind.DATE else 86_400_000_000
        facts = ExpressionFacts(kind=kind, low=Fraction(ends[0] * size), high=Fraction(ends[1] * size + size - 1))
        name = f"f{len(self.fields) + 1}"
        self.fields[name] = facts
        return Field(name, facts)

    def row(self) -> dict[str, Any]:
        return {name: self._value(facts) for name, facts in self.fields.items()}

    def _value(self, facts: ExpressionFacts) -> Any:
        if facts.nullable and self.random.random() < 0.1:
            return None
        if facts.kind.is_time:
            return self._moment(facts)
        pool: tuple[Any, ...] = (*REALS, *INTEGERS) if facts.kind is Kind.REAL else INTEGERS
        value: Any = self.random.choice([*pool, facts.low, facts.high, self.random.randint(-50, 50)])
        value = Fraction(0) if value is None else Fraction(value)
        value = value if facts.low is None else max(value, facts.low)
        value = value if facts.high is None else min(value, facts.high)
        return float(value) if facts.kind is Kind.REAL else int(value)

    def _moment(self, facts: ExpressionFacts) -> date:
        assert facts.low is not None
        assert facts.high is not None
        number = self.random.randint(int(facts.low), int(facts.high))
        if facts.kind is Kind.DATE:
            return EPOCH.date() + timedelta(days=number)
        return EPOCH + timedelta(microseconds=number)
