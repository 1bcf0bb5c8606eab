"""Joins, unions, sub-queries and clauses: refused, or no unit changes the exact numbers by more than the price says."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from searching import searched
from test_plan_fuzz import LIMITS, World, violations

import discreet as dp

QUERIES = [
    line
    for line in (Path(__file__).parent / "rewrites.sql").read_text(encoding="utf-8").splitlines()
    if not line.startswith("--")
]


def outcomes(seed: str, unit: dp.Unit, queries: list[str]) -> Counter[str]:
    """Ask all of one world, and take every unit away from each answer."""
    world, found = World(seed, unit), Counter[str]()
    with world.opened:
        for query in queries:
            try:
                priced = world.priced(query)
            except dp.Refused:
                found["refused"] += 1
                continue
            assert not violations(world, priced), query
            found["within bounds"] += 1
    return found


@pytest.mark.long
def test_every_rewrite_is_refused_or_within_its_bounds():
    found = outcomes("rewrites", LIMITS, QUERIES[::2])
    assert found["within bounds"] >= 20
    assert found["refused"] >= 10


@pytest.mark.long
def test_every_rewrite_is_refused_or_within_its_bounds_where_rows_are_units():
    found = outcomes("rows", dp.Unit("row"), QUERIES[1::4])
    assert found["within bounds"] >= 3
    assert found["refused"] >= 10


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("unit", [LIMITS, dp.Unit("id", 1, 1), dp.Unit("id", 3, 1), dp.Unit("row")], ids=str)
def test_every_rewrite_is_refused_or_within_its_bounds_in_many_worlds(unit, seed):
    assert outcomes(f"world {searched(seed)}", unit, QUERIES).total() == len(QUERIES) >= 60


@pytest.mark.parametrize("lost", ["max_groups", "max_rows"])
def test_a_join_that_is_bounded_too_little_is_caught(lost):
    """The wrong neighbour: joined rows are bounded by twice the limit that is charged."""
    world = World("mutant", LIMITS)
    with world.opened:
        query = "SELECT v.city, COUNT(*) AS n FROM people p JOIN visits v ON p.id = v.id GROUP BY v.city"
        priced, run = world.priced(query), world.run
        loose = replace(priced, draft=replace(priced.draft, **{lost: 4}))
        world.run = lambda engine, _: run(engine, loose)
        assert violations(world, priced)
