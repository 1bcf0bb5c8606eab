"""Propose-test-release: distances by definition, the right total, refusals charged alike, and planted mistakes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from statistical import fits, rejects
from threshold_worlds import (
    ADD_REMOVE,
    GRID,
    NUMBERS,
    REPLACE_ONE,
    Purse,
    assert_pays_first,
    assert_refuses,
    distances_to,
    local_sensitivity,
    multisets,
    small,
)

from discreet.adaptive.no_answer import NO_ANSWER
from discreet.adaptive.propose_test_release import (
    CentralMean,
    LowerMedian,
    ProposeTestRelease,
    propose_median,
    propose_quantile,
    propose_trimmed_mean,
    total_event,
)
from discreet.adaptive.stability import DistanceTest
from discreet.balls import precision
from discreet.errors import DiscreetError, InvalidParameter, Refused
from discreet.lab import verify
from discreet.lab.verify import worlds
from discreet.mechanisms import Count, GaussianNoise, Grid, LaplaceNoise
from discreet.privacy import outcomes
from discreet.privacy.events import ApproxDP, Composed, PureDP
from discreet.privacy.outcomes import Outcomes

CENTRAL = [(5, 3, 3), (6, 3, 4), (6, 2, 5), (5, 2, 4), (4, 1, 1), (3, 3, 3), (4, 1, 4)]  # size, lower, upper


@pytest.mark.parametrize(("size", "lower", "upper"), CENTRAL)
def test_central_distance_is_one_more_than_to_a_larger_local_sensitivity(size: int, lower: int, upper: int) -> None:
    """C16: ranks, midpoints and trimmed means, on all data sets of a size over five values."""

    def value(data: Any) -> int:
        return sum(sorted(data)[lower - 1 : upper])

    found = multisets(NUMBERS, [size])
    local = {data: local_sensitivity(value, data, NUMBERS, REPLACE_ONE) for data in found}
    for bound in (1, 2, 3):
        query = CentralMean(grid=GRID, public_rows=size, lower=lower, upper=upper, bound=bound)
        wild = [data for data in found if local[data] > bound]
        for data, steps in zip(found, distances_to(found, wild, REPLACE_ONE), strict=True):
            assert query.distance(data) == 1 + steps
            assert query.value(data) == value(data)


def test_lower_median_distance_is_one_more_than_to_a_larger_local_sensitivity() -> None:
    def value(data: Any) -> int:
        return int(sorted(data)[(len(data) + 1) // 2 - 1]) if data else 0

    here, there = multisets(NUMBERS, range(6)), multisets(NUMBERS, range(9))
    local = {data: local_sensitivity(value, data, NUMBERS, ADD_REMOVE) for data in there}
    for bound in (1, 2, 3):
        query, wild = LowerMedian(grid=GRID, bound=bound), [data for data in there if local[data] > bound]
        for data, steps in zip(here, distances_to(here, wild, ADD_REMOVE), strict=True):
            assert query.distance(data) == 1 + steps
            assert query.value(data) == value(data)


def test_distances_move_by_one() -> None:
    for size, lower, upper in CENTRAL[:4]:
        query = CentralMean(grid=GRID, public_rows=size, lower=lower, upper=upper, bound=1)
        assert verify.sensitivity(query.distance, small(NUMBERS, REPLACE_ONE, size), relation=REPLACE_ONE).value == 1
    median = LowerMedian(grid=GRID, bound=1)
    assert verify.sensitivity(median.distance, small(NUMBERS, ADD_REMOVE, 6), relation=ADD_REMOVE).value == 1


SHARED: dict[str, Any] = {"grid": GRID, "epsilon": 6, "delta": "0.05"}
INSTANCES: dict[str, tuple[ProposeTestRelease, int]] = {
    "odd median": (propose_median(bound=1, relation=REPLACE_ONE, public_rows=5, **SHARED), 5),
    "even median": (propose_median(bound=1, relation=REPLACE_ONE, public_rows=6, **SHARED), 6),
    "lower median": (propose_median(bound=1, relation=ADD_REMOVE, **SHARED), 5),
    "quantile": (propose_quantile("0.9", bound=2, public_rows=6, **SHARED), 6),
    "trimmed mean": (propose_trimmed_mean(trimmed=1, bound="0.5", public_rows=6, **SHARED), 6),
    "mean": (propose_trimmed_mean(trimmed=0, bound="0.5", public_rows=4, **SHARED), 4),
}


@pytest.mark.parametrize("name", INSTANCES)
def test_claim_holds_on_all_data_sets(name: str) -> None:
    mechanism, size = INSTANCES[name]
    report = verify.check(mechanism, small(NUMBERS, mechanism.relation, size), epsilons=[0, 3, 6])
    assert report.holds, str(report)


WIDE = Grid(low=Fraction(0), high=Fraction(40), step=Fraction(1), default=Fraction(0))
FAR = worlds((0, 40), [3])  # A median that jumps over the whole grid.
MEDIAN = propose_median(
    grid=WIDE, bound=1, epsilon=3, delta="1e-3", relation=REPLACE_ONE, public_rows=3, test_share="2/3"
)


@dataclass(frozen=True)
class Literal:
    """Propose-test-release with somebody's own threshold and distance."""

    right: ProposeTestRelease
    threshold: float
    distance: Callable[[Any], int]
    relation: Any = REPLACE_ONE

    @property
    def event(self) -> Any:
        return self.right.event

    def distribution(self, data: Any) -> Outcomes:
        chance = self.right.test.law.survival(math.floor(self.threshold) - self.distance(data))
        answer = self.right.mechanism.distribution(data)
        return outcomes.mixture([(chance, answer), (1 - chance, outcomes.point(NO_ANSWER))])


