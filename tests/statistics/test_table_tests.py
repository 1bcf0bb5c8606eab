"""Tests of noisy tables reject a true hypothesis at most as often as their level, whatever the number of rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.special import chdtrc

import discreet as dp
from discreet.mechanisms.quotient_intervals import MeasuredNoise, survival
from discreet.mechanisms.release import EachCell, NoiseAccuracy
from discreet.noise.laws import DiscreteLaplaceLaw
from discreet.statistics.population_intervals import SampledDifference
from discreet.statistics.table_tests import _compared

ADD = dp.Relation.ADD_REMOVE
PAIRS = [(line, column) for line in range(2) for column in range(2)]


def released(values: Sequence[int], law: DiscreteLaplaceLaw) -> dp.Release[tuple[int, ...]]:
    """A histogram with these noisy counts."""
    accuracy = EachCell(cells=(NoiseAccuracy(noise=law, step=Fraction(1)),))
    event, labels = dp.privacy.PureDP(1 / law.scale), tuple(map(str, range(len(values))))
    return dp.Release(value=tuple(values), event=event, relation=ADD, accuracy=accuracy, labels=labels)


def chances(law: DiscreteLaplaceLaw, most: int) -> dict[int, float]:
    above = survival(law)
    return {k: float(above(np.array([k - 1.0]))[0] - above(np.array([float(k)]))[0]) for k in range(-most, most + 1)}


def sizes(share: float, rows: int, levels: Sequence[Fraction]) -> list[float]:
    """Add up the chances of all samples and noises of two bins at which true shares are rejected."""
    law = DiscreteLaplaceLaw(Fraction(1, 3))
    noise, found = chances(law, 4), {}
    for ones, (x, a), (y, b) in product(range(rows + 1), noise.items(), noise.items()):
        weight = math.comb(rows, ones) * share**ones * (1 - share) ** (rows - ones) * a * b
        cell = ones + x, rows - ones + y
        found[cell] = found.get(cell, 0.0) + weight
    said = [Fraction(share).limit_denominator(100), 1 - Fraction(share).limit_denominator(100)]
    tested = [(dp.statistics.fit_test(released(cell, law), said), weight) for cell, weight in found.items()]
    unseen = 1 - sum(found.values())
    return [unseen + sum(weight for test, weight in tested if test.rejects(level)) for level in levels]


@pytest.mark.long
@pytest.mark.parametrize("share", [0.5, 0.1])
def test_the_size_of_a_test_of_fit_is_at_most_its_level_on_small_worlds(share: float) -> None:
    levels = [Fraction(1, 20), Fraction(1, 5), Fraction(1, 2)]
    assert all(size <= level for size, level in zip(sizes(share, 5, levels), levels, strict=True))


@pytest.mark.slow
def test_the_size_of_a_test_of_independence_is_at_most_its_level_on_a_small_world() -> None:
    """All tables of three rows with independent fair attributes, and all noises within one."""
    law, level = DiscreteLaplaceLaw(Fraction(1, 4)), Fraction(1, 5)
    noise, found = chances(law, 1), {}
    for drawn in product(range(4), repeat=3):
        for extra in product(noise, repeat=4):
            cell = tuple(drawn.count(place) + extra[place] for place in range(4))
            found[cell] = found.get(cell, 0.0) + math.prod(noise[x] for x in extra) / 4**3
    size = 1 - sum(found.values())
    for cell, weight in found.items():
        pair = _compared(np.array(cell, dtype=object).reshape(2, 2), 0, 0, MeasuredNoise(law))
        low, high = pair.ends(1 - level)
        size += weight * (not low <= 0 <= high)
    assert size <= level


def naive(noisy: np.ndarray, expected: np.ndarray, degrees: int) -> bool:
    """The planted mistake: χ² as if counts were exact, with degrees of freedom and expected counts of exact ones."""
    return bool(chdtrc(degrees, float(((noisy - expected) ** 2 / np.maximum(expected, 1)).sum())) <= 0.05)


@pytest.mark.long
def test_noisy_tables_of_a_true_hypothesis_are_rarely_rejected_and_mostly_by_plain_chi_squared() -> None:
    """Rejections are binomial with at most 5 %: more than 20 of 100 have a chance below 1e-9."""
    rng, law, runs = np.random.default_rng(4), DiscreteLaplaceLaw(Fraction(20)), 100
    ours = plain = 0
    for _ in range(runs):
        exact = rng.multinomial(300, [1 / 3] * 3)
        noisy = exact + dp.noise.discrete_laplace(law.scale, 3)
        ours += dp.statistics.fit_test(released(noisy.tolist(), law), ["1/3"] * 3).rejects("0.05")
        plain += naive(noisy, np.full(3, 100.0), 2)
    assert ours <= 20
    assert plain >= 40


@pytest.mark.slow
def test_independent_attributes_are_rarely_rejected_and_mostly_by_plain_chi_squared() -> None:
    rng, law, runs = np.random.default_rng(5), DiscreteLaplaceLaw(Fraction(20)), 100
    ours = plain = 0
    for _ in range(runs):
        exact = rng.multinomial(600, [0.3, 0.3, 0.2, 0.2]).reshape(2, 2)
        noisy = exact + dp.noise.discrete_laplace(law.scale, (2, 2))
        low, high = _compared(noisy.astype(object), 0, 0, MeasuredNoise(law)).ends(Fraction(95, 100))
        ours += not low <= 0 <= high
        plain += naive(noisy, np.outer(exact.sum(axis=1), exact.sum(axis=0)) / 600, 1)
    assert ours <= 20
    assert plain >= 40


def told_apart(p_value: Callable[[tuple[int, ...], tuple[int, ...]], float], law: DiscreteLaplaceLaw) -> float:
    """Return the largest loss of noisy counts with their p-value: of an empty bin, and of one with a row in it."""
    laws = [
        {((9, 8, rows + k), p_value((9, 8, rows + k), (9, 8, rows))): likely for k, likely in chances(law, 12).items()}
        for rows in (0, 1)
    ]
    seen = [(one, side) for side in (0, 1) for one in laws[side] if abs(one[0][2]) < 10]
    return max(math.log(laws[side][one] / laws[1 - side][one]) if one in laws[1 - side] else math.inf
               for one, side in seen)  # fmt: skip


def test_degrees_of_freedom_of_exact_counts_tell_what_nobody_paid_for() -> None:
    """The planted mistake: bins that are empty are not counted, and which ones are is not asked of the noisy counts."""
    law = DiscreteLaplaceLaw(Fraction(2))

    def ours(noisy: tuple[int, ...], _: tuple[int, ...]) -> float:
        return float(dp.statistics.fit_test(released(noisy, law), ["1/3"] * 3).p_value)

    def exact_degrees(noisy: tuple[int, ...], exact: tuple[int, ...]) -> float:
        off = sum((count - sum(noisy) / 3) ** 2 for count in noisy)
        return float(chdtrc(np.count_nonzero(exact) - 1, off / 6))

    assert told_apart(ours, law) == pytest.approx(0.5)  # what a count with this noise costs
    assert told_apart(exact_degrees, law) == math.inf


@pytest.mark.long
def test_what_is_clear_is_rejected() -> None:
    rows = [pair for pair, many in zip(PAIRS, (9000, 1000, 5000, 5000), strict=True) for _ in range(many)]
    table = dp.histogram(rows, bins=PAIRS, relation=ADD, rho="0.5")
    assert dp.statistics.independence_test(table, (2, 2)).p_value == Fraction(1, 10_000)
    three = dp.histogram([0] * 900 + [1] * 50 + [2] * 50, bins=[0, 1, 2], relation=ADD, epsilon=1)
    assert dp.statistics.fit_test(three, ["1/3"] * 3).rejects("0.001")


def test_only_histograms_are_tested_against_shares_that_are_all() -> None:
    table = dp.histogram([0, 1], bins=[0, 1], relation=ADD, epsilon=1)
    for shares in (["1/2"], ["1/2", "1/4"], [0, 1], ["1/3"] * 3):
        with pytest.raises(dp.InvalidParameter, match="shares"):
            dp.statistics.fit_test(table, shares)
    with pytest.raises(dp.InvalidParameter, match="histogram"):
        dp.statistics.fit_test(dp.count([1], relation=ADD, epsilon=1), ["1/2", "1/2"])  # type: ignore[arg-type]
    for shape in ((1, 2), (2, 2)):
        with pytest.raises(dp.InvalidParameter, match="shape"):
            dp.statistics.independence_test(table, shape)


def test_rows_of_one_unit_are_no_independent_draws_of_a_table() -> None:
    shared = {"bins": PAIRS, "relation": ADD, "epsilon": 1, "unit": [1, 1, 2, 3]}
    several = dp.histogram(PAIRS, max_rows=2, **shared)
    for test in (
        lambda table: dp.statistics.fit_test(table, ["1/4"] * 4),
        lambda table: dp.statistics.independence_test(table, (2, 2)),
    ):
        with pytest.raises(dp.Refused, match="several rows of a unit"):
            test(several)
        assert 0 < test(dp.histogram(PAIRS, max_rows=1, **shared)).p_value <= 1


def test_a_p_value_of_a_table_counts_on_no_order_of_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Zero is held at levels about 0.3 alone, so that no p-value of four is less than that."""
    monkeypatch.setattr(
        SampledDifference, "ends", lambda _, confidence: (-1.0 if 0.65 < confidence < 0.75 else 1.0, 2.0)
    )
    table = released([40, 30, 20, 10], DiscreteLaplaceLaw(Fraction(1)))
    assert dp.statistics.independence_test(table, (2, 2)).p_value > Fraction(3, 10)
