"""Graphs whose edges are private: undirected, without loops, among public nodes.

A record is one edge, and neighbours differ in one edge that is there or not: `Relation.ADD_REMOVE` with an edge as the
unit. A person with k edges is protected as a group of k. [HLMJ09]
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.exact import positive_integer
from discreet.mechanisms.parameters import settle

__all__ = ["Edges", "Graph", "Nodes", "graph_of", "node_count", "public_nodes", "read_nodes"]

Nodes: TypeAlias = "int | Sequence[Hashable]"  # How many, named 0, 1, …; or their names.
Edges: TypeAlias = "Graph | NDArray[Any] | Iterable[tuple[Hashable, Hashable]]"

_MOST_NODES = 1 << 31  # Two of them fit one 64-bit key.


@final
@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """Edges among a public number of nodes, each at most once. It never prints its edges, nor how many there are."""

    size: int
    ends: NDArray[np.int64] = field(repr=False)  # One row an edge, as numbers of nodes, the lower first.

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
        settle(self, size=size, ends=np.column_stack([keys // size, keys % size]))

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


def _is_networkx(edges: Any) -> bool:
    """Tell a graph of networkx by what it can do, so that networkx need not be there."""
    return all(callable(getattr(edges, name, None)) for name in ("nodes", "edges", "is_directed", "is_multigraph"))


def _from_networkx(graph: Any, nodes: int | tuple[Hashable, ...]) -> Graph:
    if graph.is_directed() or graph.is_multigraph():
        raise InvalidParameter("the graph must be undirected, with one edge at most between two nodes")
    names = tuple(graph.nodes())
    same = len(names) == nodes if isinstance(nodes, int) else set(names) == set(nodes)
    if not same:
        raise InvalidParameter("the graph does not have the declared nodes")
    return Graph(len(names), _numbered(graph.edges(), names))


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
