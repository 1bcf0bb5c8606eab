"""One run, many canaries: reference values, and no false refutation on mechanisms whose curve is known."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from planted_tools import uniform
from scipy.special import ndtri

from discreet.errors import InvalidParameter
from discreet.lab.audit import Guesses, epsilon_from_guesses, epsilon_from_guesses_gdp, guess
from discreet.lab.audit.confidence_limits import at_least
from discreet.lab.audit.training_audit import guesses_p_value
from discreet.privacy import Gaussian, Relation, epsilon

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "auditing.json").read_text(encoding="utf-8"))["one_run"]


@pytest.mark.parametrize("row", VECTORS["rows"], ids=str)
def test_lower_bounds_agree_with_the_reference(row) -> None:
    guesses = Guesses(canaries=row[0], made=row[1], right=row[2])
    for delta, expected in zip((0.0, 1e-5), row[3:], strict=True):
        if expected is not None:
            assert epsilon_from_guesses(guesses, delta=delta, error=0.05) == pytest.approx(expected, abs=0.006)


def test_more_right_guesses_show_more() -> None:
    shown = [
        epsilon_from_guesses(Guesses(canaries=200, made=100, right=right), delta=1e-5, error=0.05)
        for right in range(40, 101, 5)
    ]
    assert shown == sorted(shown)
    assert shown[0] == 0 < shown[-1]


def test_the_gaussian_curve_shows_more_than_a_single_point_of_it() -> None:
    guesses = Guesses(canaries=1000, made=100, right=100)
    plain, curved = (
        bound(guesses, delta=1e-5, error=0.05) for bound in (epsilon_from_guesses, epsilon_from_guesses_gdp)
    )
    assert curved > 1.5 * plain


def test_guesses_are_the_ends_of_the_scores() -> None:
    found = guess([5.0, 1.0, 3.0, 4.0], [True, False, True, False], high=2, low=1)
    assert found == Guesses(canaries=4, made=3, right=2)


@pytest.mark.parametrize("wrong", [(0, 0, 0), (5, 6, 1), (5, 3, 4), (5, 3, -1)])
def test_impossible_numbers_of_guesses_are_refused(wrong) -> None:
    with pytest.raises(InvalidParameter, match="right <= made <= canaries"):
        Guesses(canaries=wrong[0], made=wrong[1], right=wrong[2])


def test_scores_and_canaries_must_match() -> None:
    with pytest.raises(InvalidParameter, match="score for each canary"):
        guess([1.0], [True, False], high=1, low=0)


def gaussian_runs(mu: float, runs: int, canaries: int, made: int) -> np.ndarray:
    """The number of right guesses in runs of an exact Gaussian mechanism whose canaries do not disturb each other."""
    included = uniform(runs, canaries) < 0.5
    scores = mu * included + ndtri(np.clip(uniform(runs, canaries), 1e-16, 1 - 1e-16))
    order = np.argsort(scores, axis=1)
    truth = np.take_along_axis(included, order, axis=1)
    return truth[:, canaries - made // 2 :].sum(axis=1) + (~truth[:, : made // 2]).sum(axis=1)


def true_epsilon(mu: float, delta: float) -> float:
    return epsilon(Gaussian(variance=1, squared_sensitivity=mu**2), delta, relation=Relation.ADD_REMOVE)


@pytest.mark.statistical
@pytest.mark.parametrize(("mu", "made"), [(0.5, 60), (1.0, 20), (1.0, 100), (2.0, 100)])
def test_exact_gaussian_mechanisms_are_refuted_as_seldom_as_is_said(mu: float, made: int) -> None:
    canaries, delta, error, runs = 100, 1e-3, 0.05, 4_000
    truth = true_epsilon(mu, delta)
    right = gaussian_runs(mu, runs, canaries, made)
    seen = {int(value): int(count) for value, count in zip(*np.unique(right, return_counts=True), strict=True)}
    for bound in (epsilon_from_guesses, epsilon_from_guesses_gdp):
        refuted = sum(
            count
            for value, count in seen.items()
            if bound(Guesses(canaries=canaries, made=made, right=value), delta=delta, error=error) > truth
        )
        assert at_least(refuted, runs, 1e-9) <= error
        half = true_epsilon(mu / 4, delta)  # A claim that is far too good is refuted in most runs.
        caught = sum(
            count
            for value, count in seen.items()
            if epsilon_from_guesses_gdp(Guesses(canaries=canaries, made=made, right=value), delta=delta, error=error)
            > half
        )
        assert mu < 1 or made < 50 or caught > runs / 2


def test_the_p_value_of_randomized_response_is_that_of_a_binomial() -> None:
    """Its guesses are right with probability e^ε / (1 + e^ε) each, which is the worst case of the theorem."""
    from scipy.stats import binom

    p_value = guesses_p_value(Guesses(canaries=50, made=50, right=40), 1.0, 0.0)
    assert p_value == pytest.approx(float(binom.sf(39, 50, np.e / (1 + np.e))))
