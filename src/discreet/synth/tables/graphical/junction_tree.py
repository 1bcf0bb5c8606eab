"""Junction trees: which tables a model of given cliques needs, and how they hang together.

A set of columns is a whole number whose bits are the columns, which makes unions and subsets single operations: the
adaptive methods ask for the size of hundreds of trees in every round.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from discreet.errors import InvalidParameter

__all__ = ["Clique", "JunctionTree", "columns_of", "junction_cells", "junction_tree", "mask_of", "maximal"]

Clique = tuple[int, ...]
_Key = Callable[[int, list[int]], tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class JunctionTree:
    """The cliques of a junction tree, a parent before its children; the first is the root and its own parent."""

    cliques: tuple[Clique, ...]
    parents: tuple[int, ...]

    def separator(self, node: int) -> Clique:
        """Return the columns that a node shares with its parent; none for the root."""
        if node == 0:
            return ()
        above = self.cliques[self.parents[node]]
        return tuple(column for column in self.cliques[node] if column in above)


def mask_of(clique: Iterable[int]) -> int:
    """Return a set of columns as the bits of a whole number."""
    mask = 0
    for column in clique:
        mask |= 1 << column
    return mask


@lru_cache(maxsize=1 << 16)
def columns_of(mask: int) -> Clique:
    """Return the columns whose bits are set, in rising order."""
    return tuple(column for column in range(mask.bit_length()) if mask >> column & 1)


@lru_cache(maxsize=1 << 18)
def _cells(sizes: tuple[int, ...], mask: int) -> int:
    return math.prod(sizes[column] for column in columns_of(mask))


def maximal(masks: Iterable[int]) -> list[int]:
    """Drop every set that lies within another one."""
    kept: list[int] = []
    for mask in sorted(set(masks), key=lambda mask: (-mask.bit_count(), mask)):
        if not any(mask & other == mask for other in kept):
            kept.append(mask)
    return kept


def _joined(columns: int, cliques: Iterable[int]) -> list[int]:
    """List for every column which columns it meets in a clique, itself among them."""
    near = [1 << column for column in range(columns)]
    for mask in cliques:
        for column in columns_of(mask):
            near[column] |= mask
    return near


def _by_size(sizes: tuple[int, ...]) -> _Key:
    return lambda column, near: (_cells(sizes, near[column]), column)


def _by_fill(sizes: tuple[int, ...]) -> _Key:
    def key(column: int, near: list[int]) -> tuple[int, ...]:
        mask = near[column]
        missing = sum((mask & ~near[other]).bit_count() for other in columns_of(mask))
        return missing, _cells(sizes, mask), column

    return key


def _eliminate(near: list[int], key: _Key) -> list[int]:
    """Take one column out after another, joining all its neighbours; return what each left with. [KF09]"""
    near, bags = list(near), []
    keys = {column: key(column, near) for column in range(len(near))}
    while keys:
        chosen = min(keys, key=keys.__getitem__)
        bag, changed = near[chosen], 0
        bags.append(bag)
        del keys[chosen]
        for other in columns_of(bag & ~(1 << chosen)):
            near[other] = (near[other] | bag) & ~(1 << chosen)
            changed |= near[other]
        # Only who is near a column whose neighbours have changed can count otherwise now.
        for other in columns_of(changed):
            keys[other] = key(other, near)
    return maximal(bags)


@lru_cache(maxsize=1 << 15)
def _bags(sizes: tuple[int, ...], near: tuple[int, ...]) -> tuple[int, ...]:
    """Return the largest cliques after the better of two greedy eliminations; of equals the one that fills in less."""
    found = [_eliminate(list(near), make(sizes)) for make in (_by_fill, _by_size)]
    return tuple(min(found, key=lambda bags: sum(_cells(sizes, bag) for bag in bags)))


def _triangulated(sizes: Sequence[int], cliques: Iterable[Sequence[int]]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the sizes, checked, and the largest cliques of a chordal graph in which all given cliques are."""
    shape = tuple(sizes)
    if not shape or min(shape) < 1:
        raise InvalidParameter("every column needs at least one cell; give the size of each column")
    masks = {mask_of(clique) for clique in cliques}
    if any(mask >> len(shape) for mask in masks):
        raise InvalidParameter(f"a clique names a column that is not there; the columns are 0 to {len(shape) - 1}")
    return shape, _bags(shape, tuple(_joined(len(shape), masks)))


def junction_cells(sizes: Sequence[int], cliques: Iterable[Sequence[int]]) -> int:
    """Count the cells of all tables of a junction tree for these cliques (8 bytes each)."""
    shape, bags = _triangulated(sizes, cliques)
    return sum(_cells(shape, bag) for bag in bags)


def junction_tree(sizes: Sequence[int], cliques: Iterable[Sequence[int]]) -> JunctionTree:
    """Build a junction tree whose root is the largest table.

    Theorem     A spanning tree of the cliques of a chordal graph whose separators are as large as can be is a
                junction tree. [KF09]
    """
    shape, found = _triangulated(sizes, cliques)
    bags = sorted(found, key=lambda bag: (-_cells(shape, bag), bag))
    order, parents = [bags[0]], [0]
    best = {bag: ((bag & bags[0]).bit_count(), 0) for bag in bags[1:]}
    while best:
        bag = max(best, key=lambda bag: best[bag][0])
        parents.append(best.pop(bag)[1])
        order.append(bag)
        for other, (shared, _) in best.items():
            if (other & bag).bit_count() > shared:
                best[other] = ((other & bag).bit_count(), len(order) - 1)
    return JunctionTree(tuple(columns_of(bag) for bag in order), tuple(parents))
