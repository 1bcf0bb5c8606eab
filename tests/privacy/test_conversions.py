"""Conversions, composition theorems, amplification and groups, each against brute force where it is one."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from privacy_brute_force import discrete_gaussian, discrete_laplace, hockey_stick, product, renyi, response

from discreet import privacy
from discreet.errors import InvalidParameter, UnsupportedEvent
from discreet.privacy import (
    ZCDP,
    ApproxDP,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    PoissonSampled,
    PureDP,
    RandomizedResponse,
    Relation,
    compose,
    convert,
    group,
    subsample,
)

AR, RO = Relation.ADD_REMOVE, Relation.REPLACE_ONE


class TestRenyiToDP:
    @pytest.mark.parametrize("order", [1.1, 1.5, 2, 5, 20])
    @pytest.mark.parametrize("level", [0.0, 0.3, 1.0, 2.0])
    def test_delta_dominates_brute_force(self, order: float, level: float) -> None:
        for p, q in [
            (discrete_laplace(1.5, 0, 150), discrete_laplace(1.5, 2, 150)),
            (discrete_gaussian(2.0, 0, 60), discrete_gaussian(2.0, 3, 60)),
            (response(1.0, 2, 0), response(1.0, 2, 1)),
        ]:
            claim = convert.renyi_to_delta(order, renyi(p, q, order), level)
            assert hockey_stick(p, q, level) <= claim

    @given(order=st.floats(1.01, 500), divergence=st.floats(0, 30), target=st.floats(1e-14, 0.9))
    @settings(max_examples=100, deadline=None)
    def test_epsilon_and_delta_are_inverse_for_all_orders(self, order: float, divergence: float, target: float) -> None:
        level = convert.renyi_to_epsilon(order, divergence, target)
        assert convert.renyi_to_delta(order, divergence, Fraction(level)) <= target * (1 + 1e-9)
        assert level <= convert.mironov(order, divergence, target)

    def test_tight_zcdp_is_between_the_gaussian_and_the_simple_bound(self) -> None:
        for rho in ("0.001", "0.1", "0.5", "3", "50"):
            for target in ("1e-12", "1e-6", "0.01"):
                tight = convert.zcdp_to_epsilon(rho, target)
                exact_gaussian = privacy.epsilon(privacy.GDP(mu_squared=2 * Fraction(rho)), target)
                assert exact_gaussian <= tight <= convert.zcdp_simple(rho, target)
                assert convert.zcdp_to_delta(rho, Fraction(tight)) <= float(target) * (1 + 1e-6)

    def test_low_orders_are_searched_too(self) -> None:
        # At a large delta the best order lies between 1 and 2.
        tight = convert.zcdp_to_epsilon(1, "0.5")
        assert tight < min(convert.renyi_to_epsilon(a, a, "0.5") for a in range(2, 50)) - 0.1


class TestPureToZCDP:
    @pytest.mark.parametrize("level", ["1e-6", "0.1", "1", "4", "30"])
    def test_rho_dominates_brute_force_at_all_orders_and_is_reached(self, level: str) -> None:
        rho = convert.pure_to_zcdp(level)
        ratios = [privacy.renyi(PureDP(level), a) / float(a) for a in (Fraction(10**9 + 1, 10**9), "1.1", 2, 50)]
        assert max(ratios) <= rho * (1 + 1e-12)
        assert ratios[0] == pytest.approx(rho, rel=1e-6)
        assert rho <= convert.pure_to_zcdp_simple(level)

    def test_bounded_range_has_a_quarter(self) -> None:
        assert convert.bounded_range_to_zcdp(2) == Fraction(1, 2)
        assert convert.pure_to_zcdp_simple(2) == 2


class TestReplaceOne:
    def test_approximate_rule(self) -> None:
        found = convert.to_replace_one(ApproxDP(1, "1e-6"))
        assert isinstance(found, ApproxDP)
        assert found.epsilon == 2
        assert float(found.delta) == pytest.approx((1 + math.e) * 1e-6, rel=1e-12)
        assert found.delta >= Fraction(3718281828459, 10**18)

    def test_sensitivity_doubles(self) -> None:
        assert convert.to_replace_one(PureDP(1)) == PureDP(2)
        assert convert.to_replace_one(Laplace(3)) == Laplace("1.5")
        assert convert.to_replace_one(DiscreteLaplace(3, 1)) == DiscreteLaplace(3, 2)
        assert convert.to_replace_one(ZCDP(1)) == ZCDP(4)
        assert convert.to_replace_one(Gaussian(2)) == Gaussian(variance=4, squared_sensitivity=4)

    def test_what_holds_for_replace_one_only_is_refused(self) -> None:
        with pytest.raises(UnsupportedEvent):
            convert.to_replace_one(RandomizedResponse(1))
        with pytest.raises(UnsupportedEvent):
            convert.to_replace_one(PoissonSampled(Gaussian(1), "0.1"))


class TestComposition:
    def test_basic_is_exact(self) -> None:
        assert compose.basic([PureDP("0.1")] * 10) == ApproxDP(1, 0)
        assert compose.basic([ApproxDP("0.1", "1e-6"), PureDP("0.2")]) == ApproxDP("0.3", "1e-6")
        assert compose.basic([ApproxDP(1, "0.7")] * 2).delta == 1

    @pytest.mark.parametrize("times", [1, 2, 5, 9])
    @pytest.mark.parametrize("part", ["0", "0.01"])
    def test_optimal_is_the_brute_force_profile(self, times: int, part: str) -> None:
        chance = float(part)
        p = np.concatenate([[chance, 0], (1 - chance) * response(0.4, 2, 0)])
        q = np.concatenate([[0, chance], (1 - chance) * response(0.4, 2, 1)])
        many_p, many_q = product(*[p] * times), product(*[q] * times)
        for level in (0.0, 0.2, 0.5, 1.1):
            found = compose.optimal_delta("0.4", part, times, level)
            assert found == pytest.approx(hockey_stick(many_p, many_q, level), abs=1e-13)
        target = 1 - (1 - chance) ** times + 0.02
        assert hockey_stick(many_p, many_q, compose.optimal("0.4", part, times, target)) <= target + 1e-12

    def test_optimal_beats_advanced_beats_basic_for_many_parts(self) -> None:
        optimal = compose.optimal("0.1", 0, 100, "1e-6")
        advanced, spent = compose.advanced("0.1", 0, 100, "1e-6")
        assert optimal < advanced < 10
        assert spent == pytest.approx(1e-6)

    @pytest.mark.parametrize("times", [1, 3, 10, 200])
    def test_advanced_is_above_optimal(self, times: int) -> None:
        for level in ("0.01", "0.3", "1"):
            total, spent = compose.advanced(level, "1e-8", times, "1e-6")
            assert compose.optimal(level, "1e-8", times, Fraction(spent)) <= total

    def test_a_target_below_the_chance_to_reveal_all_is_never_met(self) -> None:
        assert compose.optimal(1, "1e-6", 10, "1e-6") == math.inf
        assert compose.optimal(1, 0, 7, 0) == 7

    def test_too_many_repetitions_are_refused_with_a_way_out(self) -> None:
        with pytest.raises(InvalidParameter, match="Repeated"):
            compose.optimal(1, 0, 10**9, "1e-6")

    def test_parallel(self) -> None:
        parts = [PureDP(1), ApproxDP(3, "1e-6"), ApproxDP(2, "1e-5")]
        assert compose.parallel(parts, AR) == ApproxDP(3, "1e-5")
        assert compose.parallel(parts, RO) == ApproxDP(5, "1.1e-5")
        assert compose.parallel(parts[:1], RO) == ApproxDP(1, 0)


class TestAmplification:
    @pytest.mark.parametrize("q", [0.1, 0.5, 1.0])
    @pytest.mark.parametrize("level", [0.2, 1.0, 3.0])
    def test_poisson_is_exact_for_the_worst_pair(self, q: float, level: float) -> None:
        chance = 0.01
        p = np.concatenate([[chance, 0], (1 - chance) * response(level, 2, 0)])
        base = np.concatenate([[0, chance], (1 - chance) * response(level, 2, 1)])
        mixture = q * p + (1 - q) * base
        found, spent = subsample.poisson(level, "0.01", q)
        assert hockey_stick(mixture, base, found) == pytest.approx(spent, abs=1e-12)
        assert hockey_stick(base, mixture, found) <= spent + 1e-12

    def test_without_replacement_has_the_same_formula(self) -> None:
        assert subsample.without_replacement(2, "1e-6", 1, 10) == subsample.poisson(2, "1e-6", "0.1")

    @pytest.mark.parametrize(("size", "population"), [(1, 2), (2, 2), (3, 2), (2, 4)])
    def test_with_replacement_dominates_brute_force(self, size: int, population: int) -> None:
        """Discrete Laplace noise on a sum of draws, each of which may hit the replaced unit."""
        scale = 1.3

        def law(worlds: tuple[int, ...]) -> np.ndarray:
            total = np.zeros(301)
            for draws in np.ndindex(*[population] * size):
                total += discrete_laplace(scale, sum(worlds[i] for i in draws), 150)
            return total / population**size

        found, spent = subsample.with_replacement(1 / scale, 0, size, population)
        for others in combinations_with_replacement((0, 1), population - 1):
            first, second = law((0, *others)), law((1, *others))
            assert max(hockey_stick(first, second, found), hockey_stick(second, first, found)) <= spent + 1e-12

    def test_with_replacement_is_not_free_of_delta(self) -> None:
        """One unit drawn twice is a group of two, which pure epsilon does not cover."""
        assert subsample.with_replacement(1, 0, 100, 1000)[1] > 1e-3
        assert subsample.with_replacement(1, 0, 1, 1000)[1] == 0
        assert subsample.with_replacement(1, "1e-9", 10**9, 10**9)[1] <= 1

    @pytest.mark.parametrize("population", [1, 2])
    def test_more_copies_than_are_listed_are_not_forgotten(self, population: int) -> None:
        """Of a thousand draws from two units one has some five hundred: nothing is known of such a group."""
        assert subsample.with_replacement(1, 0, 1000, population)[1] == 1

    def test_nothing_is_worse_than_no_sampling(self) -> None:
        assert subsample.poisson(2, "1e-6", 1) == pytest.approx((2, 1e-6), rel=1e-15)
        assert subsample.poisson(2, "1e-6", 1)[0] == 2
        assert subsample.poisson("1e300", 0, "0.5")[0] <= 1e300


class TestGroups:
    def test_approximate_rule_dominates_a_chain(self) -> None:
        level, spent = group.approximate("0.5", "1e-6", 3)
        assert level == 1.5
        assert spent == pytest.approx(1e-6 * (1 + math.exp(0.5) + math.exp(1)), rel=1e-12)
        assert group.approximate(0, "1e-6", 5) == (0, 5e-6)
        assert group.approximate(100, "1e-6", 10**9)[1] == 1

    def test_a_large_group_takes_no_time(self) -> None:
        event = privacy.Grouped(ApproxDP("1e-9", "1e-15"), 10**9)
        assert privacy.epsilon(event, "1e-5") == pytest.approx(1, abs=1e-4)

    @pytest.mark.parametrize(
        ("one", "together"),
        [
            (privacy.PureDP("0.1"), privacy.PureDP("0.3")),
            (privacy.BoundedRange("0.2"), privacy.BoundedRange("0.6")),
            (privacy.GDP("0.5"), privacy.GDP("1.5")),
            (privacy.ZCDP("0.1"), privacy.ZCDP("0.9")),
            (privacy.Gaussian(6), privacy.Gaussian(2)),
            (privacy.Laplace(6), privacy.Laplace(2)),
            (privacy.DiscreteLaplace(5, 2), privacy.DiscreteLaplace(5, 6)),
            (privacy.DiscreteGaussian(4, 1), privacy.DiscreteGaussian(4, 3)),
        ],
        ids=lambda event: type(event).__name__,
    )
    def test_three_people_move_an_answer_three_times_as_far(self, one: privacy.Event, together: privacy.Event) -> None:
        """epsilon, its range, mu and the sensitivity grow with the size of a group, rho with its square."""
        for delta in ("1e-3", "1e-9"):
            assert privacy.epsilon(privacy.Grouped(one, 3), delta) == privacy.epsilon(together, delta)

    def test_renyi_rule_needs_enough_order(self) -> None:
        assert group.renyi(8, "0.1", 3) == (2, Fraction(9, 10))
        assert group.renyi(3, "0.1", 1) == (3, Fraction(1, 10))
        with pytest.raises(InvalidParameter, match="at least 8"):
            group.renyi(7, "0.1", 3)
