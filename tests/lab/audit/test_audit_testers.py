"""Hockey-stick and Renyi testers: below the truth, but for a chance, and near it where it is large."""

from __future__ import annotations

import math

import numpy as np
import pytest
from planted_tools import laplace, uniform

from discreet.errors import InvalidParameter
from discreet.lab.audit import hockey_stick_at_least, renyi_at_least

RUNS = 40_000


def samples(scale: str) -> tuple[np.ndarray, np.ndarray]:
    return laplace(scale, RUNS), 1 + laplace(scale, RUNS)


def true_delta(scale: float, epsilon: float) -> float:
    """Of discrete Laplace noise and a shift by one: the best event is a half-line."""
    half = 1 / (1 + math.exp(-1 / scale))
    return half - math.exp(epsilon) * (1 - half)


@pytest.mark.statistical
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.0])
def test_a_hockey_stick_divergence_is_bounded_from_below(epsilon: float) -> None:
    truth = true_delta(0.5, epsilon)
    shown = hockey_stick_at_least(*samples("0.5"), epsilon=epsilon, error=1e-9)
    assert truth - 0.25 < shown <= truth
    assert shown > 0


@pytest.mark.statistical
@pytest.mark.parametrize("order", [1.5, 2.0])
def test_a_renyi_divergence_is_bounded_from_below(order: float) -> None:
    """Randomized response has a witness of two values, and its divergence in closed form."""
    keep = 0.9
    ones, others = (uniform(RUNS) < keep).astype(int), (uniform(RUNS) >= keep).astype(int)
    truth = math.log(keep**order * (1 - keep) ** (1 - order) + (1 - keep) ** order * keep ** (1 - order)) / (order - 1)
    shown = renyi_at_least(ones, others, order=order, error=1e-9)
    assert 0.3 * truth < shown <= truth


@pytest.mark.statistical
def test_equal_laws_show_nothing() -> None:
    one, other = laplace(1, RUNS), laplace(1, RUNS)
    assert hockey_stick_at_least(one, other, epsilon=0.0, error=1e-9) <= 0
    assert renyi_at_least(one, other, order=2.0, error=1e-9) <= 0


@pytest.mark.parametrize("wrong", [([1, 2, 3], [1, 2, 3]), ([1] * 8, [1] * 9)])
def test_samples_that_show_nothing_are_refused(wrong) -> None:
    with pytest.raises(InvalidParameter, match="four outputs"):
        hockey_stick_at_least(*wrong, epsilon=1.0, error=0.1)


def test_an_order_of_one_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="above 1"):
        renyi_at_least([1] * 8, [2] * 8, order=1.0, error=0.1)
