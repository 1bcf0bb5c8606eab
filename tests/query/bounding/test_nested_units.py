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
from discreet.query.bounding.nested_units import within_outer
from discreet.query.bounding.rows import RowChunk
from discreet.query.bounding.secret import Secret

GROUPS = 2
VALUE = BoundedColumn(low=-1, high=1, total=True)
PERSONS = (1, 2, 3)
# What a person has: rows as (group, value). Limits may cut the last one.
LIVES = (((0, 1),), ((0, -1),), ((1, 1),), ((0, 1), (0, 1), (1, 1)))
# Others elsewhere, so that units have the same numbers, and so the same tags, with and without one of them.
FAR = ((0, 0, 0, 0), (9, 9, 0, 0))
Row = tuple[int, int, int, int]  # household, person, group, value
World = Mapping[tuple[int, int], Sequence[tuple[int, int]]]


def rows_of(world: World) -> list[Row]:
    return [(outer, inner, *row) for (outer, inner), rows in world.items() for row in rows]


def chunks(rows: Sequence[Row], kind: Any = None) -> Iterator[RowChunk]:
    outer, inner, groups, values = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    sides = [pa.array(outer), pa.array(inner)]
    pairs = pa.StructArray.from_arrays([side if kind is None else side.cast(kind) for side in sides], ["o", "i"])
    yield RowChunk(units=pairs, groups=groups, measures=(values,))


def counted(world: World, limits: ContributionBounds, most: int, secret: Secret) -> tuple[list[int], list[int]]:
    """Count rows and add values up by group, as the engine does."""
    kept = within_outer(chunks([*rows_of(world), *FAR]), GROUPS, most, secret.again())
    found = tally(kept, groups=GROUPS, limits=limits, measures=(VALUE,), secret=secret, threads=1)
    assert found.measures[0].total is not None
    return found.rows.tolist(), [int(total) for total in found.measures[0].total]


def worlds() -> Iterator[World]:
    """All households of up to three persons, each with one of four lives."""
    for lives in itertools.product((None, *LIVES), repeat=len(PERSONS)):
        yield {(1, person): rows for person, rows in zip(PERSONS, lives, strict=True) if rows is not None}


def farthest(most: int, limits: ContributionBounds, secrets: Sequence[Secret]) -> dict[str, int]:
    """Return the most, over all worlds and neighbours, that a person or a household changes counts or sums."""
    found: Counter[str] = Counter()
    for secret in secrets:
        told = {repr(world): counted(world, limits, most, secret) for world in worlds()}
        for world in worlds():
            without = {person: {one: rows for one, rows in world.items() if one != person} for person in world}
            pairs = [("person", left) for left in without.values()] + [("household", {})]
            for who, left in pairs:
                for name, a, b in zip(("rows", "total"), told[repr(world)], told[repr(left)], strict=True):
                    change = sum(abs(x - y) for x, y in zip(a, b, strict=True))
                    found[f"{who} {name}"] = max(found[f"{who} {name}"], change)
    return dict(found)


SECRETS = [Secret((bytes([number]) * 32, bytes([number + 100]) * 32)) for number in range(5)]


@pytest.mark.parametrize("most", [1, 2, 3])
@pytest.mark.parametrize(("groups", "rows"), [(1, 1), (2, 1), (1, 2)])
def test_whoever_leaves_changes_no_more_than_is_billed(most: int, groups: int, rows: int) -> None:
    """A household changes an answer by K times what a person adds, and a person by twice that, where K can cut."""
    one = groups * rows
    found = farthest(most, ContributionBounds(max_groups=groups, max_rows=rows), SECRETS)
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


def kept_of_fours(kind: Any = None, households: int = 6000) -> Counter[tuple[int, ...]]:
    """Return how often each pair of the four persons of a household is kept."""
    rows = [(household * 7, person, 0, 0) for household in range(households) for person in range(4)]
    kept: dict[int, list[int]] = {}
    for chunk in within_outer(chunks(rows, kind), GROUPS, 2, Secret()):
        for pair in np.asarray(chunk.units).tolist():
            kept.setdefault(pair // 4, []).append(pair % 4)
    return Counter(tuple(sorted(persons)) for persons in kept.values())


@pytest.mark.parametrize("kind", [None, pa.string()])
def test_all_subsets_are_alike(kind: Any) -> None:
    found = kept_of_fours(kind)
    assert found.total() == 6000
    assert len(found) == 6
    assert chisquare(list(found.values())).pvalue > 1e-9


def test_keeping_the_first_ones_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nested_units, "_by_tag", lambda whose, tags: np.arange(whose.size))
    assert kept_of_fours() == {(0, 1): 6000}


def test_tags_that_agree_in_their_first_word_are_told_apart_by_the_second() -> None:
    tags = np.array([[5, 3], [5, 1], [5, 2], [4, 9]], np.uint64)
    assert nested_units._by_tag(np.array([0, 0, 0, 0]), tags).tolist() == [3, 1, 2, 0]


def test_a_table_of_rare_numbers_keeps_as_many() -> None:
    """Numbers that are far apart, and those at the ends of 64 bits."""
    ends = [-(1 << 63), -1, 0, (1 << 63) - 1]
    rows = [(outer, inner, 0, 0) for outer in ends for inner in ends]
    (chunk,) = within_outer(chunks(rows), GROUPS, 3, Secret())
    assert len(chunk.units) == len(set(chunk.units.to_pylist())) == 4 * 3


def test_who_is_in_no_group_takes_nobodys_place() -> None:
    rows = [(1, person, person % 3 - 1, 0) for person in range(9)]
    (chunk,) = within_outer(chunks(rows), GROUPS, 6, Secret())
    assert len(chunk.units) == 6
    assert chunk.groups is not None
    assert sorted(chunk.groups.tolist()) == [0, 0, 0, 1, 1, 1]
