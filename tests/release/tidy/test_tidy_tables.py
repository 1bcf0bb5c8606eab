"""Tidy tables add up exactly, are whole and not negative, respect what is known, and use released values only."""

from __future__ import annotations

import ast
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tidy_worlds import (
    World,
    added_to,
    common,
    numbers_of,
    plan_of,
    published,
    released,
    table_name,
    worlds,
)

from discreet.errors import InvalidParameter
from discreet.query.answer_columns import AnswerColumn
from discreet.release.plan import Invariant, Level
from discreet.release.tidy import cell_layout, consistent_tables
from discreet.release.tidy.tidying import tidy_tables, too_few
from discreet.schema.columns import Kind

HARBOURS = Level(name="region", of="district", members={"coast": ("harbour",), "inland": ("hill", "mill")})
COUNTY = World(
    columns={"district": ("harbour", "hill", "mill"), "sex": ("f", "m")},
    levels=(HARBOURS,),
    groupings=((), ("region",), ("district",), ("district", "sex"), ("sex",)),
    rows={(place, sex): 3 * len(place) + len(sex) for place in ("harbour", "hill", "mill") for sex in "fm"},
)
NOISE = {(): [4], ("region",): [-3, 2], ("district",): [1, -30, 0], ("district", "sex"): [-30, 2, 5, -9, 0, 0],
         ("sex",): [7, -7]}  # fmt: skip
EVEN = dict.fromkeys(COUNTY.groupings, Fraction(4))


def county(invariants=(), noise=NOISE, **more):
    plan = plan_of(COUNTY, invariants)
    return plan, published(plan, COUNTY, noise, EVEN, **more)


def assert_adds_up(world: World, tidied) -> None:
    numbers = {table.plan.by: numbers_of(table.tidy) for table in tidied}
    for one, other in combinations(world.groupings, 2):
        names = common(world, one, other)
        assert added_to(world, one, numbers[one], names) == added_to(world, other, numbers[other], names)
    for by in world.groupings:
        assert all(numbers[by][keys] == 0 for keys in world.impossible(by))


@given(data=st.data(), world=worlds())
def test_tidy_tables_add_up_and_are_whole_and_not_negative_for_all_families(data, world):
    noise, deviations = data.draw(released(world))
    plan = plan_of(world)
    tidied = tidy_tables(plan, published(plan, world, noise, deviations))
    assert_adds_up(world, tidied)
    for table in tidied:
        assert all(value >= 0 and value.denominator == 1 for value in numbers_of(table.tidy).values())


@pytest.mark.long
@given(data=st.data(), world=worlds(), grain=st.sampled_from([Fraction(1, 100), Fraction(5)]))
def test_sums_that_may_be_negative_add_up_in_their_steps_for_all_families(data, world, grain):
    noise, deviations = data.draw(released(world))
    plan = plan_of(world, measure="SUM(x)")
    tidied = tidy_tables(plan, published(plan, world, noise, deviations, grain=grain, limits=(None, None)))
    assert_adds_up(world, tidied)
    for table in tidied:
        assert all((value / grain).denominator == 1 for value in numbers_of(table.tidy).values())


@given(data=st.data(), world=worlds())
def test_invariants_are_respected_exactly_for_all_families(data, world):
    noise, deviations = data.draw(released(world))
    cells = [(by, keys, count) for by in world.groupings for keys, count in world.counts(by).items()
             if keys not in world.impossible(by)]  # fmt: skip
    chosen = data.draw(st.lists(st.sampled_from(cells), max_size=6, unique_by=lambda cell: cell[:2]))
    invariants = [
        Invariant(table=table_name(by), column="n", value=Fraction(count), where=dict(zip(by, keys, strict=True)),
                  reason="law")
        for by, keys, count in chosen
    ]  # fmt: skip
    plan = plan_of(world, invariants)
    tidied = tidy_tables(plan, published(plan, world, noise, deviations))
    assert_adds_up(world, tidied)
    for by, keys, count in chosen:
        table = next(table for table in tidied if table.plan.by == by)
        assert numbers_of(table.tidy)[keys] == count


def test_tables_add_up_where_the_search_for_zeros_is_cut_short(monkeypatch):
    monkeypatch.setattr(consistent_tables, "ROUNDS", 1)
    total = Invariant(table="people", column="n", value=Fraction(87), where={}, reason="law")
    tidied = tidy_tables(*county([total]))
    assert_adds_up(COUNTY, tidied)
    assert numbers_of(tidied[0].tidy) == {(): 87}
    assert min(value for table in tidied for value in numbers_of(table.tidy).values()) == 0


def test_sums_that_are_never_positive_stay_so():
    plan, raw = county(grain=Fraction(1, 2), limits=(None, Fraction(0)))
    tidied = tidy_tables(plan, raw)
    assert_adds_up(COUNTY, tidied)
    assert all(value <= 0 for table in tidied for value in numbers_of(table.tidy).values())


def test_raw_tables_stay_as_they_are():
    plan, raw = county()
    for before, after in zip(raw, tidy_tables(plan, raw), strict=True):
        assert (after.plan, after.raw) == (before.plan, before.raw)


def test_the_same_released_values_are_tidied_in_the_same_way_to_the_letter():
    first, second = ([table.tidy.to_json() for table in tidy_tables(*county())] for _ in range(2))
    assert first == second


def test_a_tidy_table_has_no_interval_and_says_why():
    for table in tidy_tables(*county()):
        assert table.tidy.is_tidy
        assert not table.tidy.column("n").has_interval
        assert "raw" in table.tidy.column("n").no_interval
        assert any("add up" in note for note in table.tidy.notes)
        assert table.raw.column("n").has_interval
        assert not table.raw.is_tidy


