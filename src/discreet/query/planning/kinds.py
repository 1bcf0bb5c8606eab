"""The kind of a value that is computed from released ones: by its operator and the kinds of its parts."""

from __future__ import annotations

from collections.abc import Sequence

from discreet.query.facts import Kind
from discreet.query.operators import Operator

__all__ = ["common_kind", "kind_of"]

_O = Operator
_TRUTHS = {
    _O.EQUAL, _O.NOT_EQUAL, _O.LESS, _O.LESS_OR_EQUAL, _O.GREATER, _O.GREATER_OR_EQUAL, _O.IS_NULL, _O.IN, _O.AND,
    _O.OR, _O.NOT, _O.LIKE, _O.LIKE_ANY_CASE, _O.STARTS_WITH, _O.TO_BOOLEAN,
}  # fmt: skip
_REALS = {_O.DIVIDE, _O.SQUARE_ROOT, _O.LOGARITHM, _O.EXPONENTIAL, _O.TO_REAL}
_WHOLES = {
    _O.FLOOR_DIVIDE, _O.SIGN, _O.FLOOR, _O.CEILING, _O.LENGTH, _O.YEAR, _O.QUARTER, _O.MONTH, _O.WEEK, _O.DAY,
    _O.WEEKDAY, _O.DAY_OF_YEAR, _O.HOUR, _O.MINUTE, _O.SECOND, _O.DAYS_BETWEEN, _O.TO_INTEGER,
}  # fmt: skip
_TEXTS = {_O.LOWER, _O.UPPER, _O.TRIM, _O.SUBSTRING, _O.CONCAT, _O.REPLACE, _O.TO_TEXT}
_TIMES = {_O.TRUNCATE_TIME, _O.ADD_DAYS, _O.ADD_MONTHS}
_ALWAYS = {
    **dict.fromkeys(_TRUTHS, Kind.BOOLEAN),
    **dict.fromkeys(_REALS, Kind.REAL),
    **dict.fromkeys(_WHOLES, Kind.INTEGER),
    **dict.fromkeys(_TEXTS, Kind.TEXT),
    _O.TO_DATE: Kind.DATE,
    _O.TO_TIMESTAMP: Kind.TIMESTAMP,
}


def kind_of(operator: Operator, parts: Sequence[Kind]) -> Kind:
    """Return the kind of an operator's value; what has no kind of its own is of the kind of its arguments."""
    if operator in _ALWAYS:
        return _ALWAYS[operator]
    return common_kind([part for part in parts if part.is_time] if operator in _TIMES else parts)


def common_kind(parts: Sequence[Kind]) -> Kind:
    """Return the kind that holds values of all kinds: text, if they are unlike."""
    if parts and all(part is parts[0] for part in parts):
        return parts[0]
    return Kind.REAL if all(part.is_number for part in parts) else Kind.TEXT