def doubled(data: Any) -> int:
    return 2 * MEDIAN.distance(data)


MUTANTS = {
    "ln(1/δ)/ε at ε = 2": Literal(MEDIAN, math.log(1e3) / 2, MEDIAN.distance),
    "ln(1/δ)/ε at ε = 4": Literal(replace(MEDIAN, epsilon=Fraction(4)), math.log(1e3) / 4, MEDIAN.distance),
    "ln(1/(2δ))/ε without the 1": Literal(MEDIAN, math.log(5e2) / 2, MEDIAN.distance),
    "a distance that moves by two": Literal(MEDIAN, MEDIAN.test.threshold, doubled),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_wrong_tests_are_refuted(name: str) -> None:
    wrong = MUTANTS[name]
    assert verify.check(wrong, FAR, claim=ApproxDP(wrong.right.epsilon + 1, "1e-3")).violated
    right = replace(wrong, threshold=wrong.right.test.threshold, distance=MEDIAN.distance)
    assert verify.check(right, FAR, claim=ApproxDP(wrong.right.epsilon + 1, "1e-3")).holds


def test_a_release_billed_as_its_test_alone_is_refuted() -> None:
    """(epsilon, delta) of the notes, for a test and a release that spend epsilon each; the right total passes."""
    mechanism, size = INSTANCES["even median"]
    assert mechanism.epsilon == 3
    world = small(NUMBERS, REPLACE_ONE, size)
    assert verify.check(mechanism, world, claim=ApproxDP(3, "0.05")).violated
    assert verify.check(mechanism, world, claim=ApproxDP(6, "0.05")).holds


def test_the_total_takes_the_larger_delta() -> None:
    test = DistanceTest(epsilon=Fraction(1, 2), delta=Fraction("1e-6"))
    assert total_event(test, ApproxDP(1, "1e-7")) == ApproxDP("1.5", "1e-6")
    assert total_event(test, ApproxDP(1, "1e-5")) == ApproxDP("1.5", "1e-5")
    assert total_event(test, PureDP(1)) == Composed([*test.event.events, PureDP(1)])


def test_a_mechanism_with_a_delta_of_its_own_keeps_the_larger_of_both() -> None:
    """Exact answers with chance 1/20, noise otherwise: (epsilon, 1/20), after a test that every data set passes."""

    class Careless:
        relation = ADD_REMOVE
        event = ApproxDP(1, "0.05")

        def release(self, data: Any) -> Any:
            raise NotImplementedError

        def distribution(self, data: Any) -> Outcomes:
            noisy = Count(relation=ADD_REMOVE, noise=LaplaceNoise(epsilon=Fraction(1))).distribution(data)
            return outcomes.mixture([(Fraction(19, 20), noisy), (Fraction(1, 20), outcomes.point(len(data)))])

    mechanism = ProposeTestRelease(
        distance=lambda data: 1 + len(data), mechanism=Careless(), epsilon=Fraction(1), delta=Fraction(1, 100)
    )
    assert mechanism.event == ApproxDP(2, "0.05")
    assert verify.check(mechanism, worlds((1,), range(8))).holds
    assert verify.check(mechanism, worlds((1,), range(8)), claim=ApproxDP(2, "0.01")).violated


def test_a_refusal_costs_what_an_answer_costs_and_says_nothing_else() -> None:
    mechanism = propose_median(grid=WIDE, bound=1, epsilon=3, delta="1e-3", relation=REPLACE_ONE, public_rows=101)
    stable, torn = [20] * 101, [0] * 50 + [40] * 51
    purse = Purse(2)
    answer, refusal = mechanism.release(stable, session=purse), mechanism.release(torn, session=purse)
    assert mechanism.true_distance(torn).value == 1
    assert answer.value != NO_ANSWER
    assert refusal.value == NO_ANSWER
    assert [event for event, _ in purse.paid] == [mechanism.event] * 2
    assert answer.event == refusal.event
    assert answer.cost == refusal.cost == "ε = 3, δ = 0.001"
    low, high = answer.interval()
    assert low <= answer.value <= high
    with pytest.raises(Refused):
        refusal.interval()


def test_the_interval_is_that_of_the_proposal_whatever_the_data() -> None:
    releases = [MEDIAN.mechanism.release(data) for data in ([0, 0, 0], [0, 20, 40])]
    assert len({release.accuracy for release in releases}) == 1


def test_gaussian_releases_quote_both_deltas_or_none() -> None:
    for noise, quoted in ((GaussianNoise.for_epsilon(1, "1e-5"), None), (LaplaceNoise(epsilon=Fraction(1)), "1e-3")):
        inner = Count(relation=ADD_REMOVE, noise=noise)
        mechanism = ProposeTestRelease(
            distance=lambda data: 10**6, mechanism=inner, epsilon=Fraction(1), delta=Fraction("1e-3")
        )
        assert mechanism.release([1]).delta == (None if quoted is None else Fraction(quoted))
        assert mechanism.release([1]).cost


@pytest.mark.statistical
def test_release_follows_distribution() -> None:
    mechanism, data = INSTANCES["odd median"][0], [2, 2, 2, 2, 3]
    with precision(128):
        right = mechanism.distribution(data).masses
        wrong = mechanism.distribution([3, 3, 3, 3, 2]).masses
    places = {outcome: place for place, outcome in enumerate({**right, **wrong})}
    sample = [places[mechanism.release(data).value] for _ in range(600)]
    assert fits(sample, [float(right.get(outcome, 0)) for outcome in places])
    assert rejects(sample, [float(wrong.get(outcome, 0)) for outcome in places])


def test_large_columns_take_no_longer_than_sorting_them() -> None:
    values = np.random.default_rng(0).normal(500, 20, 200_001)
    grid = Grid(low=Fraction(0), high=Fraction(1000), step=Fraction(1, 1000), default=Fraction(0))
    mechanism = propose_median(
        grid=grid, bound="0.1", epsilon=1, delta="1e-6", relation=REPLACE_ONE, public_rows=200_001
    )
    assert abs(float(mechanism.release(values).value) - 500) < 2
    removed = propose_median(grid=grid, bound="0.1", epsilon=1, delta="1e-6", relation=ADD_REMOVE)
    assert abs(float(removed.release(values).value) - 500) < 2


def test_pays_first_and_refuses_nonsense() -> None:
    assert_pays_first(MEDIAN, [0, 20, 40])
    good = {"bound": 1, "relation": REPLACE_ONE, "public_rows": 5, **SHARED}
    assert_refuses(propose_median, good, numbers=["bound", "epsilon", "delta", "public_rows"])
    good = {"bound": 1, "trimmed": 1, "public_rows": 5, **SHARED}
    assert_refuses(propose_trimmed_mean, good, numbers=["bound", "epsilon", "delta", "public_rows"])
    for extra in ({"trimmed": 3}, {"trimmed": -1}, {"bound": "4/3"}, {"bound": "0.3"}, {"test_share": 1}):
        with pytest.raises(DiscreetError):
            propose_trimmed_mean(**good | extra)
    with pytest.raises(DiscreetError):
        propose_quantile("1.1", bound=1, public_rows=5, **SHARED)
    with pytest.raises(InvalidParameter):
        MEDIAN.release([1, 2])
