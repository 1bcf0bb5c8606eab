"""What is no chunk of rows is refused before anything is counted, in words without data."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from discreet.errors import InvalidParameter, Refused
from discreet.query.bounding.aggregation import tally
from discreet.query.bounding.contribution_bounds import BoundedColumn, ContributionBounds
from discreet.query.bounding.rows import RowChunk

ONE = ContributionBounds(max_groups=1, max_rows=1)
UNITS = pa.array([1, 2])
INDICES = np.array([1, 2])
MEASURES = (BoundedColumn(low=0, high=5, total=True),)


@pytest.mark.parametrize(
    "rows",
    [
        RowChunk(units=UNITS),
        RowChunk(units=UNITS, measures=(INDICES, INDICES)),
        RowChunk(units=UNITS, measures=(INDICES[:1],)),
        RowChunk(units=UNITS, groups=INDICES[:1], measures=(INDICES,)),
        RowChunk(units=UNITS, measures=(INDICES,), valid=(np.array([True]),)),
        RowChunk(units=UNITS, measures=(INDICES,), valid=(None, None)),
        RowChunk(units=UNITS, measures=(INDICES.astype(np.uint64),)),
        RowChunk(units=UNITS, measures=(INDICES.astype(np.float64),)),  # type: ignore[arg-type]
        RowChunk(units=UNITS, groups=INDICES.astype(np.uint64), measures=(INDICES,)),
    ],
)
def test_arrays_that_do_not_match_are_refused(rows: RowChunk) -> None:
    with pytest.raises(InvalidParameter):
        tally([rows], groups=3, limits=ONE, measures=MEASURES)


@pytest.mark.parametrize(
    "units", [pa.array([["a"]]), pa.array([{"a": 1}]), pa.nulls(1)], ids=lambda units: str(units.type)
)
def test_units_that_are_no_scalars_are_refused(units: pa.Array) -> None:
    with pytest.raises(Refused, match="number, a text, a time or bytes"):
        tally([RowChunk(units=units)], groups=1, limits=ONE)


def test_units_of_two_types_in_one_scan_are_refused() -> None:
    with pytest.raises(Refused, match="one type"):
        tally([RowChunk(units=pa.array(["secret"])), RowChunk(units=UNITS)], groups=1, limits=ONE)


@pytest.mark.parametrize("wrong", [0, -1, 2**31 + 1, 1.5, True])
def test_the_number_of_groups_is_a_whole_number_from_one_on(wrong: int) -> None:
    with pytest.raises(InvalidParameter):
        tally([], groups=wrong, limits=ONE)


def test_a_secret_is_not_shown() -> None:
    from discreet.query.bounding.secret import Secret

    assert repr(Secret()) == "Secret()"
