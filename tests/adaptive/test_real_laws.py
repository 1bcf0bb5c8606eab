"""Noise laws: tails agree with the integral of the density, draws with the tails, and nonsense is refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from statistical import expected_p_value, fits, rejects

from discreet.adaptive.smooth_mechanisms import rounded_outcomes
from discreet.adaptive.smooth_noise_laws import (
    AdmissibleLaw,
    GaussianLaw,
    LaplaceLaw,
    LaplaceLogNormalLaw,
    PolynomialLaw,
    PowerLaw,
    StudentLaw,
    TailedLaw,
    quantile_up,
)
from discreet.balls import ball, precision
from discreet.errors import InvalidParameter
from discreet.noise.rounding import round_ideal

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(96)


def log_normal_density(sigma: float) -> Callable[[float], float]:
    rates = np.exp(-sigma * NODES)
    return lambda z: float(np.sum(WEIGHTS * rates * np.exp(-z * rates)) / WEIGHTS.sum() / 2)


DENSITIES: list[tuple[AdmissibleLaw, Callable[[float], float]]] = [
    (PolynomialLaw(Fraction(5)), lambda z: (1 + z) ** -5),
    (PolynomialLaw(Fraction("11.25")), lambda z: (1 + z) ** -11.25),
    (PowerLaw(Fraction(4)), lambda z: 1 / (1 + z**4)),
    (PowerLaw(Fraction("2.5")), lambda z: 1 / (1 + z**2.5)),
    (StudentLaw(Fraction(3)), lambda z: (1 + z * z / 3) ** -2),
    (StudentLaw(Fraction(1, 2)), lambda z: (1 + 2 * z * z) ** -0.75),
    (LaplaceLaw(), lambda z: math.exp(-z)),
    (GaussianLaw(), lambda z: math.exp(-z * z / 2)),
    (LaplaceLogNormalLaw(Fraction(1, 2)), log_normal_density(0.5)),
]
LAWS = [law for law, _ in DENSITIES]
TAILED = [law for law in LAWS if isinstance(law, TailedLaw)]


def survival(law: AdmissibleLaw, z: float) -> float:
    with precision(128):
        return float(law.survival(ball(Fraction(z))))


def beyond(density: Callable[[float], float], z: float) -> float:
    """Integrate from z to infinity on a logarithmic scale."""
    return float(quad(lambda t: density(z + math.expm1(t)) * math.exp(t), 0, 60, epsabs=0, epsrel=1e-10, limit=500)[0])


@pytest.mark.parametrize(("law", "density"), DENSITIES)
@pytest.mark.parametrize("z", [0.0, 0.01, 0.7, 3.0, 12.0])
def test_survival_agrees_with_the_integral_of_the_density(
    law: AdmissibleLaw, density: Callable[[float], float], z: float
) -> None:
    assert survival(law, z) == pytest.approx(beyond(density, z) / beyond(density, 0.0), rel=1e-7)


@pytest.mark.parametrize(("law", "density"), DENSITIES)
def test_standard_deviation_agrees_with_the_integral_of_the_density(law: Any, density: Any) -> None:
    if math.isinf(law.standard_deviation):
        near, far = (quad(lambda t: density(t) * t * t, 0, end, limit=500)[0] for end in (1e3, 1e6))
        assert far > near + 1
    else:
        squares = beyond(lambda z: density(z) * z * z, 0.0) / beyond(density, 0.0)
        assert law.standard_deviation == pytest.approx(math.sqrt(squares), rel=1e-6)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("chance", [0.999, 0.5, 0.05, 1e-9])
def test_a_quantile_is_reached_and_hardly_passed(law: AdmissibleLaw, chance: float) -> None:
    z = quantile_up(law, Fraction(chance))
    assert survival(law, z) <= chance
    assert survival(law, z * (1 - 1e-6)) > chance
    assert law.guess(chance) == pytest.approx(z, rel=1e-6)


@pytest.mark.parametrize("law", LAWS)
def test_more_bits_only_make_a_tail_closer(law: AdmissibleLaw) -> None:
    for z in (Fraction(0), Fraction(1, 1000), Fraction(7, 3), Fraction(1000)):
        with precision(128):
            rough = law.survival(ball(z))
        with precision(320):
            fine = law.survival(ball(z))
        assert rough.overlaps(fine)
        assert fine.rad() <= rough.rad()


@pytest.mark.parametrize("law", TAILED)
@settings(max_examples=15)
@given(low=st.fractions(0, 50), width=st.fractions(0, 5))
def test_a_ball_around_an_interval_holds_all_of_it_for_all_intervals(law: Any, low: Fraction, width: Fraction) -> None:
    with precision(96):
        whole = ball(low).union(ball(low + width))
        for point in (low, low + width / 3, low + width):
            assert law.log_shape(whole).overlaps(law.log_shape(ball(point)))
            assert law.slope(whole).overlaps(law.slope(ball(point)))


@pytest.mark.parametrize("law", TAILED)
@settings(max_examples=15)
@given(z=st.fractions("0.01", 100), factor=st.fractions(1, 50))
def test_a_density_falls_no_faster_than_its_index_for_all_ratios(law: Any, z: Fraction, factor: Fraction) -> None:
    with precision(128):
        fall = law.log_shape(ball(z)) - law.log_shape(ball(z * factor))
        assert float(fall) <= float(law.tail_index) * math.log(factor) + 1e-12


@pytest.mark.parametrize("law", TAILED)
def test_slope_is_the_derivative_of_the_shape(law: Any) -> None:
    with precision(256):
        for z in (Fraction(1, 100), Fraction(1), Fraction(17)):
            step = Fraction(1, 10**20)
            change = law.log_shape(ball(z - step)) - law.log_shape(ball(z + step))
            assert float(change / ball(2 * step)) == pytest.approx(float(law.slope(ball(z))), rel=1e-9)


def chances(law: AdmissibleLaw, centre: Fraction, scale: Fraction) -> tuple[dict[Any, int], list[float]]:
    with precision(128):
        listed = rounded_outcomes(law, centre=centre, scale=ball(scale), window=(-60, 60))
    masses = [max(0.0, float(mass)) for mass in listed.masses.values()]
    return {outcome: place for place, outcome in enumerate(listed.masses)}, [mass / sum(masses) for mass in masses]


def placed(value: int, places: dict[Any, int]) -> int:
    if value in places:
        return places[value]
    return next(place for key, place in places.items() if isinstance(key, tuple) and key[0] <= value <= key[1])


@pytest.mark.statistical
@pytest.mark.parametrize("law", [LAWS[0], LAWS[2], LAWS[4], LAWS[6], LAWS[7]])
def test_a_rounded_draw_follows_its_listing(law: AdmissibleLaw) -> None:
    centre, scale, draws = Fraction(7, 3), Fraction(9, 2), 400
    places, truth = chances(law, centre, scale)
    _, wrong = chances(law, centre, 2 * scale)
    wrong += [0.0] * (len(truth) - len(wrong))
    found = [round_ideal(law, centre=centre, scale=lambda bits: ball(scale), step=Fraction(1)) for _ in range(draws)]
    sample = [placed(value, places) for value in found]
    assert fits(sample, truth)
    assert expected_p_value(truth, wrong[: len(truth)], draws) < 1e-15
    assert rejects(sample, wrong[: len(truth)])


@pytest.mark.parametrize("law", LAWS)
def test_a_listing_sums_to_one_and_has_single_points_in_its_window(law: AdmissibleLaw) -> None:
    with precision(128):
        listed = rounded_outcomes(law, centre=Fraction(1, 2), scale=ball(Fraction(5)), window=(-10, 10))
        total = sum(listed.masses.values(), ball(0))
        assert total <= 1 + ball(Fraction(1, 2**90))
        assert total + ball(listed.tail) >= 1 - ball(Fraction(1, 2**90))
    assert listed.tail <= Fraction(1, 2**95)
    assert set(range(-10, 11)) <= set(listed.masses)


def test_a_listing_without_noise_is_a_point_or_two() -> None:
    with precision(128):
        zero = ball(0)
        assert set(rounded_outcomes(LaplaceLaw(), centre=Fraction(7, 3), scale=zero, window=(0, 4)).masses) == {2}
        both = rounded_outcomes(LaplaceLaw(), centre=Fraction(5, 2), scale=zero, window=(0, 4)).masses
    assert set(both) == {2, 3}
    drawn = {
        round_ideal(LaplaceLaw(), centre=Fraction(5, 2), scale=lambda bits: ball(0), step=Fraction(1))
        for _ in range(64)
    }
    assert drawn == {2, 3}


def test_a_window_that_is_too_long_is_refused() -> None:
    with precision(128), pytest.raises(InvalidParameter, match="coarser grid"):
        rounded_outcomes(LaplaceLaw(), centre=Fraction(0), scale=ball(1), window=(0, 10**6))


@pytest.mark.parametrize("kind", [PolynomialLaw, PowerLaw, StudentLaw, LaplaceLogNormalLaw])
@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf, "x", None, True])
def test_a_shape_that_is_nonsense_is_refused(kind: Any, bad: Any) -> None:
    with pytest.raises(InvalidParameter):
        kind(bad)


def test_a_sigma_that_is_of_no_use_is_refused() -> None:
    assert survival(LaplaceLogNormalLaw(Fraction(4)), 1.0) == pytest.approx(0.4472, abs=1e-4)
    with pytest.raises(InvalidParameter, match="at most 4"):
        LaplaceLogNormalLaw(Fraction(5))


@pytest.mark.parametrize("kind", [PolynomialLaw, PowerLaw])
def test_a_density_without_an_integral_is_refused(kind: Any) -> None:
    with pytest.raises(InvalidParameter, match="above 1"):
        kind(1)
