"""Belief propagation: the marginals of a product of tables, on a junction tree.

The tables stay as they are given, factors over few columns; messages between the cliques of the tree are contracted
from them and the large tables of the cliques never exist. All numbers are kept in the linear domain, each message
scaled by its largest entry, so that sums are matrix products.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from discreet.synth.tables.graphical.contraction import ContractionPlan, Floats, plan
from discreet.synth.tables.graphical.junction import Clique, JunctionTree, junction_tree

__all__ = ["HALF_NEVER", "NEVER", "Beliefs", "FactorNetwork", "Node", "normal"]

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
