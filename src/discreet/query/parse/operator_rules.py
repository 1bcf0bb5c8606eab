"""One rule for each operator: which kinds it takes, how kinds agree, and between which bounds its value lies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from fractions import Fraction

from discreet.errors import InvalidParameter, Refused
from discreet.exact import exact
from discreet.query.ast import Apply, Case, Expression, Field, Literal, Operator
from discreet.query.column_types import INFERRED, ExpressionFacts, Kind
from discreet.query.parse.date_rules import TIME_RULES
from discreet.query.parse.evaluation import DAY, LARGEST, a, evaluate, is_null, literal, null_of, parse_time, truth
from discreet.query.parse.number_rules import (
    EVERYTHING,
    NUMBER_RULES,
    Interval,
    as_double,
    bounds_of,
    common_step,
    extreme_facts,
    hull,
    nearest_double,
    number_facts,
)

__all__ = [
    "CAST_RULES",
    "TEXT_RULES",
    "agree",
    "apply",
    "cast",
    "clamp",
    "identity_only",
    "literal",
    "longest",
    "renamed",
    "to_real",
    "to_timestamp",
    "when",
]

# --- casts: Facts of casts. What has no value of the new kind becomes NULL. ---


_CASTS_O = Operator
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
    _CASTS_O.TO_INTEGER: _to_integer,
    _CASTS_O.TO_REAL: _to_real,
    _CASTS_O.TO_TEXT: _to_text,
    _CASTS_O.TO_DATE: _to_date,
    _CASTS_O.TO_TIMESTAMP: _to_timestamp,
    _CASTS_O.TO_BOOLEAN: _to_boolean,
}


# --- texts: Facts of operators on texts. ---


_TEXTS_O = Operator
_TEXTS_LONGEST = 10_000  # characters that a constant may ask for
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
    if max(start, length) > _TEXTS_LONGEST:
        raise Refused(
            f"SUBSTRING looks at the first {_TEXTS_LONGEST:,} characters at most",
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
    if isinstance(argument, Apply) and argument.operator is _TEXTS_O.SUBSTRING:
        length = argument.arguments[2]
        return length.value if isinstance(length, Literal) and isinstance(length.value, int) else None
    return None


TEXT_RULES: Mapping[Operator, Callable[[Sequence[Expression]], ExpressionFacts]] = {
    _TEXTS_O.LOWER: _text,
    _TEXTS_O.UPPER: _text,
    _TEXTS_O.TRIM: _text,
    _TEXTS_O.CONCAT: _text,
    _TEXTS_O.LENGTH: _length,
    _TEXTS_O.SUBSTRING: _substring,
    _TEXTS_O.LIKE: _matches,
    _TEXTS_O.LIKE_ANY_CASE: _matches,
    _TEXTS_O.STARTS_WITH: _matches,
    _TEXTS_O.REPLACE: _replace,
}


# --- rules: One rule for each operator: which kinds it takes, and between which bounds its value lies. ---
#
# Whoever builds an expression, from SQL or from Python, builds it here: the facts of a node follow from those below it.
# Refusals name no place; the reader of a text adds it.


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


# --- agreement: Bring values that meet in one place to one kind: two sides of a comparison, the branches of a CASE. ---


def agree(arguments: Sequence[Expression]) -> tuple[Kind, list[Expression]]:
    """Return the one kind of all arguments, and the arguments as values of it. NULL is of any kind."""
    kinds = {argument.facts.kind for argument in arguments if not is_null(argument)}
    if not kinds:
        return Kind.TEXT, list(arguments)
    if Kind.IDENTITY in kinds and len(kinds) > 1:
        raise identity_only()
    kind = _common_kind(kinds, arguments)
    return kind, [_as_kind(argument, kind) for argument in arguments]


def identity_only() -> Refused:
    """Refuse to compute with the unit of a frame: it is told apart from others, and of no kind."""
    return Refused(
        "the unit of a pandas frame is counted, grouped by and joined with itself only",
        reason=INFERRED,
        way_out="ask the custodian to hand the table over as Arrow or polars, whose types are declared",
    )


def _common_kind(kinds: set[Kind], arguments: Sequence[Expression]) -> Kind:
    if kinds <= {Kind.INTEGER, Kind.REAL}:
        return Kind.REAL if Kind.REAL in kinds else Kind.INTEGER
    if kinds <= {Kind.DATE, Kind.TIMESTAMP}:
        return Kind.TIMESTAMP if Kind.TIMESTAMP in kinds else Kind.DATE
    if len(kinds) == 1:
        return next(iter(kinds))
    constants = {argument for argument in arguments if _is_text_constant(argument)}
    others = [argument for argument in arguments if argument not in constants]
    rest = {argument.facts.kind for argument in others if not is_null(argument)}
    if Kind.TEXT in kinds and rest and Kind.TEXT not in rest:
        return _common_kind(rest, others)
    names = " and ".join(sorted(kind.value for kind in kinds))
    raise Refused(
        f"{names} do not go together here",
        reason="a hidden cast could fail for one row only, and a failure tells about that row",
        way_out="CAST one side, or write the constant in the form of the column",
    )


def _is_text_constant(argument: Expression) -> bool:
    return isinstance(argument, Literal) and isinstance(argument.value, str)


def _as_kind(argument: Expression, kind: Kind) -> Expression:
    if is_null(argument):
        return null_of(kind)
    if argument.facts.kind is kind:
        return argument
    if isinstance(argument, Literal) and isinstance(argument.value, str):
        return _parsed(argument.value, kind)
    return to_timestamp(argument) if kind is Kind.TIMESTAMP else to_real(argument)


def _parsed(text: str, kind: Kind) -> Expression:
    """Read a constant text as what it is compared with."""
    if kind.is_time:
        moment = parse_time(text, kind)
        if moment is not None:
            return literal(moment)
    elif kind.is_number:
        try:
            number = exact(text)
        except InvalidParameter:
            pass
        else:
            return literal(number, Kind.REAL) if kind is Kind.REAL else _whole(number)
    elif text.strip().lower() in ("true", "false"):
        return literal(text.strip().lower() == "true")
    raise Refused(
        f"this text is no {kind.value}",
        reason="the other side is one, and nothing else can be equal to it",
        way_out=_EXAMPLES[kind],
    )


def _whole(number: Fraction) -> Literal:
    value = literal(number)
    if value.facts.kind is not Kind.INTEGER:
        raise Refused(
            "this text is no whole number",
            reason="the other side is one, and nothing else can be equal to it",
            way_out="write a number without quotes",
        )
    return value


_EXAMPLES = {
    Kind.DATE: "write a date such as DATE '2024-12-31'",
    Kind.TIMESTAMP: "write a timestamp such as TIMESTAMP '2024-12-31 23:59:59', without a time zone",
    Kind.INTEGER: "write a number without quotes",
    Kind.REAL: "write a number without quotes",
    Kind.BOOLEAN: "write TRUE or FALSE",
}


def to_real(argument: Expression) -> Expression:
    """Turn a whole number into a double."""
    if argument.facts.kind is Kind.REAL:
        return argument
    if isinstance(argument, Literal) and isinstance(argument.value, int):
        return literal(Fraction(argument.value), Kind.REAL)
    low, high = bounds_of(argument.facts).monotone(nearest_double)
    facts = ExpressionFacts(kind=Kind.REAL, low=low, high=high, step=Fraction(1), nullable=argument.facts.nullable)
    return Apply(Operator.TO_REAL, (argument,), facts)


def to_timestamp(argument: Expression) -> Expression:
    """Turn a date into the moment at which it begins."""
    if argument.facts.kind is Kind.TIMESTAMP:
        return argument
    if isinstance(argument, Literal) and isinstance(argument.value, date):
        return literal(datetime(argument.value.year, argument.value.month, argument.value.day))
    low, high = bounds_of(argument.facts).monotone(lambda bound: bound * DAY)
    facts = replace(argument.facts, kind=Kind.TIMESTAMP, low=low, high=high, members=None)
    return Apply(Operator.TO_TIMESTAMP, (argument,), facts)
