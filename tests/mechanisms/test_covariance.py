"""Covariances and correlations: exact behind the noise, one joint price, intervals that cover."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import discreet as dp
from discreet.errors import InvalidParameter, Refused
from discreet.mechanisms import Covariance, GaussianNoise, Grid, LaplaceNoise
from discreet.mechanisms.grid import exact_product_sum
from discreet.mechanisms.quotient_intervals import FULLY, MeasuredNoise, comoment_ends, correlation_ends
from discreet.mechanisms.variance import ComomentAccuracy, CorrelationAccuracy, correlation_of
from discreet.noise.laws import DiscreteLaplaceLaw
from discreet.privacy.relation import Relation

ADD_REMOVE, REPLACE_ONE = Relation.ADD_REMOVE, Relation.REPLACE_ONE
UNIT = Grid(low=Fraction(-1), high=Fraction(1), step=Fraction(1), default=Fraction(0))
ODD = Grid(low=Fraction(0), high=Fraction(3), step=Fraction(1), default=Fraction(0))
CORNERS = tuple(product((-1, 0, 1), (0, 1, 3)))


def made(relation: Relation, rows: int, *grids: Grid, noise: Any = None) -> Covariance:
    return Covariance(
        grids=grids,
        relation=relation,
        noise=noise or LaplaceNoise(epsilon=Fraction(10**6)),
        public_rows=rows if relation is REPLACE_ONE else None,
    )


def six_sets() -> dict[str, np.ndarray[Any, Any]]:
    """Six kinds of pairs within (0, 10): even, tied, opposed, skewed, rare, and at the bounds."""
    chance = np.random.default_rng(7)
    even = chance.uniform(0, 10, (800, 2))
    tied = np.stack([even[:, 0], np.clip(even[:, 0] + chance.normal(0, 1, 800), 0, 10)], axis=1)
    opposed = np.stack([even[:, 0], 10 - tied[:, 1]], axis=1)
    skewed = np.clip(chance.lognormal(0, 1, (800, 2)), 0, 10)
    rare = (chance.random((800, 2)) < 0.05) * 10.0
    ends = np.repeat((chance.random(800) < 0.5) * 10.0, 2).reshape(-1, 2)
    return {"even": even, "tied": tied, "opposed": opposed, "skewed": skewed, "rare": rare, "ends": ends}


SETS = six_sets()
BOUNDS = [(0, 10), (0, 10)]


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE_ONE])
@pytest.mark.parametrize("name", SETS)
def test_behind_tiny_noise_is_the_exact_matrix(name: str, relation: Relation) -> None:
    rows = SETS[name]
    grids = (Grid.between(0, 10), Grid.between(0, 10), Grid.between(-5, 5))
    table = np.column_stack([rows, rows[:, 0] - 5])
    release = made(relation, 800, *grids).release(table)
    assert np.allclose(np.reshape(release.estimate, (3, 3)), np.cov(table.T, bias=True), rtol=1e-4, atol=1e-4)
    found = np.reshape(correlation_of(release).estimate, (3, 3))
    assert np.allclose(found, np.corrcoef(table.T), atol=1e-3)


class _Broken:
    """A row that fails with a text of its own."""

    def __iter__(self) -> Any:
        raise ValueError("a secret")


@pytest.mark.parametrize("form", ["rows", "array", "columns", "dicts"])
def test_every_form_of_a_table_is_read_alike(form: str) -> None:
    rows = [[1, 2], [4, 9], [7, None], "none", [3]]
    table: Any = {
        "rows": rows,
        "dicts": [{"a": 1, "b": 2}, {"a": 4, "b": 9}, {"a": 7, "b": None}, {}, _Broken()],
        "array": np.array([[1, 2], [4, 9], [7, np.nan], [np.nan, np.nan], [np.nan, np.nan]]),
        "columns": {"a": [1, 4, 7, None, None], "b": [2, 9, None, None, None]},
    }[form]
    release = dp.covariance(table, bounds=BOUNDS, relation=ADD_REMOVE, epsilon=10**6)
    expected = np.cov([[1, 4, 7, 5, 5], [2, 9, 5, 5, 5]], bias=True)  # What is missing counts as the middle.
    assert np.allclose(np.reshape(release.estimate, (2, 2)), expected, atol=1e-2)
    assert release.labels is not None
    assert release.labels[1] == ("a, b" if form == "columns" else "column 1, column 2")


def test_products_are_added_up_exactly() -> None:
    wide = np.array([-(2**52), 2**52, 2**52 - 1, -3, 0], np.int64)
    other = np.array([2**52, 2**52 - 7, -(2**51) - 1, 2**40 + 5, 9], np.int64)
    assert exact_product_sum(wide, other) == sum(int(a) * int(b) for a, b in zip(wide, other, strict=True))


# --- price: All numbers together, against every neighbour of a small world. ---


def spent(mechanism: Covariance, one: Any, other: Any) -> Fraction:
    """What a neighbour changes of all numbers together: in scales, or in squared deviations."""
    total = Fraction(0)
    for measurement in mechanism.measurements:
        law = measurement.noise.law(measurement.sensitivity)
        moved = abs(measurement.query.evaluate(one)[0] - measurement.query.evaluate(other)[0])
        gaussian = isinstance(measurement.noise, GaussianNoise)
        total += Fraction(moved**2) / law.variance if gaussian else Fraction(moved) / law.scale  # type: ignore[union-attr]
    return total


def neighbours(relation: Relation) -> list[tuple[list[Any], list[Any]]]:
    if relation is ADD_REMOVE:
        return [([*others, row], list(others)) for others in product(CORNERS, repeat=1) for row in CORNERS]
    few = [(-1, 0), (-1, 3), (1, 0), (1, 3), (0, 1)]  # It is bilinear in one row: corners are enough, one more to see.
    return [([*others, one], [*others, row]) for others in product(few, repeat=2) for one in few for row in few]


@pytest.mark.parametrize("noise", [LaplaceNoise(epsilon=Fraction(2)), GaussianNoise.for_rho(2)])
@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE_ONE])
def test_a_corner_reaches_the_joint_sensitivity_and_nothing_exceeds_it(relation: Relation, noise: Any) -> None:
    mechanism = made(relation, 3, UNIT, ODD, noise=noise)
    most = max(spent(mechanism, *pair) for pair in neighbours(relation))
    assert most == (4 if isinstance(noise, GaussianNoise) else 2)


def test_half_of_the_noise_is_found_to_be_too_little() -> None:
    """The planted mistake: products as far as one half width times the other, where a unit is exchanged."""
    mechanism = made(REPLACE_ONE, 3, UNIT, ODD, noise=LaplaceNoise(epsilon=Fraction(2)))
    wrong = replace(mechanism, noise=LaplaceNoise(epsilon=Fraction(4)))
    assert max(spent(wrong, *pair) for pair in neighbours(REPLACE_ONE)) > 2


def test_a_count_that_is_not_paid_is_found() -> None:
    """The planted mistake: products, squares and sums have all of the price, and the number of rows costs nothing."""
    mechanism = made(ADD_REMOVE, 0, UNIT, ODD, noise=LaplaceNoise(epsilon=Fraction(2)))
    wrong = replace(mechanism, noise=LaplaceNoise(epsilon=Fraction(2) * 7 / 6))  # One part of seven is the count's.
    assert max(spent(wrong, *pair) for pair in neighbours(ADD_REMOVE)) > 2


# --- intervals: Ends that hold every value of a box, and cover what they say. ---


def _array(*numbers: int) -> Any:
    return np.array(numbers, dtype=object)


def test_the_ends_of_a_covariance_are_those_of_its_box() -> None:
    chance = np.random.default_rng(3)
    for _ in range(150):
        low = chance.integers(-12, 12, 3)
        high = low + chance.integers(0, 5, 3)
        least = int(chance.integers(1, 4))
        most = least + int(chance.integers(0, 4))
        boxes = [(_array(int(a)), _array(int(b))) for a, b in zip(low, high, strict=True)]
        ends = comoment_ends(*boxes, (_array(least), _array(most)))
        found = [Fraction(int(over[0]), int(under[0])) for over, under in ends]
        shares = [Fraction(1, most) + (Fraction(1, least) - Fraction(1, most)) * k / 24 for k in range(25)]
        corners = list(product(*((int(a), int(b)) for a, b in zip(low, high, strict=True))))
        values = [p * t - x * y * t * t for p, x, y in corners for t in shares]
        assert found[0] <= min(values)
        assert max(values) <= found[1]
        assert float(found[1] - max(values)) < 0.5 + 0.05 * float(found[1] - found[0])


@pytest.mark.parametrize("number", [-(10**9), 10**9])
def test_a_number_that_no_table_has_leaves_all_covariances(number: int) -> None:
    limits = (Fraction(-25), Fraction(25))
    noise = MeasuredNoise(DiscreteLaplaceLaw(Fraction(4)))
    told = ComomentAccuracy(
        step=Fraction(1), fold=0, numbers=(number,), noises=(noise,), limits=limits, public_rows=40
    )  # fmt: skip
    assert told.interval(told.value, Fraction(95, 100)) == limits


def test_the_ends_of_a_correlation_hold_every_quotient_of_a_box() -> None:
    boxes = [((-3, 5), (2, 7), (1, 4)), ((1, 2), (3, 9), (2, 3)), ((-4, -1), (2, 9), (5, 8)), ((1, 2), (0, 3), (1, 2))]
    for sides in boxes:
        pairs = [((_array(low), _array(2)), (_array(high), _array(2))) for low, high in sides]
        low, high = (Fraction(int(end[0]), FULLY) for end in correlation_ends(*pairs))
        for c, v, w in product(*(np.linspace(a / 2, b / 2, 7) for a, b in sides)):
            if v > 0 and w > 0:
                assert low <= Fraction(min(max(c / np.sqrt(v * w), -1), 1)) <= high


def covered(function: Any, rows: Any, truth: np.ndarray[Any, Any], runs: int, **spend: Any) -> int:
    """In how many runs every cell's own interval holds its exact value; the least of all cells."""
    inside = np.zeros(len(truth))
    for _ in range(runs):
        for place, (low, high) in enumerate(function(rows, bounds=BOUNDS, **spend).interval()):
            inside[place] += low - Fraction(1, 10**5) <= Fraction(float(truth[place])) <= high + Fraction(1, 10**5)
    return int(inside.min())


