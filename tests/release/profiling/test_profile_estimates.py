"""Intervals of sums and of quantiles cover as often as they say; narrower ones do not."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from discreet import noise
from discreet.noise.laws import DiscreteLaplaceLaw, RoundedGaussianLaw
from discreet.release.profiling.cells import Ranges
from discreet.release.profiling.estimates import ASKED, Law, added, less, quantiles, reach, single
from discreet.release.profiling.profile_results import quantile_text

LAWS = [
    DiscreteLaplaceLaw(Fraction(1, 2)),
    DiscreteLaplaceLaw(30),
    RoundedGaussianLaw(Fraction(1, 4)),
    RoundedGaussianLaw(900),
]
TIMES = 4000


def _draw(law: Law, size: int) -> np.ndarray:
    if isinstance(law, DiscreteLaplaceLaw):
        return noise.discrete_laplace(law.scale, size)
    return noise.rounded_gaussian(size=size, variance=law.variance)


def _most_misses(chance: float) -> float:
    """Return how many of 4,000 tries miss, but for one in a billion: by Hoeffding."""
    return TIMES * (chance + np.sqrt(np.log(1e9) / (2 * TIMES)))


@pytest.mark.statistical
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("cells", [2, 7, 25])
def test_a_sum_of_counts_lies_within_its_interval(law: Law, cells: int) -> None:
    sums = _draw(law, TIMES * cells).reshape(TIMES, cells).sum(axis=1)
    off = added([0] * cells, law).plus_minus
    assert (np.abs(sums) > off).sum() <= _most_misses(0.05)


@pytest.mark.statistical
@pytest.mark.parametrize("law", LAWS[1::2])
def test_a_third_of_the_interval_of_a_sum_is_surely_too_narrow(law: Law) -> None:
    sums = _draw(law, TIMES * 9).reshape(TIMES, 9).sum(axis=1)
    assert (np.abs(sums) > reach(law, ((1.0, 9),)) / 3).sum() > _most_misses(0.05)


@pytest.mark.statistical
@pytest.mark.parametrize("law", LAWS)
def test_a_difference_of_counts_lies_within_its_interval(law: Law) -> None:
    whole, part = _draw(LAWS[1], TIMES), _draw(law, TIMES)
    off = less(0, LAWS[1], 0, law).plus_minus
    assert (np.abs(whole - part) > off).sum() <= _most_misses(0.05)


CELLS = Ranges(cuts=tuple(map(Fraction, range(1, 12))), whole=True)
EXACT = np.array([0, 50, 0, 200, 250, 250, 200, 0, 50, 0, 0, 0])
TRIES = 400


def _missed(law: Law, told: Law) -> np.ndarray:
    """Count how often each quantile is missed, where a cut is at its very edge and easily on the wrong side."""
    truths = [int(np.searchsorted(np.cumsum(EXACT), float(share) * 1000)) for share in ASKED]
    missed = np.zeros(len(ASKED))
    for row in _draw(law, TRIES * 12).reshape(TRIES, 12):
        for place, (one, truth) in enumerate(zip(quantiles(CELLS, (EXACT + row).tolist(), told), truths, strict=True)):
            missed[place] += not ((one.low is None or one.low <= truth) and (one.high is None or truth <= one.high))
    return missed


@pytest.mark.statistical
@pytest.mark.parametrize("law", LAWS[1::2])
def test_quantiles_lie_within_their_intervals(law: Law) -> None:
    assert (_missed(law, law) <= TRIES * (0.05 + np.sqrt(np.log(1e9) / (2 * TRIES)))).all()


@pytest.mark.statistical
def test_quantiles_with_six_times_the_noise_that_is_told_are_surely_missed() -> None:
    missed = _missed(RoundedGaussianLaw(900), RoundedGaussianLaw(25))
    assert missed.max() > TRIES * (0.05 + np.sqrt(np.log(1e9) / (2 * TRIES)))


def test_quantiles_of_exact_counts_are_in_the_right_cell() -> None:
    law = DiscreteLaplaceLaw(Fraction(1, 100))
    cells = Ranges(cuts=(Fraction(10), Fraction(20)), low=Fraction(0), high=Fraction(30))
    found = quantiles(cells, [1000, 2000, 1000], law)
    assert [(one.low, one.high) for one in found] == [(0, 10), (0, 20), (10, 20), (10, 30), (20, 30)]
    assert abs(found[2].value - 15) < 1


def test_a_quantile_beyond_the_outermost_cut_is_no_number() -> None:
    law = DiscreteLaplaceLaw(Fraction(1, 100))
    found = quantiles(Ranges(cuts=(Fraction(5), Fraction(14)), whole=True), [1000, 1500, 2500], law)
    assert [quantile_text(one) for one in found] == [
        "less than 5 (less … 4)",
        "6 (5 … 13)",
        "13 (5 … more)",
        "14 or more (14 … more)",
        "14 or more (14 … more)",
    ]
    closed = Ranges(cuts=(Fraction(5), Fraction(14)), low=Fraction(0), high=Fraction(100), whole=True)
    assert not any(one.beyond for one in quantiles(closed, [1000, 1500, 2500], law))


def test_nothing_has_no_quantiles() -> None:
    assert quantiles(Ranges(cuts=(Fraction(1),)), [-3, 1], LAWS[1]) == ()


def test_a_negative_count_is_shown_as_none_with_its_whole_plus_minus() -> None:
    estimate = single(-40, RoundedGaussianLaw(900))
    assert (estimate.tidy, estimate.low) == (0, 0)
    assert estimate.plus_minus > 50
    assert estimate.high == estimate.plus_minus - 40
