"""From released numbers to the columns of an answer: what is shown, in which order, and with which errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.query.ast import (
    Choose,
    Combine,
    End,
    KeyValue,
    Literal,
    Operator,
    OutputColumn,
    Post,
    ReleasedMeasure,
    Side,
)
from discreet.query.column_types import Kind
from discreet.query.plan.answers import ReleasedNumbers, answer
from discreet.query.plan.draft import PlanDraft
from discreet.query.plan.postprocessing import Interval, apply, ends_of, hull, measures_in
from discreet.query.results.columns import AnswerColumn

__all__ = ["columns_of", "common_kind", "kind_of"]

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
