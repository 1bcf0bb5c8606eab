"""Private bounds on local sensitivity: additive and logarithmic, claims that hold, and noise that gives data away."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import pytest
from statistical import fits, rejects
from threshold_worlds import (
    ADD_REMOVE,
    GRID,
    NUMBERS,
    REPLACE_ONE,
    assert_pays_first,
    assert_refuses,
    local_sensitivity,
    multisets,
    small,
)

from discreet.adaptive.local_sensitivity_bounds import BoundedLocalSensitivity, BoundedSmoothSensitivity, LocalQuery
from discreet.adaptive.smooth_query import Peak, SmoothlyBoundedQuery
from discreet.balls import ball, precision
from discreet.errors import DiscreetError
from discreet.lab import verify
from discreet.lab.verify import worlds
from discreet.mechanisms import Grid
from discreet.noise.laws import DiscreteLaplaceLaw
from discreet.privacy import outcomes
from discreet.privacy.events import ApproxDP, PureDP
from discreet.privacy.outcomes import Outcomes

PAIRS = Grid(low=Fraction(0), high=Fraction(21), step=Fraction(1), default=Fraction(0))


def same_pairs(data: Any) -> int:
    """How many pairs of records are both `a`; up to 21, of seven of them."""
    return min(math.comb(data.count("a"), 2), 21)


def pairs_moved(data: Any) -> int:
    """An upper bound on how far one record moves it, which moves by one itself."""
    return max(1, min(data.count("a"), 21))


COLLISIONS = LocalQuery(value=same_pairs, local_sensitivity=pairs_moved, change=1, grid=PAIRS, relation=ADD_REMOVE)
ADDITIVE = BoundedLocalSensitivity(query=COLLISIONS, epsilon=Fraction(4), delta=Fraction("0.05"))


def median(data: Any) -> Fraction:
    return Fraction(sorted(data)[len(data) // 2])


def smooth_median(data: Any, beta: Fraction) -> Peak:
    """The largest (x_j - x_i) e^(-beta (j - i - 1)) around the middle, by definition."""
    n = len(data)
    ranked = [GRID.first, *sorted(data), GRID.last]
    middle = n // 2 + 1
    peaks = [
        Peak(Fraction(ranked[j] - ranked[i]), j - i - 1)
        for i in range(middle + 1)
        for j in range(middle, n + 2)
        if i < j
    ]
    return max(peaks, key=lambda peak: peak.approximate(float(beta)))


SMOOTH = SmoothlyBoundedQuery(evaluate=median, bound=smooth_median, grid=GRID, relation=REPLACE_ONE)
LOGARITHMIC = BoundedSmoothSensitivity(
    query=SMOOTH, beta=Fraction(1, 2), epsilon=Fraction(8), delta=Fraction("0.05"), fineness=2
)


def test_the_queries_are_what_they_say() -> None:
    for data in multisets("ab", range(8)):
        assert pairs_moved(data) >= local_sensitivity(same_pairs, data, "ab", ADD_REMOVE)
    found = small("ab", ADD_REMOVE, 8)
    assert verify.sensitivity(pairs_moved, found, relation=ADD_REMOVE).value == 1
    for data in multisets(NUMBERS, [3]):
        bound = smooth_median(data, Fraction(1, 2)).approximate(0.5)
        assert bound >= local_sensitivity(median, data, NUMBERS, REPLACE_ONE)


@pytest.mark.long
def test_additive_bound_keeps_its_claim() -> None:
    report = verify.check(ADDITIVE, worlds("a", range(8)))
    assert report.holds, str(report)


@pytest.mark.parametrize(
    ("fineness", "size"), [(1, 3), (2, 3), (2, 4), *(pytest.param(f, 6, marks=pytest.mark.slow) for f in (1, 2, 5))]
)
def test_logarithmic_bound_keeps_its_claim(fineness: int, size: int) -> None:
    mechanism = replace(LOGARITHMIC, fineness=fineness)
    report = verify.check(mechanism, small(NUMBERS, REPLACE_ONE, size))
    assert report.holds, str(report)


@dataclass(frozen=True)
class Naive:
    """Noise in proportion to the local sensitivity itself."""

    local: Callable[[Any], int]
    epsilon: Fraction
    event: Any
    relation: Any
    symmetric: bool = True

    def distribution(self, data: Any) -> Outcomes:
        value = sorted(data)[len(data) // 2] if self.relation is REPLACE_ONE else same_pairs(data)
        return outcomes.from_law(DiscreteLaplaceLaw(self.local(data) / self.epsilon), int(value))


def median_moved(data: Any) -> int:
    return max(1, int(local_sensitivity(median, data, NUMBERS, REPLACE_ONE)))


@pytest.mark.parametrize(
    ("local", "relation", "values", "sizes"),
    [(pairs_moved, ADD_REMOVE, "ab", range(7)), (median_moved, REPLACE_ONE, NUMBERS, [3])],
    ids=["pairs", "median"],
)
def test_noise_in_proportion_to_the_local_sensitivity_is_refuted(
    local: Any, relation: Any, values: Any, sizes: Any
) -> None:
    for event in (PureDP(1), ApproxDP(1, "1e-3")):
        assert verify.check(Naive(local, Fraction(1), event, relation), worlds(values, sizes)).violated


@dataclass(frozen=True)
class NoMargin:
    """The additive bound without what keeps it above the local sensitivity."""

    right: BoundedLocalSensitivity
    margin: int

    @property
    def event(self) -> ApproxDP:
        return self.right.event

    relation = ADD_REMOVE
    symmetric = True

    def distribution(self, data: Any) -> Outcomes:
        bound = outcomes.from_law(self.right.law, pairs_moved(data) + self.margin)
        noisy = self.right.epsilon * (1 - self.right.bound_share)
        parts = []
        for known, mass in bound.masses.items():
            used = min(max(known, 1), 21)
            law = DiscreteLaplaceLaw(used / noisy)
            parts.append((mass, outcomes.map(outcomes.from_law(law, same_pairs(data)), lambda v, b=used: (b, v))))
        return outcomes.mixture(parts, rest=bound.tail)


@pytest.mark.long
def test_a_bound_without_its_margin_is_refuted() -> None:
    right = replace(ADDITIVE, delta=Fraction("0.001"))
    world = worlds("a", [5, 6, 7])
    assert verify.check(NoMargin(right, 0), world).violated
    assert verify.check(NoMargin(right, right.margin), world).holds


def test_the_bound_is_rarely_below_the_local_sensitivity() -> None:
    for mechanism in (ADDITIVE, LOGARITHMIC):
        with precision(128):
            assert mechanism.law.survival(mechanism.margin) <= ball(mechanism.delta)
            assert mechanism.law.survival(mechanism.margin - 1) > ball(mechanism.delta)


def test_the_logarithm_of_a_smooth_bound_moves_by_one_more_than_its_fineness_at_most() -> None:
    for fineness in (1, 3, 1 << 20):
        mechanism = replace(LOGARITHMIC, fineness=fineness)
        found = small(NUMBERS, REPLACE_ONE, 4)
        change = verify.sensitivity(mechanism._logarithm, found, relation=REPLACE_ONE)
        assert change.value <= fineness + 1


def test_the_released_bound_is_never_below_what_its_logarithm_says() -> None:
    for logarithm in range(12):
        bound = LOGARITHMIC._bound(logarithm, -LOGARITHMIC.margin)
        assert bound >= min(math.exp(logarithm / 4) - 1e-9, 4)
        assert bound <= math.exp(logarithm / 4) + 1


def test_the_answer_has_the_interval_of_its_bound_which_is_public() -> None:
    release = ADDITIVE.release(["a"] * 5)
    low, high = release.interval()
    assert low <= release.tidy <= high  # Both are moved to where the answer surely lies.
    assert release.noise is not None
    assert release.cost == "ε = 4, δ = 0.05"
    wide = replace(LOGARITHMIC, fineness=1 << 20).release([2] * 101)
    assert 0 <= wide.tidy <= 4


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("mechanism", "data", "other"),
    [(ADDITIVE, ("a",) * 4, ("a",) * 2), (LOGARITHMIC, (1, 1, 1, 1, 2), (3, 3, 3, 4, 4))],
    ids=["additive", "logarithmic"],
)
def test_release_follows_distribution(mechanism: Any, data: Any, other: Any) -> None:
    with precision(128):
        right, wrong = (mechanism.distribution(given).masses for given in (data, other))
    places = {outcome: place for place, outcome in enumerate({**right, **wrong})}
    noisy = mechanism.epsilon * (1 - mechanism.bound_share)
    sample = []
    for _ in range(600):
        release = mechanism.release(data)
        sample.append(places[int(release.noise.scale * noisy), release.value])
    assert fits(sample, [max(0.0, float(right.get(outcome, 0))) for outcome in places])
    assert rejects(sample, [max(0.0, float(wrong.get(outcome, 0))) for outcome in places])


def test_errors_of_the_query_are_paid_for() -> None:
    """A bound that is off by h is computed with less beta; a value that is off moves farther apart."""
    asked: list[Fraction] = []

    def bound(data: Any, beta: Fraction) -> Peak:
        asked.append(beta)
        return smooth_median(data, beta)

    rough = replace(SMOOTH, bound=bound, relative_error=Fraction(1, 100), value_error=Fraction(1, 2))
    mechanism = replace(LOGARITHMIC, query=rough)
    mechanism.release((1, 2, 3))
    assert asked == [Fraction(1, 2) - Fraction(2, 100)]
    assert mechanism._bound(0, -mechanism.margin) == 2
    with pytest.raises(DiscreetError):
        replace(LOGARITHMIC, query=replace(rough, relative_error=Fraction(1, 4)))


def test_pays_first_and_refuses_nonsense() -> None:
    assert_pays_first(ADDITIVE, ("a",))
    assert_pays_first(LOGARITHMIC, (1, 2, 3))
    good = {"query": COLLISIONS, "epsilon": 1, "delta": "0.1", "bound_share": "0.5"}
    assert_refuses(BoundedLocalSensitivity, good, numbers=["epsilon", "delta", "bound_share"])
    good |= {"query": SMOOTH, "beta": 1, "fineness": 2}
    assert_refuses(BoundedSmoothSensitivity, good, numbers=["epsilon", "delta", "beta", "fineness"])
    with pytest.raises(DiscreetError):
        replace(COLLISIONS, change=0)
