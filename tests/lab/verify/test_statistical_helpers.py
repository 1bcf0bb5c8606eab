"""The statistical helpers accept the truth at one in a billion and reject what is 30 % off, with power to spare."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from statistical import (
    FALSE_ALARM,
    Bins,
    clopper_pearson,
    epsilon_lower_bound,
    expected_p_value,
    fits,
    p_value,
    rejects,
)

from discreet.balls import precision
from discreet.noise.laws import DiscreteGaussianLaw, DiscreteLaplaceLaw, GeometricLaw, RoundedGaussianLaw

SIZE = 20_000
LAWS = [
    (DiscreteLaplaceLaw, Fraction(1, 2)),
    (DiscreteLaplaceLaw, Fraction(3)),
    (DiscreteLaplaceLaw, Fraction(10**6)),
    (GeometricLaw, Fraction(3)),
    (DiscreteGaussianLaw, Fraction(9)),
    (RoundedGaussianLaw, Fraction(9)),
    (RoundedGaussianLaw, Fraction(10**12)),
]


def drawn(law: Any, size: int, seed: int) -> Any:
    """Draw in floats with a fixed seed: good enough to try the tests on, and it repeats."""
    generator = np.random.default_rng(seed)
    if isinstance(law, DiscreteLaplaceLaw):
        rate = -np.expm1(-1 / float(law.scale))
        return generator.geometric(rate, size) - generator.geometric(rate, size)
    if isinstance(law, RoundedGaussianLaw):
        return np.rint(generator.normal(0, float(law.variance) ** 0.5, size)).astype(np.int64)
    points = np.arange(-60, 61)
    with precision(64):
        below = np.cumsum([float(law.pmf(int(point))) for point in points])
    return points[np.searchsorted(below, generator.random(size) * below[-1])]


@pytest.mark.parametrize(("kind", "parameter"), LAWS)
def test_the_truth_fits(kind: Any, parameter: Fraction) -> None:
    assert all(fits(drawn(kind(parameter), SIZE, seed), kind(parameter)) for seed in range(5))


@pytest.mark.parametrize("factor", ["0.7", "1.3"])
@pytest.mark.parametrize(("kind", "parameter"), LAWS)
def test_thirty_percent_off_is_rejected(kind: Any, parameter: Fraction, factor: str) -> None:
    wrong = kind(parameter * Fraction(factor))
    assert all(rejects(drawn(kind(parameter), SIZE, seed), wrong) for seed in range(3))


@pytest.mark.parametrize("factor", ["0.7", "1.3"])
@pytest.mark.parametrize(("kind", "parameter"), LAWS)
def test_thirty_percent_off_is_rejected_with_power_to_spare(kind: Any, parameter: Fraction, factor: str) -> None:
    # The sample as it is expected is already far beyond the level, so that no draw comes back to it.
    assert expected_p_value(kind(parameter), kind(parameter * Fraction(factor)), SIZE) < FALSE_ALARM**3


def test_p_values_of_the_truth_are_not_smaller_than_uniform_ones() -> None:
    law = DiscreteLaplaceLaw(Fraction(2))
    values = np.array([p_value(drawn(law, 2000, seed), law) for seed in range(300)])
    for level in (0.01, 0.1, 0.5):
        # The number of p-values below the level is at most binomial: a bound that fails once in a billion.
        assert clopper_pearson(int((values <= level).sum()), len(values))[0] <= level


def test_probabilities_may_be_given_as_a_list_or_a_function() -> None:
    dice = np.random.default_rng(5).integers(0, 6, SIZE)
    assert fits(dice, [Fraction(1, 6)] * 6)
    assert fits(dice, lambda k: np.where((k >= 0) & (k < 6), 1 / 6, 0.0))
    assert rejects(dice, [0.25, 0.15, 0.15, 0.15, 0.15, 0.15])
    assert rejects(dice, [0.2] * 5)  # A six cannot come out.
    assert rejects(np.append(dice[dice != 3], 3), [0.2, 0.2, 0.2, 0.0, 0.2, 0.2])


def test_bins_depend_on_the_law_and_the_size_only_and_sum_to_one() -> None:
    for kind, parameter in LAWS:
        bins = Bins.of(kind(parameter), SIZE)
        assert len(bins.chances) == len(bins.ends) + 1
        assert bins.chances.sum() == pytest.approx(1, abs=1e-9)
        assert (bins.chances * SIZE >= 5).all()


def test_epsilon_is_bounded_from_below_and_not_above_the_truth() -> None:
    scale, size = Fraction(1), 40_000
    first, second = drawn(DiscreteLaplaceLaw(scale), size, 1), drawn(DiscreteLaplaceLaw(scale), size, 2) + 1
    bound = epsilon_lower_bound(first.tolist(), second.tolist())
    assert 0.8 < bound.epsilon <= 1
    assert bound.outcomes
    assert epsilon_lower_bound(first.tolist(), (second - 1).tolist()).epsilon == 0
    # Half the noise is seen for what it is.
    close = drawn(DiscreteLaplaceLaw(scale / 2), size, 3)
    assert epsilon_lower_bound(close.tolist(), (close[::-1] + 1).tolist()).epsilon > 1.5


def test_delta_lowers_the_bound_on_epsilon() -> None:
    first, second = ["a"] * 1000 + ["b"] * 19_000, ["b"] * 20_000
    assert epsilon_lower_bound(first, second).epsilon > 2
    assert epsilon_lower_bound(first, second, delta=0.06).epsilon == 0


def test_clopper_pearson_encloses_the_share() -> None:
    assert clopper_pearson(0, 100)[0] == 0
    assert clopper_pearson(100, 100)[1] == 1
    low, high = clopper_pearson(50, 100, false_alarm=0.05)
    assert (low, high) == pytest.approx((0.39832, 0.60168), abs=1e-5)  # A textbook value.
