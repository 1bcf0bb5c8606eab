"""Triangles and stars of a graph as queries whose noise may follow the data, for private edges.

How many triangles one edge makes is private and small in most graphs, while in the worst one all nodes have it in
common. The bounds here are the smooth sensitivities themselves.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import comb
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from discreet.adaptive.exponential_maximum import RELATIVE_ERROR, Peak, tallest
from discreet.adaptive.graph import Edges, graph_of, node_count, read_nodes
from discreet.adaptive.graph_pairs import Staircase, common_pairs, heavy_pairs, ordered, triangle_count
from discreet.adaptive.smooth_query import clamped
from discreet.errors import InvalidParameter
from discreet.exact import integer, positive_integer
from discreet.mechanisms.fields import settle
from discreet.mechanisms.grid import Grid
from discreet.privacy.relation import Relation

__all__ = ["StarQuery", "TriangleQuery"]

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
    """

    relation: ClassVar[Relation] = Relation.ADD_REMOVE
    relative_error: ClassVar[Fraction] = RELATIVE_ERROR
    value_error: ClassVar[Fraction] = Fraction(0)

    nodes: int | tuple[Hashable, ...]
    most: int | None = None  # A public bound: more triangles than that are not counted.

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
    """

    relation: ClassVar[Relation] = Relation.ADD_REMOVE
    relative_error: ClassVar[Fraction] = RELATIVE_ERROR
    value_error: ClassVar[Fraction] = Fraction(0)

    nodes: int | tuple[Hashable, ...]
    leaves: int
    most: int | None = None  # A public bound: more stars than that are not counted.

    def __post_init__(self) -> None:
        _settle_nodes(self, self.nodes, least=3)
        size = node_count(self.nodes)
        if not 2 <= integer(self.leaves, name="leaves") < size:
            raise InvalidParameter("leaves must be at least 2 (stars of one leaf are edges) and below the nodes")
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
        raise InvalidParameter("there may be too many of these for any grid: name a public bound by most=…")
    return bound


@lru_cache(maxsize=64)
def _grid(most: int) -> Grid:
    step = 1
    while most > _FINEST * step:
        step *= 10
    return Grid.between(0, -(-most // step) * step, step=step, default=0)
