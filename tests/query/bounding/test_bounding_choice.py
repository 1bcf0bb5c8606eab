"""Every subset is equally likely: by counting all draws where that is possible, else by a statistical test."""

from __future__ import annotations

import itertools
from collections import Counter
from math import comb
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from recorded import replayed
from statistical import fits, rejects

from discreet.query.bounding import packed_columns, selection
from discreet.query.bounding.aggregation import tally
from discreet.query.bounding.contribution_bounds import BoundedColumn, ContributionBounds
from discreet.query.bounding.rows import RowChunk
from discreet.query.bounding.secret import Secret

NAMES = np.zeros((1, 2), np.uint64)
STREAM = np.zeros(1, np.int64)


class Told:
    """Blocks that were written down before: block number i at place i."""

    def __init__(self, blocks: Any) -> None:
        self.told = blocks

    def blocks(self, names: Any, streams: Any, numbers: Any) -> Any:
        places = np.broadcast_to(np.asarray(numbers), streams.shape)
        return np.array([self.told[int(place)] for place in places], np.uint64)


def lanes(*words: int) -> tuple[int, int]:
    """Put words of 32 bits into a block."""
    first, second, third, fourth = (*words, 0, 0, 0, 0)[:4]
    return first | second << 32, third | fourth << 32


def word_for(place: int, limit: int) -> int:
    """Return a word that draws `place` below `limit`, in the middle of all that do."""
    return (2 * place + 1) * 2**31 // limit


@pytest.mark.parametrize(("size", "some"), [(2, 1), (3, 1), (3, 2), (4, 2), (5, 3), (6, 3)])
def test_few_are_chosen_uniformly_over_all_draws(size: int, some: int) -> None:
    limits = [size - some + turn + 1 for turn in range(some)]
    seen: Counter[frozenset[int]] = Counter()
    for draws in itertools.product(*map(range, limits)):
        told = Told([lanes(*map(word_for, draws, limits))])
        chosen = selection.choose(np.array([size]), some, NAMES, STREAM, told)  # type: ignore[arg-type]
        seen[frozenset(chosen[:, 0].tolist())] += 1
    assert all(len(subset) == some for subset in seen)
    assert len(seen) == comb(size, some)
    assert len(set(seen.values())) == 1


def test_many_are_chosen_uniformly_over_all_orders_of_tags(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "_FEW", 0)
    seen: Counter[frozenset[int]] = Counter()
    for tags in itertools.permutations(range(5)):
        told = Told([(tag, 0) for tag in tags])
        chosen = selection.choose(np.array([5]), 2, NAMES, STREAM, told)  # type: ignore[arg-type]
        seen[frozenset(chosen[:, 0].tolist())] += 1
    assert len(seen) == comb(5, 2)
    assert set(seen.values()) == {12}


def test_equal_first_words_of_tags_are_told_apart_by_the_second(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "_FEW", 0)
    told = Told([(7, 2), (7, 1), (7, 0)])
    chosen = selection.choose(np.array([3]), 2, NAMES, STREAM, told)  # type: ignore[arg-type]
    assert sorted(chosen[:, 0].tolist()) == [1, 2]


