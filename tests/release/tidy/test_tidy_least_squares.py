"""The consistent estimate is the projection it claims to be; what is not negative and whole is as near as can be."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import nnls
from tidy_worlds import World, plan_of, published, released, table_name, worlds

from discreet.errors import InvalidParameter
from discreet.release.plan import Level
from discreet.release.tidy.cell_layout import CellLayout, known_cells, whole_totals
from discreet.release.tidy.consistent_tables import (
    WIDE,
    RawColumn,
    estimate,
    family_of,
    nonnegative,
    tidy_column,
    whole,
)
from discreet.release.tidy.tidying import family_layout, raw_column


def problem(world: World, noise, deviations) -> tuple[CellLayout, RawColumn]:
    plan = plan_of(world)
    tables = {table.plan.name: table for table in published(plan, world, noise, deviations)}
    layout = family_layout(plan, tables)
    return layout, raw_column(plan, tables, layout, "n")[1]


def knowing(layout: CellLayout, column: RawColumn, world: World, data: st.DataObject) -> RawColumn:
    """Let some cells be known, as they truly are."""
    truth = exact(layout, world)
    cells = [(table, cell) for table, spot in layout.spots.items() for cell in sorted(set(spot.of_atom.tolist()))]
    chosen = data.draw(st.lists(st.sampled_from(cells), max_size=5, unique=True))
    return replace(column, known={(table, cell): int(truth[table][cell]) for table, cell in chosen})


def exact(layout: CellLayout, world: World) -> dict[str, np.ndarray]:
    return {table_name(by): np.array(list(world.counts(by).values()), float) for by in world.groupings}


def matrix(layout: CellLayout, column: RawColumn) -> np.ndarray:
    """Return the cells of all tables as sums of atoms."""
    return np.vstack([np.eye(spot.cells)[spot.of_atom].T for spot in (layout.spots[table] for table in column.values)])


def stacked(parts) -> np.ndarray:
    return np.concatenate(list(parts.values()))


def scales(layout: CellLayout, column: RawColumn) -> np.ndarray:
    return np.concatenate([np.full(len(v), float(column.deviations[table])) for table, v in column.values.items()])


def distance(column: RawColumn, one, other) -> float:
    return sum(((one[t] - other[t]) ** 2).sum() / float(column.deviations[t]) ** 2 for t in column.values)


@pytest.mark.long
@given(data=st.data(), world=worlds())
def test_the_estimate_is_never_farther_from_the_truth_than_raw_values_for_all_families(data, world):
    layout, column = problem(world, *data.draw(released(world)))
    column = knowing(layout, column, world, data)
    truth = exact(layout, world)
    allowed = distance(column, column.values, truth)
    assert distance(column, estimate(layout, column), truth) <= allowed * (1 + 1e-9) + 1e-9


@given(data=st.data(), world=worlds())
def test_the_estimate_agrees_with_dense_algebra(data, world):
    """The normal equations with one multiplier for each known cell, solved by a pseudo-inverse."""
    layout, column = problem(world, *data.draw(released(world)))
    column = knowing(layout, column, world, data)
    adds, wide = matrix(layout, column), scales(layout, column)
    possible = adds.any(axis=1)
    raw = np.where(possible, stacked(column.values), 0)
    places = np.cumsum([0, *(layout.spots[table].cells for table in column.values)])
    first = dict(zip(column.values, places, strict=False))
    known = adds[[first[table] + cell for table, cell in column.known]].reshape(-1, layout.atoms)
    gram = adds.T @ (adds / wide[:, None] ** 2)
    system = np.block([[gram, known.T], [known, np.zeros((len(known), len(known)))]])
    right = np.concatenate([adds.T @ (raw / wide**2), list(column.known.values())])
    best = adds @ (np.linalg.pinv(system, rcond=1e-12) @ right)[: layout.atoms]
    assert np.allclose(stacked(estimate(layout, column)), best, atol=1e-5)


def test_the_estimate_of_a_tree_agrees_with_one_pass_up_and_one_down():
    """The closed form for counts in a tree: average each node with the sum of its children, then share the rest."""
    members = {"p": ("a", "b", "c"), "q": ("d", "e", "f")}
    level = Level(name="part", of="place", members=members)
    rows = {(place,): 10 for place in "abcdef"}
    world = World({"place": tuple("abcdef")}, (level,), ((), ("part",), ("place",)), rows)
    wide = {(): Fraction(2), ("part",): Fraction(3), ("place",): Fraction(5)}
    noise = {(): [4], ("part",): [-3, 5], ("place",): [2, -4, 7, 0, 3, -9]}
    layout, column = problem(world, noise, wide)
    raw = {table: values.tolist() for table, values in column.values.items()}
    leaves = raw["people_by_place"]
    up, sure = [], []
    for part in range(2):
        below = sum(leaves[3 * part : 3 * part + 3])
        weights = 1 / 9, 1 / (3 * 25)
        up.append((weights[0] * raw["people_by_part"][part] + weights[1] * below) / sum(weights))
        sure.append(1 / sum(weights))
    weights = 1 / 4, 1 / sum(sure)
    total = (weights[0] * raw["people"][0] + weights[1] * sum(up)) / sum(weights)
    parts = [up[part] + (total - sum(up)) * sure[part] / sum(sure) for part in range(2)]
    wanted = [leaf + (parts[i // 3] - sum(leaves[i // 3 * 3 :][:3])) / 3 for i, leaf in enumerate(leaves)]
    found = estimate(layout, column)
    assert np.allclose(found["people"], total)
    assert np.allclose(found["people_by_part"], parts)
    assert np.allclose(found["people_by_place"], wanted)


@given(data=st.data(), world=worlds(most=4))
def test_what_is_not_negative_agrees_with_nonnegative_least_squares(data, world):
    layout, column = problem(world, *data.draw(released(world)))
    family = family_of(layout, column)
    found = nonnegative(family, np.zeros(layout.atoms))
    roots = np.concatenate([np.full(raw.size, w**0.5) for raw, w in zip(family.raw, family.weights, strict=True)])
    _, residual = nnls(matrix(layout, column) * roots[:, None], roots * np.concatenate(family.raw))
    assert (found >= 0).all()
    assert family.misfit(found) <= residual**2 * (1 + 1e-3) + 1e-2 * min(family.deviations) ** 2


@given(data=st.data(), world=worlds(most=4))
def test_no_step_of_one_makes_whole_numbers_fit_better(data, world):
    layout, column = problem(world, *data.draw(released(world)))
    family = family_of(layout, column)
    assume(min(family.deviations) <= WIDE * layout.atoms**0.5)  # Wider noise hides what a step changes.
    spots = [layout.spots[table] for table in column.values]
    found = whole(family, spots, nonnegative(family, np.zeros(layout.atoms)), not_negative=True)
    best = family.misfit(found.astype(float))
    for atom, by in product(range(layout.atoms), (-1, 1)):
        moved = found.astype(float)
        moved[atom] += by
        assert moved[atom] < 0 or family.misfit(moved) >= best - 1e-6


@given(st.lists(st.floats(0, 50), min_size=1, max_size=40), st.data())
def test_runs_of_neighbours_are_rounded_to_less_than_one_off(values, data):
    """Noise this wide leaves the rounding as it is."""
    world = World({"a": tuple(range(len(values)))}, (), (("a",),), dict.fromkeys(((n,) for n in range(len(values))), 0))
    layout, column = problem(world, {("a",): [0] * len(values)}, {("a",): Fraction(1000)})
    rounded = whole(family_of(layout, column), list(layout.spots.values()), np.array(values), not_negative=True)
    first = data.draw(st.integers(0, len(values) - 1))
    last = data.draw(st.integers(first, len(values)))
    assert abs(rounded[first:last].sum() - sum(values[first:last])) < 1 + 1e-9
    assert (rounded >= 0).all()


def crossing(rows: list[int], columns: list[int], *, not_negative: bool = True) -> np.ndarray:
    """Know all margins of a square."""
    world = World({"a": (0, 1), "b": (0, 1)}, (), (("a",), ("b",)), dict.fromkeys(product((0, 1), (0, 1)), 1))
    layout, _ = problem(world, {by: [0, 0] for by in world.groupings}, dict.fromkeys(world.groupings, Fraction(1)))
    cells = {(table, cell): value for table, side in enumerate((rows, columns)) for cell, value in enumerate(side)}
    known = known_cells(cells, list(layout.spots.values()), layout.atoms)
    return whole_totals(known, np.full(known.count, 0.4), not_negative=not_negative)


def test_crossing_margins_that_fit_are_met():
    assert crossing([3, 4], [5, 2]).reshape(2, 2).sum(axis=1).tolist() == [3, 4]
    assert crossing([3, 4], [5, 2]).reshape(2, 2).sum(axis=0).tolist() == [5, 2]


def test_crossing_margins_that_do_not_fit_are_refused():
    with pytest.raises(InvalidParameter, match="contradict"):
        crossing([3, 4], [5, 3])


def test_negative_counts_are_refused_and_negative_sums_are_not():
    with pytest.raises(InvalidParameter, match="contradict"):
        crossing([-3, 4], [1, 0])
    assert crossing([-3, 4], [1, 0], not_negative=False).sum() == 1


@given(data=st.data(), world=worlds(most=3))
def test_tidy_values_of_sparse_tables_stay_near_the_estimate_of_their_total(data, world):
    """A total is measured once and added up from many cells at zero: the cells must not drown it."""
    wide = replace(world, groupings=((), tuple(world.columns)))
    cells = len(wide.counts(tuple(world.columns)))
    noise = {(): [0], tuple(world.columns): data.draw(st.lists(st.integers(-6, 6), min_size=cells, max_size=cells))}
    deviations = {(): Fraction(1, 4), tuple(world.columns): Fraction(4)}
    layout, column = problem(wide, noise, deviations)
    total = sum(world.rows.values())
    assert abs(tidy_column(layout, column)["people"][0] - total) <= 2
