"""Facts of operators on texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from discreet.errors import Refused
from discreet.query.expressions import Apply, Expression, Literal
from discreet.query.facts import ExpressionFacts, Kind
from discreet.query.operators import Operator
from discreet.query.reading.constants import a, truth

__all__ = ["TEXT_RULES", "longest"]

_O = Operator
_LONGEST = 10_000  # characters that a constant may ask for
_LONGEST_PATTERN = 1_000
_LONGEST_REPLACEMENT = 100


def _require_texts(arguments: Sequence[Expression]) -> None:
    for argument in arguments:
        if argument.facts.kind is not Kind.TEXT:
            raise Refused(
                f"this needs a text, and it is {a(argument.facts.kind)}",
                reason="every operator has one meaning for each kind of value",
                way_out="CAST it to VARCHAR",
            )


def _require_constants(arguments: Sequence[Expression], *kinds: type) -> None:
    for argument, kind in zip(arguments, kinds, strict=True):
        if not isinstance(argument, Literal) or not isinstance(argument.value, kind):
            raise Refused(
                "this must be a constant",
                reason="a pattern or a position that comes from data costs time that depends on the data",
                way_out="write it out, or compare with =",
            )


def _require_short(argument: Expression, most: int) -> None:
    if isinstance(argument, Literal) and isinstance(argument.value, str) and len(argument.value) > most:
        raise Refused(
            f"this text has at most {most:,} characters",
            reason="longer ones cost time and memory that depend on the data",
            way_out="write a shorter one",
        )


def _text(arguments: Sequence[Expression]) -> ExpressionFacts:
    _require_texts(arguments)
    return ExpressionFacts(kind=Kind.TEXT, nullable=any(argument.facts.nullable for argument in arguments))


def _length(arguments: Sequence[Expression]) -> ExpressionFacts:
    _require_texts(arguments)
    return ExpressionFacts(kind=Kind.INTEGER, low=Fraction(0), nullable=arguments[0].facts.nullable)


def _substring(arguments: Sequence[Expression]) -> ExpressionFacts:
    _require_texts(arguments[:1])
    _require_constants(arguments[1:], int, int)
    start, length = (argument.value for argument in arguments[1:] if isinstance(argument, Literal))
    if not (isinstance(start, int) and isinstance(length, int) and start >= 1 and length >= 0):
        raise Refused(
            "SUBSTRING starts at 1 or later and takes no negative length",
            reason="engines disagree about other places",
            way_out="count from the start of the text",
        )
    if max(start, length) > _LONGEST:
        raise Refused(
            f"SUBSTRING looks at the first {_LONGEST:,} characters at most",
            reason="long texts cost time that depends on the data",
            way_out="take a shorter part",
        )
    return ExpressionFacts(kind=Kind.TEXT, nullable=arguments[0].facts.nullable)


def _matches(arguments: Sequence[Expression]) -> ExpressionFacts:
    _require_texts(arguments[:1])
    _require_constants(arguments[1:], str)
    _require_short(arguments[1], _LONGEST_PATTERN)
    return truth(nullable=arguments[0].facts.nullable)


def _replace(arguments: Sequence[Expression]) -> ExpressionFacts:
    _require_texts(arguments[:1])
    _require_constants(arguments[1:], str, str)
    _require_short(arguments[2], _LONGEST_REPLACEMENT)
    return ExpressionFacts(kind=Kind.TEXT, nullable=arguments[0].facts.nullable)


def longest(argument: Expression) -> int | None:
    """Return how many characters a text has at most, if it is known; members are not enforced, so they tell nothing."""
    if isinstance(argument, Literal):
        return len(str(argument.value))
    if isinstance(argument, Apply) and argument.operator is _O.SUBSTRING:
        length = argument.arguments[2]
        return length.value if isinstance(length, Literal) and isinstance(length.value, int) else None
    return None


TEXT_RULES: Mapping[Operator, Callable[[Sequence[Expression]], ExpressionFacts]] = {
    _O.LOWER: _text,
    _O.UPPER: _text,
    _O.TRIM: _text,
    _O.CONCAT: _text,
    _O.LENGTH: _length,
    _O.SUBSTRING: _substring,
    _O.LIKE: _matches,
    _O.LIKE_ANY_CASE: _matches,
    _O.STARTS_WITH: _matches,
    _O.REPLACE: _replace,
}