SPENDS: Sequence[dict[str, Any]] = ({"relation": ADD_REMOVE, "rho": "0.5"}, {"relation": REPLACE_ONE, "epsilon": 1})


@pytest.mark.some(4)
@pytest.mark.statistical
@pytest.mark.parametrize("spend", SPENDS)
@pytest.mark.parametrize("name", SETS)
def test_intervals_cover_what_they_say(name: str, spend: dict[str, Any]) -> None:
    rows, runs = SETS[name], 60
    least = int(binom.ppf(1e-10, runs, 0.95))
    assert covered(dp.covariance, rows, np.cov(rows.T, bias=True).reshape(-1), runs, **spend) >= least
    assert covered(dp.correlation, rows, np.corrcoef(rows.T).reshape(-1), runs, **spend) >= least


@pytest.mark.statistical
def test_intervals_for_a_tenth_of_the_noise_do_not_cover() -> None:
    """The wrong neighbour: noise of ten times the price in the interval."""
    rows, runs, missed = SETS["tied"], 60, 0
    truth = Fraction(float(np.cov(rows.T, bias=True)[0, 1]))
    for _ in range(runs):
        release = dp.covariance(rows, bounds=BOUNDS, relation=REPLACE_ONE, epsilon=1)
        low, high = release.interval()[1]
        missed += abs(release.value[1] - truth) > (high - low) / 20
    assert runs - missed < binom.ppf(1e-10, runs, 0.95)


