"""Limits, claims, outputs and events: what an audit is made of."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from discreet.errors import InvalidParameter
from discreet.lab.audit.black_box import suspicions
from discreet.lab.audit.confidence_limits import at_least, at_most, read_claim
from discreet.lab.audit.output_features import alike, encoder_of, outputs_of
from discreet.mechanisms import LaplaceNoise
from discreet.privacy import Gaussian, PureDP, Relation


class TestLimits:
    @pytest.mark.parametrize(("seen", "runs"), [(0, 10), (3, 10), (10, 10), (700, 1000)])
    def test_limits_are_where_what_was_seen_becomes_as_rare_as_the_error(self, seen: int, runs: int) -> None:
        low, high = at_least(seen, runs, 0.01), at_most(seen, runs, 0.01)
        assert low <= seen / runs <= high
        assert seen == 0 or binom.sf(seen - 1, runs, low) == pytest.approx(0.01)
        assert seen == runs or binom.cdf(seen, runs, high) == pytest.approx(0.01)

    def test_small_errors_keep_their_meaning(self) -> None:
        assert at_most(0, 1000, 1e-12) == pytest.approx(1 - 1e-12 ** (1 / 1000))

    @pytest.mark.parametrize("wrong", [(-1, 5, 0.1), (6, 5, 0.1), (0, 0, 0.1), (1, 5, 0.0), (1, 5, 1.0)])
    def test_nonsense_is_refused(self, wrong) -> None:
        for limit in (at_least, at_most):
            with pytest.raises(InvalidParameter):
                limit(*wrong)


class TestClaims:
    def test_a_number_is_pure_and_a_pair_has_a_delta(self) -> None:
        assert read_claim(1, None).stated == (1.0, 0.0)
        assert read_claim((1, "1e-3"), None).stated == (1.0, 0.001)
        assert read_claim(PureDP("0.5"), Relation.ADD_REMOVE).stated == (0.5, 0.0)

    def test_the_profile_of_an_event_is_its_curve(self) -> None:
        curve = read_claim(Gaussian(variance=1, squared_sensitivity=1), Relation.ADD_REMOVE)
        at_zero = float(curve.deltas[np.flatnonzero(curve.epsilons == 0)[0]])
        assert at_zero == pytest.approx(math.erf(0.5 / math.sqrt(2)))  # 2 Φ(1/2) - 1
        assert np.all(np.diff(curve.deltas) <= 0)

    def test_a_pure_claim_admits_less_below_its_epsilon(self) -> None:
        curve = read_claim(1, None)
        half = float(curve.deltas[np.flatnonzero(curve.epsilons == 0.5)[0]])
        assert half == pytest.approx((math.e - math.exp(0.5)) / (1 + math.e))

    def test_a_function_of_epsilon_is_asked(self) -> None:
        assert read_claim(lambda epsilon: 0.5 if epsilon < 1 else 0.0, None).stated == (1.0, 0.0)

    @pytest.mark.parametrize("wrong", [-1, (1, 2), lambda epsilon: 7.0, "much"])
    def test_nonsense_is_refused(self, wrong) -> None:
        with pytest.raises(InvalidParameter):
            read_claim(wrong, None)


class TestOutputs:
    @pytest.mark.parametrize(
        "returned",
        [[1, 2, 3], [(1, 2), (3, 4)], np.arange(3), np.ones((2, 3)), [1.5, 2.5], [True, False], [np.int64(3)]],
        ids=str,
    )
    def test_numbers_become_rows(self, returned) -> None:
        assert isinstance(outputs_of(returned), np.ndarray)

    @pytest.mark.parametrize(
        "returned",
        [["a", "b"], [None, 1], [1, None], [(1,), (1, 2)], [{"a": 1}, {}], [math.nan], [10**400], [(1, "x")], [()]],
        ids=str,
    )
    def test_everything_else_is_listed(self, returned) -> None:
        assert isinstance(outputs_of(returned), list)

    def test_a_release_is_its_value_and_what_is_not_a_number_is_a_word(self) -> None:
        release = LaplaceNoise(epsilon=Fraction(1))
        assert outputs_of([math.nan, math.nan, 1.0]) == ["not a number", "not a number", 1.0]
        assert outputs_of(np.array([math.nan, 1.0])) == ["not a number", 1.0]
        assert outputs_of([release, release]) == [release, release]

    def test_what_cannot_be_compared_is_refused_without_showing_it(self) -> None:
        with pytest.raises(InvalidParameter, match="outputs of type set: return numbers"):
            outputs_of([{1, 2}])

    def test_samples_become_alike(self) -> None:
        one, other = alike(np.array([[1], [2]]), ["a", 1])
        assert one == [1, 2]
        assert other == ["a", 1]
        assert alike(np.array([[1, 2]]), np.array([[1]])) == [[(1, 2)], [1]]

    def test_codes_tell_values_apart_and_new_ones_share_the_last(self) -> None:
        for one, other, fresh in (([1, 2], [2, 3], [3, 9]), (["a", 2], [2, "b"], ["b", "z"])):
            samples = alike(outputs_of(one), outputs_of(other), outputs_of(fresh))
            encoder = encoder_of(samples[0], samples[1])
            codes = encoder.sample(samples[2]).codes
            assert encoder.values == 3
            assert codes[0] < 3 == codes[1]

    def test_features_are_numbers_words_and_length(self) -> None:
        listed = outputs_of([("x", 1), (None, 2, 3)])
        features = encoder_of(listed, listed).sample(listed).features
        assert features[:, 0].tolist() == [2, 3]
        assert np.isfinite(features).all()
        huge = outputs_of([10**400, -(10**400), math.inf])
        assert np.isfinite(encoder_of(huge, huge).sample(huge).features).all()


class TestSearch:
    def test_the_event_that_tells_laws_apart_is_found(self) -> None:
        """Two laws that differ in one value of ten: that value is the event."""
        one, other = outputs_of([*range(10)] * 100 + [3] * 500), outputs_of([*range(10)] * 150)
        broken, largest = suspicions(one, other, read_claim("0.5", None))
        assert broken.event.count(outputs_of([3])) == 1
        assert broken.event.count(outputs_of([4])) == 0
        assert broken.strength > 5
        assert largest.event.count(outputs_of([3])) == 1

    def test_equal_samples_raise_no_suspicion(self) -> None:
        same = outputs_of([*range(10)] * 100)
        assert suspicions(same, same, read_claim(1, None))[0].strength < 0

    @pytest.mark.parametrize("kind", ["tails", "middle", "mixture"])
    def test_laws_that_differ_in_spread_are_told_apart_too(self, kind: str) -> None:
        grid = np.linspace(-1, 1, 2001)
        wide = {"tails": 3 * grid, "middle": grid / 3, "mixture": grid**3}[kind]
        assert suspicions(outputs_of(wide), outputs_of(grid), read_claim("0.1", None))[0].strength > 5
