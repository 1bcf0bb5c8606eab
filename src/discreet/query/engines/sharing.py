"""Which stages can be answered by one scan: those of the same unit whose sources differ in columns and filters only.

More columns change no rows, and a filter on top may as well be looked at later, row by row: all expressions are total.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TypeVar, final

from discreet.query.expressions import Apply, Expression
from discreet.query.operators import Operator
from discreet.query.sources import Filter, Join, Named, PerUnit, Project, Source, Table, TableColumn, UnionAll
from discreet.query.stage import Stage

__all__ = ["Member", "Shared", "share"]

C = TypeVar("C", TableColumn, Named)
_MOST_GROUPS = (
    1 << 21
)  # Of all stages of a scan together: the sums of all of them are in memory at once, in each thread.


@final
@dataclass(frozen=True, slots=True)
class Member:
    """A stage, its place among all, and what its rows must fulfil beyond what all rows of the scan do."""

    place: int
    stage: Stage
    conditions: tuple[Expression, ...]


@final
@dataclass(frozen=True, slots=True)
class Shared:
    """Stages that one scan answers."""

    source: Source  # with all columns that one of them needs
    conditions: tuple[Expression, ...]  # what the rows of all of them fulfil
    unit: str
    members: tuple[Member, ...]


def share(stages: Sequence[Stage]) -> tuple[Shared, ...]:
    """Find stages that can share a scan; those that share theirs with none are left out."""
    groups: list[tuple[Source, list[Member]]] = []
    for place, stage in enumerate(stages):
        if not _can_be_shared(stage):
            continue
        base, conditions = _peeled(stage.source)
        member = Member(place, stage, conditions)
        for number, (source, members) in enumerate(groups):
            wider = _merged(source, base) if _fit(members, stage) else None
            if wider is not None:
                groups[number] = wider, [*members, member]
                break
        else:
            groups.append((base, [member]))
    return tuple(_shared(source, members) for source, members in groups if len(members) > 1)


def _fit(members: Sequence[Member], stage: Stage) -> bool:
    """Whether a stage has the unit of others, and few enough groups besides theirs."""
    groups = sum(_groups(member.stage) for member in members) + _groups(stage)
    return members[0].stage.unit == stage.unit and groups <= _MOST_GROUPS


def _groups(stage: Stage) -> int:
    return prod(len(key.domain or ()) for key in stage.keys)


def _can_be_shared(stage: Stage) -> bool:
    """Whether a unit is a column, and groups and values have public numbers: else a scan of its own lists them."""
    is_known = all(key.domain for key in stage.keys)
    is_open = any(column.grid is None and column.members is None and column.wants.distinct for column in stage.columns)
    return stage.unit is not None and is_known and not is_open


def _shared(source: Source, members: Sequence[Member]) -> Shared:
    first, *others = members
    common = tuple(one for one in first.conditions if all(one in other.conditions for other in others))
    assert first.stage.unit is not None
    rest = tuple(replace(one, conditions=tuple(c for c in one.conditions if c not in common)) for one in members)
    return Shared(source, common, first.stage.unit, rest)


def _peeled(source: Source) -> tuple[Source, tuple[Expression, ...]]:
    """Take the filters off the top of a source."""
    found: list[Expression] = []
    while isinstance(source, Filter):
        found = [*_conjuncts(source.condition), *found]
        source = source.source
    return source, tuple(dict.fromkeys(found))


def _conjuncts(condition: Expression) -> Iterator[Expression]:
    """Take a condition apart: a row for which a conjunction is true is one for which each of its parts is."""
    if isinstance(condition, Apply) and condition.operator is Operator.AND:
        for argument in condition.arguments:
            yield from _conjuncts(argument)
    else:
        yield condition


def _merged(one: Source, other: Source) -> Source | None:
    """Return a source with the rows of both, which are the same, and the columns of either; None if there is none."""
    wider = _wider(one, other)
    if wider is None or wider == one:
        return wider
    names = list(_names(wider))
    return wider if len(set(names)) == len(names) else None


def _wider(one: Source, other: Source) -> Source | None:
    if one == other:
        return one
    match one, other:
        case Table(), Table() if (one.table, one.private, one.unit) == (other.table, other.private, other.unit):
            columns = _union(one.columns, other.columns)
            return None if columns is None else replace(one, columns=columns)
        case Filter(), Filter() if one.condition == other.condition:
            inner = _wider(one.source, other.source)
            return None if inner is None else replace(one, source=inner)
        case Project(), Project() if one.unit == other.unit:
            inner, named = _wider(one.source, other.source), _union(one.columns, other.columns)
            return None if inner is None or named is None else replace(one, source=inner, columns=named)
        case Join(), Join() if (one.kind, one.pairs) == (other.kind, other.pairs):
            left, right = _wider(one.left, other.left), _wider(one.right, other.right)
            return None if left is None or right is None else replace(one, left=left, right=right)
    return None


def _union(some: Iterable[C], others: Iterable[C]) -> tuple[C, ...] | None:
    """Return the columns of either; None if a name means two things."""
    found = {column.field.name: column for column in some}
    for column in others:
        if found.setdefault(column.field.name, column) != column:
            return None
    return tuple(found.values())


def _names(source: Source) -> Iterator[str]:
    """Name every field that is made anywhere in a source."""
    match source:
        case Table():
            yield from (column.field.name for column in source.columns)
        case Filter():
            yield from _names(source.source)
        case Project():
            yield from (named.field.name for named in source.columns)
            yield from _names(source.source)
        case Join():
            yield from _names(source.left)
            yield from _names(source.right)
        case PerUnit():
            yield source.unit.name
            yield from (named.field.name for named in source.keys)
            yield from (total.field.name for total in source.totals)
            yield from _names(source.source)
        case UnionAll():
            yield from (column.name for column in source.columns)
            for part in source.sources:
                yield from _names(part)
