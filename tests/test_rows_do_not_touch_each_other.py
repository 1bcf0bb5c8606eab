"""What happens to one row must not depend on what the other rows are: a list is packed or not by all its rows."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet.frames.column import Column, column_of
from discreet.mechanisms.grid import Grid
from discreet.mechanisms.histogram import bin_counts
from discreet.statistics.one_call import _placed

_ENDS = tuple(map(Fraction, (0, 2**53, 2**53 + 4, 2**60 + 128, 2**63, 2**64)))
_LARGE = [2**53 + 1, 2**53 + 3, 2**60 + 65, 2**60 + 127, 2**60 + 191, 2**62 - 1, 2**63 - 1]


def _ranges(rows: Any) -> tuple[int, ...]:
    column = rows if isinstance(rows, Column) else column_of(rows)
    return bin_counts(_placed(column, ends=_ENDS), tuple(range(len(_ENDS) - 1)))


@pytest.mark.parametrize("value", _LARGE)
@pytest.mark.parametrize("newcomer", [None, "text", 0.5, 2**70])
def test_one_more_row_moves_one_count_of_a_histogram_with_edges(value: int, newcomer: object) -> None:
    without, with_one = _ranges([value] * 100), _ranges([value] * 100 + [newcomer])
    assert sum(abs(one - other) for one, other in zip(without, with_one, strict=True)) <= 1


@pytest.mark.parametrize("kind", [np.int64, np.uint64])
def test_whole_numbers_are_placed_between_edges_as_one_by_one(kind: type[Any]) -> None:
    top = int(np.iinfo(kind).max)
    values = [*_LARGE, top, top - 1, 0, 5]
    packed = _placed(Column(np.array(values, dtype=kind)), ends=_ENDS).values
    one_by_one = _placed(Column(list(values)), ends=_ENDS).values
    assert np.array_equal(np.asarray(packed), np.asarray(one_by_one))


@pytest.mark.parametrize("bounds", [(2**70, 2**71), (-(2**71), -(2**70))])
def test_a_grid_beyond_64_bits_takes_small_whole_numbers_packed_or_not(bounds: tuple[int, int]) -> None:
    grid = Grid.between(*bounds, step=2**40)
    rows = [1, -1, 2**63 - 1, -(2**63)]
    packed = grid.indices(column_of(rows)).tolist()
    assert packed == grid.indices(column_of([*rows, None])).tolist()[:-1] == [grid.index(row) for row in rows]


@pytest.mark.parametrize("kind", [np.int64, np.float64])
def test_what_stands_under_a_mask_is_missing_for_mechanisms_too(kind: type[Any]) -> None:
    grid = Grid.between(0, 10, step=1, default=4)
    masked = np.ma.array(np.array([10**15, 2], dtype=kind), mask=[True, False])
    found = grid.indices(masked)
    assert not isinstance(found, np.ma.MaskedArray)
    assert found.tolist() == [4, 2]
