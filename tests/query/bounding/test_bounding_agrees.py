"""The arrays keep and count what a unit-by-unit loop in Python does, in any order, chunks, threads and memory."""

from __future__ import annotations

import itertools
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from bounding_reference import Row, chunks, everything, ours, plain, theirs
from hypothesis import given, settings
from hypothesis import strategies as st
from recorded import replayed

from discreet.query.bounding import packed_columns, row_store, sorted_blocks
from discreet.query.bounding.aggregation import tally
from discreet.query.bounding.contribution_bounds import ContributionBounds
from discreet.query.bounding.rows import RowChunk
from discreet.query.bounding.unit_codes import NumberUnits

SMALL = (everything(-3, 4, centre=1), everything(0, 9))
WIDE = (everything(-(2**52), 2**52, centre=5), everything(-(2**51), 2**51))


def made(count: int, units: list[Any], groups: int, highs: tuple[int, int], label: int) -> list[Row]:
    choose = random.Random(label)
    return [
        (
            choose.choice(units),
            choose.choice([-1, *range(groups), groups]),
            *(choose.choice([None, -high, 0, high, choose.randint(-high, high)]) for high in highs),
        )
        for _ in range(count)
    ]


KINDS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "integers": (pa.int64(), [None, 0, 1, -5, 7, 2**20]),
    "wide integers": (pa.int64(), [None, 0, -1, -(2**63), 2**63 - 1, 2**40]),
    "unsigned": (pa.uint64(), [None, 0, 1, 2**63, 2**64 - 1]),
    "small integers": (pa.int8(), [None, 0, 1, -5, 7]),
    "texts": (pa.string(), [None, "", "a", "b", "user_0000000000001", "x" * 16, "x" * 17, "x" * 40]),
    "large texts": (pa.large_string(), [None, "", "a", "é"]),
    "views": (pa.string_view(), [None, "", "a", "a long text, longer than what a view holds inside"]),
    "bytes": (pa.binary(), [None, b"", b"\0", b"\0\0", b"a"]),
    "fixed bytes": (pa.binary(4), [None, b"aaaa", b"\0\0\0\0"]),
    "dictionary": (pa.dictionary(pa.int32(), pa.string()), [None, "a", "b", "c"]),
    "floats": (pa.float64(), [None, 0.0, -0.0, float("nan"), 1.5, float("inf")]),
    "small floats": (pa.float32(), [None, 0.0, -0.0, float("nan"), 1.5]),
}


@pytest.mark.parametrize("limits", [(1, 1), (2, 1), (1, 3), (3, 2), (20, 20)])
@pytest.mark.parametrize("measures", [SMALL, WIDE], ids=["packed", "numbered"])
@pytest.mark.parametrize("name", KINDS)
def test_tally_agrees_with_a_loop_over_units(name: str, measures: tuple[Any, Any], limits: tuple[int, int]) -> None:
    kind, units = KINDS[name]
    bound = ContributionBounds(max_groups=limits[0], max_rows=limits[1])
    highs = (5, 10) if measures is SMALL else (2**52, 2**52)
    rows = made(200, units, 6, highs, label=len(name) + limits[0])
    assert ours(rows, 6, bound, measures, kind=kind, size=64) == theirs(rows, 6, bound, measures)


