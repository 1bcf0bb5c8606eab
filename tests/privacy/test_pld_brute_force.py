"""Numerical bounds against outcomes that are enumerated in ball arithmetic."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

import pytest
from pld_oracles import (
    Outcomes,
    compose,
    delta,
    discrete_gaussian,
    discrete_laplace,
    poisson,
    precision,
    product,
    randomized_response,
    reverse,
)

from discreet.balls import ball
from discreet.privacy.events import (
    ApproxDP,
    BoundedRange,
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    PoissonSampled,
    PureDP,
    RandomizedResponse,
    Repeated,
    SampledWithoutReplacement,
)
from discreet.privacy.pld.loss_profile import LossProfile, profile
from discreet.privacy.relation import Relation

AR, RO = Relation.ADD_REMOVE, Relation.REPLACE_ONE
EPSILONS = [Fraction(text) for text in ("0", "0.1", "0.5", "1", "1.7", "2.5", "4")]


def assert_encloses(found: LossProfile, outcomes: Outcomes, *, tight: float, below: float | None = None) -> None:
    """Both bounds hold everywhere, and are within the fraction `tight`, or `below`, where delta is not tiny."""
    for epsilon in EPSILONS:
        low, high = delta(outcomes, epsilon)
        upper, lower = found.delta_upper(epsilon), found.delta_lower(epsilon)
        assert lower <= high
        assert low <= upper
        if low > 1e-14:
            assert upper <= high * (1 + tight), epsilon
            assert lower >= low * (1 - (tight if below is None else below)), epsilon


@pytest.mark.parametrize(("epsilon", "categories", "times"), [("1", 2, 1), ("0.5", 2, 12), ("0.3", 3, 9), ("1", 5, 6)])
def test_randomized_response_equals_enumeration(epsilon: str, categories: int, times: int) -> None:
    with precision(128):
        outcomes = compose(randomized_response(Fraction(epsilon), categories), times)
        found = profile(Counter({RandomizedResponse(epsilon, categories): times}), RO)
        assert_encloses(found, outcomes, tight=1e-6)


@pytest.mark.parametrize("event", [PureDP("0.4"), BoundedRange("0.4"), ApproxDP("0.4", 0)])
def test_pure_privacy_is_binary_randomized_response(event: Event) -> None:
    with precision(128):
        outcomes = compose(randomized_response(Fraction("0.4"), 2), 10)
        assert_encloses(profile(Counter({event: 10}), None), outcomes, tight=1e-6)


def test_approximate_privacy_tells_all_with_probability_delta() -> None:
    leak = Fraction(1, 50)
    with precision(128):
        base = randomized_response(Fraction(1, 2), 2)
        one = [(ball(1 - leak) * p, ball(1 - leak) * q) for p, q in base] + [(ball(leak), ball(0))]
        found = profile(Counter({ApproxDP("0.5", leak): 4}), None)
        assert_encloses(found, compose(one, 4), tight=1e-6)
    ever = 1 - (1 - leak) ** 4
    assert found.epsilon_upper(ever - Fraction(1, 10**9)) == float("inf")
    assert found.epsilon_lower(ever - Fraction(1, 10**9)) == float("inf")
    assert found.epsilon_upper(ever + Fraction(1, 10**9)) <= 2.000001


@pytest.mark.parametrize(
    ("scale", "shift", "times"), [("2", 1, 5), ("2", 4, 3), ("0.7", 3, 4), ("10/3", 7, 2), ("50", 40, 1)]
)
def test_discrete_laplace_equals_enumeration(scale: str, shift: int, times: int) -> None:
    with precision(128):
        outcomes = compose(discrete_laplace(Fraction(scale), shift), times)
        found = profile(Counter({DiscreteLaplace(scale, shift): times}), None)
        assert_encloses(found, outcomes, tight=1e-6)


@pytest.mark.parametrize(("sigma", "shift", "times"), [("1", 1, 2), ("0.6", 1, 3), ("2", 3, 1)])
def test_discrete_gaussian_equals_enumeration(sigma: str, shift: int, times: int) -> None:
    with precision(256):
        outcomes = compose(discrete_gaussian(Fraction(sigma) ** 2, shift, 20 if times < 3 else 8), times)
        found = profile(Counter({DiscreteGaussian(sigma, shift): times}), None)
        assert_encloses(found, outcomes, tight=1e-6)


@pytest.mark.parametrize("rate", ["0.01", "0.3", "0.9"])
def test_poisson_sampling_dominates_brute_force_in_both_directions(rate: str) -> None:
    with precision(128):
        one = poisson(randomized_response(Fraction(1), 2), Fraction(rate))
        found = profile(Counter({PoissonSampled(PureDP(1), rate): 4}), AR)
        both = [compose(one, 4), compose(reverse(one), 4)]
        for epsilon in EPSILONS:
            bounds = [delta(outcomes, epsilon) for outcomes in both]
            assert found.delta_upper(epsilon) >= max(low for low, _ in bounds)
            assert found.delta_lower(epsilon) <= max(high for _, high in bounds)
            assert found.delta_upper(epsilon) <= max(high for _, high in bounds) * 1.002 + 1e-14


def test_a_sampled_composition_encloses_brute_force() -> None:
    with precision(128):
        inner = product(compose(randomized_response(Fraction(1, 2), 2), 2), discrete_laplace(Fraction(2), 2))
        outcomes = compose(poisson(inner, Fraction(1, 4)), 2)
        event = PoissonSampled(Composed([Repeated(PureDP("0.5"), 2), DiscreteLaplace(2, 2)]), "1/4")
        found = profile(Counter({event: 2}), AR)
        for epsilon in EPSILONS[:5]:
            low, high = delta(outcomes, epsilon)
            assert low <= found.delta_upper(epsilon) <= high * 1.003 + 1e-12
            assert low * 0.9 - 1e-4 <= found.delta_lower(epsilon) <= high


def fixed_size(outcomes: Outcomes, rate: Fraction) -> Outcomes:
    """Positive losses as in Poisson sampling, their mirror images, and the rest of the mass at loss 0."""
    above = [(p, q) for p, q in poisson(outcomes, rate) if p > q]
    rest = 1 - sum((p + q for p, q in above), 0 * above[0][0])
    return [*above, *reverse(above), (rest, rest)]


@pytest.mark.parametrize("times", [1, 3])
def test_sampling_without_replacement_equals_brute_force(times: int) -> None:
    with precision(128):
        one = fixed_size(discrete_laplace(Fraction(1), 2), Fraction(3, 10))
        found = profile(Counter({SampledWithoutReplacement(DiscreteLaplace(1, 2), 3, 10): times}), RO)
        assert_encloses(found, compose(one, times), tight=1e-3, below=0.05)


def test_sampling_without_replacement_dominates_a_real_sampler() -> None:
    """Two people, one of them drawn, who then answers by randomized response: replace one of the two."""
    with precision(128):
        truth, lie = randomized_response(Fraction(1), 2)[0]
        # The other person's answer is fixed; the output is the drawn answer.
        yes = ((truth + lie) / 2, (lie + lie) / 2)
        no = ((lie + truth) / 2, (truth + truth) / 2)
        event: Any = SampledWithoutReplacement(PureDP(1), 1, 2)
        for times in (1, 5):
            found = profile(Counter({event: times}), RO)
            for outcomes in (compose([yes, no], times), compose(reverse([yes, no]), times)):
                for epsilon in EPSILONS:
                    assert found.delta_upper(epsilon) >= delta(outcomes, epsilon)[0]


def test_different_leaves_equal_enumeration() -> None:
    with precision(128):
        outcomes = product(
            product(compose(randomized_response(Fraction(1, 5), 2), 3), discrete_laplace(Fraction(3), 2)),
            compose(randomized_response(Fraction(1, 3), 4), 2),
        )
        leaves = Counter({PureDP("0.2"): 3, DiscreteLaplace(3, 2): 1, RandomizedResponse("1/3", 4): 2})
        assert_encloses(profile(leaves, RO), outcomes, tight=1e-6)


def test_losses_without_a_common_lattice_are_enclosed() -> None:
    with precision(128):
        outcomes = product(
            compose(randomized_response(Fraction("0.1000001"), 2), 6),
            compose(randomized_response(Fraction("0.2718281"), 2), 5),
        )
        found = profile(Counter({PureDP("0.1000001"): 6, PureDP("0.2718281"): 5}), None)
        assert_encloses(found, outcomes, tight=1e-3, below=0.1)
