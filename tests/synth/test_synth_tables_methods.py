"""Learning tables by marginals: what comes out is declared, possible, paid for and close to what went in."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import privacy
from discreet.errors import InvalidParameter
from discreet.privacy import Relation
from discreet.synth.domain.category import Category
from discreet.synth.domain.coding import Coder
from discreet.synth.domain.domain import Domain
from discreet.synth.domain.numeric import Numeric
from discreet.synth.fitted_models import are_impossible
from discreet.synth.gaussian_prices import mu_squared_for
from discreet.synth.method import Terms
from discreet.synth.tables.aim import AIM
from discreet.synth.tables.mst import MST, Independent
from discreet.synth.tables.private_table import MarginalSensitivity, PrivateTable, RoundAccount
from discreet.synth.tables.table_model import Grouping, TableModel, group_cells, likely_counts, spread_evenly
from discreet.synth.tables.table_shape import TableShape, check_rules, marginal, marginal_cliques, marginal_distances

AR, RO = Relation.ADD_REMOVE, Relation.REPLACE_ONE
ALONE = MarginalSensitivity(AR)
LIMITS = [mu_squared_for(Fraction(epsilon), Fraction(1, 10**6)) for epsilon in (1, 10, 50)]
METHODS = [Independent(), MST(), AIM()]
DOMAIN = Domain(
    {
        "colour": Category(["red", "green", "blue"], null=True),
        "size": Numeric(0, 9, whole=True, bins=10),
        "sold": Category([True, False]),
        "price": Numeric(0, 1, bins=4, null=True),
    },
    impossible=[{"colour": "red", "sold": False}],
)


def rows_of(count: int, seed: int = 3) -> dict[str, list[Any]]:
    """A table in which columns depend on each other, and nothing is beyond the declaration."""
    draw = np.random.default_rng(seed)
    colour = draw.choice(3, count, p=[0.5, 0.3, 0.2])
    sold = (colour == 0) | (draw.random(count) < 0.3)
    size = np.clip(3 * colour + draw.integers(0, 4, count), 0, 9)
    price = np.where(draw.random(count) < 0.1, np.nan, np.clip(size / 10 + 0.05 * draw.random(count), 0, 1))
    return {
        "colour": [("red", "green", "blue")[code] for code in colour],
        "size": size.tolist(),
        "sold": sold.tolist(),
        "price": price.tolist(),
    }


def learned(
    method: Any, codes: np.ndarray, domain: Domain, limit: Fraction, reach: MarginalSensitivity = ALONE
) -> TableModel:
    account = RoundAccount(limit)
    table = PrivateTable(codes, domain.sizes, reach, account)
    learnt = method.learn(table, TableShape.of(domain), lambda step: None)
    assert account.spent <= account.limit
    assert account.spent >= account.limit * Fraction(999, 1000)
    return TableModel(domain, *learnt)


def terms(**changed: Any) -> Terms[Domain]:
    asked = {"domain": DOMAIN, "epsilon": Fraction(1), "delta": Fraction(1, 10**9), "relation": AR} | changed
    return Terms(**asked)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_samples_hold_declared_and_possible_values_only(method):
    """A canary that nobody declared, in every row, leaves no trace in the model or in a sample."""
    table = rows_of(400)
    table["colour"] = ["canary"] * 400
    model = learned(method, Coder(DOMAIN).codes(table), DOMAIN, Fraction(10))
    drawn = model.sample(300)
    seen = {
        name: column.values[~column.missing] if column.missing is not None else column.values
        for name, column in drawn.items()
    }
    assert set(seen["colour"]) <= {"red", "green", "blue"}
    assert set(seen["size"].tolist()) <= set(range(10))
    assert ((seen["price"] >= 0) & (seen["price"] <= 1)).all()
    facts, arrays = model.document()
    assert "canary" not in repr(facts) + repr(arrays) + repr(model)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_impossible_rows_are_never_drawn_whatever_the_noise(method):
    codes = Coder(DOMAIN).codes(rows_of(200))
    for limit in (Fraction(1, 10), Fraction(100)):
        drawn = learned(method, codes, DOMAIN, limit).codes(500)
        assert not ((drawn[:, 0] == 0) & (drawn[:, 2] == 1)).any()
        assert (drawn >= 0).all()
        assert (drawn < DOMAIN.sizes).all()


@pytest.mark.parametrize(("method", "ways", "most"), [(Independent(), 1, 0.02), (MST(), 1, 0.02), (AIM(), 2, 0.03)])
def test_much_budget_gives_back_the_table(method, ways, most):
    codes = Coder(DOMAIN).codes(rows_of(4000))
    model = learned(method, codes, DOMAIN, Fraction(10**4))
    drawn = model.codes(20_000)
    assert marginal_distances(codes, drawn, DOMAIN.sizes, marginal_cliques(DOMAIN.sizes, ways)).mean < most
    assert abs(model.rows - 4000) < 40


def test_methods_tell_more_the_more_they_look_at():
    codes = Coder(DOMAIN).codes(rows_of(4000))
    pairs = marginal_cliques(DOMAIN.sizes, 2)
    far = [
        marginal_distances(codes, learned(method, codes, DOMAIN, Fraction(10)).codes(10_000), DOMAIN.sizes, pairs).mean
        for method in METHODS
    ]
    assert far[0] > 2 * far[1] > 2 * far[2] * 0.8


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
@pytest.mark.parametrize("count", [0, 1])
def test_tables_of_no_or_one_row_are_learned_alike(method, count):
    model = learned(method, Coder(DOMAIN).codes(rows_of(count)), DOMAIN, Fraction(1, 10), MarginalSensitivity(RO, 2))
    assert model.rows >= 1
    assert model.codes(7).shape == (7, 4)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_nothing_is_spent_on_columns_of_one_cell(method, monkeypatch):
    """They are known without looking: the other columns are measured as if these were not there."""
    spent = []
    measure = PrivateTable.measure
    monkeypatch.setattr(
        PrivateTable, "measure", lambda self, clique, cost: spent.append((clique, cost)) or measure(self, clique, cost)
    )
    codes = np.random.default_rng(4).integers(0, 2, (500, 3)).astype(np.int32)
    wide = np.column_stack([np.zeros(500, np.int32), codes, np.zeros((500, 2), np.int32)])
    first = []
    for table, sizes in ((codes, [2] * 3), (wide, [1, 2, 2, 2, 1, 1])):
        domain = Domain({f"c{place}": Category(list(range(size))) for place, size in enumerate(sizes)})
        spent.clear()
        learned(method, table, domain, Fraction(10))
        assert all(sizes[column] > 1 for clique, _ in spent for column in clique)
        first.append([cost for _, cost in spent[:3]])
    assert first[0] == first[1]


def test_a_table_of_nothing_but_columns_of_one_cell_is_learned():
    domain = Domain({"a": Category(["x"]), "b": Category([1])})
    for method in METHODS:
        model = learned(method, np.zeros((300, 2), np.int32), domain, Fraction(10))
        assert abs(model.rows - 300) < 20
        assert model.codes(3).tolist() == [[0, 0]] * 3


def weakly_told(count: int = 4000) -> tuple[Domain, np.ndarray]:
    """Columns that are strongly tied to each other, and a label that each of them tells a little of."""
    draw = np.random.default_rng(8)
    common = draw.normal(size=count)
    features = np.column_stack([0.8 * common + 0.6 * draw.normal(size=count) for _ in range(5)])
    label = draw.random(count) < 1 / (1 + np.exp(-0.3 * (features - 0.8 * common[:, None]).sum(axis=1)))
    codes = np.column_stack([np.clip(np.floor(features + 3), 0, 5), label]).astype(np.int32)
    domain = Domain({f"x{place}": Numeric(0, 5, whole=True, bins=6) for place in range(5)} | {"y": Category([0, 1])})
    return domain, codes


def with_label(
    method: AIM, limit: Fraction, label: str | None, monkeypatch: Any
) -> tuple[list[Any], Any, RoundAccount]:
    domain, codes = weakly_told()
    spent: list[Any] = []
    measure = PrivateTable.measure
    monkeypatch.setattr(
        PrivateTable, "measure", lambda self, clique, cost: spent.append((clique, cost)) or measure(self, clique, cost)
    )
    account = RoundAccount(limit)
    table = PrivateTable(codes, domain.sizes, ALONE, account)
    learnt = method.learn(table, TableShape.of(domain, label), lambda step: None)
    return spent, TableModel(domain, *learnt), account


def test_a_label_is_counted_with_every_other_column_alike(monkeypatch):
    """Without choosing, so that columns which tell little each are known too; for its share of the budget, and once."""
    limit = Fraction(10)
    spent, model, account = with_label(AIM(), limit, "y", monkeypatch)
    star = spent[6:11]
    assert [clique for clique, _ in star] == [(column, 5) for column in range(5)]
    assert [cost for _, cost in star] == [limit * Fraction(3, 5) / 2 / 5] * 5
    assert account.spent <= limit
    domain, codes = weakly_told()
    drawn = model.codes(20_000)
    assert max(marginal_distances(codes, drawn, domain.sizes, [pair for pair, _ in star]).by_clique.values()) < 0.03
    plain = with_label(AIM(), limit, None, monkeypatch)[0]
    assert all(cost != star[0][1] for _, cost in plain)


@pytest.mark.parametrize(("method", "limit"), [(AIM(), Fraction(1, 5000)), (AIM(ways=1), Fraction(10))])
def test_a_label_costs_nothing_where_noise_would_drown_its_pairs_or_none_is_asked_for(method, limit, monkeypatch):
    spent, _, account = with_label(method, limit, "y", monkeypatch)
    assert all(len(clique) == 1 for clique, _ in spent)
    assert account.limit * Fraction(999, 1000) <= account.spent <= account.limit


def awkward(source: np.random.Generator) -> tuple[Domain, np.ndarray] | None:
    """Few rows, columns of one cell, and rules that name what the first row has; None if they leave nothing."""
    sizes = [3, *source.choice([1, 1, 2, 3, 4], int(source.integers(1, 6))).tolist()]
    count = int(source.choice([1, 5, 30, 100]))
    codes = np.column_stack([np.minimum(source.geometric(0.7, count) - 1, size - 1) for size in sizes])
    rules = [
        {f"c{column}": [int(codes[0, column])] for column in source.permutation(len(sizes))[: source.integers(1, 4)]}
        for _ in range(int(source.integers(0, 4)))
    ]
    try:
        domain = Domain({f"c{place}": Category(list(range(n))) for place, n in enumerate(sizes)}, impossible=rules)
        check_rules(domain)
    except InvalidParameter:
        return None
    return domain, codes.astype(np.int32)


@pytest.mark.long
def test_every_table_that_could_be_paid_for_can_be_sampled_for_all_awkward_tables():
    """Of 500 fits and more none may fail, whatever contradicts what: each would be a charge for nothing."""
    source, fitted = np.random.default_rng(20), 0
    while fitted < 510:
        if (found := awkward(source)) is None:
            continue
        domain, codes = found
        method = METHODS[fitted % 3]
        limit = LIMITS[int(source.integers(0, 3))]
        drawn = Coder(domain).decode(learned(method, codes, domain, limit).codes(30))
        assert not are_impossible(domain, drawn).any()
        fitted += 1


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_one_column_is_enough(method):
    domain = Domain({"sold": Category([True, False])})
    model = learned(method, np.zeros((50, 1), np.int32), domain, Fraction(100))
    assert np.mean(model.codes(1000) == 0) > 0.9


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_price_is_known_before_anything_is_read(method):
    plan = method.plan(terms())
    assert privacy.epsilon(plan.event, Fraction(1, 10**9)) <= 1
    assert method.plan(terms(relation=RO, rows_per_unit=5)).event == plan.event
    assert plan.describe()
    with pytest.raises(InvalidParameter, match="delta"):
        method.plan(terms(delta=Fraction(0)))
    with pytest.raises(InvalidParameter, match="bins"):
        method.plan(terms(domain=Domain({"age": Numeric(0, 99, bins="quantiles")})))


def test_models_are_made_again_from_what_was_saved():
    model = learned(AIM(), Coder(DOMAIN).codes(rows_of(500)), DOMAIN, Fraction(10))
    facts, arrays = model.document()
    again = TableModel.restored(DOMAIN, (facts, arrays))
    assert again.rows == model.rows
    for clique in ((0, 1), (1, 3), (0, 1, 2)):
        assert np.allclose(again.joint.marginal(clique), model.joint.marginal(clique))
    with pytest.raises(InvalidParameter):
        TableModel.restored(Domain({"sold": Category([True, False])}), (facts, arrays))
    with pytest.raises(InvalidParameter):
        TableModel.restored(DOMAIN, (facts, {name: one for name, one in arrays.items() if name != "shares.1"}))


def test_nothing_prints_what_the_door_hides():
    codes = np.full((7, 1), 3, np.int32)
    table = PrivateTable(codes, (5,), MarginalSensitivity(AR), RoundAccount(Fraction(1)))
    assert repr(table) == "PrivateTable of 1 columns"


@given(st.lists(st.floats(-50, 500), min_size=1, max_size=40), st.floats(0, 200), st.booleans(), st.integers(0, 3))
@settings(max_examples=30, deadline=None)
def test_groups_part_the_codes_for_all_noisy_counts(noisy, least, in_order, rule):
    counts = np.array(noisy)
    kinds = np.arange(counts.size) % (rule + 1)
    grouping = group_cells(counts, 1.0, rare=least, most=99, ordered=np.full(counts.size, in_order), kinds=kinds)
    assert set(grouping.groups.tolist()) == set(range(grouping.size))
    assert all(len(set(kinds[grouping.groups == group].tolist())) == 1 for group in range(grouping.size))
    if in_order:
        assert (np.diff(grouping.groups) >= 0).all()
    likely = likely_counts(counts)
    assert (likely >= 0).all()
    assert likely.sum() == pytest.approx(max(counts.sum(), 1))


def test_large_cells_stay_apart_and_rare_ones_do_not():
    plain, one = np.zeros(6, np.bool_), np.zeros(6, np.int64)
    counts = np.array([100.0, 2, 50, 1, 3, 70])
    assert group_cells(counts, 1.0, rare=10, most=9, ordered=plain, kinds=one).groups.tolist() == [0, 3, 1, 3, 3, 2]
    assert group_cells(counts, 1.0, rare=10, most=9, ordered=~plain, kinds=one).groups.tolist() == [0, 1, 2, 3, 3, 4]


def test_rows_are_spread_as_evenly_as_shares_allow():
    drawn = spread_evenly(np.array([0.0, 0.25, 0.75, 0.0]), 10)
    assert np.bincount(drawn, minlength=4).tolist() in ([0, 2, 8, 0], [0, 3, 7, 0])
    with pytest.raises(InvalidParameter):
        Grouping(np.array([0, 2], np.int32), np.array([1.0, 1.0]))


def test_distances_are_half_the_l1_distance_of_shares():
    left, right = np.array([[0, 0], [1, 1]], np.int32), np.array([[0, 0], [0, 1], [1, 1], [1, 1]], np.int32)
    found = marginal_distances(left, right, (2, 2), [(0,), (1,), (0, 1)])
    assert found.by_clique == {(0,): 0.0, (1,): 0.25, (0, 1): 0.25}
    assert found.mean == pytest.approx(1 / 6)
    assert found.worst[1] == 0.25
    assert marginal(left, (2, 2), (0, 1)).tolist() == [1, 0, 0, 1]
    with pytest.raises(InvalidParameter):
        marginal_distances(left, right[:0], (2, 2), [(0,)])
