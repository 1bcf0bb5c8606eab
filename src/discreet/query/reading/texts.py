"""Facts of operators on texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from discreet.errors import Refused
from discreet.query.expressions import Expression, Literal
from discreet.query.facts import Facts, Kind
from discreet.query.operators import Operator
from discreet.query.reading.constants import a, truth

__all__ = ["TEXT_RULES"]

_O = Operator
_LONGEST = 10_000  # characters that a constant may ask for


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


def _text(arguments: Sequence[Expression]) -> Facts:
    _require_texts(arguments)
    return Facts(kind=Kind.TEXT, nullable=any(argument.facts.nullable for argument in arguments))


def _length(arguments: Sequence[Expression]) -> Facts:
    _require_texts(arguments)
    return Facts(kind=Kind.INTEGER, low=Fraction(0), nullable=arguments[0].facts.nullable)


def _substring(arguments: Sequence[Expression]) -> Facts:
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
    return Facts(kind=Kind.TEXT, nullable=arguments[0].facts.nullable)


def _matches(arguments: Sequence[Expression]) -> Facts:
    _require_texts(arguments[:1])
    _require_constants(arguments[1:], str)
    return truth(nullable=arguments[0].facts.nullable)


def _replace(arguments: Sequence[Expression]) -> Facts:
    _require_texts(arguments[:1])
    _require_constants(arguments[1:], str, str)
    return Facts(kind=Kind.TEXT, nullable=arguments[0].facts.nullable)


TEXT_RULES: Mapping[Operator, Callable[[Sequence[Expression]], Facts]] = {
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
