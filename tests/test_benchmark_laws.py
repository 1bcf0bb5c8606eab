"""The accuracy benchmark draws from the laws of whole calls, and its limits hold what they say."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import benchmarks.cells
import benchmarks.peers.arrays
import benchmarks.peers.discreet_draws as draws
from benchmarks.bench_accuracy import errors
from benchmarks.cells import ADD_REMOVE, REPLACE_ONE, Part
from benchmarks.limits import Errors, ratio_limits
from benchmarks.peers.arrays import exponential_maximum
from discreet import Relation, noise
from discreet.adaptive import SmoothSensitivityMechanism, gaussian, laplace, median_query, polynomial, student
from discreet.adaptive.clipped_mean import ClippedMean
from discreet.balls import ball, precision
from discreet.mechanisms import Mean, Quantile
from discreet.mechanisms.additive_noise import GaussianNoise, LaplaceNoise
from discreet.mechanisms.grid import Grid
from discreet.mechanisms.quantile import QuantileAmong
from discreet.robust.refined_regression import RefinedRegression
from discreet.robust.regression_design import Design, RegressionColumns

GRID = Grid.between(0, 100, step=1)
VALUES = np.random.default_rng(1).integers(20, 60, 201).astype(float)
RUNS = 400


@pytest.fixture
def part(tmp_path, monkeypatch):
    for module in (benchmarks.cells, benchmarks.peers.arrays, draws):
        monkeypatch.setattr(module, "FOLDER", tmp_path)
    monkeypatch.setattr("benchmarks.bench_accuracy.FOLDER", tmp_path)
    draws.steps.cache_clear()
    draws.ranked.cache_clear()
    draws.pieces.cache_clear()
    VALUES.tofile(tmp_path / "values.f64")
    return _part()


def _part(**changes):
    facts = {
        "cell": "one",
        "number": 0,
        "share": 1.0,
        "runs": RUNS,
        "task": "median",
        "dataset": "values",
        "relation": REPLACE_ONE,
        "size": len(VALUES),
        "epsilon": "0.5",
        "delta": "0.000001",
        "file": "values.f64",
        "columns": 1,
        "low": "0",
        "high": "100",
        "step": "1",
        "expected": "normal 40 20",
        "facts_hold": True,
    }
    return Part(**(facts | changes))


def apart(one, other):
    """The largest distance of two empirical distribution functions, over what it exceeds once in 10^9."""
    places = np.union1d(one, other)
    gap = np.abs(
        np.searchsorted(np.sort(one), places, "right") / len(one)
        - np.searchsorted(np.sort(other), places, "right") / len(other)
    ).max()
    limit = np.sqrt(np.log(2 / 1e-9) / 2 * (1 / len(one) + 1 / len(other)))
    return gap / limit


MECHANISMS = {
    "quantile": lambda e: Quantile(
        quantile=Fraction(1, 2), epsilon=Fraction(e), grid=GRID, relation=Relation.REPLACE_ONE
    ),
    "quantile by permute-and-flip": lambda e: Quantile(
        quantile=Fraction(1, 2), epsilon=Fraction(e), grid=GRID, relation=Relation.REPLACE_ONE, flips=True
    ),
    "candidates": lambda e: QuantileAmong(
        candidates=tuple(range(0, 101, 4)),
        quantile=Fraction(9, 10),
        epsilon=Fraction(e),
        grid=GRID,
        relation=Relation.ADD_REMOVE,
    ),
    "smooth": lambda e: SmoothSensitivityMechanism(
        query=median_query(grid=GRID, relation=Relation.REPLACE_ONE, public_rows=len(VALUES)),
        recipe=polynomial(e, beta=Fraction(e) / 5),
    ),
    "mean": lambda e: Mean(
        grid=GRID, relation=Relation.REPLACE_ONE, noise=LaplaceNoise(epsilon=Fraction(e)), public_rows=len(VALUES)
    ),
    "clipped": lambda e: ClippedMean(
        grid=GRID, relation=Relation.REPLACE_ONE, epsilon=Fraction(e), public_rows=len(VALUES)
    ),
    "checked": lambda e: ClippedMean(
        grid=Grid.between(0, 1000, step=1),
        relation=Relation.REPLACE_ONE,
        epsilon=5 * Fraction(e),
        public_rows=len(VALUES),
        likely_radius=30,
        preference=1,
        check_share=Fraction(1, 2),
    ),
}


@pytest.mark.statistical
@pytest.mark.parametrize("name", MECHANISMS)
def test_draws_follow_whole_releases(part, name):
    mechanism, other = MECHANISMS[name]("0.1"), MECHANISMS[name]("10")
    rounding = 1e6 if name in ("mean", "clipped", "checked") else 1
    released = np.array([float(mechanism.release(VALUES).value) for _ in range(RUNS)])
    drawn = draws.draw(mechanism, part)
    assert apart(np.rint(released * rounding), np.rint(drawn * rounding)) < 1
    assert apart(np.rint(draws.draw(other, part) * rounding), np.rint(drawn * rounding)) > 1


def test_fits_are_those_of_whole_releases(part, tmp_path):
    """With next to no noise both find the line that the rows lie on."""
    generator = np.random.default_rng(3)
    features = generator.uniform(-1, 1, (2_000, 2))
    np.column_stack([features, features @ [0.3, -0.2] + 0.1]).tofile(tmp_path / "values.f64")
    benchmarks.peers.arrays._read.cache_clear()
    rows = _part(task="regression", columns=3)
    mechanism = RefinedRegression(
        design=Design.between([(-1, 1)] * 2, (-1, 1)),
        relation=Relation.ADD_REMOVE,
        noise=GaussianNoise(squared_multiplier=Fraction(1, 10**6)),
    )
    released = mechanism.release(RegressionColumns(list(benchmarks.peers.arrays.values(rows).T))).value
    assert draws.fits(mechanism, rows)() == pytest.approx([0.3, -0.2, 0.1], abs=0.01)
    assert [float(one) for one in released] == pytest.approx([0.1, 0.3, -0.2], abs=0.01)


@pytest.mark.parametrize(
    "recipe",
    [
        polynomial(1, beta=Fraction(1, 10)),
        student(1, beta=Fraction(1, 10)),
        laplace(1, Fraction(1, 10**6), beta=Fraction(1, 100)),
        gaussian(1, Fraction(1, 10**6), beta=Fraction(1, 100)),
    ],
)
def test_unit_noise_follows_the_law_of_the_recipe(recipe):
    drawn = np.abs(draws.unit_noise(recipe.law, 100_000))
    for z in (Fraction(1, 10), Fraction(1, 2), Fraction(2)):
        with precision(64):
            chance = float(recipe.law.survival(ball(z)))
        # Hoeffding: a share is farther off than this once in 10^9.
        assert abs(np.mean(drawn > float(z)) - chance) < np.sqrt(np.log(2 / 1e-9) / 2 / 100_000)


@pytest.mark.statistical
def test_exponential_maximum_follows_permute_and_flip():
    scores = [3, 2, 0]
    found = exponential_maximum(np.array(scores, dtype=float), 1.0, 4_000, np.random.default_rng())
    flipped = np.array([noise.permute_and_flip(scores, factor=1) for _ in range(4_000)])
    wider = exponential_maximum(np.array(scores, dtype=float), 3.0, 4_000, np.random.default_rng())
    assert apart(found, flipped) < 1 < apart(wider, flipped)


def test_errors_are_relative_and_declining_is_infinitely_wrong(part):
    middle = np.median(VALUES)
    found = errors(part, np.array([middle, 2 * middle, np.nan]))
    assert found.tolist() == [0.0, 1.0, np.inf]


def test_ratio_limits_enclose_the_truth_and_exclude_a_wrong_one():
    generator = np.random.default_rng(2)
    ours, theirs = Errors(generator.exponential(1.0, 5_000)), Errors(generator.exponential(2.0, 5_000))
    ratio, low, high = ratio_limits(ours, theirs)
    assert low < 0.5 < high
    assert low < ratio < high < 0.6


def test_two_errors_of_zero_are_alike():
    assert ratio_limits(Errors(np.zeros(10)), Errors(np.zeros(10))) == (1.0, 1.0, 1.0)


def test_expected_quantiles_lie_on_the_grid_within_the_bounds():
    found = _part(expected="lognormal 30 3").expected_quantiles(9)
    assert found == sorted(set(found))
    assert found[4] == 30.0
    assert {value % 1 for value in found} == {0.0}
    assert max(found) == 100.0


def test_relations_are_the_two_there_are():
    assert {ADD_REMOVE, REPLACE_ONE} == {relation.value for relation in Relation}
