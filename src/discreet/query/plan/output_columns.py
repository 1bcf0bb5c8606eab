"""From released numbers to the columns of an answer: what is shown, in which order, and with which errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.query.answer_columns import AnswerColumn
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
from discreet.query.functions.expressions import compute
from discreet.query.functions.intervals import Interval, hull
from discreet.query.functions.record import common_kind
from discreet.query.functions.table import FUNCTIONS
from discreet.query.plan.answers import ReleasedNumbers, answer
from discreet.query.plan.draft import FinalDraft
from discreet.schema.columns import Kind

__all__ = [
    "apply",
    "check_posts",
    "columns_of",
    "ends_of",
    "measures_in",
    "parts_of",
]

# --- postprocessing ---
# Computing with released values: free, since everybody could do it. NULL in gives NULL out, as in SQL.


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
    rule = FUNCTIONS[operator].ends
    try:
        found = None if rule is None else rule(*parts)
    except (ArithmeticError, TypeError):
        return None  # An end is too large.
    return None if found is None or any(end is None or _is_long(end) for end in found) else found


Rows: TypeAlias = NDArray[np.int64]
Reader: TypeAlias = Callable[[int], Any]
Encloser: TypeAlias = Callable[[int], Interval | None]


def columns_of(draft: FinalDraft, released: ReleasedNumbers) -> tuple[tuple[AnswerColumn, ...], int]:
    """Return the columns of the answer and how many rows they have."""
    answers = _Answers(draft, released)
    rows = _kept(answers)
    return tuple(_output(output, answers).take(rows) for output in draft.question.outputs), rows.size


@final
@dataclass(slots=True)
class _Answers:
    """Answers by measure and confidence, each computed once."""

    draft: FinalDraft
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
                return FUNCTIONS[post.operator].kind_of([self.kind(argument) for argument in post.arguments])
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
    return Interval(Fraction(low), Fraction(high)) if numbers else None


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
