"""Three independent accounts of the same events: closed forms, loss distributions, Renyi divergences."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import pytest

from discreet.privacy import (
    GDP,
    ZCDP,
    ApproxDP,
    BoundedRange,
    Composed,
    DiscreteGaussian,
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
    epsilon,
    epsilon_bounds,
)
from discreet.privacy.event_tree import spent
from discreet.privacy.guarantee import curve
from discreet.privacy.pld.loss_profile import profile
from discreet.privacy.renyi_bounds import renyi_curve

AR, RO = Relation.ADD_REMOVE, Relation.REPLACE_ONE

SINGLE: list[tuple[Event, Relation | None]] = [
    (PureDP("0.7"), None),
    (Laplace("1.3"), None),
    (DiscreteLaplace(3, 5), None),
    (RandomizedResponse("1.5", 4), None),
    (ApproxDP(1, "1e-9"), None),
    (GDP("0.8"), None),
    (Repeated(PureDP("0.2"), 40), None),
    (Repeated(ApproxDP("0.2", "1e-10"), 40), None),
    (PoissonSampled(Gaussian(1), "0.2"), AR),
    (PoissonSampled(Laplace(1), "0.2"), AR),
    (PoissonSampled(DiscreteLaplace(2, 3), "0.2"), AR),
    (SampledWithoutReplacement(Gaussian(1), 1, 5), RO),
    (SampledWithoutReplacement(PureDP(1), 1, 5), RO),
]


@pytest.mark.parametrize("target", ["1e-8", "1e-4", "0.05"])
@pytest.mark.parametrize(("event", "relation"), SINGLE, ids=[repr(event)[:50] for event, _ in SINGLE])
def test_closed_forms_and_loss_distributions_agree(event: Event, relation: Relation | None, target: str) -> None:
    lower, upper = epsilon_bounds(event, target, relation=relation)
    assert upper - lower <= 1e-10  # A closed form was used.
    numerical = profile(spent(event, relation).events, relation)
    below, above = numerical.epsilon_lower(Fraction(target)), numerical.epsilon_upper(Fraction(target))
    assert below <= upper + 1e-9
    assert above >= lower - 1e-9
    assert above <= 1.02 * upper + 1e-3


COMPOSED: list[tuple[Event, Relation | None]] = [
    (Repeated(Laplace(3), 10), None),
    (Repeated(DiscreteLaplace(5, 3), 20), None),
    (Repeated(RandomizedResponse("0.3", 5), 30), None),
    (Repeated(DiscreteGaussian(4, 1), 10), None),
    (Composed([Gaussian(2), Laplace(3), PureDP("0.1"), ApproxDP("0.2", "1e-9")]), None),
    (Repeated(PoissonSampled(Gaussian("0.8"), "0.02"), 300), AR),
    (Repeated(PoissonSampled(Laplace("0.8"), "0.02"), 300), AR),
    (PoissonSampled(Composed([Gaussian(2), Laplace(3)]), "0.1"), AR),
    (Repeated(SampledWithoutReplacement(Gaussian(2), 1, 10), 50), RO),
    (Repeated(SampledWithoutReplacement(DiscreteLaplace(3, 2), 1, 10), 50), RO),
]


@pytest.mark.parametrize("target", ["1e-7", "1e-3"])
@pytest.mark.parametrize(("event", "relation"), COMPOSED, ids=[repr(event)[:50] for event, _ in COMPOSED])
def test_divergences_never_fall_below_the_lower_bound_of_loss_distributions(
    event: Event, relation: Relation | None, target: str
) -> None:
    lower, upper = epsilon_bounds(event, target, relation=relation)
    by_divergence = renyi_curve(spent(event, relation)).upper(Fraction(target))
    assert lower <= by_divergence
    assert upper <= by_divergence * 1.001
    assert by_divergence <= 1.7 * upper + 0.2  # Close enough to make the comparison mean something.
    known = curve(event, relation)
    assert known.delta(Fraction(lower) * Fraction(99, 100)) >= float(target) * (1 - 1e-6)


def _random_event(source: random.Random, noise: float, steps: int) -> Event:
    kind = source.randrange(5)
    return [
        Repeated(Gaussian(noise), steps),
        Repeated(PureDP(1 / noise), min(steps, 300)),
        Repeated(ZCDP(1 / noise), steps),
        BoundedRange(1 / noise),
        DiscreteLaplace(noise, 3),
    ][kind]


def test_epsilon_is_monotone_in_noise_and_steps_on_many_random_pairs() -> None:
    _check_monotone(150)


@pytest.mark.slow
def test_epsilon_is_monotone_in_noise_and_steps_on_ten_thousand_random_pairs() -> None:
    _check_monotone(10_000)


def _check_monotone(pairs: int) -> None:
    source = random.Random(31)
    for _ in range(pairs):
        noise, steps = 10 ** source.uniform(-1.5, 3), int(10 ** source.uniform(0, 4))
        target = Fraction(10) ** -source.randint(2, 15)
        seed = source.random()
        less, more, longer = (
            epsilon(_random_event(random.Random(seed), sigma, count), target)
            for sigma, count in ((noise, steps), (noise * source.uniform(1, 3), steps), (noise, steps * 2))
        )
        assert more <= less * (1 + 1e-9)
        assert longer >= less * (1 - 1e-9)
        assert not math.isnan(less)


@pytest.mark.slow
def test_sampled_accounts_are_monotone_on_many_random_pairs() -> None:
    source = random.Random(32)
    for _ in range(300):
        sigma, q, steps = source.uniform(0.5, 8), 10 ** source.uniform(-3, -0.3), int(10 ** source.uniform(0, 4))

        def cost(sigma: float, q: float, steps: int) -> float:
            return epsilon(Repeated(PoissonSampled(Gaussian(sigma), q), steps), "1e-6", relation=AR)

        base = cost(sigma, q, steps)
        assert cost(sigma * 1.3, q, steps) <= base * 1.001
        assert cost(sigma, q * 1.3, steps) >= base * 0.999
        assert cost(sigma, q, steps + 1 + steps // 3) >= base * 0.999
