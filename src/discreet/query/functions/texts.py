"""Functions of texts."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from discreet.errors import Refused
from discreet.query.ast import Apply, Expression, Field, Literal, Operator
from discreet.query.engines.sql_writer import Rule, WriteAs, Writer
from discreet.query.functions.constants import a, literal, truth
from discreet.query.functions.numbers import literal_integer
from discreet.query.functions.record import SqlFunction, strict
from discreet.schema.columns import LONGEST_TEXT, ExpressionFacts, Kind

__all__ = ["TEXTS", "cut_text"]

_O = Operator

# --- facts: Kinds, and what must be a constant. ---


_LONGEST = 10_000  # characters of a text that is made of others, and that a constant may ask for
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


def _text_facts(arguments: Sequence[Expression]) -> ExpressionFacts:
    _require_texts(arguments)
    return ExpressionFacts(kind=Kind.TEXT, nullable=any(argument.facts.nullable for argument in arguments))


def _length_facts(arguments: Sequence[Expression]) -> ExpressionFacts:
    _require_texts(arguments)
    return ExpressionFacts(kind=Kind.INTEGER, low=Fraction(0), nullable=arguments[0].facts.nullable)


def _substring_facts(arguments: Sequence[Expression]) -> ExpressionFacts:
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


def _right_facts(arguments: Sequence[Expression]) -> ExpressionFacts:
    _require_texts(arguments[:1])
    _require_constants(arguments[1:], int)
    if not 0 <= literal_integer(arguments[1]) <= _LONGEST:
        raise Refused(
            f"RIGHT takes from 0 to {_LONGEST:,} characters",
            reason="engines disagree about negative numbers, and long texts cost time that depends on the data",
            way_out="count from the end of the text",
        )
    return ExpressionFacts(kind=Kind.TEXT, nullable=arguments[0].facts.nullable)


def _matches_facts(arguments: Sequence[Expression]) -> ExpressionFacts:
    _require_texts(arguments[:1])
    _require_constants(arguments[1:], str)
    _require_short(arguments[1], _LONGEST_PATTERN)
    return truth(nullable=arguments[0].facts.nullable)


def _replace_facts(arguments: Sequence[Expression]) -> ExpressionFacts:
    _require_texts(arguments[:1])
    _require_constants(arguments[1:], str, str)
    _require_short(arguments[2], _LONGEST_REPLACEMENT)
    return ExpressionFacts(kind=Kind.TEXT, nullable=arguments[0].facts.nullable)


def _most_characters(argument: Expression) -> int | None:
    """Return how many characters a text has at most, if it is known; members are not enforced, so they tell nothing."""
    if isinstance(argument, Literal):
        return len(str(argument.value))
    if isinstance(argument, Apply) and argument.operator is _O.SUBSTRING:
        length = argument.arguments[2]
        return length.value if isinstance(length, Literal) and isinstance(length.value, int) else None
    return None


def _grown(function: SqlFunction, arguments: tuple[Expression, ...]) -> Expression:
    """Apply a function that makes texts longer, and cut: doubled again and again, a text would fill all memory."""
    replaces = function.operator is _O.REPLACE
    node = strict(function, (_cut(arguments[0]), *arguments[1:]) if replaces else arguments)
    sizes = [_most_characters(argument) for argument in arguments]
    known = sum(size for size in sizes if size is not None)
    return node if not replaces and None not in sizes and known <= _LONGEST else _cut(node)


def _cut(text: Expression) -> Expression:
    if text.facts.kind is not Kind.TEXT or isinstance(text, Literal):
        return text
    size = _most_characters(text)
    if size is not None and size <= _LONGEST:
        return text
    part = (text, literal(1), literal(_LONGEST))
    return Apply(_O.SUBSTRING, part, _substring_facts(part))


# --- values: What they mean, in Python. ---


def _like(text: str, pattern: str) -> bool:
    """Match from left to right; after a failure only the last % takes one letter more, so that nothing takes long."""
    at, place = 0, 0
    star, resume = -1, 0
    while at < len(text):
        letter = pattern[place] if place < len(pattern) else None
        if letter == "%":
            star, resume, place = place, at, place + 1
        elif letter is not None and letter in ("_", text[at]):
            at, place = at + 1, place + 1
        elif star >= 0:
            resume += 1
            at, place = resume, star + 1
        else:
            return False
    return not pattern[place:].strip("%")


def _substring(text: str, start: int, length: int) -> str:
    return text[int(start) - 1 : int(start) - 1 + int(length)]


def _right(text: str, length: int) -> str:
    return text[max(0, len(text) - int(length)) :]


# --- SQL ---
# Texts in SQL. A text is cut at a length that no honest answer needs, before a function and after every step of one.
#
# So no text that is made on the way is much longer than that, and what a row costs is known before it is read.


_END = 1 << 31
_CHOICE = Operator.COALESCE


def cut_text(text: str, expression: Expression) -> str:
    """Write a text no longer than texts may be: only a column as it is stored, or a choice among such, can be."""
    if isinstance(expression, Literal) or (isinstance(expression, Apply) and expression.operator is not _CHOICE):
        return text
    shorter = f"left({text}, {LONGEST_TEXT})"
    # Most columns pass at once; a long expression is not written twice.
    whole = f"(CASE WHEN strlen({text}) <= {LONGEST_TEXT} THEN {text} ELSE {shorter} END)"
    return whole if isinstance(expression, Field) else shorter


def _write_call(name: str, *, kind: Kind = Kind.TEXT) -> Rule:
    def rule(node: Apply, writer: Writer, write_as: WriteAs) -> str:
        parts = [cut_text(write_as(argument, Kind.TEXT, writer), argument) for argument in node.arguments]
        call = f"{name}({', '.join(parts)})"
        return f"CAST({call} AS BIGINT)" if kind is Kind.INTEGER else call

    return rule


def _write_substring(node: Apply, writer: Writer, write_as: WriteAs) -> str:
    start = literal_integer(node.arguments[1])
    length = literal_integer(node.arguments[2]) if len(node.arguments) > 2 else _END
    # Places before the first are empty, as in the standard; the engine would count them from the end.
    first = min(max(start, 1), _END)
    count = min(max(start + length - first, 0), _END)
    return f"substring({write_as(node.arguments[0], Kind.TEXT, writer)}, {first}, {count})"


def _write_right(node: Apply, writer: Writer, write_as: WriteAs) -> str:
    text, length = node.arguments
    return f"right({cut_text(write_as(text, Kind.TEXT, writer), text)}, {literal_integer(length)})"


def _write_concat(node: Apply, writer: Writer, write_as: WriteAs) -> str:
    """Put texts together two by two: each step is cut_text, and the expression is no deeper than it must be."""
    parts = [cut_text(write_as(argument, Kind.TEXT, writer), argument) for argument in node.arguments]
    while len(parts) > 1:
        pairs = [
            f"left({first} || {second}, {LONGEST_TEXT})" for first, second in zip(parts[::2], parts[1::2], strict=False)
        ]
        parts = pairs + parts[len(pairs) * 2 :]
    return parts[0]


def _write_replace(node: Apply, writer: Writer, write_as: WriteAs) -> str:
    text, old, new = (write_as(argument, Kind.TEXT, writer) for argument in node.arguments)
    by = node.arguments[2]
    # Each character may become as long as the new text: a text is cut_text before, so that a row stays small.
    longest = len(by.value) if isinstance(by, Literal) and isinstance(by.value, str) else LONGEST_TEXT
    cut_text = max(1, LONGEST_TEXT * 100 // max(1, longest))
    return f"left(replace(left({text}, {cut_text}), {old}, {new}), {LONGEST_TEXT})"


def _write_infix(sign: str) -> Rule:
    def rule(node: Apply, writer: Writer, write_as: WriteAs) -> str:
        left, right = (cut_text(write_as(argument, Kind.TEXT, writer), argument) for argument in node.arguments)
        return f"({left} {sign} {right})"

    return rule


# --- work: How long a text can become, and how many characters are looked through. ---


def _constant_or_longest(expression: Expression) -> int:
    is_whole = isinstance(expression, Literal) and isinstance(expression.value, int)
    return max(0, int(expression.value)) if is_whole else LONGEST_TEXT  # type: ignore[union-attr, arg-type]


def _length_of_part(arguments: Sequence[Expression], lengths: Sequence[int]) -> int:
    return min(lengths[0], _constant_or_longest(arguments[2]))


def _work_of_part(arguments: Sequence[Expression], lengths: Sequence[int], length: int) -> int:
    """It looks no further than where it ends."""
    return 1 + min(lengths[0], _constant_or_longest(arguments[1]) + _constant_or_longest(arguments[2])) + length


def _work_of_pattern(arguments: Sequence[Expression], lengths: Sequence[int], length: int) -> int:
    """Without _ the parts of a pattern are looked for one after the other; with it they are tried everywhere."""
    return lengths[0] * (1 + lengths[1] if _has_blank(arguments[1]) else 2)


def _has_blank(pattern: Expression) -> bool:
    return not isinstance(pattern, Literal) or "_" in str(pattern.value)


def _work_of_concat(arguments: Sequence[Expression], lengths: Sequence[int], length: int) -> int:
    return sum(lengths) + 2 * length * len(lengths)  # Every step makes a text, and cuts it.


def _length_of_replaced(arguments: Sequence[Expression], lengths: Sequence[int]) -> int:
    return lengths[0] * max(1, lengths[2])


def _work_of_replace(arguments: Sequence[Expression], lengths: Sequence[int], length: int) -> int:
    return _length_of_replaced(arguments, lengths) + length


# --- records ---


TEXTS = (
    SqlFunction(
        operator=_O.LOWER,
        spelled=("Lower: this",),
        facts=_text_facts,
        value=str.lower,
        duckdb=_write_call("lower"),
        kind=Kind.TEXT,
    ),
    SqlFunction(
        operator=_O.UPPER,
        spelled=("Upper: this",),
        facts=_text_facts,
        value=str.upper,
        duckdb=_write_call("upper"),
        kind=Kind.TEXT,
    ),
    SqlFunction(
        operator=_O.LENGTH,
        spelled=("Length: this",),
        facts=_length_facts,
        value=len,
        duckdb=_write_call("length", kind=Kind.INTEGER),
        kind=Kind.INTEGER,
    ),
    SqlFunction(
        operator=_O.TRIM,
        spelled=("Trim: this",),
        facts=_text_facts,
        value=lambda text: text.strip(" "),
        duckdb=_write_call("trim"),
        kind=Kind.TEXT,
    ),
    SqlFunction(
        operator=_O.SUBSTRING,
        facts=_substring_facts,
        value=_substring,
        duckdb=_write_substring,
        kind=Kind.TEXT,
        length=_length_of_part,
        work=_work_of_part,
    ),
    SqlFunction(
        operator=_O.RIGHT,
        spelled=("Right: this expression",),
        facts=_right_facts,
        value=_right,
        duckdb=_write_right,
        kind=Kind.TEXT,
        length=lambda arguments, lengths: min(lengths[0], literal_integer(arguments[1])),
    ),
    SqlFunction(
        operator=_O.CONCAT,
        facts=_text_facts,
        build=_grown,
        value=lambda *texts: "".join(texts),
        duckdb=_write_concat,
        kind=Kind.TEXT,
        length=lambda arguments, lengths: sum(lengths),
        work=_work_of_concat,
    ),
    SqlFunction(
        operator=_O.LIKE,
        facts=_matches_facts,
        value=_like,
        duckdb=_write_infix("LIKE"),
        kind=Kind.BOOLEAN,
        work=_work_of_pattern,
    ),
    SqlFunction(
        operator=_O.LIKE_ANY_CASE,
        facts=_matches_facts,
        value=lambda text, pattern: _like(text.lower(), pattern.lower()),
        duckdb=_write_infix("ILIKE"),
        kind=Kind.BOOLEAN,
        work=_work_of_pattern,
    ),
    SqlFunction(
        operator=_O.STARTS_WITH,
        spelled=("StartsWith: this expression",),
        facts=_matches_facts,
        value=str.startswith,
        duckdb=_write_call("starts_with"),
        kind=Kind.BOOLEAN,
    ),
    SqlFunction(
        operator=_O.REPLACE,
        spelled=("Replace: this expression replacement",),
        facts=_replace_facts,
        build=_grown,
        value=str.replace,
        duckdb=_write_replace,
        kind=Kind.TEXT,
        length=_length_of_replaced,
        work=_work_of_replace,
    ),
)
