"""Cells that nobody declared: found within their price, by few rows of nobody in particular."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, product
from math import log
from typing import Any, TypeAlias

import numpy as np
import pytest
from synth_toys import CANARY, Columns, Purse

import discreet as dp
from discreet.adaptive.truncated_histogram import TruncatedHistogram
from discreet.balls import ball, bounds
from discreet.frames.column import Column
from discreet.lab import verify
from discreet.mechanisms.grid import Grid
from discreet.mechanisms.quantile import Quantile
from discreet.privacy import GDP, ApproxDP, Composed, Relation, epsilon, gdp_mu, outcomes
from discreet.synth import Category, Domain, Numeric
from discreet.synth.domain.coding import CellSearch, Coder, QuantileBins, TableRows
from discreet.synth.domain.source_tables import table_of
from discreet.synth.method import Terms
from discreet.synth.tables.mst import MST

Law: TypeAlias = dict[frozenset[int], float]
OPEN = Domain({"n": Numeric(0, 1000, bins="quantiles", null=True), "c": Category.unlisted(most=3, null=True)})
LAST, LEVELS = 5, 2  # of a small grid, and of halves of halves of it


@cache
def law(values: tuple[int, ...], choice: Fraction, first: int = 0, last: int = LAST, levels: int = LEVELS) -> Law:
    """The chance of every set of edges, by listing."""
    if not levels or first == last:
        return {frozenset(): 1.0}
    places = Grid(low=Fraction(first), high=Fraction(last), step=Fraction(1), default=Fraction(first))
    median = Quantile(quantile=Fraction(1, 2), epsilon=choice, grid=places, relation=Relation.ADD_REMOVE)
    found: Law = {}
    for point, chance in median.distribution(np.array(values, dtype=np.int64)).masses.items():
        middle = max(first + 1, point)
        left = law(tuple(value for value in values if value < middle), choice, first, middle - 1, levels - 1)
        right = law(tuple(value for value in values if value >= middle), choice, middle, last, levels - 1)
        for (one, p), (other, q) in product(left.items(), right.items()):
            edges = one | other | {middle}
            found[edges] = found.get(edges, 0.0) + float(chance.mid()) * p * q
    return found


def neighbours(relation: Relation) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    points = range(LAST + 1)
    for rows in (rows for size in range(3) for rows in combinations_with_replacement(points, size)):
        if relation is Relation.ADD_REMOVE:
            yield from ((rows, tuple(sorted((*rows, more)))) for more in points)
        else:
            yield from (
                (tuple(sorted((*rows, one))), tuple(sorted((*rows, two)))) for one, two in product(points, points)
            )


def worst(relation: Relation, choice: Fraction) -> float:
    def apart(one: Law, other: Law) -> float:
        return max(abs(log(one[edges] / other[edges])) for edges in one)

    return max(apart(law(one, choice), law(other, choice)) for one, other in neighbours(relation))


@pytest.mark.parametrize("relation", Relation)
def test_the_price_of_bins_dominates_brute_force(relation: Relation) -> None:
    bins = QuantileBins(column=Numeric(0, LAST, whole=True, bins="quantiles"), epsilon=Fraction(2), relation=relation)
    assert epsilon(bins.event, 0) == 2
    paid = 2 * LEVELS / bins.levels
    assert worst(relation, bins.choice) <= paid
    # Two levels that are paid for as one, and a row that changes as one that comes, would break it.
    wrong = 2 if relation is Relation.ADD_REMOVE else 4
    assert worst(relation, wrong * bins.choice) > paid


def test_bins_have_about_equal_counts_and_end_in_no_error() -> None:
    column = Numeric(0, 1000, bins="quantiles")
    rows = np.arange(20_000) / 200.0  # A tenth of the bounds.
    bins = QuantileBins(column=column, epsilon=Fraction(5), relation=Relation.ADD_REMOVE)
    counts = np.bincount(column.with_edges(bins.edges(Column(rows))).codes(Column(rows)), minlength=16)
    assert counts.min() > 700
    assert counts.max() < 1800
    for nothing in ([], ["x", None], [float("inf")] * 3):
        assert all(0 < edge <= 1000 for edge in bins.edges(Column(nothing)))


def found(table: dict[str, list[Any]], **more: Any) -> Domain:
    finding = CellSearch(domain=OPEN, epsilon=Fraction(2), delta=Fraction(1, 10**9), relation=Relation.ADD_REMOVE)
    return finding.settled(TableRows(Coder(OPEN), table_of(table), **more))


def test_a_value_that_one_row_has_is_not_found_and_frequent_ones_are() -> None:
    table = {"n": list(range(1000)), "c": ["a", "b", "b", 7, 7.0, "7", "c", "c", "c", None] * 100}
    table["c"][0] = CANARY
    domain = found(table)
    assert domain.columns["c"] == Category(["7", "b", "c"], other=True, null=True)
    assert domain.is_settled
    assert CANARY not in repr(domain)


def test_one_row_of_each_unit_is_looked_at() -> None:
    table = {"n": [1] * 900, "c": ["a"] * 900, "who": [1] * 900}
    assert found(table, unit="who").columns["c"] == Category([], other=True, null=True)
    assert found(table).columns["c"] == Category(["a"], other=True, null=True)


def test_a_unit_of_many_rows_counts_once_for_what_is_found_however_many_are_fitted() -> None:
    table = {"n": [1] * 900, "c": ["a"] * 900, "who": [1] * 900}
    many: dict[str, Any] = {"unit": "who", "rows_per_unit": 900}
    model = dp.synth.plan(table, Columns(), domain=OPEN, epsilon=4, delta=1e-9, **many).fit(progress=False)
    assert model.domain.columns["c"] == Category([], other=True, null=True)


def test_finding_and_fitting_divide_epsilon_and_delta(monkeypatch: pytest.MonkeyPatch) -> None:
    """A noise for the whole delta in each of them would spend more than is charged."""
    spent: list[ApproxDP] = []
    settled, planned = CellSearch.settled, Columns.plan

    def find(finding: CellSearch, rows: TableRows) -> Domain:
        spent.append(finding.event)
        return settled(finding, rows)

    def plan(method: Columns, terms: Terms[Domain]) -> Any:
        spent.append(ApproxDP(terms.epsilon, terms.delta))
        return planned(method, terms)

    chosen = dp.synth.plan({"n": [1] * 50, "c": ["a"] * 50}, Columns(), domain=OPEN, epsilon=4, delta=1e-6)
    monkeypatch.setattr(CellSearch, "settled", find)
    monkeypatch.setattr(Columns, "plan", plan)
    chosen.fit(progress=False)
    assert len(spent) == 2
    assert sum(one.epsilon for one in spent) == 4
    assert sum(one.delta for one in spent) == Fraction(1, 10**6)


def test_finding_and_fitting_are_one_charge_within_what_was_asked_for() -> None:
    purse = Purse()
    table = {"n": [float(place) for place in range(500)], "c": ["a"] * 499 + [CANARY]}
    planned = dp.synth.plan(table, Columns(), domain=OPEN, epsilon=4, delta=1e-6, session=purse)
    model = planned.fit(progress=False)
    assert [charge[0] for charge in purse.charges] == [ApproxDP(4, "1e-6")]
    assert model.domain.is_settled
    assert set(model.sample(300)["c"]) <= {"a", "other", None}
    assert isinstance(model.domain.columns["n"].bins, tuple)  # type: ignore[union-attr]


def test_what_is_open_cannot_be_counted_and_rules_need_cells() -> None:
    with pytest.raises(dp.InvalidParameter, match="not found yet"):
        _ = OPEN.sizes
    with pytest.raises(dp.InvalidParameter, match="listed"):
        Domain(OPEN.columns, impossible=[{"c": "a"}])
    with pytest.raises(dp.InvalidParameter, match="quantiles"):
        Domain(OPEN.columns, impossible=[{"n": 3}])


# --- in Gaussian privacy, where the method's price is one ---


TEXTS = Domain({"c": Category.unlisted(), "d": Category.unlisted()})
ROWS = (("a", "x"), ("b", "y"))
AR, RO = Relation.ADD_REMOVE, Relation.REPLACE_ONE
LARGE, SMALL = Fraction(8), Fraction(1, 50)  # mu^2
FEW, MANY = (0, 1), (7, 8)  # rows: below all thresholds, and above those of little noise


def gaussian(relation: Relation, mu_squared: Fraction, delta: Fraction = Fraction(1, 20)) -> CellSearch:
    return CellSearch(domain=TEXTS, delta=delta, relation=relation, mu_squared=mu_squared)


@dataclass(frozen=True)
class Found:
    """What is counted in two columns, of which values that nobody listed are found; more than is shown of them."""

    finding: CellSearch
    claimed: CellSearch
    symmetric: bool = True

    @property
    def relation(self) -> Relation:
        return self.claimed.relation

    @property
    def event(self) -> Any:
        return self.claimed.event

    def distribution(self, world: tuple[tuple[str, str], ...]) -> outcomes.Outcomes:
        histogram = self.finding.histogram
        return outcomes.product(*(histogram.distribution([row[place] for row in world]) for place in range(2)))

    def checked(self, sizes: tuple[int, ...]) -> Any:
        return verify.check(self, verify.worlds(ROWS, sizes), relation=self.relation, epsilons=[0, 1, 3])


@pytest.mark.long
@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize(("mu_squared", "sizes"), [(LARGE, MANY), (LARGE, FEW), (SMALL, FEW)])
def test_the_gaussian_price_of_values_dominates_brute_force(
    relation: Relation, mu_squared: Fraction, sizes: tuple[int, ...]
) -> None:
    right = gaussian(relation, mu_squared)
    report = Found(right, right).checked(sizes)
    assert report.holds, report


MUTANTS = {
    "every column has the whole delta": (Found(gaussian(AR, SMALL, Fraction(1, 10)), gaussian(AR, SMALL)), FEW),
    "every column has the whole mu^2": (Found(gaussian(AR, 2 * LARGE), gaussian(AR, LARGE)), MANY),
    "noise of the other relation": (Found(gaussian(AR, LARGE), gaussian(RO, LARGE)), MANY),
}


@pytest.mark.long
@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_share_of_what_is_found_is_refuted(name: str) -> None:
    wrong, sizes = MUTANTS[name]
    report = wrong.checked(sizes)
    assert report.violated, report


@pytest.mark.parametrize("relation", Relation)
def test_finding_and_fitting_add_up_to_what_was_asked_in_gaussian_privacy(
    relation: Relation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of mu^2, and of delta: noise that has the whole of either in each of them would spend more than is charged."""
    spent: list[Any] = []
    settled, planned = CellSearch.settled, MST.plan

    def find(finding: CellSearch, rows: TableRows) -> Domain:
        spent.append(finding.event)
        return settled(finding, rows)

    def plan(method: MST, terms: Terms[Domain]) -> Any:
        made = planned(method, terms)
        spent.append(made.event)
        return made

    table = {"n": [1] * 50, "c": ["a"] * 50}
    chosen = dp.synth.plan(table, "mst", domain=OPEN, epsilon=4, delta=1e-6, relation=relation)
    monkeypatch.setattr(CellSearch, "settled", find)
    monkeypatch.setattr(MST, "plan", plan)
    chosen.fit(progress=False)
    found, fitted = spent
    whole = Composed([found, fitted])
    assert epsilon(whole, Fraction(1, 10**6), relation=relation) <= chosen.promise.epsilon <= 4
    assert chosen.promise.epsilon > 3.999
    # The bins of numbers and the thresholds together spend what the event of finding says, and not more.
    finding = CellSearch(domain=OPEN, delta=Fraction(1, 10**7), relation=relation, mu_squared=Fraction(1, 2))
    medians = QuantileBins(column=Numeric(0, 9, bins="quantiles"), epsilon=finding._of_medians, relation=relation)
    counts = finding.histogram.event
    assert gdp_mu(medians.event) ** 2 <= 0.25
    assert gdp_mu(counts.events[0]) ** 2 <= 0.25 * (1 + 1e-12)
    assert counts.events[1] == ApproxDP(0, Fraction(1, 10**7))


