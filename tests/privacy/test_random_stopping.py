"""The best of a secret number of runs: its exact law on small worlds is within what is charged; mistakes are not."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from statistical import fits, rejects

import discreet as dp
from discreet import noise
from discreet.errors import InvalidParameter, UnsupportedEvent
from discreet.learn.random_stopping import RandomStopping
from discreet.privacy import Relation, epsilon, renyi
from discreet.privacy.basic_account import point
from discreet.privacy.events import (
    ApproxDP,
    BoundedRange,
    Composed,
    DiscreteLaplace,
    Event,
    Gaussian,
    Grouped,
    Parallel,
    PoissonSampled,
    PureDP,
    RandomizedResponse,
    RandomlyStopped,
    Repeated,
)

SHAPES = [Fraction(-1, 2), Fraction(0), Fraction(1, 2), Fraction(1)]
STOPPING = [Fraction(1, 2), Fraction(1, 10), Fraction(1, 1000)]
RULES = list(product(SHAPES, STOPPING))
ORDERS = [Fraction(3, 2), Fraction(2), Fraction(8), Fraction(64)]


def chances(rule: RandomStopping, most: int) -> list[float]:
    """P[K = 1], P[K = 2], … by the definition, up to a common factor that their sum gives."""
    weights, weight = [], 1.0 - float(rule.stopping)
    for k in range(1, most + 1):
        weights.append(weight)
        weight *= (1 - float(rule.stopping)) * (k + float(rule.shape)) / (k + 1)
    total = math.fsum(weights)
    return [weight / total for weight in weights]


def best_law(run: Any, rule: RandomStopping) -> Any:
    """The chance of each outcome to be the best, where later ones are better: differences of E[F^K].

    F is the chance below. With u = 1 - (1 - g) F that mean is u^-shape, or log u for shape 0, up to constants;
    differences of it are taken through the logarithm of the ratio of neighbouring u, so that outcomes of 1e-8 keep
    their digits.
    """
    g, shape = float(rule.stopping), float(rule.shape)
    tails = np.cumsum(run[::-1])[::-1]  # the chance of each outcome or a better one
    u = g + (1 - g) * np.minimum(tails, 1.0)
    steps = np.log1p(-(1 - g) * run / u)
    if shape == 0:
        return steps / math.log(g)
    return u**-shape * np.expm1(-shape * steps) / (g**-shape - 1)


def pure_pairs(level: float) -> Iterator[tuple[Any, Any]]:
    """Pairs of laws of a run: a bad outcome, a middle one and the best one, whose losses are level up or down."""
    for best, (first, second) in product((0.2, 0.02, 1e-3, 1e-5), product((-level, level), repeat=2)):
        middle = best / 1000
        one = np.array([1 - middle - best, middle, best])
        other = np.array([1 - middle * math.exp(first) - best * math.exp(second), *one[1:] * np.exp([first, second])])
        if other[0] > 0 and abs(math.log(other[0] / one[0])) <= level:
            yield one, other
            yield other, one


def divergence(one: Any, other: Any, order: Fraction) -> float:
    logs = float(order) * np.log(one) + (1 - float(order)) * np.log(other)
    return float(np.logaddexp.reduce(logs)) / (float(order) - 1)


class TestPureRuns:
    @pytest.mark.parametrize("shape", SHAPES)
    def test_no_outcome_tells_more_than_two_and_shape_times_a_run_and_some_nearly_that(self, shape: Fraction) -> None:
        largest = 0.0
        for stopping, level in product([*STOPPING, Fraction(1, 10**6)], (0.25, 1.0, 2.0)):
            rule = RandomStopping(shape, stopping)
            charged = epsilon(rule.event([PureDP(level)]), 0)
            assert charged == pytest.approx((2 + shape) * level)
            for one, other in pure_pairs(level):
                told = np.log(best_law(one, rule) / best_law(other, rule)).max()
                assert told <= charged * (1 + 1e-9)
                largest = max(largest, told / level)
        # The mistakes of charging one run, or one less than the theorem.
        assert largest > 1 + shape + Fraction(1, 3)

    def test_the_dearest_of_the_events_counts_and_a_delta_is_no_pure_price(self) -> None:
        two = RandomlyStopped([PureDP(1), Repeated(DiscreteLaplace(4, 2), 3)], 0, Fraction(1, 9))
        assert epsilon(two, 0) == 3
        assert point(RandomlyStopped([PureDP(1), ApproxDP(1, Fraction(1, 10))], 0, Fraction(1, 9))) is None
        assert point(RandomlyStopped([PureDP(1), Gaussian(1)], 0, Fraction(1, 9))) is None


@pytest.mark.parametrize(("shape", "stopping"), RULES)
def test_divergences_of_the_best_are_within_the_theorem_on_small_worlds(shape: Fraction, stopping: Fraction) -> None:
    rule = RandomStopping(shape, stopping)
    for level in (0.25, 2.0):
        claims = {order: renyi(rule.event([PureDP(level)]), order) for order in ORDERS}
        for one, other in pure_pairs(level):
            laws = best_law(one, rule), best_law(other, rule)
            for order, claim in claims.items():
                assert divergence(*laws, order) <= claim + 1e-9


def gaussian_pair(sigma: float) -> tuple[Any, Any]:
    """Two normal laws one apart, seen through a grid: what is coarser tells less, so any bound must hold."""
    from scipy.stats import norm

    ends = np.concatenate([[-np.inf], np.linspace(-8 * sigma, 8 * sigma + 1, 2000), [np.inf]])
    laws = [norm(loc=loc, scale=sigma) for loc in (0, 1)]
    below, above = (np.where(ends[1:] < 0.5, np.diff(law.cdf(ends)), -np.diff(law.sf(ends))) for law in laws)
    return below, above  # Each tail by the function that keeps its digits.


@pytest.mark.parametrize(("shape", "stopping"), RULES)
def test_divergences_of_the_best_of_gaussian_runs_are_within_the_theorem(shape: Fraction, stopping: Fraction) -> None:
    rule = RandomStopping(shape, stopping)
    for sigma in (1, 4):
        one, other = gaussian_pair(sigma)
        claims = {order: renyi(rule.event([Gaussian(sigma)]), order) for order in ORDERS[:3]}
        for first, second in ((one, other), (other, one)):
            laws = best_law(first, rule), best_law(second, rule)
            assert all(divergence(*laws, order) <= claim for order, claim in claims.items())


def test_one_gaussian_run_is_less_than_the_best_tells() -> None:
    """The mistake of charging the best by itself."""
    rule, (one, other) = RandomStopping.for_mean(50), gaussian_pair(4)
    best = divergence(best_law(other, rule), best_law(one, rule), Fraction(8))
    assert best > 2 * renyi(Gaussian(4), 8)


def test_whoever_is_told_how_many_runs_there_were_learns_more_than_is_charged() -> None:
    """The mistake of a progress bar: the best of k runs, with k, has about k times the loss of one."""
    rule, ((one, other), *_) = RandomStopping.for_mean(20), list(pure_pairs(0.5))
    charged = epsilon(rule.event([PureDP(0.5)]), 0)
    below = [np.concatenate([[0.0], np.cumsum(law)]) for law in (one, other)]
    told = [np.log(np.diff(below[0] ** k) / np.diff(below[1] ** k))[0] for k in (1, 2, 20)]
    assert abs(told[0]) <= charged < abs(told[2])
    assert abs(np.log(best_law(one, rule) / best_law(other, rule))).max() <= charged


class TestNumberOfRuns:
    @pytest.mark.statistical
    @pytest.mark.parametrize("shape", [*SHAPES[:2], Fraction(1)])
    def test_it_is_drawn_by_its_law(self, shape: Fraction) -> None:
        rule = RandomStopping(shape, Fraction(1, 8))
        drawn = [rule.draw() - 1 for _ in range(6000)]
        assert fits(drawn, chances(rule, 2000))
        other = RandomStopping(Fraction(1, 2) if shape != Fraction(1, 2) else Fraction(1), Fraction(1, 8))
        assert rejects(drawn, chances(other, 2000))

    @pytest.mark.parametrize("shape", SHAPES)
    @pytest.mark.parametrize("runs", [2, 10, 50, 1000])
    def test_a_rule_for_a_mean_has_it(self, shape: Fraction, runs: int) -> None:
        rule = RandomStopping.for_mean(runs, shape)
        assert rule.mean == pytest.approx(runs, rel=1e-3)
        if runs <= 10:
            law = chances(rule, 20_000)
            assert math.fsum(k * chance for k, chance in enumerate(law, 1)) == pytest.approx(runs, rel=1e-3)

    @pytest.mark.parametrize(
        ("runs", "shape"), [(1, 1), (0, 1), (10**9, 1), (10, -1), (10, 2), ("many", 1), (float("nan"), 1)]
    )
    def test_nonsense_is_refused(self, runs: Any, shape: Any) -> None:
        with pytest.raises(InvalidParameter):
            RandomStopping.for_mean(runs, shape)

    def test_what_no_chance_of_stopping_gives_is_refused(self) -> None:
        with pytest.raises(InvalidParameter, match="larger shape"):
            RandomStopping.for_mean(10**6, Fraction(-99, 100))

    @pytest.mark.parametrize(("shape", "stopping"), [(-1, "1/2"), (3, "1/9"), (1, 0), (1, 1), (1, "x")])
    def test_rules_out_of_range_are_refused_before_anything_is_drawn(self, shape: Any, stopping: Any) -> None:
        with pytest.raises(InvalidParameter):
            RandomStopping(shape, stopping)


@pytest.mark.long
@pytest.mark.statistical
def test_an_audit_refutes_the_price_of_one_run_and_not_that_of_the_best() -> None:
    """A middle outcome is e times likelier with the unit, the best one e times less: the best of many tells both."""
    rule, most, middle, top = RandomStopping.for_mean(10), 10**6, 10_000, 500_000
    borders = {
        (): np.array([most - top - middle, most - top]),
        (1,): np.array([most - round(top / math.e) - round(middle * math.e), most - round(top / math.e)]),
    }

    def best(data: tuple[int, ...], many: int) -> Any:
        stops = np.flatnonzero(noise.bernoulli(rule.stopping, 20 * many))[
            :many
        ]  # Geometric numbers, as `draw` has them.
        assert len(stops) == many
        runs = np.diff(stops, prepend=-1)
        outcomes = np.searchsorted(borders[data], noise.uniform(most, int(runs.sum())), side="right")
        return np.maximum.reduceat(outcomes, np.cumsum(runs) - runs)

    laws = [np.diff([0, *ends, most]) / most for ends in borders.values()]
    one_run = PureDP(Fraction(1001, 1000))
    assert np.abs(np.log(laws[0] / laws[1])).max() <= one_run.epsilon
    said = {"runs": 40_000, "level": 1e-9, "many": True}
    assert not dp.audit.audit(best, [((), (1,))], claim=rule.event([one_run]), **said).refuted
    assert dp.audit.audit(best, [((), (1,))], claim=one_run, **said).refuted


class TestEvent:
    def test_fifty_runs_cost_about_two_or_three(self) -> None:
        for shape, most in ((0, 2.2), (1, 2.8)):
            rule = RandomStopping.for_mean(50, shape)
            sigma = dp.privacy.calibrate(lambda x, rule=rule: rule.event([Gaussian(x)]), epsilon=1, delta=1e-6)
            assert 1 / most < epsilon(Gaussian(sigma), 1e-6) < 0.5
            assert epsilon(Repeated(Gaussian(sigma), 50), 1e-6) > 2.5

    def test_it_composes_with_others_by_its_divergences(self) -> None:
        best = RandomStopping.for_mean(50).event([Gaussian(8)])
        both = Composed([best, Gaussian(4)])
        for order in ORDERS:
            assert renyi(both, order) == pytest.approx(renyi(best, order) + renyi(Gaussian(4), order))
        assert epsilon(best, 1e-6) < epsilon(both, 1e-6) < epsilon(best, 5e-7) + epsilon(Gaussian(4), 5e-7)
        assert epsilon(best, 0) == math.inf

    def test_training_on_samples_may_be_a_run(self) -> None:
        training = Repeated(PoissonSampled(Gaussian(1), Fraction(1, 100)), 100)
        best = RandomStopping.for_mean(20).event([training])
        one, many = (epsilon(each, 1e-5, relation=Relation.ADD_REMOVE) for each in (training, best))
        assert one < many < 4 * one
        with pytest.raises(InvalidParameter, match="relation"):
            epsilon(best, 1e-5)

    def test_a_group_sees_the_best_of_what_a_group_spends(self) -> None:
        rule = RandomStopping.for_mean(10)
        alone, group = rule.event([PureDP(1), Gaussian(8)]), rule.event([PureDP(3), Gaussian(Fraction(8, 3))])
        for order in ORDERS:
            assert renyi(Grouped(alone, 3), order) == renyi(group, order)

    def test_a_delta_has_no_price(self) -> None:
        best = RandomStopping.for_mean(10).event([ApproxDP(1, Fraction(1, 10**6))])
        assert renyi(best, 2) == math.inf
        assert epsilon(best, 1e-3) == math.inf

    @pytest.mark.parametrize(
        "event",
        [
            PoissonSampled(RandomlyStopped([PureDP(1)], 1, Fraction(1, 9)), Fraction(1, 2)),
            RandomlyStopped([RandomlyStopped([PureDP(1)], 1, Fraction(1, 9))], 1, Fraction(1, 9)),
            RandomlyStopped([Parallel([PureDP(1), PureDP(2)])], 1, Fraction(1, 9)),
        ],
    )
    def test_what_is_not_proven_is_refused(self, event: Event) -> None:
        with pytest.raises(UnsupportedEvent):
            epsilon(event, 1e-6, relation=Relation.ADD_REMOVE)

    def test_cells_are_for_units_that_come_or_go(self) -> None:
        rule = RandomStopping.for_mean(10)
        cells = Parallel([rule.event([Gaussian(8)]), rule.event([BoundedRange(Fraction(1, 4))])])
        alone = epsilon(rule.event([Gaussian(8)]), 1e-6)
        assert epsilon(cells, 1e-6, relation=Relation.ADD_REMOVE) == pytest.approx(max(alone, 0.75))
        with pytest.raises(UnsupportedEvent):
            epsilon(cells, 1e-6, relation=Relation.REPLACE_ONE)
        with pytest.raises(UnsupportedEvent):
            epsilon(rule.event([RandomizedResponse(1)]), 0, relation=Relation.ADD_REMOVE)

    @pytest.mark.parametrize(("shape", "stopping"), [(-1, "1/2"), (2, "1/2"), (1, 0), (1, 1), (1, "x")])
    def test_numbers_out_of_range_are_refused(self, shape: Any, stopping: Any) -> None:
        with pytest.raises(InvalidParameter):
            RandomlyStopped([PureDP(1)], shape, stopping)
