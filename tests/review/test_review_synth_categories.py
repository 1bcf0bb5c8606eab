"""A value of a category has one cell, whatever ran before and whatever type a reader gave its column."""

from __future__ import annotations

from discreet.mechanisms.column import Column
from discreet.synth.domain import Category


def test_truth_values_are_not_taken_for_the_numbers_they_equal() -> None:
    assert Category([0, 1], null=True).codes(Column(["1", "true"])).tolist() == [1, 2]
    assert Category([False, True], null=True).codes(Column(["1", "true"])).tolist() == [1, 1]
    assert Category([1, 0], null=True).codes(Column(["true", "0"])).tolist() == [2, 1]
