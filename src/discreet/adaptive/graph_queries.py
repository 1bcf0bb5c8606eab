"""Triangle and star counts of a graph under edge privacy, as queries with smooth sensitivity."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from math import comb
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.adaptive.smooth_query import RELATIVE_ERROR, Peak, clamped, tallest
from discreet.errors import InvalidParameter
from discreet.exact import integer, positive_integer
from discreet.formatting import record
from discreet.mechanisms.grid import Grid
from discreet.mechanisms.parameters import read_flag, settle
from discreet.privacy.relation import Relation

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = [
    "Edges",
    "Graph",
    "Nodes",
    "Ordered",
    "Staircase",
    "StarQuery",
    "TriangleQuery",
    "common_pairs",
    "graph_among",
    "graph_of",
    "heavy_pairs",
    "node_count",
    "ordered",
    "public_nodes",
    "read_nodes",
    "triangle_count",
]

# --- graph: Graphs whose edges are private: undirected, without loops, among public nodes. ---
#
# A record is one edge, and neighbours differ in one edge that is there or not: `Relation.ADD_REMOVE` with an edge as
# the
# unit. A person with k edges is protected as a group of k. [HLMJ09]


Nodes: TypeAlias = "int | Sequence[Hashable]"  # How many, named 0, 1, …; or their names.
Edges: TypeAlias = "Graph | NDArray[Any] | Iterable[tuple[Hashable, Hashable]]"

_MOST_NODES = 1 << 31  # Two of them fit one 64-bit key.


@final
@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """Edges among a public number of nodes, each at most once. It never prints its edges, nor how many there are.

    Args:
        size: The public number of nodes.
        ends: The private edges, one row each, as numbers of nodes, the lower first.
        public_order: Whether nodes are numbered in a public order; not so if a networkx graph was read.

    Raises:
        InvalidParameter: If an edge is a loop, is there twice, or names an unknown node.

    Examples:
        >>> dp.adaptive.Graph.of([(0, 1), (1, 2)], nodes=3)
        Graph(size=3)
    """

    size: int
    ends: NDArray[np.int64] = field(repr=False)  # One row an edge, as numbers of nodes, the lower first.
    public_order: bool = field(default=True, repr=False)

    __repr__ = record

    def __post_init__(self) -> None:
        size = _check_count(positive_integer(self.size, name="the number of nodes"))
        pairs = _whole_pairs(self.ends)
        if pairs.size and not (pairs.min() >= 0 and pairs.max() < size):
            raise InvalidParameter("an edge names an unknown node: the nodes are public, so name them all")
        sides = pairs.astype(np.int64)
        if (sides[:, 0] == sides[:, 1]).any():
            raise InvalidParameter("an edge joins a node to itself: leave loops out, or read by Graph.simplified")
        keys = np.unique(sides.min(axis=1) * size + sides.max(axis=1))
        if keys.size != len(sides):
            raise InvalidParameter("an edge is there twice: name each once, or read by Graph.simplified")
        public = read_flag(self.public_order, name="public_order")
        settle(self, size=size, ends=np.column_stack([keys // size, keys % size]), public_order=public)

    @classmethod
    def of(cls, edges: Edges, *, nodes: Nodes | None = None) -> Graph:
        """Read pairs of nodes, or a networkx graph, which names its nodes itself; refuse what is not a simple graph."""
        return graph_of(edges, read_nodes(public_nodes(edges, nodes)))

    @classmethod
    def simplified(cls, edges: Iterable[tuple[Hashable, Hashable]] | NDArray[Any], *, nodes: Nodes) -> Graph:
        """Read pairs of nodes, all that there are: loops and unknown nodes are left out, repeated edges counted once.

        A pair more or less then changes one edge at most, and no pair can make it refuse.
        """
        known = read_nodes(nodes)
        size = node_count(known)
        pairs = _whole_pairs(edges) if isinstance(known, int) else _numbered(edges, known)
        inside = (pairs >= 0) & (pairs < size)
        kept = pairs[inside.all(axis=1) & (pairs[:, 0] != pairs[:, 1])].astype(np.int64)
        return cls(size, np.unique(np.sort(kept, axis=1), axis=0))

    @property
    def degrees(self) -> NDArray[np.int64]:
        """The number of edges of each node. This is private."""
        return np.bincount(self.ends.ravel(), minlength=self.size)


def public_nodes(edges: Any, nodes: Nodes | None) -> Nodes:
    """Return the nodes that are named, or those that a graph brings along."""
    if nodes is not None:
        return nodes
    if isinstance(edges, Graph):
        return edges.size
    if _is_networkx(edges):
        names: tuple[Hashable, ...] = tuple(edges.nodes())
        return names
    raise InvalidParameter("say nodes=…, how many there are or their names: they are public, unlike the edges")


def read_nodes(nodes: Nodes) -> int | tuple[Hashable, ...]:
    """Read a number of nodes, or their distinct names."""
    if isinstance(nodes, (str, bytes)):
        raise InvalidParameter("nodes must be a number or a sequence of names, not one text")
    if not isinstance(nodes, Sequence):
        return _check_count(positive_integer(nodes, name="nodes"))
    try:
        named = tuple(nodes)
        distinct = len(set(named)) == len(named)
    except TypeError:
        raise InvalidParameter("the names of nodes must be hashable") from None
    if not named or not distinct:
        raise InvalidParameter("nodes must have distinct names, and there must be one at least")
    return named


def node_count(nodes: int | tuple[Hashable, ...]) -> int:
    """Return how many nodes there are."""
    return nodes if isinstance(nodes, int) else len(nodes)


def graph_of(edges: Edges, nodes: int | tuple[Hashable, ...]) -> Graph:
    """Read a graph with these public nodes."""
    if isinstance(edges, Graph):
        if edges.size != node_count(nodes):
            raise InvalidParameter("the graph does not have the declared number of nodes")
        return edges
    if _is_networkx(edges):
        return _from_networkx(edges, nodes)
    if isinstance(nodes, int):
        return Graph(nodes, _whole_pairs(edges))
    return Graph(len(nodes), _numbered(edges, nodes))


def graph_among(edges: Edges, nodes: int | tuple[Hashable, ...]) -> Graph:
    """Read the edges of a graph whose nodes are some of these; who of them is there without an edge is not looked at.

    Loops and edges to other nodes are left out, repeated edges counted once. One node may have brought them, so to
    refuse them would tell that it is there.
    """
    if isinstance(edges, Graph):
        return graph_of(edges, nodes)
    return Graph.simplified(list(_simple(edges).edges()) if _is_networkx(edges) else edges, nodes=nodes)


def _is_networkx(edges: Any) -> bool:
    """Tell a graph of networkx by what it can do, so that networkx need not be there."""
    return all(callable(getattr(edges, name, None)) for name in ("nodes", "edges", "is_directed", "is_multigraph"))


def _simple(graph: Any) -> Any:
    """Return a graph of networkx, if it is of a kind that can be read."""
    if graph.is_directed() or graph.is_multigraph():
        raise InvalidParameter("the graph must be undirected, with one edge at most between two nodes")
    return graph


def _from_networkx(graph: Any, nodes: int | tuple[Hashable, ...]) -> Graph:
    names = tuple(_simple(graph).nodes())
    same = len(names) == nodes if isinstance(nodes, int) else set(names) == set(nodes)
    if not same:
        raise InvalidParameter("the graph does not have the declared nodes")
    return Graph(len(names), _numbered(graph.edges(), names), public_order=False)


def _numbered(edges: Iterable[Any], names: tuple[Hashable, ...]) -> NDArray[np.int64]:
    """Number the nodes of each edge; one without a name becomes -1."""
    number = {name: place for place, name in enumerate(names)}
    table = edges.to_numpy() if hasattr(edges, "to_numpy") else edges
    try:
        pairs = [(number.get(one, -1), number.get(other, -1)) for one, other in table]
    except (TypeError, ValueError):
        raise InvalidParameter("edges must be pairs of names of nodes") from None
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def _whole_pairs(edges: Any) -> NDArray[Any]:
    """Read pairs of whole numbers of any width, or a table of them."""
    table = edges.to_numpy() if hasattr(edges, "to_numpy") else edges
    try:
        pairs = np.asarray(table if isinstance(table, np.ndarray) else list(table))
    except (TypeError, ValueError):
        raise InvalidParameter("edges must be pairs of nodes") from None
    if pairs.size == 0:
        return np.empty((0, 2), np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise InvalidParameter("edges must be pairs of whole numbers from 0, or name the nodes by nodes=[…]")
    return pairs


def _check_count(size: int) -> int:
    if size > _MOST_NODES:
        raise InvalidParameter("there may be 2^31 nodes at most")
    return size


# --- graph_pairs: What matters about all pairs of nodes of a graph, found without looking at all of them. ---
#
# For two nodes let a be the number of their common neighbours, and c the sum of their degrees, not counting an edge
# between them. A pair that another one exceeds in both can be passed over: only a staircase of pairs is left. All of
# this is private.


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


# --- graph_queries: Triangles and stars of a graph as queries whose noise may follow the data, for private edges. ---
#
# How many triangles one edge makes is private and small in most graphs, while in the worst one all nodes have it in
# common. The bounds here are the smooth sensitivities themselves.


_FINEST = 1 << 52  # Steps of a grid.
_MOST = 1 << 500  # Counts; a step beyond is one that no grid has.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TriangleQuery:
    """The number of triangles, three nodes that are all joined, if one edge comes or goes.

    Theorem     For nodes i and j let a be the number of their common neighbours and c the sum of their degrees, not
                counting an edge between them. An edge between them makes a triangles. One change elsewhere gives
                them one more common neighbour, if that is the neighbour of one of them already, of which there are
                c - 2 a; two changes always do. So at distance k the local sensitivity is the largest
                min(a + k, floor((c + k) / 2), n - 2). [NRS07, KRSY11]

    Args:
        nodes: The public nodes, as a number or by name.
        most: A public bound on the count; more are not counted.

    Examples:
        >>> dp.adaptive.TriangleQuery(nodes=100).global_sensitivity
        98
    """

    relation: ClassVar[Relation] = Relation.ADD_REMOVE
    relative_error: ClassVar[Fraction] = RELATIVE_ERROR
    value_error: ClassVar[Fraction] = Fraction(0)

    nodes: int | tuple[Hashable, ...]
    most: int | None = None  # A public bound: more triangles than that are not counted.

    __repr__ = record

    def __post_init__(self) -> None:
        _settle_nodes(self, self.nodes, least=3)
        settle(self, most=_read_most(self.most, comb(node_count(self.nodes), 3)))

    @property
    def grid(self) -> Grid:
        """Whole numbers, or multiples of a power of ten if there may be more than 2^52 of them."""
        return _grid(self.most or 0)

    @property
    def global_sensitivity(self) -> int:
        """The most triangles that one edge can make, or change once they are bounded."""
        return min(node_count(self.nodes) - 2, self.most or 0)

    def value(self, data: Edges) -> Fraction:
        """Return the number of triangles, in grid steps. This is private."""
        count = triangle_count(ordered(graph_of(data, self.nodes)))
        return clamped(count / self.grid.step, self.grid)

    def smooth_bound(self, data: Edges, beta: Fraction) -> Peak:
        """Return the smooth sensitivity, in grid steps. This is private."""
        pairs, largest = self._pairs(data), self.global_sensitivity
        # One edge can make a triangle once two others are there, so the smooth sensitivity is at least e^(-2 beta).
        least = max(float(pairs.first[0]), math.exp(-2 * float(beta)))
        last = min(2 * largest, max(0, math.ceil(math.log(largest / least) / float(beta))))
        distances = np.arange(last + 1)
        peak = tallest(_triangle_heights(pairs, distances, largest), distances, float(beta))
        return Peak(peak.height / self.grid.step, peak.distance)

    def local_sensitivity(self, data: Edges, distance: int = 0) -> Fraction:
        """Return the worst local sensitivity at a distance, in grid steps. This is private."""
        at = np.array([min(distance, 2 * node_count(self.nodes))])
        heights = _triangle_heights(self._pairs(data), at, self.global_sensitivity)
        return Fraction(int(heights[0])) / self.grid.step

    def _pairs(self, data: Edges) -> Staircase:
        return common_pairs(ordered(graph_of(data, self.nodes)))


def _triangle_heights(pairs: Staircase, distances: NDArray[np.int64], largest: int) -> NDArray[np.int64]:
    heights = np.zeros_like(distances)
    for a, c in zip(pairs.first.tolist(), pairs.second.tolist(), strict=True):
        np.maximum(heights, np.minimum(a + distances, (c + distances) // 2), out=heights)
    return np.minimum(heights, largest)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StarQuery:
    """The number of stars, a node with `leaves` of its neighbours, if one edge comes or goes.

    Theorem     Let d >= e be the degrees of two nodes, not counting an edge between them. Such an edge makes
                C(d, leaves - 1) + C(e, leaves - 1) stars. A change elsewhere raises d or e by one; both end at n - 2,
                and as binomials are convex, d comes first. The pair that matters has the largest d and d + e, or one
                of them. [KRSY11]

    Args:
        nodes: The public nodes, three at least, as a number or by name.
        leaves: How many neighbours a star has: at least 2, and fewer than there are nodes.
        most: A public bound on the count; more are not counted.

    Raises:
        InvalidParameter: If no node can have so many leaves.

    Examples:
        >>> query = dp.adaptive.StarQuery(nodes=100, leaves=2)
        >>> query.global_sensitivity
        196
        >>> recipe = dp.adaptive.polynomial(1, beta=0.1)
        >>> release = dp.adaptive.SmoothSensitivityMechanism(query=query, recipe=recipe).release([(0, 1), (1, 2)])
        >>> release.cost
        'ε = 1'
    """

    relation: ClassVar[Relation] = Relation.ADD_REMOVE
    relative_error: ClassVar[Fraction] = RELATIVE_ERROR
    value_error: ClassVar[Fraction] = Fraction(0)

    nodes: int | tuple[Hashable, ...]
    leaves: int
    most: int | None = None  # A public bound: more stars than that are not counted.

    __repr__ = record

    def __post_init__(self) -> None:
        _settle_nodes(self, self.nodes, least=3)
        size = node_count(self.nodes)
        if not 2 <= integer(self.leaves, name="leaves") < size:
            raise InvalidParameter(
                "leaves must be at least 2 (stars of one leaf are edges) and below the number of nodes"
            )
        settle(self, leaves=int(self.leaves))
        settle(self, most=_read_most(self.most, size * comb(size - 1, self.leaves)))

    @property
    def grid(self) -> Grid:
        """Whole numbers, or multiples of a power of ten if there may be more than 2^52 of them."""
        return _grid(self.most or 0)

    @property
    def global_sensitivity(self) -> int:
        """The most stars that one edge can make, or change once they are bounded."""
        return min(2 * comb(node_count(self.nodes) - 2, self.leaves - 1), self.most or 0)

    def value(self, data: Edges) -> Fraction:
        """Return the number of stars, in grid steps. This is private."""
        degrees, times = np.unique(graph_of(data, self.nodes).degrees, return_counts=True)
        pairs = zip(degrees.tolist(), times.tolist(), strict=True)
        count = sum(many * comb(degree, self.leaves) for degree, many in pairs)
        return clamped(count / self.grid.step, self.grid)

    def smooth_bound(self, data: Edges, beta: Fraction) -> Peak:
        """Return the smooth sensitivity, in grid steps. This is private."""
        pairs, decay = self._pairs(data), float(beta)
        full = math.log(self.global_sensitivity)
        best, highest, distance = Peak(Fraction(0), 0), -math.inf, 0
        while full - decay * distance > highest and distance <= 2 * node_count(self.nodes):
            peak = Peak(Fraction(self._height(pairs, distance)), distance)
            if (here := peak.logarithm(decay)) > highest:
                best, highest = peak, here
            distance += 1
        return Peak(best.height / self.grid.step, best.distance)

    def local_sensitivity(self, data: Edges, distance: int = 0) -> Fraction:
        """Return the worst local sensitivity at a distance, in grid steps. This is private."""
        return self._height(self._pairs(data), distance) / self.grid.step

    def _pairs(self, data: Edges) -> list[tuple[int, int]]:
        """Return the degrees (d, e) of the pairs that matter."""
        found = heavy_pairs(ordered(graph_of(data, self.nodes)))
        return [(d, c - d) for d, c in zip(found.first.tolist(), found.second.tolist(), strict=True)]

    def _height(self, pairs: list[tuple[int, int]], distance: int) -> int:
        largest, k = node_count(self.nodes) - 2, self.leaves - 1
        raised = [(min(d + distance, largest), max(0, d + distance - largest) + e) for d, e in pairs]
        return min(max(comb(d, k) + comb(min(e, largest), k) for d, e in raised), self.global_sensitivity)


def _settle_nodes(query: object, nodes: int | tuple[Hashable, ...], *, least: int) -> None:
    known = read_nodes(nodes)
    if node_count(known) < least:
        raise InvalidParameter(f"there must be {least} nodes at least")
    settle(query, nodes=known)


def _read_most(most: int | None, possible: int) -> int:
    """Read a public bound on a count, or take what is possible."""
    bound = possible if most is None else min(positive_integer(most, name="most"), possible)
    if bound > _MOST:
        raise InvalidParameter("the largest possible count exceeds every grid: give a public upper bound, most=…")
    return bound


@lru_cache(maxsize=64)
def _grid(most: int) -> Grid:
    step = 1
    while most > _FINEST * step:
        step *= 10
    return Grid.between(0, -(-most // step) * step, step=step, default=0)
