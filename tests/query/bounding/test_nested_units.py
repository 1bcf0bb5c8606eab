"""Of an outer unit some inner ones are kept: one that leaves lets in at most one other, and all subsets are alike."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import chisquare

from discreet.query.bounding import nested_units
from discreet.query.bounding.aggregation import tally
from discreet.query.bounding.contribution_bounds import BoundedColumn, ContributionBounds
from discreet.query.bounding.rows import RowChunk
from discreet.query.bounding.secret import Secret

GROUPS = 2
VALUE = BoundedColumn(low=-1, high=1, total=True)
PERSONS = (1, 2, 3)
# What a person has: rows as (group, value). Limits may cut the last one.
LIVES = (((0, 1),), ((0, -1),), ((1, 1),), ((0, 1), (0, 1), (1, 1)))
# Others elsewhere, so that units have the same numbers, and so the same tags, with and without one of them.
# Who is kept is found after rows are sorted if one fits a word, else before.
FITS = (VALUE,)
WIDE = (VALUE, BoundedColumn(low=-1, high=1 << 52))
FAR = ((0, 0, 0, 0), (9, 9, 0, 0))
Row = tuple[int, int, int, int]  # household, person, group, value
Columns = tuple[BoundedColumn, ...]
World = Mapping[tuple[int, int], Sequence[tuple[int, int]]]


def rows_of(world: World) -> list[Row]:
    return [(outer, inner, *row) for (outer, inner), rows in world.items() for row in rows]


def chunks(rows: Sequence[Row], kind: Any = None, kinds: Columns = FITS) -> Iterator[RowChunk]:
    outer, inner, groups, values = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    sides = [pa.array(outer), pa.array(inner)]
    pairs = pa.StructArray.from_arrays([side if kind is None else side.cast(kind) for side in sides], ["o", "i"])
    yield RowChunk(units=pairs, groups=groups, measures=(values,) * len(kinds))


def counted(
    world: World, limits: ContributionBounds, most: int, secret: Secret, kinds: Columns = FITS
) -> tuple[list[int], list[int]]:
    """Count rows and add values up by group, as the engine does."""
    found = tally(
        chunks([*rows_of(world), *FAR], kinds=kinds),
        groups=GROUPS,
        limits=limits,
        measures=kinds,
        secret=secret,
        threads=1,
        max_inner=most,
    )
    assert found.measures[0].total is not None
    return found.rows.tolist(), [int(total) for total in found.measures[0].total]


def worlds() -> Iterator[World]:
    """All households of up to three persons, each with one of four lives."""
    for lives in itertools.product((None, *LIVES), repeat=len(PERSONS)):
        yield {(1, person): rows for person, rows in zip(PERSONS, lives, strict=True) if rows is not None}


def farthest(most: int, limits: ContributionBounds, secrets: Sequence[Secret], kinds: Columns = FITS) -> dict[str, int]:
    """Return the most, over all worlds and neighbours, that a person or a household changes counts or sums."""
    found: Counter[str] = Counter()
    for secret in secrets:
        told = {repr(world): counted(world, limits, most, secret, kinds) for world in worlds()}
        for world in worlds():
            without = {person: {one: rows for one, rows in world.items() if one != person} for person in world}
            pairs = [("person", left) for left in without.values()] + [("household", {})]
            for who, left in pairs:
                for name, a, b in zip(("rows", "total"), told[repr(world)], told[repr(left)], strict=True):
                    change = sum(abs(x - y) for x, y in zip(a, b, strict=True))
                    found[f"{who} {name}"] = max(found[f"{who} {name}"], change)
    return dict(found)


SECRETS = [Secret((bytes([number]) * 32, bytes([number + 100]) * 32)) for number in range(5)]


@pytest.mark.some(6)
@pytest.mark.parametrize("kinds", [FITS, WIDE])
@pytest.mark.parametrize("most", [1, 2, 3])
@pytest.mark.parametrize(("groups", "rows"), [(1, 1), (2, 1), (1, 2)])
def test_whoever_leaves_changes_no_more_than_is_billed(most: int, groups: int, rows: int, kinds: Columns) -> None:
    """A household changes an answer by K times what a person adds, and a person by twice that, where K can cut."""
    one = groups * rows
    found = farthest(most, ContributionBounds(max_groups=groups, max_rows=rows), SECRETS, kinds)
    for name in ("rows", "total"):
        assert found[f"household {name}"] <= most * one
        assert found[f"person {name}"] <= 2 * one
    if most == len(PERSONS):  # It cannot cut: nobody takes another's place.
        assert found["person rows"] <= one


@pytest.mark.parametrize("most", [1, 2])
def test_a_person_billed_at_their_own_limit_is_caught(most: int) -> None:
    """The bound of twice is reached: billing once would be wrong."""
    found = farthest(most, ContributionBounds(max_groups=1, max_rows=1), SECRETS)
    assert found["person rows"] == found["person total"] == 2


def model(persons: Sequence[int], order: Sequence[int], most: int) -> set[int]:
    return set(sorted(persons, key=order.index)[:most])


def test_in_any_order_of_tags_at_most_one_other_comes_in() -> None:
    """All sets of up to five, all orders of their tags, all limits, everybody who can leave."""
    for size, most in itertools.product(range(1, 6), range(1, 6)):
        persons = range(size)
        for order in itertools.permutations(persons):
            here = model(persons, order, most)
            assert len(here) == min(size, most)
            for gone in persons:
                left = model([one for one in persons if one != gone], order, most)
                assert here - left <= {gone}
                assert len(left - here) <= 1
                assert gone in here or left == here


def pairs_kept(rows: Sequence[Row], most: int, kind: Any = None, kinds: Columns = FITS) -> list[tuple[int, int]]:
    """Return the place of each row's household and person that is kept, by groups that are the rows themselves."""
    numbered = [(outer, inner, place, value) for place, (outer, inner, _, value) in enumerate(rows)]
    found = tally(
        chunks(numbered, kind, kinds),
        groups=len(rows),
        limits=ContributionBounds(max_groups=len(rows), max_rows=1),
        measures=kinds,
        max_inner=most,
    )
    return [rows[place][:2] for place in np.flatnonzero(found.rows)]


