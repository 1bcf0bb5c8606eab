"""Expressions for people who would rather write Python: each writes the SQL that would be written by hand.

Nothing is computed here. What is written goes the way of all SQL, so there is one set of rules and no second door.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import TypeAlias, final

from discreet.errors import InvalidParameter

__all__ = ["Expr", "Operand", "col", "name", "word"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Expr:
    """A piece of SQL that stands for one value of a row, or for a statistic of a group."""

    sql: str

    def __add__(self, other: Operand) -> Expr:
        return _between(self, "+", other)

    def __radd__(self, other: Operand) -> Expr:
        return _between(other, "+", self)

    def __sub__(self, other: Operand) -> Expr:
        return _between(self, "-", other)

    def __rsub__(self, other: Operand) -> Expr:
        return _between(other, "-", self)

    def __mul__(self, other: Operand) -> Expr:
        return _between(self, "*", other)

    def __rmul__(self, other: Operand) -> Expr:
        return _between(other, "*", self)

    def __truediv__(self, other: Operand) -> Expr:
        return _between(self, "/", other)

    def __rtruediv__(self, other: Operand) -> Expr:
        return _between(other, "/", self)

    def __mod__(self, other: Operand) -> Expr:
        return _between(self, "%", other)

    def __neg__(self) -> Expr:
        return Expr(f"(- {self.sql})")

    def __eq__(self, other: object) -> Expr:  # type: ignore[override]
        return _between(self, "=", other)  # type: ignore[arg-type]

    def __ne__(self, other: object) -> Expr:  # type: ignore[override]
        return _between(self, "<>", other)  # type: ignore[arg-type]

    def __lt__(self, other: Operand) -> Expr:
        return _between(self, "<", other)

    def __le__(self, other: Operand) -> Expr:
        return _between(self, "<=", other)

    def __gt__(self, other: Operand) -> Expr:
        return _between(self, ">", other)

    def __ge__(self, other: Operand) -> Expr:
        return _between(self, ">=", other)

    def __and__(self, other: Operand) -> Expr:
        return _between(self, "AND", other)

    def __or__(self, other: Operand) -> Expr:
        return _between(self, "OR", other)

    def __invert__(self) -> Expr:
        return Expr(f"(NOT {self.sql})")

    __hash__ = None  # type: ignore[assignment]  # Comparing makes a condition, so a set could not tell two apart.

    def __bool__(self) -> bool:
        raise InvalidParameter("a condition has no truth value yet: join conditions by & and |, not by and, or")

    def isin(self, values: Iterable[Operand]) -> Expr:
        """Whether the value is one of these."""
        listed = [word(value).sql for value in values]
        if not listed:
            raise InvalidParameter("isin needs at least one value")
        return Expr(f"({self.sql} IN ({', '.join(listed)}))")

    def between(self, low: Operand, high: Operand) -> Expr:
        """Whether the value lies from `low` to `high`, ends included."""
        return Expr(f"({self.sql} BETWEEN {word(low).sql} AND {word(high).sql})")

    def like(self, pattern: str) -> Expr:
        """Whether the text matches a constant pattern of SQL."""
        return Expr(f"({self.sql} LIKE {word(pattern).sql})")

    def is_null(self) -> Expr:
        """Whether there is no value."""
        return Expr(f"({self.sql} IS NULL)")

    def or_else(self, default: Operand) -> Expr:
        """The value, or a default where there is none."""
        return Expr(f"COALESCE({self.sql}, {word(default).sql})")


Operand: TypeAlias = Expr | bool | int | float | Fraction | Decimal | str | date | datetime


def col(column: str, *, table: str | None = None) -> Expr:
    """A column of the table that is asked, or of one that was joined."""
    return Expr(name(column) if table is None else f"{name(table)}.{name(column)}")


def name(text: str) -> str:
    """Write a name in quotes, so that it is nothing but a name."""
    if not isinstance(text, str) or not text or "\0" in text:
        raise InvalidParameter("a name must be a text that is not empty")
    return '"' + text.replace('"', '""') + '"'


def word(value: Operand) -> Expr:
    """Write a constant exactly."""
    match value:
        case Expr():
            return value
        case bool():
            return Expr("TRUE" if value else "FALSE")
        case str():
            return Expr("'" + value.replace("'", "''") + "'")
        case datetime():
            return Expr(f"TIMESTAMP '{value.isoformat(sep=' ')}'")
        case date():
            return Expr(f"DATE '{value.isoformat()}'")
        case int() | float() | Decimal() | Fraction():
            return Expr(_decimal(value))
    raise InvalidParameter(f"{type(value).__name__} cannot stand in a question")


def _decimal(value: int | float | Decimal | Fraction) -> str:
    """Write a number with all of its digits; SQL has no other way to say it exactly."""
    from discreet.exact import exact

    number = exact(value, name="a constant")
    denominator = number.denominator
    places = 0
    while denominator % 10 == 0 or denominator % 2 == 0 or denominator % 5 == 0:
        denominator = denominator // 10 if denominator % 10 == 0 else denominator // (2 if denominator % 2 == 0 else 5)
        places += 1
    if denominator != 1:
        raise InvalidParameter("a constant must be a decimal number")
    digits = str(abs(number.numerator) * 10**places // number.denominator).rjust(places + 1, "0")
    written = digits if places == 0 else f"{digits[:-places]}.{digits[-places:]}"
    return f"(- {written})" if number < 0 else written


def _between(left: Operand, operator: str, right: Operand) -> Expr:
    return Expr(f"({word(left).sql} {operator} {word(right).sql})")
