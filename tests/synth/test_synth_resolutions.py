"""Two resolutions of a pair: empty cells of sparse tables, and ties within groups, from noisy counts and paid for."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from recorded import replayed

from discreet.errors import BudgetExceeded, InvalidParameter, Refused
from discreet.privacy import Relation
from discreet.synth.domain.category import Category
from discreet.synth.domain.coding import Coder
from discreet.synth.domain.domain import Domain
from discreet.synth.domain.numeric import Numeric
from discreet.synth.tables.aim import AIM
from discreet.synth.tables.graphical.effects import NoisyMarginal
from discreet.synth.tables.graphical.entropy_fit import fit
from discreet.synth.tables.graphical.graphical_model import Graphical
from discreet.synth.tables.group_ties import _Pair, _Parts, measure_ties
from discreet.synth.tables.mst import MST
from discreet.synth.tables.normal_scores import NormalScores, Tie, check_ties, in_order_of, score_ends
from discreet.synth.tables.private_table import MarginalSensitivity, PrivateTable, RoundAccount
from discreet.synth.tables.sparse_tables import MeasuredTable, emptied, filled_cells, rows_moved
from discreet.synth.tables.table_model import Grouping, TableModel, TiedRows
from discreet.synth.tables.table_shape import TableShape, marginal_cliques, marginal_distances

ALONE = MarginalSensitivity(Relation.ADD_REMOVE)
NUMBERS = Domain({"wage": Numeric(0, 10), "log": Numeric(-3, 3), "age": Numeric(-4, 4), "k": Category([0, 1])})


def wages(rows: int, seed: int = 1) -> dict[str, Any]:
    """A heavy-tailed column and its logarithm, and others that have a little or nothing to do with them."""
    draw = np.random.default_rng(seed)
    log = 0.6 * draw.normal(size=rows)
    return {"wage": np.exp(log), "log": log, "age": draw.normal(size=rows), "k": (log > 0).astype(int)}


def model_of(method: Any, table: dict[str, Any], limit: Fraction, domain: Domain = NUMBERS) -> TableModel:
    private = PrivateTable(Coder(domain).codes(table), domain.sizes, ALONE, RoundAccount(limit))
    learnt = method.learn(private, TableShape.of(domain), lambda step: None)
    assert limit * Fraction(999, 1000) <= private.account.spent <= limit
    return TableModel(domain, *learnt)


def correlation(table: Any) -> float:
    pair = [np.asarray(getattr(table[name], "values", table[name]), float) for name in ("wage", "log")]
    return float(np.corrcoef(pair)[0, 1])


@pytest.mark.parametrize("method", [AIM(), MST()], ids=lambda method: method.name)
def test_a_heavy_tail_and_its_logarithm_stay_together(method):
    """Six fits of 3,000 rows at about epsilon 3; with one resolution and all cells kept, means were 0.75 and 0.78."""
    tables = [wages(3000, seed) for seed in range(6)]
    with replayed("a heavy tail and its logarithm"):
        models = [model_of(method, table, Fraction(2, 5)) for table in tables]
        found = [correlation(model.sample(3000)) for model in models]
    assert np.mean([correlation(table) for table in tables]) == pytest.approx(0.91, abs=0.01)
    assert np.mean(found) > 0.82
    assert sum({0, 1} <= {tie.left for tie in model.ties} | {tie.right for tie in model.ties} for model in models) >= 3


@pytest.mark.parametrize("method", [AIM(), MST()], ids=lambda method: method.name)
def test_columns_that_have_nothing_to_do_with_each_other_are_not_tied(method):
    table = {name: np.random.default_rng(place).normal(size=3000) for place, name in enumerate(("a", "b", "c"))}
    domain = Domain({name: Numeric(-4, 4) for name in table})
    assert model_of(method, table, Fraction(1), domain).ties == ()


def test_blocks_without_a_link_inside_them_are_not_tied():
    """Both columns are low or both are high, and nothing more: a strong correlation of groups, and none within them."""
    draw = np.random.default_rng(4)
    side = draw.integers(0, 2, 20_000)
    table = {name: 5 * side + 5 * draw.random(20_000) for name in ("a", "b")}
    domain = Domain({name: Numeric(0, 10, bins=32) for name in table})
    codes = Coder(domain).codes(table)
    halves = Grouping(np.repeat([0, 1], 16).astype(np.int32), np.full(32, 1 / 16))
    whole = fit((2, 2), [NoisyMarginal((0, 1), np.bincount(3 * side, minlength=4).astype(float), 1.0)])
    private = PrivateTable(codes, domain.sizes, ALONE, RoundAccount(Fraction(1)))
    ties = measure_ties(private, TableShape.of(domain), (halves, halves), whole, Fraction(1))
    assert all(abs(tie.strength) < 0.5 for tie in ties)
    linked = np.column_stack([codes[:, 0], codes[:, 0]])
    private = PrivateTable(linked, domain.sizes, ALONE, RoundAccount(Fraction(1)))
    ties = measure_ties(private, TableShape.of(domain), (halves, halves), whole, Fraction(1))
    assert [tie.strength > 0.9 for tie in ties] == [True]


def test_ties_are_charged_before_they_are_read(monkeypatch):
    halves = Grouping(np.array([0, 0, 1, 1], np.int32), np.full(4, 0.5))
    domain = Domain({name: Numeric(0, 3, whole=True, bins=4) for name in "ab"})
    codes = np.repeat(np.arange(4, dtype=np.int32), 500)[:, None].repeat(2, axis=1)
    private = PrivateTable(codes, domain.sizes, ALONE, RoundAccount(Fraction(1)))
    model = fit((2, 2), [NoisyMarginal((0, 1), np.array([1000.0, 0.0, 0.0, 1000.0]), 1.0)])
    shape = TableShape.of(domain)
    assert measure_ties(private, shape, (halves, halves), model, Fraction(1, 4))
    assert private.account.spent == Fraction(1, 4)
    monkeypatch.setattr(PrivateTable, "_counts", lambda self, clique: pytest.fail("read"))
    with pytest.raises(BudgetExceeded):
        measure_ties(private, shape, (halves, halves), model, Fraction(1))


def test_pairs_of_very_many_groups_are_left_as_they_are(monkeypatch):
    """Their normal law would take more memory than a machine has, after the fit is paid: nothing is spent on them."""
    monkeypatch.setattr("discreet.synth.tables.group_ties._MOST_CELLS", 3)
    halves = Grouping(np.array([0, 0, 1, 1], np.int32), np.full(4, 0.5))
    domain = Domain({name: Numeric(0, 3, whole=True, bins=4) for name in "ab"})
    codes = np.repeat(np.arange(4, dtype=np.int32), 500)[:, None].repeat(2, axis=1)
    private = PrivateTable(codes, domain.sizes, ALONE, RoundAccount(Fraction(1)))
    model = fit((2, 2), [NoisyMarginal((0, 1), np.array([1000.0, 0.0, 0.0, 1000.0]), 1.0)])
    assert measure_ties(private, TableShape.of(domain), (halves, halves), model, Fraction(1, 4)) == ()
    assert private.account.spent == 0


def test_nothing_is_spent_where_noise_would_hide_every_tie():
    halves = Grouping(np.array([0, 0, 1, 1], np.int32), np.full(4, 0.5))
    domain = Domain({name: Numeric(0, 3, whole=True, bins=4) for name in "ab"})
    private = PrivateTable(np.zeros((9, 2), np.int32), domain.sizes, ALONE, RoundAccount(Fraction(1)))
    model = fit((2, 2), [NoisyMarginal((0, 1), np.array([5.0, 0.0, 0.0, 4.0]), 1.0)])
    assert measure_ties(private, TableShape.of(domain), (halves, halves), model, Fraction(1, 100)) == ()
    assert private.account.spent == 0


def test_ties_keep_all_counts_of_groups_and_of_columns():
    """Only who has which value of its group changes."""
    with replayed("wages"):
        model = model_of(AIM(), wages(3000), Fraction(2, 5))
    untied = TableModel(NUMBERS, model.groupings, model.joint)
    codes = [one.codes(5000) for one in (model, untied)]
    assert marginal_distances(*codes, NUMBERS.sizes, marginal_cliques(NUMBERS.sizes, 1)).worst[1] < 0.02
    assert np.corrcoef(codes[0][:, 0], codes[0][:, 1])[0, 1] > np.corrcoef(codes[1][:, 0], codes[1][:, 1])[0, 1]
    groups = np.random.default_rng(3).integers(0, 4, 500)
    values = 10 * groups + np.random.default_rng(4).integers(0, 10, 500)
    dealt = in_order_of(np.random.default_rng(5).normal(size=500), groups.astype(np.int32), values.astype(np.int32))
    assert (dealt // 10 == groups).all()
    assert sorted(dealt.tolist()) == sorted(values.tolist())


def test_scores_follow_the_normal_law_of_their_ties():
    """A chain of three columns whose groups lie anywhere: neighbours as tied, the ends by the product."""
    anywhere = np.array([[-5.0, 5.0]])
    ties = (Tie(0, 1, 0.8), Tie(1, 2, -0.6))
    drawn = NormalScores(dict.fromkeys((0, 1, 2), anywhere), ties).draw(np.zeros((40_000, 3), np.int32))
    seen = np.corrcoef([drawn[place] for place in (0, 1, 2)])
    wanted = np.array([[1, 0.8, -0.48], [0.8, 1, -0.6], [-0.48, -0.6, 1]])
    assert np.abs(seen - wanted).max() < 0.04
    assert all(abs(float(own.std()) - 1) < 0.04 for own in drawn.values())


@pytest.mark.parametrize("strength", [-0.8, 0.0, 0.6, 0.95])
def test_scores_within_groups_agree_with_the_counts_that_are_expected(strength):
    grouping = Grouping(np.repeat([0, 1, 2], 10).astype(np.int32), np.full(30, 0.1))
    counts = np.array([[4000.0, 3000.0, 1000.0], [500.0, 9000.0, 500.0], [2000.0, 1000.0, 9000.0]])
    parts = [_Parts.of(grouping, np.ones(30, np.bool_), counts.sum(axis=axis)) for axis in (1, 0)]
    expected = _Pair((0, 1), (parts[0], parts[1]), counts).expected(strength)
    groups = np.repeat(np.indices((3, 3)).reshape(2, -1).T, counts.ravel().astype(int), axis=0).astype(np.int32)
    ends = {axis: score_ends(counts.sum(axis=1 - axis), np.ones(3, np.bool_)) for axis in (0, 1)}
    scores = NormalScores(ends, (Tie(0, 1, strength),)).draw(groups)
    from scipy.special import ndtri

    cuts = [ndtri(part.ends[:, 0, 1]) for part in parts]
    upper = [scores[axis] > cuts[axis][groups[:, axis]] for axis in (0, 1)]
    seen = np.zeros(expected.shape)
    np.add.at(seen, (groups[:, 0], upper[0].astype(int), groups[:, 1], upper[1].astype(int)), 1)
    assert np.abs(seen - expected).sum() < 0.06 * counts.sum()


def test_values_are_dealt_within_groups_in_the_order_of_scores():
    dealt = in_order_of(np.array([3.0, 1.0, 2.0, 5.0, 4.0]), np.array([0, 0, 0, 1, 1]), np.array([7, 8, 9, 1, 2]))
    assert dealt.tolist() == [9, 7, 8, 2, 1]


@pytest.mark.parametrize(
    "ties",
    [
        (Tie(0, 5, 0.5),),
        (Tie(0, 1, 1.0),),
        (Tie(0, 1, float("nan")),),
        (Tie(0, 1, 0.5), Tie(1, 2, 0.5), Tie(2, 0, 0.5)),
    ],
)
def test_ties_that_are_no_forest_of_numbers_are_refused(ties):
    with pytest.raises(InvalidParameter):
        check_ties(ties, (0, 1, 2))


def test_a_model_with_ties_is_restored_and_asked_for_some_rows_alone():
    with replayed("wages"):
        model = model_of(AIM(), wages(3000), Fraction(2, 5))
    again = TableModel.restored(NUMBERS, model.document())
    assert again.ties == model.ties != ()
    some = again.given({"wage": (1.5, 3), "k": 1})
    assert isinstance(some, TiedRows)
    drawn = some.sample(2000)
    assert 1.49 <= drawn["wage"].values.min() <= drawn["wage"].values.max() <= 3.01
    assert set(drawn["k"].values.tolist()) == {1}
    every = model.sample(40_000)
    asked = (every["wage"].values >= 1.5) & (every["wage"].values <= 3) & (every["k"].values == 1)
    assert abs(drawn["log"].values.mean() - every["log"].values[asked].mean()) < 0.1
    assert some.document()[1]["ties"].tolist() == model.document()[1]["ties"].tolist()


def small_model(*ties: Tie) -> TableModel:
    """Two numbers in one group of two bins each, of which the second bin holds a row in a billion."""
    halves = Grouping(np.zeros(2, np.int32), np.array([1 - 1e-9, 1e-9]))
    domain = Domain({name: Numeric(0, 1, whole=True, bins=2) for name in "ab"})
    return TableModel(domain, (halves, halves), fit((1, 1), [NoisyMarginal((0, 1), np.array([9.0]), 1.0)]), ties)


def test_more_ties_than_a_forest_has_are_refused_before_they_are_listed():
    """A file of a gibibyte would be many times as large as a list of ties; this array takes a few bytes."""
    facts, arrays = small_model(Tie(0, 1, 0.5)).document()
    for listed in (np.zeros(3), np.full((1, 3), np.nan), np.broadcast_to(arrays["ties"], (1 << 40, 3))):
        with pytest.raises(InvalidParameter, match="must be a forest"):
            TableModel.restored(small_model().domain, (facts, arrays | {"ties": listed}))
    del arrays["ties"]  # As files were before there were ties.
    assert TableModel.restored(small_model().domain, (facts, arrays)).ties == ()


def test_many_rows_of_a_model_with_ties_are_drawn_and_rare_ones_not_for_ever(monkeypatch):
    """However many rows are asked for, the last batch is no limit; and a model is not said to exclude what is rare."""
    monkeypatch.setattr("discreet.synth.tables.table_model._FEWEST", 8)
    monkeypatch.setattr("discreet.synth.tables.table_model._MOST", 8)
    model = small_model(Tie(0, 1, 0.5))
    assert len(model.given({"a": 0}).sample(1000)["a"].values) == 1000
    with pytest.raises(Refused, match="hardly any row that the model draws"):
        model.given({"a": 1}).sample(2)


# --- sparse tables ---


def test_rows_moved_are_those_of_many_draws():
    """Rows of cells that are taken for empty, and noise above the level: the mean of the estimate is that of both."""
    draw = np.random.default_rng(7)
    truth = np.concatenate([np.zeros(300), np.array([1.0, 2.0, 12.0, 40.0])])
    for level in (0.0, 1.0, 3.0):
        noisy = truth + 2.0 * draw.normal(size=(2000, truth.size))
        low = noisy <= 2.0 * level
        lost = (truth * low).sum(axis=1).mean() if level else 0.0
        added = (noisy * (~low & (truth == 0))).sum(axis=1).mean()
        told = np.mean([rows_moved(one, 2.0, level) for one in noisy])
        assert told == pytest.approx(lost + added, rel=0.1, abs=12)  # Held rows are not below none.


def test_cells_of_few_rows_each_are_not_taken_for_empty():
    """Many small counts below the noise: in squared error zero would be near, but a tenth of the rows would be gone."""
    draw = np.random.default_rng(6)
    truth = np.concatenate([np.full(290, 8.0), np.full(34, 600.0)])
    for _ in range(20):
        assert filled_cells(NoisyMarginal((0, 1), truth + 10.0 * draw.normal(size=324), 10.0)) is None


def test_empty_cells_are_found_where_there_are_many_and_never_where_all_are_filled():
    sparse = np.diag(np.full(18, 500.0)).ravel()
    dense = np.full(324, 60.0)
    draw = np.random.default_rng(8)
    for _ in range(20):
        noise = 20.0 * draw.normal(size=324)
        found = filled_cells(NoisyMarginal((0, 1), sparse + noise, 20.0))
        assert found is not None
        assert found[sparse > 0].all()
        assert found.sum() < 60
        assert filled_cells(NoisyMarginal((0, 1), dense + noise, 20.0)) is None
    assert MeasuredTable.of(NoisyMarginal((0,), sparse, 20.0)).filled is None


def test_rare_values_of_numbers_lie_beside_their_neighbours():
    """The last value of the first column has no filled cell; a value without a place stays as it was."""
    filled = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]], np.bool_)
    counts = NoisyMarginal((0, 1), filled.astype(float).ravel(), 1.0)
    everywhere = np.ones(4, np.bool_)
    grown = MeasuredTable(counts, filled.ravel()).with_rare_values((everywhere, everywhere)).filled
    assert grown is not None
    assert grown.reshape(4, 4).tolist() == [[1, 0, 0, 0], [0, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]]
    nowhere = np.zeros(4, np.bool_)
    same = MeasuredTable(counts, filled.ravel()).with_rare_values((nowhere, nowhere)).filled
    assert same is not None
    assert (same == filled.ravel()).all()


def test_emptied_cells_keep_the_sums_of_the_columns():
    model = fit((3, 3), [NoisyMarginal((0, 1), np.array([90.0, 2, 1, 2, 80, 3, 1, 2, 70]), 1.0)])
    table = MeasuredTable(NoisyMarginal((0, 1), np.zeros(9), 1.0), np.eye(3, dtype=bool).ravel())
    less = emptied(model, [table])
    assert less.marginal((0, 1))[~np.eye(3, dtype=bool)].sum() < 2
    for column in (0, 1):
        assert less.marginal((column,)) == pytest.approx(model.marginal((column,)), rel=0.03)
    assert emptied(model, []) is model


def test_filled_cells_have_the_sums_of_the_columns():
    model = Graphical((2, 3), ((0,), (1,)), 60.0, (np.log([1.0, 2.0]), np.log([3.0, 2.0, 1.0])))
    counts = NoisyMarginal((0, 1), np.array([19.0, 1.0, 0.5, 12.0, 18.0, 9.0]), 1.0)
    one = MeasuredTable(counts, counts.values > 2).beside(model)
    held = one.values.reshape(2, 3)
    assert held.sum(axis=1) == pytest.approx([20, 40], rel=1e-2)
    assert held.sum(axis=0) == pytest.approx([30, 20, 10], rel=1e-2)
    assert held[0, 1:].max() < 0.1
    assert MeasuredTable(counts).beside(model) is counts


def test_rows_are_not_scattered_over_empty_cells():
    """Noise of a tenth of the rows on a table of which one cell in eighteen is filled."""
    truth = np.diag(np.full(18, 500.0)).ravel()
    draw = np.random.default_rng(9)
    noisy = NoisyMarginal((0, 1), truth + 35.0 * draw.normal(size=324), 35.0)
    columns = [NoisyMarginal((place,), np.full(18, 500.0) + 20 * draw.normal(size=18), 20.0) for place in (0, 1)]
    start = fit((18, 18), columns)
    kept = fit((18, 18), [*columns, noisy]).marginal((0, 1)).ravel()
    thinned = fit((18, 18), [*columns, MeasuredTable.of(noisy).beside(start)]).marginal((0, 1)).ravel()
    scattered = [float(one[truth == 0].sum()) / 9000 for one in (kept, thinned)]
    assert scattered[0] > 0.06
    assert scattered[1] < 0.03
