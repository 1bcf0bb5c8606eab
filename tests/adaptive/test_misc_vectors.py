"""Published numbers and properties that belong to no single mechanism: quantiles of noise, bounds on regressions."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from discreet.adaptive.approximate_recipes import classical_gaussian
from discreet.adaptive.smooth_noise_laws import LaplaceLaw, quantile_up

READ = json.loads((Path(__file__).parents[1] / "vectors" / "misc.json").read_text())["vectors"]
VECTORS = {vector["id"]: vector for vector in READ}
SQUARED = [name for name in VECTORS if "chi2" in name]


@pytest.mark.parametrize("name", SQUARED)
def test_the_bound_on_a_chi_square_holds_where_the_printed_one_fails(name: str) -> None:
    d, delta = VECTORS[name]["inputs"]["d"], VECTORS[name]["inputs"]["delta"]
    quantile = VECTORS[name]["expected"]
    assert stats.chi2.isf(delta / 2, d) == pytest.approx(quantile, rel=1e-8)
    assert quantile <= 2 * d + 3 * math.log(2 / delta)
    if delta < 1e-6:
        assert quantile > 2 * (d + math.log(2 / delta))  # "In particular beta = epsilon / 4 (d + ln(2 / delta))"


@pytest.mark.parametrize("name", SQUARED)
def test_the_classical_recipe_is_no_less_smooth_than_the_quantile_allows(name: str) -> None:
    d, delta = VECTORS[name]["inputs"]["d"], VECTORS[name]["inputs"]["delta"]
    recipe = classical_gaussian("0.5", Fraction(delta), dimension=d)
    assert float(recipe.beta) <= 0.5 / (2 * VECTORS[name]["expected"])


def test_laplace_noise_has_its_quantile() -> None:
    vector = VECTORS["misc/laplace_quantile"]
    both_sides = Fraction(2 * (1 - Fraction(str(vector["inputs"]["p"]))))
    assert vector["inputs"]["b"] * quantile_up(LaplaceLaw(), both_sides) == pytest.approx(vector["expected"], rel=1e-9)


def clipped(source: np.random.Generator, rows: int, dimension: int) -> tuple[np.ndarray, np.ndarray]:
    table = source.normal(size=(rows, dimension))
    return table / np.maximum(1, np.linalg.norm(table, axis=1, keepdims=True)), np.clip(source.normal(size=rows), -1, 1)


def in_ball(table: np.ndarray, response: np.ndarray, ridge: float, radius: float) -> np.ndarray:
    """Fit within a ball, by projected gradients."""
    gram, moment = table.T @ table + ridge * np.eye(table.shape[1]), table.T @ response
    theta, size = np.zeros(table.shape[1]), 1 / np.linalg.eigvalsh(gram)[-1]
    for _ in range(800):
        theta = theta - size * (gram @ theta - moment)
        theta *= min(1.0, radius / max(np.linalg.norm(theta), 1e-300))
    return theta


def test_a_replaced_row_moves_a_fit_in_a_ball_by_less_than_strong_convexity_allows() -> None:
    source, worst = np.random.default_rng(11), 0.0
    for _ in range(30):
        rows, ridge, radius = int(source.integers(1, 6)), float(source.uniform(0.05, 1)), float(source.uniform(0.2, 3))
        table, response = clipped(source, rows + 1, 2)
        one, other = slice(0, rows), slice(1, rows + 1)
        shift = in_ball(table[one], response[one], ridge, radius) - in_ball(
            table[other], response[other], ridge, radius
        )
        least = np.linalg.eigvalsh(table[one].T @ table[one])[0]
        worst = max(worst, float(np.linalg.norm(shift)) * (least + ridge) / (2 * (1 + radius)))
    assert 0.05 < worst <= VECTORS["misc/ridge_constrained_replace_ratio"]["expected"]


def test_an_added_row_moves_a_least_squares_fit_by_less_than_its_bound() -> None:
    source, worst = np.random.default_rng(12), 0.0
    for _ in range(300):
        table, response = clipped(source, int(source.integers(4, 9)), 2)
        gram = table[1:].T @ table[1:]
        before = np.linalg.solve(gram, table[1:].T @ response[1:])
        after = np.linalg.lstsq(table, response, rcond=None)[0]
        allowed = np.linalg.norm(table[0]) * abs(response[0] - table[0] @ before) / np.linalg.eigvalsh(gram)[0]
        worst = max(worst, float(np.linalg.norm(after - before) / allowed))
    assert 0.5 < worst <= VECTORS["robust/ols_add_one_bound_ratio"]["expected"]
