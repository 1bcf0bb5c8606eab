"""From exact numbers to a table of answers: choose groups, add noise, and compute the rest from what came out."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.query.bounding import Tally
from discreet.query.engine import Tallied
from discreet.query.expressions import Literal
from discreet.query.planning.answers import Released, answer
from discreet.query.planning.draft import Draft, Number, Tallying
from discreet.query.planning.picking import pick
from discreet.query.planning.posts import apply, ends_of, measures_in
from discreet.query.question import Answer, Choose, Combine, End, KeyValue, Output, Post, Side
from discreet.query.results.columns import Column, Values
from discreet.query.results.numbers import compact, wide

__all__ = ["draw", "exact_numbers"]

Rows: TypeAlias = NDArray[np.int64]
Reader: TypeAlias = Callable[[int], Any]


def draw(draft: Draft, tallied: Tallied) -> tuple[tuple[Column, ...], int]:
    """Return the columns of the answer and how many rows they have."""
    released = _release(draft, tallied)
    table = _Columns(draft, released)
    rows = _kept(draft, table, released.rows)
    columns = tuple(_output(draft, output, table).take(rows) for output in draft.question.outputs)
    return columns, rows.size


def exact_numbers(draft: Draft, tally: Tally) -> tuple[NDArray[Any], ...]:
    """Return the exact numbers of all groups, in grid steps. This is private."""
    return tuple(_exact(number, tally) for number in draft.numbers)


def _exact(number: Number, tally: Tally) -> NDArray[Any]:
    if number.column is None:
        return _there(tally.rows if number.tallying is Tallying.ROWS else tally.units)
    column = tally.measures[number.column]
    match number.tallying:
        case Tallying.COUNT | Tallying.ROWS | Tallying.UNITS:
            return _there(column.counts)
        case Tallying.NULLS:
            return _there(tally.rows - column.counts)
        case Tallying.TOTAL:
            return compact(_there(column.total))
        case Tallying.SQUARES:
            return compact(_there(column.squares) - number.fold * wide(column.counts))
        case Tallying.DISTINCT:
            return _there(column.distinct)


def _there(array: NDArray[Any] | None) -> NDArray[Any]:
    assert array is not None, "the engine left out what the stage wants"
    return array


def _release(draft: Draft, tallied: Tallied) -> Released:
    """Draw all noise: of groups first, then, fresh and independent, of the numbers and choices of those shown."""
    assert draft.noising is not None
    shown = _shown(draft, tallied)
    exact = exact_numbers(draft, tallied.tally)
    numbers = []
    for one, column in zip(draft.noising.numbers, exact, strict=True):
        noisy = wide(one.rounded(column[shown])) + one.draw(shown.size)
        numbers.append(compact(noisy * one.unit))
    kept = [tallied.tally.measures[asked.column].values for asked in draft.picks]
    picks = tuple(pick(draft, place, _values(values), shown) for place, values in enumerate(kept))
    return Released(tuple(numbers), picks, _keys(draft, tallied, shown), shown.size)


def _values(values: Any) -> Any:
    assert values is not None, "the engine left out what the stage wants"
    return values


def _shown(draft: Draft, tallied: Tallied) -> Rows:
    """Return the groups that are shown: all public ones, or those with enough units after noise of their own."""
    assert draft.noising is not None
    selection = draft.noising.selection
    if selection is None:
        assert tallied.groups == (draft.groups or 1), "the engine counted other groups than there are"
        return np.arange(tallied.groups, dtype=np.int64)
    units = tallied.tally.rows if draft.max_rows == 1 else tallied.tally.units
    if not tallied.groups:
        return np.empty(0, np.int64)
    drawn = selection.noise.draw(replace(selection.sensitivity, dimension=tallied.groups))
    # A group that nobody is in is never shown: with others' data it would not be there.
    return np.flatnonzero((units > 0) & (units + np.array(drawn) > selection.threshold)).astype(np.int64)


def _keys(draft: Draft, tallied: Tallied, shown: Rows) -> tuple[tuple[Hashable, ...], ...]:
    keys = draft.question.keys
    if draft.groups is not None:
        listed: list[tuple[Hashable, ...]] = list(product(*(key.domain or () for key in keys)))
    else:
        listed = tallied.keys(shown.tolist())
    return tuple(tuple(row[place] for row in listed) for place in range(len(keys)))


class _Columns:
    """Answers by measure and confidence, each computed once."""

    def __init__(self, draft: Draft, released: Released) -> None:
        self.draft, self.released = draft, released
        self._known: dict[tuple[int, Fraction], Column] = {}

    def measure(self, measure: int, confidence: Fraction | None = None) -> Column:
        level = self.draft.spend.confidence if confidence is None else confidence
        if (measure, level) not in self._known:
            self._known[measure, level] = answer(self.draft, measure, self.released, level)
        return self._known[measure, level]

    def reader(self, post: Post) -> Reader:
        """Return a function that computes a value for a row."""
        match post:
            case Answer():
                values = self.measure(post.measure).values
                return lambda row: values[row]
            case KeyValue():
                keys = self.released.keys[post.key]
                return lambda row: keys[row]
            case End():
                column, low = self.measure(post.measure), post.side is Side.LOW
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
        return lambda row: next((read(row) for test, read in branches if test(row) is True), otherwise(row))


def _kept(draft: Draft, table: _Columns, rows: int) -> Rows:
    """Apply HAVING, ORDER BY and LIMIT, which look at released values only."""
    kept = list(range(rows))
    if draft.question.having is not None:
        condition = table.reader(draft.question.having)
        kept = [row for row in kept if condition(row) is True]
    for order in reversed(draft.question.order):
        read = table.reader(order.value)
        present = sorted((row for row in kept if read(row) is not None), key=read, reverse=order.descending)
        kept = present + [row for row in kept if read(row) is None]  # NULL comes last.
    limit = draft.question.limit
    if limit is not None:
        kept = kept[limit.offset : None if limit.count is None else limit.offset + limit.count]
    return np.array(kept, dtype=np.int64)


def _output(draft: Draft, output: Output, table: _Columns) -> Column:
    post = output.value
    if isinstance(post, Answer):
        return replace(table.measure(post.measure), name=output.name)
    read, rows = table.reader(post), range(table.released.rows)
    values: Values = tuple(read(row) for row in rows)
    measured = set(measures_in(post))
    if not measured:
        return Column(name=output.name, values=values, measured=isinstance(post, (End, Combine, Choose)))
    level = 1 - (1 - draft.spend.confidence) / len(measured)
    enclose = _encloser(post, table, level)
    ends = [enclose(row) for row in rows]
    if not any(end is not None for end in ends):
        return Column(name=output.name, values=values, no_interval="none follows for this computation")
    low = tuple(None if end is None else end[0] for end in ends)
    high = tuple(None if end is None else end[1] for end in ends)
    return Column(name=output.name, values=values, low=low, high=high)


def _encloser(post: Post, table: _Columns, level: Fraction) -> Callable[[int], tuple[Fraction, Fraction] | None]:
    """Return a function that encloses a value for a row: the box of all measures it is computed from."""
    match post:
        case Answer():
            column = table.measure(post.measure, level)
            return lambda row: _ends(column[row].low, column[row].high)
        case Combine():
            parts = [_encloser(argument, table, level) for argument in post.arguments]
            return lambda row: _combined(post, [part(row) for part in parts])
        case _:
            read = table.reader(post)
            return lambda row: _ends(read(row), read(row))


def _ends(low: Any, high: Any) -> tuple[Fraction, Fraction] | None:
    numbers = all(isinstance(end, (int, Fraction)) and not isinstance(end, bool) for end in (low, high))
    return (Fraction(low), Fraction(high)) if numbers else None


def _combined(post: Combine, parts: list[tuple[Fraction, Fraction] | None]) -> tuple[Fraction, Fraction] | None:
    known = [part for part in parts if part is not None]
    return ends_of(post.operator, known) if len(known) == len(parts) else None
