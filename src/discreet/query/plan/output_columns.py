"""From released numbers to the columns of an answer: what is shown, in which order, and with which errors."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.query.ast import (
    Choose,
    Combine,
    End,
    KeyValue,
    Literal,
    Operator,
    OutputColumn,
    Post,
    Query,
    ReleasedMeasure,
    Side,
)
from discreet.query.column_types import Kind
from discreet.query.parse.evaluation import compute
from discreet.query.plan.answers import ReleasedNumbers, answer
from discreet.query.plan.draft import PlanDraft
from discreet.query.release_table import AnswerColumn

__all__ = [
    "Interval",
    "apply",
    "check_posts",
    "columns_of",
    "common_kind",
    "ends_of",
    "hull",
    "kind_of",
    "measures_in",
    "parts_of",
]

# --- postprocessing ---
# Computing with released values: free, since everybody could do it. NULL in gives NULL out, as in SQL.


Interval: TypeAlias = tuple[Fraction, Fraction]
_LONGEST_TEXT = 10_000  # characters
_MOST_BITS = 2048  # of an exact number; a longer one is rounded to a double, and is NULL beyond them


def parts_of(post: Post) -> tuple[Post, ...]:
    """Return what a value is computed from."""
    match post:
        case Combine():
            return post.arguments
        case Choose():
            return (*(part for branch in post.branches for part in branch), post.otherwise)
        case ReleasedMeasure() | End() | KeyValue() | Literal():
            return ()


def measures_in(post: Post) -> Iterator[int]:
    """List the measures that a value is computed from; an end of an interval is a released number, not an estimate."""
    if isinstance(post, ReleasedMeasure):
        yield post.measure
    for part in parts_of(post):
        yield from measures_in(part)


def check_posts(question: Query) -> None:
    """Refuse, while nothing is spent, what names a measure or a key that is not there."""
    posts = [output.value for output in question.outputs] + [order.value for order in question.order]
    for post in (*posts, *(() if question.having is None else (question.having,))):
        _check(post, question)


def _check(post: Post, question: Query) -> None:
    match post:
        case ReleasedMeasure() | End() if not 0 <= post.measure < len(question.measures):
            raise InvalidParameter("an output names a measure that is not asked for")
        case KeyValue() if not 0 <= post.key < len(question.keys):
            raise InvalidParameter("an output names a key that is not grouped by")
        case _:
            for part in parts_of(post):
                _check(part, question)


def apply(operator: Operator, values: Sequence[Any]) -> Any:
    """Apply an operator to values of one row, exactly where that is possible."""
    try:
        found = compute(operator, _replaceable(values) if operator is Operator.REPLACE else values)
    except TypeError:
        return None  # Unlike things, such as a text and a number.
    return _shortened(Fraction(found) if isinstance(found, float) else found)


def _shortened(value: Any) -> Any:
    """Cut what has grown long: whether an answer can be computed at all must not depend on what was released."""
    if isinstance(value, str):
        return value[:_LONGEST_TEXT]
    if isinstance(value, (int, Fraction)) and _is_long(value):
        try:
            return Fraction(float(value))
        except OverflowError:
            return None
    return value


def _is_long(number: int | Fraction) -> bool:
    return max(number.numerator.bit_length(), number.denominator.bit_length()) > _MOST_BITS


def _replaceable(values: Sequence[Any]) -> Sequence[Any]:
    """Cut a text beforehand: every character of it may become as long as what it is replaced by."""
    text, old, new = values
    return values if text is None or new is None else (text[: 100 * _LONGEST_TEXT // max(1, len(new))], old, new)


def ends_of(operator: Operator, parts: Sequence[Interval]) -> Interval | None:
    """Enclose all values of an operator on intervals; None where it has no rule or no bound."""
    rule = _INTERVALS.get(operator)
    try:
        found = None if rule is None else rule(*parts)
    except (ArithmeticError, TypeError):
        return None  # An end is too large.
    return None if found is None or any(map(_is_long, found)) else found


def hull(parts: Sequence[Interval]) -> Interval:
    """Return the least interval around some others."""
    return min(low for low, _ in parts), max(high for _, high in parts)


def _corners(rule: Callable[[Fraction, Fraction], Fraction]) -> Callable[[Interval, Interval], Interval]:
    def ends(a: Interval, b: Interval) -> Interval:
        values = [rule(x, y) for x in a for y in b]
        return min(values), max(values)

    return ends


def _quotient(a: Interval, b: Interval) -> Interval | None:
    return None if b[0] <= 0 <= b[1] else _corners(lambda x, y: x / y)(a, b)


def _absolute(a: Interval) -> Interval:
    low = Fraction(0) if a[0] <= 0 <= a[1] else min(abs(a[0]), abs(a[1]))
    return low, max(abs(a[0]), abs(a[1]))


def _rounded(a: Interval, places: Interval = (Fraction(0), Fraction(0))) -> Interval:
    decimals = int(places[0])
    return tuple(Fraction(apply(Operator.ROUND, [end, decimals])) for end in a)  # type: ignore[return-value]


def _root(a: Interval) -> Interval | None:
    """Enclose roots; floats are off by less than the part that is added."""
    if a[0] < 0:
        return None
    room = Fraction(1, 1 << 50)
    return Fraction(math.sqrt(a[0])) * (1 - room), Fraction(math.sqrt(a[1])) * (1 + room)


_INTERVALS: dict[Operator, Callable[..., Interval | None]] = {
    Operator.ADD: lambda a, b: (a[0] + b[0], a[1] + b[1]),
    Operator.SUBTRACT: lambda a, b: (a[0] - b[1], a[1] - b[0]),
    Operator.MULTIPLY: _corners(lambda x, y: x * y),
    Operator.DIVIDE: _quotient,
    Operator.NEGATE: lambda a: (-a[1], -a[0]),
    Operator.ABSOLUTE: _absolute,
    Operator.COALESCE: lambda *parts: hull(parts),
    Operator.LEAST: lambda *parts: (min(a[0] for a in parts), min(a[1] for a in parts)),
    Operator.GREATEST: lambda *parts: (max(a[0] for a in parts), max(a[1] for a in parts)),
    Operator.FLOOR: lambda a: (Fraction(math.floor(a[0])), Fraction(math.floor(a[1]))),
    Operator.CEILING: lambda a: (Fraction(math.ceil(a[0])), Fraction(math.ceil(a[1]))),
    Operator.ROUND: _rounded,
    Operator.SQUARE_ROOT: _root,
    Operator.TO_REAL: lambda a: a,
    Operator.TO_INTEGER: lambda a: (Fraction(round(a[0])), Fraction(round(a[1]))),
}


Rows: TypeAlias = NDArray[np.int64]
Reader: TypeAlias = Callable[[int], Any]
Encloser: TypeAlias = Callable[[int], Interval | None]


def columns_of(draft: PlanDraft, released: ReleasedNumbers) -> tuple[tuple[AnswerColumn, ...], int]:
    """Return the columns of the answer and how many rows they have."""
    answers = _Answers(draft, released)
    rows = _kept(answers)
    return tuple(_output(output, answers).take(rows) for output in draft.question.outputs), rows.size


@final
@dataclass(slots=True)
class _Answers:
    """Answers by measure and confidence, each computed once."""

    draft: PlanDraft
    released: ReleasedNumbers
    _known: dict[tuple[int, Fraction], AnswerColumn] = field(default_factory=dict)

    def measure(self, measure: int, confidence: Fraction) -> AnswerColumn:
        if (measure, confidence) not in self._known:
            self._known[measure, confidence] = answer(self.draft, measure, self.released, confidence)
        return self._known[measure, confidence]

    def shown(self, measure: int) -> AnswerColumn:
        """Return a measure as the table shows it."""
        return self.measure(measure, self.draft.spend.confidence)

    def kind(self, post: Post) -> Kind:
        """Return the kind of a value, whatever it comes out as."""
        match post:
            case ReleasedMeasure() | End():
                return self.shown(post.measure).kind
            case KeyValue():
                return self.draft.question.keys[post.key].expression.facts.kind
            case Literal():
                return post.facts.kind
            case Combine():
                return kind_of(post.operator, [self.kind(argument) for argument in post.arguments])
            case Choose():
                return common_kind([self.kind(value) for value in _values(post) if not _is_null(value)])

    def reader(self, post: Post) -> Reader:
        """Return a function that computes a value for a row."""
        match post:
            case ReleasedMeasure():
                return self.shown(post.measure).values.__getitem__
            case KeyValue():
                return self.released.keys[post.key].__getitem__
            case End():
                column, low = self.shown(post.measure), post.side is Side.LOW
                return lambda row: column[row].low if low else column[row].high
            case Literal():
                return lambda row: post.value
            case Combine():
                readers = [self.reader(argument) for argument in post.arguments]
                return lambda row: apply(post.operator, [read(row) for read in readers])
            case Choose():
                return self._chooser(post)

    def _chooser(self, post: Choose) -> Reader:
        branches = [(self.reader(condition), self.reader(value)) for condition, value in post.branches]
        otherwise = self.reader(post.otherwise)
        return lambda row: next((read for test, read in branches if test(row) is True), otherwise)(row)

    def encloser(self, post: Post, level: Fraction) -> Encloser:
        """Return a function that encloses a value for a row, if every measure in it is enclosed with `level`."""
        match post:
            case ReleasedMeasure():
                column = self.measure(post.measure, level)
                return lambda row: _ends(column[row].low, column[row].high)
            case Combine():
                parts = [self.encloser(argument, level) for argument in post.arguments]
                return lambda row: _all_known(
                    lambda known: ends_of(post.operator, known), [part(row) for part in parts]
                )
            case Choose():
                # Which branch the exact values take is not known, so any: NULL apart, which has no interval.
                branches = [self.encloser(value, level) for value in _values(post) if not _is_null(value)]
                return lambda row: _all_known(hull, [branch(row) for branch in branches])
            case End() | KeyValue() | Literal():
                read = self.reader(post)
                return lambda row: _ends(read(row), read(row))


def _values(post: Choose) -> tuple[Post, ...]:
    return (*(value for _, value in post.branches), post.otherwise)


def _is_null(post: Post) -> bool:
    return isinstance(post, Literal) and post.value is None


def _ends(low: Any, high: Any) -> Interval | None:
    numbers = all(isinstance(end, (int, Fraction)) and not isinstance(end, bool) for end in (low, high))
    return (Fraction(low), Fraction(high)) if numbers else None


def _all_known(
    rule: Callable[[Sequence[Interval]], Interval | None], parts: Sequence[Interval | None]
) -> Interval | None:
    known = [part for part in parts if part is not None]
    return rule(known) if known and len(known) == len(parts) else None


def _kept(answers: _Answers) -> Rows:
    """Apply HAVING, ORDER BY and LIMIT, which look at released values only."""
    question, kept = answers.draft.question, list(range(answers.released.rows))
    if question.having is not None:
        condition = answers.reader(question.having)
        kept = [row for row in kept if condition(row) is True]
    for order in reversed(question.order):
        kept = _sorted(kept, answers.reader(order.value), descending=order.descending)
    if question.limit is not None:
        first, count = question.limit.offset, question.limit.count
        kept = kept[first : None if count is None else first + count]
    return np.array(kept, dtype=np.int64)


def _sorted(rows: list[int], read: Reader, *, descending: bool) -> list[int]:
    """Sort rows by a value; those that are equal stay as they are, and NULL comes last."""
    values = {row: read(row) for row in rows}
    present = [row for row in rows if values[row] is not None]
    ordered = sorted(present, key=lambda row: (_kind(values[row]), values[row]), reverse=descending)
    return ordered + [row for row in rows if values[row] is None]


def _kind(value: Any) -> str:
    """Keep unlike things apart, such as the texts and numbers of a CASE; all numbers are alike."""
    return "" if isinstance(value, (int, Fraction)) else type(value).__name__


def _output(output: OutputColumn, answers: _Answers) -> AnswerColumn:
    post = output.value
    if isinstance(post, ReleasedMeasure):
        return replace(answers.shown(post.measure), name=output.name)
    read, rows = answers.reader(post), range(answers.released.rows)
    values, kind = tuple(read(row) for row in rows), answers.kind(post)
    measured = set(measures_in(post))
    if not measured:
        return AnswerColumn(
            name=output.name, kind=kind, values=values, measured=not isinstance(post, (KeyValue, Literal))
        )
    # All of them are enclosed at once with the asked confidence.
    enclose = answers.encloser(post, 1 - (1 - answers.draft.spend.confidence) / len(measured))
    ends = [enclose(row) for row in rows]
    if not any(end is not None for end in ends):
        return AnswerColumn(name=output.name, kind=kind, values=values, no_interval="none follows for this computation")
    low = tuple(None if end is None else end[0] for end in ends)
    high = tuple(None if end is None else end[1] for end in ends)
    return AnswerColumn(name=output.name, kind=kind, values=values, low=low, high=high)


# --- kinds: The kind of a value that is computed from released ones: by its operator and the kinds of its parts. ---


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
