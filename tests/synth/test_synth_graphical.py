"""The graphical model agrees with the full table wherever the full table fits into memory."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.synth.tables.graphical.belief_propagation import (
    Clique,
    FactorNetwork,
    TreeGrowth,
    junction_cells,
    junction_tree,
    plan,
)
from discreet.synth.tables.graphical.effects import Cells, Effects, NoisyMarginal
from discreet.synth.tables.graphical.entropy_fit import _length, fit
from discreet.synth.tables.graphical.graphical_model import Graphical, rounded

Floats = NDArray[np.float64]
LOOP = (3, 2, 4, 2, 3)  # Cells of five columns, in a ring, with a chord, and one alone.
RING: tuple[Clique, ...] = ((0, 1), (1, 2), (2, 3), (0, 3), (0, 2, 3), (4,))


def numbers(key: int) -> np.random.Generator:
    return np.random.default_rng(key)


def wide(table: Floats, clique: Sequence[int], sizes: Sequence[int]) -> Floats:
    rising = table.transpose(sorted(range(len(clique)), key=clique.__getitem__))
    return rising.reshape([sizes[column] if column in clique else 1 for column in range(len(sizes))])


def full_table(model: Graphical) -> Floats:
    """Multiply everything out."""
    total = np.zeros(model.sizes)
    for clique, table in zip(model.cliques, model.potentials, strict=True):
        total = total + wide(table, clique, model.sizes)
    chances = np.exp(total - total.max())
    return np.asarray(chances * (model.total / chances.sum()))


def summed(full: Floats, clique: Sequence[int]) -> Floats:
    kept = full.sum(axis=tuple(column for column in range(full.ndim) if column not in clique))
    return kept.transpose([sorted(clique).index(column) for column in clique])


def all_cliques(columns: int) -> Iterator[Clique]:
    return itertools.chain.from_iterable(itertools.permutations(range(columns), ways) for ways in range(1, 4))


def test_growth_of_a_tree_is_told_without_elimination_for_all_pairs_of_random_graphs() -> None:
    """Where both columns are in one table nothing grows; else the greedy tree is at most twice the bound."""
    source = numbers(5)
    for _ in range(60):
        columns = int(source.integers(3, 12))
        sizes = tuple(source.integers(2, 7, columns).tolist())
        edges = [tuple(sorted(source.choice(columns, 2, replace=False).tolist())) for _ in range(columns)]
        held = edges[: source.integers(0, columns)]
        growth = TreeGrowth.of(sizes, held)
        assert growth.cells == junction_cells(sizes, held)
        for pair in itertools.combinations(range(columns), 2):
            assert growth.cells <= growth.joined(*pair)
            assert junction_cells(sizes, [*held, pair]) <= 2 * growth.joined(*pair)
            if pair in held:
                assert growth.joined(*pair) == growth.cells


def test_growth_of_a_chain_and_of_two_parts() -> None:
    chain = TreeGrowth.of((2, 3, 4, 5, 7), [(0, 1), (1, 2), (2, 3)])
    assert chain.cells == 6 + 12 + 20 + 7
    assert chain.joined(0, 4) == chain.cells + 14  # Two parts: a table of their own.
    assert chain.joined(0, 2) == chain.cells + 12  # Column 0 is added to (1, 2).
    assert chain.joined(1, 3) == chain.cells + 40  # Column 1 to (2, 3), rather than column 3 to (1, 2).
    assert chain.joined(0, 3) == chain.cells + 32  # Column 0 to (1, 2) and to (2, 3).


@st.composite
def models(draw: st.DrawFn) -> Graphical:
    sizes = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=6)))
    columns = st.sets(st.integers(0, len(sizes) - 1), min_size=1, max_size=3)
    drawn = draw(st.sets(columns.map(lambda chosen: tuple(sorted(chosen))), max_size=7))
    cliques = tuple(sorted(drawn | {(column,) for column in range(len(sizes))}))
    source = numbers(draw(st.integers(0, 1 << 30)))
    spread = draw(st.sampled_from([0.0, 1.0, 30.0]))
    tables = tuple(spread * source.normal(size=[sizes[column] for column in clique]) for clique in cliques)
    return Graphical(sizes, cliques, 1000.0, tables)


@given(models())
@settings(max_examples=20, deadline=None)
def test_marginals_are_those_of_the_full_table_for_all_models(model: Graphical) -> None:
    full = full_table(model)
    for clique in itertools.islice(all_cliques(len(model.sizes)), 40):
        assert np.abs(model.marginal(clique) - summed(full, clique)).max() < 1e-10 * model.total


def random_model(source: np.random.Generator, columns: int) -> Graphical:
    """A spanning tree of pairs and some wider cliques over it, as the adaptive methods make; many one-cell columns."""
    sizes = tuple(int(size) for size in source.choice([1, 1, 2, 2, 3], columns))
    tree = {(int(source.integers(0, column)), column) for column in range(1, columns)}
    ways = source.integers(2, 5, int(source.integers(0, 4)))
    wider = {tuple(sorted(source.choice(columns, min(int(way), columns), replace=False).tolist())) for way in ways}
    cliques = tuple(sorted(tree | wider))
    tables = tuple(source.normal(0, 1, [sizes[column] for column in clique]) for clique in cliques)
    return Graphical(sizes, cliques, 20.0, tables)


def is_exact(model: Graphical, source: np.random.Generator) -> bool:
    """Compare the marginals of one, two and three columns with the full table; and some samples with their mean."""
    full, columns = full_table(model), source.permutation(len(model.sizes)).tolist()
    wanted = [tuple(columns[:1]), tuple(columns[1:3]), tuple(columns[-3:])]
    if any(np.abs(model.marginal(clique) - summed(full, clique)).max() > 1e-10 for clique in wanted):
        return False
    return columns[0] > 0 or source.random() > 0.2 or is_sampled(model, full)


def is_sampled(model: Graphical, full: Floats) -> bool:
    """Tell whether the counts in the root of the tree are the expected ones, rounded once."""
    root = junction_tree(model.sizes, model.cliques).cliques[0]
    counts = np.zeros([model.sizes[column] for column in root])
    np.add.at(counts, tuple(model.sample(20)[:, root].T), 1)
    return bool(np.abs(counts - summed(full, root)).max() < 1 + 1e-9)


@pytest.mark.long
@pytest.mark.parametrize(
    ("structures", "columns"), [(10_000, (3, 7)), pytest.param(30_000, (5, 10), marks=pytest.mark.slow)]
)
def test_marginals_and_samples_agree_with_brute_force_on_random_structures(
    structures: int, columns: tuple[int, int]
) -> None:
    source = numbers(structures)
    models = (random_model(source, int(source.integers(*columns))) for _ in range(structures))
    assert all(is_exact(model, source) for model in models)


def test_a_clique_with_a_column_that_none_of_its_factors_has_is_exact() -> None:
    small = Graphical((1, 4, 1, 1), ((0, 1, 2), (1, 3)), 1.0, (np.zeros((1, 4, 1)), np.zeros((4, 1))))
    assert small.marginal((2,)) == pytest.approx([1.0])
    sizes = (7, 7, 2, 7, 11, 11, 7, 2, 7, 2, 11, 2, 2, 3)
    cliques: tuple[Clique, ...] = (
        (0, 1, 2), (0, 12), (1, 10), (2, 8), (3, 9, 12), (3, 13), (4, 5), (4, 10), (4, 12), (6, 8), (6, 9), (6, 13),
        (7, 11), (8, 11), (9, 11),
    )  # fmt: skip
    tables = tuple(numbers(0).normal(0, 1, [sizes[column] for column in clique]) for clique in cliques)
    large = Graphical(sizes, cliques, 1.0, tables)
    for clique in itertools.combinations(range(14), 2):
        assert np.abs(large.marginal(clique) - large._queries._afresh(clique)).max() < 1e-12
    assert large.sample(500).shape == (500, 14)


def test_a_column_of_one_cell_takes_no_part_in_a_fit() -> None:
    sizes, cliques = (3, 1, 2, 1), [(0, 1), (1, 2, 3), (0, 2), (3,)]
    measured = noisy(7, cliques, sizes)
    narrow = [
        NoisyMarginal((0,), measured[0].values.ravel(), 5.0),
        NoisyMarginal((1,), measured[1].values.ravel(), 5.0),
    ]
    narrow += [NoisyMarginal((0, 1), measured[2].values, 5.0)]
    model, alone = fit(sizes, measured), fit((3, 2), narrow, total=fit(sizes, measured).total)
    assert set(model.cliques) == {(0, 2), (1,), (3,)}
    assert np.allclose(model.marginal((2, 3, 0)), alone.marginal((1, 0))[:, None, :])
    again = fit(sizes, measured, start=model, impossible=[((1, 0), np.array([[False, True, False]]))])
    assert again.marginal((0,))[1] == 0
    with pytest.raises(InvalidParameter, match="no row is possible"):
        fit((1, 2), [], impossible=[((0,), np.array([True]))])
    assert fit((1, 1), noisy(8, [(0, 1)], (1, 1))).sample(3).tolist() == [[0, 0]] * 3


def test_rows_can_be_drawn_where_measurements_contradict_the_rules() -> None:
    """Every row that was counted is impossible, and there are many: potentials rise until all products vanish."""
    sizes, copy = (2, 2, 2, 2, 2), ~np.eye(2, dtype=bool)
    chain: list[Clique] = [(0, 1), (1, 2), (2, 3), (3, 4)]
    rules = [(pair, copy) for pair in chain]
    for rows in (1e3, 1e6, 1e12):
        apart = np.array([[0.0, rows], [0.0, 0.0]])
        model = fit(
            sizes, [NoisyMarginal(pair, apart, 1e-3) for pair in [*chain, (0, 4)]], impossible=rules, total=rows
        )
        drawn = model.sample(50)
        assert (drawn == drawn[:, :1]).all()


def test_a_step_without_curvature_keeps_its_length() -> None:
    assert [_length(2.0, 0.0), _length(2.0, -1.0), _length(2.0, float("nan")), _length(0.0, 1.0)] == [1.0] * 4
    assert _length(1e300, 1e-300) == 1.0
    assert _length(3.0, 2.0) == 1.5


def test_a_wide_tree_is_left_for_one_that_has_the_clique(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("discreet.synth.tables.graphical.graphical_model._LARGE", 0)
    model = fit((3, 4, 5, 2), noisy(6, [(0, 1), (1, 2), (2, 3)], (3, 4, 5, 2)), iterations=5)
    full = full_table(model)
    assert all(np.abs(model.marginal(c) - summed(full, c)).max() < 1e-9 for c in [(3, 0), (2, 0), (3, 0, 1)])


@given(models())
@settings(max_examples=20, deadline=None)
def test_a_junction_tree_holds_every_clique_and_each_column_in_one_piece_for_all_models(model: Graphical) -> None:
    tree = junction_tree(model.sizes, model.cliques)
    assert all(any(set(clique) <= set(bag) for bag in tree.cliques) for clique in model.cliques)
    for column in range(len(model.sizes)):
        nodes = [node for node, bag in enumerate(tree.cliques) if column in bag]
        # In one piece: all but the uppermost have the column in what they share with their parent.
        assert sum(column in tree.separator(node) for node in nodes) == len(nodes) - 1
    cells = sum(int(np.prod([model.sizes[column] for column in bag])) for bag in tree.cliques)
    assert cells == junction_cells(model.sizes, model.cliques)


def test_a_ring_needs_one_chord_and_no_more() -> None:
    ring = [(0, 1), (1, 2), (2, 3), (0, 3)]
    assert junction_cells((2, 9, 2, 9), ring) == 2 * 2 * 9 * 2  # The chord joins the two small columns.
    assert junction_cells((5, 7, 2), [(0, 1)]) == 35 + 2


@given(models())
@settings(max_examples=20, deadline=None)
def test_running_backwards_gives_the_derivative_by_every_factor_for_all_models(model: Graphical) -> None:
    factors = [np.exp(table - table.max()) for table in model.potentials]
    log_sum, marginals = FactorNetwork.of(model.sizes, model.cliques).run(factors)
    full = full_table(Graphical(model.sizes, model.cliques, 1.0, model.potentials))
    tops = sum(float(table.max()) for table in model.potentials)
    exponents = sum(wide(t, c, model.sizes) for t, c in zip(model.potentials, model.cliques, strict=True))
    assert log_sum + tops == pytest.approx(np.logaddexp.reduce(np.broadcast_to(exponents, model.sizes).ravel()))
    for clique, marginal in zip(model.cliques, marginals, strict=True):
        assert np.abs(marginal - summed(full, clique)).max() < 1e-12


def test_a_plan_never_makes_a_table_larger_than_it_must() -> None:
    sizes = (50, 60, 70)
    program = plan(sizes, ((0, 1), (1, 2), (0, 2)), frozenset({0, 2}))
    assert [step.scope for step in program.steps] == [(0, 2), (0, 2)]  # A matrix product, then cell by cell.


def test_effects_of_counts_sum_to_zero_along_every_axis_and_add_up_to_them() -> None:
    cliques, full = ((0, 1), (0, 2, 3)), numbers(1).exponential(size=(3, 2, 4, 2))
    cells, effects = Cells.of(full.shape, cliques), Effects.of(full.shape, cliques)
    counts = np.concatenate([summed(full, clique).ravel() for clique in cliques])
    vector = effects.of_counts(counts)
    for effect, span in effects.spans.items():
        table = vector[span].reshape([full.shape[column] for column in effect])
        assert all(np.abs(table.sum(axis=axis)).max() < 1e-12 for axis in range(table.ndim))
    means = cells.spread(full.sum() / np.diff(cells.starts))
    assert np.allclose(effects.shared.times(vector) + means, counts)


def noisy(
    key: int, cliques: Sequence[Clique] = RING, sizes: Sequence[int] = LOOP, deviation: float = 5
) -> list[NoisyMarginal]:
    """Measure a skewed table, so that noise makes counts negative and contradictory."""
    source = numbers(key)
    full = source.exponential(size=sizes) ** 4
    full *= 500 / full.sum()
    counts = [summed(full, clique) for clique in cliques]
    return [
        NoisyMarginal(c, n + source.normal(0, deviation, n.shape), deviation)
        for c, n in zip(cliques, counts, strict=True)
    ]


def loss(full: Floats, measured: Sequence[NoisyMarginal]) -> float:
    apart = [
        (summed(full, one.clique) - one.values.reshape(summed(full, one.clique).shape)) / one.deviation
        for one in measured
    ]
    return sum(float((part**2).sum()) for part in apart) / 2


def lower_bound(full: Floats, measured: Sequence[NoisyMarginal]) -> float:
    """Bound the loss of every table with the same sum from below: by the tangent at one of them, at its lowest."""
    slope = np.zeros(full.shape)
    for one in measured:
        counts = summed(full, one.clique)
        pull = (counts - one.values.reshape(counts.shape)) / np.asarray(one.deviation) ** 2
        slope = slope + wide(pull, one.clique, full.shape)
    return loss(full, measured) + float(full.sum() * slope.min() - (full * slope).sum())


@pytest.mark.parametrize("key", [2, 3])
def test_the_fit_is_the_best_of_all_tables(key: int) -> None:
    measured = noisy(key)
    full = full_table(fit(LOOP, measured, steps=30, iterations=900, tolerance=1e-12))
    assert loss(full, measured) <= lower_bound(full, measured) + 1e-3
    rough = full_table(fit(LOOP, measured))
    assert loss(rough, measured) <= loss(full, measured) * 1.005


def test_the_bound_tells_a_worse_table() -> None:
    measured = noisy(0)
    full = np.full(LOOP, 500 / np.prod(LOOP))
    assert loss(full, measured) > lower_bound(full, measured) + 100


def test_what_is_not_measured_has_the_largest_entropy() -> None:
    model = fit(
        (3, 4), [NoisyMarginal((0,), np.array([1.0, 2, 3]), 0.01), NoisyMarginal((1,), np.array([0.0, 2, 2, 2]), 0.01)]
    )
    assert np.allclose(model.marginal((0, 1)), np.outer([1, 2, 3], [0, 2, 2, 2]) / 6, atol=0.02)


def test_what_is_measured_twice_is_weighted_by_its_precision() -> None:
    twice = [NoisyMarginal((0,), np.array([30.0, 70]), 1), NoisyMarginal((0,), np.array([40.0, 60]), 2)]
    assert fit((2,), twice).marginal((0,)) == pytest.approx([32, 68], abs=1e-3)


def test_one_column_may_have_a_deviation_for_each_cell() -> None:
    column = NoisyMarginal((0,), np.array([10.0, 20, 70]), np.array([1.0, 3, 10]))
    pairs = NoisyMarginal((1, 0), np.array([[8.0, 12, 30], [8, 9, 33]]), 2.0)
    model = fit((3, 2), [column, pairs], steps=30, iterations=900, tolerance=1e-12, total=100)
    full = full_table(model)
    assert loss(full, [column, pairs]) <= lower_bound(full, [column, pairs]) + 1e-3
    assert fit((3,), [column]).total == pytest.approx(100)


def test_a_fit_goes_on_from_an_earlier_one() -> None:
    measured = noisy(3)
    earlier = fit(LOOP, measured[:4], iterations=500)
    begun = full_table(fit(LOOP, measured, start=earlier, iterations=1))
    assert loss(begun, measured) < loss(full_table(fit(LOOP, measured, iterations=1)), measured)
    again, first = fit(LOOP, measured, start=earlier, steps=1), fit(LOOP, measured, steps=1)
    assert np.abs(full_table(again) - full_table(first)).max() < 0.5  # Of 500 rows: where it began is forgotten.
    ended = full_table(fit(LOOP, measured, start=earlier, steps=30, iterations=900, tolerance=1e-12))
    assert loss(ended, measured) <= lower_bound(ended, measured) + 1e-3


def test_impossible_cells_stay_empty_and_the_rest_fits() -> None:
    measured = noisy(2)
    group = np.array([0, 0, 1])  # Column 3 is a coarse copy of column 0.
    copy = group[:, None] != np.arange(2)
    corner = np.zeros((4, 2), dtype=bool)
    corner[1:, 1] = True
    model = fit(LOOP, measured, impossible=[((0, 3), copy), ((2, 1), corner)])
    full = full_table(model)
    assert (summed(full, (0, 3))[copy] == 0).all()
    assert (summed(full, (2, 1))[corner] == 0).all()
    assert full.sum() == pytest.approx(model.total)
    codes = model.sample(400)
    assert not copy[codes[:, 0], codes[:, 3]].any()
    assert not corner[codes[:, 2], codes[:, 1]].any()
    with pytest.raises(InvalidParameter, match="no row is possible"):
        fit((2, 2), [], impossible=[((0, 1), np.ones((2, 2), dtype=bool))])


@pytest.mark.parametrize("level", [-1e6, 0.0, 1e-9, 1e9])
@pytest.mark.parametrize("deviation", [1e-6, 1.0, 1e7])
def test_nothing_measured_makes_a_number_that_is_none(level: float, deviation: float) -> None:
    measured = [NoisyMarginal(c, np.full([LOOP[i] for i in c], level), deviation) for c in RING]
    measured += noisy(5, deviation=deviation)
    model = fit(LOOP, measured, iterations=60)
    assert model.total >= 1
    tables = model.marginals([*RING, (1, 3), (4, 0)])
    assert all(np.isfinite(table).all() and (table >= 0).all() for table in tables)
    assert all(table.sum() == pytest.approx(model.total) for table in tables)
    assert model.sample(7).shape == (7, 5)


def test_counts_of_a_sample_are_the_expected_ones_rounded() -> None:
    model = fit(LOOP, noisy(4))
    codes = model.sample(5000)
    for node, bag in enumerate(junction_tree(LOOP, model.cliques).cliques):
        counts = np.zeros([LOOP[column] for column in bag])
        np.add.at(counts, tuple(codes[:, column] for column in bag), 1)
        expected = model.marginal(bag) * (5000 / model.total)
        # One rounding for the root, and one more for each group of rows below it.
        assert np.abs(counts - expected).max() < 1 + node * 2
    assert codes.dtype == np.int32


@given(st.integers(0, 1 << 30), st.integers(0, 10**6))
@settings(max_examples=20, deadline=None)
def test_rounding_keeps_sums_and_moves_nothing_by_one_for_all_weights(key: int, total: int) -> None:
    weights = numbers(key).exponential(size=(3, 11)) ** 6
    whole = rounded(weights, np.array([total, 0, 1]))
    assert whole.sum(axis=1).tolist() == [total, 0, 1]
    expected = weights / weights.sum(axis=1, keepdims=True) * [[total], [0], [1]]
    assert (whole >= 0).all()
    assert np.abs(whole - expected).max() < 1 + 1e-6


@pytest.mark.statistical
def test_rounding_follows_the_expected_counts() -> None:
    weights = np.tile([0.5, 0.2, 0.3], (40_000, 1))
    means = rounded(weights, np.ones(40_000, dtype=np.int64)).mean(axis=0)
    # Each is a mean of 40,000 coins: seven deviations of at most 0.0025.
    assert np.abs(means - weights[0]).max() < 0.0175
    assert np.abs(means - [0.46, 0.24, 0.3]).max() > 0.0175


@pytest.mark.parametrize(
    "wrong",
    [
        NoisyMarginal((), np.zeros(1), 1),
        NoisyMarginal((0, 0), np.zeros(9), 1),
        NoisyMarginal((9,), np.zeros(3), 1),
        NoisyMarginal((0,), np.zeros(2), 1),
        NoisyMarginal((0,), np.array([1, 2, np.nan]), 1),
        NoisyMarginal((0,), np.zeros(3), 0),
        NoisyMarginal((0,), np.zeros(3), np.array([1.0, 2])),
        NoisyMarginal((0, 1), np.zeros(6), np.arange(1.0, 7)),
    ],
)
def test_a_measurement_that_makes_no_sense_is_refused(wrong: NoisyMarginal) -> None:
    with pytest.raises(InvalidParameter):
        fit(LOOP, [wrong])


def test_a_model_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="all of its columns"):
        Graphical((2, 3), ((0,),), 1.0, (np.zeros(2),))
    with pytest.raises(InvalidParameter, match="rising columns"):
        Graphical((2, 3), ((1, 0),), 1.0, (np.zeros((3, 2)),))
    with pytest.raises(InvalidParameter, match="finite"):
        Graphical((2,), ((0,),), 1.0, (np.array([0, -np.inf]),))
    with pytest.raises(InvalidParameter, match="different columns"):
        Graphical((2,), ((0,),), 1.0, (np.zeros(2),)).marginal((0, 0))
    with pytest.raises(InvalidParameter, match="not there"):
        junction_cells((2, 2), [(0, 5)])
