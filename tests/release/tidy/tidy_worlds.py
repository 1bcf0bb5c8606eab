"""Families of released tables with made-up rows, and plain ways to add them up, for tests of tidy tables."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

import discreet as dp
from discreet.privacy import PureDP
from discreet.query import Policy, ReleaseTable
from discreet.query.answer_columns import AnswerColumn, ExactNumbers
from discreet.release.plan import Allowance, Invariant, Level, Output, ReleasePlan, Schedule, TablePlan
from discreet.release.published import PublishedTable
from discreet.schema.columns import Kind

Values = tuple[Hashable, ...]


@dataclass(frozen=True)
class World:
    """Columns with their values, levels above them, groupings, and how many rows there are of each kind."""

    columns: Mapping[str, Values]
    levels: tuple[Level, ...]
    groupings: tuple[tuple[str, ...], ...]
    rows: Mapping[Values, int]  # by one value of each column

    def value(self, name: str, row: Values) -> Hashable:
        """Return the value of a column or a level in a row."""
        for level in self.levels:
            if level.name == name:
                below = self.value(level.of, row)
                return next(value for value, members in level.members.items() if below in members)
        return row[list(self.columns).index(name)]

    def domain(self, name: str) -> Values:
        level = next((level for level in self.levels if level.name == name), None)
        return self.columns[name] if level is None else tuple(level.members)

    def names_above(self, name: str) -> set[str]:
        """Return a name and the levels above it."""
        above = {level.name for level in self.levels if level.of == name}
        return {name}.union(*(self.names_above(level) for level in above))

    def counts(self, by: tuple[str, ...], rows: Mapping[Values, int] | None = None) -> dict[Values, int]:
        """Count rows by groups, listed in the order of the answer."""
        found: dict[Values, int] = dict.fromkeys(product(*(self.domain(name) for name in by)), 0)
        for row, count in (self.rows if rows is None else rows).items():
            found[tuple(self.value(name, row) for name in by)] += count
        return found

    def impossible(self, by: tuple[str, ...]) -> set[Values]:
        """Return the groups that no row can be in."""
        possible = self.counts(by, dict.fromkeys(product(*self.columns.values()), 1))
        return {keys for keys, count in possible.items() if not count}


def table_name(by: tuple[str, ...]) -> str:
    return "_".join(["people", "by", *by]) if by else "people"


def plan_of(
    world: World, invariants: Sequence[Invariant] = (), measure: str = "COUNT(*)", **output: Any
) -> ReleasePlan:
    policy = Policy(
        dataset="d",
        ledger=Path("d.ledger"),
        anchor=None,
        version=None,
        unit=dp.Unit("row"),
        budget=dp.Budget(epsilon=1),
        quotas=(),
        tables={},
    )
    tables = [
        TablePlan(name=table_name(by), title="", sql="", family="people", by=by, measures={"n": measure})
        for by in world.groupings
    ]
    return ReleasePlan(
        name="p",
        title="P",
        policy=policy,
        allowance=Allowance(epsilon=Fraction(1)),
        tables=tuple(tables),
        schedule=Schedule(),
        output=Output(folder=Path("out"), **output),
        levels=world.levels,
        invariants=tuple(invariants),
    )


def published(
    plan: ReleasePlan,
    world: World,
    noise: Mapping[tuple[str, ...], Sequence[int]],
    deviations: Mapping[tuple[str, ...], Fraction],
    *,
    grain: Fraction = Fraction(1),
    limits: tuple[Fraction | None, Fraction | None] = (Fraction(0), None),
) -> list[PublishedTable]:
    """Return raw tables: exact counts plus noise, in grains."""
    tables = []
    for table, by in zip(plan.tables, world.groupings, strict=True):
        counts = world.counts(by)
        values = np.array(list(counts.values()), np.int64) + np.array(noise[by][: len(counts)], np.int64)
        numbers = ExactNumbers(values, step=grain)
        keys = [AnswerColumn(name=name, kind=Kind.TEXT, values=tuple(row[place] for row in counts), measured=False)
                for place, name in enumerate(by)]  # fmt: skip
        measured = AnswerColumn(
            name="n", kind=Kind.INTEGER, values=numbers, low=numbers, high=numbers, limits=limits, grain=grain
        )
        raw = ReleaseTable(
            columns=(*keys, measured),
            rows_shown=len(counts),
            notes=(),
            event=PureDP(1),
            relation=dp.Relation.ADD_REMOVE,
            cost="ε = 1",
            confidence=Fraction(19, 20),
        )
        tables.append(PublishedTable(plan=table, raw=raw, tidy=None, deviations={"n": deviations[by] * grain}))
    return tables


def numbers_of(table: ReleaseTable, column: str = "n") -> dict[Values, Fraction]:
    """Return a column by the keys of its row."""
    keys = [one for one in table.columns if not one.measured]
    values = table.column(column).values
    return {tuple(key.values[row] for key in keys): Fraction(values[row]) for row in range(len(table))}  # type: ignore[arg-type]


def added_to(
    world: World, by: tuple[str, ...], numbers: Mapping[Values, Any], names: tuple[str, ...]
) -> dict[Values, Any]:
    """Add a table up to coarser groups; groups that cannot be must have nothing in them."""
    found: dict[Values, Any] = dict.fromkeys(product(*(world.domain(name) for name in names)), 0)
    for row in product(*world.columns.values()):
        keys = tuple(world.value(name, row) for name in by)
        found[tuple(world.value(name, row) for name in names)] += 0 * numbers[keys]
    seen = set()
    for row in product(*world.columns.values()):
        keys = tuple(world.value(name, row) for name in by)
        if keys not in seen:
            seen.add(keys)
            found[tuple(world.value(name, row) for name in names)] += numbers[keys]
    return found


def common(world: World, one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    """Return everything that both tables can be added up by."""
    above = [set().union(*(world.names_above(name) for name in by)) for by in (one, other)]
    return tuple(sorted(above[0] & above[1]))


@st.composite
def worlds(draw: st.DrawFn, most: int = 30) -> World:
    """Draw up to three columns, up to two levels above each, some groupings, and the rows."""
    columns, levels = {}, []
    for name in "abc"[: draw(st.integers(1, 3))]:
        columns[name] = tuple(f"{name}{place}" for place in range(draw(st.integers(1, 4))))
        below, values = name, columns[name]
        for height in range(draw(st.integers(0, 2))):
            owners = [draw(st.integers(0, 1)) for _ in values]
            members = {f"{name}/{height}{group}": tuple(v for v, owner in zip(values, owners, strict=True)
                       if owner == group) for group in set(owners)}  # fmt: skip
            level = Level(name=f"{name}_{height}", of=below, members=members)
            levels.append(level)
            # Two levels of one column need not be nested.
            if draw(st.booleans()):
                below, values = level.name, tuple(members)
    names = [*columns, *(level.name for level in levels)]
    groupings = draw(st.lists(st.lists(st.sampled_from(names), max_size=3, unique=True).map(tuple), min_size=1,
                     max_size=5, unique_by=frozenset))  # fmt: skip
    rows = {row: draw(st.integers(0, most)) for row in product(*columns.values())}
    return World(columns, tuple(levels), tuple(groupings), rows)


@st.composite
def released(draw: st.DrawFn, world: World) -> tuple[dict[Any, list[int]], dict[Any, Fraction]]:
    """Draw the noise of every table and how wide it is said to be."""
    noise, deviations = {}, {}
    for by in world.groupings:
        cells = len(world.counts(by))
        deviations[by] = draw(st.sampled_from([Fraction(1, 3), Fraction(1), Fraction(4), Fraction(50)]))
        reach = max(3, round(3 * deviations[by]))
        noise[by] = draw(st.lists(st.integers(-reach, reach), min_size=cells, max_size=cells))
    return noise, deviations
