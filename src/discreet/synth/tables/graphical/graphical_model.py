"""A graphical model: a product of small tables, its marginals of any clique, and rows drawn from it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.exact import positive_integer
from discreet.noise import permutation, uniform
from discreet.synth.tables.graphical.belief_propagation import (
    HALF_NEVER,
    NEVER,
    Beliefs,
    Clique,
    FactorNetwork,
    Floats,
    columns_of,
    mask_of,
    normal,
    plan,
)

__all__ = ["Graphical", "Queries", "draw", "rounded"]

# --- querying: Marginals of many cliques at once, whether or not the tree of the model has them. ---
#
# A clique is put together at the lowest clique of the tree below which all its columns lie: from the chances of the
# columns there, and, for columns further down, their chances given what a branch shares with it. Both are kept, since
# the
# cliques that are asked for have most of them in common.


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


# --- model: A distribution over the rows of a table that is a product of small tables: a graphical model. ---


@final
@dataclass(frozen=True, eq=False)
class Graphical:
    """Counts proportional to the exponential of a sum of potentials, one table for each clique of columns."""

    sizes: tuple[int, ...]  # Cells of each column.
    cliques: tuple[Clique, ...]  # With rising columns; every column is in one.
    total: float  # Rows that the counts sum to.
    potentials: tuple[Floats, ...]  # Finite; impossible cells have about -1e9.

    def __post_init__(self) -> None:
        if {column for clique in self.cliques for column in clique} != set(range(len(self.sizes))):
            raise InvalidParameter("the cliques of a model must have all of its columns and no other")
        for clique, table in zip(self.cliques, self.potentials, strict=True):
            if list(clique) != sorted(set(clique)) or table.shape != tuple(self.sizes[column] for column in clique):
                raise InvalidParameter("each clique needs rising columns and a table of potentials of their sizes")
            if not np.isfinite(table).all():
                raise InvalidParameter("the potentials of a model must be finite")
        if not (math.isfinite(self.total) and self.total > 0):
            raise InvalidParameter("the total of a model must be positive and finite")

    def marginal(self, clique: Sequence[int]) -> Floats:
        """Return the expected counts of a clique's cells, in the order of its columns."""
        columns = tuple(clique)
        if len(set(columns)) < len(columns) or not set(columns) <= set(range(len(self.sizes))):
            raise InvalidParameter("a clique must name different columns of the model")
        return np.ascontiguousarray(self._queries.marginal(columns) * self.total)

    def marginals(self, cliques: Iterable[Sequence[int]]) -> list[Floats]:
        """Return the expected counts of many cliques; they share what they have in common."""
        return [self.marginal(clique) for clique in cliques]

    def sample(self, rows: int) -> NDArray[np.int32]:
        """Draw rows of codes whose counts are the expected ones, rounded at random."""
        return draw(self._queries, positive_integer(rows, name="rows"))

    def given(self, weights: Mapping[int, Floats]) -> Graphical | None:
        """Return the law of the rows that are kept with a chance for each value of some columns; None if none is.

        Its total is that of the rows kept. Exact: the conditional law of a product of tables is the product with one
        vector more for each column. [KF09]
        """
        tables = [table.copy() for table in self.potentials]
        for column, chances in weights.items():
            kept = np.where(chances > 0, np.log(np.maximum(chances, np.finfo(float).tiny)), 0.0)
            for place, clique in enumerate(self.cliques):
                if column in clique:
                    shape = [self.sizes[column] if axis == column else 1 for axis in clique]
                    tables[place] += np.where(chances > 0, kept, NEVER).reshape(shape)
                    kept = np.zeros_like(kept)  # Said once; what is excluded is excluded wherever it stands.
        found = Graphical(self.sizes, self.cliques, self.total, tuple(tables))
        if not found.can_be_sampled():
            return None
        mass = math.exp(min(0.0, found._log_sum - self._log_sum))
        return replace(found, total=max(self.total * mass, np.finfo(float).tiny))

    def can_be_sampled(self) -> bool:
        """Tell whether there is a row to draw: potentials can be so far apart that all their products vanish."""
        try:
            return not self._queries.vanish()
        except InvalidParameter:
            return False

    @property
    def _log_sum(self) -> float:
        """The logarithm of the sum of all products."""
        return self._queries.beliefs.log_sum + math.fsum(float(table.max()) for table in self.potentials)

    @cached_property
    def _queries(self) -> Queries:
        if min(float(table.max()) for table in self.potentials) < HALF_NEVER:
            raise InvalidParameter("the potentials of a model exclude every row")
        factors = [np.exp(table - table.max()) for table in self.potentials]
        queries = Queries.of(FactorNetwork.of(self.sizes, self.cliques), factors)
        if not math.isfinite(queries.beliefs.log_sum):
            raise InvalidParameter("the potentials of a model exclude every row")
        return queries


