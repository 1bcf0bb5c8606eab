"""Quantiles: pieces agree with the definition, the law with brute force, the bound on the rank with both."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from subjects import ADD_REMOVE, BOTH

from discreet.balls import ball, precision
from discreet.errors import InvalidParameter
from discreet.mechanisms import Grid, Quantile
from discreet.mechanisms.exponential import exponential_outcomes
from discreet.privacy.events import BoundedRange

GRID = Grid(low=Fraction(-2), high=Fraction(9), step=Fraction(1, 2), default=Fraction(0))
Q = st.fractions(min_value=0, max_value=1, max_denominator=20)


def made(**fields: Any) -> Quantile:
    return Quantile(**{"quantile": "1/2", "epsilon": 1, "grid": GRID, "relation": ADD_REMOVE} | fields)


def depth(data: list[Fraction], point: Fraction, q: Fraction) -> Fraction:
    """How far q n lies inside of [rows below, rows below or at]; below 0 where it lies outside."""
    below, at_most = sum(value < point for value in data), sum(value <= point for value in data)
    return min(q * len(data) - below, at_most - q * len(data))


def rank_error(data: list[Fraction], point: Fraction, q: Fraction) -> Fraction:
    """How far q n lies outside of [rows below, rows below or at]."""
    below, at_most = sum(value < point for value in data), sum(value <= point for value in data)
    return max(Fraction(0), q * len(data) - at_most, below - q * len(data))


@given(st.lists(st.integers(-5, 20), max_size=12), Q)
def test_pieces_hold_the_score_of_every_point_for_all_data(data: list[int], q: Fraction) -> None:
    mechanism = made(quantile=q)
    starts, lengths, scores = mechanism.pieces([Fraction(value, 2) for value in data])
    clamped = [min(max(Fraction(value, 2), GRID.low), GRID.high) for value in data]
    covered = []
    for start, length, score in zip(starts.tolist(), lengths.tolist(), scores.tolist(), strict=True):
        for index in range(start, start + length):
            covered.append(index)
            assert score == depth(clamped, index * GRID.step, q) * q.denominator
    assert covered == list(range(GRID.first, GRID.last + 1))


def test_the_law_is_the_exponential_mechanism_over_all_points() -> None:
    data, q = [0, 0, 3, 8], Fraction(1, 4)
    mechanism = made(quantile=q, epsilon=2)
    with precision(128):
        factor = Fraction(2) / (2 * Fraction(3, 4))
        weights = {
            index: ball(factor * depth([Fraction(v) for v in data], index * GRID.step, q)).exp()
            for index in range(GRID.first, GRID.last + 1)
        }
        total = sum(weights.values(), ball(0))
        for index, mass in mechanism.distribution(data).masses.items():
            assert mass.overlaps(weights[index] / total)


def test_a_value_that_many_rows_share_is_chosen_more_surely_than_by_its_rank_error() -> None:
    """A score clamped at 0 leaves the best value and its neighbours half as far apart."""
    data, q = [3] * 8 + [0] * 4 + [8] * 4, Fraction(1, 2)
    mechanism = made(quantile=q, epsilon=1)
    places = {index: index * GRID.step for index in range(GRID.first, GRID.last + 1)}
    clamped = {index: -rank_error([Fraction(v) for v in data], place, q) * 2 for index, place in places.items()}
    best = int(3 / GRID.step)
    with precision(128):
        by_depth = mechanism.distribution(data).masses[best]
        by_error = exponential_outcomes(clamped, factor=mechanism.factor).masses[best]
        assert 1 - by_depth < (1 - by_error) / 8


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize("q", ["0", "1/3", "1/2", "1"])
def test_rank_error_dominates_brute_force(relation: Any, q: str) -> None:
    """The chance of a larger rank error is at most what was asked for, on lopsided data too."""
    mechanism = made(quantile=q, relation=relation)
    for data in ([9.0] * 40, [-2.0, 9.0] * 20, list(np.linspace(-2, 9, 40)), []):
        placed = [int(index) * GRID.step for index in GRID.indices(data)]
        for confidence in (Fraction(1, 2), Fraction(9, 10)):
            bound = mechanism.rank_error(confidence)
            with precision(128):
                masses = mechanism.distribution(data).masses
                far = [
                    mass
                    for index, mass in masses.items()
                    if rank_error(placed, index * GRID.step, mechanism.quantile) > bound
                ]
                assert sum(far, ball(0)) <= ball(1 - confidence)


def test_only_the_grid_the_epsilon_and_the_quantile_decide_about_the_rank_error() -> None:
    assert made(epsilon=2).rank_error() == made().rank_error() / 2
    fine = Grid.between(-2, 9)
    assert made().rank_error() < made(grid=fine).rank_error() < 5 * made().rank_error()


def test_it_is_billed_as_bounded_range() -> None:
    assert made(epsilon="0.3").event == BoundedRange("0.3")


def test_a_long_fraction_does_not_overflow() -> None:
    """Scores in parts of a rank beyond 64 bits."""
    q = Fraction(10**30 + 1, 2 * 10**30)
    release = made(quantile=q, epsilon=50).release(list(range(9)) * 100)
    assert abs(release.value - 4) <= 1


def test_a_million_rows_are_quick_and_near() -> None:
    data = np.random.default_rng(5).normal(4, 1, 200_000)
    grid = Grid.between(-2, 9, step="0.001")
    value = made(grid=grid, epsilon=1).release(data).value
    assert abs(float(value) - np.median(data)) < 0.01


@pytest.mark.parametrize("bad", [{"quantile": -1}, {"quantile": "1.1"}, {"epsilon": 0}, {"relation": "add remove"}])
def test_a_bad_quantile_is_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        made(**bad)
