"""Intervals for what rows were drawn from hold it at least as often as they say, for every law within the bounds."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import discreet as dp
from discreet.mechanisms import Grid, LaplaceNoise
from discreet.mechanisms.proportion import HALVES
from discreet.mechanisms.quotient_intervals import MeasuredNoise, survival
from discreet.noise.laws import DiscreteLaplaceLaw, RoundedGaussianLaw
from discreet.statistics import population_intervals
from discreet.statistics.population_intervals import SampledDifference, SampledMean, Spread, sampled_reach
from discreet.statistics.population_means import DifferenceAccuracy, PopulationMean, least_level

ADD, REPLACE = dp.Relation.ADD_REMOVE, dp.Relation.REPLACE_ONE
NINETY = Fraction(9, 10)


def chance(law: DiscreteLaplaceLaw, k: int) -> float:
    above = survival(law)
    return float(above(np.array([k - 1.0]))[0] - above(np.array([float(k)]))[0])


def noises(law: DiscreteLaplaceLaw, most: int) -> list[tuple[int, float]]:
    return [(k, chance(law, k)) for k in range(-most, most + 1)]


def samples(values: tuple[int, ...], chances: tuple[float, ...], rows: int) -> Iterator[tuple[int, int, float]]:
    """List sums, sums of squares and chances of all samples."""
    for places in product(range(len(values)), repeat=rows):
        drawn = [values[place] for place in places]
        yield sum(drawn), sum(value**2 for value in drawn), math.prod(chances[place] for place in places)


def test_a_sum_with_noise_passes_its_reach_as_rarely_as_it_says() -> None:
    """Brute force: binomial counts with discrete Laplace noise of two weights."""
    law = DiscreteLaplaceLaw(Fraction(3))
    for rows, p, tail in product((3, 20), (0.05, 0.5, 0.9), (0.01, 0.1)):
        spread = Spread(rows * p * (1 - p), 1 - p, p * p + (1 - p) ** 2)
        reach = sampled_reach(spread, [(1.0, MeasuredNoise(law)), (p, MeasuredNoise(law))], tail)
        assert passed(rows, p, law, reach) <= tail
        assert passed(rows, p, law, reach / 3) > tail  # A third of it would not do.
        larger = sampled_reach(replace(spread, variance=4 * spread.variance), [(1.0, MeasuredNoise(law))], tail)
        assert passed(rows, p, None, larger - 4) <= tail


def passed(rows: int, p: float, law: DiscreteLaplaceLaw | None, reach: float) -> float:
    """Return P[S - rows p + X + p Y > reach]."""
    listed = [(0, 1.0)] if law is None else noises(law, 30)
    found = 0.0
    for s in range(rows + 1):
        weight = math.comb(rows, s) * p**s * (1 - p) ** (rows - s)
        for (x, one), (y, other) in product(listed, listed):
            found += weight * one * other * (s - rows * p + x + p * y > reach)
    return found


@pytest.mark.parametrize("law", [DiscreteLaplaceLaw(Fraction(5, 2)), RoundedGaussianLaw(Fraction(9))])
def test_noise_alone_has_about_its_own_reach(law: DiscreteLaplaceLaw | RoundedGaussianLaw) -> None:
    found = sampled_reach(Spread(0.0, 0.0, 0.0), [(1.0, MeasuredNoise(law))], 0.025)
    least = law.half_width(Fraction(95, 100))
    assert least - 1 <= found <= 1.1 * least + 1


def coverage(
    known: Callable[[int, int, int], SampledMean], law: DiscreteLaplaceLaw, truth: float, drawn: object
) -> float:
    """Add up the chances of all samples and noises whose possible means hold the truth."""
    held = 0.0
    for total, squares, weight in drawn:  # type: ignore[attr-defined]
        for (x, one), (z, other) in product(noises(law, 12), noises(law, 12)):
            sampled = known(total + x, squares + z, z)
            held += weight * one * other * sampled.holds(truth, NINETY)
    return held


@pytest.mark.long
@pytest.mark.parametrize("shares", [(0.8, 0.0, 0.2), (0.1, 0.6, 0.3), (0.02, 0.96, 0.02)])
def test_a_mean_is_covered_on_small_worlds(shares: tuple[float, ...]) -> None:
    """All samples of three rows at -2, 0 and 2, with noise on the sum and on the squares, under replace-one."""
    law = DiscreteLaplaceLaw(Fraction(2))
    truth = 2 * (shares[2] - shares[0])

    def known(total: int, squares: int, _: int) -> SampledMean:
        noise = MeasuredNoise(law)
        return SampledMean(low=-2, high=2, total=total, count=3, squares=squares, noises=(noise, None, noise))

    assert coverage(known, law, truth, samples((-2, 0, 2), shares, 3)) >= 0.9


@pytest.mark.long
@pytest.mark.parametrize("p", [0.02, 0.3, 0.5])
def test_a_share_is_covered_on_small_worlds_where_the_count_is_private(p: float) -> None:
    law = DiscreteLaplaceLaw(Fraction(2))

    def known(total: int, _: int, off: int) -> SampledMean:
        noise = MeasuredNoise(law)
        return SampledMean(low=-1, high=1, total=total, count=4 + off, noises=(noise, noise, None), binary=True)

    drawn = list(samples((-1, 1), (1 - p, p), 4))
    assert coverage(known, law, 2 * p - 1, drawn) >= 0.9


def test_an_interval_is_the_hull_of_what_is_possible() -> None:
    noise = MeasuredNoise(DiscreteLaplaceLaw(Fraction(4)))
    for total, count, squares in ((300, 100, 2000), (-40, 5, 0), (7, -3, 100), (900, 90, 9000)):
        sampled = SampledMean(
            low=-10, high=10, total=total, count=count, squares=squares, fold=50, noises=(noise, noise, noise)
        )
        low, high = sampled.ends(NINETY)
        assert -10 <= low <= high <= 10
        possible = [m for m in np.linspace(-10, 10, 401) if sampled.holds(m, NINETY)]
        assert all(low - 1e-9 <= m <= high + 1e-9 for m in possible)
        assert not possible or high - low <= max(possible) - min(possible) + 0.1 * (high - low) + 0.1


def test_numbers_that_no_mean_fits_leave_all_of_the_bounds() -> None:
    """One point would read like certainty where the noisy numbers contradict each other."""
    noise = MeasuredNoise(DiscreteLaplaceLaw(Fraction(4)))
    for total, count in ((-40, 50), (-40, 3), (120, 40), (30, -30)):
        sampled = SampledMean(low=0, high=1, total=total, count=count, noises=(noise, noise, None), binary=True)
        assert not any(sampled.holds(mean, NINETY) for mean in np.linspace(0, 1, 101))
        assert sampled.ends(NINETY) == (0, 1)


SHAPES: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "two points": lambda rng, n: np.where(rng.random(n) < 0.02, 100.0, 0.0),
    "skewed": lambda rng, n: 100 * rng.beta(0.3, 6, n),
    "heavy tail": lambda rng, n: np.minimum(100, rng.pareto(2, n)),
}
MEANS = {"two points": 2.0, "skewed": 100 * 0.3 / 6.3, "heavy tail": 1 - 1 / 101}


def simulated(shape: str, rows: int, runs: int, interval: Callable[[np.ndarray], tuple[float, float]]) -> float:
    rng = np.random.default_rng(20)
    held = [low <= MEANS[shape] <= high for low, high in (interval(SHAPES[shape](rng, rows)) for _ in range(runs))]
    return sum(held) / runs


def ours(column: np.ndarray) -> tuple[float, float]:
    found = dp.mean(column, bounds=(0, 100), relation=ADD, epsilon=1, population=True).interval(0.95)
    return float(found[0]), float(found[1])


def noise_only(column: np.ndarray) -> tuple[float, float]:
    """The mutant that forgets that rows are a sample."""
    found = dp.mean(column, bounds=(0, 100), relation=ADD, epsilon=1).interval(0.95)
    return float(found[0]), float(found[1])


def normal_only(column: np.ndarray) -> tuple[float, float]:
    """The mutant that takes exact moments and a normal law: it also forgets the noise."""
    noisy = float(dp.mean(column, bounds=(0, 100), relation=ADD, epsilon=1))
    half = 1.96 * float(column.std(ddof=1)) / math.sqrt(len(column))
    return noisy - half, noisy + half


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_intervals_cover_skewed_and_heavy_laws_in_simulations(shape: str) -> None:
    """Coverage is 98 % or more: 2,000 runs with less than 95 % have a chance below 1e-12."""
    assert simulated(shape, 50, 2000, ours) >= 0.95


@pytest.mark.long
@pytest.mark.parametrize("shape", SHAPES)
def test_intervals_cover_and_what_forgets_sampling_or_noise_does_not(shape: str) -> None:
    assert simulated(shape, 200, 120, ours) >= 0.85
    assert simulated("two points", 2000, 120, noise_only) < 0.85
    assert simulated(shape, 50, 120, normal_only) < 0.85


def test_many_rows_have_nearly_the_normal_interval() -> None:
    column = np.tile(np.arange(101.0), 10_000)
    release = dp.mean(column, bounds=(0, 100), relation=ADD, epsilon=1, population=True)
    normal = 1.96 * column.std() / math.sqrt(column.size)
    assert normal <= float(release.plus_minus(0.95)) <= 1.15 * normal
    share = dp.proportion(column > 50, relation=ADD, epsilon=1, population=True)
    assert 0.9 < float(share.plus_minus(0.95)) / (1.96 * 0.5 / math.sqrt(column.size)) < 1.15


@pytest.mark.parametrize("relation", list(dp.Relation))
def test_a_population_costs_what_is_said_and_is_paid_before_it_is_read(relation: dp.Relation) -> None:
    size = 4 if relation is REPLACE else None
    for noise in (LaplaceNoise(epsilon=Fraction(1)), dp.mechanisms.GaussianNoise.for_rho(1)):
        for grid, binary in ((Grid.between(0, 7, step=1), False), (HALVES, True)):
            mechanism = PopulationMean(grid=grid, relation=relation, noise=noise, public_rows=size, binary=binary)
            cost = mechanism.release([0, 1, 1, 0]).cost
            assert cost == ("ε = 1" if isinstance(noise, LaplaceNoise) else "ρ = 1")
    assert len(PopulationMean(grid=HALVES, relation=ADD, noise=LaplaceNoise(epsilon=Fraction(1))).measurements) == 3


def test_rows_of_one_unit_are_no_population() -> None:
    shared = {"relation": ADD, "epsilon": 1, "population": True, "unit": [1, 1, 2]}
    for call in (
        lambda **more: dp.mean([1, 2, 3], bounds=(0, 4), **more),
        lambda **more: dp.proportion([1, 0, 1], **more),
    ):
        with pytest.raises(dp.Refused, match="several rows of a unit"):
            call(**shared, max_rows=2)
        assert call(**shared, max_rows=1).unit == "unit"


def test_only_the_clamped_mean_is_of_a_population() -> None:
    with pytest.raises(dp.InvalidParameter, match="clamped"):
        dp.mean([1, 2], bounds=(0, 4), relation=ADD, epsilon=1, method="clipped", public_rows=100, population=True)
    with pytest.raises(dp.InvalidParameter, match="True or False"):
        dp.mean([1, 2], bounds=(0, 4), relation=ADD, epsilon=1, population="yes")  # type: ignore[arg-type]


def shares_of(rows: int, true: int, relation: dp.Relation, epsilon: int = 1) -> dp.Release[Fraction]:
    column = np.arange(rows) < true
    return dp.proportion(column, relation=relation, epsilon=epsilon, population=True)


@pytest.mark.parametrize("relation", list(dp.Relation))
def test_a_difference_lies_in_its_interval_and_a_test_sees_what_is_clear(relation: dp.Relation) -> None:
    one, other = shares_of(20_000, 12_000, relation), shares_of(20_000, 10_000, relation)
    found = dp.difference(one, other)
    low, high = found.interval(0.999999)
    assert low <= Fraction(1, 10) <= high
    assert high - low < Fraction(1, 10)
    assert dp.two_sample_test(one, other).rejects("0.001")
    assert dp.two_sample_test(one, one).p_value == 1
    assert found.cost == "ε = 2"


def test_what_may_fail_in_a_difference_is_no_more_than_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Either population fails by itself with its whole part; that it has fewer rows than said comes beside that."""
    each: list[Fraction] = []
    both: list[float] = []
    ends, reach = SampledMean.ends, population_intervals.sampled_reach

    def by_itself(self: SampledMean, confidence: Fraction) -> tuple[float, float]:
        each.append(1 - confidence)
        return ends(self, confidence)

    def together(sampled: Spread, noises: list[tuple[float, MeasuredNoise]], tail: float) -> float:
        if not sampled.alike:
            both.append(tail)
        return reach(sampled, noises, tail)

    monkeypatch.setattr(SampledMean, "ends", by_itself)
    monkeypatch.setattr(population_intervals, "sampled_reach", together)
    noise = MeasuredNoise(DiscreteLaplaceLaw(Fraction(2)))
    sampled = SampledMean(low=-1, high=1, total=5, count=400, noises=(noise, noise, None), binary=True)
    SampledDifference(first=sampled, second=sampled, steps=(0.5, 0.5)).ends(NINETY)
    assert (len(each), len(both)) == (2, 1)
    fewer = Fraction(population_intervals._SHARES["count"]) * sum(each)
    assert sum(each) + fewer + 2 * Fraction(both[0]) <= 1 - NINETY


