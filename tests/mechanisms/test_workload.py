"""Workloads: sensitivities against every neighbour, strategies against the optimum, answers against rows."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import discreet as dp
from discreet.errors import InvalidParameter, Refused
from discreet.lab import verify
from discreet.lab.verify import worlds
from discreet.mechanisms import GaussianNoise, LaplaceNoise, MatrixMechanism
from discreet.mechanisms.workloads import matrix_mechanism as of_workload
from discreet.mechanisms.workloads.linear_queries import FACTORS, Factor, read_queries
from discreet.mechanisms.workloads.strategy_matrix import StrategyFactor, StrategyMatrix, best_strategy, predicted
from discreet.mechanisms.workloads.strategy_search import best_for_l1, best_for_l2
from discreet.noise.laws import DiscreteLaplaceLaw, RoundedGaussianLaw
from discreet.privacy.relation import Relation

ADD_REMOVE, REPLACE_ONE = Relation.ADD_REMOVE, Relation.REPLACE_ONE
CHANCE = np.random.default_rng(20)


def strategy_of(*factors: Any, fine: int = 1) -> StrategyMatrix:
    made = [
        StrategyFactor(factor[0], factor[1]) if isinstance(factor, tuple) else StrategyFactor.of(factor)
        for factor in factors
    ]
    return StrategyMatrix(factors=tuple(made), fine=fine)


def whole(rows: int, cells: int) -> np.ndarray[Any, Any]:
    return CHANCE.integers(-4, 5, (rows, cells))


def noise_of(kind: str) -> Any:
    return LaplaceNoise(epsilon=Fraction(1)) if kind == "pure" else GaussianNoise.for_rho(Fraction(1, 2))


# --- sensitivity: What is claimed, against every neighbour of a small world. ---


SINGLE = {
    "matrix": strategy_of(whole(3, 4)),
    "tall": strategy_of(whole(6, 3), fine=5),
    "one cell": strategy_of([[3], [-2]]),
    "identity": strategy_of(("identity", 4)),
    "total": strategy_of(("total", 4)),
    "totals around": strategy_of(("total", 2), whole(3, 2), ("total", 2)),
    "identity by total": strategy_of(("identity", 3), ("total", 2), fine=3),
}
SEVERAL = {
    "two matrices": strategy_of(whole(3, 2), whole(2, 2)),
    "positive": strategy_of(np.abs(whole(3, 2)), np.abs(whole(2, 3))),
    "identity by matrix": strategy_of(("identity", 2), whole(3, 2)),
    "identities": strategy_of(("identity", 2), ("identity", 2), fine=2),
    "three": strategy_of(whole(2, 2), ("identity", 2), whole(2, 2)),
}


def data_sets(cells: int, rows: int) -> list[tuple[int, ...]]:
    """All multisets of up to so many rows; the last value is in no cell."""
    return [chosen for size in range(rows + 1) for chosen in combinations_with_replacement(range(cells + 1), size)]


def counts_of(rows: tuple[int, ...], cells: int) -> np.ndarray[Any, Any]:
    return np.bincount(np.array(rows, np.int64), minlength=cells + 1)[:cells]


def real_sensitivity(strategy: StrategyMatrix, relation: Relation) -> tuple[int, int]:
    """The largest norms over all neighbours of up to two rows."""
    cells, largest = strategy.cells, (0, 0)
    for rows in data_sets(cells, 1):
        for one, other in product(range(cells + 1), repeat=2):
            first = counts_of((*rows, one), cells)
            second = counts_of(rows if relation is ADD_REMOVE else (*rows, other), cells)
            moved = [int(number) for number in strategy.measured(first) - strategy.measured(second)]
            largest = (
                max(largest[0], sum(map(abs, moved))),
                max(largest[1], sum(number**2 for number in moved)),
            )
    return largest


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE_ONE])
@pytest.mark.parametrize("name", SINGLE)
def test_sensitivity_is_that_of_the_worst_neighbours(name: str, relation: Relation) -> None:
    claimed = SINGLE[name].sensitivity(relation)
    assert (claimed.l1, claimed.squared_l2) == real_sensitivity(SINGLE[name], relation)


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE_ONE])
@pytest.mark.parametrize("name", SEVERAL)
def test_sensitivity_of_products_dominates_brute_force(name: str, relation: Relation) -> None:
    claimed, (l1, squared) = SEVERAL[name].sensitivity(relation), real_sensitivity(SEVERAL[name], relation)
    if relation is ADD_REMOVE:
        assert (claimed.l1, claimed.squared_l2) == (l1, squared)
    assert claimed.l1 >= l1
    assert claimed.squared_l2 >= squared


@pytest.mark.parametrize("replaced", [False, True])
def test_strategies_of_searched_products_lose_little_to_the_bound(replaced: bool) -> None:
    relation = REPLACE_ONE if replaced else ADD_REMOVE
    found, _ = best_strategy([Factor("prefix", 4), Factor("range", 3)], pure=False, relation=relation, largest=False)
    claimed, real = found.sensitivity(relation).squared_l2, real_sensitivity(found, relation)[1]
    assert real <= claimed <= real * (1.001 if not replaced else 1.5)


# Three mistakes that a careful person might make about the noise of a strategy. ---------------------------------------


def before_rounding(strategy: StrategyMatrix, relation: Relation) -> int:
    """The square, rounded down, of a column of length 1.5, whose weight was then rounded to 2."""
    return 2 if relation is ADD_REMOVE else strategy.sensitivity(relation).squared_l2 - 1


def averaged(strategy: StrategyMatrix, relation: Relation) -> int:
    """The mean square of columns instead of the largest."""
    (factor,) = strategy.factors
    assert factor.matrix is not None
    return int(np.mean(np.sum(factor.matrix**2, axis=0)))


def as_if_added(strategy: StrategyMatrix, relation: Relation) -> int:
    """That of one unit that comes or goes, where it is replaced."""
    return strategy.sensitivity(ADD_REMOVE).squared_l2


MISTAKES: dict[str, tuple[Any, Any, Relation]] = {
    "sensitivity before rounding": (before_rounding, [[2, 0], [0, 1]], ADD_REMOVE),
    "mean column": (averaged, [[2, 1], [0, 1]], ADD_REMOVE),
    "replaced as added": (as_if_added, [[1, 1], [1, -1]], REPLACE_ONE),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_verification_refutes_a_wrong_sensitivity(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong, rows, relation = MISTAKES[name]
    strategy = strategy_of(rows)
    right = MatrixMechanism(
        cells=(("a", "b"),),
        queries=(Factor("identity", 2),),
        strategy=strategy,
        relation=relation,
        noise=GaussianNoise.for_rho(2),
    )
    world = worlds(("a", "b", "c"), (0, 1, 2) if relation is ADD_REMOVE else (2,))
    assert all(finding.holds for finding in verify.check(right, world, query=list).findings)
    true = strategy.sensitivity(relation)
    monkeypatch.setattr(
        StrategyMatrix, "sensitivity", lambda self, about: replace(true, squared_l2=wrong(SimpleStrategy(self), about))
    )
    assert not all(finding.holds for finding in verify.check(right, world, query=list).findings)


class SimpleStrategy:
    """A strategy whose sensitivity is still the right one, while a mistake is planted."""

    def __init__(self, strategy: StrategyMatrix) -> None:
        self.factors, self._of = strategy.factors, strategy

    def sensitivity(self, relation: Relation) -> Any:
        return RIGHT(self._of, relation)


RIGHT = StrategyMatrix.sensitivity


def test_sums_of_cells_are_exact_beyond_floats_and_beyond_64_bits() -> None:
    matrix = CHANCE.integers(-(1 << 20), 1 << 20, (5, 4))
    for size in (10**3, 2**40, 2**61):
        cells = np.array([size, size - 1, 3, 0], np.int64)
        for fine in (1, 1 << 20):
            found = strategy_of(matrix, fine=fine).measured(cells).tolist()
            assert found == [
                fine * sum(int(a) * int(b) for a, b in zip(row, cells, strict=True)) for row in matrix.tolist()
            ]


@pytest.mark.parametrize("size", [10, 2**30, 2**45, 2**60])
def test_sums_of_products_are_exact_in_whatever_type_holds_them(size: int) -> None:
    one, other = whole(3, 2), CHANCE.integers(-(1 << 12), 1 << 12, (3, 3))
    cells = np.array([size, 0, 1, size - 1, size // 3, 7], np.int64)
    full = np.kron(one.astype(object), np.kron(np.ones((1, 1), int), other.astype(object)))
    found = strategy_of(one, other, fine=1 << 8).measured(cells)
    assert [int(value) for value in found] == [int(value) << 8 for value in full @ cells.astype(object)]


# --- optimum: Bounds below all strategies, and how near to them the found ones are. ---


def marginals() -> Factor:
    """All pairs of three columns of 2, 3 and 4 cells."""
    (found,) = read_queries(
        [{"a": "identity", "b": "identity"}, {"a": "identity", "c": "identity"}, {"b": "identity", "c": "identity"}],
        [2, 3, 4],
        ["a", "b", "c"],
    )
    return found


WORKLOADS = {
    "identity": Factor("identity", 24),
    "prefix": Factor("prefix", 32),
    "range": Factor("range", 24),
    "marginals": marginals(),
    "few ranges": Factor("matrix", 20, Factor("range", 20).rows(CHANCE.integers(0, 210, 15))),
    "random": Factor("matrix", 24, CHANCE.normal(size=(40, 24))),
    "one query": Factor("matrix", 6, np.array([[1.0, 2, 0, 0, -3, 1]])),
    "skewed": Factor("matrix", 12, np.diag(10.0 ** np.arange(-3, 3, 0.5))),
}


@pytest.mark.parametrize("aim", ["sum", "largest"])
@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE_ONE])
@pytest.mark.parametrize("name", WORKLOADS)
def test_strategies_are_within_two_per_cent_of_the_optimum(name: str, relation: Relation, aim: str) -> None:
    queries = WORKLOADS[name]
    rows = queries.rows(np.arange(queries.answers))
    mechanism = MatrixMechanism.best(
        rows if queries.matrix is not None else queries.name,
        cells=[range(queries.size)],
        relation=relation,
        noise=noise_of("gaussian"),
        aim=aim,
    )
    assert mechanism.ratio is not None
    assert 1 - 1e-9 <= mechanism.ratio < 1.02


def reached(queries: Factor, gram: Any, relation: Relation, aim: str) -> float:
    own = np.diagonal(gram)
    cost = max(own.max(), (own[:, None] + own - 2 * gram).max() if relation is REPLACE_ONE else 0)
    variances = queries.squares(np.linalg.inv(gram))
    return float(cost * (variances.max() if aim == "largest" else variances.sum()))


@pytest.mark.parametrize("aim", ["sum", "largest"])
@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE_ONE])
@pytest.mark.parametrize("queries", [Factor("prefix", 3), Factor("range", 3), WORKLOADS["one query"]])
def test_no_strategy_is_below_the_bound_and_a_search_comes_near(queries: Factor, relation: Relation, aim: str) -> None:
    """A search that knows nothing of the theorem: over all triangular strategies, from several starts."""
    from scipy.optimize import minimize

    bound = best_for_l2(queries, replaced=relation is REPLACE_ONE, largest=aim == "largest").bound
    places, size = np.tril_indices(queries.size), queries.size

    def error(flat: Any) -> float:
        lower = np.zeros((size, size))
        lower[places] = flat
        return reached(queries, lower @ lower.T + 1e-9 * np.eye(size), relation, aim)

    starts = [np.eye(size)[places], np.tril(np.ones((size, size)))[places] + 0.3, CHANCE.normal(size=places[0].size)]
    options: Any = {"maxiter": 20_000, "maxfev": 20_000, "xatol": 1e-7, "fatol": 1e-9}
    found = min(float(minimize(error, start, method="Nelder-Mead", options=options).fun) for start in starts)
    assert found >= bound * (1 - 1e-6)
    if size == 3 and aim == "sum":  # Largest variances have edges, at which such a search gets stuck.
        assert found <= bound * 1.1


def test_the_bound_is_not_below_that_of_singular_values() -> None:
    for name in ("prefix", "range", "random"):
        queries = WORKLOADS[name]
        svd = np.sqrt(np.maximum(np.linalg.eigvalsh(queries.gram()), 0)).sum() ** 2 / queries.size
        assert best_for_l2(queries, replaced=False, largest=False).bound >= svd * (1 - 1e-9)


def test_products_have_the_product_of_optima() -> None:
    cells = {"a": range(8), "b": range(6), "c": range(3), "d": range(4)}
    asked = {"a": "prefix", "b": "range", "c": "identity"}
    mechanism = MatrixMechanism.best(asked, cells=cells, relation=ADD_REMOVE, noise=noise_of("gaussian"))
    assert mechanism.ratio is not None
    assert mechanism.ratio < 1.02
    dense = MatrixMechanism.best(
        [asked], cells=cells, relation=ADD_REMOVE, noise=noise_of("gaussian")
    )  # As one matrix.
    assert mechanism.bound is not None
    assert dense.bound is not None
    assert mechanism.bound == pytest.approx(dense.bound, rel=0.01)
    assert mechanism.accuracy.standard_errors.sum() == pytest.approx(dense.accuracy.standard_errors.sum(), rel=0.02)


@pytest.mark.parametrize("aim", ["sum", "largest"])
@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE_ONE])
@pytest.mark.parametrize("name", ["prefix", "range", "marginals", "few ranges", "one query", "identity"])
def test_pure_strategies_are_never_worse_than_noise_on_each_query(name: str, relation: Relation, aim: str) -> None:
    queries, replaced = WORKLOADS[name], relation is REPLACE_ONE
    found, _ = best_strategy([queries], pure=True, relation=relation, largest=aim == "largest")
    reached = predicted(queries, found.factors[0], replaced, aim == "largest")
    rows = queries.rows(np.arange(queries.answers))
    columns = rows if not replaced else (rows[:, :, None] - rows[:, None, :]).reshape(len(rows), -1)
    l1 = max(np.abs(columns).sum(axis=0).max(), np.abs(rows).sum(axis=0).max())
    even = l1**2 * (1 if aim == "largest" else len(rows))
    assert reached <= even * (1 + 1e-9)
    identity = predicted(queries, StrategyFactor("identity", queries.size), replaced, aim == "largest")
    assert reached <= identity * (1 + 1e-9)


def test_the_slope_of_the_search_for_laplace_noise_is_right() -> None:
    """It must find what it found before: with a wrong slope it stops early, above trees."""
    queries = Factor("prefix", 64)
    rows = best_for_l1(queries.gram())
    assert np.abs(rows).sum(axis=0) == pytest.approx(1)
    error = queries.squares(np.asarray(np.linalg.inv(rows.T @ rows), np.float64)).sum()
    assert error < 0.5 * queries.squares(np.eye(64)).sum()


# --- answers: Right on average, with the errors that are told. ---


@pytest.mark.parametrize("kind", ["pure", "gaussian"])
@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE_ONE])
@pytest.mark.parametrize("name", WORKLOADS)
def test_answers_without_noise_are_exact_and_deviations_are_those_of_the_weights(
    name: str, relation: Relation, kind: str
) -> None:
    queries = WORKLOADS[name]
    rows = queries.rows(np.arange(queries.answers))
    asked = rows if queries.matrix is not None else queries.name
    mechanism = MatrixMechanism.best(asked, cells=[range(queries.size)], relation=relation, noise=noise_of(kind))
    cells = CHANCE.integers(0, 10**6, queries.size)
    accuracy = mechanism.accuracy
    answers = accuracy.answers(mechanism.strategy.measured(cells).tolist())
    assert np.allclose(answers, rows @ cells, rtol=1e-9, atol=1e-6 * np.abs(rows).max())
    assert np.allclose(np.sqrt(np.diagonal(accuracy.covariance())), accuracy.standard_errors)
    weights = CHANCE.normal(size=queries.answers)
    expected = math.sqrt(weights @ accuracy.covariance() @ weights)
    assert accuracy.standard_error(weights) == pytest.approx(expected, rel=1e-6)


def test_products_agree_with_their_matrix() -> None:
    cells = {"a": range(3), "b": range(4), "c": range(2), "d": range(2)}
    asked = {"a": "prefix", "b": "range", "c": "identity"}
    product_of = MatrixMechanism.best(asked, cells=cells, relation=ADD_REMOVE, noise=noise_of("gaussian"))
    (dense,) = read_queries([asked], [3, 4, 2, 2], list(cells))
    assert dense.matrix is not None
    counts = CHANCE.integers(0, 1000, 48)
    accuracy = product_of.accuracy
    assert np.allclose(accuracy.answers(product_of.strategy.measured(counts).tolist()), dense.matrix @ counts)
    each = [np.asarray(factor.matrix if factor.matrix is not None else np.ones((1, 2))) for factor in
            product_of.strategy.factors if factor.name != "identity"]  # fmt: skip
    full = np.kron(np.kron(np.kron(each[0], each[1]), np.eye(2)), each[2]) * product_of.strategy.fine
    weights = dense.matrix @ np.linalg.pinv(full)
    assert np.allclose(accuracy.covariance(), weights @ weights.T * accuracy.deviation**2)
    assert np.allclose(accuracy.covariance([5, 7]), accuracy.covariance()[np.ix_([5, 7], [5, 7])])
    some = CHANCE.normal(size=len(dense.matrix))
    assert accuracy.standard_error(some) == pytest.approx(math.sqrt(some @ accuracy.covariance() @ some))


def test_cells_that_are_best_for_ranges_have_surer_ranges() -> None:
    shared: dict[str, Any] = {"cells": [range(64)], "relation": ADD_REMOVE, "noise": noise_of("gaussian")}
    plain, aimed = (MatrixMechanism.best("identity", best_for=best, **shared).accuracy for best in (None, "range"))
    half = np.repeat([1.0, 0.0], 32)
    assert aimed.standard_error(half) < 0.5 * plain.standard_error(half)
    assert aimed.standard_errors.mean() > plain.standard_errors.mean()


def six_columns() -> dict[str, list[int]]:
    """Six kinds of rows over 0 … 15: even, one value, skewed, two peaks, few rows, and many outside."""
    chance = np.random.default_rng(6)
    return {
        "even": chance.integers(0, 16, 500).tolist(),
        "one value": [7] * 500,
        "skewed": np.minimum(chance.geometric(0.3, 500) - 1, 15).tolist(),
        "two peaks": [*([2] * 300), *([13] * 300)],
        "few rows": [3, 9],
        "outside": chance.integers(-50, 50, 500).tolist(),
    }


RUNS = 60


@pytest.mark.statistical
@pytest.mark.parametrize("kind", ["pure", "gaussian"])
@pytest.mark.parametrize("name", six_columns())
def test_intervals_cover_and_are_not_much_wider_than_they_must_be(name: str, kind: str) -> None:
    """Of 60 runs one query of each is looked at, so that runs are independent: false alarm below 1e-9."""
    rows = six_columns()[name]
    mechanism = MatrixMechanism.best("range", cells=[range(16)], relation=ADD_REMOVE, noise=noise_of(kind))
    truth = Factor("range", 16).apply(np.bincount([row for row in rows if 0 <= row < 16], minlength=16).astype(float))
    inside = narrow = 0
    deviations = mechanism.accuracy.standard_errors
    for run in range(RUNS):
        release = mechanism.release(rows)
        place = run * 37 % len(truth)
        low, high = release.interval(Fraction(8, 10))[place]
        inside += low <= truth[place] <= high
        narrow += abs(float(release.value[place]) - truth[place]) <= 0.2 * deviations[place]
    assert binom.cdf(inside, RUNS, 0.8) > 1e-9
    assert binom.sf(narrow - 1, RUNS, 0.35) > 1e-9  # The noise is there: a tenth of it would be seen.
    wide = (high - low) / 2 / Fraction(deviations[place])
    assert 1.28 <= wide < 1.6


@pytest.mark.statistical
def test_answers_scatter_by_the_covariance_that_is_told() -> None:
    mechanism = MatrixMechanism.best("prefix", cells=[range(4)], relation=ADD_REMOVE, noise=noise_of("gaussian"))
    draws = np.array([mechanism.release([1, 2, 2]).estimate for _ in range(400)], float) - [0, 1, 3, 3]
    lower = np.linalg.cholesky(mechanism.accuracy.covariance())
    white = np.linalg.solve(lower, draws.T)  # Independent and of variance one, if the covariance is right.
    from scipy.stats import chi2

    total = float(np.sum(white**2))
    assert 1e-9 < chi2.cdf(total, white.size) < 1 - 1e-9
    assert not 1e-9 < chi2.cdf(total / 1.5, white.size) < 1 - 1e-9  # A variance that is wrong by half is seen.
    across = float(np.sum(white[0] * white[1])) / math.sqrt(white.shape[1])
    assert abs(across) < 6.5


def exact_tail(weights: Any, z: float) -> float:
    """P[|Y| > z] for a sum of Laplace noises of different scales and variance one, by partial fractions."""
    squares = np.asarray(weights, float) ** 2
    squares = squares / (2 * squares.sum())
    parts = [
        np.prod([one / (one - other) for k, other in enumerate(squares) if k != i]) for i, one in enumerate(squares)
    ]
    return float(np.sum(parts * np.exp(-z / np.sqrt(squares))))


@pytest.mark.parametrize("outside", [0.5, 0.2, 0.05, 0.01, 1e-6])
@pytest.mark.parametrize(
    "weights", [(1,), (1, 0.1), (1, 0.5), (1, 0.9), (1, 0.99, 1.02), tuple(1 + k / 9 for k in range(8))]
)
def test_the_tail_of_sums_of_laplace_noise_dominates_the_exact_one(weights: tuple[float, ...], outside: float) -> None:
    squares = np.array(weights) ** 2
    spread = float(np.sum(squares**2) / np.sum(squares) ** 2)
    grade = -1 if len(weights) == 1 else math.floor(-16 * math.log2(spread))
    z = of_workload._mixture_multiple(grade, outside)
    assert exact_tail(weights, z) <= outside * (1 + 1e-6)
    assert exact_tail(weights, 0.75 * z) > outside * 0.95 or outside < 1e-3  # And not far too wide.


def test_rounded_noise_is_as_near_to_continuous_noise_as_is_claimed() -> None:
    """Half a step for rounded Gaussian noise; less than one for discrete Laplace noise, floors of exponential ones."""
    scale = 3.0
    chance = np.random.default_rng(1)
    one, other = chance.exponential(scale, (2, 10_000))
    assert np.abs((np.floor(one) - np.floor(other)) - (one - other)).max() < 1
    law = DiscreteLaplaceLaw(Fraction(3))
    floors = np.exp(-np.arange(60) / scale) * (1 - math.exp(-1 / scale))
    assert float(law.pmf(2)) == pytest.approx(float(np.sum(floors[2:] * floors[:-2])), abs=1e-7)
    assert isinstance(noise_of("gaussian").law(strategy_of([[1]]).sensitivity(ADD_REMOVE)), RoundedGaussianLaw)


# --- one call: Tables, units, prices, refusals. ---


TABLE: dict[str, list[Any]] = {"age": [20, 30, 30, 99], "sex": ["f", "m", "m", "f"]}
CELLS = {"age": [20, 30, 40], "sex": ["f", "m"]}


@pytest.mark.parametrize("form", ["mapping", "rows", "array", "arrow", "dicts"])
def test_every_form_of_a_table_is_counted_alike(form: str) -> None:
    import pyarrow as pa

    rows = list(zip(TABLE["age"], TABLE["sex"], strict=True))
    data: Any = {
        "mapping": TABLE,
        "rows": [*rows, "x", (1, 2, 3), None],
        "array": np.array(rows, dtype=object),
        "arrow": pa.table(TABLE),
        "dicts": [{"age": age, "sex": sex} for age, sex in rows],
    }[form]
    release = dp.workload(data, {"age": "prefix", "sex": "identity"}, cells=CELLS, relation="add-remove", epsilon=10**6)
    assert [round(float(answer), 3) for answer in release.value] == [1, 0, 1, 2, 1, 2]
    assert release.labels == ("… 20, f", "… 20, m", "… 30, f", "… 30, m", "… 40, f", "… 40, m")


def test_rows_are_read_by_the_names_of_their_columns_and_a_single_column_too() -> None:
    """A row as a mapping may have its columns in another order, and further ones; a row may have one column."""
    shared: dict[str, Any] = {"relation": "add-remove", "epsilon": 10**6}
    mixed = [{"sex": "f", "id": 7, "age": 20}, {"age": 30, "sex": "m"}, {"age": 30}, 8, None]
    release = dp.workload(mixed, "identity", cells=CELLS, **shared)
    assert [round(float(answer)) for answer in release.value] == [1, 0, 0, 1, 0, 0]
    single: list[list[Any]] = [
        [[20], [30], [30]],
        [{"age": 20}, {"age": 30}, {"age": 30}],
        [20, (30,), 30, (1, 2), "x"],
    ]
    for rows in single:
        for unit in (None, {"patient": list(range(len(rows)))}):
            release = dp.workload(rows, "identity", cells={"age": [20, 30]}, unit=unit, **shared)
            assert [round(float(answer)) for answer in release.value] == [1, 2]


def test_columns_that_are_not_named_are_summed_over_and_products_are_labelled() -> None:
    asked = [{"age": "identity"}, {"sex": "identity"}, {}]
    release = dp.workload(TABLE, asked, cells=CELLS, relation="replace-one", epsilon=10**6)
    assert {name: round(float(answer)) for name, answer in release.as_dict().items()} == {
        "20": 1, "30": 2, "40": 0, "f": 1, "m": 2, "total": 3
    }  # fmt: skip


def test_what_is_missing_is_counted_only_in_a_cell_of_its_own() -> None:
    for cells, expected in (([1, 2], [1, 1]), ([1, None], [1, 3])):
        release = dp.workload([1, 2, None, float("nan"), None], "identity", cells=cells, relation="add-remove",
                              epsilon=10**6)  # fmt: skip
        assert [round(float(answer)) for answer in release.value] == expected


def test_a_ledger_is_charged_once_before_anything_is_read() -> None:
    class Unread(list[int]):
        def __iter__(self) -> Any:
            raise AssertionError("it was read")

    account = dp.ledger.Account("visits", "row", ADD_REMOVE, dp.Budget(rho="1/2"))
    with dp.ledger.Ledger.open("memory", account) as book:
        dp.workload([1, 2, 2], "prefix", cells=range(4), relation=ADD_REMOVE, rho="1/4", session=book)
        assert [entry.kind for entry in book.history()].count("charge") == 1
        with pytest.raises(dp.BudgetExceeded):
            dp.workload(Unread([1]), "prefix", cells=range(4), relation=ADD_REMOVE, rho="1/3", session=book)


def test_units_with_several_rows_cost_what_their_rows_move_together() -> None:
    shared: dict[str, Any] = {"cells": range(4), "relation": ADD_REMOVE, "rho": 1}
    one: Any = dp.workload([0, 1, 2, 3], "prefix", **shared)
    several: Any = dp.workload([0, 1, 2, 3], "prefix", unit=["a", "a", "a", "b"], max_rows=3, **shared)
    assert several.accuracy.standard_errors == pytest.approx(3 * one.accuracy.standard_errors)
    assert several.max_rows == 3
    assert several.event.to_json() != one.event.to_json()


REFUSED: dict[str, tuple[Any, Any, Any]] = {
    "too many cells": (np.eye(2049), range(2049), Refused),
    "a long prefix": ("prefix", range(2049), Refused),
    "a million and one": ("identity", range(10**6 + 1), Refused),
    "too many answers": ("range", range(2000), Refused),
    "wrong width": (np.eye(3), range(4), InvalidParameter),
    "no such factor": ("suffix", range(4), InvalidParameter),
    "infinite": ([[1.0, math.inf]], range(2), InvalidParameter),
    "tiny": ([[1.0, 1e-12]], range(2), InvalidParameter),
    "nothing": ([[1.0, 0], [0, 0]], range(2), InvalidParameter),
    "empty": ([], range(2), InvalidParameter),
    "texts": ([["a", "b"]], range(2), InvalidParameter),
    "sql": (["SELECT COUNT(*) FROM t"], range(2), Refused),
    "names without columns": ({"age": "prefix"}, range(2), InvalidParameter),
    "unknown column": ({"town": "prefix"}, CELLS, InvalidParameter),
    "cells twice": ("prefix", [1, 1], InvalidParameter),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_answered_is_refused_before_it_is_read(name: str) -> None:
    queries, cells, error = REFUSED[name]
    data = TABLE if isinstance(cells, dict) else [1, 0]
    with pytest.raises(error):
        dp.workload(data, queries, cells=cells, relation=ADD_REMOVE, epsilon=1)


def test_other_mistakes_are_refused() -> None:
    shared: dict[str, Any] = {"cells": range(4), "relation": ADD_REMOVE}
    for wrong in ({"aim": "mean", "epsilon": 1}, {}, {"epsilon": 1, "rho": 1}, {"epsilon": 1, "best_for": "mean"}):
        with pytest.raises(InvalidParameter):
            dp.workload([1, 2], "prefix", **shared, **wrong)
    with pytest.raises(InvalidParameter, match="do not follow"):
        dp.workload([1, 2], "identity", best_for="total", epsilon=1, **shared)
    with pytest.raises(InvalidParameter, match="no column"):
        dp.workload({"age": [1]}, {"sex": "total"}, cells=CELLS, relation=ADD_REMOVE, epsilon=1)
    big = {"a": range(300), "b": range(300)}
    with pytest.raises(Refused, match="one matrix"):
        dp.workload([], [{"a": "prefix"}, {"b": "prefix"}], cells=big, relation=ADD_REMOVE, epsilon=1)


@pytest.mark.parametrize("rows", [[[0.5, 1]], [["a"]], [1, 2], [], [[1 << 40]]])
def test_a_strategy_of_anything_but_small_whole_numbers_is_refused(rows: Any) -> None:
    with pytest.raises(InvalidParameter):
        StrategyFactor.of(rows)


def test_a_factor_cannot_be_made_past_what_reads_its_weights() -> None:
    """Weights of 1.9 would have the norm 1, and a matrix that is called a total none of its differences."""
    odd: list[tuple[str, int, Any]] = [
        ("matrix", 2, np.array([[1.9, 0], [0, 1.9]])),
        ("matrix", 1, np.array([[1 << 32]])),
        ("matrix", 3, np.eye(2, dtype=np.int64)),
        ("total", 2, np.eye(2, dtype=np.int64)),
        ("matrix", 2, None),
    ]
    for name, size, matrix in odd:
        with pytest.raises(InvalidParameter):
            StrategyFactor(name, size, matrix)
    assert StrategyFactor("matrix", 2, np.array([[2, 1]], np.int32)).squared_l2() == 4


def test_strategies_that_do_not_fit_are_refused() -> None:
    shared: dict[str, Any] = {"cells": (("a", "b"),), "relation": ADD_REMOVE, "noise": noise_of("pure")}
    with pytest.raises(InvalidParameter, match="sizes"):
        MatrixMechanism(queries=(Factor("identity", 2),), strategy=strategy_of([[1, 1, 1]]), **shared)
    with pytest.raises(InvalidParameter, match="do not follow"):
        MatrixMechanism(queries=(Factor("identity", 2),), strategy=strategy_of([[1, 1]]), **shared)
    with pytest.raises(InvalidParameter):
        StrategyMatrix(factors=(), fine=0)


def test_accuracy_refuses_places_and_weights_that_are_not_there() -> None:
    accuracy: Any = dp.workload([1], "prefix", cells=range(4), relation=ADD_REMOVE, epsilon=1).accuracy
    for places in ([4], [-1], [], [[0]]):
        with pytest.raises(InvalidParameter):
            accuracy.covariance(places)
    for weights in ([1, 1], [1, 1, 1, math.nan]):
        with pytest.raises(InvalidParameter):
            accuracy.standard_error(weights)


@pytest.mark.long
def test_a_product_of_a_million_cells_is_answered() -> None:
    rows = CHANCE.integers(0, 100, (1000, 3))
    cells = {name: range(100) for name in "abc"}
    release = dp.workload(rows, {"a": "prefix", "b": "identity", "c": "prefix"}, cells=cells, relation=ADD_REMOVE,
                          epsilon=10**4)  # fmt: skip
    counts = np.zeros((100, 100, 100))
    np.add.at(counts, tuple(rows.T), 1)
    truth = np.cumsum(np.cumsum(counts, axis=0), axis=2).reshape(-1)
    assert np.abs(np.array([float(answer) for answer in release.value[::97]]) - truth[::97]).max() < 1


def test_every_factor_is_what_it_says() -> None:
    assert set(FACTORS) == {"identity", "total", "prefix", "range"}
    cells = np.array([1.0, 10, 100])
    expected = {"identity": [1, 10, 100], "total": [111], "prefix": [1, 11, 111], "range": [1, 11, 111, 10, 110, 100]}
    for name, answers in expected.items():
        factor = Factor(name, 3)
        rows = factor.rows(np.arange(factor.answers))
        assert factor.apply(cells).tolist() == answers == (rows @ cells).tolist()
        weights = CHANCE.normal(size=factor.answers)
        assert np.allclose(factor.gathered(weights), rows.T @ weights)
        assert np.allclose(factor.gram(weights), rows.T @ np.diag(weights) @ rows)
        inverse = CHANCE.normal(size=(3, 5))
        assert np.allclose(factor.squares(inverse @ inverse.T), np.sum((rows @ inverse) ** 2, axis=1))
        assert np.allclose(factor.fourth_powers(inverse), np.sum((rows @ inverse) ** 4, axis=1))
