"""No random plan lets one unit change more than its price says: exact numbers, with and without each unit."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Hashable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest
from fuzz_sql import COLUMNS, REGIONS, TOWNS, Sql, as_table, tables
from recorded import replayed
from searching import searched

import discreet as dp
from discreet.query.catalogue import Catalogue
from discreet.query.engine import Deadline, ExactCounts
from discreet.query.engines.duckdb import DuckDBEngine
from discreet.query.execute import exact_numbers
from discreet.query.parse.select import read
from discreet.query.plan.draft import Spend
from discreet.query.plan.planner import PricedQuery, plan
from discreet.query.session.catalogue_builder import build_catalogue

LIMITS = dp.Unit("id", 2, 2)
Key = tuple[Hashable, ...]
Rows = list[dict[str, Any]]


class World:
    """Tables, and the same tables without each unit."""

    def __init__(self, seed: str, unit: dp.Unit) -> None:
        self.random, self.unit = random.Random(seed), unit
        self.people, self.visits = tables(self.random)
        self.opened = ExitStack()
        self.engines = [self._engine(people, visits) for people, visits in [(self.people, self.visits), *self._less()]]
        named = {"people": None, "visits": None, "towns": dp.public(TOWNS), "regions": dp.public(REGIONS)}
        self.catalogue: Catalogue = build_catalogue(self.engines[0], named, unit=unit, columns=COLUMNS)

    def _less(self) -> Iterator[tuple[Rows, Rows]]:
        if self.unit.is_row:
            for place in range(len(self.people)):
                yield self.people[:place] + self.people[place + 1 :], self.visits
            return
        for owner in (1, 2, 3, 9):
            yield [row for row in self.people if row["id"] != owner], [row for row in self.visits if row["id"] != owner]

    def _engine(self, people: Rows, visits: Rows) -> DuckDBEngine:
        public = {"towns": dp.public(TOWNS), "regions": dp.public(REGIONS)}
        engine = DuckDBEngine({"people": as_table(people), "visits": as_table(visits), **public}, threads=1)
        self.opened.callback(engine.close)
        return engine

    def priced(self, sql: str) -> PricedQuery:
        spend = Spend(epsilon=1, delta="1e-6")
        return plan(read(sql, self.catalogue).question, self.catalogue, spend, pure=False)

    def run(self, engine: DuckDBEngine, priced: PricedQuery) -> ExactCounts:
        with replayed("fuzz"):
            return engine.run(priced.stage, deadline=Deadline.after(60))


def by_key(priced: PricedQuery, tallied: ExactCounts) -> dict[Key, tuple[tuple[int, ...], list[Counter[int]]]]:
    """Return the exact numbers and the kept values of each group that is not empty."""
    tally, draft = tallied.tally, priced.draft
    numbers = exact_numbers(draft, tally)
    keys = tallied.keys(list(range(tallied.groups)))
    found = {}
    for place, key in enumerate(keys):
        values = [tally.measures[pick.column].values for pick in draft.picks]
        kept = [Counter(value.of(place).tolist()) for value in values if value is not None]
        row = (int(tally.rows[place]), *(int(column[place]) for column in numbers))
        found[key] = row, kept
    return found


def worst_change(priced: PricedQuery, one: ExactCounts, other: ExactCounts) -> tuple[int, list[int], int]:
    """Return how many groups changed, how far each number moved in a group, and how many kept values came or went."""
    here, there = by_key(priced, one), by_key(priced, other)
    numbers = [0] * (1 + len(priced.draft.numbers))
    changed = moved = 0
    nothing = (0,) * len(numbers), [Counter[int]() for _ in priced.draft.picks]
    for key in here.keys() | there.keys():
        (mine, kept), (yours, left) = here.get(key, nothing), there.get(key, nothing)
        changed += (mine, kept) != (yours, left)
        numbers = [max(most, abs(a - b)) for most, a, b in zip(numbers, mine, yours, strict=True)]
        for a, b in zip(kept, left, strict=True):
            moved = max(moved, ((a - b) + (b - a)).total())
    return changed, numbers, moved


def violations(world: World, priced: PricedQuery) -> list[str]:
    """Return what one unit changes beyond the claim, over all units."""
    draft = priced.draft
    whole = world.run(world.engines[0], priced)
    found = []
    for engine in world.engines[1:]:
        changed, numbers, moved = worst_change(priced, whole, world.run(engine, priced))
        if changed > draft.max_groups:
            found.append(f"{changed} groups of {draft.max_groups}")
        if any(far > claim for far, claim in zip(numbers, (draft.max_rows, *draft.changes), strict=True)):
            found.append(f"{numbers} beyond {draft.changes}")
        if moved > draft.max_rows:
            found.append(f"{moved} values of {draft.max_rows}")
    return found


def survey(seed: str, unit: dp.Unit, plans: int) -> tuple[int, int]:
    """Ask random questions of one world; return how many were answered and how many were asked."""
    world = World(seed, unit)
    with world.opened:
        sql = Sql(world.random, unit=not unit.is_row)
        answered = 0
        for _ in range(plans):
            query = sql.query()
            try:
                priced = world.priced(query)
            except dp.Refused:
                continue
            answered += 1
            assert not violations(world, priced), query
        return answered, plans


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
def test_no_random_plan_changes_more_than_it_says(seed: int) -> None:
    answered, asked = survey(f"unit {seed}", LIMITS, 15)
    assert answered > asked // 3, "nearly everything was refused: the law says little"


@pytest.mark.long
def test_no_random_plan_over_rows_changes_more_than_it_says() -> None:
    answered, asked = survey("rows", dp.Unit("row"), 12)
    assert answered > asked // 3


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(4))
def test_no_random_plan_of_many_changes_more_than_it_says(seed: int) -> None:
    survey(f"night {searched(seed)}", LIMITS if seed % 4 else dp.Unit("row"), 100)


@pytest.mark.parametrize("field", ["max_groups", "max_rows", "changes"])
def test_a_plan_that_claims_less_is_caught(field: str) -> None:
    """The wrong neighbours: a claim that forgets groups, rows or the size of a value."""
    world = World("mutants", LIMITS)
    with world.opened:
        priced = world.priced("SELECT city, COUNT(*) AS n, SUM(age) AS s, MEDIAN(age) AS m FROM people GROUP BY city")
        assert not violations(world, priced)
        smaller = {"max_groups": 1, "max_rows": 1, "changes": tuple(change // 2 for change in priced.draft.changes)}
        with replayed("unused"):
            wrong = replace(priced, draft=replace(priced.draft, **{field: smaller[field]}))
        run = world.run
        world.run = lambda engine, _: run(engine, priced)  # type: ignore[method-assign]  # Bounded as before.
        assert violations(world, wrong)
