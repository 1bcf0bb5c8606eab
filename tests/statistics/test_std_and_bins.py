"""The standard deviation, and histograms of so many ranges."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import discreet as dp
from discreet.errors import InvalidParameter, Refused
from discreet.mechanisms.release import NoiseAccuracy
from discreet.mechanisms.variance import root_down, root_of
from discreet.noise.laws import DiscreteLaplaceLaw


@pytest.mark.parametrize("relation", [dp.Relation.ADD_REMOVE, dp.Relation.REPLACE_ONE])
def test_the_standard_deviation_is_the_root_of_the_variance(relation: dp.Relation) -> None:
    column = [0, 2] * 20_000
    found = dp.std(column, bounds=(0, 4), relation=relation, epsilon=1)
    assert abs(found.value - 1) < Fraction(1, 10)
    low, high = found.interval(Fraction(1) - Fraction(1, 10**10))
    assert low <= 1 <= high
    assert low <= found.value <= high
    assert found.event == dp.variance(column, bounds=(0, 4), relation=relation, epsilon=1).event


def test_the_root_of_a_variance_below_zero_is_zero() -> None:
    below = dp.Release(
        value=Fraction(-3),
        event=dp.privacy.PureDP(1),
        relation=dp.Relation.ADD_REMOVE,
        accuracy=NoiseAccuracy(noise=DiscreteLaplaceLaw(scale=Fraction(1)), step=Fraction(1)),
        limits=(Fraction(0), Fraction(4)),
    )
    root = root_of(below)
    assert root.value == 0
    assert root.limits == (0, 2 + Fraction(1, 10**12))
    low, high = root.interval()
    assert low == 0 <= high**2


def test_roots_are_rounded_down() -> None:
    for square in (Fraction(0), Fraction(2), Fraction(1, 3), Fraction(10**30 + 1)):
        root = root_down(square)
        assert root**2 <= square < (root + Fraction(1, 10**12)) ** 2


def test_a_number_of_bins_makes_ranges_of_equal_width() -> None:
    column = [1, 11, 12, 99, 100, 101, -1]
    by_number = dp.histogram(column, bins=10, bounds=(0, 100), relation="add-remove", epsilon=10**4)
    by_edges = dp.histogram(column, edges=range(0, 101, 10), relation="add-remove", epsilon=10**4)
    assert by_number.as_dict() == by_edges.as_dict()
    assert by_number.value == (1, 2, 0, 0, 0, 0, 0, 0, 0, 2)
    assert dp.histogram(column, bins=np.int64(10), bounds=(0, 100), relation="add-remove", epsilon=10**4) == by_number
    thirds = dp.histogram(column, bins=3, bounds=(0, 1), relation="add-remove", epsilon=10**4)
    assert len(thirds.value) == 3


@pytest.mark.parametrize(
    "fields",
    [
        {"bins": 0, "bounds": (0, 1)},
        {"bins": True, "bounds": (0, 1)},
        {"bins": 10**9, "bounds": (0, 1)},
        {"bins": 3, "bounds": (1, 0)},
        {"bins": 3, "bounds": 1},
        {"bins": ["a"], "bounds": (0, 1)},
        {"bins": 3, "bounds": (0, 1), "edges": [0, 1]},
    ],
)
def test_numbers_of_bins_that_make_no_ranges_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        dp.histogram([1], relation="add-remove", epsilon=1, **fields)


def test_bounds_of_ranges_are_never_read_from_the_data() -> None:
    with pytest.raises(Refused, match="must not be read from the data"):
        dp.histogram([1, 2], bins=10, relation="add-remove", epsilon=1)
