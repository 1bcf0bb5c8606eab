"""Small worlds hold every data set once, and every pair of neighbours in both orders."""

from __future__ import annotations

from collections import Counter
from itertools import product
from math import comb
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import InvalidParameter
from discreet.lab.verify import worlds
from discreet.lab.verify.small_worlds import Worlds, as_worlds, neighbours
from discreet.privacy.relation import Relation

ADD_REMOVE, REPLACE_ONE = Relation.ADD_REMOVE, Relation.REPLACE_ONE


def are_neighbours(one: tuple[Any, ...], other: tuple[Any, ...], relation: Relation, ordered: bool) -> bool:
    """The definition, word by word and slowly."""
    if relation is ADD_REMOVE:
        short, long = sorted((one, other), key=len)
        if len(long) != len(short) + 1:
            return False
        if ordered:
            return any(long[:i] + long[i + 1 :] == short for i in range(len(long)))
        return not Counter(short) - Counter(long)
    if len(one) != len(other) or one == other:
        return False
    if ordered:
        return sum(a != b for a, b in zip(one, other, strict=True)) == 1
    return sum((Counter(one) - Counter(other)).values()) == 1


@given(
    st.lists(st.sampled_from("abc"), min_size=1, unique=True),
    st.sets(st.integers(0, 3), min_size=2),
    st.booleans(),
    st.sampled_from(Relation),
)
def test_neighbours_agree_with_the_definition_for_all_small_worlds(
    values: list[str], sizes: set[int], ordered: bool, relation: Relation
) -> None:
    small = worlds(values, sizes, ordered=ordered)
    rows = small.data_sets
    expected = {
        (i, j) for i, j in product(range(len(rows)), repeat=2) if are_neighbours(rows[i], rows[j], relation, ordered)
    }
    if expected:
        assert set(neighbours(small, relation)) == expected
    else:
        with pytest.raises(InvalidParameter, match="neighbours"):
            neighbours(small, relation)


def test_multisets_and_sequences_are_counted_right() -> None:
    assert len(worlds(range(4), [3])) == comb(6, 3)
    assert len(worlds(range(4), [3], ordered=True)) == 4**3
    assert list(worlds("ab", [0, 1])) == [(), ("a",), ("b",)]
    assert len(worlds([0, 0, 1], [1, 1])) == 2


def test_a_replaced_record_may_end_up_elsewhere_in_a_multiset() -> None:
    small = Worlds(((0, 0, 1), (0, 1, 2)), ordered=False)
    assert neighbours(small, REPLACE_ONE) == [(0, 1), (1, 0)]
    with pytest.raises(InvalidParameter):
        neighbours(Worlds(small.data_sets, ordered=True), REPLACE_ONE)


def test_plain_data_sets_are_ordered_unless_the_mechanism_is_symmetric() -> None:
    assert as_worlds([[0, 1], [1, 0]], symmetric=None).ordered
    assert not as_worlds([[0, 1], [1]], symmetric=True).ordered
    assert neighbours(as_worlds([[1, 2], [2, 3]], symmetric=True), REPLACE_ONE)


@pytest.mark.parametrize(
    ("values", "sizes", "ordered"),
    [
        ([], [1], False),
        ([0, 1], [], False),
        ([0, 1], [-1], False),
        ([0, 1], [1.5], False),
        ([0, 1], [True], False),
        ([0, 1], [5], True),
        (range(50), [8], False),
        (range(50), [4], True),
    ],
)
def test_worlds_that_make_no_sense_are_refused(values: Any, sizes: Any, ordered: bool) -> None:
    with pytest.raises(InvalidParameter):
        worlds(values, sizes, ordered=ordered)


def test_an_ordered_mechanism_is_not_verified_on_multisets() -> None:
    with pytest.raises(InvalidParameter, match="ordered=True"):
        as_worlds(worlds([0, 1], [1]), symmetric=False)


@pytest.mark.parametrize("given", [[], [1, 2], [[[]], [[]]], [[{}]]])
def test_data_sets_that_are_none_are_refused(given: Any) -> None:
    with pytest.raises(InvalidParameter):
        as_worlds(given, symmetric=True)