# --- calls: What is refused, and who pays. ---


def test_units_with_many_rows_pay_for_all_of_them() -> None:
    rows = SETS["tied"]
    release = dp.covariance(rows, bounds=BOUNDS, relation=ADD_REMOVE, rho=1, unit=np.arange(800) // 4, max_rows=4)
    assert (release.cost, release.max_rows) == ("ρ = 1", 4)
    alone = dp.covariance(rows, bounds=BOUNDS, relation=ADD_REMOVE, rho=1)
    assert release.plus_minus()[1] > 3 * alone.plus_minus()[1]


def test_bounds_and_columns_must_fit() -> None:
    rows = SETS["even"]
    for bounds in (None, [(0, 10)], [(0, 10)] * 3, (0, 10)):
        with pytest.raises(Refused, match="a pair for each column"):
            dp.covariance(rows, bounds=bounds, relation=ADD_REMOVE, epsilon=1)
    with pytest.raises(Refused, match="no column"):
        dp.correlation(
            {"a": rows[:, 0], "b": rows[:, 1]},
            bounds={"a": (0, 1), "c": (0, 1)},
            relation=ADD_REMOVE,
            epsilon=1,
        )
    with pytest.raises(InvalidParameter, match="two columns"):
        dp.covariance(rows[:, :1], bounds=[(0, 10)], relation=ADD_REMOVE, epsilon=1)
    with pytest.raises(InvalidParameter, match="must be a table"):
        dp.covariance("text", bounds=BOUNDS, relation=ADD_REMOVE, epsilon=1)


def test_columns_that_do_not_vary_have_no_correlation() -> None:
    release = dp.correlation(np.full((500, 2), 5.0), bounds=BOUNDS, relation=ADD_REMOVE, epsilon="0.1")
    assert release.interval()[1] == (-1, 1)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_correlation_lies_in_its_interval_where_a_variance_is_not_above_zero(sign: int) -> None:
    # Numbers as they might be released: the covariance is far from zero, and a variance is not above it.
    cells = made(ADD_REMOVE, 0, UNIT, UNIT, noise=LaplaceNoise(epsilon=Fraction(7)))._cells(
        [1000, -5, sign * 900, 0, 0, 1000]
    )
    found = CorrelationAccuracy(covariance=cells[0, 1], spreads=(cells[0, 0], cells[1, 1]))
    for confidence in (Fraction(1, 2), Fraction(19, 20), Fraction(999, 1000)):
        low, high = found.interval(found.value, confidence)
        assert -1 <= low <= found.value <= high <= 1
