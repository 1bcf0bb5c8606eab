"""The last digits of textbook noise tell the exact value; those of noise on a grid do not."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pytest

import discreet as dp
from discreet import plots
from discreet.errors import InvalidParameter, Refused
from discreet.lab import attacks
from discreet.lab.attacks import floating_point_attack, textbook_noise
from discreet.lab.attacks.floating_point_attack import _places

NUMPY = np.random.default_rng()
SIZE = 5_000


def numpy_laplace(value: float, size: int) -> np.ndarray:
    return value + NUMPY.laplace(0.0, 1.0, size)


def numpy_centred(value: float, size: int) -> np.ndarray:
    return NUMPY.laplace(value, 1.0, size)


def numpy_normal(value: float, size: int) -> np.ndarray:
    return value + NUMPY.normal(0.0, 1.0, size)


def one_by_one(value: float) -> float:
    return value + float(NUMPY.laplace())


@pytest.mark.parametrize("noise", [numpy_laplace, numpy_centred, textbook_noise.laplace, one_by_one])
def test_laplace_noise_on_doubles_falls(noise):
    """More than a quarter of the outputs of 0 are finer than any output of 1 can be."""
    found = attacks.floating_point(noise, epsilon=1, samples=SIZE, error=1e-9)
    assert found.broken
    assert 2 < found.epsilon_at_least < math.inf
    assert min(one.hits for one in found.seen) == 0
    assert found.baseline < max(one.share for one in found.seen)


@pytest.mark.parametrize("noise", [numpy_normal, textbook_noise.gaussian])
def test_normal_noise_on_doubles_falls(noise):
    assert attacks.floating_point(noise, epsilon=1, delta="1e-6", samples=SIZE, error=1e-9).broken


@pytest.mark.parametrize("inputs", [(0.0, 1.0), (0.0, 2.0**-30), (1 / 3, 4 / 3)])
def test_most_outputs_of_numpy_are_impossible_for_the_other_input(inputs):
    found = attacks.floating_point(numpy_laplace, epsilon=1, inputs=inputs, samples=SIZE, law="laplace", error=1e-9)
    assert found.broken
    assert found.epsilon_at_least == math.inf
    assert all(one.share > 0.3 for one in found.unreachable)
    assert "no ε holds" in str(found)


def test_the_last_digits_alone_do_not_see_a_tiny_step():
    """What needs the law is told so: places of 0 and 2^-30 are alike, and only the exact count finds the holes."""
    assert not attacks.floating_point(numpy_laplace, epsilon=1, inputs=(0.0, 2.0**-30), samples=SIZE, error=1e-9).broken


@pytest.mark.parametrize("inputs", [(0.0, 1.0), (1 / 3, 4 / 3), (0.0, 2.0**-10)])
def test_noise_on_a_grid_stands(inputs):
    found = attacks.floating_point(textbook_noise.grid_laplace, epsilon=1, inputs=inputs, samples=SIZE, error=1e-9)
    assert not found.broken
    assert "not refuted" in str(found)
    assert all(places.max() <= 10 for places in found.places)  # A public grid of 1/1024.


def test_a_released_sum_of_this_library_stands():
    def released(value: float) -> Fraction:
        settings = {"bounds": (0, 1), "step": "1/1024", "epsilon": 1, "relation": dp.Relation.ADD_REMOVE}
        return dp.sum([Fraction(value)], **settings).value

    found = attacks.floating_point(released, epsilon=1, samples=1000, error=1e-9)
    assert not found.broken
    assert all(places.max() <= 10 for places in found.places)


def test_too_little_noise_on_a_grid_is_seen_where_it_shows_in_digits():
    """A wrong neighbour: no noise at all, where 0 is whole and 1/1024 never is."""

    def bare(value: float, size: int) -> np.ndarray:
        return np.full(size, value)

    assert attacks.floating_point(bare, epsilon=1, inputs=(0.0, 2.0**-10), samples=SIZE, error=1e-9).broken


def test_reachable_outputs_agree_with_brute_force(monkeypatch):
    """On a grid of 2^12 uniforms everything can be listed."""
    monkeypatch.setattr(floating_point_attack, "_GRID", 2.0**12)
    sizes = textbook_noise.log(np.arange(1, 2**12 + 1) / 2**12)
    for here, there in [(0.0, 1.0), (0.25, 0.25 + 2.0**-40), (3.0, 5.0)]:
        outputs = np.concatenate([here + sizes, here - sizes])
        possible = set((there + sizes).tolist()) | set((there - sizes).tolist())
        assert floating_point_attack.laplace_reaches(outputs, here, 1.0).all()
        expected = [value in possible for value in outputs.tolist()]
        assert floating_point_attack.laplace_reaches(outputs, there, 1.0).tolist() == expected
        assert not all(expected)


def test_a_wrong_law_is_refused():
    with pytest.raises(Refused, match="inversion"):
        attacks.floating_point(numpy_normal, epsilon=1, samples=SIZE, law="laplace")
    with pytest.raises(Refused):
        attacks.floating_point(numpy_laplace, epsilon=1, samples=SIZE, law="laplace", scale=2.0)


@pytest.mark.parametrize(
    ("value", "places"), [(1.0, 0), (0.5, 1), (3.75, 2), (6.0, -1), (0.1, 55), (5e-324, 1074), (-0.5, 1), (0.0, -2000)]
)
def test_places_are_those_that_write_a_double_exactly(value, places):
    assert _places(np.array([value])).tolist() == [places]
    if value:
        assert (Fraction(value) * Fraction(2) ** places).denominator == 1
        assert (Fraction(value) * Fraction(2) ** (places - 1)).denominator == 2


def response(epsilon: float):
    """Tell which of a half and a whole it is, rightly with odds e^epsilon: the last digit shows what is told."""
    truth = Fraction(math.exp(epsilon) / (1 + math.exp(epsilon))).limit_denominator(10**6) - Fraction(1, 10**6)

    def told(value: float, size: int) -> np.ndarray:
        return np.where(dp.noise.bernoulli(truth, size), value, 1.5 - value)

    return told


@pytest.mark.statistical
def test_a_function_that_just_keeps_its_claim_is_rarely_called_broken():
    """With an error of 5 %, more than 25 alarms in 100 runs have a chance below 1e-10."""
    settings = {"inputs": (0.5, 1.0), "samples": 1000, "error": 0.05}
    assert sum(attacks.floating_point(response(1), epsilon=1, **settings).broken for _ in range(100)) <= 25
    assert all(attacks.floating_point(response(2), epsilon=1, **settings).broken for _ in range(20))


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon": 0},
        {"epsilon": math.nan},
        {"delta": 2},
        {"inputs": (1.0, 1.0)},
        {"inputs": (0.0, math.inf)},
        {"samples": 10},
        {"error": 0.0},
        {"law": "laplace", "scale": 0.0},
        {"noise": lambda value, size: np.full(size, math.nan)},
        {"noise": lambda value, size: np.zeros(size + 1)},
        {"noise": lambda: 0.0},
        {"noise": 3},
    ],
)
def test_nonsense_is_refused(wrong):
    given = {"noise": numpy_laplace, "epsilon": 1, "samples": 1000} | wrong
    with pytest.raises(InvalidParameter):
        attacks.floating_point(given.pop("noise"), **given)


def test_what_is_found_is_told_drawn_and_written(tmp_path):
    found = attacks.floating_point(numpy_laplace, epsilon=1, samples=SIZE, law="laplace")
    plain = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert plain["broken"]
    assert plain["epsilon_at_least"] is None
    assert "impossible for the other input" in str(found)
    plots.save(found.plot(), tmp_path / "digits.json")
    assert "binary places" in (tmp_path / "digits.json").read_text()
