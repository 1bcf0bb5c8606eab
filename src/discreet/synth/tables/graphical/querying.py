"""Marginals of many cliques at once, whether or not the tree of the model has them.

A clique is put together at the lowest clique of the tree below which all its columns lie: from the chances of the
columns there, and, for columns further down, their chances given what a branch shares with it. Both are kept, since the
cliques that are asked for have most of them in common.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from discreet.synth.tables.graphical.contraction import Floats, plan
from discreet.synth.tables.graphical.junction import Clique, columns_of, mask_of
from discreet.synth.tables.graphical.network import Beliefs, FactorNetwork, normal

__all__ = ["Queries"]

_ROOM = 1 << 22  # Cells that may be kept in all; what does not fit is made again.
_LARGE = 1 << 21  # Cells of a table that is not worth making on the way.
_Table = tuple[Floats, Clique]


@dataclass(slots=True)
class _Shelf:
    """Tables that were made, by node and columns, as long as there is room."""

    held: dict[tuple[int, int], _Table] = field(default_factory=dict)
    room: int = _ROOM

    def put(self, key: tuple[int, int], made: _Table) -> _Table:
        """Keep a table if it fits."""
        if made[0].size <= self.room:
            self.held[key] = made
            self.room -= made[0].size
        return made


@dataclass(frozen=True, slots=True)
class Queries:
    """The factors of a model, its messages, and what was made of them.

    All tables sum to one, but where every product of factors is too small for a float: there they are zero.
    """

    network: FactorNetwork
    factors: Sequence[Floats]
    beliefs: Beliefs
    within: tuple[int, ...]  # By node: its columns, as bits,
    below: tuple[int, ...]  # and its columns and those of all nodes below.
    alone: _Shelf = field(default_factory=_Shelf)
    given: _Shelf = field(default_factory=_Shelf)

    @staticmethod
    def of(network: FactorNetwork, factors: Sequence[Floats]) -> Queries:
        """Run the messages in both directions."""
        within = tuple(mask_of(clique) for clique in network.tree.cliques)
        below = list(within)
        for node in range(len(below) - 1, 0, -1):
            below[network.tree.parents[node]] |= below[node]
        return Queries(network, factors, network.calibrate(factors), within, tuple(below))

    def marginal(self, clique: Clique) -> Floats:
        """Return the chances of a clique's cells, in the order of its columns."""
        wanted = mask_of(clique)
        node = max(node for node, columns in enumerate(self.below) if wanted & columns == wanted)
        if wanted & self.within[node] != wanted and self._largest(node, wanted) > max(_LARGE, self._cells(wanted)):
            return self._afresh(clique)
        table, scope = self._joined(node, wanted)
        return table.transpose([scope.index(column) for column in clique])

    def vanish(self) -> bool:
        """Tell whether some table of the tree is zero, so that no row can be drawn from it."""
        return not all(self.marginal(clique).any() for clique in self.network.tree.cliques)

    def _cells(self, columns: int) -> int:
        return math.prod(self.network.sizes[column] for column in columns_of(columns))

    def _largest(self, node: int, wanted: int) -> int:
        """Count the cells of the largest table that putting columns together in this tree would make."""
        local, largest = wanted & self.within[node], 0
        for child in self.network.nodes[node].children:
            further = wanted & self.below[child] & ~self.within[node]
            if further:
                shared = self.within[child] & self.within[node]
                local |= shared
                largest = max(largest, self._cells(shared | further), self._largest(child, shared | further))
        return max(largest, self._cells(local))

    def _afresh(self, clique: Clique) -> Floats:
        """Build a tree that has the clique: dearer than a look into this one, unless this one is wide."""
        rising = tuple(sorted(clique))
        network = FactorNetwork.of(self.network.sizes, [*self.network.scopes, rising])
        ones = np.ones([self.network.sizes[column] for column in rising])
        return network.run([*self.factors, ones])[1][-1].transpose([rising.index(column) for column in clique])

    def _joined(self, node: int, wanted: int) -> _Table:
        """Return the chances of columns that lie in a node or below it."""
        branches, local = [], wanted & self.within[node]
        for child in self.network.nodes[node].children:
            further = wanted & self.below[child] & ~self.within[node]
            if further:
                branches.append(self._given_shared(child, further))
                local |= self.within[child] & self.within[node]
        here = self._in_node(node, local)
        if not branches:
            return here
        return self._contracted([here, *branches], wanted)

    def _given_shared(self, child: int, wanted: int) -> _Table:
        """Return the chances of columns below, given what a node shares with its parent."""
        key = (child, wanted)
        if key in self.given.held:
            return self.given.held[key]
        shared = self.within[child] & self.within[self.network.tree.parents[child]]
        table, scope = self._joined(child, wanted | shared)
        order = sorted(range(len(scope)), key=lambda axis: not shared >> scope[axis] & 1)
        table = table.transpose(order)
        axes = tuple(range(shared.bit_count(), table.ndim))
        sums = table.sum(axis=axes, keepdims=True)
        given = np.divide(table, sums, out=np.zeros(table.shape), where=sums > 0)
        return self.given.put(key, (given, tuple(scope[axis] for axis in order)))

    def _in_node(self, node: int, wanted: int) -> _Table:
        """Return the chances of some columns of one node."""
        key = (node, wanted)
        if key in self.alone.held:
            return self.alone.held[key]
        held = self.network.nodes[node]
        tables = [(self.factors[factor], self.network.scopes[factor]) for factor in held.factors]
        tables += [(self.beliefs.up[child], self.network.nodes[child].program.scope) for child in held.children]
        tables += [(ones, (column,)) for ones, column in zip(self.network.ones(held), held.bare, strict=True)]
        if node > 0:
            tables.append((self.beliefs.down[node], held.program.scope))
        table, scope = self._contracted(tables, wanted)
        return self.alone.put(key, (normal(table), scope))

    def _contracted(self, tables: Sequence[_Table], wanted: int) -> _Table:
        program = plan(self.network.sizes, tuple(scope for _, scope in tables), frozenset(columns_of(wanted)))
        return program.forward([table for table, _ in tables]), program.scope
