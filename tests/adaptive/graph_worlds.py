"""All labelled graphs of a few nodes, and what one edge can change in them, by definition."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator
from functools import cache
from itertools import combinations, permutations, product
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

Edge = tuple[int, int]
World = tuple[Edge, ...]
Count = Callable[[World], int]


def slots(nodes: int) -> list[Edge]:
    """All edges that there can be."""
    return list(combinations(range(nodes), 2))


@cache
def graphs(nodes: int) -> tuple[World, ...]:
    """All graphs; the bits of the place of each are its edges."""
    possible = slots(nodes)
    return tuple(
        tuple(edge for bit, edge in enumerate(possible) if mask >> bit & 1) for mask in range(1 << len(possible))
    )


def triangles(graph: World) -> int:
    edges = set(graph)
    found = sorted({node for edge in graph for node in edge})
    return sum({(a, b), (a, c), (b, c)} <= edges for a, b, c in combinations(found, 3))


def stars(leaves: int) -> Count:
    """Choose a node and that many of its edges, one by one."""

    def count(graph: World) -> int:
        nodes = {node for edge in graph for node in edge}
        return sum(1 for node in nodes for _ in combinations([edge for edge in graph if node in edge], leaves))

    return count


def at_distances(count: Count, nodes: int, last: int) -> NDArray[np.int64]:
    """For each distance up to the last, and each graph, the largest change by one edge in a graph so near."""
    places, bits = np.arange(len(graphs(nodes))), range(comb(nodes, 2))
    values = np.array([count(graph) for graph in graphs(nodes)])
    rows = [np.max([abs(values - values[places ^ (1 << bit)]) for bit in bits], axis=0)]
    while len(rows) <= last:
        rows.append(np.max([rows[-1], *(rows[-1][places ^ (1 << bit)] for bit in bits)], axis=0))
    return np.array(rows)


def node_removals(nodes: int) -> Iterator[tuple[World, World]]:
    """All graphs with each without the edges of each of its nodes: as good as without the node."""
    for node in range(nodes):
        for graph in graphs(nodes):
            yield graph, tuple(edge for edge in graph if node not in edge)


def node_replacements(nodes: int) -> Iterator[tuple[World, World]]:
    """All pairs of graphs that differ in edges of one node only."""
    for node in range(nodes):
        alike: defaultdict[World, list[World]] = defaultdict(list)
        for graph in graphs(nodes):
            alike[tuple(edge for edge in graph if node not in edge)].append(graph)
        for found in alike.values():
            yield from permutations(found, 2)


# A graph as records, one a node: its name and others that it names. Two nodes are joined if both are there and one
# names the other; so one record less is a node less with all its edges.
Record = tuple[int, tuple[int, ...]]


def joined(records: tuple[Any, ...]) -> World:
    """The graph of some records."""
    names = dict(records)
    return tuple((a, b) for a, b in combinations(sorted(names), 2) if a in names[b] or b in names[a])


def _naming(node: int, others: list[int]) -> list[Record]:
    return [(node, chosen) for many in range(len(others) + 1) for chosen in combinations(others, many)]


def records_of_some(nodes: int) -> list[tuple[Hashable, ...]]:
    """All graphs of some or all of the nodes, each node naming lower ones: all removals of a node are in there."""
    choices = [[None, *_naming(node, list(range(node)))] for node in range(nodes)]
    return [tuple(record for record in chosen if record is not None) for chosen in product(*choices)]


def records_of_all(nodes: int, first: int) -> list[tuple[Hashable, ...]]:
    """All graphs; the first node names all that it is joined to: all other edges of it are one record away."""
    order = [*(node for node in range(nodes) if node != first), first]
    return list(product(*(_naming(node, order[:place]) for place, node in enumerate(order))))
