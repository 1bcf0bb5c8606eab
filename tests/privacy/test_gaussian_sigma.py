"""The analytic Gaussian: exact, never below what is needed, and never a classical formula."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import pytest
from flint import arb, fmpq
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.balls import normal_cdf, precision
from discreet.errors import InvalidParameter, Refused
from discreet.exact import exact
from discreet.privacy import (
    GDP,
    Gaussian,
    Repeated,
    classic_gaussian_sigma,
    delta,
    epsilon,
    epsilon_bounds,
    gaussian_sigma,
)


def delta_of(sigma: Fraction, level: Fraction) -> arb:
    """The profile of Gaussian noise, sensitivity 1, in 200-bit arithmetic."""
    with precision(200):
        mu, e = 1 / arb(fmpq(sigma.numerator, sigma.denominator)), arb(fmpq(level.numerator, level.denominator))
        return normal_cdf(mu / 2 - e / mu) - e.exp() * normal_cdf(-mu / 2 - e / mu)


def _pairs(count: int) -> list[tuple[float, float]]:
    source = random.Random(20240229)
    return [(10 ** source.uniform(-3, math.log10(50)), 10 ** source.uniform(-12, -0.3)) for _ in range(count)]


@pytest.mark.parametrize(("level", "target"), _pairs(200))
def test_sigma_delivers_delta_and_is_within_a_thousandth_of_the_best(level: float, target: float) -> None:
    sigma = gaussian_sigma(level, target)
    limit = arb(fmpq(exact(target).numerator, exact(target).denominator))
    # Both readings of the float hold: its binary value and its shortest decimal.
    assert delta_of(Fraction(sigma), exact(level)) <= limit
    assert delta_of(exact(sigma), exact(level)) <= limit
    # A relative 1e-9 less noise is already too little, so 0.1 % less surely is.
    assert delta_of(exact(sigma) * (1 - Fraction(1, 10**9)), exact(level)) > limit


def test_classical_formula_at_epsilon_20_is_too_small() -> None:
    classical = math.sqrt(2 * math.log(1.25 / 1e-6)) / 20
    assert classical < gaussian_sigma(20, 1e-6)
    assert delta(Gaussian(classical), 20) > 1.6e-4  # 160 times what it claims


@given(
    level=st.floats(1e-3, 50),
    target=st.floats(1e-12, 0.5),
    unit=st.fractions(Fraction(1, 10**6), 10**6),
)
@settings(max_examples=20, deadline=None)
def test_sigma_is_proportional_to_the_sensitivity_for_all_units(level: float, target: float, unit: Fraction) -> None:
    one, scaled = gaussian_sigma(level, target), gaussian_sigma(level, target, unit)
    assert scaled == pytest.approx(one * float(unit), rel=1e-10)


@given(level=st.floats(0, 40), target=st.floats(1e-12, 0.4))
@settings(max_examples=20, deadline=None)
def test_sigma_falls_in_both_arguments_for_all_targets(level: float, target: float) -> None:
    sigma = gaussian_sigma(level, target)
    assert gaussian_sigma(level + 0.5, target) < sigma
    assert gaussian_sigma(level, target * 2) < sigma


def test_a_thousand_gaussians_are_one() -> None:
    lower, upper = epsilon_bounds(Repeated(Gaussian(1), 1000), 1e-5)
    assert 633.92985 <= lower <= upper <= 633.93
    assert upper - lower < 1e-9


@given(mu=st.floats(1e-3, 40), target=st.floats(1e-15, 0.5))
@settings(max_examples=40, deadline=None)
def test_epsilon_inverts_delta_for_all_mu(mu: float, target: float) -> None:
    lower, upper = epsilon_bounds(GDP(mu), target)
    assert lower <= upper
    assert delta(GDP(mu), exact(Fraction(upper))) <= target * (1 + 1e-12)
    assert lower == 0 or delta(GDP(mu), exact(Fraction(lower))) >= target
    assert upper - lower <= 1e-12 * max(upper, 1e-12)


def test_extremes_stay_proven() -> None:
    assert epsilon(Gaussian(variance="1e-300"), 1e-5) == pytest.approx(5e299)
    assert epsilon(Gaussian("1e200"), 1e-5) == 0
    assert epsilon(Gaussian("1e-200"), 1e-5) == math.inf
    assert delta(Gaussian("1e-200"), 1) == pytest.approx(1)
    assert 0 < delta(Gaussian(1), 10**6) < 1e-300
    assert gaussian_sigma("1e-320", 1e-5) == pytest.approx(gaussian_sigma(0, 1e-5), rel=1e-9)
    assert gaussian_sigma(1, "1e-300") == pytest.approx(36.8655, rel=1e-5)


# The largest epsilon at which each formula still holds, by 40-digit arithmetic.
CROSSOVERS = [
    ("1.25/delta", "1e-5", 8.419771301536342),
    ("1.25/delta", "1e-6", 8.782091752218987),
    ("1.25/delta", "1e-9", 9.62365713350667),
    ("2/delta", "1e-5", 9.39132146219354),
    ("2/delta", "1e-6", 9.732750717274303),
    ("4 log(1/delta)", "1e-5", 36.1),
]


class TestClassicFormulas:
    @pytest.mark.parametrize(("formula", "target", "last"), CROSSOVERS)
    def test_they_are_refused_from_where_they_stop_to_hold(self, formula: str, target: str, last: float) -> None:
        near = 1e-6 if len(str(last)) > 6 else 0.05
        for level in (0.01, 0.5, 1, last - near):
            sigma = classic_gaussian_sigma(level, target, formula=formula)
            assert delta_of(exact(sigma), exact(level)) <= arb(fmpq(1, exact(target).denominator))
            assert sigma >= gaussian_sigma(level, target)
        for level in (last + near, 2 * last, 100 * last):
            with pytest.raises(Refused, match="is not private here"):
                classic_gaussian_sigma(level, target, formula=formula)

    def test_they_are_what_textbooks_print(self) -> None:
        assert classic_gaussian_sigma(0.5, 1e-5, 3) == pytest.approx(6 * math.sqrt(2 * math.log(1.25e5)), rel=1e-10)
        assert classic_gaussian_sigma(0.5, 1e-5, formula="2/delta") == pytest.approx(2 * math.sqrt(2 * math.log(2e5)))
        assert classic_gaussian_sigma(0.5, 1e-5, formula="4 log(1/delta)") == pytest.approx(
            4 * math.sqrt(math.log(1e5))
        )

    @pytest.mark.parametrize(("level", "target"), [(0, 1e-5), (1, 0), (1, 1), (-1, 1e-5), (math.inf, 1e-5)])
    def test_bad_targets_are_refused(self, level: float, target: float) -> None:
        with pytest.raises(InvalidParameter):
            classic_gaussian_sigma(level, target)

    def test_other_formulas_are_refused(self) -> None:
        with pytest.raises(InvalidParameter, match="formula must be one of"):
            classic_gaussian_sigma(1, 1e-5, formula="3/delta")
