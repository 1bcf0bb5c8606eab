"""The transform, its error bounds, and bounds that hold on any grid, however bad."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pld_oracles import compose as enumerate_all
from pld_oracles import delta, precision, randomized_response

from discreet.errors import InvalidParameter
from discreet.privacy.events import (
    GDP,
    ApproxDP,
    Composed,
    DiscreteLaplace,
    Event,
    Gaussian,
    Laplace,
    PoissonSampled,
    PureDP,
    RandomizedResponse,
    Repeated,
    SampledWithoutReplacement,
)
from discreet.privacy.pld.convolution import Aim, CompositionPlan, compose
from discreet.privacy.pld.loss_profile import LossProfile, profile
from discreet.privacy.pld.losses import GridLoss
from discreet.privacy.relation import Relation

AR, RO = Relation.ADD_REMOVE, Relation.REPLACE_ONE
SMALL = Fraction(1, 10**6)


def loss_of(mass: list[float], first: int, step: float) -> GridLoss:
    return GridLoss(
        step=step,
        index=np.arange(first, first + len(mass)),
        mass=np.array(mass),
        infinite=0.0,
        infinite_surely=0.0,
        lost=0.0,
        top=math.inf,
        error=0.0,
        slip=0.0,
        width=0.0,
    )


def direct(loss: GridLoss, times: int, epsilon: float) -> float:
    """The finite part of delta by direct convolution, all terms positive."""
    mass = np.ones(1)
    for _ in range(times):
        mass = np.convolve(mass, loss.mass)
    x = (np.arange(len(mass)) + times * int(loss.index[0])) * loss.step
    return float((mass * np.maximum(0.0, -np.expm1(epsilon - x))).sum())


@pytest.mark.parametrize("tilt", [0.0, 0.3, 2.0, 20.0])
@pytest.mark.parametrize("size", [64, 96, 1024])
@pytest.mark.parametrize("extended", [False, True])
def test_bounds_hold_for_any_window_and_tilt(tilt: float, size: int, extended: bool) -> None:
    """However small the window: what is folded into it or left out of it is bounded."""
    loss = loss_of([0.1, 0.2, 0.05, 0.3, 0.25, 0.1], -3, 0.1)
    for start, times in itertools.product((-100, -10, 0, 5), (1, 7, 60)):
        plan = CompositionPlan(tilt, tilt, 0.1, start, size, 0.5, rise=1.0, fall=1.0, extended=extended)
        found = compose([(loss, times)], plan)
        for epsilon in (0.0, 0.05, 0.5, 1.0, 3.0):
            truth = direct(loss, times, epsilon)
            assert found.lower(epsilon) <= truth * (1 + 1e-12)
            assert found.finite(epsilon) >= truth * (1 - 1e-12)


@pytest.mark.parametrize("size", [8, 20, 96, 640, 2048])
def test_many_kinds_of_losses_fit_any_window(size: int) -> None:
    """Short laws are convolved first; what is longer than the window is folded, not cut."""
    masses = [list(np.random.default_rng(seed).dirichlet(np.ones(7 + 30 * seed))) for seed in range(6)]
    losses = [loss_of(mass, -len(mass) // 2, 0.02) for mass in masses]
    everything = np.ones(1)
    for mass in masses:
        everything = np.convolve(everything, mass)
    total = loss_of(list(everything), sum(int(loss.index[0]) for loss in losses), 0.02)
    for tilt, start in itertools.product((0.0, 1.0, 4.0), (-200, 0)):
        plan = CompositionPlan(tilt, tilt, 0.02, start, size, 1.0, rise=1.0, fall=1.0, extended=False)
        found = compose([(loss, 1) for loss in losses], plan)
        for epsilon in (0.0, 0.5, 1.5):
            truth = direct(total, 1, epsilon)
            assert found.lower(epsilon) <= truth * (1 + 1e-12)
            assert found.finite(epsilon) >= truth * (1 - 1e-12)


def test_a_good_window_is_tight_to_ten_digits() -> None:
    loss = loss_of([0.1, 0.2, 0.05, 0.3, 0.25, 0.1], -3, 0.1)
    plan = CompositionPlan(2.0, 2.0, 0.1, -100, 1024, 1.0, rise=3.0, fall=3.0, extended=False)
    found = compose([(loss, 30)], plan)
    for epsilon in (0.5, 1.0, 2.0):
        truth = direct(loss, 30, epsilon)
        assert found.finite(epsilon) == pytest.approx(truth, rel=1e-10)
        assert found.lower(epsilon) == pytest.approx(truth, rel=1e-10)


@pytest.mark.parametrize("extended", [False, True])
@pytest.mark.parametrize("times", [1, 50, 700])
def test_the_noise_of_a_transform_stays_below_its_bound(times: int, extended: bool) -> None:
    from discreet.privacy.pld.convolution import _convolve

    loss = loss_of(list(np.random.default_rng(5).dirichlet(np.ones(40))), 0, 0.1)
    plan = CompositionPlan(0.0, 0.0, 0.1, 0, 40960, 1.0, rise=1.0, fall=1.0, extended=extended)
    mass, noise = _convolve([(loss, times)], [loss.mass], plan)
    exact = np.ones(1)
    square, left = loss.mass, times
    while left:
        exact = np.convolve(exact, square) if left & 1 else exact
        square, left = (np.convolve(square, square), left >> 1) if left > 1 else (square, 0)
    # Direct convolution has relative errors only, of some 1e-13; what is left is the noise of the transform.
    wrong = mass - np.pad(exact, (0, plan.size - len(exact)))
    assert np.linalg.norm(wrong) <= noise + 1e-11 * np.linalg.norm(exact) * times**0.5
    assert noise < 1e-9


@pytest.mark.parametrize("step", [0.001, 0.013, 0.07, 0.1, 0.4, 3.0])
@pytest.mark.parametrize(
    "leaves",
    [
        Counter({PureDP("0.3"): 8}),
        Counter({RandomizedResponse("0.3", 3): 5}),
    ],
)
def test_bounds_hold_on_any_grid(step: float, leaves: Counter[Event], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Aim, "step", lambda self, goal: step)
    (event,) = leaves
    categories = event.categories if isinstance(event, RandomizedResponse) else 2
    with precision(128):
        outcomes = enumerate_all(randomized_response(Fraction("0.3"), categories), leaves[event])
        found = profile(leaves, RO)
        for epsilon in map(Fraction, ("0", "0.25", "0.6", "1.3", "2")):
            low, high = delta(outcomes, epsilon)
            assert found.delta_lower(epsilon) <= high
            assert low <= found.delta_upper(epsilon)


SAMPLED = Counter({PoissonSampled(Gaussian(1), "0.1"): 10})


@pytest.mark.parametrize("step", [0.003, 0.03, 0.3])
@pytest.mark.parametrize("leaves", [SAMPLED, Counter({Laplace(2): 10}), Counter({DiscreteLaplace(20, 10): 10})])
def test_a_coarse_grid_is_only_looser(step: float, leaves: Counter[Event], monkeypatch: pytest.MonkeyPatch) -> None:
    found = profile(leaves, AR)
    best = found.epsilon_upper(SMALL), found.epsilon_lower(SMALL)
    monkeypatch.setattr(Aim, "step", lambda self, goal: step)
    assert found.epsilon_upper(SMALL) >= best[0] * (1 - 1e-3)
    assert found.epsilon_lower(SMALL) <= best[1] * (1 + 1e-3)


def bounds(leaves: Counter[Event], relation: Relation | None, delta: Fraction = SMALL) -> tuple[float, float]:
    found = profile(leaves, relation)
    return found.epsilon_lower(delta), found.epsilon_upper(delta)


@pytest.mark.parametrize(
    ("leaves", "relation"),
    [
        (Counter({Laplace(3): 20, Gaussian(4): 10, PureDP("0.1"): 30}), None),
        (Counter({ApproxDP("0.1", "1e-9"): 30, DiscreteLaplace(5, 2): 10}), None),
        (Counter({PoissonSampled(Laplace(1), "0.05"): 100, Gaussian(10): 5}), AR),
        (Counter({SampledWithoutReplacement(Gaussian(1), 1, 50): 200, RandomizedResponse(1, 4): 1}), RO),
        (Counter({PoissonSampled(ApproxDP(1, "1e-7"), "0.02"): 50}), AR),
    ],
)
def test_the_bounds_of_mixed_compositions_are_close(leaves: Counter[Event], relation: Relation | None) -> None:
    lower, upper = bounds(leaves, relation)
    assert lower <= upper <= lower * 1.01


@pytest.mark.parametrize(
    ("leaves", "relation"),
    [(SAMPLED, AR), (Counter({Laplace(3): 20}), None), (Counter({PureDP("0.2"): 30, Gaussian(3): 1}), None)],
)
def test_epsilon_and_delta_invert_each_other(leaves: Counter[Event], relation: Relation | None) -> None:
    found = profile(leaves, relation)
    epsilon = Fraction(found.epsilon_upper(SMALL))
    assert found.delta_upper(epsilon) == pytest.approx(float(SMALL), rel=5e-3)
    assert 0.9 * float(SMALL) <= found.delta_lower(epsilon) <= float(SMALL)


def test_all_gaussians_are_one() -> None:
    one = bounds(Counter({Gaussian(1): 1, PureDP("0.1"): 1}), None)
    many = bounds(Counter({Gaussian(2): 3, GDP("0.5"): 1, PureDP("0.1"): 1}), None)
    assert many == pytest.approx(one, rel=1e-12)


def test_a_sample_of_everybody_is_no_sample() -> None:
    plain = bounds(Counter({Laplace(2): 6}), AR)
    assert bounds(Counter({PoissonSampled(Repeated(Laplace(2), 3), 1): 2}), AR) == plain
    assert bounds(Counter({SampledWithoutReplacement(Repeated(Laplace(2), 3), 7, 7): 2}), RO) == plain


def test_the_order_of_the_leaves_does_not_matter() -> None:
    parts: list[tuple[Event, int]] = [(Laplace(3), 4), (PureDP("0.2"), 3), (Gaussian(2), 2)]
    found = {bounds(Counter(dict(order)), None) for order in itertools.permutations(parts)}
    assert max(found)[1] - min(found)[1] < 1e-9


@given(st.integers(1, 10**5), st.fractions(Fraction(1, 10**4), Fraction(9, 10)), st.fractions(Fraction(1, 2), 10))
@settings(max_examples=12, deadline=None)
def test_less_noise_or_more_of_anything_costs_more_for_all_parameters(
    times: int, rate: Fraction, sigma: Fraction
) -> None:
    def cost(times: int, rate: Fraction, sigma: Fraction) -> float:
        leaves: Counter[Any] = Counter({PoissonSampled(Gaussian(sigma), rate): times})
        return profile(leaves, AR).epsilon_upper(SMALL)

    base = cost(times, rate, sigma)
    assert cost(times * 11 // 10 + 1, rate, sigma) >= base * (1 - 1e-4)
    assert cost(times, rate * Fraction(11, 10), sigma) >= base * (1 - 1e-4)
    assert cost(times, rate, sigma * Fraction(10, 11)) >= base * (1 - 1e-4)


@pytest.mark.parametrize("leaves", [Counter({PureDP("0.3"): 8}), Counter({Laplace(1): 3}), SAMPLED])
def test_epsilon_falls_as_delta_grows(leaves: Counter[Event]) -> None:
    found = profile(leaves, AR)
    deltas = [Fraction(1, 10**k) for k in (0, 1, 3, 6, 9, 12, 15, 20)]
    upper = [found.epsilon_upper(delta) for delta in deltas]
    lower = [found.epsilon_lower(delta) for delta in deltas]
    assert upper == sorted(upper)
    assert all(low <= high for low, high in zip(lower, upper, strict=True))
    assert lower[-1] > 0.98 * upper[-1]


def test_without_delta_the_largest_loss_counts() -> None:
    assert profile(Counter({PureDP("0.1"): 10}), None).epsilon_upper(Fraction(0)) == pytest.approx(1, rel=1e-12)
    assert profile(Counter({PureDP("0.1"): 10}), None).epsilon_lower(Fraction(0)) == pytest.approx(1, rel=1e-12)
    assert profile(Counter({Gaussian(1): 1}), None).epsilon_upper(Fraction(0)) == math.inf
    sampled = profile(Counter({PoissonSampled(PureDP(1), "0.5"): 2}), AR).epsilon_upper(Fraction(0))
    assert sampled == pytest.approx(2 * math.log1p(0.5 * math.expm1(1)), rel=1e-12)


def test_the_ends_of_the_range_of_delta() -> None:
    found = profile(Counter({Gaussian(1): 1, PureDP("0.1"): 1}), None)
    assert found.epsilon_upper(Fraction(1)) == 0
    assert found.epsilon_upper(Fraction(1, 10**300)) > 30
    everything = profile(Counter({ApproxDP(1, 1): 1, PureDP(1): 2}), None)
    assert everything.epsilon_upper(Fraction(1, 2)) == everything.epsilon_lower(Fraction(1, 2)) == math.inf
    assert everything.delta_upper(Fraction(50)) == everything.delta_lower(Fraction(50)) == 1
    almost = profile(Counter({ApproxDP(1, 1 - Fraction(1, 10**30)): 1}), None)
    assert almost.epsilon_upper(Fraction(1, 2)) == math.inf
    assert almost.delta_upper(Fraction(1)) == 1
    hardly = profile(Counter({ApproxDP(1, Fraction(1, 10**400)): 1}), None)
    assert hardly.epsilon_upper(Fraction(0)) == math.inf
    assert hardly.epsilon_upper(Fraction(1, 10**200)) <= 1.000001
    assert hardly.delta_lower(Fraction(50)) == 0 < hardly.delta_upper(Fraction(50))
    for inner in (ApproxDP(1, Fraction(1, 10**400)), Composed([ApproxDP(1, Fraction(1, 10**400)), PureDP(1)])):
        rare = profile(Counter({PoissonSampled(inner, "0.01"): 3}), AR)
        other = profile(Counter({SampledWithoutReplacement(inner, 1, 100): 3}), RO)
        for found in (rare, other):
            assert found.epsilon_upper(Fraction(0)) == math.inf
            assert 0 < found.delta_upper(Fraction(50)) < 1e-300
    nothing = profile(Counter({PureDP(0): 5}), None)
    assert nothing.epsilon_upper(SMALL) == 0
    assert nothing.delta_upper(Fraction(0)) < 1e-9


def test_a_sample_of_almost_everybody_is_almost_no_sample() -> None:
    plain = profile(Counter({Laplace(2): 6}), AR).epsilon_upper(SMALL)
    for missing in (Fraction(1, 10**12), Fraction(1, 10**18)):
        sampled = profile(Counter({PoissonSampled(Laplace(2), 1 - missing): 6}), AR).epsilon_upper(SMALL)
        assert plain * 0.999 <= sampled <= plain * 1.001


def test_an_epsilon_beyond_all_losses_leaves_nothing() -> None:
    for leaves in (Counter({PureDP(1): 3}), Counter({Gaussian(1): 1, Laplace(1): 1}), SAMPLED):
        assert profile(leaves, AR).delta_upper(Fraction(10**400)) < 1e-280


@pytest.mark.parametrize("bad", ["-0.1", "1.5"])
def test_a_delta_that_is_no_probability_is_refused(bad: str) -> None:
    found = profile(Counter({PureDP(1): 1}), None)
    for bound in (found.epsilon_upper, found.epsilon_lower):
        with pytest.raises(InvalidParameter):
            bound(Fraction(bad))


def test_nonsense_is_refused() -> None:
    found = profile(Counter({PureDP(1): 1}), None)
    for bound in (found.delta_upper, found.delta_lower):
        with pytest.raises(InvalidParameter):
            bound(Fraction(-1))
    for leaves in (Counter(), Counter({PureDP(1): 0}), Counter({PureDP(1): -3})):
        with pytest.raises(InvalidParameter):
            profile(leaves, None)


def test_a_profile_is_frozen() -> None:
    found = profile(Counter({PureDP(1): 1}), None)
    assert isinstance(found, LossProfile)
    with pytest.raises(AttributeError):
        found.terms = ()  # type: ignore[misc]


def test_a_composition_in_a_sample_of_fixed_size_is_not_bounded_from_below() -> None:
    """No bound is known for losses that cross 0 on the grid, so none is claimed. Gaussians alone become one step."""
    mixed = SampledWithoutReplacement(Composed([Laplace(1), PureDP(1)]), 1, 10)
    found = profile(Counter({mixed: 5}), RO)
    assert found.epsilon_lower(SMALL) == found.delta_lower(Fraction(1, 2)) == 0 < found.epsilon_upper(SMALL)
    normal = SampledWithoutReplacement(Composed([Gaussian(1), Gaussian(2)]), 1, 10)
    assert profile(Counter({normal: 5}), RO).epsilon_lower(SMALL) > 0


def test_a_grid_too_coarse_for_a_lower_bound_gives_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Aim, "step", lambda self, goal: 0.5)
    found = profile(Counter({PoissonSampled(Gaussian(1), "0.01"): 1000}), AR)
    assert found.epsilon_lower(SMALL) == found.delta_lower(Fraction(1)) == 0
