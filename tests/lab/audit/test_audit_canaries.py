"""Errors of a test on scores, and the epsilon or µ that they show."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from planted_tools import uniform
from scipy.special import ndtri

from discreet.errors import InvalidParameter
from discreet.lab.audit import Errors, epsilon_from_errors, errors_of, mu_from_errors

CEILINGS = json.loads((Path(__file__).parents[2] / "vectors" / "auditing.json").read_text(encoding="utf-8"))["ceilings"]


def perfect(runs: int) -> Errors:
    return Errors(false_alarms=0, misses=0, without=runs, with_it=runs)


@pytest.mark.parametrize(("runs", "epsilon"), CEILINGS["epsilon"])
def test_what_a_perfect_attack_shows_is_limited_by_its_runs(runs: int, epsilon: float) -> None:
    assert epsilon_from_errors(perfect(runs), delta=0.0, error=0.05) == pytest.approx(epsilon, abs=0.006)


@pytest.mark.parametrize(("runs", "mu"), CEILINGS["mu"])
def test_a_gaussian_curve_shows_more_from_as_many_runs(runs: int, mu: float) -> None:
    assert mu_from_errors(perfect(runs), error=0.05) == pytest.approx(mu, abs=0.006)


def test_delta_lowers_what_is_shown_and_guessing_shows_nothing() -> None:
    assert epsilon_from_errors(perfect(100), delta=0.1, error=0.05) < epsilon_from_errors(
        perfect(100), delta=0, error=0.05
    )
    guessing = Errors(false_alarms=50, misses=50, without=100, with_it=100)
    assert epsilon_from_errors(guessing, delta=0.0, error=0.05) == 0
    assert mu_from_errors(guessing, error=0.05) == 0


def test_the_threshold_is_chosen_on_one_half_and_counted_on_the_other() -> None:
    found = errors_of([0.0, 0.1, 0.0, 9.0], [1.0, 1.2, 1.1, -5.0])
    assert found == Errors(false_alarms=1, misses=1, without=2, with_it=2)


def test_few_scores_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="four scores"):
        errors_of([1.0, 2.0, 3.0], [1.0] * 9)


@pytest.mark.statistical
def test_a_gaussian_step_is_measured_nearly_tightly_and_never_above() -> None:
    """Scores of 20,000 steps at µ = 1: between 0.85 and 1, but for a chance of a billionth."""
    outs, ins = ndtri(uniform(20_000) + 2**-54), 1 + ndtri(uniform(20_000) + 2**-54)
    assert 0.8 < mu_from_errors(errors_of(outs, ins), error=1e-9) <= 1.0
