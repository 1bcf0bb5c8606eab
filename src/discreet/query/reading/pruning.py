"""Leave out columns that nothing needs, so that two texts which ask the same become the same tree."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from discreet.query.expressions import Expression, Field, walk
from discreet.query.question import Query
from discreet.query.sources import (
    Filter,
    Join,
    PerUnit,
    Project,
    Source,
    Table,
    UnionAll,
    unit_of,
)

__all__ = ["prune"]


def prune(question: Query) -> Query:
    """Keep the columns of keys, measures, conditions and joins, and the unit."""
    asked = [key.expression for key in question.keys]
    asked += [measure.argument for measure in question.measures if measure.argument is not None]
    return replace(question, source=_pruned(question.source, _used(asked)))


def _used(expressions: Iterable[Expression]) -> frozenset[str]:
    return frozenset(part.name for expression in expressions for part in walk(expression) if isinstance(part, Field))


def _with_unit(source: Source, needed: frozenset[str]) -> frozenset[str]:
    unit = unit_of(source)
    return needed if unit is None else needed | {unit}


def _pruned(source: Source, wanted: frozenset[str]) -> Source:
    needed = _with_unit(source, wanted)
    match source:
        case Table():
            columns = tuple(column for column in source.columns if column.field.name in needed)
            return replace(source, columns=columns or source.columns[:1])
        case Filter():
            return replace(source, source=_pruned(source.source, needed | _used([source.condition])))
        case Project():
            named = tuple(entry for entry in source.columns if entry.field.name in needed) or source.columns[:1]
            inner = _used(entry.expression for entry in named)
            return replace(source, source=_pruned(source.source, inner), columns=named)
        case Join():
            both = needed | _used(side for pair in source.pairs for side in pair)
            return replace(source, left=_pruned(source.left, both), right=_pruned(source.right, both))
        case PerUnit():
            return _pruned_units(source, needed)
        case UnionAll():
            return _pruned_union(source, needed)


def _pruned_units(source: PerUnit, needed: frozenset[str]) -> PerUnit:
    totals = tuple(total for total in source.totals if total.field.name in needed)
    inner = _used([key.expression for key in source.keys])
    inner |= _used(total.argument for total in totals if total.argument is not None)
    return replace(source, source=_pruned(source.source, inner), totals=totals)


def _pruned_union(source: UnionAll, needed: frozenset[str]) -> UnionAll:
    """Keep the same places on every side; the sides are projections by position."""
    places = [place for place, field in enumerate(source.columns) if field.name in needed] or [0]
    sides: list[Source] = []
    for side in source.sources:
        assert isinstance(side, Project)
        named = tuple(side.columns[place] for place in places)
        kept = {entry.field.name for entry in named}
        inner = _used(entry.expression for entry in named)
        unit = side.unit if side.unit in kept else None
        sides.append(Project(_pruned(side.source, inner), named, unit))
    return replace(source, sources=tuple(sides), columns=tuple(source.columns[place] for place in places))
