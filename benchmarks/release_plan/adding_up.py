"""Whether tables agree, checked by plain addition: nothing here knows how they were made to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from typing import Any, TypeAlias

from discreet.query import ReleaseTable
from discreet.release.plan import Level
from discreet.release.published import PublishedTable

__all__ = ["adds_up", "is_tidy"]

Row: TypeAlias = tuple[dict[str, Any], Mapping[str, Fraction]]  # keys with all levels above them, and numbers


def adds_up(tables: Sequence[PublishedTable], levels: Sequence[Level]) -> bool:
    """Compare every two tables of every family in all that both can be added up by."""
    families: dict[str, list[list[Row]]] = {}
    for table in tables:
        if table.plan.family is not None and table.tidy is not None:
            families.setdefault(table.plan.family, []).append(_rows(table.tidy, levels))
    pairs = (pair for family in families.values() for pair in combinations(family, 2))
    return all(_agree(one, other) for one, other in pairs)


def is_tidy(tables: Sequence[PublishedTable]) -> bool:
    """Tell whether every count and sum is a multiple of its grain, and none is negative that cannot be."""
    return all(_fits(column) for table in tables if table.tidy is not None for column in table.tidy.columns)


def _fits(column: Any) -> bool:
    if not column.measured:
        return True
    values = [Fraction(column.values[row]) for row in range(len(column))]
    return all((value / column.grain).denominator == 1 and (column.limits[0] is None or value >= 0) for value in values)


def _rows(table: ReleaseTable, levels: Sequence[Level]) -> list[Row]:
    keys = [column for column in table.columns if not column.measured]
    measured = [column for column in table.columns if column.measured]
    return [
        (
            _above({key.name: key.values[row] for key in keys}, levels),
            {column.name: Fraction(column[row].value) for column in measured},
        )
        for row in range(len(table))
    ]


def _above(keys: dict[str, Any], levels: Sequence[Level]) -> dict[str, Any]:
    for _ in levels:
        for level in levels:
            if level.of in keys:
                keys[level.name] = next(name for name, parts in level.members.items() if keys[level.of] in parts)
    return keys


def _agree(one: list[Row], other: list[Row]) -> bool:
    names = sorted(one[0][0].keys() & other[0][0].keys())
    return _sums(one, names) == _sums(other, names)


def _sums(rows: list[Row], names: list[str]) -> Counter[Any]:
    sums: Counter[Any] = Counter()
    for keys, numbers in rows:
        for column, value in numbers.items():
            sums[tuple(keys[name] for name in names), column] += value  # type: ignore[assignment]
    return sums