@pytest.mark.parametrize("relation", list(dp.Relation))
def test_more_certainty_than_floats_have_leaves_all_of_the_bounds(relation: dp.Relation) -> None:
    """It looked for a reach that nothing passes, forever."""
    for population in (True, False):
        found = dp.mean([1, 2, 3] * 50, bounds=(0, 10), relation=relation, epsilon=1, population=population)
        for fails in (2 * 10**9, 10**10, 10**15):
            low, high = found.interval(1 - Fraction(1, fails))
            assert (low, high) == (0, 10) if population else low <= 2 <= high
            assert not population or dp.difference(found, found).interval(1 - Fraction(1, fails)) == (-10, 10)


def test_a_difference_takes_releases_of_populations_only() -> None:
    plain = dp.proportion([True, False], relation=ADD, epsilon=1)
    drawn = dp.proportion([True, False], relation=ADD, epsilon=1, population=True)
    for pair in ((plain, drawn), (drawn, plain)):
        with pytest.raises(dp.InvalidParameter, match="population=True"):
            dp.difference(*pair)
    with pytest.raises(dp.InvalidParameter, match="relation"):
        dp.difference(drawn, dp.proportion([True, False], relation=REPLACE, epsilon=1, population=True))


def rejection_chance(p: float, rows: tuple[int, int], alpha: Fraction) -> float:
    """Add up the chances of all samples and noises of two shares at which equal shares are rejected."""
    law = DiscreteLaplaceLaw(Fraction(1, 2))
    sides = []
    for many in rows:
        noisy: dict[int, float] = {}
        for s, (x, likely) in product(range(many + 1), noises(law, 8)):
            total = 2 * s - many + x
            weight = math.comb(many, s) * p**s * (1 - p) ** (many - s) * likely
            noisy[total] = noisy.get(total, 0.0) + weight
        sides.append(noisy)
    noise, found = MeasuredNoise(law), 0.0
    for (a, one), (b, other) in product(sides[0].items(), sides[1].items()):
        if one * other < 1e-7:
            found += one * other  # Counted as rejected.
            continue
        first, second = (
            SampledMean(low=-1, high=1, total=t, count=n, noises=(noise, None, None), binary=True)
            for t, n in zip((a, b), rows, strict=True)
        )
        low, high = SampledDifference(first=first, second=second, steps=(0.5, 0.5)).ends(1 - alpha)
        found += one * other * (not low <= 0 <= high)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("p", [0.05, 0.5])
