"""Losses: rho, psi and its derivative belong together, and what happens to a number depends on nothing else."""

from __future__ import annotations

import math

import numpy as np
import pytest

from discreet.errors import InvalidParameter
from discreet.robust import Huber, Logistic, Quantile, Tukey
from discreet.robust.loss_functions import Psi

SMOOTH = [Huber(), Huber("0.7"), Tukey(), Tukey(2), Logistic(), Logistic(3)]
ALL = [*SMOOTH, Quantile(), Quantile("0.9")]
U = np.linspace(-30, 30, 4001) + 1e-4


@pytest.mark.parametrize("psi", ALL, ids=repr)
def test_psi_is_the_slope_of_rho(psi: Psi) -> None:
    step = 1e-6
    away = np.all([np.abs(np.abs(U) - at) > 2 * step for at in psi.breaks], axis=0) if psi.breaks else slice(None)
    assert np.allclose(((psi.rho(U + step) - psi.rho(U - step)) / (2 * step))[away], psi.psi(U)[away], atol=1e-7)


@pytest.mark.parametrize("psi", SMOOTH, ids=repr)
def test_derivative_is_the_slope_of_psi(psi: Psi) -> None:
    step = 1e-6
    away = np.all([np.abs(np.abs(U) - at) > 2 * step for at in psi.breaks], axis=0) if psi.breaks else slice(None)
    assert np.allclose(((psi.psi(U + step) - psi.psi(U - step)) / (2 * step))[away], psi.derivative(U)[away], atol=1e-7)


@pytest.mark.parametrize("psi", ALL, ids=repr)
def test_bounds_hold_and_are_reached(psi: Psi) -> None:
    sizes, (low, high) = np.abs(psi.psi(U)), psi.slopes
    assert float(psi.bound) * (1 - 1e-4) <= sizes.max() <= float(psi.bound)
    assert float(low) <= psi.derivative(U).min() <= float(low) + 1e-4
    assert float(high) - 1e-4 <= psi.derivative(U).max() <= float(high)


@pytest.mark.parametrize("psi", ALL, ids=repr)
def test_psi_is_monotone_where_it_says_so(psi: Psi) -> None:
    assert bool(np.all(np.diff(psi.psi(U)) >= 0)) == psi.is_monotone


def test_logistic_agrees_with_tanh() -> None:
    exact = np.array([2 * math.tanh(u / 4) for u in U.tolist()])
    assert np.allclose(Logistic(2).psi(U), exact, rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("psi", ALL, ids=repr)
def test_a_number_is_mapped_alike_wherever_it_stands(psi: Psi) -> None:
    for function in (psi.psi, psi.derivative):
        whole = function(U)
        for start, length in ((0, 1), (1, 7), (3, 64), (17, 1000)):
            assert np.array_equal(function(U[start : start + length].copy()), whole[start : start + length])
        assert np.array_equal(function(np.repeat(U, 3)[1::3]), whole)


@pytest.mark.parametrize("make", [Huber, Tukey, Logistic])
@pytest.mark.parametrize("c", [0, -1, float("nan"), float("inf"), "x", True])
def test_a_tuning_constant_that_is_none_is_refused(make: type, c: object) -> None:
    with pytest.raises(InvalidParameter):
        make(c)


@pytest.mark.parametrize("q", [0, 1, -1, 2, float("nan")])
def test_a_quantile_that_is_none_is_refused(q: float) -> None:
    with pytest.raises(InvalidParameter):
        Quantile(q)