MIDDLE = (everything(-(2**27), 2**27, centre=5), everything(-(2**26), 2**26))
FAR = [None, *range(-40, 60), 900]


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("limits", [(1, 1), (2, 1), (1, 3), (3, 2), (20, 20)])
def test_tally_agrees_where_units_are_shared_out_by_ranges(
    limits: tuple[int, int], threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A unit, its group and both levels are wider than a word, but not within a range of sixteen units."""
    ranges, shared_out = list[int](), sorted_blocks.UnitRanges.shared_out

    def noted(self: sorted_blocks.UnitRanges, *given: Any) -> Any:
        ranges.append(self.many)
        return shared_out(self, *given)

    monkeypatch.setattr(sorted_blocks.UnitRanges, "shared_out", noted)
    monkeypatch.setattr(sorted_blocks, "_LEAST_RANGE", 1)
    monkeypatch.setattr(sorted_blocks, "_BLOCK", 64)
    bound = ContributionBounds(max_groups=limits[0], max_rows=limits[1])
    rows = made(1500, FAR, 6, (2**27, 2**26), label=limits[0])
    assert ours(rows, 6, bound, MIDDLE, size=256, threads=threads) == theirs(rows, 6, bound, MIDDLE)
    assert ranges
    assert min(ranges) > 5


def test_units_that_are_too_far_apart_are_not_shared_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their distance does not fit a word."""
    monkeypatch.setattr(sorted_blocks, "_LEAST_RANGE", 1)
    layout = packed_columns.KeyLayout(2, 2)
    for far, many in ((2**63 - 1, None), (2**61, 3)):
        units = NumberUnits(np.array([-(2**63), -(2**63) + far, *[-(2**63)] * 98]))
        found = sorted_blocks.UnitRanges.of(units, layout)
        assert (None if found is None else found.many) == many


def test_tally_agrees_where_many_are_chosen_of_more() -> None:
    bound, rows = ContributionBounds(max_groups=17, max_rows=18), made(3000, [1, 2], 30, (5, 10), label=1)
    assert ours(rows, 30, bound, SMALL) == theirs(rows, 30, bound, SMALL)


@pytest.mark.parametrize("unit", [True, Decimal("1.50")], ids=str)
def test_units_may_be_of_other_types_too(unit: Any) -> None:
    rows = [(None, 0), (unit, 0), (unit, 1), (unit, 1)]
    kind = pa.bool_() if unit is True else pa.decimal128(10, 2)
    result = ours(rows, 2, ContributionBounds(max_groups=2, max_rows=1), (), kind=kind)
    assert (result.units, result.rows) == ([1, 1], [1, 1])


@pytest.mark.parametrize(
    "kind", [pa.date32(), pa.date64(), pa.timestamp("us"), pa.time32("s"), pa.duration("ms")], ids=str
)
def test_times_identify_units(kind: pa.DataType) -> None:
    units = (
        pa.array([0, 86400000, 0, None], pa.int64()).cast(pa.int32() if kind.bit_width == 32 else pa.int64()).view(kind)
    )
    result = tally([RowChunk(units=units)], groups=1, limits=ContributionBounds(max_groups=1, max_rows=1))
    assert result.units.tolist() == [2]


def how() -> list[dict[str, int]]:
    options = itertools.product((1, 2, 8), (7, 1000), (1 << 10, 1 << 30))
    return [{"threads": threads, "size": size, "memory": memory} for threads, size, memory in options]


@pytest.mark.parametrize("measures", [SMALL, WIDE], ids=["packed", "numbered"])
@pytest.mark.parametrize("name", ["integers", "wide integers", "texts", "dictionary"])
def test_no_order_chunks_threads_or_memory_change_a_bit(
    name: str, measures: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sorted_blocks, "_WORTH", 16)  # So that threads and blocks take part at this size too.
    monkeypatch.setattr(sorted_blocks, "_BLOCK", 32)
    kind, units = KINDS[name]
    rows, bound = made(300, units, 5, (5, 10), label=3), ContributionBounds(max_groups=2, max_rows=2)
    expected = theirs(rows, 5, bound, measures)
    for turn, options in enumerate(how()):
        shuffled = random.Random(turn).sample(rows, len(rows))
        assert ours(shuffled, 5, bound, measures, kind=kind, **options) == expected


@settings(max_examples=60)
@given(data=st.data())
def test_tally_agrees_with_a_loop_for_all_tables(data: st.DataObject) -> None:
    groups = data.draw(st.integers(1, 4))
    row = st.tuples(
        st.sampled_from([None, 1, 2, -(2**62), 2**62]),
        st.integers(-1, groups),
        st.none() | st.integers(-5, 5),
        st.none() | st.integers(-1, 10),
    )
    rows = data.draw(st.lists(row, min_size=1, max_size=40))
    bound = ContributionBounds(max_groups=data.draw(st.integers(1, 3)), max_rows=data.draw(st.integers(1, 3)))
    size, measures = data.draw(st.integers(1, 40)), data.draw(st.sampled_from([SMALL, WIDE]))
    assert ours(rows, groups, bound, measures, size=size) == theirs(rows, groups, bound, measures)


def test_a_dictionary_that_names_a_unit_twice_does_not_make_it_two() -> None:
    units = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, None]), pa.array(["a", "a", None]))
    result = tally([RowChunk(units=units)], groups=1, limits=ContributionBounds(max_groups=1, max_rows=1))
    assert (result.units.tolist(), result.rows.tolist()) == ([1], [1])


def test_no_rows_at_all_are_counted_as_none() -> None:
    for rows in ([], [RowChunk(units=pa.array([], pa.string()), measures=(np.zeros(0, np.int64),) * 2)]):
        result = plain(tally(rows, groups=2, limits=ContributionBounds(max_groups=1, max_rows=1), measures=SMALL))
        assert result.rows == result.units == [0, 0]
        assert result.values == [[[], []], [[], []]]


@pytest.mark.parametrize("word", [14, 18, 24])
def test_units_are_taken_one_half_after_the_other_where_a_word_is_too_narrow(
    word: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        packed_columns, "_KEYS_WORD", word
    )  # As if words were short: 3 bits of group, up to 9 of row numbers.
    rows, bound = made(300, list(range(-40, 40)), 6, (5, 10), label=5), ContributionBounds(max_groups=2, max_rows=2)
    assert ours(rows, 6, bound, WIDE) == theirs(rows, 6, bound, WIDE)


def test_files_that_hold_rows_have_no_name_and_end_with_the_call(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever happens, nothing is left behind, even if the process is killed in the middle."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before, during = open_files(), []

    def watched() -> Any:
        for part in chunks(made(300, [1, 2, 3], 5, (5, 10), label=4), pa.int64(), 50):
            yield part
            during.append((open_files() - before, list(tmp_path.iterdir())))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tally(watched(), groups=5, limits=ContributionBounds(max_groups=1, max_rows=1), measures=SMALL, memory=1 << 10)
    assert all(names == [] for _, names in during)
    assert max(files for files, _ in during) > 0
    assert open_files() == before


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_partitions_hold_whole_units() -> None:
    """The wrong neighbour would give a unit its allowance in each of two partitions."""
    rows = [(unit, 0, 1, 1) for unit in range(100) for _ in range(5)]
    with replayed("whole"):
        result = tally(
            chunks(rows, pa.int64(), 37),
            groups=1,
            limits=ContributionBounds(max_groups=1, max_rows=1),
            measures=SMALL,
            memory=1,
        )
    assert result.rows.tolist() == [100]
    assert row_store._PARTITIONS > 1
