"""Closed privacy profiles against laws written out."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from privacy_brute_force import discrete_laplace, hockey_stick, product, response

from discreet.privacy import (
    ApproxDP,
    BoundedRange,
    Composed,
    DiscreteLaplace,
    Event,
    Gaussian,
    Laplace,
    PoissonSampled,
    PureDP,
    RandomizedResponse,
    Relation,
    Repeated,
    SampledWithoutReplacement,
    delta,
    epsilon,
    epsilon_bounds,
)

AR, RO = Relation.ADD_REMOVE, Relation.REPLACE_ONE
LEVELS = (0.0, 0.05, 0.3, 0.7, 1.0, 1.7, 3.2)
SLACK = 1e-13


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("scale", "shift"), [("0.4", 1), ("2", 1), ("1.5", 4), ("5", 7), ("1", 3), ("10", 30)])
def test_discrete_laplace_profile_is_the_brute_force_sum(scale: str, shift: int, level: float) -> None:
    p, q = discrete_laplace(float(scale), 0), discrete_laplace(float(scale), shift)
    found = delta(DiscreteLaplace(scale, shift), level)
    assert found == pytest.approx(hockey_stick(p, q, level), abs=SLACK)
    assert found == pytest.approx(hockey_stick(q, p, level), abs=SLACK)


@pytest.mark.parametrize("level", LEVELS)
def test_discrete_laplace_profile_dominates_brute_force_of_every_split_of_the_l1_distance(level: float) -> None:
    for scale, parts in (("1.5", (2, 2)), ("2", (1, 1, 1)), ("0.8", (1, 3)), ("3", (5, 1))):
        p = product(*(discrete_laplace(float(scale), 0, 40) for _ in parts))
        q = product(*(discrete_laplace(float(scale), shift, 40) for shift in parts))
        assert delta(DiscreteLaplace(scale, sum(parts)), level) >= hockey_stick(p, q, level) - SLACK


def test_discrete_laplace_needs_no_enumeration() -> None:
    far, near = DiscreteLaplace(10**12, 10**12), Laplace(1)
    assert delta(far, "0.5") == pytest.approx(delta(near, "0.5"), rel=1e-9)


@pytest.mark.parametrize("level", LEVELS)
def test_laplace_profile_dominates_brute_force(level: float) -> None:
    # A fine grid of the continuous law is a post-processing, so it is below, and close.
    p, q = discrete_laplace(1000.0, 0, 40_000), discrete_laplace(1000.0, 800, 40_000)
    found = delta(Laplace("1.25"), level)
    assert hockey_stick(p, q, level) == pytest.approx(found, abs=2e-3)
    assert found == pytest.approx(max(0.0, 1 - math.exp((level - 0.8) / 2)), abs=SLACK)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("categories", [2, 3, 10])
def test_response_profile_is_the_brute_force_sum(categories: int, level: float) -> None:
    p, q = response(1.3, categories, 0), response(1.3, categories, 1)
    assert delta(RandomizedResponse("1.3", categories), level) == pytest.approx(hockey_stick(p, q, level), abs=SLACK)


@pytest.mark.parametrize("level", LEVELS)
def test_approximate_profile_is_that_of_its_worst_pair(level: float) -> None:
    chance = 0.01
    p = np.concatenate([[chance, 0], (1 - chance) * response(1.3, 2, 0)])
    q = np.concatenate([[0, chance], (1 - chance) * response(1.3, 2, 1)])
    assert delta(ApproxDP("1.3", "0.01"), level) == pytest.approx(hockey_stick(p, q, level), abs=SLACK)


@given(
    weights=st.lists(st.floats(0.01, 1), min_size=2, max_size=6),
    losses=st.lists(st.floats(0, 1), min_size=6, max_size=6),
    width=st.floats(0.05, 6),
    level=st.floats(0, 6),
)
@settings(max_examples=150, deadline=None)
def test_bounded_range_profile_dominates_brute_force(
    weights: list[float], losses: list[float], width: float, level: float
) -> None:
    """An exponential mechanism with scores that differ by 0 … width: its losses span `width` at most."""
    p = np.array(weights) / sum(weights)
    q = p * np.exp(-width * np.array(losses[: len(weights)]))
    q /= q.sum()
    claim = delta(BoundedRange(Fraction(width)), Fraction(level))
    assert hockey_stick(p, q, level) <= claim + SLACK
    assert hockey_stick(q, p, level) <= claim + SLACK


@pytest.mark.parametrize("level", LEVELS)
def test_bounded_range_profile_is_reached(level: float) -> None:
    width = 3.5
    t = (width + level) / 2
    first = (math.exp(width) - math.exp(t)) / (math.exp(width) - 1)
    p, q = np.array([first, 1 - first]), np.array([first * math.exp(-t), (1 - first) * math.exp(width - t)])
    assert delta(BoundedRange("3.5"), level) == pytest.approx(hockey_stick(p, q, level), abs=SLACK)


def test_bounded_range_formula_does_not_hold_for_pure_privacy() -> None:
    p, q = response(1.0, 2, 0), response(1.0, 2, 1)
    assert hockey_stick(p, q, 0.5) > 1.5 * delta(BoundedRange(1), "0.5")
    assert hockey_stick(p, q, 0.5) <= delta(PureDP(1), "0.5") + SLACK


@pytest.mark.parametrize("times", [1, 2, 3, 7, 8])
@pytest.mark.parametrize("level", LEVELS)
def test_repeated_response_profile_is_the_brute_force_sum(times: int, level: float) -> None:
    p, q = product(*[response(0.6, 2, 0)] * times), product(*[response(0.6, 2, 1)] * times)
    found = delta(Repeated(PureDP("0.6"), times), level)
    assert found == pytest.approx(hockey_stick(p, q, level), abs=SLACK)


@pytest.mark.parametrize("q", ["0.01", "0.3", "0.9", "1"])
@pytest.mark.parametrize("level", LEVELS)
def test_sampled_profile_is_the_brute_force_sum_in_the_worse_direction(q: str, level: float) -> None:
    with_unit, without = discrete_laplace(1.5, 2), discrete_laplace(1.5, 0)
    mixture = float(q) * with_unit + (1 - float(q)) * without
    removing, adding = hockey_stick(mixture, without, level), hockey_stick(without, mixture, level)
    assert adding <= removing + SLACK
    assert delta(PoissonSampled(DiscreteLaplace("1.5", 2), q), level, relation=AR) == pytest.approx(removing, abs=SLACK)


CLOSED: list[tuple[Event, Relation | None]] = [
    (PureDP("0.7"), None),
    (Laplace(2), None),
    (DiscreteLaplace(3, 5), None),
    (RandomizedResponse(1, 4), None),
    (BoundedRange(2), None),
    (ApproxDP(1, "1e-13"), None),
    (Gaussian(3), None),
    (Repeated(PureDP("0.1"), 50), None),
    (PoissonSampled(Gaussian(1), "0.1"), AR),
    (PoissonSampled(Laplace(1), "0.1"), AR),
    (SampledWithoutReplacement(RandomizedResponse(1, 3), 1, 10), RO),
]


@pytest.mark.parametrize(("event", "relation"), CLOSED)
def test_epsilon_and_delta_are_inverse(event: Event, relation: Relation | None) -> None:
    for target in ("1e-12", "1e-6", "0.01"):
        lower, upper = epsilon_bounds(event, target, relation=relation)
        assert 0 <= lower <= upper < math.inf
        assert delta(event, Fraction(upper), relation=relation) <= float(target) * (1 + 1e-12)
        assert upper - lower <= 1e-12 * max(1.0, upper)


@pytest.mark.parametrize(("event", "relation"), CLOSED)
def test_profiles_fall(event: Event, relation: Relation | None) -> None:
    deltas = [delta(event, Fraction(level, 20), relation=relation) for level in range(0, 140, 7)]
    assert all(before >= after for before, after in pairwise(deltas))
    assert all(0 <= value <= 1 for value in deltas)


def test_at_delta_zero_pure_events_keep_their_exact_epsilon() -> None:
    assert epsilon_bounds(PureDP(1), 0) == (1, 1)
    assert epsilon(Composed([PureDP("0.1")] * 10), 0) == 1
    assert epsilon_bounds(Composed([Laplace(2), DiscreteLaplace(3, 3)]), 0) == (1.5, 1.5)
    assert epsilon(Composed([Laplace(2), DiscreteLaplace(3, 3), BoundedRange("0.5")]), 0) == 2
    assert epsilon_bounds(Gaussian(1), 0) == (math.inf, math.inf)
    lower, upper = epsilon_bounds(PoissonSampled(PureDP(1), "0.5"), 0, relation=AR)
    assert lower <= math.log(1 + 0.5 * math.expm1(1)) <= upper <= lower + 1e-15


def test_at_its_own_delta_an_approximate_event_keeps_its_epsilon() -> None:
    event = ApproxDP(1, "1e-7")
    assert epsilon_bounds(event, "1e-7") == (1, 1)
    assert epsilon_bounds(event, "0.99e-7") == (math.inf, math.inf)
    assert epsilon(event, "1.01e-7") <= 1