def kept_of_fours(kind: Any = None, kinds: Columns = FITS, households: int = 6000) -> Counter[tuple[int, ...]]:
    """Return how often each pair of the four persons of a household is kept."""
    rows = [(household * 7, person, 0, 0) for household in range(households) for person in range(4)]
    kept: dict[int, list[int]] = {}
    for household, person in pairs_kept(rows, 2, kind, kinds):
        kept.setdefault(household, []).append(person)
    return Counter(tuple(sorted(persons)) for persons in kept.values())


@pytest.mark.parametrize("kinds", [FITS, WIDE])
@pytest.mark.parametrize("kind", [None, pa.string()])
def test_all_subsets_are_alike(kind: Any, kinds: Columns) -> None:
    found = kept_of_fours(kind, kinds)
    assert found.total() == 6000
    assert len(found) == 6
    assert chisquare(list(found.values())).pvalue > 1e-9


@pytest.mark.parametrize("kinds", [FITS, WIDE])
def test_keeping_the_first_ones_would_be_seen(monkeypatch: pytest.MonkeyPatch, kinds: Columns) -> None:
    monkeypatch.setattr(nested_units, "_ranks", lambda tags, sizes: np.arange(len(tags)) % 4)
    assert kept_of_fours(kinds=kinds) == {(0, 1): 6000}


@pytest.mark.parametrize("small", [16, 3])
def test_ranks_are_those_of_a_sort(monkeypatch: pytest.MonkeyPatch, small: int) -> None:
    """Of outer units with 1 to 40 inner ones; tags that agree in their first word are told apart by the second."""
    monkeypatch.setattr(nested_units, "_SMALL", small)
    draws = np.random.default_rng(1)
    for highest in (2, 5, 1 << 60):
        sizes = draws.integers(1, 41, 30)
        tags = draws.integers(0, highest, (sizes.sum(), 2)).astype(np.uint64)
        tags[:, 1] = draws.permutation(sizes.sum())
        ranks, start = nested_units._ranks(tags, sizes), 0
        for size in sizes:
            own = tags[start : start + size].tolist()
            assert ranks[start : start + size].tolist() == [sorted(own).index(one) for one in own]
            start += size


@pytest.mark.parametrize("kinds", [FITS, WIDE])
@pytest.mark.parametrize("stretch", [1, 1 << 40])
def test_both_ways_keep_as_many_of_each(stretch: int, kinds: Columns) -> None:
    """Of households with 1 to 30 persons, each with several rows, in many blocks; the numbers near or far apart."""
    draws = np.random.default_rng(2)
    sizes = draws.integers(1, 31, 12000)
    rows = [
        (household * stretch, person, 0, 0)
        for household, size in enumerate(sizes.tolist())
        for person in range(size)
        for _ in range(2)
    ]
    found = tally(
        chunks(rows, kinds=kinds),
        groups=1,
        limits=ContributionBounds(max_groups=1, max_rows=1),
        measures=kinds,
        max_inner=7,
    )
    assert found.rows.tolist() == found.units.tolist() == [int(np.minimum(sizes, 7).sum())]


def test_a_table_of_rare_numbers_keeps_as_many() -> None:
    """Numbers that are far apart, and those at the ends of 64 bits."""
    ends = [-(1 << 63), -1, 0, (1 << 63) - 1]
    rows = [(outer, inner, 0, 0) for outer in ends for inner in ends]
    for kinds in (FITS, WIDE):
        kept = Counter(outer for outer, _ in pairs_kept(rows, 3, kinds=kinds))
        assert kept == dict.fromkeys(ends, 3)


@pytest.mark.parametrize("kinds", [FITS, WIDE])
def test_who_is_in_no_group_or_nobody_takes_no_place(kinds: Columns) -> None:
    rows = [(1, person, person % 3 - 1, 0) for person in range(9)]
    (chunk,) = chunks(rows, kinds=kinds)
    nobody = pa.StructArray.from_arrays(
        [pa.array([1, None] * 3), pa.array([None, 2] * 3)], ["o", "i"], mask=pa.array([True] * 6)
    )
    unknown = RowChunk(units=nobody, groups=np.zeros(6, np.int64), measures=tuple(np.zeros(6, np.int64) for _ in kinds))
    found = tally(
        [chunk, unknown],
        groups=GROUPS,
        limits=ContributionBounds(max_groups=1, max_rows=1),
        measures=kinds,
        max_inner=6,
    )
    assert found.rows.tolist() == [3, 3]
