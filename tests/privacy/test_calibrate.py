"""Calibration ends on the private side, close to the best parameter, or says why it cannot."""

from __future__ import annotations

from fractions import Fraction

import pytest

from discreet.errors import InvalidParameter, UnsupportedEvent
from discreet.privacy import (
    GDP,
    ZCDP,
    DiscreteLaplace,
    Event,
    Gaussian,
    Laplace,
    PoissonSampled,
    PureDP,
    Relation,
    Repeated,
    SampledWithoutReplacement,
    calibrate,
    epsilon,
    gaussian_sigma,
)

AR, RO = Relation.ADD_REMOVE, Relation.REPLACE_ONE


def training(sigma: Fraction) -> Event:
    return Repeated(PoissonSampled(Gaussian(sigma), "0.01"), 10_000)


@pytest.mark.parametrize("target", ["0.01", "0.5", "1", "8", "40"])
@pytest.mark.parametrize("spent", ["1e-9", "1e-5", "0.01"])
def test_least_gaussian_noise(target: str, spent: str) -> None:
    sigma = calibrate(Gaussian, epsilon=target, delta=spent)
    assert epsilon(Gaussian(sigma), spent) <= float(target)
    assert gaussian_sigma(target, spent) <= sigma * (1 + Fraction(1, 10**9))
    assert float(sigma) <= gaussian_sigma(target, spent) * 1.0002


def test_least_noise_of_private_training() -> None:
    sigma = calibrate(training, epsilon=2, delta="1e-5", relation=AR)
    assert epsilon(training(sigma), "1e-5", relation=AR) <= 2
    assert epsilon(training(sigma * Fraction(999, 1000)), "1e-5", relation=AR) > 2
    assert 2.12 < sigma < 2.1336  # A peer with a grid of 1e-3 says 2.1336.


def test_pure_noise_is_met_exactly_or_just_inside() -> None:
    scale = calibrate(Laplace, epsilon="0.3", delta=0)
    assert 1 / scale <= Fraction(3, 10)
    assert scale <= Fraction(10, 3) * Fraction(10002, 10000)


def test_most_steps_are_the_last_whole_number_that_holds() -> None:
    def steps(count: int) -> Event:
        return Repeated(Gaussian(10), count)

    count = calibrate(steps, epsilon=2, delta="1e-5", increasing=True, whole=True)
    assert type(count) is int
    assert epsilon(steps(count), "1e-5") <= 2 < epsilon(steps(count + 1), "1e-5")
    one = calibrate(lambda n: Repeated(PureDP(1), n), epsilon=1, delta=0, increasing=True, whole=True)
    assert one == 1


def test_least_whole_scale() -> None:
    def noise(scale: int) -> Event:
        return DiscreteLaplace(scale, 7)

    assert calibrate(noise, epsilon="0.33", delta=0, whole=True) == 22
    assert calibrate(noise, epsilon=7, delta=0, whole=True) == 1
    assert calibrate(noise, epsilon=100, delta=0, whole=True) == 1


def test_largest_sampling_probability() -> None:
    def sampled(q: Fraction) -> Event:
        return Repeated(PoissonSampled(Gaussian(1), q), 50)

    q = calibrate(sampled, epsilon=1, delta="1e-6", relation=AR, increasing=True)
    assert epsilon(sampled(q), "1e-6", relation=AR) <= 1
    assert epsilon(sampled(q * Fraction(1001, 1000)), "1e-6", relation=AR) > 1


def test_a_bound_of_the_parameter_is_respected() -> None:
    free = calibrate(lambda q: PoissonSampled(Gaussian(50), q), epsilon=2, delta="1e-6", relation=AR, increasing=True)
    assert free == 1
    whole = calibrate(
        lambda n: SampledWithoutReplacement(Gaussian(50), n, 30),
        epsilon=2,
        delta="1e-6",
        relation=RO,
        increasing=True,
        whole=True,
    )
    assert whole == 30


@pytest.mark.parametrize("target", ["0.1", "3"])
def test_events_with_divergences_only(target: str) -> None:
    rho = calibrate(ZCDP, epsilon=target, delta="1e-6", increasing=True)
    assert epsilon(ZCDP(rho), "1e-6") <= float(target) < epsilon(ZCDP(rho * Fraction(1002, 1000)), "1e-6")


def test_unreachable_targets_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="reaches"):
        calibrate(Gaussian, epsilon=1, delta=0)
    with pytest.raises(InvalidParameter, match="reaches"):
        calibrate(lambda x: PureDP(1), epsilon="0.5", delta=0)
    with pytest.raises(InvalidParameter, match="meets"):
        calibrate(lambda x: PureDP(1), epsilon=1, delta=0)
    with pytest.raises(InvalidParameter, match="reaches"):
        calibrate(lambda n: Repeated(PureDP(2), n), epsilon=1, delta=0, increasing=True, whole=True)


def test_the_wrong_direction_is_noticed() -> None:
    with pytest.raises(InvalidParameter, match="increasing"):
        calibrate(PureDP, epsilon="0.3", delta=0)
    with pytest.raises(InvalidParameter, match="increasing"):
        calibrate(Laplace, epsilon="0.3", delta=0, increasing=True)
    with pytest.raises(InvalidParameter, match="increasing"):
        calibrate(lambda x: PureDP(2 + (x - 1) ** 2), epsilon=1, delta=0)


def test_errors_of_the_event_are_not_swallowed() -> None:
    with pytest.raises(InvalidParameter, match="relation"):
        calibrate(training, epsilon=2, delta="1e-5")
    with pytest.raises(UnsupportedEvent):
        calibrate(training, epsilon=2, delta="1e-5", relation=RO)
    with pytest.raises(InvalidParameter, match="event"):
        calibrate(lambda x: 3, epsilon=2, delta="1e-5")  # type: ignore[arg-type, return-value]
    with pytest.raises(ZeroDivisionError):
        calibrate(lambda x: GDP(1 / (x * 0)), epsilon=2, delta="1e-5")