def test_the_size_of_the_test_is_at_most_its_level_on_small_worlds(p: float) -> None:
    for alpha in (Fraction(1, 20), Fraction(1, 5)):
        assert rejection_chance(p, (4, 6), alpha) <= alpha


@pytest.mark.parametrize("held", [Fraction(3, 10), Fraction(1, 500)])
def test_a_p_value_counts_on_no_order_of_intervals(monkeypatch: pytest.MonkeyPatch, held: Fraction) -> None:
    """Zero is left out at every level but for a range of them: whoever looks at some levels only misses it."""

    def interval(self: object, value: Fraction, confidence: Fraction) -> tuple[Fraction, Fraction]:
        out = not held * Fraction(9, 10) <= 1 - confidence <= held * Fraction(11, 10)
        return Fraction(1 if out else -1), Fraction(2)

    monkeypatch.setattr(DifferenceAccuracy, "interval", interval)
    one, other = shares_of(100, 60, ADD), shares_of(100, 50, ADD)
    assert dp.two_sample_test(one, other).p_value > held


def test_the_least_level_is_that_of_a_scan_wherever_it_begins() -> None:
    levels = [Fraction(digit, 10**power) for power in (4, 3, 2, 1) for digit in (1, 2, 3, 5)]
    for least in range(len(levels) + 1):
        out = set(levels[least:]) | set(levels[: max(0, least - 1)])
        expected = levels[least] if least < len(levels) else Fraction(1)
        for below in (*levels, Fraction(1)):
            assert least_level(out.__contains__, below) == min(below, expected)


def test_the_largest_variance_of_a_range_is_that_of_its_worst_mean_where_the_count_is_negative() -> None:
    one, wide = (MeasuredNoise(DiscreteLaplaceLaw(Fraction(scale))) for scale in (1, 1000))
    for count in range(-9000, 0, 250):  # About -6000 neither the bound of the count nor that of the squares is idle.
        noisy = SampledMean(low=-50, high=50, total=0, count=count, noises=(one, wide, one), squares=700_000, fold=1250)
        assert noisy.most(-50, 50, 0.05) >= noisy.most(0, 0, 0.05)
