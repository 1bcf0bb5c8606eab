"""The numerical account against published numbers, other libraries, closed forms and an inversion integral."""

from __future__ import annotations

import json
import math
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from pld_oracles import event, sampled_gaussian_delta

from discreet.privacy.events import Gaussian, Laplace, PoissonSampled
from discreet.privacy.pld.convolution import Aim
from discreet.privacy.pld.loss_profile import profile
from discreet.privacy.relation import Relation

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "pld.json").read_text())


def relation(name: str | None) -> Relation | None:
    return None if name is None else Relation(name)


@pytest.mark.parametrize("known", VECTORS["known"], ids=lambda known: known["name"])
def test_epsilon_encloses_published_numbers(known: dict[str, Any]) -> None:
    found = profile(event(known["event"]), relation(known["relation"]))
    upper = found.epsilon_upper(Fraction(known["delta"]))
    assert known["epsilon"] - 1e-4 * known["within"] <= upper + 5e-5  # The number may be rounded up.
    assert upper <= known["epsilon"] + known["within"]
    assert 0.99 * known["epsilon"] <= found.epsilon_lower(Fraction(known["delta"])) <= upper


@pytest.mark.parametrize("entry", VECTORS["dp_accounting"]["entries"], ids=lambda entry: entry["event"]["kind"])
def test_epsilon_agrees_with_dp_accounting(entry: dict[str, Any]) -> None:
    found = profile(event(entry["event"]), relation(entry["relation"]))
    upper = found.epsilon_upper(Fraction(entry["delta"]))
    assert upper == pytest.approx(entry["epsilon"], rel=3e-4)


def test_many_different_mechanisms_compose() -> None:
    events = Counter({Gaussian(20 + Fraction(i, 20)): 1 for i in range(500)})
    events.update({Laplace(40 + Fraction(i, 10)): 1 for i in range(500)})
    found = profile(events, None)
    assert found.epsilon_upper(Fraction(1, 10**5)) == pytest.approx(3.5494, abs=3e-4)


@pytest.mark.parametrize("known", VECTORS["one_step"], ids=lambda known: known["probability"])
def test_one_sampled_step_takes_the_worse_direction(known: dict[str, Any]) -> None:
    leaves: Counter[Any] = Counter({PoissonSampled(Gaussian(known["sigma"]), known["probability"]): 1})
    found = profile(leaves, Relation.ADD_REMOVE)
    assert found.delta_upper(Fraction(known["epsilon"])) == pytest.approx(known["remove"], rel=2e-3)
    assert found.delta_lower(Fraction(known["epsilon"])) == pytest.approx(known["remove"], rel=5e-3)


@pytest.mark.parametrize("known", VECTORS["inversion"]["entries"], ids=lambda known: known["sigma"])
def test_delta_encloses_the_inversion_integral(known: dict[str, Any]) -> None:
    leaves: Counter[Any] = Counter({PoissonSampled(Gaussian(known["sigma"]), known["probability"]): known["times"]})
    found = profile(leaves, Relation.ADD_REMOVE)
    upper, lower = (bound(Fraction(known["epsilon"])) for bound in (found.delta_upper, found.delta_lower))
    assert known["delta"] * (1 - 1e-8) <= upper <= known["delta"] * 1.02
    assert known["delta"] * 0.9 <= lower <= known["delta"] * (1 + 1e-8)


@pytest.mark.parametrize("step", [0.02, 0.005])
@pytest.mark.parametrize(("sigma", "rate", "times"), [(1.0, 0.1, 50), (2.0, 0.3, 20)])
def test_both_bounds_hold_and_close_in_on_a_coarse_grid(
    sigma: float, rate: float, times: int, step: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A coarse grid raises delta visibly. The lower bound gives away more than that, but not 18 times as much."""
    monkeypatch.setattr(Aim, "step", lambda self, goal: step)
    found = profile(Counter({PoissonSampled(Gaussian(sigma), rate): times}), Relation.ADD_REMOVE)
    for epsilon in (0.3, 1.0, 2.0, 4.0):
        present, absent = (sampled_gaussian_delta(sigma, rate, times, epsilon, absent=way) for way in (False, True))
        truth = max(present, absent)
        lower, upper = found.delta_lower(Fraction(epsilon)), found.delta_upper(Fraction(epsilon))
        assert lower <= truth * (1 + 1e-9)
        assert upper >= truth * (1 - 1e-9)
        assert truth - lower <= 18 * (upper - truth) + 1e-9 * truth


@pytest.mark.slow
@pytest.mark.parametrize("known", VECTORS["inversion"]["entries"], ids=lambda known: known["sigma"])
def test_the_inversion_integral_is_what_the_vectors_say(known: dict[str, Any]) -> None:
    numbers = float(known["sigma"]), float(known["probability"]), known["times"], float(known["epsilon"])
    assert sampled_gaussian_delta(*numbers) == pytest.approx(known["delta"], rel=1e-8)


def test_the_absent_direction_follows_the_inversion_integral() -> None:
    from discreet.privacy.pld import convolution, loss_profile

    found = profile(Counter({PoissonSampled(Gaussian(1), "0.3"): 30}), Relation.ADD_REMOVE)
    present, absent = loss_profile.at_epsilon(found.terms, 4.0, convolution.UPPER)
    assert sampled_gaussian_delta(1, 0.3, 30, 4.0) == pytest.approx(present.upper(4.0), rel=3e-3)
    assert sampled_gaussian_delta(1, 0.3, 30, 4.0, absent=True) == pytest.approx(absent.upper(4.0), rel=3e-3)


@pytest.mark.parametrize("delta", ["1e-3", "1e-6", "1e-12", "1e-15", "1e-30"])
def test_one_gaussian_encloses_its_closed_form(delta: str) -> None:
    found = profile(Counter({Gaussian(2): 1}), None)
    upper, lower = found.epsilon_upper(Fraction(delta)), found.epsilon_lower(Fraction(delta))
    assert gaussian_delta(0.5, upper) <= float(delta) <= gaussian_delta(0.5, lower)
    assert upper - lower <= 0.005 * upper


def gaussian_delta(mu: float, epsilon: float) -> float:
    def below(z: float) -> float:
        return math.erfc(-z / math.sqrt(2)) / 2

    return below(mu / 2 - epsilon / mu) - math.exp(epsilon) * below(-mu / 2 - epsilon / mu)


@pytest.mark.parametrize("epsilon", ["0", "0.3", "0.9", "0.999"])
def test_one_laplace_encloses_its_closed_form(epsilon: str) -> None:
    found = profile(Counter({Laplace(1): 1}), None)
    truth = -math.expm1((float(epsilon) - 1) / 2)
    assert truth * (1 - 1e-12) <= found.delta_upper(Fraction(epsilon)) <= truth * 1.001 + 1e-9
    assert truth * 0.98 - 1e-3 <= found.delta_lower(Fraction(epsilon)) <= truth * (1 + 1e-12)
