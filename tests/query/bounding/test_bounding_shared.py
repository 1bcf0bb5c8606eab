"""Several counts of the same rows keep and count what each of them would alone, and choose independently."""

from __future__ import annotations

import itertools
import random
from collections import defaultdict
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from bounding_reference import Plain, PlainSecret, Row, everything, plain, reference
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
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


# --- families: one choice for several parts ---


def family(measures: tuple[BoundedColumn, ...], most: int, name: str = "f") -> list[SharedCount]:
    """A total, margins of either key, and both keys: everything that adds up over the same atoms."""
    first, second = (FIRST, measures[0]), (SECOND, measures[1])
    limits = ContributionBounds(max_groups=1, max_rows=most)
    by: list[tuple[tuple[int, int], ...]] = [(), ((SEX, SEXES),), ((CITY, CITIES),), ((SEX, SEXES), (CITY, CITIES))]
    return [SharedCount(limits=limits, keys=keys, measures=(first, second), family=name) for keys in by]


def kept_of_family(rows: list[Row], most: int, secret: PlainSecret) -> list[Row]:
    """Keep `most` rows of each unit among those that all parts count, unit by unit, in plain Python."""
    owned: dict[Any, list[Row]] = defaultdict(list)
    for unit, city, sex, _, first, second in rows:
        if None not in (unit, city, sex):
            owned[unit].append((first, second, sex, city))  # In the order in which the parts name them.
    kept: list[Row] = []
    for unit, listed in owned.items():
        ordered = sorted(listed, key=lambda row: [(x is not None, x or 0) for x in row])
        kept += [(unit, *ordered[one]) for one in secret.choose(len(ordered), most, secret.name(unit), 1)]
    return kept


def counted(kept: list[Row], part: SharedCount) -> tuple[Any, ...]:
    """Count kept rows in the groups of one part."""
    places = {FIRST: 1, SECOND: 2, SEX: 3, CITY: 4}

    def group(row: Row) -> int:
        code = 0
        for column, size in part.keys:
            code = code * size + row[places[column]]
        return code

    groups = [[row for row in kept if group(row) == code] for code in range(part.groups)]
    columns = [[[row[1 + m] for row in rows if row[1 + m] is not None] for rows in groups] for m in range(2)]
    pairs = list(zip(columns, [measure for _, measure in part.measures], strict=True))
    return (
        [len({row[0] for row in rows}) for rows in groups],
        [len(rows) for rows in groups],
        [[len(values) for values in column] for column in columns],
        [[sum(value - measure.centre for value in values) for values in column] for column, measure in pairs],
    )


def agree(found: list[Any]) -> bool:
    """Whether the tables of a family add up exactly: total, both margins, and the atoms."""

    def numbers(result: Any) -> list[NDArray[Any]]:
        return [result.rows, *(column.counts for column in result.measures), *(c.total for c in result.measures)]

    total, by_sex, by_city, atoms = (numbers(result) for result in found)
    return all(
        one.sum() == whole[0] and two.sum() == whole[0]
        # The margins of the atoms are the tables of one key.
        and (cells.reshape(SEXES, CITIES).sum(1) == one).all() and (cells.reshape(SEXES, CITIES).sum(0) == two).all()
        for whole, one, two, cells in zip(total, by_sex, by_city, atoms, strict=True)
    )  # fmt: skip


