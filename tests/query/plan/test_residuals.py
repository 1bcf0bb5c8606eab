"""Noise that a family of tables shares: its price, its tables and its variances, by enumeration on small worlds."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, product
from types import SimpleNamespace

import numpy as np
import pytest

from discreet.errors import InvalidParameter
from discreet.mechanisms.grid import compact
from discreet.noise.laws import RoundedGaussianLaw
from discreet.privacy import delta
from discreet.privacy.events import Gaussian
from discreet.query.plan import residuals
from discreet.query.plan.residuals import (
    GroupTree,
    ResidualNoise,
    SharedDraw,
    SharedNoise,
    best_shares,
    is_below,
    residuals_of,
    variance_types,
)

PLAIN = tuple(GroupTree((tuple([0] * size),)) for size in (2, 3, 2))
LEVELS = (GroupTree(((0, 0), (0, 0, 1, 1))), GroupTree(((0, 0, 0),)))
NEARLY = (GroupTree(((0, 0, 0), (0, 0, 1, 1, 1, 2, 2, 2, 2))),)
UNEVEN = (GroupTree(((0, 0), (0, 1, 1, 1))), GroupTree(((0, 0),)))
PAIRS = tuple(tuple((tree, 1) for tree in pair) for pair in combinations(range(3), 2))
DOWN = ((), ((0, 1),), ((0, 2),), ((1, 1), (0, 1)), ((1, 1), (0, 2)))
WORLDS = [(PLAIN, PAIRS), (PLAIN, ((), *PAIRS, ((0, 1),))), (LEVELS, DOWN), (UNEVEN, DOWN), (NEARLY, DOWN[:3])]


def noise_of(trees, tables, *, largest=False, weights=None) -> ResidualNoise:
    types = variance_types(trees, tables)
    shares = best_shares(types, weights or [1.0] * len(tables), largest=largest)
    assert shares is not None
    return ResidualNoise(trees, tables, shares)


def atoms_of(trees):
    """Return all atoms: a group of the finest level of every column."""
    return list(product(*(range(tree.cells(len(tree.parents))) for tree in trees)))


def counts(trees, levels) -> np.ndarray:
    """Return the matrix from atoms to the cells of a grouping, straight from what a group is."""
    shape = [trees[tree].cells(level) for tree, level in levels]
    matrix = np.zeros((math.prod(shape), len(atoms_of(trees))), object)
    for place, atom in enumerate(atoms_of(trees)):
        cell = 0
        for (tree, level), size in zip(levels, shape, strict=True):
            group = atom[tree]
            for step in range(len(trees[tree].parents), level, -1):
                group = trees[tree].parents[step - 1][group]
            cell = cell * size + group
        matrix[cell, place] = 1
    return matrix


def measured(trees, residual) -> tuple[np.ndarray, list[int]]:
    """Return X as a matrix on atoms, and by cell the product of |g'| (|g'| - 1)."""
    factors, squares = [np.ones((1, 1), object)], [1]
    for tree, step in residual:
        parents = trees[tree].parents[step - 1]
        sizes = [parents.count(parent) for parent in parents]
        same = np.array([[int(one == other) for other in parents] for one in parents], object)
        factors.append(np.diag(np.array(sizes, object)) - same)
        squares = [square * size * (size - 1) for square in squares for size in sizes]
    whole = factors[0]
    for factor in factors[1:]:
        whole = np.kron(whole, factor)
    return whole @ counts(trees, residual), squares


def spent(noise, change: np.ndarray, q: Fraction) -> Fraction:
    """Return the mu squared of a change of atoms: every cell that moves, over the variance of its noise."""
    total = Fraction(0)
    for residual, share in zip(noise.residuals, noise.shares, strict=True):
        matrix, squares = measured(noise.trees, residual)
        moved = matrix @ change
        for cell in np.flatnonzero(moved).tolist():
            total += Fraction(int(moved[cell]) ** 2) * share / (q * squares[cell])
    return total


@pytest.mark.parametrize(("trees", "tables"), WORLDS)
def test_one_row_spends_no_more_than_it_was_priced_for_and_so_do_several(trees, tables):
    noise, q = noise_of(trees, tables), Fraction(7)
    atoms = len(atoms_of(trees))
    for rows in (1, 2):
        worst = Fraction(0)
        for chosen in combinations_with_replacement(range(atoms), rows):
            change = np.bincount(chosen, minlength=atoms).astype(object)
            worst = max(worst, spent(noise, change, q))
        assert worst <= rows**2 * sum(noise.shares) / q <= rows**2 / q
        assert worst >= rows**2 * sum(noise.shares) / q * Fraction(99, 100)  # and wastes nothing


def test_levels_that_are_counted_once_although_they_are_measured_twice_are_found():
    """As if a row that moves a column did not move its levels, too: then these would come for free."""
    noise, q = noise_of(LEVELS, DOWN), Fraction(7)
    first = np.array([1] + [0] * (len(atoms_of(LEVELS)) - 1), object)
    paid = [all((tree, step) != (0, 1) for tree, step in one) for one in noise.residuals]
    counted = sum(share for share, is_paid in zip(noise.shares, paid, strict=True) if is_paid)
    greedy = SimpleNamespace(
        trees=LEVELS, residuals=noise.residuals, shares=tuple(share / counted for share in noise.shares)
    )
    assert spent(noise, first, q) == sum(noise.shares) / q <= 1 / q
    assert spent(greedy, first, q) > Fraction(11, 10) / q
    with pytest.raises(InvalidParameter, match="the whole at most"):
        ResidualNoise(LEVELS, DOWN, greedy.shares)


@pytest.mark.parametrize(("trees", "tables"), WORLDS)
def test_tables_that_follow_from_exact_residuals_are_the_exact_ones(trees, tables):
    noise = noise_of(trees, tables)
    atoms = np.array([(7 * place * place + 3 * place) % 11 for place in range(len(atoms_of(trees)))], object)
    shapes = {one: [trees[tree].cells(step) for tree, step in one] for one in noise.residuals}
    exact = {one: (measured(trees, one)[0] @ atoms).astype(np.int64).reshape(shapes[one]) for one in noise.residuals}
    for table, found in zip(tables, noise.tables_of(exact), strict=True):
        assert (found.over == found.under * (counts(trees, table) @ atoms)).all()


def covariance(noise: ResidualNoise, number: int) -> np.ndarray:
    """Return the covariance of the cells of a table for q = 1, by the response to each noise that is drawn."""
    found = 0
    for residual, share in zip(noise.residuals, noise.shares, strict=True):
        _, squares = measured(noise.trees, residual)
        shape = [noise.trees[tree].cells(step) for tree, step in residual]
        for cell, square in enumerate(squares):
            drawn = np.zeros(math.prod(shape), np.int64)
            drawn[cell] = 1 if square else 0
            others = {one: np.zeros([noise.trees[t].cells(s) for t, s in one], np.int64) for one in noise.residuals}
            table = noise.tables_of(others | {residual: drawn.reshape(shape)})[number]
            response = table.over.astype(float) / table.under
            found = found + float(square / share) * np.outer(response, response)
    return np.asarray(found)


@pytest.mark.parametrize(("trees", "tables"), WORLDS)
def test_a_table_alone_tells_what_its_residuals_cost_and_more_than_its_part_of_the_price(trees, tables):
    """By the covariance of its cells and all neighbours. The mistake: a table tells what it pays, as if apart."""
    noise, paid = noise_of(trees, tables), 1 / len(tables)
    exceeded = False
    for number, table in enumerate(tables):
        shared = SharedNoise(family="", residuals=noise, table=number, scales=(Fraction(1),), variances=(None,), aim="")
        (variance,) = shared.alone
        told = 1 / float(variance)
        inverse, moves = np.linalg.pinv(covariance(noise, number)), counts(trees, table).astype(float)
        found = float((moves * (inverse @ moves)).sum(axis=0).max())
        assert found <= told * (1 + 1e-9)
        assert found >= told * (1 - 1e-9) or trees is UNEVEN  # Nothing is told within a group that is alone.
        exceeded |= found > 1.05 * paid
    assert exceeded


@pytest.mark.parametrize(("trees", "tables"), WORLDS)
def test_the_variance_that_is_told_is_the_largest_of_the_mechanism(trees, tables):
    noise = noise_of(trees, tables)
    for number, told in enumerate(noise.largest()):
        found = covariance(noise, number).diagonal().max()
        assert found <= told <= found * (1 + 1e-5)


def test_weights_of_groupings_are_the_inverse_covariance_where_groups_are_alike():
    noise = noise_of(LEVELS, DOWN)
    weights = noise.precisions()
    assert weights is not None
    grams = {one: counts(LEVELS, one).astype(float) for one in weights}
    inverse = sum(float(weight) * grams[one].T @ grams[one] for one, weight in weights.items())
    atoms = counts(LEVELS, DOWN[-1]).astype(float)  # The last table has a cell for each atom, in another order.
    assert np.allclose(inverse @ (atoms.T @ covariance(noise, len(DOWN) - 1) @ atoms), np.eye(len(inverse)))
    assert noise_of(UNEVEN, DOWN).precisions() is None


def least_sum(trees, tables, weights) -> float:
    """Return a bound on the sum of weighted variances of any Gaussian mechanism with mu = 1, by singular values."""
    workload = np.vstack(
        [math.sqrt(weight) * counts(trees, table).astype(float) for table, weight in zip(tables, weights, strict=True)]
    )
    return float(np.linalg.svd(workload, compute_uv=False).sum() ** 2 / workload.shape[1])


@pytest.mark.parametrize(("trees", "tables"), WORLDS)
def test_the_sum_of_variances_is_near_the_least_of_all_gaussian_mechanisms(trees, tables):
    noise, types = noise_of(trees, tables), variance_types(trees, tables)
    total = float(types.cells @ types.times([1 / float(share) for share in noise.shares]))
    bound = least_sum(trees, tables, [1] * len(tables))
    even = len(tables) * sum(counts(trees, table).shape[0] for table in tables)
    assert total <= (1.05 if trees is not UNEVEN else 1.25) * bound  # The worst: one group alone beside one of three.
    assert total < even


@pytest.mark.parametrize(("trees", "tables"), WORLDS[:3])
def test_the_largest_variance_is_near_the_least_of_all_gaussian_mechanisms(trees, tables):
    """Of the sum with any weights that add up to one over all cells the bound holds for the largest, too."""
    noise = noise_of(trees, tables, largest=True)
    cells = [counts(trees, table).shape[0] for table in tables]
    weights = np.ones(len(tables)) / sum(cells)
    for _ in range(300):
        variances = np.array([float(one) for one in noise_of(trees, tables, weights=weights.tolist()).largest()])
        weights = weights * np.sqrt(variances / variances.max())
        weights = weights / float(np.dot(weights, cells))
    bound = least_sum(trees, tables, weights.tolist())
    assert max(map(float, noise.largest())) <= 1.01 * bound


def test_no_table_exceeds_what_it_may_and_where_that_cannot_be_nothing_is_found():
    types = variance_types(PLAIN, PAIRS)
    free = ResidualNoise(PLAIN, PAIRS, best_shares(types, [1.0] * 3, largest=False)).largest()
    most = [float(free[0]) * 0.9, 10.0, 10.0]
    held = ResidualNoise(PLAIN, PAIRS, best_shares(types, [1.0] * 3, largest=False, most=most)).largest()
    assert all(found <= limit for found, limit in zip(held, most, strict=True))
    assert best_shares(types, [1.0] * 3, largest=False, most=[1.0] * 3) is None  # each as if it had all to itself


def test_weights_move_noise_away_from_the_tables_that_count_more():
    plain, weighed = noise_of(PLAIN, PAIRS).largest(), noise_of(PLAIN, PAIRS, weights=[100.0, 1.0, 1.0]).largest()
    assert weighed[0] < plain[0]
    assert weighed[1] > plain[1]


def test_the_exact_law_of_rounded_noise_is_within_the_claim_and_half_of_it_is_not():
    """Two cells and their total, drawn without finer steps: three rounded Gaussians, and the mu of one row."""
    trees, tables, q = (GroupTree(((0, 0),)),), ((), ((0, 1),)), Fraction(3)
    noise = noise_of(trees, tables)
    claim = Gaussian(variance=1, squared_sensitivity=sum(noise.shares) / q)
    for epsilon in (0.2, 0.5, 1.0):
        for part, is_within in ((1, True), (2, False)):
            variances = [q / noise.shares[0] / part, *[q / noise.shares[1] * 2 / part] * 2]
            found = _delta_of(variances, [1, 1, -1], epsilon)
            assert (found <= delta(claim, epsilon) * (1 + 1e-9)) is is_within


def _delta_of(variances, moves, epsilon) -> float:
    first, second = np.ones(1), np.ones(1)
    for variance, move in zip(variances, moves, strict=True):
        law, reach = RoundedGaussianLaw(Fraction(variance)), int(9 * math.sqrt(variance)) + 2
        chances = np.array([float(law.pmf(k)) for k in range(-reach - 1, reach + 2)])
        first = np.multiply.outer(first, chances).reshape(-1)
        second = np.multiply.outer(second, np.roll(chances, move)).reshape(-1)
    return float(np.maximum(first - math.exp(epsilon) * second, 0).sum())


def test_whole_numbers_are_right_on_average_whatever_they_are_added_to():
    for under in (2, 3, 4, 6):
        over = np.arange(-3 * under, 3 * under + 1)
        for exact in (10, 11):
            found = SharedDraw(over + exact * under, under).whole()
            assert sum(found.tolist()) == exact * over.size
            assert max(abs(found - exact - over / under)) <= 0.5


def test_draws_have_the_variances_that_are_told_also_where_they_need_more_than_64_bits():
    for q in (Fraction(40), Fraction(1 << 62)):
        noise = noise_of(UNEVEN, DOWN)
        empty = [np.zeros(counts(UNEVEN, table).shape[0], np.int64) for table in DOWN]
        draws = [noise.release(empty, q) for _ in range(400)]
        for number, told in enumerate(noise.largest()):
            cells = np.array([one[number].tolist() for one in draws], np.float64)
            ratio = float((cells.var(axis=0)).max() / float(told * q + Fraction(1, 12)))
            assert 0.6 < ratio < 1.7  # Of 400 draws the variance is within 7 of its standard deviations.


def unheard(monkeypatch):
    """Leave the noise out, to see what it is added to."""
    monkeypatch.setattr("discreet.noise.rounded_gaussian", lambda *, variance, size: np.zeros(size, np.int64))


def drawn_spent(monkeypatch, noise: ResidualNoise, q: Fraction) -> Fraction:
    """Return the largest mu squared of one row, of the very numbers that `release` measures and of the noise it draws.

    Each draw is marked on an empty table, so that the variance of every cell is known; then noise is left out, and
    every neighbour of the empty table is measured.
    """
    variances: list[Fraction] = [Fraction(0)]
    seen: list[dict] = []

    def marked(*, variance, size):
        variances.append(Fraction(variance))
        return np.full(size, len(variances) - 1, np.int64)

    told = ResidualNoise.tables_of
    monkeypatch.setattr(
        ResidualNoise, "tables_of", lambda self, found, fine=1: seen.append(found) or told(self, found, fine)
    )
    monkeypatch.setattr("discreet.noise.rounded_gaussian", marked)
    atoms, tables = len(atoms_of(noise.trees)), noise.tables
    noise.release([np.zeros(counts(noise.trees, table).shape[0], np.int64) for table in tables], q)
    unheard(monkeypatch)
    for atom in range(atoms):
        noise.release([counts(noise.trees, table)[:, atom].astype(np.int64) for table in tables], q)
    marks, *rows = seen
    return max(_moved(marks, moved, variances) for moved in rows)


def _moved(marks, moved, variances) -> Fraction:
    cells = [
        (int(change), variances[mark])
        for one in marks
        for mark, change in zip(marks[one].reshape(-1).tolist(), moved[one].reshape(-1).tolist(), strict=True)
        if change
    ]
    assert all(variance for _, variance in cells)  # What moves has noise.
    return sum((Fraction(change**2) / variance for change, variance in cells), Fraction(0))


@pytest.mark.parametrize("q", [Fraction(7), Fraction(1, 100)])
@pytest.mark.parametrize(("trees", "tables"), WORLDS)
def test_what_is_measured_and_drawn_spends_what_it_was_priced_for(monkeypatch, trees, tables, q):
    noise = noise_of(trees, tables)
    assert sum(noise.shares) / q * Fraction(99, 100) <= drawn_spent(monkeypatch, noise, q) <= 1 / q


MISTAKES = {
    "levels that are counted once": lambda noise, residual, variance: (
        variance * sum(s for one, s in zip(noise.residuals, noise.shares, strict=True) if (0, 1) not in one)
    ),
    "groups that are forgotten": lambda noise, residual, variance: variance / 2 ** len(residual),
    "a total that comes for free": lambda noise, residual, variance: variance if residual else variance / 8,
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_in_what_is_drawn_are_found(monkeypatch, mistake):
    real, noise, q = ResidualNoise._noise, noise_of(LEVELS, DOWN), Fraction(7)
    wrong = MISTAKES[mistake]
    monkeypatch.setattr(
        ResidualNoise, "_noise", lambda self, residual, variance: real(self, residual, wrong(self, residual, variance))
    )
    assert drawn_spent(monkeypatch, noise, q) > Fraction(105, 100) / q


@pytest.mark.parametrize("scale", [1, 1 << 58, 1 << 80], ids=["small", "sums beyond 64 bits", "cells beyond 64 bits"])
@pytest.mark.parametrize(("trees", "tables"), WORLDS)
def test_tables_of_the_same_rows_are_what_they_are(monkeypatch, trees, tables, scale):
    unheard(monkeypatch)
    noise, atoms = noise_of(trees, tables), scale * (np.arange(len(atoms_of(trees))).astype(object) + 1)
    exact = [compact((counts(trees, table) @ atoms).astype(object)) for table in tables]
    told = noise.release(exact, Fraction(40))
    assert [one.tolist() for one in told] == [one.tolist() for one in exact]


@pytest.mark.parametrize(("trees", "tables"), WORLDS)
def test_nothing_fails_whatever_the_tables_hold_and_residuals_are_all_that_is_told(monkeypatch, trees, tables):
    """Whether tables agree is an exact fact about rows: it must not decide whether there is an answer.

    A number that only one table has moves nothing but what follows from the residuals that are taken from it, each
    of which is measured once: tables agree with each other afterwards.
    """
    unheard(monkeypatch)
    noise, atoms = noise_of(trees, tables), 1000 * np.arange(len(atoms_of(trees))).astype(object)
    exact = [(counts(trees, table) @ atoms).astype(np.int64) for table in tables]
    exact[-1][0] += 1
    told = noise.release(exact, Fraction(40))
    taken = {one: next(n for n, table in enumerate(tables) if is_below(one, table)) for one in noise.residuals}
    for number, table in enumerate(tables):
        if all(taken[one] != len(tables) - 1 for one in noise.residuals if is_below(one, table)):
            assert told[number].tolist() == (counts(trees, table) @ atoms).tolist()


def test_levels_that_do_not_make_groups_of_groups_are_refused():
    with pytest.raises(InvalidParameter, match="made of groups"):
        GroupTree(((0, 0), (0, 0, 2)))
    assert len(residuals_of(PAIRS)) == 1 + 3 + 3
    assert residuals._MOST_RESIDUALS >= 10_000
