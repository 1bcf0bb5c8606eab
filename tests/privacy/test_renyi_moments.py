"""Renyi divergences against laws written out, with and without sampling."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from itertools import pairwise
from itertools import product as all_of

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from privacy_brute_force import (
    Law,
    discrete_gaussian,
    discrete_laplace,
    fixed_size_mixture,
    hockey_stick,
    poisson_mixture,
    product,
    response,
    rounded_gaussian,
)
from privacy_brute_force import renyi as brute

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
    Grouped,
    Laplace,
    PoissonSampled,
    PureDP,
    RandomizedResponse,
    Relation,
    Repeated,
    SampledWithoutReplacement,
    renyi,
)

AR, RO = Relation.ADD_REMOVE, Relation.REPLACE_ONE
ORDERS = (1.05, 1.5, 2, 2.5, 3, 8, 31.5)
SLACK = 1e-12


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("scale", "shift"), [("0.5", 1), ("2", 1), ("1.5", 4), ("5", 7), ("4", 2)])
def test_discrete_laplace_is_the_brute_force_sum(scale: str, shift: int, order: float) -> None:
    p, q = discrete_laplace(float(scale), 0, 150), discrete_laplace(float(scale), shift, 150)
    found = renyi(DiscreteLaplace(scale, shift), order)
    # A rounding error of the brute-force moment is divided by the order less one.
    assert found == pytest.approx(brute(p, q, order), abs=SLACK / (order - 1))
    assert found == pytest.approx(brute(q, p, order), abs=SLACK / (order - 1))


def test_discrete_laplace_is_not_billed_with_the_continuous_formula() -> None:
    true = brute(discrete_laplace(2.0, 0, 150), discrete_laplace(2.0, 1, 150), 2)
    assert true == pytest.approx(0.2273, abs=5e-5)
    assert renyi(DiscreteLaplace(2, 1), 2) >= true - SLACK
    assert renyi(Laplace(2), 2) == pytest.approx(0.2003, abs=5e-5)
    assert renyi(Laplace(2), 2) < true - 0.02


@pytest.mark.parametrize("order", ORDERS)
def test_splits_of_the_l1_distance_are_dominated_by_one_shift(order: float) -> None:
    for scale in ("0.3", "1", "4"):
        whole = renyi(DiscreteLaplace(scale, 6), order)
        for first in (1, 2, 3):
            parts = renyi(DiscreteLaplace(scale, first), order) + renyi(DiscreteLaplace(scale, 6 - first), order)
            assert parts <= whole + SLACK


@pytest.mark.parametrize("order", ORDERS)
def test_laplace_is_the_limit_of_fine_discrete_laplace(order: float) -> None:
    fine = renyi(DiscreteLaplace(10**9, 8 * 10**8), order)
    assert renyi(Laplace("1.25"), order) == pytest.approx(fine, rel=1e-6)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("categories", [2, 3, 20])
def test_response_is_the_brute_force_sum(categories: int, order: float) -> None:
    p, q = response(1.7, categories, 0), response(1.7, categories, 1)
    assert renyi(RandomizedResponse("1.7", categories), order) == pytest.approx(brute(p, q, order), abs=SLACK)


@pytest.mark.parametrize("order", ORDERS)
def test_rounded_gaussian_stays_below_the_gaussian_bound(order: float) -> None:
    p, q = rounded_gaussian(2.0, 0, 14), rounded_gaussian(2.0, 1, 14)
    keep = (p > 1e-300) & (q > 1e-300)
    assert brute(p[keep], q[keep], order) <= renyi(Gaussian(2), order) + SLACK
    assert renyi(Gaussian(2), order) == renyi(GDP("0.5"), order) == pytest.approx(order / 8)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("sigma", ["0.4", "1", "3"])
def test_discrete_gaussian_bound_dominates_brute_force(sigma: str, order: float) -> None:
    reach = math.ceil(20 * float(sigma)) + 3
    p, q = discrete_gaussian(float(sigma), 0, reach), discrete_gaussian(float(sigma), 1, reach)
    assert renyi(DiscreteGaussian(sigma, 1), order) >= brute(p, q, order) - SLACK


@given(
    weights=st.lists(st.floats(0.01, 1), min_size=2, max_size=6),
    losses=st.lists(st.floats(0, 1), min_size=6, max_size=6),
    width=st.floats(0.05, 6),
    order=st.floats(1.01, 40),
)
@settings(max_examples=100, deadline=None)
def test_bounded_range_bound_dominates_brute_force(
    weights: list[float], losses: list[float], width: float, order: float
) -> None:
    p = np.array(weights) / sum(weights)
    q = p * np.exp(-width * np.array(losses[: len(weights)]))
    q /= q.sum()
    claim = renyi(BoundedRange(Fraction(width)), Fraction(order))
    assert max(brute(p, q, order), brute(q, p, order)) <= claim + SLACK
    assert claim <= min(order * width**2 / 8, width) + SLACK


def test_bounded_range_bound_is_reached() -> None:
    order, width = 3.0, 2.0
    ends = np.linspace(0, width, 20_001)[1:-1]
    first = (math.exp(width) - np.exp(ends)) / (math.exp(width) - 1)
    moments = first * np.exp((order - 1) * ends) + (1 - first) * np.exp((order - 1) * (ends - width))
    assert renyi(BoundedRange(2), 3) == pytest.approx(math.log(moments.max()) / (order - 1), rel=1e-8)


def test_bounded_range_formula_does_not_hold_for_pure_privacy() -> None:
    true = brute(response(1.0, 2, 0), response(1.0, 2, 1), 2)
    assert true > 2 * renyi(BoundedRange(1), 2)
    assert true <= renyi(PureDP(1), 2) + SLACK


# Sampling. A law of the sum of a sample, and the event that the law has without sampling.
INNER: list[tuple[Event, Callable[[int], Law]]] = [
    (DiscreteLaplace("1.5", 1), lambda s: discrete_laplace(1.5, s, 120)),
    (DiscreteLaplace("0.6", 1), lambda s: discrete_laplace(0.6, s, 80)),
    (PureDP("0.5"), lambda s: discrete_laplace(2.0, s, 150)),
    (DiscreteGaussian("0.7", 1), lambda s: discrete_gaussian(0.7, s, 14)),
    (DiscreteGaussian("1.5", 1, dimension=3), lambda s: discrete_gaussian(1.5, s, 30)),
    (ZCDP("0.5"), lambda s: discrete_gaussian(1.0, s, 20)),
    (
        Composed([DiscreteLaplace(2, 1), DiscreteGaussian(2, 1)]),
        lambda s: product(discrete_laplace(2.0, s, 50), discrete_gaussian(2.0, s, 18)),
    ),
]


@pytest.mark.parametrize("order", [1.3, 2, 2.5, 4, 9])
@pytest.mark.parametrize("q", ["0.02", "0.3", "0.8"])
@pytest.mark.parametrize(("event", "law"), INNER, ids=[repr(event) for event, _ in INNER])
def test_poisson_bound_dominates_brute_force(event: Event, law: Callable[[int], Law], q: str, order: float) -> None:
    claim = renyi(PoissonSampled(event, q), order, relation=AR)
    assert claim <= renyi(event, order) + SLACK
    for others in [(), (0,), (1, 1), (1, 0)]:
        without, with_unit = (poisson_mixture(law, world, float(q)) for world in (others, (*others, 1)))
        assert brute(with_unit, without, order) <= claim + SLACK
        assert brute(without, with_unit, order) <= claim + SLACK


@pytest.mark.parametrize("q", [0.02, 0.3, 0.8])
@pytest.mark.parametrize("order", ORDERS)
def test_removing_dominates_adding_for_pairs_with_a_reflection(order: float, q: float) -> None:
    pairs = [
        (discrete_laplace(1.5, 4, 90), discrete_laplace(1.5, 0, 90)),
        (discrete_gaussian(1.5, 3, 30), discrete_gaussian(1.5, 0, 30)),
        (response(2.0, 5, 0), response(2.0, 5, 1)),
        (product(response(1.0, 2, 0), response(0.3, 3, 0)), product(response(1.0, 2, 1), response(0.3, 3, 1))),
    ]
    for p, base in pairs:
        mixture = q * p + (1 - q) * base
        assert brute(base, mixture, order) <= brute(mixture, base, order) + SLACK


@cache
def _skewed() -> tuple[Law, Law, Fraction]:
    """A pair without a reflection, and a rho that it has."""
    p, q = np.array([0.02, 0.08, 0.9]), np.array([0.001, 0.399, 0.6])
    orders = 1 + np.geomspace(1e-4, 1e4, 2000)
    rho = max(max(brute(p, q, a), brute(q, p, a)) / a for a in orders)
    return p, q, Fraction(rho * 1.001)


@pytest.mark.parametrize("q", [0.01, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("order", ORDERS)
def test_poisson_bound_of_zcdp_dominates_brute_force_without_a_reflection(order: float, q: float) -> None:
    p, base, rho = _skewed()
    claim = renyi(PoissonSampled(ZCDP(rho), q), order, relation=AR)
    for present, absent in ((p, base), (base, p)):
        mixture = q * present + (1 - q) * absent
        assert max(brute(mixture, absent, order), brute(absent, mixture, order)) <= claim + SLACK


def test_adding_can_dominate_without_a_reflection() -> None:
    """Why the general bound must look at both directions."""
    p, base = np.array([0.999, 0.001]), np.array([0.5, 0.5])
    worse = [
        q for q in (0.5, 0.9, 0.99) if brute(base, q * p + (1 - q) * base, 3) > brute(q * p + (1 - q) * base, base, 3)
    ]
    assert worse


@pytest.mark.parametrize("order", [1.3, 2, 2.5, 4, 9])
@pytest.mark.parametrize(("size", "population"), [(1, 2), (1, 4), (2, 3), (3, 4), (4, 4)])
@pytest.mark.parametrize(("event", "law"), INNER, ids=[repr(event) for event, _ in INNER])
def test_fixed_size_bound_dominates_brute_force(
    event: Event, law: Callable[[int], Law], size: int, population: int, order: float
) -> None:
    claim = renyi(SampledWithoutReplacement(event, size, population), order, relation=RO)
    assert claim <= renyi(event, order) + SLACK
    for others in all_of((0, 1), repeat=population - 1):
        first, second = (fixed_size_mixture(law, (value, *others), size) for value in (0, 1))
        assert brute(first, second, order) <= claim + SLACK
        assert brute(second, first, order) <= claim + SLACK


@pytest.mark.parametrize("q", [0.05, 0.3, 0.7])
@pytest.mark.parametrize("order", [2, 3, 7])
def test_fixed_size_bound_dominates_the_moment_of_its_profile(order: int, q: float) -> None:
    """Integrate the profile itself: the worst any event with this profile can do, beyond all small worlds."""
    p, base = discrete_laplace(1.2, 3, 60), discrete_laplace(1.2, 0, 60)
    levels = np.linspace(0, math.log1p(q * math.expm1(2.5)), 20_001)
    inner = np.log1p(np.expm1(levels) / q)
    deltas = q * np.array([hockey_stick(p, base, x) for x in inner])
    c = np.exp(levels)
    weight = order * (order - 1) * (c ** (order - 2) + c ** (-order - 1))
    moment = 1 + np.trapezoid(weight * deltas, c)
    claim = renyi(SampledWithoutReplacement(DiscreteLaplace("1.2", 3), int(q * 100), 100), order, relation=RO)
    assert math.log(moment) / (order - 1) <= claim + 1e-6
    assert claim <= 1.6 * math.log(moment) / (order - 1)


def test_sampling_everybody_is_no_sampling() -> None:
    for order in ORDERS:
        assert renyi(PoissonSampled(Gaussian(1), 1), order, relation=AR) == renyi(Gaussian(1), order)
        assert renyi(SampledWithoutReplacement(Laplace(1), 3, 3), order, relation=RO) == renyi(Laplace(1), order)


def test_divergences_add_and_counts_are_applied_once() -> None:
    one, other = DiscreteLaplace(2, 3), RandomizedResponse("0.3", 4)
    total = renyi(Composed([Repeated(one, 7), Repeated(Composed([one, other]), 3)]), 4)
    assert total == pytest.approx(10 * renyi(one, 4) + 3 * renyi(other, 4), rel=1e-14)
    assert renyi(Repeated(one, 10), 4) == pytest.approx(10 * renyi(one, 4), rel=1e-14)
    p, q = (product(*[response(0.4, 2, answer)] * 10) for answer in (0, 1))
    assert renyi(Repeated(PureDP("0.4"), 10), 4) == pytest.approx(brute(p, q, 4), abs=SLACK)


EVENTS: list[tuple[Event, Relation | None]] = [
    (PureDP(1), None),
    (Laplace(1), None),
    (DiscreteLaplace(2, 5), None),
    (BoundedRange(2), None),
    (RandomizedResponse(2, 5), None),
    (Gaussian(2), None),
    (PoissonSampled(Gaussian(1), "0.1"), AR),
    (PoissonSampled(ZCDP(1), "0.1"), AR),
    (SampledWithoutReplacement(Laplace(1), 1, 10), RO),
]


@pytest.mark.parametrize(("event", "relation"), EVENTS)
def test_divergences_grow_with_the_order(event: Event, relation: Relation | None) -> None:
    found = [renyi(event, order, relation=relation) for order in (2, 3, 5, 8, 20, 60)]
    assert all(before <= after for before, after in pairwise(found))


@pytest.mark.parametrize(("event", "relation"), EVENTS)
def test_log_moments_are_convex_in_the_order(event: Event, relation: Relation | None) -> None:
    orders = [Fraction(n, 4) for n in range(5, 40)]
    moments = [float(a - 1) * renyi(event, a, relation=relation) for a in orders]
    seconds = np.diff(moments, 2)
    assert (seconds >= -1e-12).all()


def test_a_chance_to_reveal_all_has_no_finite_divergence() -> None:
    assert renyi(ApproxDP(1, "1e-9"), 2) == math.inf
    assert renyi(Composed([PureDP(1), ApproxDP(1, "1e-9")]), 2) == math.inf
    assert renyi(ApproxDP(1, 0), 2) == renyi(PureDP(1), 2)
    assert renyi(PureDP(0), 2) == 0


def test_groups_of_sampled_events_follow_the_general_rule() -> None:
    event = PoissonSampled(Gaussian(2), "0.1")
    single = renyi(event, 16, relation=AR)
    assert renyi(Grouped(event, 4), 4, relation=AR) == pytest.approx(9 * single, rel=1e-12)
    assert renyi(Grouped(event, 3), 4, relation=AR) == pytest.approx(9 * single, rel=1e-12)
    # The rule is for orders of at least 2; below, divergences are at most those of order 2.
    assert renyi(Grouped(event, 2), "1.5", relation=AR) == renyi(Grouped(event, 2), 2, relation=AR)
    law = discrete_gaussian
    for order in (2, 3):
        claim = renyi(Grouped(PoissonSampled(ZCDP("0.5"), "0.3"), 2), order, relation=AR)
        near, far = (poisson_mixture(lambda s: law(1.0, s, 20), world, 0.3) for world in ((), (1, 1)))
        assert max(brute(near, far, order), brute(far, near, order)) <= claim