def test_bins_alone_take_nothing_of_delta() -> None:
    chosen = dp.synth.plan({"n": [1, 2]}, "mst", domain={"n": OPEN.columns["n"]}, epsilon=1, delta=1e-6)
    assert isinstance(chosen.event, GDP)
    assert chosen.promise.epsilon <= 1


def test_a_method_whose_price_rises_once_cells_are_found_is_refused() -> None:
    """What it would spend is not what was charged; and nobody learns why."""

    @dataclass(frozen=True)
    class Rising:
        name: str = "mst"

        def plan(self, terms: Terms[Domain]) -> Any:
            made = MST().plan(terms)
            return made if len(terms.domain.sizes) and terms.domain.sizes[1] > 3 else replace(made, mu_squared=9)

    table = {"n": [1] * 50, "c": ["a"] * 50}
    chosen = dp.synth.plan(table, Rising(), domain=OPEN, epsilon=4, delta=1e-6)
    with pytest.raises(dp.AnswerFailed):
        chosen.fit(progress=False)


def test_more_values_are_found_than_by_epsilon_alone() -> None:
    """Fifty values of 400 rows each, in each of five columns, at epsilon 1: all, where there were none."""
    columns = {f"c{place}": Category.unlisted() for place in range(5)}
    shares = [Fraction(1), Fraction(1, 10**6)]
    plain = TruncatedHistogram.laplace(shares[0] / 8 / 5, shares[1] / 8 / 5, relation=AR)
    table = {name: [f"v{row % 50}" for row in range(20_000)] for name in columns}
    model = dp.synth.plan(table, "independent", domain=columns, epsilon=1, delta=1e-6).fit(progress=False)
    assert len(model.domain.columns["c0"].values) == 50
    assert plain.reliable_count(Fraction(1, 100)) > 400


