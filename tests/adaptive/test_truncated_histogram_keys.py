"""Keys and units that come from data: one form each, bounded row by row, chosen by fresh secret randomness."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statistical import fits, rejects

from discreet.adaptive.bounded_memberships import Memberships, bounded_totals, identity, labels, selections, shown
from discreet.errors import InvalidParameter
from discreet.frames.column import Column

KEYS = [
    False, True, -3, Fraction(1, 3), 0.5, 1, 2, 10**400, "A", "a", "é", b"x", date(2020, 1, 2),
    datetime(2020, 1, 2), datetime(2020, 1, 2, tzinfo=UTC), time(1, 2), (), ("a",), ("a", 1), ("b", ("c",)),
]  # fmt: skip


def counted(data: Any, bins: int = 1, most: int = 1) -> dict[Any, int]:
    found = bounded_totals(data, bins_per_unit=bins, contribution=most)
    return {shown(key): count for key, count in found.items()}


def test_keys_are_in_one_order_whatever_the_order_of_rows() -> None:
    for turned in (KEYS, KEYS[::-1], KEYS[5:] + KEYS[:5]):
        found = bounded_totals(turned, bins_per_unit=1, contribution=1)
        assert [shown(key) for key in found] == KEYS


def test_equal_keys_are_one_whatever_their_type_and_shown_in_one_form() -> None:
    ones = [1, 1.0, Decimal(1), Fraction(1), np.int8(1), np.float32(1)]
    for order in (ones, ones[::-1]):
        assert [(type(key), n) for key, n in counted(order).items()] == [(int, 6)]
    assert counted([0.0, -0.0, 0]) == {0: 3}
    assert bounded_totals([True, 1], bins_per_unit=1, contribution=1) == {identity(True): 1, identity(1): 1}
    assert counted(["é", "é"]) == {"é": 2}
    assert type(next(iter(counted([Fraction(1, 2)])))) is float


def test_a_moment_of_a_zone_is_one_in_utc() -> None:
    """As it is in a column of moments: one row that makes objects of all must not change what the others are."""
    there = datetime(2020, 1, 2, 3, tzinfo=timezone(timedelta(hours=2)))
    assert list(counted([there])) == [there]
    both = bounded_totals([there, there.astimezone(UTC)], bins_per_unit=1, contribution=1)
    assert [(shown(key).isoformat(), count) for key, count in both.items()] == [("2020-01-02T01:00:00+00:00", 2)]


@pytest.mark.parametrize(
    "value",
    [None, math.nan, math.inf, -math.inf, Decimal("NaN"), [], {}, {1}, object(), 1j, np.datetime64("NaT"), ("a", None)],
    ids=lambda value: type(value).__name__,  # A repr may hold an address, which differs between workers.
)
def test_what_is_no_key_is_in_no_bin(value: Any) -> None:
    assert counted([value, "a"]) == {"a": 1}
    assert counted(Memberships([1, 2], [value, "a"])) == {"a": 1}


def test_labels_tell_keys_apart() -> None:
    assert labels(["a", 1, 2.5, ("b", 1)]) == ("a", "1", "2.5", "('b', 1)")
    assert labels(["1", 1, "a"]) == ("'1'", "1", "a")


def test_a_tuple_without_end_is_no_key() -> None:
    deep: Any = "a"
    for _ in range(1000):
        deep = (deep,)
    assert counted([deep]) == {}


@pytest.mark.long
@settings(max_examples=30)
@given(st.lists(st.one_of(st.text(max_size=3), st.integers(-3, 3), st.floats(), st.booleans(), st.none())))
def test_every_column_is_counted_without_complaint_for_all_values(values: list[Any]) -> None:
    keys = [identity(value) for value in values]
    found = bounded_totals(values, bins_per_unit=1, contribution=1)
    assert sum(found.values()) == len(keys) - keys.count(None)
    assert list(found) == sorted(found)


def test_arrays_and_lists_are_counted_alike() -> None:
    values = [3, 1, 2, 3, 3, 9, 1]
    for kind in ("int64", "uint8", "float32", "object"):
        assert counted(np.array(values).astype(kind)) == counted(values) == {1: 2, 2: 1, 3: 3, 9: 1}
    assert counted(np.array(["a", "b", "a"])) == {"a": 2, "b": 1}
    assert counted(Column(np.array([1, 2, 1]), np.array([True, False, False]))) == {1: 1, 2: 1}


def test_a_unit_counts_once_in_a_bin_whatever_its_rows() -> None:
    assert counted(Memberships(["u", "u", "v"], ["a", "a", "a"])) == {"a": 2}
    assert counted(Memberships([1, 1.0, "1"], ["a", "a", "a"])) == {"a": 2}
    assert counted(Memberships([None, math.nan, [], "v"], ["a"] * 4)) == {"a": 1}
    ids = [object(), object()]
    assert counted(Memberships([ids[0], ids[1], ids[0]], ["a"] * 3)) == {"a": 2}


def test_units_that_are_spelled_differently_are_two_though_they_look_alike() -> None:
    """As one they would share one allowance: with one of them gone, the other's bins would change."""
    composed, apart = "Ren\u00e9", "Rene\u0301"
    assert counted(Memberships([composed, apart], ["a", "a"])) == {"a": 2}
    assert counted(Memberships([("x", composed), ("x", apart)], ["a", "a"])) == {"a": 2}
    assert counted(Memberships(["u", "v"], [composed, apart])) == {composed: 2}  # Keys that look alike are one.


