"""Dominating pairs, cell by cell: masses to full relative accuracy, both laws kept, nothing moved down."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.balls import ball, normal_cdf, precision
from discreet.errors import UnsupportedEvent
from discreet.privacy.events import (
    ZCDP,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    PoissonSampled,
    PureDP,
    RandomizedResponse,
    Repeated,
    SampledWithoutReplacement,
)
from discreet.privacy.pld.loss_profile import profile
from discreet.privacy.pld.losses import all_on_grid, multiples, on_grid
from discreet.privacy.pld.pairs import DominatingPair, _split, dominating_pair, few, gaussian, laplace_pairs
from discreet.privacy.pld.sampled_pairs import Rate, fixed_size, poisson, poisson_reversed, poisson_ticks
from discreet.privacy.relation import Relation

TAIL = 1e-20


def delta(pair: DominatingPair, epsilon: float) -> float:
    gain = pair.p - np.exp(epsilon) * pair.q
    return pair.infinite + float(np.maximum(0.0, gain).sum())


@pytest.mark.parametrize("mu", [1e-9, 0.01, 1.0, 7.0, 60.0])
@pytest.mark.parametrize("share", [1.0, 0.1, 1e-4])
def test_gaussian_masses_are_right_to_twelve_digits(mu: float, share: float) -> None:
    """A cell from s to e puts (p - r) / (1 - e^-w) on its upper end, r being e^(mu s + mu^2 / 2) times its Q mass."""
    start = np.linspace(-8, 12, 23)
    length = np.full_like(start, share / (12 + mu + 4))
    lower, upper = _split(start, length, mu)
    with precision(400):
        shift = ball(Fraction(mu))
        for s, w, low, up in zip(start, length, lower, upper, strict=True):
            begin = ball(Fraction(s))
            end = begin + ball(Fraction(w))
            p = normal_cdf(-begin) - normal_cdf(-end)
            q = normal_cdf(-begin - shift) - normal_cdf(-end - shift)
            r = (shift * begin + shift * shift / 2).exp() * q
            exact = (p - r) / (1 - (-shift * ball(Fraction(w))).exp())
            assert up == pytest.approx(float(exact), rel=1e-12)
            assert low == pytest.approx(float(p - exact), rel=1e-12)


@pytest.mark.parametrize("mu", [1e-9, 1.0, 60.0])
def test_gaussian_cells_lose_at_most_the_tail(mu: float) -> None:
    pair = gaussian(mu, multiples(0.05 * mu), 1e-7)
    for mass in (pair.p, pair.q):
        assert 1 - 1e-7 <= mass.sum() <= 1 + 1e-12


@pytest.mark.parametrize("mu", [0.05, 1.0, 12.0])
def test_gaussian_cells_keep_both_laws(mu: float) -> None:
    """The ratio of the two masses of a node is its loss: splitting kept P and Q."""
    pair = gaussian(mu, multiples(0.02 * mu), TAIL)
    seen = (pair.p > 1e-250) & (pair.q > 1e-250)
    np.testing.assert_allclose(np.log(pair.p[seen] / pair.q[seen]), pair.loss[seen], atol=1e-9 * max(1, mu**2))


@pytest.mark.parametrize("event", [Laplace(1), Laplace("0.01"), DiscreteLaplace(2, 3), DiscreteLaplace(10**9, 10**9)])
@pytest.mark.parametrize("step", [1.0, 0.037, 0.002])
def test_laplace_cells_keep_both_laws(event: Laplace | DiscreteLaplace, step: float) -> None:
    pair = dominating_pair(event, multiples(step), TAIL)
    assert pair.p.sum() == pytest.approx(1, abs=1e-12)
    assert pair.q.sum() == pytest.approx(1, abs=1e-12)
    seen = (pair.p > 1e-250) & (pair.q > 1e-250)
    np.testing.assert_allclose(np.log(pair.p[seen] / pair.q[seen]), pair.loss[seen], atol=1e-11)


@pytest.mark.parametrize("step", [1.0, 0.1, 0.01])
def test_coarser_cells_dominate_finer_ones(step: float) -> None:
    for build in (
        lambda h: dominating_pair(Laplace(1), multiples(h), TAIL),
        lambda h: dominating_pair(DiscreteLaplace(1000, 1000), multiples(h), TAIL),
        lambda h: gaussian(1.0, multiples(h), TAIL),
    ):
        coarse, fine = build(step), build(step / 7)
        for epsilon in np.linspace(-2, 2, 41):
            assert delta(coarse, epsilon) >= delta(fine, epsilon) - 1e-13


def test_laplace_cells_dominate_the_closed_form() -> None:
    for step in (0.5, 0.03):
        pair = dominating_pair(Laplace(1), multiples(step), TAIL)
        for epsilon in np.linspace(0, 0.99, 30):
            truth = -math.expm1((epsilon - 1) / 2)
            assert truth - 1e-14 <= delta(pair, epsilon) <= truth + step**2


def test_a_huge_sensitivity_needs_few_atoms() -> None:
    pair = dominating_pair(DiscreteLaplace(10**9, 10**9), multiples(0.01), TAIL)
    continuous = dominating_pair(Laplace(1), multiples(0.01), TAIL)
    assert len(pair.loss) < 1000
    for epsilon in np.linspace(0, 0.99, 30):
        assert delta(pair, epsilon) == pytest.approx(delta(continuous, epsilon), abs=1e-8)


@given(st.floats(0.01, 20), st.floats(1e-3, 5))
def test_putting_atoms_on_a_grid_never_lowers_delta_for_all_steps(loss: float, step: float) -> None:
    p = np.array([1.0, math.exp(-loss)]) / (1 + math.exp(-loss))
    pair = DominatingPair(loss=np.array([loss, -loss]), p=p, q=p[::-1], top=loss)
    placed = on_grid(pair, step)
    assert placed.mass.sum() == pytest.approx(1, abs=1e-12)
    for epsilon in np.linspace(-loss, loss, 9):
        on = float((placed.mass * np.maximum(0.0, -np.expm1(epsilon - placed.loss))).sum())
        assert on >= delta(pair, epsilon) - 1e-12


@given(st.floats(0.01, 20), st.floats(1e-3, 5), st.floats(-1e-9, 1e-9))
def test_an_atom_that_is_moved_to_a_point_slips_no_less_and_not_much_more_for_all_places(
    loss: float, step: float, aside: float
) -> None:
    """All that is near a point is put there. Slipping by less than it was moved would be unsafe, by more loose."""
    places = np.rint(np.array([loss, -loss]) / step) * step + aside * step
    placed = on_grid(DominatingPair(loss=places, p=np.array([0.6, 0.4]), q=np.array([0.4, 0.6]), top=loss), step)
    moved = np.abs(placed.loss[:, None] - places).min(axis=1).max()
    assert moved <= placed.slip <= moved + 1e-13 * (loss + step)
    assert placed.width == 0


def test_pairs_placed_together_are_placed_as_each_on_its_own() -> None:
    """Dense ones share an array, and sparse ones do not: neither may leak into the next."""
    far = DominatingPair(
        loss=np.array([900.0, -900.0]), p=np.array([1.0, 1e-300]), q=np.array([1e-300, 1.0]), top=900.0
    )
    laws = [dominating_pair(Laplace(k), multiples(0.03), TAIL) for k in (1, "0.3", 40)]
    others = [gaussian(1.0, multiples(0.01), 1e-9), dominating_pair(PureDP("0.77"), multiples(0.03), TAIL)]
    pairs = [far, *laws, far, *others, far]
    for chosen in (pairs, pairs[1:4], pairs[:1], pairs[5:7]):
        for alone, placed in zip(chosen, all_on_grid(chosen, 0.03), strict=True):
            single = on_grid(alone, 0.03)
            for name in ("infinite", "infinite_surely", "lost", "top", "error", "slip", "width"):
                assert getattr(placed, name) == getattr(single, name)
            np.testing.assert_array_equal(placed.index, single.index)
            np.testing.assert_array_equal(placed.mass, single.mass)
            assert placed.mass.sum() == pytest.approx(alone.p.sum(), rel=1e-12)


def test_many_laplaces_are_as_each_on_its_own() -> None:
    events = [Laplace(k) for k in (3, "0.01", "1e5", 3, 1)]
    for ticks in (few, multiples(0.05), multiples(100.0)):
        for event, pair in zip(events, laplace_pairs(events, ticks), strict=True):
            single = dominating_pair(event, ticks, TAIL)
            for name in ("loss", "p", "q"):
                np.testing.assert_array_equal(getattr(pair, name), getattr(single, name))
            assert pair.top == single.top == 1 / float(event.noise_multiplier)
            assert pair.p.sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("event", [Laplace(1), Laplace("0.3")])
def test_cells_that_end_on_the_grid_are_known_to_have_moved_the_losses_inside(event: Laplace) -> None:
    """Every atom is a grid point, yet the law between them was moved there: a lower bound must not forget it."""
    step = 1 / 64 if event == Laplace(1) else 1 / 48
    placed = on_grid(dominating_pair(event, multiples(step), TAIL), step)
    assert placed.width == step
    assert on_grid(dominating_pair(PureDP(1), multiples(step), TAIL), 1 / 64).width == 0


def test_poisson_sampling_of_a_pair_is_the_mixture() -> None:
    pair = dominating_pair(DiscreteLaplace(1, 2), multiples(0.1), TAIL)
    sampled = poisson(pair, Rate(0.3, 0.7))
    np.testing.assert_allclose(sampled.p, 0.3 * pair.p + 0.7 * pair.q, rtol=1e-14)
    np.testing.assert_allclose(sampled.loss, np.log(sampled.p / sampled.q), atol=1e-13)
    back = poisson_reversed(sampled, Rate(0.3, 0.7))
    np.testing.assert_allclose(back.loss, np.log(back.p / back.q), atol=1e-13)
    assert back.top == pytest.approx(back.loss.max())
    assert poisson_reversed(
        poisson(gaussian(1.0, multiples(0.1), TAIL), Rate(0.3, 0.7)), Rate(0.3, 0.7)
    ).top == pytest.approx(-math.log(0.7))


def test_poisson_sampling_of_what_tells_all_has_a_smallest_loss() -> None:
    pair = DominatingPair(
        loss=np.array([0.0]), p=np.array([0.9]), q=np.array([0.9]), top=0.0, infinite=0.1, vanishing=0.1
    )
    sampled = poisson(pair, Rate(0.2, 0.8))
    assert sampled.infinite == pytest.approx(0.02)
    assert sampled.loss.min() == pytest.approx(math.log(0.8))
    assert sampled.p.sum() + sampled.infinite == pytest.approx(1)


@pytest.mark.parametrize("rate", [0.9, 1e-3, 1e-9])
def test_ticks_of_a_sampled_pair_land_on_the_grid(rate: float) -> None:
    ticks = poisson_ticks(multiples(rate * 0.1), Rate(rate, 1 - rate))
    sampled = poisson(gaussian(1.0, ticks, 1e-6), Rate(rate, 1 - rate))
    position = sampled.loss / (rate * 0.1)
    off = np.abs(position - np.rint(position)) > 1e-6 * np.maximum(1, np.abs(position))
    assert off.mean() < 0.9  # Only the nodes that keep cells short lie elsewhere.
    assert (~off).sum() >= 10


def test_a_sample_of_fixed_size_is_its_own_mirror_image() -> None:
    pair = dominating_pair(Laplace(1), multiples(0.05), TAIL)
    sampled = fixed_size(pair, Rate(0.25, 0.75))
    order = np.argsort(sampled.loss)
    np.testing.assert_allclose(sampled.p[order], sampled.q[order][::-1], rtol=1e-12)
    assert sampled.p.sum() == pytest.approx(1, abs=1e-11)
    for epsilon in (0.0, 0.2, 0.5, 0.9):
        amplified = math.log1p(0.25 * math.expm1(epsilon))
        assert delta(sampled, amplified) == pytest.approx(0.25 * delta(pair, epsilon), rel=1e-10)


@pytest.mark.parametrize(
    "event",
    [
        ZCDP(1),
        DiscreteGaussian(3, 1, dimension=2),
        DiscreteGaussian(3, "0.5"),
        DiscreteGaussian(3, squared_sensitivity=2),
        PoissonSampled(ZCDP(1), "0.1"),
    ],
)
def test_an_event_without_a_pair_is_refused_at_once(event: object) -> None:
    with pytest.raises(UnsupportedEvent):
        profile(Counter({event: 2}), Relation.ADD_REMOVE)  # type: ignore[dict-item]


@pytest.mark.parametrize(
    "event",
    [
        DiscreteGaussian(10**7, 1),
        DiscreteLaplace(1, 2**53),
        Gaussian("0.0001"),
        PureDP(10**20),
        PureDP("1e-200"),
        PoissonSampled(Repeated(Laplace(1), 10**6), "0.1"),
    ],
)
def test_what_floats_cannot_carry_is_refused(event: object) -> None:
    with pytest.raises(UnsupportedEvent):
        profile(Counter({event: 2}), Relation.ADD_REMOVE).epsilon_upper(Fraction(1, 10**6))  # type: ignore[dict-item]


def test_a_wide_discrete_gaussian_with_a_far_shift_is_not_looked_at_as_a_continuous_one() -> None:
    """The continuous pair would refuse a shift of thousands of sigmas, which the discrete one can enumerate."""
    upper = profile(Counter({DiscreteGaussian(60, 10**6): 1}), None).epsilon_upper(Fraction(1, 10**6))
    assert upper == pytest.approx((10**6 / 60) ** 2 / 2, rel=1e-3)


@pytest.mark.parametrize(
    ("event", "relation"),
    [
        (PoissonSampled(Gaussian(1), "0.1"), Relation.REPLACE_ONE),
        (SampledWithoutReplacement(Gaussian(1), 1, 10), Relation.ADD_REMOVE),
        (RandomizedResponse(1), Relation.ADD_REMOVE),
    ],
)
def test_an_event_under_the_wrong_relation_is_refused(event: object, relation: Relation) -> None:
    with pytest.raises(UnsupportedEvent):
        profile(Counter({event: 1}), relation)  # type: ignore[dict-item]
