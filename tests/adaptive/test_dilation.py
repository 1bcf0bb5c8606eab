"""Exact deltas against brute force: the divergence integrated over many shifts and dilations is never above them."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi, gamma, norm

from discreet.adaptive.approximate_recipes import gaussian_delta, laplace_delta, laplace_dilation_delta
from discreet.balls import precision
from discreet.errors import InvalidParameter

Floats = NDArray[np.float64]


def read(*numbers: str) -> list[Fraction]:
    return [Fraction(number) for number in numbers]


def exactly(function: Callable[..., Any], epsilon: str, *given: str, **more: int) -> float:
    names = ("alpha", "beta") if len(given) == 2 else ("beta",)
    with precision(192):
        found = function(epsilon=Fraction(epsilon), **dict(zip(names, read(*given), strict=True)), **more)
        assert float(found.rad()) <= 1e-3 * float(found)
        return float(found)


def allowed(alpha: str, beta: str) -> list[tuple[float, float]]:
    """Dilations and shifts that can occur, the corners among them."""
    a, b = float(alpha), float(beta)
    dilations = [b * part for part in (-1, -0.9, -0.5, -0.1, 0, 0.1, 0.5, 1)]
    parts = (0, 0.3, 0.8, 1)
    return [(lam, part * a * min(1, math.exp(lam))) for lam, part in product(dilations, parts)]


def excess(mine: Floats, other: Floats, epsilon: str, weight: Any) -> float:
    return float(np.sum(np.maximum(mine - math.exp(float(epsilon)) * other, 0) * weight))


ONE = np.linspace(-80, 80, 320_001)
LAPLACE = [("1", "0.5", "0.1"), ("1", "0.9", "0.02"), ("0.1", "0.04", "0.01"), ("5", "2", "0.6"), ("15", "7.5", "1.4")]


@pytest.mark.parametrize("given", LAPLACE)
def test_laplace_delta_dominates_brute_force(given: tuple[str, str, str]) -> None:
    epsilon, alpha, beta = given
    delta = exactly(laplace_delta, epsilon, alpha, beta)
    mine = np.exp(-np.abs(ONE)) / 2
    found = [
        excess(mine, np.exp(-lam - np.abs(ONE - shift) * math.exp(-lam)) / 2, epsilon, ONE[1] - ONE[0])
        for lam, shift in allowed(alpha, beta)
    ]
    assert max(found) == pytest.approx(delta, rel=1e-4)


GAUSSIAN = [("1", "0.3", "0.05"), ("0.1", "0.05", "0.01"), ("4", "1.2", "0.2"), ("1", "0.3", "0.0001")]


@pytest.mark.parametrize("given", GAUSSIAN)
def test_gaussian_delta_dominates_brute_force(given: tuple[str, str, str]) -> None:
    epsilon, alpha, beta = given
    delta = exactly(gaussian_delta, epsilon, alpha, beta)
    z = np.linspace(-30, 30, 60_001)
    found = [
        excess(norm.pdf(z), norm.pdf(z, shift, math.exp(lam)), epsilon, z[1] - z[0])
        for lam, shift in allowed(alpha, beta)
    ]
    assert max(found) <= delta * (1 + 1e-4)
    assert max(found) == pytest.approx(delta, rel=1e-2)


@pytest.mark.parametrize("p", [2, 3, 8])
def test_gaussian_delta_in_more_dimensions_dominates_brute_force(p: int) -> None:
    """Along the shift a vector is normal; what is left of it has a chi law."""
    epsilon, alpha, beta = "1", "0.3", "0.05"
    delta = exactly(gaussian_delta, epsilon, alpha, beta, dimension=p)
    z, r = np.linspace(-12, 12, 1601)[None, :], np.linspace(0.005, 12, 1200)[:, None]
    weight = (z[0, 1] - z[0, 0]) * (r[1, 0] - r[0, 0])
    mine = norm.pdf(z) * chi.pdf(r, p - 1)
    found = [
        excess(mine, norm.pdf(z, shift, math.exp(lam)) * chi.pdf(r, p - 1, 0, math.exp(lam)), epsilon, weight)
        for lam, shift in [(-0.05, 0.3 * math.exp(-0.05)), (-0.05, 0.0), (-0.03, 0.2), (0.0, 0.3), (0.05, 0.3)]
    ]
    assert max(found) == found[0] == pytest.approx(delta, rel=2e-3)


@pytest.mark.parametrize("p", [1, 2, 7])
@pytest.mark.parametrize(("epsilon", "beta"), [("0.5", "0.05"), ("0.5", "0.4"), ("3", "0.2")])
def test_stretched_laplace_delta_dominates_brute_force(p: int, epsilon: str, beta: str) -> None:
    delta = exactly(laplace_dilation_delta, epsilon, beta, dimension=p)
    r = np.linspace(0, 120, 60_001)
    found = [
        excess(gamma.pdf(r, p), gamma.pdf(r, p, 0, math.exp(float(beta) * part)), epsilon, r[1])
        for part in (-1, -0.7, -0.2, 0.2, 0.7, 1)
    ]
    assert max(found) == pytest.approx(delta, rel=1e-3)


@pytest.mark.parametrize("given", GAUSSIAN[:3])
def test_more_dimensions_and_more_beta_mean_more_delta(given: tuple[str, str, str]) -> None:
    epsilon, alpha, beta = given
    deltas = [exactly(gaussian_delta, epsilon, alpha, beta, dimension=p) for p in (1, 2, 5, 20)]
    assert deltas == sorted(deltas)
    assert exactly(gaussian_delta, epsilon, alpha, str(1.1 * float(beta))) > deltas[0]


@pytest.mark.parametrize(
    ("function", "alpha", "beta"),
    [(laplace_delta, "1.1", "0.01"), (laplace_delta, "0.99", "0.5"), (gaussian_delta, "1.5", "0.01")],
)
def test_what_is_not_proven_is_refused(function: Any, alpha: str, beta: str) -> None:
    with precision(192), pytest.raises(InvalidParameter, match="choose"):
        function(epsilon=Fraction(1), alpha=Fraction(alpha), beta=Fraction(beta))


def test_a_beta_too_small_to_add_up_is_refused() -> None:
    with precision(192), pytest.raises(InvalidParameter, match="larger beta"):
        gaussian_delta(epsilon=Fraction(1), alpha=Fraction(1, 2), beta=Fraction(1, 10**6), dimension=2)