@pytest.mark.parametrize("categories", [1, 2, 5])
@pytest.mark.parametrize("numbers", [0, 1])
def test_what_is_found_in_all_columns_together_spends_the_event(
    categories: int, numbers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each column has a share of epsilon, and of delta: thresholds for the whole delta would spend it several times."""
    spent: list[ApproxDP] = []
    laplace, edges = TruncatedHistogram.laplace, QuantileBins.edges

    def histogram(epsilon: Fraction, delta: Fraction, *, relation: Relation) -> TruncatedHistogram:
        made = laplace(epsilon, delta, relation=relation)
        spent.append(ApproxDP(epsilon, delta))
        # A value that one row alone has is seen with a chance of delta at most: by the law itself.
        seen = sum((mass for shown, mass in made.distribution(["alone"]).masses.items() if shown), start=ball(0))
        assert bounds(seen)[1] <= delta * (1 + Fraction(1, 10**9))
        return made

    def bins(finder: QuantileBins, values: Column) -> Any:
        spent.append(ApproxDP(finder.epsilon, Fraction(0)))
        return edges(finder, values)

    monkeypatch.setattr(TruncatedHistogram, "laplace", staticmethod(histogram))
    monkeypatch.setattr(QuantileBins, "edges", bins)
    columns: dict[str, Any] = {f"c{place}": Category.unlisted() for place in range(categories)}
    columns |= {f"n{place}": Numeric(0, 9, bins="quantiles") for place in range(numbers)}
    finding = CellSearch(
        domain=Domain(columns), epsilon=Fraction(1), delta=Fraction(1, 10**6), relation=Relation.ADD_REMOVE
    )
    table = {name: ["x"] * 50 if name.startswith("c") else [1] * 50 for name in columns}
    finding.settled(TableRows(Coder(Domain(columns)), table_of(table)))
    assert len(spent) == categories + numbers
    assert sum(one.epsilon for one in spent) <= finding.event.epsilon == 1
    assert sum(one.delta for one in spent) <= finding.event.delta
