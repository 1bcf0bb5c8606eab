"""A mean within bounds found in the data: its claim on all data sets of a small world, and what it is good for."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from discreet import adaptive
from discreet.errors import InvalidParameter
from discreet.lab import verify
from discreet.lab.verify import worlds
from discreet.mechanisms import Grid, Mean
from discreet.mechanisms.additive_noise import LaplaceNoise
from discreet.privacy import epsilon
from discreet.privacy.events import PureDP
from discreet.privacy.relation import Relation

ADD_REMOVE, REPLACE_ONE = Relation.ADD_REMOVE, Relation.REPLACE_ONE
GRID = Grid(low=Fraction(0), high=Fraction(4), step=Fraction(1), default=Fraction(2))
SMALL = adaptive.ClippedMean(
    grid=GRID,
    relation=REPLACE_ONE,
    epsilon=Fraction(6),
    public_rows=3,
    beyond=Fraction(1),
    centre_share="1/4",
    radius_share="1/2",
)
WORLD = worlds((0, 1, 4), [3])


@pytest.mark.long
def test_claim_holds_on_all_data_sets_of_three_out_of_three_values() -> None:
    report = verify.check(SMALL, WORLD)
    assert report.holds, str(report)


@pytest.mark.slow
def test_claim_holds_on_all_data_sets_of_three_values() -> None:
    report = verify.check(SMALL, worlds((0, 1, 2, 3, 4), [3]))
    assert report.holds, str(report)


@pytest.mark.long
def test_a_radius_paid_for_half_is_refuted() -> None:
    """Without the 2 of the exponential mechanism for scores that move both ways."""
    bold = replace(SMALL, radius_share=Fraction(7, 10), centre_share=Fraction(1, 100))
    cheap = PureDP(6 * (1 - Fraction(7, 10) / 2))
    assert verify.check(bold, WORLD, claim=cheap).violated


@pytest.mark.long
def test_claim_holds_where_rows_come_and_go() -> None:
    """With a private number of rows: the sum, the count, the centre and the radius together."""
    grid = Grid(low=Fraction(0), high=Fraction(2), step=Fraction(1), default=Fraction(1))
    mechanism = adaptive.ClippedMean(
        grid=grid, relation=ADD_REMOVE, epsilon=Fraction(30), beyond=Fraction(1), centre_share="1/4", radius_share="1/4"
    )
    world = worlds((0, 1, 2), [0, 1, 2])
    assert verify.check(mechanism, world).holds
    assert verify.check(mechanism, world, claim=PureDP(18)).violated


def test_the_price_is_the_whole_epsilon() -> None:
    for relation, size in ((ADD_REMOVE, None), (REPLACE_ONE, 1000)):
        mechanism = adaptive.ClippedMean(grid=GRID, relation=relation, epsilon=Fraction(1), public_rows=size)
        assert epsilon(mechanism.event, 0, relation=relation) == pytest.approx(1)


def test_with_a_delta_the_price_stays_within_epsilon() -> None:
    mechanism = adaptive.ClippedMean(grid=GRID, relation=ADD_REMOVE, epsilon=Fraction(1), delta=Fraction("1e-6"))
    assert 0.9 < epsilon(mechanism.event, Fraction("1e-6"), relation=ADD_REMOVE) <= 1


@pytest.mark.parametrize("delta", [None, Fraction("1e-6")])
def test_the_release_says_what_all_three_steps_spend(delta: Fraction | None) -> None:
    mechanism = adaptive.ClippedMean(grid=GRID, relation=ADD_REMOVE, epsilon=Fraction(1), delta=delta)
    assert mechanism.release([0, 1, 4]).event == mechanism.event


def test_wide_bounds_cost_far_less_than_they_do_a_plain_mean() -> None:
    values = np.random.default_rng(7).normal(30, 5, 20_000)
    wide = Grid.between(-1000, 1000, step="0.01")
    mechanism = adaptive.ClippedMean(grid=wide, relation=REPLACE_ONE, epsilon=Fraction(1), public_rows=20_000)
    plain = Mean(grid=wide, relation=REPLACE_ONE, noise=LaplaceNoise(epsilon=Fraction(1)), public_rows=20_000)
    truth = values.mean()
    ours = np.median([abs(float(mechanism.release(values).value) - truth) for _ in range(60)])
    theirs = np.median([abs(float(plain.release(values).value) - truth) for _ in range(60)])
    assert ours < theirs / 10  # Usually a fortieth.


def test_the_bounds_that_were_found_are_told() -> None:
    values = np.random.default_rng(7).normal(30, 5, 20_000)
    wide = Grid.between(-1000, 1000, step="0.01")
    answer = adaptive.ClippedMean(grid=wide, relation=ADD_REMOVE, epsilon=Fraction(2)).release(values)
    low, high = answer.limits
    assert low is not None
    assert high is not None
    assert wide.low <= low < high <= wide.high


@pytest.mark.parametrize("shares", [("1/2", "1/2"), ("0.9", "0.2"), ("0", "0.1"), ("0.1", "1")])
def test_shares_that_leave_nothing_are_refused(shares: tuple[str, str]) -> None:
    with pytest.raises(InvalidParameter):
        adaptive.ClippedMean(
            grid=GRID, relation=ADD_REMOVE, epsilon=Fraction(1), centre_share=shares[0], radius_share=shares[1]
        )
