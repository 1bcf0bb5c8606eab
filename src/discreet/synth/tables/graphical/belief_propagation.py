"""Belief propagation on a junction tree, with contractions that are compiled once and run many times."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter

__all__ = [
    "HALF_NEVER",
    "NEVER",
    "Beliefs",
    "Clique",
    "ContractionPlan",
    "FactorNetwork",
    "Floats",
    "JunctionTree",
    "Node",
    "Product",
    "Step",
    "SumOut",
    "TreeGrowth",
    "columns_of",
    "junction_cells",
    "junction_tree",
    "mask_of",
    "maximal",
    "normal",
    "plan",
]

# --- junction_tree: Junction trees: which tables a model of given cliques needs, and how they hang together. ---
#
# A set of columns is a whole number whose bits are the columns, which makes unions and subsets single operations: the
# adaptive methods ask for the size of hundreds of trees in every round.


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


@dataclass(frozen=True, slots=True)
class TreeGrowth:
    """How large a junction tree becomes at most if two of its columns are joined: a bound that takes no elimination."""

    sizes: tuple[int, ...]
    masks: tuple[int, ...]  # the columns of each node, as bits
    parents: tuple[int, ...]
    cells: int  # of all tables
    _tops: dict[int, int]  # for each column, the node next to the root that has it
    _parts: tuple[int, ...]  # for each node, the part of the graph it belongs to: the first node of it

    @staticmethod
    def of(sizes: Sequence[int], cliques: Iterable[Sequence[int]]) -> TreeGrowth:
        """Build the tree of these cliques."""
        shape, tree = tuple(sizes), junction_tree(sizes, cliques)
        masks = tuple(mask_of(clique) for clique in tree.cliques)
        tops: dict[int, int] = {}
        parts: list[int] = []
        for node, (clique, parent) in enumerate(zip(tree.cliques, tree.parents, strict=True)):
            parts.append(parts[parent] if node and masks[node] & masks[parent] else node)
            for column in clique:
                tops.setdefault(column, node)
        cells = sum(_cells(shape, mask) for mask in masks)
        return TreeGrowth(shape, masks, tree.parents, cells, tops, tuple(parts))

    def joined(self, one: int, other: int) -> int:
        """Bound the cells of a tree in which two columns meet.

        Columns of two parts meet in a table of their own. Of one part: with either of them added to every node on the
        way between those that have them, the nodes are those of a junction tree again.
        """
        if self._parts[self._tops[one]] != self._parts[self._tops[other]]:
            return self.cells + self.sizes[one] * self.sizes[other]
        way = [self.masks[node] for node in self._way(self._tops[one], self._tops[other])]
        # The nodes of a column hang together: those of the one are the first on the way, those of the other the last.
        last = max(place for place, mask in enumerate(way) if mask >> one & 1)
        first = min(place for place, mask in enumerate(way) if mask >> other & 1)
        cells = [_cells(self.sizes, mask) for mask in way]
        with_one = sum(cells[last + 1 : first + 1]) * (self.sizes[one] - 1)
        with_other = sum(cells[last:first]) * (self.sizes[other] - 1)
        return self.cells + min(with_one, with_other)

    def _way(self, one: int, other: int) -> list[int]:
        """List the nodes from one to another: up to where their ways to the root meet, and down. Parents come first."""
        left, right = [one], [other]
        while left[-1] != right[-1]:
            lower = left if left[-1] > right[-1] else right
            lower.append(self.parents[lower[-1]])
        return left + right[-2::-1]


# --- contraction ---
# Products of tables, summed over what is not asked for: compiled once, run many times, forwards and backwards.
#
# A table of several columns is multiplied with another and summed by one matrix product, so that the table over the
# union
# of their columns never exists. Running a program backwards gives the derivative of its result by every table that went
# in, at twice the cost of the way forwards, however many tables there are. [Dar03]


Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class SumOut:
    """Sum one table over some of its axes."""

    source: int
    shape: tuple[int, ...]
    axes: tuple[int, ...]
    scope: Clique

    def forward(self, tables: list[Floats]) -> Floats:
        """Return the sum."""
        return np.asarray(tables[self.source].sum(axis=self.axes))

    def backward(self, tables: list[Floats], slope: Floats) -> tuple[tuple[int, Floats], ...]:
        """Return by what the result changes with each cell of the source."""
        return ((self.source, np.broadcast_to(np.expand_dims(slope, self.axes), self.shape)),)


@dataclass(frozen=True, slots=True)
class Product:
    """Multiply two tables and sum over columns: as matrices (both, left, summed) times (both, summed, right)."""

    left: int
    right: int
    left_order: tuple[int, ...]  # Of the axes, to get (both, left, summed).
    right_order: tuple[int, ...]
    sizes: tuple[int, int, int, int]  # Cells of both, left, summed, right.
    shapes: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]  # Left and right as ordered, and the result.
    scope: Clique

    def _matrices(self, tables: list[Floats]) -> tuple[Floats, Floats]:
        both, left, summed, right = self.sizes
        first = tables[self.left].transpose(self.left_order).reshape(both, left, summed)
        return first, tables[self.right].transpose(self.right_order).reshape(both, summed, right)

    def forward(self, tables: list[Floats]) -> Floats:
        """Return the product."""
        first, second = self._matrices(tables)
        return _matmul(first, second).reshape(self.shapes[2])

    def backward(self, tables: list[Floats], slope: Floats) -> tuple[tuple[int, Floats], ...]:
        """Return by what the result changes with each cell of either table."""
        first, second = self._matrices(tables)
        both, left, _, right = self.sizes
        change = slope.reshape(both, left, right)
        to_left = _matmul(change, second.swapaxes(1, 2)).reshape(self.shapes[0])
        to_right = _matmul(first.swapaxes(1, 2), change).reshape(self.shapes[1])
        return (
            (self.left, to_left.transpose(_inverse(self.left_order))),
            (self.right, to_right.transpose(_inverse(self.right_order))),
        )


Step: TypeAlias = SumOut | Product


@dataclass(frozen=True, slots=True)
class ContractionPlan:
    """Steps from given tables to one result; tables are numbered as given, and results after them."""

    steps: tuple[Step, ...]
    result: int
    scope: Clique  # Of the result, in the order of its axes.

    def forward(self, tables: list[Floats]) -> Floats:
        """Run all steps, adding their results to the list, and return the last."""
        for step in self.steps:
            tables.append(step.forward(tables))
        return tables[self.result]

    def backward(self, tables: list[Floats], slope: Floats) -> list[Floats]:
        """Return by what the result changes with each table that was given, for a slope of the result."""
        slopes = {self.result: slope}
        given = len(tables) - len(self.steps)
        for place in range(len(self.steps) - 1, -1, -1):
            slopes.update(self.steps[place].backward(tables, slopes.pop(given + place)))
        return [slopes[table] for table in range(given)]


def _matmul(first: Floats, second: Floats) -> Floats:
    """Multiply stacks of matrices: by BLAS where there is something to sum, else by broadcasting."""
    if first.shape[2] == 1:
        return first * second
    if first.shape[0] == 1:
        return np.asarray(first[0] @ second[0])[None]
    if second.shape[2] == 1:
        return np.asarray(np.einsum("bls,bs->bl", first, second[:, :, 0]))[:, :, None]
    if first.shape[1] == 1:
        return np.asarray(np.einsum("bs,bsr->br", first[:, 0], second))[:, None, :]
    return np.asarray(np.matmul(first, second))


def _inverse(order: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted(range(len(order)), key=order.__getitem__))


@lru_cache(maxsize=1 << 14)
def plan(sizes: tuple[int, ...], scopes: tuple[Clique, ...], wanted: frozenset[int]) -> ContractionPlan:
    """Plan the product of tables with these scopes, summed to the wanted columns, by the greedy rule.

    Wanted columns that no table has are left out of the result.
    """
    steps: list[Step] = []
    alive = dict(enumerate(scopes))
    for table, scope in list(alive.items()):
        others = wanted.union(*(other for key, other in alive.items() if key != table))
        if not others.issuperset(scope):
            del alive[table]
            steps.append(_sum(sizes, table, scope, others))
            alive[len(scopes) + len(steps) - 1] = steps[-1].scope
    scalars = [table for table, scope in alive.items() if not scope]
    while len(scalars) > 1:  # As the greedy rule would, without comparing all pairs: there is one for each part.
        left, right = scalars[:2]
        steps.append(_product(sizes, alive, left, right, wanted))
        del alive[left], alive[right]
        scalars = [len(scopes) + len(steps) - 1, *scalars[2:]]
        alive[scalars[0]] = steps[-1].scope
    while len(alive) > 1:
        left, right = min(itertools.combinations(alive, 2), key=lambda pair: _score(sizes, alive, pair, wanted))
        steps.append(_product(sizes, alive, left, right, wanted))
        del alive[left], alive[right]
        alive[len(scopes) + len(steps) - 1] = steps[-1].scope
    ((result, scope),) = alive.items()
    return ContractionPlan(tuple(steps), result, scope)


def _kept(alive: dict[int, Clique], pair: tuple[int, int], wanted: frozenset[int]) -> set[int]:
    others = wanted.union(*(scope for key, scope in alive.items() if key not in pair))
    return (set(alive[pair[0]]) | set(alive[pair[1]])) & others


def _count(sizes: Sequence[int], columns: set[int] | Clique) -> int:
    return math.prod(sizes[column] for column in columns)


def _score(
    sizes: Sequence[int], alive: dict[int, Clique], pair: tuple[int, int], wanted: frozenset[int]
) -> tuple[int, int, int, int]:
    """Prefer the pair whose product takes the least new room, then the least work."""
    left, right = alive[pair[0]], alive[pair[1]]
    grown = _count(sizes, _kept(alive, pair, wanted)) - _count(sizes, left) - _count(sizes, right)
    return grown, _count(sizes, set(left) | set(right)), *pair


def _sum(sizes: Sequence[int], table: int, scope: Clique, others: frozenset[int]) -> SumOut:
    axes = tuple(axis for axis, column in enumerate(scope) if column not in others)
    shape = tuple(sizes[column] for column in scope)
    return SumOut(table, shape, axes, tuple(column for column in scope if column in others))


def _product(sizes: Sequence[int], alive: dict[int, Clique], left: int, right: int, wanted: frozenset[int]) -> Product:
    kept, a, b = _kept(alive, (left, right), wanted), alive[left], alive[right]
    both = tuple(column for column in a if column in b and column in kept)
    summed = tuple(column for column in a if column in b and column not in kept)
    only_left = tuple(column for column in a if column not in b)
    only_right = tuple(column for column in b if column not in a)
    rows, columns, scope = both + only_left + summed, both + summed + only_right, both + only_left + only_right
    return Product(
        left,
        right,
        tuple(a.index(column) for column in rows),
        tuple(b.index(column) for column in columns),
        (_count(sizes, both), _count(sizes, only_left), _count(sizes, summed), _count(sizes, only_right)),
        (_shape(sizes, rows), _shape(sizes, columns), _shape(sizes, scope)),
        scope,
    )


def _shape(sizes: Sequence[int], columns: Clique) -> tuple[int, ...]:
    return tuple(sizes[column] for column in columns)


# --- network: Belief propagation: the marginals of a product of tables, on a junction tree. ---
#
# The tables stay as they are given, factors over few columns; messages between the cliques of the tree are contracted
# from them and the large tables of the cliques never exist. All numbers are kept in the linear domain, each message
# scaled by its largest entry, so that sums are matrix products.


# The potential of an impossible cell: finite, so that no sum or difference is NaN, and zero as an exponential. What is
# added to it by the way is far less than half of it.
NEVER, HALF_NEVER = -1e9, -5e8


@dataclass(frozen=True, slots=True)
class Node:
    """A clique of the tree: the factors it holds, its children, and the message it sends to its parent.

    Greedy eliminations are not minimal: a clique can have a column that none of its factors and no message from a child
    carries, though its parent or a child has it. Such a bare column gets a vector of ones, so that every message is
    over its whole separator and every table of a clique over the whole clique.
    """

    factors: tuple[int, ...]
    children: tuple[int, ...]
    bare: tuple[int, ...]
    program: ContractionPlan


@dataclass(frozen=True, slots=True)
class Beliefs:
    """The messages of one run: upwards by node, downwards by node, and the log of the sum of all products."""

    up: list[Floats]
    down: list[Floats]
    log_sum: float


@dataclass(frozen=True, slots=True)
class FactorNetwork:
    """A product of factors over cliques of columns, compiled. Every column must be in some factor."""

    sizes: tuple[int, ...]
    scopes: tuple[Clique, ...]
    tree: JunctionTree
    nodes: tuple[Node, ...]

    @staticmethod
    def of(sizes: Sequence[int], scopes: Sequence[Clique]) -> FactorNetwork:
        """Compile for factors with these scopes."""
        shape, tree = tuple(sizes), junction_tree(sizes, scopes)
        held = _held(shape, tree, scopes)
        nodes: dict[int, Node] = {}
        for node in reversed(range(len(tree.cliques))):
            children = tuple(child for child in range(node + 1, len(tree.cliques)) if tree.parents[child] == node)
            given = tuple(scopes[f] for f in held[node]) + tuple(nodes[child].program.scope for child in children)
            bare = tuple(sorted(set(tree.cliques[node]).difference(*given)))
            program = plan(shape, given + tuple((column,) for column in bare), frozenset(tree.separator(node)))
            nodes[node] = Node(held[node], children, bare, program)
        return FactorNetwork(shape, tuple(scopes), tree, tuple(nodes[node] for node in range(len(nodes))))

    def run(self, factors: Sequence[Floats]) -> tuple[float, list[Floats]]:
        """Return the log of the sum of all products, and the marginal of each factor's columns, summing to one.

        The log is minus infinity if no combination is possible; the marginals are then zero.
        """
        tables, _, log_sum = self._upwards(factors)
        slopes: list[Floats] = [np.empty(0)] * len(factors)
        self._downwards(tables, slopes)
        return log_sum, [normal(factor * slope) for factor, slope in zip(factors, slopes, strict=True)]

    def calibrate(self, factors: Sequence[Floats]) -> Beliefs:
        """Return the messages of both directions."""
        tables, up, log_sum = self._upwards(factors)
        return Beliefs(up, self._downwards(tables, [np.empty(0)] * len(factors)), log_sum)

    def ones(self, node: Node) -> list[Floats]:
        """Return the vectors of a node's bare columns."""
        return [np.ones(self.sizes[column]) for column in node.bare]

    def _upwards(self, factors: Sequence[Floats]) -> tuple[list[list[Floats]], list[Floats], float]:
        count, log_sum = len(self.nodes), 0.0
        tables: list[list[Floats]] = [[] for _ in range(count)]
        up: list[Floats] = [np.empty(0)] * count
        for place in range(count - 1, -1, -1):
            node = self.nodes[place]
            tables[place] = [factors[f] for f in node.factors] + [up[child] for child in node.children]
            tables[place] += self.ones(node)
            up[place], scale = _scaled(node.program.forward(tables[place]))
            log_sum += math.log(scale) if scale > 0 else -math.inf
        return tables, up, log_sum

    def _downwards(self, tables: list[list[Floats]], slopes: list[Floats]) -> list[Floats]:
        down: list[Floats] = [np.ones(())] * len(self.nodes)
        for place, node in enumerate(self.nodes):
            by_table = node.program.backward(tables[place], down[place])
            for factor, slope in zip(node.factors, by_table, strict=False):
                slopes[factor] = slope
            for child, slope in zip(node.children, by_table[len(node.factors) :], strict=False):
                down[child] = _scaled(slope)[0]
        return down


def _held(sizes: tuple[int, ...], tree: JunctionTree, scopes: Sequence[Clique]) -> list[tuple[int, ...]]:
    """Give each factor to the smallest clique that has all its columns."""
    cells = [math.prod(sizes[column] for column in clique) for clique in tree.cliques]
    held: list[list[int]] = [[] for _ in tree.cliques]
    for factor, scope in enumerate(scopes):
        homes = [node for node, clique in enumerate(tree.cliques) if set(scope) <= set(clique)]
        held[min(homes, key=cells.__getitem__)].append(factor)
    return [tuple(factors) for factors in held]


def _scaled(table: Floats) -> tuple[Floats, float]:
    """Divide by the largest entry, and return it."""
    largest = float(table.max())
    return (table / largest, largest) if largest > 0 else (table, 0.0)


def normal(table: Floats) -> Floats:
    """Divide by the sum, if it is not zero."""
    total = float(table.sum())
    return table / total if total > 0 else table
