"""Sensitivities by exhaustion agree with the table of known ones, and are reached by the pair that is named."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from discreet.errors import InvalidParameter
from discreet.lab.verify import l1, sensitivity, squared_l2, worlds
from discreet.lab.verify.small_worlds import Worlds
from discreet.privacy.relation import Relation

ADD_REMOVE, REPLACE_ONE = Relation.ADD_REMOVE, Relation.REPLACE_ONE
LOW, HIGH = -2, 5
NUMBERS = worlds([LOW, 0, HIGH], range(5))
LABELS = worlds("abc", range(5))


def histogram(data: tuple[str, ...]) -> tuple[int, ...]:
    return tuple(data.count(label) for label in "abc")


def median(data: tuple[int, ...]) -> Fraction:
    return Fraction(sorted(data)[len(data) // 2]) if data else Fraction(0)


@pytest.mark.parametrize(
    ("query", "small", "distance", "add_remove", "replace_one"),
    [
        (len, NUMBERS, l1, 1, 0),
        (lambda data: data.count(0), NUMBERS, l1, 1, 1),
        (sum, NUMBERS, l1, max(-LOW, HIGH), HIGH - LOW),
        (histogram, LABELS, l1, 1, 2),
        (histogram, LABELS, squared_l2, 1, 2),
        (max, worlds([LOW, HIGH], range(1, 5)), l1, HIGH - LOW, HIGH - LOW),
    ],
)
def test_known_sensitivities_are_found(
    query: Callable[..., Any], small: Worlds, distance: Any, add_remove: int, replace_one: int
) -> None:
    for relation, expected in ((ADD_REMOVE, add_remove), (REPLACE_ONE, replace_one)):
        value, (one, other) = sensitivity(query, small, relation=relation, distance=distance)
        assert value == expected
        assert distance(query(one), query(other)) == value


def test_the_mean_of_n_changes_by_the_range_over_n() -> None:
    value, _ = sensitivity(lambda d: Fraction(sum(d), len(d)), worlds([0, 1, 7], [4]), relation=REPLACE_ONE)
    assert value == Fraction(7, 4)


def test_the_median_may_jump_the_whole_range() -> None:
    small = worlds([0, 5, 10], [5])
    assert sensitivity(median, small, relation=REPLACE_ONE).value == 10


def test_floats_are_read_exactly_as_they_print() -> None:
    assert sensitivity(lambda d: 0.1 * len(d), worlds([0], [0, 1]), relation=ADD_REMOVE).value == Fraction(1, 10)


def test_vectors_of_different_lengths_and_answers_that_are_no_numbers_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="one length"):
        sensitivity(lambda data: data, NUMBERS, relation=ADD_REMOVE)
    with pytest.raises(InvalidParameter, match="number"):
        sensitivity(lambda data: None, NUMBERS, relation=ADD_REMOVE)
    with pytest.raises(InvalidParameter, match="finite"):
        sensitivity(lambda data: float("nan"), NUMBERS, relation=ADD_REMOVE)
    with pytest.raises(InvalidParameter, match="relation"):
        sensitivity(len, NUMBERS, relation="add remove")
