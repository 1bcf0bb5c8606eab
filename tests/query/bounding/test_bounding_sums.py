"""Sums are exact at the ends of every range, and the same however they are split."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import InvalidParameter
from discreet.query.bounding.aggregation import GroupSums, KeptValues, SquareSums, Values
from discreet.query.bounding.contribution_bounds import BoundedColumn, ContributionBounds

GROUPS = 3
EDGES = (0, 1, 2**27 - 1, 2**27, 2**27 + 1, 2**52, 2**53, 2**53 + 1, 2**54 - 1)


@given(st.lists(st.tuples(st.integers(0, GROUPS - 1), st.sampled_from(EDGES) | st.integers(0, 2**54 - 1)), max_size=30))
def test_sums_and_squares_agree_with_python_for_all_values(rows: list[tuple[int, int]]) -> None:
    sums, squares = GroupSums(GROUPS, 54), SquareSums(GROUPS, 54)
    for start in range(0, len(rows), 4):
        part = rows[start : start + 4]
        groups, values = (np.array([row[place] for row in part], np.int64) for place in (0, 1))
        more, more_squares = GroupSums(GROUPS, 54), SquareSums(GROUPS, 54)
        more.add(groups, values)
        more_squares.add(groups, values)
        sums.merge(more)
        squares.merge(more_squares)
    expected = [[value for group, value in rows if group == here] for here in range(GROUPS)]
    assert sums.total().tolist() == [sum(values) for values in expected]
    assert squares.total().tolist() == [sum(value**2 for value in values) for values in expected]


@pytest.mark.parametrize("bits", [1, 13, 26, 27, 28, 53, 54])
def test_the_largest_value_many_times_is_exact(bits: int) -> None:
    """The wrong neighbour is a float: 2^20 times 2^54 - 1 has more digits than it holds."""
    many, largest = 1 << 20, (1 << bits) - 1
    groups, values = np.zeros(many, np.int64), np.full(many, largest)
    sums, squares = GroupSums(1, bits), SquareSums(1, bits)
    sums.add(groups, values)
    squares.add(groups, values)
    assert sums.total().tolist() == [many * largest]
    assert squares.total().tolist() == [many * largest**2]
    if bits == 54:
        assert int(np.bincount(groups, values.astype(np.float64) ** 2)[0]) != many * largest**2


def test_a_limb_and_the_rows_there_can_be_stay_within_64_bits() -> None:
    from discreet.query.bounding import aggregation

    assert (aggregation._MASK << 35) < 1 << 62


@given(st.lists(st.tuples(st.integers(0, GROUPS - 1), st.none() | st.integers(-5, 5)), max_size=30), st.booleans())
def test_values_are_sorted_within_groups_for_all_rows(rows: list[tuple[int, int | None]], wide: bool) -> None:
    measure = BoundedColumn(low=-(2**52) if wide else -5, high=2**52 if wide else 5)
    # So many groups that group and level do not fit one word.
    groups = 1 << 12 if wide else GROUPS
    kept = KeptValues(groups, measure)
    levels = np.array([0 if value is None else value - measure.low + 1 for _, value in rows], np.int64)
    kept.add(np.array([group for group, _ in rows], np.int64), levels)
    values = kept.finish()
    expected = [sorted(v for g, v in rows if g == group and v is not None) for group in range(GROUPS)]
    assert [values.of(group).tolist() for group in range(GROUPS)] == expected
    assert values.distinct[:GROUPS].tolist() == [len(set(part)) for part in expected]


def test_distinct_values_of_empty_groups_are_none() -> None:
    values = Values(starts=np.array([0, 0, 2, 2, 3, 3]), indices=np.array([7, 7, 7]))
    assert values.distinct.tolist() == [0, 1, 0, 1, 0]


@pytest.mark.parametrize("wrong", [0, -1, 2**31 + 1, 1.5, True, float("nan")])
def test_limits_are_whole_numbers_from_one_on(wrong: float) -> None:
    for fields in ({"max_groups": wrong, "max_rows": 1}, {"max_groups": 1, "max_rows": wrong}):
        with pytest.raises(InvalidParameter):
            ContributionBounds(**fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(("low", "high"), [(1, 0), (-(2**52) - 1, 0), (0, 2**52 + 1), (0, 0.5), (float("nan"), 1)])
def test_a_measure_has_a_range_on_a_grid(low: float, high: float) -> None:
    with pytest.raises(InvalidParameter):
        BoundedColumn(low=low, high=high)  # type: ignore[arg-type]
