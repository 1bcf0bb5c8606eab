"""Recipes: each has the guarantee that it carries over all shifts and dilations, and little to spare."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.adaptive.approximate_recipes import (
    classical_gaussian,
    classical_laplace,
    gaussian,
    gaussian_delta,
    laplace,
    laplace_delta,
    laplace_dilation_delta,
    laplace_log_normal,
)
from discreet.adaptive.noise_recipes import Recipe, best_recipe, evenly_spaced, polynomial, power, student
from discreet.adaptive.smooth_noise_laws import GaussianLaw, LaplaceLaw, PolynomialLaw, PowerLaw
from discreet.adaptive.smoothness_check import largest_loss
from discreet.balls import precision
from discreet.errors import InvalidParameter
from discreet.privacy.events import ZCDP, ApproxDP, PureDP

PURE: list[Callable[..., Recipe]] = [polynomial, power, student]


@pytest.mark.parametrize("make", PURE)
@pytest.mark.parametrize(("epsilon", "beta"), [("1", "0.1"), ("0.1", "0.02"), ("8", "1.5")])
def test_a_pure_recipe_keeps_its_epsilon_over_all_shifts_and_dilations(make: Any, epsilon: str, beta: str) -> None:
    recipe = make(epsilon, beta=beta)
    found = largest_loss(recipe.law, alpha=recipe.alpha, beta=recipe.beta)
    assert recipe.event == PureDP(epsilon)
    assert found.upper <= float(epsilon) * 1.002
    assert found.lower > 0.4 * float(epsilon)
    if make is polynomial:
        assert found.lower > float(epsilon) * (1 - 1e-6)


@pytest.mark.parametrize("exponent", ["1.5", "3", "8", None])
def test_polynomial_noise_leaves_nothing_of_its_epsilon(exponent: str | None) -> None:
    recipe = polynomial(1, beta="0.1", exponent=exponent)
    assert largest_loss(recipe.law, alpha=recipe.alpha, beta=recipe.beta).lower > 1 - 1e-6
    wider = largest_loss(recipe.law, alpha=recipe.alpha * Fraction("1.01"), beta=recipe.beta)
    assert wider.lower > 1


@pytest.mark.parametrize("shape", ["1.5", "2", "3", "4", "6", "10"])
def test_the_constants_of_power_noise_are_enough_for_every_shape(shape: str) -> None:
    recipe = power(1, beta=Fraction(1, 2) / max(1, Fraction(shape) - 1), gamma=shape)
    found = largest_loss(recipe.law, alpha=recipe.alpha, beta=recipe.beta)
    assert 0.5 < found.lower <= found.upper < 1


def coordinate_loss(recipe: Recipe, lam: float, shift: float) -> float:
    """The largest loss of one coordinate at a shift, by the density itself; at infinity by its exponent."""
    z = np.concatenate([[0.0, -shift], -np.geomspace(1e-3, 1e6, 400), np.geomspace(1e-3, 1e6, 400)])
    if isinstance(recipe.law, PolynomialLaw):
        a = float(recipe.law.exponent)
        losses = lam - a * np.log1p(np.abs(z)) + a * np.log1p(np.abs(z - shift) * math.exp(-lam))
        return max(float(losses.max()), (1 - a) * lam)
    assert isinstance(recipe.law, PowerLaw)
    g = float(recipe.law.gamma)
    losses = lam - np.log1p(np.abs(z) ** g) + np.log1p((np.abs(z - shift) * math.exp(-lam)) ** g)
    return float(losses.max())


def splits(alpha: float, p: int) -> Iterator[list[float]]:
    """Shares of a shift: over the first k coordinates alike, or lopsided."""
    for k in range(p + 1):
        yield [alpha / k if j < k else 0.0 for j in range(p)]
    yield [alpha * 2.0 ** -(j + 1) for j in range(p)]


@pytest.mark.parametrize("make", [polynomial, power])
@pytest.mark.parametrize(("p", "beta"), [(2, "0.05"), (3, "0.02"), (5, "0.02"), (5, "0.1")])
def test_a_pure_recipe_in_more_dimensions_keeps_its_epsilon(make: Any, p: int, beta: str) -> None:
    recipe = make(1, beta=beta, dimension=p)
    b, alpha = float(recipe.beta), float(recipe.alpha)
    found = max(
        sum(coordinate_loss(recipe, lam, shift) for shift in split)
        for lam in (-b, -b / 2, 0.0, b / 2, b)
        for split in splits(alpha * min(1, math.exp(lam)), p)
    )
    assert found <= 1 + 1e-6
    assert found > (0.999 if make is polynomial else 0.6)


@pytest.mark.parametrize("p", [1, 3])
@pytest.mark.parametrize(("epsilon", "delta"), [("0.2", "1e-9"), ("1", "1e-6"), ("12", "0.01")])
def test_a_recipe_with_delta_is_as_narrow_as_its_delta_allows(p: int, epsilon: str, delta: str) -> None:
    for make, function in ((laplace, laplace_delta), (gaussian, gaussian_delta)):
        recipe = make(epsilon, delta, beta=Fraction(epsilon) / 100, dimension=p)
        assert recipe.event == ApproxDP(epsilon, delta)
        assert recipe.norm == (2 if make is gaussian else 1)
        with precision(192):
            for factor, above in ((1, False), (Fraction("1.000001"), True)):
                assert (delivered(recipe, factor, function) > float(delta)) == above


def delivered(recipe: Recipe, factor: Fraction | int, function: Any) -> float:
    assert isinstance(recipe.event, ApproxDP)
    epsilon, alpha, beta = recipe.event.epsilon, recipe.alpha * factor, recipe.beta
    if recipe.dimension == 1:
        return float(function(epsilon=epsilon, alpha=alpha, beta=beta))
    if function is gaussian_delta:
        return float(gaussian_delta(epsilon=epsilon, alpha=alpha, beta=beta, dimension=recipe.dimension))
    return float(laplace_dilation_delta(epsilon=epsilon - alpha, beta=beta, dimension=recipe.dimension))


@pytest.mark.parametrize("make", [laplace, gaussian])
def test_alpha_from_beta_and_beta_from_alpha_are_the_same_pair(make: Any) -> None:
    first = make(1, "1e-6", beta="0.02")
    again = make(1, "1e-6", alpha=first.alpha)
    assert float(again.beta) == pytest.approx(0.02, rel=1e-6)


@settings(max_examples=30)
@given(
    epsilon=st.fractions("0.01", 20),
    share=st.fractions("0.01", "0.9"),
    make=st.sampled_from([polynomial, power, student]),
)
def test_more_epsilon_means_less_noise_for_all_budgets(epsilon: Fraction, share: Fraction, make: Any) -> None:
    less, more = make(epsilon, beta=share * epsilon), make(2 * epsilon, beta=share * epsilon)
    assert more.half_width() < less.half_width()


def test_exact_recipes_have_less_noise_than_the_classical_ones() -> None:
    for p in (1, 4):
        old, new = classical_gaussian("0.5", "1e-6", dimension=p), classical_laplace("0.5", "1e-6", dimension=p)
        assert gaussian("0.5", "1e-6", beta=old.beta, dimension=p).alpha > 3 * old.alpha
        assert laplace("0.5", "1e-6", beta=new.beta, dimension=p).alpha > new.alpha
        assert laplace("0.5", "1e-6", alpha=new.alpha, dimension=p).beta > 1.4 * new.beta


@pytest.mark.parametrize("make", [classical_laplace, classical_gaussian])
@pytest.mark.parametrize("epsilon", ["1", "1.5", "15"])
def test_a_classical_recipe_beyond_its_range_is_refused(make: Any, epsilon: str) -> None:
    with pytest.raises(InvalidParameter, match="below 1 only"):
        make(epsilon, "1e-6")


def test_the_classical_recipes_hold_within_their_range() -> None:
    for p, epsilon, delta in product((1, 3, 12), ("0.05", "0.99"), ("1e-9", "0.01")):
        one, two = classical_laplace(epsilon, delta, dimension=p), classical_gaussian(epsilon, delta, dimension=p)
        assert one.alpha == Fraction(epsilon) / 2
        with precision(192):
            assert delivered(one, 1, laplace_delta) < float(delta)
            assert delivered(two, 1, gaussian_delta) < float(delta)


def test_concentrated_noise_is_charged_as_such() -> None:
    recipe = laplace_log_normal("0.5", beta="0.1", sigma="0.3")
    assert recipe.event == ZCDP("0.5")
    spent = 0.1 / 0.3 + float(recipe.alpha) * math.exp(1.5 * 0.09)
    assert spent == pytest.approx(1, rel=1e-9)
    assert spent <= 1
    assert laplace_log_normal("0.5", beta="0.1").half_width() <= recipe.half_width()


def test_ladders_of_ratio_two_turn_one_into_thirteen() -> None:
    """Rounding the bound to powers of two makes e^beta a factor two: the tail alone then loses (a - 1) log 2."""
    recipe = polynomial(1, beta="0.05", alpha="0.05")
    found = largest_loss(recipe.law, alpha=recipe.alpha, beta=Fraction(math.log(2)))
    assert found.lower == pytest.approx(13.48, abs=0.02)


@pytest.mark.parametrize(("gamma", "breaks"), [(3, False), (6, False), (10, True)])
def test_a_quarter_and_a_whole_over_gamma_break_at_ten(gamma: int, breaks: bool) -> None:
    found = largest_loss(PowerLaw(Fraction(gamma)), alpha=Fraction(1, 4 * gamma), beta=Fraction(1, gamma))
    assert (found.lower > 1) == breaks
    assert found.upper < (1.05 if breaks else 1)


def test_a_recipe_is_a_frozen_value_with_public_numbers() -> None:
    recipe = polynomial(1, beta="0.1")
    assert recipe == polynomial("1", beta=0.1)
    assert recipe.ratio == 1 / recipe.alpha
    with pytest.raises(dataclasses.FrozenInstanceError):
        recipe.alpha = Fraction(1)  # type: ignore[misc]
    assert recipe.half_width("0.5") < recipe.half_width("0.95") < recipe.half_width("0.999")
    assert recipe.half_width() == pytest.approx(3.7069, abs=1e-4)
    assert recipe.standard_deviation == pytest.approx(1.7688, abs=1e-4)


BAD = [0, -1, math.nan, math.inf, "x", None, True, [], "1/0"]


@pytest.mark.parametrize("bad", BAD)
def test_nonsense_is_refused(bad: Any) -> None:
    for call in (
        lambda: polynomial(bad, beta=1),
        lambda: polynomial(1, beta=bad),
        lambda: power(bad, beta=1),
        lambda: student(1, beta=bad),
        lambda: laplace(bad, "1e-6", beta=1),
        lambda: laplace(1, bad, beta="0.01"),
        lambda: gaussian(1, "1e-6", alpha=bad),
        lambda: laplace_log_normal(bad, beta="0.1"),
        lambda: classical_laplace(bad, "1e-6"),
        lambda: classical_gaussian("0.5", bad),
        lambda: largest_loss(PowerLaw(Fraction(4)), alpha=bad, beta=1),
    ):
        with pytest.raises(InvalidParameter):
            call()


@pytest.mark.parametrize("bad", [0, -1, "2", 1.5, True, None])
def test_a_dimension_that_is_no_number_is_refused(bad: Any) -> None:
    for call in (
        lambda: polynomial(1, beta="0.1", dimension=bad),
        lambda: power(1, beta="0.1", gamma=4, dimension=bad),
        lambda: student(1, beta="0.1", degrees=3, dimension=bad),
        lambda: laplace(1, "1e-6", beta="0.01", dimension=bad),
        lambda: gaussian(1, "1e-6", beta="0.01", dimension=bad),
        lambda: classical_laplace("0.5", "1e-6", dimension=bad),
    ):
        with pytest.raises(InvalidParameter):
            call()


def test_too_large_a_beta_is_refused_with_the_way_out() -> None:
    for call in (
        lambda: polynomial(1, beta=2),
        lambda: polynomial(1, beta="0.1", exponent=12),
        lambda: power(1, beta=2),
        lambda: power(1, beta="0.5", gamma=4),
        lambda: student(1, beta="0.5", degrees=3),
        lambda: laplace(1, "1e-6", beta=2),
        lambda: gaussian(1, "1e-6", beta=2),
        lambda: laplace_log_normal("0.5", beta=2, sigma=1),
    ):
        with pytest.raises(InvalidParameter, match="smaller"):
            call()


def test_a_pair_that_is_over_or_under_determined_is_refused() -> None:
    for call in (
        lambda: laplace(1, "1e-6"),
        lambda: gaussian(1, "1e-6", alpha="0.1", beta="0.01"),
        lambda: polynomial(1, beta="0.1", alpha="0.1", exponent=3),
    ):
        with pytest.raises(InvalidParameter, match="say"):
            call()


def test_only_laws_that_fall_like_a_power_have_a_largest_loss() -> None:
    for law in (LaplaceLaw(), GaussianLaw()):
        with pytest.raises(InvalidParameter, match="polynomial tails"):
            largest_loss(law, alpha="0.1", beta="0.1")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "family",
    [
        lambda beta: polynomial(1, beta=beta),
        lambda beta: student(1, beta=beta, degrees=3),
        lambda beta: laplace(1, "1e-6", beta=beta),
    ],
)
def test_the_best_recipe_beats_its_neighbours_and_the_ends(family: Callable[[Fraction], Recipe]) -> None:
    best = best_recipe(family)
    width = best.half_width() * evenly_spaced(best.beta)
    for factor in ("0.01", "0.5", "0.8", "1.25"):
        other = family(best.beta * Fraction(factor))
        assert other.half_width() * evenly_spaced(other.beta) > width * (1 - 1e-3)


def test_the_guess_decides_about_the_best_beta() -> None:
    def family(beta: Fraction) -> Recipe:
        return polynomial(1, beta=beta)

    flat = best_recipe(family, guess=lambda beta: 1.0)
    steep = best_recipe(family, guess=lambda beta: float(beta) ** -3)
    assert flat.beta < best_recipe(family).beta < steep.beta
    assert best_recipe(family, confidence="0.999").beta < best_recipe(family, confidence="0.5").beta


def test_evenly_spaced_values_have_the_smooth_sensitivity_of_the_definition() -> None:
    for beta in ("0.001", "0.03", "0.4", "1", "3"):
        direct = max((k + 1) * math.exp(-float(beta) * k) for k in range(5000))
        assert evenly_spaced(Fraction(beta)) == pytest.approx(direct, rel=1e-12)


def test_a_family_without_any_recipe_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="spend more"):
        best_recipe(lambda beta: polynomial("0.00001", beta=beta))
