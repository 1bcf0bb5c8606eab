"""Several counts of the same rows keep and count what each of them would alone, and choose independently."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from bounding_reference import Plain, Row, everything, plain, reference
from hypothesis import given, settings
from hypothesis import strategies as st
from recorded import replayed

from discreet.errors import InvalidParameter
from discreet.query.bounding import packed_columns, sorted_blocks
from discreet.query.bounding.contribution_bounds import BoundedColumn, ContributionBounds
from discreet.query.bounding.rows import RowChunk
from discreet.query.bounding.shared_counts import SharedCount, tally_all

CITIES, SEXES = 5, 2
SMALL = (everything(-3, 4, centre=1), everything(0, 9))
WIDE = (everything(-(2**52), 2**52, centre=5), everything(-(2**51), 2**51))
CITY, SEX, FLAG, FIRST, SECOND = range(5)
UNITS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "integers": (pa.int64(), [None, *range(-9, 40)]),
    "wide integers": (pa.int64(), [None, 0, -1, -(2**63), 2**63 - 1, 2**40]),
    "texts": (pa.string(), [None, "", "a", "user_0000000000001", "x" * 17, *(f"user {n}" for n in range(30))]),
    "dictionary": (pa.dictionary(pa.int32(), pa.string()), [None, "a", "b", "c"]),
}


def carried(measures: tuple[BoundedColumn, ...]) -> list[BoundedColumn]:
    return [BoundedColumn(low=0, high=size - 1) for size in (CITIES, SEXES, 1)] + list(measures)


def parts(measures: tuple[BoundedColumn, ...]) -> list[SharedCount]:
    """A total, groups of one and of two keys, a condition, other limits, no measures, one measure twice."""
    first, second = (FIRST, measures[0]), (SECOND, measures[1])
    twice = (FIRST, BoundedColumn(low=measures[0].low, high=measures[0].high, centre=3, total=True, squares=True))
    some = ContributionBounds(max_groups=2, max_rows=2)
    return [
        SharedCount(limits=ContributionBounds(max_groups=1, max_rows=3), measures=(first, second)),
        SharedCount(limits=some, keys=((CITY, CITIES),), measures=(second,)),
        SharedCount(limits=some, keys=((SEX, SEXES), (CITY, CITIES)), measures=(first,)),
        SharedCount(limits=some, keys=((CITY, CITIES),), needed=(FLAG,), measures=(second, first)),
        SharedCount(limits=ContributionBounds(max_groups=1, max_rows=1), keys=((SEX, SEXES),)),
        SharedCount(limits=some, keys=((SEX, SEXES),), measures=(first, twice)),
    ]


def made(count: int, units: list[Any], measures: tuple[BoundedColumn, ...], label: int) -> list[Row]:
    """Rows of unit, city, sex, flag and two measures, each of them NULL now and then."""
    choose = random.Random(label)

    def value(low: int, high: int) -> int | None:
        return choose.choice([None, low, high, *(choose.randint(low, high) for _ in range(9))])

    ranges = [(0, CITIES - 1), (0, SEXES - 1), (0, 0), *((one.low, one.high) for one in measures)]
    return [(choose.choice(units), *(value(*ends) for ends in ranges)) for _ in range(count)]


def chunk(rows: list[Row], kind: pa.DataType) -> RowChunk:
    columns = [[row[place] for row in rows] for place in range(1, 6)]
    return RowChunk(
        units=pa.array([row[0] for row in rows], kind),
        measures=tuple(np.array([value or 0 for value in column], np.int64) for column in columns),
        valid=tuple(np.array([value is not None for value in column], np.bool_) for column in columns),
    )


def shared(
    rows: list[Row],
    asked: list[SharedCount],
    measures: tuple[BoundedColumn, ...],
    kind: pa.DataType,
    size: int = 64,
    **how: int,
) -> list[Any]:
    given = [chunk(rows[start : start + size], kind) for start in range(0, len(rows), size)]
    with replayed("shared"):
        return list(tally_all(given, carried=carried(measures), parts=asked, **how))


def alone(rows: list[Row], part: SharedCount, place: int) -> Plain:
    """Count one part in plain Python, under the keys that it reads: after those of the store and of earlier parts."""

    def group(row: Row) -> int:
        wanted = [row[1 + column] for column in (*(column for column, _ in part.keys), *part.needed)]
        if any(value is None for value in wanted):
            return -1
        code = 0
        for column, count in part.keys:
            code = code * count + row[1 + column]
        return code

    picked = [(row[0], group(row), *(row[1 + column] for column, _ in part.measures)) for row in rows]
    with replayed("shared") as recording:
        recording.read(64 * (1 + place))
        return reference(picked, part.groups, part.limits, [measure for _, measure in part.measures])


def comparable(result: Any) -> tuple[Any, ...]:
    """What every part has; only `everything` has the rest."""
    totals = [column.total.tolist() for column in result.measures]
    return result.units.tolist(), result.rows.tolist(), [column.counts.tolist() for column in result.measures], totals


def check(rows: list[Row], measures: tuple[BoundedColumn, ...], kind: pa.DataType, **how: int) -> None:
    asked = parts(measures)
    for place, (part, result) in enumerate(zip(asked, shared(rows, asked, measures, kind, **how), strict=True)):
        expected = alone(rows, part, place)
        assert comparable(result) == (expected.units, expected.rows, expected.counts, expected.totals)
        if all(measure.values for _, measure in part.measures):
            assert plain(result) == expected


@pytest.mark.parametrize("measures", [SMALL, WIDE], ids=["packed", "wide"])
@pytest.mark.parametrize("name", UNITS)
def test_every_part_agrees_with_a_loop_over_units(name: str, measures: tuple[BoundedColumn, ...]) -> None:
    kind, units = UNITS[name]
    check(made(400, units, measures, label=len(name)), measures, kind)


@pytest.mark.parametrize("measures", [SMALL, WIDE], ids=["packed", "wide"])
@pytest.mark.parametrize("name", UNITS)
def test_no_order_chunks_threads_or_memory_change_a_bit_of_any_part(
    name: str, measures: tuple[BoundedColumn, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sorted_blocks, "_WORTH", 16)  # So that threads and blocks take part at this size too.
    monkeypatch.setattr(sorted_blocks, "_BLOCK", 32)
    kind, units = UNITS[name]
    rows = made(60, units, measures, label=3)
    for turn, (threads, size, memory) in enumerate(itertools.product((1, 3), (7, 200), (1 << 10, 1 << 30))):
        shuffled = random.Random(turn).sample(rows, len(rows))
        check(shuffled, measures, kind, threads=threads, size=size, memory=memory)


@settings(max_examples=25)
@given(data=st.data())
def test_every_part_agrees_with_a_loop_for_all_tables(data: st.DataObject) -> None:
    nullable = [st.none() | st.integers(0, size - 1) for size in (CITIES, SEXES, 1)]
    row = st.tuples(
        st.sampled_from([None, 1, 2, 3, -(2**62)]), *nullable, st.none() | st.integers(-3, 4), st.integers(0, 9)
    )
    check(data.draw(st.lists(row, min_size=1, max_size=30)), SMALL, pa.int64(), size=data.draw(st.integers(1, 30)))


@pytest.mark.parametrize("word", [16, 20, 30, 44])
def test_words_that_are_too_narrow_for_a_part_do_not_matter(word: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed_columns, "_KEYS_WORD", word)
    monkeypatch.setattr(packed_columns, "_WORD", word - 2)
    check(made(200, list(range(-20, 20)), SMALL, label=5), SMALL, pa.int64())


def test_the_choices_of_parts_are_independent() -> None:
    """Two equal parts keep one of a unit's two values each; alike for all of 64 units they are once in 2^64."""
    part = SharedCount(limits=ContributionBounds(max_groups=1, max_rows=1), measures=((0, everything(0, 1)),))
    units = pa.array(np.repeat(np.arange(64), 2))
    keyed = SharedCount(limits=part.limits, keys=((1, 64),), measures=part.measures)
    rows = RowChunk(units=units, measures=(np.tile([0, 1], 64), np.repeat(np.arange(64), 2)))
    one, other = tally_all([rows], carried=[everything(0, 1), BoundedColumn(low=0, high=63)], parts=[keyed, keyed])
    assert one.rows.tolist() == other.rows.tolist() == [1] * 64
    first, second = (result.measures[0].total for result in (one, other))
    assert first is not None
    assert second is not None
    assert (first != second).any()
    assert (first == second).any()


def test_no_rows_at_all_are_counted_as_none() -> None:
    for given_ in ([], [chunk([], pa.string())]):
        results = tally_all(given_, carried=carried(SMALL), parts=parts(SMALL))
        assert all(not result.rows.any() for result in results)
        assert [result.rows.size for result in results] == [1, 5, 10, 5, 2, 2]


def test_a_part_takes_columns_in_the_range_in_which_they_are_carried() -> None:
    wrong = SharedCount(limits=ContributionBounds(max_groups=1, max_rows=1), keys=((CITY, CITIES + 1),))
    with pytest.raises(InvalidParameter, match="range"):
        tally_all([], carried=carried(SMALL), parts=[wrong])
    narrow = SharedCount(limits=ContributionBounds(max_groups=1, max_rows=1), measures=((FIRST, everything(-3, 3)),))
    with pytest.raises(InvalidParameter, match="range"):
        tally_all([], carried=carried(SMALL), parts=[narrow])
