"""Which values a key can take, from public facts alone. What is listed is shown even if nobody is in it.

A domain never contains NULL, unless somebody lists it: rows whose key is NULL, or is not listed, are in no group.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from datetime import date, datetime
from fractions import Fraction
from itertools import product
from math import prod
from typing import Any

from discreet.errors import InvalidParameter
from discreet.query.expressions import Apply, Case, Expression, Field, Literal, walk
from discreet.query.facts import Facts, Kind
from discreet.query.operators import Operator
from discreet.query.reading.calendar import DAY, add_months, time_of
from discreet.query.reading.evaluation import compute, evaluate

__all__ = ["domain_of", "listed_domain"]

_MOST = 100_000  # values that are listed, and combinations that are tried to find them
_MOST_LISTED = 1_000_000
_TYPES: dict[Kind, type | tuple[type, ...]] = {
    Kind.BOOLEAN: bool,
    Kind.INTEGER: int,
    Kind.TEXT: str,
    Kind.DATE: date,
    Kind.TIMESTAMP: datetime,
}
_STEPS = {"year": 12, "quarter": 3, "month": 1}  # months
_MICROSECONDS = {"week": 7 * DAY, "day": DAY, "hour": DAY // 24, "minute": DAY // 1440}


def domain_of(expression: Expression) -> tuple[Hashable, ...] | None:
    """Return all values that an expression can take apart from NULL, in order; None if data must tell them."""
    if isinstance(expression, Field):
        return _of_facts(expression.facts)
    if expression.facts.kind is Kind.REAL:
        return None
    found = _by_fields(expression) or _by_parts(expression)
    return None if found is None else _in_order(expression, found)


def _of_facts(facts: Facts) -> tuple[Hashable, ...] | None:
    if facts.members is not None:
        return facts.members
    if facts.low is None or facts.high is None:
        return None
    if facts.kind is Kind.INTEGER and facts.high - facts.low < _MOST:
        return tuple(range(-(-facts.low // 1), int(facts.high // 1) + 1))
    if facts.kind is Kind.DATE and facts.high - facts.low < _MOST:
        return tuple(time_of(Kind.DATE, Fraction(day)) for day in range(int(facts.low), int(facts.high) + 1))
    return None


def _by_fields(expression: Expression) -> list[Any] | None:
    """Try all combinations of the columns below, if they are few."""
    fields = {part.name: part for part in walk(expression) if isinstance(part, Field)}
    domains = [_of_facts(field.facts) for field in fields.values()]
    known = [domain for domain in domains if domain is not None]
    if len(known) < len(domains) or prod(len(domain) for domain in known) > _MOST:
        return None
    # A column may be NULL, and an expression of NULL may be something else, as COALESCE is.
    values = [(*domain, None) for domain in known]
    if prod(len(domain) for domain in values) > 2 * _MOST:
        return None
    return [evaluate(expression, dict(zip(fields, row, strict=True))) for row in product(*values)]


def _by_parts(expression: Expression) -> list[Any] | None:
    """Combine what each argument can be, or list what lies between the bounds."""
    match expression:
        case Literal():
            return [expression.value]
        case Case():
            results = [value for _, value in expression.branches] + [expression.otherwise]
            domains = [domain_of(value) if not _is_null(value) else () for value in results]
            if any(domain is None for domain in domains):
                return None
            return [value for domain in domains for value in domain or ()]
        case Apply():
            return _truncated(expression) or _listed(expression.facts) or _combined(expression)
        case Field():
            return None


def _is_null(expression: Expression) -> bool:
    return isinstance(expression, Literal) and expression.value is None


def _listed(facts: Facts) -> list[Any] | None:
    found = _of_facts(facts)
    return None if found is None else list(found)


def _combined(expression: Apply) -> list[Any] | None:
    parts = [domain_of(argument) for argument in expression.arguments]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts) or prod(len(part) for part in known) > _MOST:
        return None
    return [compute(expression.operator, row) for row in product(*known)]


def _truncated(expression: Apply) -> list[Any] | None:
    """List the starts of years, months or days between the bounds of a time."""
    if expression.operator is not Operator.TRUNCATE_TIME:
        return None
    unit = expression.arguments[0]
    facts = expression.facts
    if not isinstance(unit, Literal) or facts.low is None or facts.high is None:
        return None
    first, last = (time_of(facts.kind, bound) for bound in (facts.low, facts.high))
    if first is None or last is None:
        return None
    return _starts(str(unit.value), facts, first, last)


def _starts(unit: str, facts: Facts, first: date, last: date) -> list[Any] | None:
    if unit in _STEPS:
        months = (last.year - first.year) * 12 + last.month - first.month
        return [add_months(first, step) for step in range(0, months + 1, _STEPS[unit])] if months < _MOST else None
    size = _MICROSECONDS[unit] if facts.kind is Kind.TIMESTAMP else max(_MICROSECONDS[unit] // DAY, 1)
    assert facts.low is not None
    assert facts.high is not None
    count = int((facts.high - facts.low) // size) + 1
    return [time_of(facts.kind, facts.low + step * size) for step in range(count)] if count < _MOST else None


def _in_order(expression: Expression, values: Sequence[Any]) -> tuple[Hashable, ...]:
    distinct = list(dict.fromkeys(value for value in values if value is not None))
    order = _written(expression)
    if order is not None and set(distinct) <= set(order):
        return tuple(value for value in order if value in set(distinct))
    return tuple(sorted(distinct))


def _written(expression: Expression) -> list[Any] | None:
    """Return the constants of a CASE in the order in which they were written."""
    if not isinstance(expression, Case):
        return None
    results = [value for _, value in expression.branches] + [expression.otherwise]
    if not all(isinstance(value, Literal) for value in results):
        return None
    constants = [value.value for value in results if isinstance(value, Literal)]
    return list(dict.fromkeys(value for value in constants if value is not None))


def listed_domain(name: str, values: Sequence[Hashable], kind: Kind) -> tuple[Hashable, ...]:
    """Check a list of key values that somebody gives: distinct, of the kind of the key, NULL written as None."""
    wanted = _TYPES.get(kind)
    if wanted is None or isinstance(values, (str, bytes)):
        raise InvalidParameter(f"keys of {name} must be a list of texts, whole numbers, dates or truth values")
    members = tuple(values)
    if not 1 <= len(members) <= _MOST_LISTED or len(set(members)) != len(members):
        raise InvalidParameter(f"keys of {name} must be distinct, at least one and at most a million")
    for member in members:
        if member is not None and not _is_of(member, kind):
            raise InvalidParameter(f"keys of {name} must be of its kind, {kind.value}")
    return members


def _is_of(value: object, kind: Kind) -> bool:
    if kind is Kind.INTEGER and isinstance(value, bool):
        return False
    if kind is Kind.DATE and isinstance(value, datetime):
        return False
    return isinstance(value, _TYPES[kind])