@pytest.mark.parametrize("limit", [3, 5, 6, 7, 1000, 2**31 + 1])
def test_words_that_would_make_a_place_likelier_are_drawn_again(limit: int) -> None:
    """Near the start of each place, the words that are accepted begin where their number is the same for all."""
    accepted = 2**32 // limit
    for place in (0, 1, limit // 2, limit - 1):
        first = -(-place * 2**32 // limit)
        start = first if first * limit % 2**32 >= 2**32 % limit else first + 1
        end = -(-(place + 1) * 2**32 // limit)
        assert end - start == accepted
        for word in {first, start, end - 1}:
            told = {0: lanes(word), 2**16: lanes(-(-2 * 2**32 // limit) - 1)}
            drawn = selection._few(np.array([limit]), 1, NAMES, STREAM.astype(np.uint64), Told(told))  # type: ignore[arg-type]
            assert drawn.tolist() == [[place if word >= start else 1]]


def subsets(size: int, some: int, count: int = 60_000) -> list[int]:
    """Choose for many units and return which subset each of them got."""
    secret = Secret()
    names = secret.names_of_integers(np.arange(count))
    sizes, streams = np.full(count, size), np.full(count, 3)
    number = {subset: place for place, subset in enumerate(itertools.combinations(range(size), some))}
    return [number[tuple(sorted(row))] for row in selection.choose(sizes, some, names, streams, secret).T.tolist()]


@pytest.mark.statistical
@pytest.mark.parametrize("few", [16, 0], ids=["few", "many"])
def test_subsets_follow_the_uniform_law(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "_FEW", few)
    many = comb(5, 2)
    sample = subsets(5, 2)
    assert fits(sample, [1 / many] * many)
    leaning = np.array([1.4] + [1.0] * (many - 1))
    assert rejects(sample, (leaning / leaning.sum()).tolist())


@pytest.mark.statistical
def test_drawing_with_replacement_or_without_floyds_rule_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    def repaired(sizes: Any, some: int, names: Any, streams: Any, secret: Any) -> Any:
        """Take the next place if one is taken, instead of the last."""
        first, second = selection._below(np.stack([sizes, sizes - 1]), names, streams, secret)
        return np.stack([first, np.where(second == first, (second + 1) % sizes, second)])

    monkeypatch.setattr(selection, "_few", repaired)
    assert rejects(subsets(4, 2), [1 / 6] * 6)


UNITS = 30_000
ONE = ContributionBounds(max_groups=1, max_rows=1)


def kept_levels(rows: int, measure: BoundedColumn, limits: ContributionBounds = ONE) -> list[int]:
    """Give each unit the rows 0, …, rows - 1 in one group and see which index is kept."""
    place = np.arange(UNITS * rows)
    data = RowChunk(units=pa.array(place // rows), measures=(place % rows,))
    values = tally([data], groups=1, limits=limits, measures=(measure,)).measures[0].values
    assert values is not None
    return values.indices.tolist()


@pytest.mark.statistical
@pytest.mark.parametrize("high", [7, 1 << 52], ids=["packed", "numbered"])
def test_kept_rows_follow_the_uniform_law(high: int) -> None:
    sample = kept_levels(7, BoundedColumn(low=0, high=high, values=True))
    assert len(sample) == UNITS
    assert fits(sample, [1 / 7] * 7)
    assert rejects(sample, [0.19, *([0.135] * 6)])


@pytest.mark.statistical
def test_first_rows_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "_few", lambda sizes, some, *rest: np.tile(np.arange(some)[:, None], len(sizes)))
    assert rejects(kept_levels(7, BoundedColumn(low=0, high=7, values=True)), [1 / 7] * 7)


@pytest.mark.statistical
def test_a_group_is_as_likely_however_many_rows_it_has() -> None:
    """Groups are chosen, then rows: a group of six rows is kept as often as one of a single row."""
    place = np.arange(7 * UNITS)
    groups = np.where(place % 7 == 0, 0, 1)
    result = tally([RowChunk(units=pa.array(place // 7), groups=groups)], groups=2, limits=ONE)
    sample = np.repeat([0, 1], result.units)
    assert fits(sample, [1 / 2, 1 / 2])
    assert rejects(sample, [1 / 7, 6 / 7])


@pytest.mark.statistical
def test_choices_of_groups_and_of_rows_are_independent() -> None:
    """Both are drawn at places of their own: the wrong neighbour uses one word for both."""
    place = np.arange(4 * UNITS)
    data = RowChunk(units=pa.array(place // 4), groups=place // 2 % 2, measures=(place % 2,))
    result = tally([data], groups=2, limits=ONE, measures=(BoundedColumn(low=0, high=1, values=True),))
    values = result.measures[0].values
    assert values is not None
    sample = np.repeat([0, 1], result.rows) * 2 + values.indices
    assert fits(sample, [1 / 4] * 4)
    assert rejects(sample, [1 / 2, 0, 0, 1 / 2])


def test_tags_by_row_number_are_caught_by_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a canonical order of rows the same secret keeps other rows of the same data."""
    place = np.arange(3000)
    columns = place * 37 % 1009, place % 7
    measures = (BoundedColumn(low=0, high=1 << 52, total=True), BoundedColumn(low=0, high=1 << 52))

    def total(order: Any) -> Any:
        data = RowChunk(units=pa.array(place[order] % 50), measures=tuple(column[order] for column in columns))
        with replayed("order"):
            return tally([data], groups=1, limits=ONE, measures=measures).measures[0].total

    orders = place, place[::-1]
    assert total(orders[0]) == total(orders[1])
    monkeypatch.setattr(packed_columns.Numbered, "arrange", lambda *_: None)
    assert total(orders[0]) != total(orders[1])
