"""All labelled graphs of a few nodes, and what one edge can change in them, by definition."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import combinations
from math import comb

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