def test_nothing_is_tidied_unless_the_plan_wants_it():
    plan = plan_of(COUNTY, tidy=False)
    assert all(table.tidy is None for table in tidy_tables(plan, published(plan, COUNTY, NOISE, EVEN)))


def test_counts_of_distinct_things_are_left_alone_and_say_so():
    plan = plan_of(COUNTY, measure="COUNT(DISTINCT doctor)")
    tidied = tidy_tables(plan, published(plan, COUNTY, NOISE, EVEN))
    for table in tidied:
        assert numbers_of(table.tidy) == {key: max(value, 0) for key, value in numbers_of(table.raw).items()}
        assert any("not made to add up" in note for note in table.tidy.notes)


def test_a_family_with_too_many_groups_says_so(monkeypatch):
    monkeypatch.setattr(cell_layout, "MOST_ATOMS", 5)
    for table in tidy_tables(*county()):
        assert any("6 groups" in note for note in table.tidy.notes)
        assert all(value >= 0 for value in numbers_of(table.tidy).values())


def test_noise_of_unknown_width_is_not_weighed():
    plan, raw = county()
    raw = [type(table)(plan=table.plan, raw=table.raw, tidy=None) for table in raw]
    assert all(any("width of its noise" in note for note in table.tidy.notes) for table in tidy_tables(plan, raw))


def test_a_table_of_no_family_is_tidied_by_itself_and_knows_its_invariants():
    alone = World(COUNTY.columns, (), (("sex",),), COUNTY.rows)
    known = Invariant(table="people_by_sex", column="n", value=Fraction(40), where={"Sex": "f"}, reason="law")
    plan = plan_of(alone, [known])
    table = published(plan, alone, {("sex",): [0, -100]}, {("sex",): Fraction(1)})[0]
    lonely = type(table.plan)(name="people_by_sex", title="", sql="SELECT 1")
    [tidied] = tidy_tables(plan, [type(table)(plan=lonely, raw=table.raw, tidy=None)])
    assert numbers_of(tidied.tidy) == {("f",): 40, ("m",): 0}


@pytest.mark.parametrize(
    ("members", "problem"),
    [
        ({"coast": ("harbour",), "inland": ("hill",)}, "leaves out"),
        ({"coast": ("harbour", "hill"), "inland": ("hill", "mill")}, "twice"),
    ],
)
def test_levels_that_are_no_partition_are_refused(members, problem):
    domains = {"district": COUNTY.columns["district"], "region": ("coast", "inland")}
    level = Level(name="region", of="district", members=members)
    with pytest.raises(InvalidParameter, match=problem):
        cell_layout.lay_out({"a": ("region",), "b": ("district",)}, [level], domains)


def test_tidying_sees_the_plan_and_released_tables_only():
    """Nothing that it imports knows where data are, how they are read, or what a ledger is."""
    known = (
        "errors",
        "query",
        "query.answer_columns",
        "query.plan.residuals",  # public weights, from the plan
        "query.release_table",
        "release.plan",
        "release.published",
        "release.tidy.",
    )
    for path in Path(cell_layout.__file__).parent.glob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}
        ours = {name.removeprefix("discreet.") for name in imported if name.startswith("discreet.")}
        if path.name == "tidy_check.py":
            ours -= {"query.plan.answers", "query.plan.planner", "query.ast"}
        assert all(name in known or name.startswith(known[-1]) for name in ours)
        assert not any(isinstance(node, ast.Name) and node.id == "open" for node in ast.walk(tree))


@pytest.mark.parametrize("width", [8, pytest.param(80, marks=pytest.mark.slow)])
def test_many_groups_are_tidied(width):
    generator = np.random.default_rng(5)
    columns = {"a": tuple(range(width)), "b": tuple(range(5 * width)), "c": tuple(range(5))}
    groupings = ((), ("a",), ("b",), ("a", "b"), ("a", "b", "c"))
    rows = {row: int(generator.integers(0, 4)) for row in product(*columns.values())}
    world = World(columns, (), groupings, rows)
    noise = {by: generator.integers(-9, 10, len(world.counts(by))).tolist() for by in groupings}
    plan = plan_of(world)
    tidied = tidy_tables(plan, published(plan, world, noise, dict.fromkeys(groupings, Fraction(5))))
    assert_adds_up(world, tidied)


def test_a_mean_of_which_nothing_is_told_is_missing():
    """Where the interval holds all that it can be, or no count beside it is surely above zero."""
    numbers = {"values": (5, 3, 3, 3), "low": (Fraction(2, 5), 2, 0, 2), "high": (9, 4, 9, 4)}
    mean = AnswerColumn(name="mean", kind=Kind.REAL, limits=(Fraction(1), Fraction(5)), **numbers)
    ends = {"values": (90, 90, 90, 2), "low": (80, 80, 80, -8), "high": (100, 100, 100, 12)}
    count = AnswerColumn(name="n", kind=Kind.INTEGER, limits=(Fraction(0), None), grain=Fraction(1), **ends)
    plan, (alone, *_) = county()
    measures = {"mean": "AVG(age)", "n": "COUNT(*)"}
    raw = replace(alone.raw, columns=(mean, count), rows_shown=4)
    table = replace(alone, raw=raw, plan=replace(alone.plan, family=None, measures=measures), deviations={})
    (tidied,) = tidy_tables(plan, [table])
    assert tidied.tidy.column("mean").values == (None, 3, None, None)
    assert tidied.tidy.column("n").values == (90, 90, 90, 2)
    assert any("too few rows" in note for note in tidied.tidy.notes)
    sums = replace(table, plan=replace(table.plan, measures=measures | {"n": "SUM(visits)"}))
    assert too_few(sums, "mean") == {0, 2}  # A sum near zero does not tell that nobody is there.
    assert too_few(table, "n") == frozenset()
