"""The laws are distributions, agree with brute force and with SciPy, and their half-widths are the smallest."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from discreet.balls import ball, precision
from discreet.errors import InvalidParameter
from discreet.noise import (
    DiscreteGaussianLaw,
    DiscreteLaplaceLaw,
    GeometricLaw,
    Law,
    RoundedGaussianLaw,
    RoundedLaplaceLaw,
)
from discreet.noise import (
    laws as sums,
)

Floats = NDArray[np.float64]

SCALES = [Fraction(1, 10), Fraction(1, 3), Fraction(1), Fraction(17, 4), Fraction(40)]
VARIANCES = [Fraction(1, 20), Fraction(1, 3), Fraction(1), Fraction(39, 10), Fraction(4), Fraction(30), Fraction(1000)]
LAWS: list[Any] = [
    *(law(scale) for law in (DiscreteLaplaceLaw, GeometricLaw, RoundedLaplaceLaw) for scale in SCALES),
    *(law(variance) for law in (DiscreteGaussianLaw, RoundedGaussianLaw) for variance in VARIANCES),
]
WIDE: list[Any] = [
    DiscreteLaplaceLaw(Fraction(10**6)),
    DiscreteLaplaceLaw(Fraction(1 << 50)),
    RoundedLaplaceLaw(Fraction(1 << 50)),
    GeometricLaw(Fraction(1 << 50)),
    DiscreteGaussianLaw(Fraction(10**6)),
    DiscreteGaussianLaw(Fraction(1 << 80)),
    RoundedGaussianLaw(Fraction(10**6)),
    RoundedGaussianLaw(Fraction(1 << 80)),
]
CONFIDENCES = ["0", "1e-9", "0.1", "0.25", "0.5", "0.68", "0.9", "0.95", "0.99", "0.999999", "0.999999999999"]

laws = pytest.mark.parametrize("law", LAWS, ids=repr)
all_laws = pytest.mark.parametrize("law", LAWS + WIDE, ids=repr)


def reach(law: Law) -> int:
    return int(60 * law.standard_deviation) + 60


def by_formula(law: Any, k: NDArray[np.int64]) -> Floats:
    """Return the probabilities of k by SciPy, or by summing the weights."""
    if isinstance(law, DiscreteLaplaceLaw):
        return np.asarray(stats.dlaplace.pmf(k, 1 / float(law.scale)))
    if isinstance(law, GeometricLaw):
        return np.asarray(stats.geom.pmf(k + 1, -math.expm1(-1 / float(law.scale))))
    if isinstance(law, RoundedLaplaceLaw | RoundedGaussianLaw):
        rounded = stats.laplace(scale=float(law.scale)) if isinstance(law, RoundedLaplaceLaw) else None
        rounded = rounded or stats.norm(scale=math.sqrt(law.variance))
        # From the upper tail, where both are accurate.
        return np.asarray(rounded.sf(np.abs(k) - 0.5) - rounded.sf(np.abs(k) + 0.5))
    weights = np.exp(-(k.astype(float) ** 2) / (2 * float(law.variance)))
    return np.asarray(weights / weights.sum())


def near(value: Any, expected: float, tolerance: float = 1e-12) -> bool:
    return math.isclose(float(value), expected, rel_tol=tolerance, abs_tol=1e-300)


@laws
def test_probabilities_agree_with_scipy_and_brute_force(law: Any) -> None:
    far = reach(law)
    k = np.arange(-far, far + 1)
    expected = by_formula(law, k)
    with precision(128):
        assert all(
            near(law.pmf(int(k[i])), expected[i], 1e-11) for i in range(0, len(k), far // 50) if expected[i] > 1e-250
        )
        # A tail of a sum has the accuracy of its largest term only.
        tails = [
            (float(law.survival(int(k[i]))), expected[i + 1 :].sum()) for i in range(far - 1, len(k) - 1, far // 20)
        ]
    assert all(math.isclose(ours, theirs, rel_tol=1e-11, abs_tol=1e-13) for ours, theirs in tails)


@laws
def test_probabilities_sum_to_one_with_their_tails(law: Any) -> None:
    far = int(3 * law.standard_deviation) + 3
    with precision(128):
        total = sum((law.pmf(k) for k in range(-far, far + 1)), law.survival(far) + law.cdf(-far - 1))
        assert total.contains(1)
        assert total.rad() < 1e-30


@all_laws
def test_the_distribution_function_rises_from_zero_to_one_by_the_probabilities(law: Any) -> None:
    width = max(1, int(law.standard_deviation))
    with precision(128):
        for k in {-5 * width, -width, -2, -1, 0, 1, 2, width // 2, width, 4 * width, 9 * width}:
            assert (law.cdf(k) + law.survival(k)).contains(1)
            assert (law.cdf(k) - law.cdf(k - 1)).overlaps(law.pmf(k))
            assert (law.survival(k - 1) - law.survival(k)).overlaps(law.pmf(k))
            assert law.cdf(k).rad() < 1e-30
            assert law.pmf(k) >= 0
        assert law.cdf(-100 * width - 100) < 1e-30
        assert law.survival(100 * width + 100) < 1e-30


@all_laws
def test_tails_are_accurate_relative_to_themselves(law: Any) -> None:
    width = max(1, int(law.standard_deviation))
    with precision(128):
        for k in (width, 5 * width, 9 * width):
            assert law.survival(k).rad() <= 1e-25 * law.survival(k)


@all_laws
@pytest.mark.parametrize("text", CONFIDENCES)
def test_a_half_width_is_the_smallest_that_holds(law: Any, text: str) -> None:
    confidence = Fraction(text)
    width = law.half_width(confidence)
    with precision(300):
        inside: Callable[[int], Any] = lambda t: 1 - (law.survival(t) + law.cdf(-t - 1))  # noqa: E731
        assert inside(width) >= ball(confidence)
        assert width == 0 or inside(width - 1) < ball(confidence)


@laws
@pytest.mark.parametrize("text", ["0.1", "0.5", "0.9", "0.999999"])
def test_a_half_width_agrees_with_brute_force(law: Any, text: str) -> None:
    k = np.arange(-reach(law), reach(law) + 1)
    probabilities = by_formula(law, k)
    by_size = np.bincount(np.abs(k), probabilities)
    assert law.half_width(Fraction(text)) == int(np.searchsorted(np.cumsum(by_size), float(text)))


def test_a_geometric_law_has_no_negative_values() -> None:
    law = GeometricLaw(Fraction(3))
    with precision(64):
        assert law.pmf(-1) == 0
        assert law.cdf(-1) == 0
        assert law.survival(-5) == 1


@pytest.mark.parametrize("sigma", [6, 33, 100, pytest.param(1000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("sigmas", [0.0, 0.3, 1.0, 2.5, 6.0, 9.9, 10.1, 15.0])
def test_integrals_enclose_the_sum_that_they_stand_for(sigma: int, sigmas: float) -> None:
    variance, k = Fraction(sigma**2) + Fraction(1, 7), int(sigma * sigmas)
    with precision(96):
        summed = sums._series(variance, k, k + 40 * sigma)
        for enclosure in (sums._integral, sums._corrected_integral, sums.above):
            assert enclosure(variance, k).overlaps(summed)
        assert sums.above(variance, k).rad() < 1e-20 * summed


@pytest.mark.parametrize("variance", [Fraction(1, 9), Fraction(399, 100), Fraction(4), Fraction(50), Fraction(2000)])
def test_the_sum_of_all_weights_is_that_of_its_terms(variance: Fraction) -> None:
    with precision(128):
        terms = 1 + 2 * sums._series(variance, 0, int(40 * math.sqrt(variance)) + 40)
        assert sums.total(variance).overlaps(terms)
        assert sums.total(variance).rad() < 1e-30


@laws
def test_standard_deviations_agree_with_brute_force(law: Any) -> None:
    k = np.arange(-reach(law), reach(law) + 1)
    chances = by_formula(law, k)
    mean = float(np.sum(k * chances))
    deviation = math.sqrt(float(np.sum((k - mean) ** 2 * chances)))
    # Beyond variance 4 the formula for the discrete Gaussian leaves out 4 pi^2 variance exp(-2 pi^2 variance).
    assert near(law.standard_deviation, deviation, 1e-10)


@pytest.mark.parametrize("law", WIDE, ids=repr)
def test_standard_deviations_of_wide_laws_are_those_of_the_continuous_ones(law: Any) -> None:
    if hasattr(law, "variance"):
        expected = math.sqrt(law.variance)
    else:
        expected = float(law.scale) * (1 if isinstance(law, GeometricLaw) else math.sqrt(2))
    assert near(law.standard_deviation, expected, 1e-6)


@pytest.mark.parametrize(
    "make", [DiscreteLaplaceLaw, GeometricLaw, RoundedLaplaceLaw, RoundedGaussianLaw, DiscreteGaussianLaw]
)
@pytest.mark.parametrize("bad", [0, -1, "nan", math.nan, math.inf, None, True, "1e400", "1e-400", [], 1j, "x"])
def test_laws_refuse_parameters_that_are_none(make: Any, bad: Any) -> None:
    with pytest.raises(InvalidParameter):
        make(bad)


@pytest.mark.parametrize("bad", [1, "1.0", 2, -0.1, math.nan, None, True, "all", 1j])
def test_half_widths_refuse_confidences_that_are_none(bad: Any) -> None:
    with pytest.raises(InvalidParameter):
        DiscreteLaplaceLaw(Fraction(1)).half_width(bad)


@pytest.mark.parametrize("make", [DiscreteLaplaceLaw, RoundedLaplaceLaw, RoundedGaussianLaw, DiscreteGaussianLaw])
@pytest.mark.parametrize("parameter", ["1e-300", "1e-9", "1e30", "1e300"])
def test_laws_of_any_size_have_probabilities(make: Any, parameter: str) -> None:
    law = make(Fraction(parameter))
    with precision(2048):
        assert 0 <= law.pmf(0) <= 1.0001
        assert law.survival(0) <= ball(Fraction(1, 2))
    assert math.isfinite(law.standard_deviation)
