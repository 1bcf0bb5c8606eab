"""Vectors: clipping that never exceeds its bound, noise of any covariance."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import isqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from subjects import ADD_REMOVE, BOTH, correlated, laplace

from discreet.errors import InvalidParameter
from discreet.mechanisms import CorrelatedGaussian, GaussianNoise, VectorMean, correlated_gaussian
from discreet.mechanisms.correlated_gaussian import _normal_quantile_up, _root_down, _root_up
from discreet.mechanisms.vector_mean import clip_to_ball
from discreet.privacy.events import Gaussian

ENTRIES = st.integers(-(2**20), 2**20)


@given(st.lists(st.lists(ENTRIES, min_size=3, max_size=3), min_size=1, max_size=20), st.integers(1, 2**20))
def test_clipped_rows_never_exceed_the_bound_for_all_rows(rows: list[list[int]], radius: int) -> None:
    clipped = clip_to_ball(np.array(rows), radius)
    for row, short in zip(rows, clipped.tolist(), strict=True):
        squares = sum(value**2 for value in row)
        assert sum(value**2 for value in short) <= radius**2
        if squares <= radius**2:
            assert short == row
        for value, cut in zip(row, short, strict=True):
            # Never past the exact quotient, and less than two steps short of it.
            exact = isqrt(value**2 * radius**2 // squares) if squares > radius**2 else abs(value)
            assert exact - 1 <= abs(cut) <= exact
            assert cut * value >= 0


def vector_mean(**fields: Any) -> VectorMean:
    known = {"bound": 5, "step": 1, "dimension": 2, "relation": ADD_REMOVE, "noise": laplace(1)}
    return VectorMean(**known | fields)


def test_rows_of_any_kind_are_clipped_alike() -> None:
    mechanism = vector_mean()
    rows = [[3, 4], [300.0, 400.0], [float("nan"), 1], [float("inf"), 0], [1, 2, 3], ["2", None], [-0.4, 0.6]]
    expected = [[3, 4], [3, 3], [0, 1], [5, 0], [0, 0], [2, 0], [0, 1]]
    found = mechanism.clip(rows).tolist()
    assert found[:1] + found[2:] == expected[:1] + expected[2:]
    assert found[1][0] in (2, 3)
    assert sum(value**2 for value in found[1]) <= 25
    matrix = np.array([[3.0, 4.0], [np.inf, 0.0], [np.nan, 1.0]])
    assert mechanism.clip(matrix).tolist() == [[3, 4], [5, 0], [0, 1]]


def test_a_table_of_another_shape_is_refused() -> None:
    for rows in (np.zeros((3, 3)), np.zeros(3)):
        with pytest.raises(InvalidParameter):
            vector_mean().release(rows)


@pytest.mark.parametrize(
    "bad",
    [{"bound": 0}, {"bound": "1/2"}, {"dimension": 0}, {"step": 0}, {"public_rows": 5},
     {"bound": 2**31, "dimension": 2}, {"count_share": 0}, {"count_share": 1}],
)  # fmt: skip
def test_a_bad_vector_mean_is_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        vector_mean(**bad)


def test_vector_means_are_near_and_enclosed() -> None:
    rows = np.tile([[0.3, -0.4, 0.0]], (5000, 1))
    mechanism = vector_mean(bound=1, step="1/1000", dimension=3, noise=GaussianNoise.for_rho(5))
    release = mechanism.release(rows)
    for value, truth in zip(release.value, (0.3, -0.4, 0.0), strict=True):
        assert abs(float(value) - truth) < 0.01
    assert all(low <= value <= high for value, (low, high) in zip(release.value, release.interval(), strict=True))


MATRICES = st.integers(1, 4).flatmap(
    lambda size: st.lists(st.lists(st.integers(-5, 5), min_size=size, max_size=size), min_size=size, max_size=size)
)


@given(MATRICES)
def test_a_covariance_is_factored_exactly_for_all_matrices(rows: list[list[int]]) -> None:
    size = len(rows)
    covariance = tuple(
        tuple(Fraction(sum(a * b for a, b in zip(x, y, strict=True)) + (i == j)) for j, y in enumerate(rows))
        for i, x in enumerate(rows)
    )
    lower, variances = correlated_gaussian.factor(correlated_gaussian.read_covariance(covariance))
    for i in range(size):
        for j in range(size):
            assert sum(lower[i][k] * lower[j][k] * variances[k] for k in range(size)) == covariance[i][j]
    vector = tuple(Fraction(value) for value in range(size))
    assert correlated_gaussian.times(lower, correlated_gaussian.solve(lower, vector)) == vector


@pytest.mark.parametrize(
    "covariance",
    [(), ((1, 2),), ((1, 2), (3, 1)), ((1, 2), (2, 1)), ((0,),), ((-1,),), ((1, 1), (1, 1)), ((float("nan"),),)],
)
def test_what_is_no_covariance_is_refused(covariance: Any) -> None:
    with pytest.raises(InvalidParameter):
        CorrelatedGaussian(covariance=covariance, squared_sensitivity=Fraction(1), relation=ADD_REMOVE)


@pytest.mark.parametrize("relation", BOTH)
def test_rounding_costs_less_the_finer_the_grid(relation: Any) -> None:
    charged = [correlated(relation, fineness).charged for fineness in (0, 8, 16, 24)]
    asked = correlated(relation).squared_sensitivity
    assert charged == sorted(charged, reverse=True)
    assert asked < charged[-1] < asked * (1 + Fraction(1, 10**6))
    assert correlated(relation, 24).event == Gaussian(variance=1, squared_sensitivity=charged[-1])


@pytest.mark.statistical
def test_noise_has_the_covariance_asked_for() -> None:
    """Entries are off by eight standard errors less than once in 1e9 runs. The wrong neighbour is independent."""
    mechanism = CorrelatedGaussian(
        covariance=((400, 300, 0), (300, 900, -200), (0, -200, 100)),  # type: ignore[arg-type]
        squared_sensitivity=Fraction(1),
        relation=ADD_REMOVE,
    )
    answer = (1000, -50, 7)
    sample = np.array([[float(part) for part in mechanism.release(answer).value] for _ in range(1000)])
    expected = np.array(mechanism.covariance, dtype=float)
    scale = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    found = np.cov(sample.T)
    # The standard error of a covariance is at most sqrt(2 / n) in units of the two deviations: 0.045.
    assert (np.abs(found - expected) < 0.35 * scale).all()
    assert abs(found[0, 1]) > 0.15 * scale[0, 1]  # independent noise would be rejected
    assert (np.abs(sample.mean(axis=0) - answer) < 7 * np.sqrt(np.diag(expected) / 1000)).all()


@pytest.mark.statistical
def test_intervals_of_correlated_noise_cover() -> None:
    mechanism = correlated(ADD_REMOVE, 24)
    missed = 0
    for _ in range(200):
        for low_high, truth in zip(mechanism.release((5, 9)).interval("0.6"), (5, 9), strict=True):
            missed += not low_high[0] <= truth <= low_high[1]
    assert 70 < missed < 260  # of 400, two by two dependent; 160 expected


def test_roots_are_rounded_the_safe_way() -> None:
    for value in (Fraction(2), Fraction(1, 3), Fraction(10**30), Fraction(1, 10**30), Fraction(4)):
        assert _root_up(value) ** 2 >= value
        assert _root_up(value) ** 2 <= value * (1 + Fraction(1, 2**60)) + Fraction(1, 2**60)
        assert value / 4 < _root_down(value) ** 2 <= value


def test_normal_quantiles_are_rounded_up() -> None:
    from scipy.stats import norm

    for confidence in (0.5, 0.95, 0.999999):
        exact = norm.isf((1 - confidence) / 2)
        assert exact <= float(_normal_quantile_up(Fraction(str(confidence)))) <= exact * (1 + 1e-5) + 1e-5


@pytest.mark.parametrize("fineness", [0, 1])
@pytest.mark.parametrize(
    "covariance",
    [((1, Fraction(1, 2)), (Fraction(1, 2), Fraction(5, 4))), ((3, 1), (1, 2)), ((Fraction(1, 3), 0), (0, 7))],
)
def test_the_shift_of_turned_answers_dominates_brute_force_at_low_fineness(covariance, fineness):
    """Rounding moves neighbours apart by up to a step each; the wrong neighbour leaves out how both add up."""
    (a, b), (_, d) = covariance
    inverse = tuple(tuple(Fraction(x) / (a * d - b * b) for x in row) for row in ((d, -b), (-b, a)))
    moves = [(1, 0), (0, 1), (1, 1), (1, -1)]
    squared = max(sum(x * inverse[i][j] * y for i, x in enumerate(m) for j, y in enumerate(m)) for m in moves)
    mechanism = CorrelatedGaussian(
        covariance=covariance, squared_sensitivity=squared, relation=ADD_REMOVE, fineness=fineness
    )
    _, variances = correlated_gaussian.factor(mechanism.covariance)
    answers = list(product(range(-8, 9), repeat=2))
    turned = {answer: mechanism.turned(answer) for answer in answers}
    shifts = [
        sum(
            ((one - other) * step) ** 2 / variance
            for one, other, step, variance in zip(turned[x], turned[y], mechanism.steps, variances, strict=True)
        )
        for x in answers
        for move in moves
        if (y := (x[0] + move[0], x[1] + move[1])) in turned
    ]
    assert max(shifts) <= mechanism.charged == mechanism.event.squared_sensitivity


@pytest.mark.long
def test_leaving_out_the_cross_term_of_rounding_is_caught():
    covariance = ((1, Fraction(1, 2)), (Fraction(1, 2), Fraction(5, 4)))
    mechanism = CorrelatedGaussian(covariance=covariance, squared_sensitivity=1, relation=ADD_REMOVE, fineness=0)
    _, variances = correlated_gaussian.factor(mechanism.covariance)
    rounding = sum(step**2 / variance for step, variance in zip(mechanism.steps, variances, strict=True))
    wrong = mechanism.squared_sensitivity + rounding
    answers = list(product(range(-8, 9), repeat=2))
    close = [(x, y) for x, y in product(answers, answers) if mahalanobis(covariance, x, y) <= 1]
    apart = [
        sum(
            ((one - other) * step) ** 2 / variance
            for one, other, step, variance in zip(
                mechanism.turned(x), mechanism.turned(y), mechanism.steps, variances, strict=True
            )
        )
        for x, y in close
    ]
    assert wrong < max(apart) <= mechanism.charged


def mahalanobis(covariance, x, y):
    (a, b), (_, d) = covariance
    u, v = x[0] - y[0], x[1] - y[1]
    return (d * u * u - 2 * b * u * v + a * v * v) / (a * d - b * b)
