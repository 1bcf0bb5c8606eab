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

from discreet.query.bounding import Limits, Measure, Rows, choosing, payload, tally
from discreet.query.bounding.secret import Secret

NAMES = np.zeros((1, 2), np.uint64)
STREAM = np.zeros(1, np.int64)


class Told:
    """Words that were written down before: word number i at place i."""

    def __init__(self, words: list[int]) -> None:
        self.words = words

    def blocks(self, names: Any, stream: Any, number: Any) -> Any:
        places = np.broadcast_to(np.asarray(number, np.uint64), stream.shape)
        first = np.array([self.words[int(place)] for place in places], np.uint64)
        return np.stack([first, places], axis=1)


@pytest.mark.parametrize(("size", "some"), [(2, 1), (3, 1), (3, 2), (4, 2), (5, 3), (6, 3)])
def test_few_are_chosen_uniformly_over_all_draws(size: int, some: int) -> None:
    seen: Counter[frozenset[int]] = Counter()
    for draws in itertools.product(*(range(size - some + turn + 1) for turn in range(some))):
        (chosen,) = choosing.choose(np.array([size]), some, NAMES, STREAM, Told(list(draws)))  # type: ignore[arg-type]
        seen[frozenset(chosen.tolist())] += 1
    assert all(len(subset) == some for subset in seen)
    assert len(seen) == comb(size, some)
    assert len(set(seen.values())) == 1


def test_many_are_chosen_uniformly_over_all_orders_of_tags(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "_FEW", 0)
    seen: Counter[frozenset[int]] = Counter()
    for tags in itertools.permutations(range(5)):
        (chosen,) = choosing.choose(np.array([5]), 2, NAMES, STREAM, Told(list(tags)))  # type: ignore[arg-type]
        seen[frozenset(chosen.tolist())] += 1
    assert len(seen) == comb(5, 2)
    assert set(seen.values()) == {12}


def test_equal_first_words_of_tags_are_told_apart_by_the_second(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "_FEW", 0)
    (chosen,) = choosing.choose(np.array([3]), 2, NAMES, STREAM, Told([7, 7, 7]))  # type: ignore[arg-type]
    assert sorted(chosen.tolist()) == [0, 1]


def test_a_word_of_the_last_short_run_is_drawn_again() -> None:
    """2^64 = 3 k + 1: the last word would make 0 likelier than 1 and 2."""
    words = {0: 2**64 - 1, 1 << 32: 2**64 - 2}

    class Short:
        def blocks(self, names: Any, stream: Any, number: Any) -> Any:
            return np.full((len(stream), 2), words[int(number)], np.uint64)

    (chosen,) = choosing.choose(np.array([3]), 1, NAMES, STREAM, Short())  # type: ignore[arg-type]
    assert chosen.tolist() == [(2**64 - 2) % 3]
    assert (2**64 - 1) % 3 == 0


def subsets(size: int, some: int, count: int = 60_000) -> list[int]:
    """Choose for many units and return which subset each of them got."""
    secret = Secret()
    names = secret.names_of_integers(np.arange(count))
    sizes, streams = np.full(count, size), np.full(count, 3)
    number = {subset: place for place, subset in enumerate(itertools.combinations(range(size), some))}
    return [number[tuple(sorted(row))] for row in choosing.choose(sizes, some, names, streams, secret).tolist()]


@pytest.mark.statistical
@pytest.mark.parametrize("few", [16, 0], ids=["few", "many"])
def test_subsets_follow_the_uniform_law(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "_FEW", few)
    many = comb(5, 2)
    sample = subsets(5, 2)
    assert fits(sample, [1 / many] * many)
    leaning = np.array([1.15] + [1.0] * (many - 1))
    assert rejects(sample, (leaning / leaning.sum()).tolist())


@pytest.mark.statistical
def test_drawing_with_replacement_or_without_floyds_rule_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    def repaired(sizes: Any, some: int, names: Any, streams: Any, secret: Any) -> Any:
        """Take the next place if one is taken, instead of the last."""
        first = choosing._below(sizes, names, streams, 0, secret)
        second = choosing._below(sizes - 1, names, streams, 1, secret)
        return np.stack([first, np.where(second == first, (second + 1) % sizes, second)], axis=1)

    monkeypatch.setattr(choosing, "_few", repaired)
    assert rejects(subsets(4, 2), [1 / 6] * 6)


UNITS = 30_000
ONE = Limits(max_groups=1, max_rows=1)


def kept_levels(rows: int, measure: Measure, limits: Limits = ONE) -> list[int]:
    """Give each unit the rows 0, …, rows - 1 in one group and see which index is kept."""
    place = np.arange(UNITS * rows)
    data = Rows(units=pa.array(place // rows), measures=(place % rows,))
    values = tally([data], groups=1, limits=limits, measures=(measure,)).measures[0].values
    assert values is not None
    return values.indices.tolist()


@pytest.mark.statistical
@pytest.mark.parametrize("high", [7, 1 << 52], ids=["packed", "numbered"])
def test_kept_rows_follow_the_uniform_law(high: int) -> None:
    sample = kept_levels(7, Measure(low=0, high=high, values=True))
    assert len(sample) == UNITS
    assert fits(sample, [1 / 7] * 7)
    assert rejects(sample, [0.19, *([0.135] * 6)])


@pytest.mark.statistical
def test_first_rows_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "_few", lambda sizes, some, *rest: np.tile(np.arange(some), (len(sizes), 1)))
    assert rejects(kept_levels(7, Measure(low=0, high=7, values=True)), [1 / 7] * 7)


@pytest.mark.statistical
def test_a_group_is_as_likely_however_many_rows_it_has() -> None:
    """Groups are chosen, then rows: a group of six rows is kept as often as one of a single row."""
    place = np.arange(7 * UNITS)
    groups = np.where(place % 7 == 0, 0, 1)
    result = tally([Rows(units=pa.array(place // 7), groups=groups)], groups=2, limits=ONE)
    sample = np.repeat([0, 1], result.units)
    assert fits(sample, [1 / 2, 1 / 2])
    assert rejects(sample, [1 / 7, 6 / 7])


@pytest.mark.statistical
def test_choices_of_groups_and_of_rows_are_independent() -> None:
    """Both are drawn at places of their own: the wrong neighbour uses one word for both."""
    place = np.arange(4 * UNITS)
    data = Rows(units=pa.array(place // 4), groups=place // 2 % 2, measures=(place % 2,))
    result = tally([data], groups=2, limits=ONE, measures=(Measure(low=0, high=1, values=True),))
    values = result.measures[0].values
    assert values is not None
    sample = np.repeat([0, 1], result.rows) * 2 + values.indices
    assert fits(sample, [1 / 4] * 4)
    assert rejects(sample, [1 / 2, 0, 0, 1 / 2])


def test_tags_by_row_number_are_caught_by_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a canonical order of rows the same secret keeps other rows of the same data."""
    place = np.arange(3000)
    columns = place * 37 % 1009, place % 7
    measures = (Measure(low=0, high=1 << 52, total=True), Measure(low=0, high=1 << 52))

    def total(order: Any) -> Any:
        data = Rows(units=pa.array(place[order] % 50), measures=tuple(column[order] for column in columns))
        with replayed("order"):
            return tally([data], groups=1, limits=ONE, measures=measures).measures[0].total

    orders = place, place[::-1]
    assert total(orders[0]) == total(orders[1])
    monkeypatch.setattr(payload.Numbered, "arrange", lambda *_: None)
    assert total(orders[0]) != total(orders[1])
