"""Noise: partition selection, then exact numbers become released ones."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from discreet.mechanisms.grid import compact, wide
from discreet.privacy.not_private import NotPrivate
from discreet.query.bounding.aggregation import Tally
from discreet.query.engine import ExactCounts
from discreet.query.plan.answers import ReleasedNumbers
from discreet.query.plan.choices import pick
from discreet.query.plan.draft import FinalDraft, Number, NumberNoise, TallySpec
from discreet.query.plan.residuals import SharedNoise

__all__ = ["draw", "draw_together", "exact_numbers", "without_noise"]

Rows: TypeAlias = NDArray[np.int64]
Exact: TypeAlias = tuple[NDArray[Any], ...]  # the numbers of one table, of all groups
Shared: TypeAlias = Mapping[int, NDArray[Any]]  # by number: what is released of a family
T = TypeVar("T")


def draw(draft: FinalDraft, tallied: ExactCounts) -> ReleasedNumbers:
    """Draw all noise: of groups first, then, fresh and independent, of the numbers and choices of those shown."""
    (released,) = draw_together([draft], [tallied])
    return released


def draw_together(drafts: Sequence[FinalDraft], tallied: Sequence[ExactCounts]) -> tuple[ReleasedNumbers, ...]:
    """Draw all noise of several tables: what a family shares once, for all its tables, and the rest for each.

    A family that is not whole is refused: each further draw for one of its tables would cost as much as the first.
    """
    families: dict[int, list[tuple[SharedNoise, int]]] = {}
    for place, draft in enumerate(drafts):
        if draft.noising.shared is not None:
            families.setdefault(id(draft.noising.shared.residuals), []).append((draft.noising.shared, place))
    for members in families.values():
        _require_whole([shared for shared, _ in members])
    drawn = {
        key: _family([(shared, exact_numbers(drafts[place], tallied[place].tally)) for shared, place in members])
        for key, members in families.items()
    }
    noisy = [_of_family(draft.noising.shared, drawn) for draft in drafts]
    return tuple(_drawn(*each) for each in zip(drafts, tallied, noisy, strict=True))


def _require_whole(members: list[SharedNoise]) -> None:
    tables, scales = sorted(one.table for one in members), {one.scales for one in members}
    if tables != list(range(len(members[0].residuals.tables))) or len(scales) > 1:
        raise RuntimeError("the noise of a family is drawn once, for all its tables together")


def _family(members: list[tuple[SharedNoise, Exact]]) -> list[list[NDArray[Any]] | None]:
    """Draw what a family shares, number by number, and return its tables."""
    members = sorted(members, key=lambda member: member[0].table)
    first = members[0][0]
    return [
        None if scale is None else first.residuals.release([exact[place] for _, exact in members], scale)
        for place, scale in enumerate(first.scales)
    ]


def _of_family(shared: SharedNoise | None, drawn: Mapping[int, list[list[NDArray[Any]] | None]]) -> Shared:
    if shared is None:
        return {}
    numbers = enumerate(drawn[id(shared.residuals)])
    return {place: tables[shared.table] for place, tables in numbers if tables is not None}


def _drawn(draft: FinalDraft, tallied: ExactCounts, shared: Shared) -> ReleasedNumbers:
    shown = _shown(draft, tallied)
    exact = [column[shown] for column in exact_numbers(draft, tallied.tally)]
    numbers = tuple(
        compact(wide(shared[place][shown])) if place in shared else _noisy(one, exact[place])
        for place, one in enumerate(draft.noising.numbers)
    )
    kept = [_there(tallied.tally.measures[asked.column].values) for asked in draft.picks]
    chosen = [pick(draft, place, values, shown) for place, values in enumerate(kept)]
    return ReleasedNumbers(numbers, tuple(chosen), _keys(draft, tallied, shown), shown.size)


def without_noise(draft: FinalDraft, tallied: ExactCounts) -> NotPrivate[ReleasedNumbers]:
    """Return the numbers of every group that somebody is in, without noise: for whoever holds the data, never released.

    Rows are bounded as they are for an answer, so that this is what its noise is added to.
    """
    if draft.picks:
        raise RuntimeError("what is chosen at random has no exact form")
    listed = draft.noising.selection is None
    there = np.arange(tallied.groups) if listed else np.flatnonzero(_there(tallied.tally.rows) > 0)
    shown = there.astype(np.int64)
    numbers = tuple(compact(wide(column[shown])) for column in exact_numbers(draft, tallied.tally))
    return NotPrivate(ReleasedNumbers(numbers, (), _keys(draft, tallied, shown), shown.size))


def _noisy(one: NumberNoise, exact: NDArray[Any]) -> NDArray[Any]:
    """Round to the unit, add noise, and return grid steps."""
    return compact((wide(one.rounded(exact)) + one.draw(exact.size)) * one.unit)


def exact_numbers(draft: FinalDraft, tally: Tally) -> tuple[NDArray[Any], ...]:
    """Return the exact numbers of all groups, in grid steps. This is private."""
    return tuple(_exact(number, tally) for number in draft.numbers)


def _exact(number: Number, tally: Tally) -> NDArray[Any]:
    if number.column is None:
        return _there(tally.rows if number.tallying is TallySpec.ROWS else tally.units)
    column = tally.measures[number.column]
    match number.tallying:
        case TallySpec.COUNT | TallySpec.ROWS | TallySpec.UNITS:
            return _there(column.counts)
        case TallySpec.NULLS:
            return _there(tally.rows - column.counts)
        case TallySpec.TOTAL:
            return compact(_there(column.total))
        case TallySpec.SQUARES:
            return compact(_there(column.squares) - number.fold * wide(column.counts))
        case TallySpec.DISTINCT:
            return _there(column.distinct)


def _there(part: T | None) -> T:
    if part is None:
        raise RuntimeError("the engine left out what the stage wants")
    return part


def _shown(draft: FinalDraft, tallied: ExactCounts) -> Rows:
    """Return the groups that are shown: all public ones, or those with enough units after noise of their own."""
    selection = draft.noising.selection
    if selection is None:
        if tallied.groups != draft.groups:
            raise RuntimeError("the engine counted other groups than there are")
        return np.arange(tallied.groups, dtype=np.int64)
    units = tallied.tally.rows if draft.max_rows == 1 else tallied.tally.units
    if not tallied.groups:
        return np.empty(0, np.int64)
    drawn = selection.noise.draw(replace(selection.sensitivity, dimension=tallied.groups))
    # A group that nobody is in is never shown: with others' data it would not be there.
    return np.flatnonzero((units > 0) & (units + np.array(drawn) > selection.threshold)).astype(np.int64)


def _keys(draft: FinalDraft, tallied: ExactCounts, shown: Rows) -> tuple[tuple[Hashable, ...], ...]:
    keys = draft.question.keys
    if draft.groups is not None:
        listed: list[tuple[Hashable, ...]] = list(product(*(key.domain or () for key in keys)))
    else:
        listed = tallied.keys(shown.tolist())
    return tuple(tuple(row[place] for row in listed) for place in range(len(keys)))