@pytest.mark.parametrize("most", [1, 3, 20])
@pytest.mark.parametrize("measures", [SMALL, WIDE], ids=["packed", "wide"])
@pytest.mark.parametrize("name", UNITS)
def test_a_family_keeps_what_a_loop_over_units_keeps_and_adds_up(
    name: str, measures: tuple[BoundedColumn, ...], most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, units = UNITS[name]
    rows, asked = made(400, units, measures, label=len(name)), family(measures, most)
    with replayed("shared") as recording:
        recording.read(64)  # The keys of the store.
        kept = kept_of_family(rows, most, PlainSecret())
    monkeypatch.setattr(sorted_blocks, "_WORTH", 16)
    for turn, (threads, size, memory) in enumerate(itertools.product((1, 3), (7, 400), (1 << 10, 1 << 30))):
        monkeypatch.setattr(sorted_blocks, "_BLOCK", 32 if turn % 2 else 1 << 17)
        shuffled = random.Random(turn).sample(rows, len(rows))
        found = shared(shuffled, asked, measures, kind, threads=threads, size=size, memory=memory)
        assert agree(found)
        assert [comparable(result) for result in found] == [counted(kept, part) for part in asked]


def test_parts_outside_of_a_family_do_not_change_its_choice() -> None:
    rows, asked = made(300, list(range(20)), SMALL, label=1), family(SMALL, 3)
    by_itself = shared(rows, asked, SMALL, pa.int64())
    among = shared(rows, [*asked, *parts(SMALL), *family(SMALL, 2, "other")], SMALL, pa.int64())
    assert [comparable(one) for one in among[:4]] == [comparable(one) for one in by_itself]
    assert agree(among[-4:])
    assert comparable(among[-4]) != comparable(among[0])


def test_tables_with_choices_of_their_own_do_not_add_up() -> None:
    """The mistake that a family is there to prevent: each part keeps rows of its own."""
    rows = made(400, list(range(40)), SMALL, label=2)
    own = [replace(part, family=None, limits=replace(part.limits, max_groups=9)) for part in family(SMALL, 3)]
    assert not agree(shared(rows, own, SMALL, pa.int64()))
    apart = [replace(part, family=f"f{place}") for place, part in enumerate(family(SMALL, 3))]
    assert not agree(shared(rows, apart, SMALL, pa.int64()))


def test_one_unit_more_moves_a_family_by_its_rows_in_all_groups_together() -> None:
    """All units of up to four rows on four atoms, three secrets: the sensitivities hold, and each is reached."""
    atoms = list(itertools.product(range(2), range(2)))
    units = [list(rows) for size in range(5) for rows in itertools.combinations_with_replacement(atoms, size)]
    others = [("b", city, sex, 0, city, 3 * sex) for city, sex in atoms * 2]
    measures = (everything(0, 1), everything(0, 3))
    for most in (1, 2, 3):
        asked = family(measures, most)
        reached = [[0] * 4 for _ in asked]
        for secret in ("one", "two", "three"):
            without = _under(secret, others, asked, measures)
            for unit in units:
                mine = [("a", city, sex, 0, city, 3 * sex) for city, sex in unit]
                for place, one in enumerate(_under(secret, [*others, *mine], asked, measures)):
                    rows, total = (
                        one.rows - without[place].rows,
                        one.measures[1].total - without[place].measures[1].total,
                    )
                    assert (rows >= 0).all()
                    groups = np.abs(one.units - without[place].units)
                    moved = rows.sum(), (rows**2).sum(), np.abs(total).sum(), groups.sum()
                    reached[place] = [max(a, int(b)) for a, b in zip(reached[place], moved, strict=True)]
                    assert groups.max() <= 1
        # l1 and squared l2 of rows, l1 of sums, and the groups in which units are counted: equal, not only below.
        assert reached == [[most, most**2, 3 * most, min(most, there)] for there in (1, 2, 2, 4)]


def _under(
    secret: str, rows: list[Row], asked: list[SharedCount], measures: tuple[BoundedColumn, ...]
) -> tuple[Any, ...]:
    with replayed(secret):
        return tally_all([chunk(rows, pa.string())], carried=carried(measures), parts=asked, threads=1)


def test_every_subset_of_a_units_rows_is_equally_likely() -> None:
    """20,000 units of four different rows, two kept of each: 6 subsets, each within 0.025 of its chance of 1/6.

    By Hoeffding's inequality one of them is further off with a chance below 1e-9; the first two rows of each are.
    """
    many, size = 20_000, 4
    atom = np.tile(np.arange(size), many)
    unit = np.repeat(np.arange(many), size)
    part = SharedCount(
        limits=ContributionBounds(max_groups=1, max_rows=2), keys=((0, many), (1, size)), measures=(), family="f"
    )
    whole = replace(part, keys=())
    carried_ = [BoundedColumn(low=0, high=many - 1), BoundedColumn(low=0, high=size - 1)]
    rows = RowChunk(units=pa.array(unit), measures=(unit, atom))
    total, kept = tally_all([rows], carried=carried_, parts=[whole, part])
    assert total.rows.tolist() == [2 * many]
    chosen = kept.rows.reshape(many, size) @ (1 << np.arange(size))
    shares = {subset: np.mean(chosen == subset) for subset in (3, 5, 6, 9, 10, 12)}
    assert sum(shares.values()) == pytest.approx(1)
    assert all(abs(share - 1 / 6) < 0.025 for share in shares.values())


def test_parts_of_a_family_keep_the_same_number_of_rows() -> None:
    one, other = family(SMALL, 2)[0], family(SMALL, 3)[1]
    with pytest.raises(InvalidParameter, match="the same number of rows"):
        tally_all([], carried=carried(SMALL), parts=[one, other])
