"""Noise that pays: how much follows from sensitivity, how it is split, when it is refused."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from subjects import ADD_REMOVE, REPLACE_ONE, laplace

from discreet import privacy
from discreet.errors import InvalidParameter
from discreet.mechanisms import Count, GaussianNoise, Grid, LaplaceNoise, Mean, Sum, Variance
from discreet.mechanisms.additive_noise import Sensitivity
from discreet.mechanisms.measurement import BoundedQuery, Measurement
from discreet.mechanisms.parameters import small_delta
from discreet.mechanisms.release import pure_epsilon
from discreet.privacy.event_tree import leaves
from discreet.privacy.events import Composed, DiscreteLaplace, Gaussian

EPSILONS = st.fractions(min_value="1/1000", max_value=50, max_denominator=1000)


@given(EPSILONS, st.integers(1, 10**6))
def test_laplace_noise_spends_exactly_epsilon_for_all_sensitivities(epsilon: Fraction, size: int) -> None:
    event = LaplaceNoise(epsilon=epsilon).event(Sensitivity.scalar(size))
    assert event == DiscreteLaplace(scale=size / epsilon, sensitivity=size)
    assert pure_epsilon(event) == epsilon


@given(EPSILONS, st.integers(1, 10**6))
def test_gaussian_noise_spends_exactly_rho_for_all_sensitivities(rho: Fraction, size: int) -> None:
    event = GaussianNoise.for_rho(rho).event(Sensitivity.scalar(size))
    assert event.squared_sensitivity / (2 * event.variance) == rho


@given(EPSILONS, st.fractions(min_value="1/100", max_value="99/100"))
def test_parts_of_a_budget_add_up_exactly_for_all_shares(total: Fraction, share: Fraction) -> None:
    one, other = (LaplaceNoise(epsilon=total).part(part) for part in (share, 1 - share))
    assert one.epsilon + other.epsilon == total
    first, second = (GaussianNoise.for_rho(total).part(part) for part in (share, 1 - share))
    assert 1 / (2 * first.squared_multiplier) + 1 / (2 * second.squared_multiplier) == total


@pytest.mark.parametrize("kind", [Mean, Variance])
def test_split_statistics_spend_the_whole_budget_and_no_more(kind: Any) -> None:
    mechanism = kind(grid=Grid.between(0, 10), relation=ADD_REMOVE, noise=laplace("0.3"))
    assert isinstance(mechanism.event, Composed)
    assert sum(
        pure_epsilon(event) * times for event, times in leaves(mechanism.event, relation=ADD_REMOVE).items()
    ) == (Fraction(3, 10))


def test_gaussian_noise_for_epsilon_and_delta_is_the_analytic_one() -> None:
    noise = GaussianNoise.for_epsilon(1, "1e-5")
    event = noise.event(Sensitivity.scalar(7))
    assert event.variance / event.squared_sensitivity == noise.squared_multiplier
    assert float(noise.squared_multiplier) == pytest.approx(3.730631635**2, rel=1e-6)
    assert privacy.delta(event, 1) <= 1e-5
    assert noise.part(Fraction(1, 2)).delta == noise.delta == Fraction(1, 10**5)


def test_very_wide_noise_is_drawn_on_a_coarser_grid_and_charged_for_it() -> None:
    """A variance of a million rows on a million steps: more steps to one scale than a sampler takes."""
    mechanism = Variance(grid=Grid.between(0, 1), relation=REPLACE_ONE, noise=laplace("0.001"), public_rows=10**6)
    (measurement,) = mechanism.measurements
    exact = measurement.query.sensitivity.l1
    assert exact == 10**12 * (10**6 - 1)
    assert measurement.unit > 1
    assert exact <= measurement.sensitivity.l1 * measurement.unit <= exact * (1 + Fraction(1, 2**20))
    assert pure_epsilon(measurement.event) == Fraction(1, 1000)
    accuracy = measurement.accuracy()
    assert accuracy.step == measurement.unit
    assert accuracy.slack == Fraction(measurement.unit, 2)


@given(st.integers(-(2**60), 2**60), st.integers(0, 40))
def test_coarse_answers_move_within_the_coarse_sensitivity_for_all_answers(answer: int, less: int) -> None:
    """Next to halves and far from them; the largest move is a multiple of the unit, where half to even would fail."""
    size = 5 << 22
    query = BoundedQuery(evaluate=lambda data: (data,), sensitivity=Sensitivity.scalar(size), relation=ADD_REMOVE)
    measurement = Measurement(query=query, noise=laplace(Fraction(1, 2**22)))
    assert measurement.unit == 20
    for start in (answer, answer // 20 * 20 + 10, answer // 20 * 20 + 9):
        (one,), (other,) = (measurement._exact(value) for value in (start, start + size - less))
        assert 0 <= other - one <= measurement.sensitivity.l1 == size // 20


def test_a_count_is_never_made_coarser() -> None:
    mechanism = Count(relation=ADD_REMOVE, noise=laplace("1e-14"))
    assert mechanism.measurements[0].unit == 1


@pytest.mark.parametrize("epsilon", ["1e-16", 10**7])
def test_noise_that_no_sampler_takes_is_refused_before_anything_is_read(epsilon: Any) -> None:
    with pytest.raises(InvalidParameter, match="scale"):
        Count(relation=ADD_REMOVE, noise=laplace(epsilon))
    with pytest.raises(InvalidParameter, match="variance"):
        Count(relation=ADD_REMOVE, noise=GaussianNoise.for_rho(Fraction(epsilon) ** 2))


@pytest.mark.parametrize("bad", [0, -1, float("nan"), float("inf"), "x", None, True])
def test_a_bad_budget_is_refused(bad: Any) -> None:
    with pytest.raises(InvalidParameter):
        LaplaceNoise(epsilon=bad)
    with pytest.raises(InvalidParameter):
        GaussianNoise.for_rho(bad)
    with pytest.raises(InvalidParameter):
        GaussianNoise(squared_multiplier=bad)


def test_a_delta_that_could_publish_a_person_is_refused_unless_allowed() -> None:
    assert small_delta("1e-6", public_rows=10**5) == Fraction(1, 10**6)
    assert small_delta("1e-6", public_rows=None) == Fraction(1, 10**6)
    with pytest.raises(InvalidParameter, match="public_rows"):
        small_delta("1e-5", public_rows=10**5)
    assert small_delta("1e-5", public_rows=10**5, allow_large_delta=True) == Fraction(1, 10**5)
    for bad in (0, 1, -1, 2, float("nan"), "x"):
        with pytest.raises(InvalidParameter):
            small_delta(bad, public_rows=None)


@pytest.mark.parametrize(
    "fields", [{"public_rows": 5}, {"count_share": 0}, {"count_share": 1}, {"relation": REPLACE_ONE}]
)
def test_sizes_and_shares_fit_the_relation(fields: dict[str, Any]) -> None:
    known: dict[str, Any] = {"grid": Grid.between(0, 1), "relation": ADD_REMOVE, "noise": laplace(1)}
    with pytest.raises(InvalidParameter):
        Mean(**known | fields)


@pytest.mark.parametrize("size", [0, -1, 1.5, True, "3"])
def test_a_public_size_is_a_positive_whole_number(size: Any) -> None:
    for kind in (Mean, Variance):
        with pytest.raises(InvalidParameter):
            kind(grid=Grid.between(0, 1), relation=REPLACE_ONE, noise=laplace(1), public_rows=size)
    with pytest.raises(InvalidParameter):
        Variance(grid=Grid.between(0, 1), relation=REPLACE_ONE, noise=laplace(1), public_rows=1)


def test_data_of_another_size_than_declared_are_refused() -> None:
    for kind in (Mean, Variance):
        with pytest.raises(InvalidParameter, match="rows"):
            kind(grid=Grid.between(0, 1), relation=REPLACE_ONE, noise=laplace(1), public_rows=3).release([1, 2])


def test_epsilon_grows_as_noise_falls() -> None:
    scales = [Sum(grid=Grid.between(0, 9), relation=ADD_REMOVE, noise=laplace(e)).event.scale for e in (1, 2, 4)]
    assert scales == sorted(scales, reverse=True)
    wider = [GaussianNoise.for_epsilon(e, "1e-6").squared_multiplier for e in ("0.5", 1, 2)]
    assert wider == sorted(wider, reverse=True)
    assert Count(relation=ADD_REMOVE, noise=GaussianNoise.for_rho(2)).event == Gaussian(
        variance="1/4", squared_sensitivity=1
    )
