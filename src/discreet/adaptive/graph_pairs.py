"""What matters about all pairs of nodes of a graph, found without looking at all of them.

For two nodes let a be the number of their common neighbours, and c the sum of their degrees, not counting an edge
between them. A pair that another one exceeds in both can be passed over: only a staircase of pairs is left. All of
this is private.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.adaptive.graph import Graph

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["Ordered", "Staircase", "common_pairs", "heavy_pairs", "ordered", "triangle_count"]

Ints: TypeAlias = NDArray[np.int64]

_FIRST_BLOCK = 1 << 17  # Paths of two edges; what they show lets most of the others be passed over.
_BLOCK = 1 << 23  # Paths that are looked at together; they must fit into memory.
_MANY = 1 << 27  # Paths; if there are more, nodes of high degree are looked up instead of walked through.


@final
@dataclass(frozen=True, slots=True, eq=False)
class Staircase:
    """Pairs of numbers of which none exceeds another one in both: the first fall, the second rise."""

    first: Ints
    second: Ints

    @classmethod
    def of(cls, first: Ints, second: Ints) -> Staircase:
        """Keep the pairs that no other one exceeds."""
        order = np.lexsort((-second, -first))
        one, other = first[order], second[order]
        highest = np.maximum.accumulate(other)
        new = np.concatenate([[True], other[1:] > highest[:-1]])
        return cls(one[new], other[new])

    def joined(self, first: Ints, second: Ints) -> Staircase:
        """Take in more pairs."""
        return Staircase.of(np.concatenate([self.first, first]), np.concatenate([self.second, second]))

    def best_second(self, least: Ints) -> Ints:
        """Return the largest second number of the pairs whose first one is at least so large; -1 without any."""
        upto = np.searchsorted(-self.first, -least, side="right")
        found: Ints = np.concatenate([[-1], self.second])[upto]
        return found


@final
@dataclass(frozen=True, slots=True, eq=False)
class Ordered:
    """A graph with its nodes numbered anew, those of highest degree first."""

    degrees: Ints  # falling
    keys: Ints  # u * n + v for each edge, in both directions, sorted
    matrix: csr_array[Any, tuple[int, int]]

    def joined(self, u: Ints, v: Ints) -> NDArray[np.bool_]:
        """Tell which pairs of nodes have an edge."""
        asked = u * self.degrees.size + v
        places = np.minimum(np.searchsorted(self.keys, asked), max(self.keys.size - 1, 0))
        found: NDArray[np.bool_] = self.keys[places] == asked if self.keys.size else np.zeros(u.size, np.bool_)
        return found


def ordered(graph: Graph) -> Ordered:
    """Number the nodes by falling degree."""
    degrees, n = graph.degrees, graph.size
    order = np.argsort(-degrees, kind="stable")
    number = np.empty(n, np.int64)
    number[order] = np.arange(n)
    ends = number[graph.ends]
    keys = np.sort(np.concatenate([ends[:, 0] * n + ends[:, 1], ends[:, 1] * n + ends[:, 0]]))
    return Ordered(degrees[order], keys, _matrix(degrees[order], keys % n))


def heavy_pairs(graph: Ordered) -> Staircase:
    """Return the staircase of (d, c): the larger degree of two nodes, without an edge between them, and c.

    For each node only the neighbour and the other node of highest degree can be on it.
    """
    degrees, n = graph.degrees, graph.degrees.size
    here = np.flatnonzero(degrees > 0)
    nearest = graph.matrix.indices[graph.matrix.indptr[here]]
    strangers = _first_strangers(graph)
    apart = np.flatnonzero(strangers < n)
    other = strangers[apart]
    first = [np.maximum(degrees[here], degrees[nearest]) - 1, np.maximum(degrees[apart], degrees[other])]
    second = [degrees[here] + degrees[nearest] - 2, degrees[apart] + degrees[other]]
    return Staircase.of(np.concatenate(first), np.concatenate(second))


def _first_strangers(graph: Ordered) -> Ints:
    """Return for each node the first other one that it has no edge to; n if there is none."""
    n = graph.degrees.size
    with_self = np.sort(np.concatenate([graph.keys, np.arange(n) * (n + 1)]))
    lengths = graph.degrees + 1
    starts = np.cumsum(lengths) - lengths
    places = np.arange(with_self.size) - np.repeat(starts, lengths)
    # A sorted list of numbers that begins 0, 1, … misses the first place that does not hold its own number.
    missed = np.where(with_self % n == places, np.repeat(lengths, lengths), places)
    found: Ints = np.minimum.reduceat(missed, starts)
    return found


def common_pairs(graph: Ordered) -> Staircase:
    """Return the staircase of (a, c).

    A pair counts for the node of higher degree d. It has a <= d and c <= 2 d; so the search ends with the first node
    whose pairs are all below the staircase, and before, those with too few common neighbours need not be found.
    """
    degrees = graph.degrees
    # The largest c, with a 0 that is not above its a: that is all that pairs without common neighbours can add.
    found = Staircase.of(np.zeros(1, np.int64), heavy_pairs(graph).second[-1:])
    paths = graph.matrix @ degrees
    sparing = int(paths.sum()) > _MANY
    for block in _blocks(paths, first=_FIRST_BLOCK):
        top = int(degrees[block.start])
        best = found.best_second(np.arange(top + 1))  # by a
        if best[top] >= 2 * top:
            break
        passed = max(0, int((best >= 2 * top).sum()) - 1) if sparing else 0
        found = found.joined(*_new_pairs(graph, block, best, passed))
    return found


def _new_pairs(graph: Ordered, block: slice, best: Ints, passed: int) -> tuple[Ints, Ints]:
    """Return (a, c) of pairs of a block of nodes with later ones, if a is above `passed` and c above the best for a.

    Two nodes with so many common neighbours are joined by a path through one that is not among the first of them.
    """
    paths = (_without_first(graph.matrix[block], passed) @ graph.matrix).tocoo()
    u, v, common = _later(paths.row.astype(np.int64) + block.start, paths.col, paths.data)
    sums = graph.degrees[u] + graph.degrees[v]
    hopeful = sums > best[np.minimum(common + passed, graph.degrees[v])]
    u, v, common, sums = u[hopeful], v[hopeful], common[hopeful], sums[hopeful]
    if passed:
        common = _common_neighbours(graph, u, v)
    return common, sums - 2 * graph.joined(u, v)


def _later(u: Ints, v: Ints, common: Ints) -> tuple[Ints, Ints, Ints]:
    """Keep the pairs whose second node comes later."""
    later = v > u
    return u[later], v[later].astype(np.int64), common[later]


def _without_first(rows: Any, passed: int) -> Any:
    """Leave out the first entries of each row."""
    from scipy.sparse import csr_array

    lengths = np.diff(rows.indptr)
    places = np.arange(rows.indices.size) - np.repeat(rows.indptr[:-1], lengths)
    kept = places >= passed
    starts = np.concatenate([[0], np.cumsum(np.maximum(lengths - passed, 0))])
    return csr_array((rows.data[kept], rows.indices[kept], starts), shape=rows.shape)


def _common_neighbours(graph: Ordered, u: Ints, v: Ints) -> Ints:
    """Count the common neighbours of some pairs of nodes."""
    matrix = graph.matrix
    blocks = _blocks(graph.degrees[u] + graph.degrees[v])
    counts = [np.asarray(matrix[u[part]].multiply(matrix[v[part]]).sum(axis=1)).ravel() for part in blocks]
    return np.concatenate(counts) if counts else np.empty(0, np.int64)


def triangle_count(graph: Ordered) -> int:
    """Count the triangles: paths of two edges toward nodes of higher degree whose ends are joined."""
    n = graph.degrees.size
    later, earlier = graph.keys // n, graph.keys % n
    down = earlier < later
    toward = _matrix(np.bincount(later[down], minlength=n), earlier[down])
    paths = toward @ np.diff(toward.indptr).astype(np.int64)
    return sum(int((toward[part] @ toward).multiply(toward[part]).sum()) for part in _blocks(paths))


def _matrix(lengths: Ints, columns: Ints) -> csr_array[Any, tuple[int, int]]:
    """Return ones in the given columns of each row."""
    from scipy.sparse import csr_array

    starts = np.concatenate([[0], np.cumsum(lengths)])
    return csr_array((np.ones(columns.size, np.int64), columns, starts), shape=(lengths.size, lengths.size))


def _blocks(costs: Ints, *, first: int = _BLOCK) -> Iterator[slice]:
    """Cut a row of things into pieces that cost `first` and then more, up to a limit; or hold one thing only."""
    upto = np.cumsum(costs)
    start, limit = 0, first
    while start < costs.size:
        spent = upto[start - 1] if start else 0
        end = max(start + 1, int(np.searchsorted(upto, spent + limit, side="right")))
        yield slice(start, end)
        start, limit = end, min(2 * limit, _BLOCK)