# --- sampling: Rows whose counts follow a model as nearly as whole numbers can: expected counts, rounded at random. ---
#
# The columns of one clique of the tree after the other are drawn, given those that its parent has drawn. Within each
# group of rows that are equal so far, the expected count of every new value is rounded down or up, so that the sum is
# that of the group and the mean over all chances is what was expected; then the values are dealt to the rows at random.


_PIECE = 1 << 22  # Cells of conditional distributions to hold at a time.


def draw(queries: Queries, rows: int) -> NDArray[np.int32]:
    """Draw rows of codes."""
    sizes, tree = queries.network.sizes, queries.network.tree
    codes = np.zeros((rows, len(sizes)), dtype=np.int32)
    for node, clique in enumerate(tree.cliques):
        given = tree.separator(node)
        new = tuple(column for column in clique if column not in given)
        shape = [sizes[column] for column in new]
        chances = queries.marginal(given + new).reshape(-1, int(np.prod(shape)))
        drawn = _given_groups(chances, _flat(codes, given, sizes))
        for column, values in zip(new, np.unravel_index(drawn, shape), strict=True):
            codes[:, column] = values
    return codes


def _flat(codes: NDArray[np.int32], columns: Clique, sizes: tuple[int, ...]) -> NDArray[np.int64]:
    """Number the groups of rows that are equal in some columns."""
    if not columns:
        return np.zeros(len(codes), dtype=np.int64)
    return np.ravel_multi_index([codes[:, column] for column in columns], [sizes[column] for column in columns])


def _given_groups(chances: Floats, groups: NDArray[np.int64]) -> NDArray[np.int64]:
    """Draw a cell for each row, from the line of chances that its group has."""
    shuffled = permutation(len(groups))
    order = shuffled[np.argsort(groups[shuffled], kind="stable")]
    present, counts = np.unique(groups, return_counts=True)
    drawn = np.empty(len(groups), dtype=np.int64)
    piece, start = max(1, _PIECE // chances.shape[1]), 0
    for first in range(0, len(present), piece):
        lines, sizes = present[first : first + piece], counts[first : first + piece]
        whole = rounded(chances[lines], sizes)
        stop = start + int(sizes.sum())
        drawn[order[start:stop]] = np.repeat(np.tile(np.arange(whole.shape[1]), len(lines)), whole.ravel())
        start = stop
    return drawn


def rounded(weights: Floats, totals: NDArray[np.int64]) -> NDArray[np.int64]:
    """Round each line of weights, scaled to its total, to whole numbers of that total.

    Theorem     With u uniform on [0, 1) and running sums s, the numbers floor(s_k + u) - floor(s_(k-1) + u) are the
                expected ones rounded down or up, and their means are the expected ones: systematic sampling. [MM44]
    """
    running = np.cumsum(weights, axis=1)
    last = running[:, -1:]
    running *= np.divide(totals[:, None], last, out=np.zeros_like(last), where=last > 0)
    running += (uniform(1 << 53, len(totals)) / float(1 << 53))[:, None]
    steps = np.floor(running).astype(np.int64)
    steps[:, -1] = totals  # The exact sum; rounding of floats must not lose a row.
    np.minimum(steps, totals[:, None], out=steps)
    return np.diff(steps, axis=1, prepend=0)