def test_amounts_are_clamped_added_up_and_clamped() -> None:
    rows = Memberships([1, 1, 2, 3, 4, 5], ["a"] * 6, [2, 9, -5, math.nan, "x", 3])
    assert counted(rows, most=4) == {"a": 4 + 3}
    assert counted(Memberships([1], ["a"], [0])) == {}
    assert counted(Memberships([1, 2], ["a", "a"], [2.4, 2.6]), most=9) == {"a": 5}


@pytest.mark.parametrize("most", [1, 2**26 - 1, 2**26, 2**40 + 12345, 2**52])
def test_sums_are_exact_however_large(most: int) -> None:
    units = np.repeat(np.arange(500), 4)
    rows = Memberships(units, np.zeros(2000, np.int64), np.full(2000, most))
    assert counted(rows, most=most) == {0: 500 * most}
    single = Memberships(np.arange(2000), np.zeros(2000, np.int64), np.full(2000, most))
    assert counted(single, most=most) == {0: 2000 * most}


def test_no_unit_is_in_more_bins_than_allowed() -> None:
    units, keys = np.repeat(np.arange(100), 7), np.tile(np.arange(7), 100)
    for bins in (1, 3, 7, 9):
        found = counted(Memberships(units, keys), bins=bins)
        assert sum(found.values()) == 100 * min(bins, 7)
        assert max(found.values()) <= 100


@pytest.mark.statistical
def test_each_choice_of_bins_is_as_likely_as_any_other() -> None:
    keys = ["a", "b", "c", "d"]
    pairs = {frozenset(pair): place for place, pair in enumerate({tuple(sorted(p)) for p in permutations(keys, 2)})}
    rows = Memberships(["u"] * 4, keys)
    sample = [pairs[frozenset(counted(rows, bins=2))] for _ in range(1000)]
    assert fits(sample, [1 / 6] * 6)
    assert rejects(sample, [1 / 3, *[2 / 15] * 5])


def test_selections_list_what_may_be_chosen() -> None:
    rows = Memberships(["u", "u", "u", "v"], ["a", "b", "c", "a"], [1, 2, 5, 1])
    listed = list(selections(rows, bins_per_unit=2, contribution=3))
    assert [chance for chance, _ in listed] == [Fraction(1, 3)] * 3
    found = sorted(sorted((shown(key), n) for key, n in totals.items()) for _, totals in listed)
    assert found == [[("a", 1), ("b", 2), ("c", 3)], [("a", 2), ("b", 2)], [("a", 2), ("c", 3)]]
    assert list(selections(["a"], bins_per_unit=1, contribution=1)) == [(1, {identity("a"): 1})]


def test_rows_of_unequal_length_are_refused_and_nothing_is_printed() -> None:
    with pytest.raises(InvalidParameter):
        Memberships([1, 2], ["a"])
    with pytest.raises(InvalidParameter):
        Memberships([1], ["a"], [1, 2])
    assert "secret" not in repr(Memberships([1], ["secret"]))


def test_the_empty_table_has_no_bins() -> None:
    assert counted([]) == counted(Memberships([], [])) == counted(Memberships([], [], []), bins=3, most=5) == {}
