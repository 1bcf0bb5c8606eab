"""How many people share their values, under every combination of some columns: a search that forgets whoever is alone.

Whoever is alone under some columns is alone under more of them. So each combination is counted among those only who
hide in a crowd under all but its last column, and columns of many values come first: few are left to be counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.attacks.codes import Codes, Encoded

__all__ = ["EDGES", "Crowds", "crowds"]

EDGES = (1, 2, 5, 10, 20, 50, 100)  # The smallest crowd of each class of a profile.
Places: TypeAlias = NDArray[np.int64]
Crowds: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]  # columns, by number; people in each class of a profile
_DENSE = 4_000_000  # Keys that are counted in a table that fits the caches; beyond that, sorting is faster.
_WORD = 63  # Bits of a key and its place.


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Node:
    """What is left to count below a combination: rows of people in crowds, and the crowd that each row is in."""

    columns: tuple[int, ...]
    rows: Places | None  # None: all of them
    group: Places
    groups: int
    alone: NDArray[np.bool_] | None  # people who were singled out, if people have several rows …
    gone: int  # … or how many, if every row is a person


def crowds(table: Encoded, size: int, threads: int) -> list[Crowds]:
    """Count the crowds of every combination of up to `size` columns."""
    order = sorted(range(len(table.sizes)), key=lambda column: -table.sizes[column])
    alone = None if table.who is None else np.zeros(table.people, dtype=bool)
    root = _Node((), None, np.zeros(table.rows, dtype=np.int64), 1, alone, 0)

    def branch(first: int) -> list[Crowds]:
        return list(_below(table, root, order[first:], size))

    with ThreadPoolExecutor(threads) as pool:
        found = [one for part in pool.map(branch, range(len(order))) for one in part]
    return found


def _below(table: Encoded, node: _Node, columns: list[int], size: int) -> Iterator[Crowds]:
    """Count a node with its first column added, and all that follows from it."""
    deeper = len(node.columns) + 1 < size and len(columns) > 1
    profile, child = _refined(table, node, columns[0], deeper)
    yield child.columns, profile
    if deeper:
        for start in range(1, len(columns)):
            yield from _below(table, child, columns[start:], size)


def _refined(table: Encoded, node: _Node, column: int, deeper: bool) -> tuple[tuple[int, ...], _Node]:
    codes = table.codes[column] if node.rows is None else table.codes[column][node.rows]
    keys = node.group * table.sizes[column] + codes
    if table.who is None:
        return _of_rows(node, column, keys, node.groups * table.sizes[column], deeper)
    who = table.who if node.rows is None else table.who[node.rows]
    return _of_people(node, column, keys, node.groups * table.sizes[column], who, table.people)


def _of_rows(node: _Node, column: int, keys: Places, most: int, deeper: bool) -> tuple[tuple[int, ...], _Node]:
    """Every row is a person: the size of a crowd is its number of rows."""
    columns = (*node.columns, column)
    if not deeper:
        return _profile(_counted(keys, most), node.gone), _Node(columns, None, keys[:0], 0, None, 0)
    group, sizes = _numbered(keys, most)
    kept = sizes[group] > 1
    numbers = np.cumsum(sizes > 1) - 1
    profile = _profile(sizes[sizes > 0], node.gone)
    groups = int(numbers[-1]) + 1 if len(numbers) else 0
    return profile, _Node(columns, _left(node.rows, kept), numbers[group[kept]], groups, None, profile[0])


def _of_people(
    node: _Node, column: int, keys: Places, most: int, who: Codes, people: int
) -> tuple[tuple[int, ...], _Node]:
    """People have several rows: a crowd is as large as there are people in it, and people are as alone as a row is."""
    assert node.alone is not None
    group, rows_in = _numbered(keys, most)
    pairs = np.sort(group * people + who)
    first = np.flatnonzero(np.diff(pairs, prepend=-1))
    sizes = np.bincount(pairs[first] // people, minlength=len(rows_in))
    crowd = sizes[group]
    alone = node.alone.copy()
    alone[who[crowd == 1]] = True
    least = np.where(alone, 1, np.iinfo(np.int64).max)
    np.minimum.at(least, who, crowd)
    kept = crowd > 1
    numbers = np.cumsum(sizes > 1) - 1
    child = _Node(
        (*node.columns, column), _left(node.rows, kept), numbers[group[kept]], int((sizes > 1).sum()), alone, 0
    )
    return _people_in(least), child


def _left(rows: Places | None, kept: NDArray[np.bool_]) -> Places | None:
    """Return the rows that are left; as long as these are all, they need no list."""
    if rows is None:
        return None if kept.all() else np.flatnonzero(kept)
    return rows[kept]


def _numbered(keys: Places, most: int) -> tuple[Places, Places]:
    """Number the groups of equal keys, and count each; with few keys in all, a number may have no group."""
    if most <= _DENSE:
        return keys, np.bincount(keys, minlength=most)
    bits = len(keys).bit_length()
    if most.bit_length() + bits > _WORD:
        _, group, sizes = np.unique(keys, return_inverse=True, return_counts=True)
        return group, sizes
    # A key and its place in one word: numbers are sorted several times as fast as their order is found.
    packed = np.sort(keys << bits | np.arange(len(keys)))
    ordered = packed >> bits
    first = np.concatenate(([True], ordered[1:] != ordered[:-1]))
    group = np.empty_like(keys)
    group[packed & ((1 << bits) - 1)] = np.cumsum(first) - 1
    return group, _runs(ordered)


def _counted(keys: Places, most: int) -> Places:
    """Count the groups of equal keys, without numbering them; the shorter the numbers, the faster they are sorted."""
    if most <= _DENSE:
        return np.bincount(keys)
    return _runs(np.sort(keys.astype(np.int32) if most <= np.iinfo(np.int32).max else keys))


def _runs(ordered: Places) -> Places:
    """Return how long each run of equal numbers is."""
    if not len(ordered):
        return ordered
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    return np.diff(starts, append=len(ordered))


def _profile(sizes: Places, gone: int) -> tuple[int, ...]:
    """Count people by the size of their crowd; those who were alone before are still alone."""
    small = np.bincount(np.minimum(sizes, EDGES[-1]), minlength=EDGES[-1] + 1)[: EDGES[-1]]
    people = small * np.arange(EDGES[-1])
    counted = [int(people[low:high].sum()) for low, high in pairwise(EDGES)]
    counted.append(int(sizes.sum()) - sum(counted))
    return counted[0] + gone, *counted[1:]


def _people_in(least: Places) -> tuple[int, ...]:
    classes = np.searchsorted(EDGES, least, side="right") - 1
    return tuple(int(n) for n in np.bincount(classes, minlength=len(EDGES)))
