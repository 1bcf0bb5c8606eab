"""One rule for each operator: which kinds it takes, and between which bounds its value lies.

Whoever builds an expression, from SQL or from Python, builds it here: the facts of a node follow from those below it.
Refusals name no place; the reader of a text adds it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from discreet.errors import Refused
from discreet.query.expressions import Apply, Case, Expression, Field, Literal
from discreet.query.facts import ExpressionFacts, Kind
from discreet.query.operators import Operator
from discreet.query.reading.agreement import agree, identity_only, to_real
from discreet.query.reading.arithmetic import NUMBER_RULES, bounds_of, common_step, extreme_facts
from discreet.query.reading.casts import CAST_RULES
from discreet.query.reading.constants import a, is_null, literal, null_of, truth
from discreet.query.reading.evaluation import evaluate
from discreet.query.reading.intervals import hull
from discreet.query.reading.texts import TEXT_RULES, longest
from discreet.query.reading.times import TIME_RULES

__all__ = ["apply", "cast", "clamp", "literal", "renamed", "when"]

_O = Operator
_LONGEST = 10_000  # characters of a text that is made of others
_COMPARISONS = frozenset({_O.EQUAL, _O.NOT_EQUAL, _O.LESS, _O.LESS_OR_EQUAL, _O.GREATER, _O.GREATER_OR_EQUAL, _O.IN})
_CONNECTIVES = frozenset({_O.AND, _O.OR, _O.NOT})
_TELL_APART = frozenset({_O.EQUAL, _O.NOT_EQUAL, _O.IN, _O.IS_NULL})  # What can be asked of values of no known kind.
_EXTREMES = frozenset({_O.LEAST, _O.GREATEST})
_REALS = frozenset({_O.ADD, _O.SUBTRACT, _O.MULTIPLY, _O.DIVIDE, _O.NEGATE, _O.ABSOLUTE, _O.SQUARE_ROOT, _O.LOGARITHM,
                    _O.EXPONENTIAL})  # fmt: skip
_STRICT: Mapping[Operator, Callable[[Sequence[Expression]], ExpressionFacts]] = {
    **NUMBER_RULES,
    **TEXT_RULES,
    **TIME_RULES,
    **CAST_RULES,
}
_CASTS = {
    Kind.INTEGER: _O.TO_INTEGER,
    Kind.REAL: _O.TO_REAL,
    Kind.TEXT: _O.TO_TEXT,
    Kind.DATE: _O.TO_DATE,
    Kind.TIMESTAMP: _O.TO_TIMESTAMP,
    Kind.BOOLEAN: _O.TO_BOOLEAN,
}


def apply(operator: Operator, *arguments: Expression) -> Expression:
    """Apply an operator: check kinds, derive bounds, and compute at once what is constant."""
    if operator not in _TELL_APART and any(argument.facts.kind is Kind.IDENTITY for argument in arguments):
        raise identity_only()
    if operator in _CONNECTIVES:
        node = _connect(operator, arguments)
    elif operator is _O.IS_NULL:
        node = Apply(operator, arguments, replace(truth(nullable=False)))
    elif operator in _COMPARISONS:
        node = _compare(operator, arguments)
    elif operator is _O.COALESCE:
        node = _coalesce(arguments)
    elif operator in _EXTREMES:
        node = _extreme(operator, arguments)
    else:
        node = _strict(operator, arguments)
    return _folded(node)


def _folded(node: Expression) -> Expression:
    if not isinstance(node, Apply) or not all(isinstance(argument, Literal) for argument in node.arguments):
        return node
    value = evaluate(node, {})
    if value is None:
        return null_of(node.facts.kind)
    return literal(Fraction(repr(value)), Kind.REAL) if isinstance(value, float) else literal(value)


def _strict(operator: Operator, arguments: tuple[Expression, ...]) -> Expression:
    if any(is_null(argument) for argument in arguments):
        raise Refused(
            "this is NULL for every row",
            reason="nothing can be computed from NULL",
            way_out="leave it out, or test with IS NULL",
        )
    if operator in (_O.CONCAT, _O.REPLACE):
        return _grown(operator, arguments)
    if operator in (_O.FLOOR, _O.CEILING) and arguments[0].facts.kind is Kind.INTEGER:
        return arguments[0]
    facts = _STRICT[operator](arguments)
    if facts.kind is Kind.REAL and operator in _REALS:
        return Apply(operator, tuple(to_real(argument) for argument in arguments), facts)
    if facts.kind is Kind.REAL and operator in (_O.POWER, _O.ROUND):
        return Apply(operator, (to_real(arguments[0]), *arguments[1:]), facts)
    return Apply(operator, arguments, facts)


def _grown(operator: Operator, arguments: tuple[Expression, ...]) -> Expression:
    """Apply an operator that makes texts longer, and cut: doubled again and again, a text would fill all memory."""
    if operator is _O.REPLACE:
        arguments = (_cut(arguments[0]), *arguments[1:])
    node = Apply(operator, arguments, _STRICT[operator](arguments))
    sizes = [longest(argument) for argument in arguments]
    known = sum(size for size in sizes if size is not None)
    return node if operator is _O.CONCAT and None not in sizes and known <= _LONGEST else _cut(node)


def _cut(text: Expression) -> Expression:
    if text.facts.kind is not Kind.TEXT or isinstance(text, Literal):
        return text
    size = longest(text)
    return text if size is not None and size <= _LONGEST else apply(_O.SUBSTRING, text, literal(1), literal(_LONGEST))


def _connect(operator: Operator, arguments: tuple[Expression, ...]) -> Expression:
    truths = tuple(null_of(Kind.BOOLEAN) if is_null(argument) else argument for argument in arguments)
    for argument in truths:
        if argument.facts.kind is not Kind.BOOLEAN:
            raise Refused(
                f"a condition is needed here, and this is {a(argument.facts.kind)}",
                reason="what counts as true differs between engines",
                way_out="compare it, for example with <> 0",
            )
    return Apply(operator, truths, truth(nullable=any(argument.facts.nullable for argument in truths)))


def _compare(operator: Operator, arguments: tuple[Expression, ...]) -> Expression:
    if any(is_null(argument) for argument in arguments):
        raise Refused(
            "a comparison with NULL is never true",
            reason="the value of NULL is unknown, so that it equals nothing",
            way_out="write IS NULL or IS NOT NULL",
        )
    _, sides = agree(arguments)
    return Apply(operator, tuple(sides), truth(nullable=any(side.facts.nullable for side in sides)))


def _coalesce(arguments: tuple[Expression, ...]) -> Expression:
    kind, sides = agree([argument for argument in arguments if not is_null(argument)] or arguments)
    if len(sides) == 1:
        return sides[0]
    facts = replace(_hull(kind, sides), nullable=all(side.facts.nullable for side in sides))
    return Apply(_O.COALESCE, tuple(sides), facts)


def _hull(kind: Kind, values: Sequence[Expression]) -> ExpressionFacts:
    """Return what is known of a value that is one of several; NULL adds nothing."""
    known = [value for value in values if not is_null(value)]
    if not known:
        return ExpressionFacts(kind=kind)
    interval = hull(bounds_of(value.facts) for value in known)
    step = common_step(known, interval) if kind is Kind.REAL else None
    members = _joined_members(known) if kind in (Kind.TEXT, Kind.BOOLEAN, Kind.INTEGER) else None
    nullable = any(is_null(value) or value.facts.nullable for value in values)
    return ExpressionFacts(
        kind=kind, low=interval.low, high=interval.high, step=step, members=members, nullable=nullable
    )


def _joined_members(values: Sequence[Expression]) -> tuple[object, ...] | None:
    lists = [_members(value) for value in values]
    if any(members is None for members in lists):
        return None
    return tuple(dict.fromkeys(member for members in lists for member in members or ()))


def _members(value: Expression) -> tuple[object, ...] | None:
    return (value.value,) if isinstance(value, Literal) else value.facts.members


def _extreme(operator: Operator, arguments: tuple[Expression, ...]) -> Expression:
    _, sides = agree([argument for argument in arguments if not is_null(argument)] or arguments)
    if not (sides[0].facts.kind.is_number or sides[0].facts.kind.is_time):
        raise Refused(
            f"{operator.name} compares numbers or times",
            reason="the order of texts differs between engines",
            way_out="use CASE",
        )
    return Apply(operator, tuple(sides), extreme_facts(operator, sides))


def when(branches: Sequence[tuple[Expression, Expression]], otherwise: Expression | None = None) -> Expression:
    """Return the value of the first branch whose condition is true, or else `otherwise`, or else NULL."""
    for condition, _ in branches:
        _connect(_O.NOT, (condition,))
    last = literal(None) if otherwise is None else otherwise
    kind, values = agree([*(value for _, value in branches), last])
    conditions = (condition for condition, _ in branches)
    pairs = tuple(zip(conditions, values[:-1], strict=True))
    return Case(pairs, values[-1], _hull(kind, values))


def cast(argument: Expression, kind: Kind) -> Expression:
    """Cast to a kind; what has no value of it becomes NULL."""
    if is_null(argument):
        return null_of(kind)
    return argument if argument.facts.kind is kind else apply(_CASTS[kind], argument)


def clamp(argument: Expression, low: Fraction, high: Fraction) -> Expression:
    """Move a number into bounds; NULL stays NULL."""
    if not argument.facts.kind.is_number:
        raise Refused("bounds are for numbers", reason="only numbers are added up", way_out="CAST it to a number")
    inside = apply(_O.LEAST, apply(_O.GREATEST, argument, literal(low)), literal(high))
    if not argument.facts.nullable:
        return inside
    return when([(apply(_O.IS_NULL, argument), literal(None))], inside)


def renamed(expression: Expression, name: str) -> Field:
    """Return the field that holds an expression under a name."""
    return Field(name, expression.facts)
