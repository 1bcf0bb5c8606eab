"""Marginals of many cliques at once, whether or not the tree of the model has them.

A clique's columns are kept in the messages on the way up to the first clique of the tree below which all of them lie.
Cliques that share columns share messages, so each message with given columns kept is made once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from discreet.synth.tables.graphical.contraction import Floats, plan
from discreet.synth.tables.graphical.junction import Clique, mask_of
from discreet.synth.tables.graphical.network import Beliefs, Network

__all__ = ["Queries"]

_KEPT = 1 << 20  # Cells of a message above which it is made again rather than kept.
_Message = tuple[Floats, Clique]


@dataclass(frozen=True, slots=True)
class Queries:
    """The factors of a model, its messages, and those made since for cliques outside the tree."""

    network: Network
    factors: Sequence[Floats]
    beliefs: Beliefs
    below: tuple[int, ...]  # By node: the columns in it and all nodes below, as bits.
    made: dict[tuple[int, int], _Message] = field(default_factory=dict)

    @staticmethod
    def of(network: Network, factors: Sequence[Floats]) -> Queries:
        """Run the messages in both directions."""
        below = [mask_of(clique) for clique in network.tree.cliques]
        for node in range(len(below) - 1, 0, -1):
            below[network.tree.parents[node]] |= below[node]
        return Queries(network, factors, network.calibrate(factors), tuple(below))

    def marginal(self, clique: Clique) -> Floats:
        """Return the probabilities of a clique's cells, in the order of its columns."""
        wanted = mask_of(clique)
        node = self._lowest(wanted)
        tables, scopes = self._given(node, wanted)
        if node > 0:
            tables.append(self.beliefs.down[node])
            scopes.append(self.network.nodes[node].program.scope)
        program = plan(self.network.sizes, tuple(scopes), frozenset(clique))
        table = program.forward(tables).transpose([program.scope.index(column) for column in clique])
        return np.asarray(table / table.sum())

    def _lowest(self, wanted: int) -> int:
        """Find the smallest node that has the columns in it or below it."""
        return max(node for node, columns in enumerate(self.below) if wanted & columns == wanted)

    def _given(self, node: int, wanted: int) -> tuple[list[Floats], list[Clique]]:
        """List a node's factors and the messages of its children, with wanted columns kept."""
        held = self.network.nodes[node]
        tables = [self.factors[factor] for factor in held.factors]
        scopes = [self.network.scopes[factor] for factor in held.factors]
        for child in held.children:
            table, scope = self._message(child, wanted & self.below[child])
            tables.append(table)
            scopes.append(scope)
        return tables, scopes

    def _message(self, node: int, wanted: int) -> _Message:
        separator = mask_of(self.network.tree.separator(node))
        if wanted & ~separator == 0:
            return self.beliefs.up[node], self.network.nodes[node].program.scope
        key = (node, wanted & ~separator)
        if key not in self.made:
            message = self._sent(node, wanted & ~separator, separator)
            if message[0].size > _KEPT:
                return message
            self.made[key] = message
        return self.made[key]

    def _sent(self, node: int, wanted: int, separator: int) -> _Message:
        tables, scopes = self._given(node, wanted)
        kept = frozenset(column for column in range(len(self.network.sizes)) if (wanted | separator) >> column & 1)
        program = plan(self.network.sizes, tuple(scopes), kept)
        table = program.forward(tables)
        return table / max(float(table.max()), np.finfo(np.float64).tiny), program.scope
