"""Graphs with private edges: how they are read, and sensitivities equal to their definition on all small graphs."""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from itertools import combinations
from math import comb
from typing import Any

import graph_worlds
import numpy as np
import pandas as pd
import pytest
from contracts.mechanism_contract import NONSENSE
from graph_worlds import at_distances, graphs, slots
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import adaptive
from discreet.adaptive import Graph, StarQuery, TriangleQuery, check_smoothness, graph_queries
from discreet.adaptive.graph_queries import Staircase, common_pairs, heavy_pairs, ordered, triangle_count
from discreet.adaptive.graph_releases import DegreeHistogram
from discreet.adaptive.smooth_query import Peak
from discreet.balls import ball, precision
from discreet.errors import InvalidParameter
from discreet.lab import verify
from discreet.lab.verify.small_worlds import Worlds
from discreet.mechanisms.additive_noise import LaplaceNoise
from discreet.privacy.relation import Relation

QUERIES = [
    (graph_worlds.triangles, lambda nodes: TriangleQuery(nodes=nodes), 3),
    *((graph_worlds.stars(k), lambda nodes, k=k: StarQuery(nodes=nodes, leaves=k), k + 1) for k in (2, 3, 4)),
]
NAMES = ["triangles", "stars of 2", "stars of 3", "stars of 4"]
CASES = [
    pytest.param(count, make(nodes), nodes, id=f"{name}, {nodes} nodes")
    for (count, make, least), name in zip(QUERIES, NAMES, strict=True)
    for nodes in range(least, 6)
]
BETAS = [Fraction(1, 20), Fraction(3, 10), Fraction(2, 3), Fraction(2)]


def check_sensitivities(count: Any, query: Any, nodes: int, distances: Any) -> None:
    heights = at_distances(count, nodes, max(distances))
    for place, graph in enumerate(graphs(nodes)):
        assert query.value(graph) == count(graph)
        assert [query.local_sensitivity(graph, k) for k in distances] == [heights[k, place] for k in distances]


@pytest.mark.parametrize(("count", "query", "nodes"), CASES)
def test_sensitivities_equal_their_definition_on_all_graphs(count: Any, query: Any, nodes: int) -> None:
    check_sensitivities(count, query, nodes, range(6) if nodes < 5 else (0, 3))


@pytest.mark.slow
@pytest.mark.parametrize(("count", "query", "nodes"), CASES)
def test_sensitivities_equal_their_definition_at_all_distances(count: Any, query: Any, nodes: int) -> None:
    check_sensitivities(count, query, nodes, range(2 * nodes))  # By then every edge that matters may have changed.


@pytest.mark.parametrize(("count", "query", "nodes"), CASES)
def test_smooth_sensitivity_equals_its_definition_on_all_graphs(count: Any, query: Any, nodes: int) -> None:
    heights = at_distances(count, nodes, 2 * nodes)
    distinct, places = np.unique(heights, axis=1, return_index=True)
    for beta in BETAS:
        for column, place in zip(distinct.T.tolist(), places.tolist(), strict=True):
            peak = query.smooth_bound(graphs(nodes)[place], beta)
            assert peak.height == column[min(peak.distance, 2 * nodes)]
            with precision(128):
                room = ball(1 + query.relative_error)
                assert all(ball(a) * ball(-beta * k).exp() <= peak.enclose(beta) * room for k, a in enumerate(column))


@pytest.mark.long
@pytest.mark.parametrize(
    "query",
    [
        TriangleQuery(nodes=5),
        pytest.param(TriangleQuery(nodes=5, most=2), marks=pytest.mark.slow),
        pytest.param(StarQuery(nodes=5, leaves=3), marks=pytest.mark.slow),
        pytest.param(StarQuery(nodes=5, leaves=2, most=9), marks=pytest.mark.slow),
    ],
    ids=["triangles", "few triangles", "stars", "few stars"],
)
def test_the_bound_is_smooth_on_all_graphs_of_five_nodes(query: Any) -> None:
    found = check_smoothness(query, graphs(5), beta="0.3")
    assert found.holds
    assert found.pairs == 5 * 1024
    assert query.most == 2 or found.growth > 0.29  # As uneven as it may be.


@st.composite
def some_graphs(draw: st.DrawFn) -> Graph:
    nodes = draw(st.integers(3, 24))
    chosen = draw(st.lists(st.sampled_from(slots(nodes)), unique=True))
    hub = draw(st.booleans())
    edges = {*chosen, *((0, node) for node in range(1, nodes))} if hub else set(chosen)
    return Graph.of(edges, nodes=nodes)


def pairs_by_definition(graph: Graph) -> tuple[Staircase, Staircase]:
    """Look at all pairs of nodes: (a, c), and (the larger degree, c)."""
    near: list[set[int]] = [set() for _ in range(graph.size)]
    for u, v in graph.ends.tolist():
        near[u].add(v)
        near[v].add(u)
    rows = [(near[u] - {v}, near[v] - {u}) for u, v in combinations(range(graph.size), 2)]
    common = np.array([len(one & other) for one, other in rows])
    larger = np.array([max(len(one), len(other)) for one, other in rows])
    sums = np.array([len(one) + len(other) for one, other in rows])
    return Staircase.of(common, sums), Staircase.of(larger, sums)


def steps_of(found: Staircase) -> list[tuple[int, int]]:
    return list(zip(found.first.tolist(), found.second.tolist(), strict=True))


@pytest.mark.parametrize("limits", [None, (4, 16, 0), (1, 1, 10**9)], ids=["usual", "sparing", "row by row"])
@given(graph=some_graphs())
@settings(max_examples=40, deadline=None)
def test_the_search_finds_the_pairs_that_matter_for_all_graphs(limits: Any, graph: Graph) -> None:
    with pytest.MonkeyPatch.context() as patch:
        if limits is not None:
            for name, value in zip(("_FIRST_BLOCK", "_BLOCK", "_MANY"), limits, strict=True):
                patch.setattr(graph_queries, name, value)
        common, heavy = pairs_by_definition(graph)
        inner = ordered(graph)
        # The search may know the largest c with a smaller a: what matters is never beyond it.
        found = common_pairs(inner)
        assert [pair for pair in steps_of(found) if pair[0] > 0] == [pair for pair in steps_of(common) if pair[0] > 0]
        assert found.second[-1] == common.second[-1]
        assert steps_of(heavy_pairs(inner)) == steps_of(heavy)
        assert triangle_count(inner) == graph_worlds.triangles(tuple(map(tuple, graph.ends.tolist())))


def test_a_graph_of_a_hundred_thousand_edges_is_searched_by_its_hubs() -> None:
    """A windmill: 33,333 triangles that share one node, so that every two nodes have it in common."""
    blades = 33_333
    one, other = np.arange(1, 2 * blades, 2), np.arange(2, 2 * blades + 1, 2)
    hub = np.zeros_like(one)
    edges = np.concatenate([np.column_stack(pair) for pair in ((hub, one), (hub, other), (one, other))])
    query = TriangleQuery(nodes=2 * blades + 1)
    assert query.value(edges) == blades
    assert query.local_sensitivity(edges) == 1
    assert query.local_sensitivity(edges, 5) == 6
    stars = StarQuery(nodes=2 * blades + 1, leaves=2, most=10**12)
    assert stars.local_sensitivity(edges) == 2 * blades - 1 + 1


class FromElsewhere:
    """What this package knows of networkx."""

    def __init__(self, names: Any, edges: Any, *, directed: bool = False, multiple: bool = False) -> None:
        self._names, self._edges, self._directed, self._multiple = names, edges, directed, multiple

    def nodes(self) -> Any:
        return self._names

    def edges(self) -> Any:
        return iter(self._edges)

    def is_directed(self) -> bool:
        return self._directed

    def is_multigraph(self) -> bool:
        return self._multiple


FRIENDS = [("ann", "bob"), ("cy", "bob"), ("ann", "cy"), ("cy", "dee")]
NAMED = ["ann", "bob", "cy", "dee", "eve"]
NUMBERED = [(0, 1), (2, 1), (0, 2), (2, 3)]


@pytest.mark.parametrize(
    "graph",
    [
        Graph.of(NUMBERED, nodes=5),
        Graph.of(np.array(NUMBERED), nodes=5),
        Graph.of(np.array(NUMBERED, dtype=np.uint8), nodes=5),
        Graph.of(iter(NUMBERED), nodes=range(5)),
        Graph.of(pd.DataFrame(NUMBERED), nodes=5),
        Graph.of(pd.DataFrame(FRIENDS), nodes=NAMED),
        Graph.of(FRIENDS, nodes=NAMED),
        Graph.of(FromElsewhere(NAMED, FRIENDS)),
        Graph.of(FromElsewhere(NAMED, FRIENDS), nodes=5),
        Graph.of(Graph.of(NUMBERED, nodes=5)),
        Graph.simplified([*NUMBERED, (1, 0), (3, 3), (0, 7), (-1, 2)], nodes=5),
        Graph.simplified([*FRIENDS, ("bob", "ann"), ("dee", "dee"), ("ann", "fay")], nodes=NAMED),
    ],
    ids=lambda graph: "",
)
def test_one_graph_can_be_read_in_many_ways(graph: Graph) -> None:
    assert graph.size == 5
    assert graph.ends.tolist() == [[0, 1], [0, 2], [1, 2], [2, 3]]
    assert graph.degrees.tolist() == [2, 2, 3, 1, 0]
    assert repr(graph) == "Graph(size=5)"


@pytest.mark.parametrize(
    ("edges", "nodes", "says"),
    [
        ([(0, 0)], 5, "itself"),
        ([(0, 1), (1, 0)], 5, "twice"),
        ([(0, 5)], 5, "unknown"),
        ([(-1, 2)], 5, "unknown"),
        (np.array([[0, 2**64 - 1]], dtype=np.uint64), 5, "unknown"),
        ([("ann", "zoe")], NAMED, "unknown"),
        ([(0, 1, 2)], 5, "pairs"),
        ([(0.0, 1.0)], 5, "whole numbers"),
        ([(True, False)], 5, "whole numbers"),
        ([("a", "b")], 5, "whole numbers"),
        ([(0, float("nan"))], 5, "whole numbers"),
        ([([], [])], NAMED, "pairs"),
        ([0, 1], NAMED, "pairs"),
        (7, 5, "pairs"),
        ([(0, 1)], None, "nodes="),
        ([(0, 1)], 0, "at least 1"),
        ([(0, 1)], 2**31 + 1, "2\\^31"),
        ([(0, 1)], "ab", "text"),
        ([(0, 1)], [0, 0], "distinct"),
        ([(0, 1)], [], "one at least"),
        ([(0, 1)], [[0], [1]], "hashable"),
        (FromElsewhere(NAMED, FRIENDS, directed=True), None, "undirected"),
        (FromElsewhere(NAMED, FRIENDS, multiple=True), None, "one edge at most"),
        (FromElsewhere(NAMED, FRIENDS), 6, "declared nodes"),
        (FromElsewhere(NAMED, FRIENDS), NAMED[:4], "declared nodes"),
        (Graph.of([(0, 1)], nodes=3), 5, "declared number"),
    ],
)
def test_what_is_no_simple_graph_of_these_nodes_is_refused(edges: Any, nodes: Any, says: str) -> None:
    with pytest.raises(InvalidParameter, match=says) as caught:
        Graph.of(edges, nodes=nodes)
    assert not {"ann", "zoe", "bob"} & set(str(caught.value).split())


def test_one_pair_more_changes_one_edge_of_a_simplified_graph_at_most() -> None:
    offered = [(0, 1), (1, 0), (1, 1), (1, 2), (0, 9)]
    for many in range(4):
        for pairs in combinations(offered, many):
            before = set(map(tuple, Graph.simplified(pairs, nodes=3).ends.tolist()))
            for more in offered:
                after = set(map(tuple, Graph.simplified([*pairs, more], nodes=3).ends.tolist()))
                assert len(before ^ after) <= 1


@pytest.mark.parametrize(("at_least", "l1", "squared_l2"), [(False, 4, 8), (True, 2, 4)])
@pytest.mark.parametrize("largest", [1, 4])
def test_one_edge_moves_the_degrees_exactly_as_far_as_is_paid_for(
    at_least: bool, l1: int, squared_l2: int, largest: int
) -> None:
    histogram = DegreeHistogram(nodes=5, largest=largest, noise=LaplaceNoise(epsilon=Fraction(1)), at_least=at_least)
    small = Worlds(graphs(5), ordered=False)
    assert histogram.sensitivity.l1 == l1
    assert histogram.sensitivity.squared_l2 == squared_l2
    for distance, size in ((verify.l1, l1), (verify.squared_l2, squared_l2)):
        found = verify.sensitivity(histogram.counts, small, relation=Relation.ADD_REMOVE, distance=distance)
        assert found.value == size


def test_degrees_are_counted_by_bin_and_from_each_on() -> None:
    noise = LaplaceNoise(epsilon=Fraction(1))
    bins = DegreeHistogram(nodes=5, largest=2, noise=noise)
    upward = DegreeHistogram(nodes=5, largest=2, noise=noise, at_least=True)
    assert bins.counts(NUMBERED) == (1, 1, 3)
    assert bins.labels == ("0", "1", "2 or more")
    assert upward.counts(NUMBERED) == (4, 3)
    assert upward.labels == ("1 or more", "2 or more")


@pytest.mark.parametrize(
    "make",
    [
        lambda: TriangleQuery(nodes=2),
        lambda: TriangleQuery(nodes=5, most=0),
        lambda: StarQuery(nodes=5, leaves=1),
        lambda: StarQuery(nodes=5, leaves=5),
        lambda: StarQuery(nodes=5, leaves=2.0),
        lambda: StarQuery(nodes=10**6, leaves=100),
        lambda: DegreeHistogram(nodes=5, largest=0, noise=LaplaceNoise(epsilon=Fraction(1))),
        lambda: DegreeHistogram(nodes=5, largest=5, noise=LaplaceNoise(epsilon=Fraction(1))),
        lambda: DegreeHistogram(nodes=5, largest=2, noise=LaplaceNoise(epsilon=Fraction(1)), at_least="no"),
        lambda: adaptive.triangles(NUMBERED, nodes=5, epsilon=0),
        lambda: adaptive.triangles(NUMBERED, nodes=5, epsilon=1, expected=0),
        lambda: adaptive.triangles(NUMBERED, nodes=5, epsilon=1, delta=0),
        lambda: adaptive.triangles(NUMBERED, epsilon=1),
        lambda: adaptive.stars(NUMBERED, nodes=5, leaves=2, epsilon=float("nan")),
        lambda: adaptive.degree_histogram(NUMBERED, nodes=5, largest=2, epsilon=-1),
    ],
)
def test_nonsense_is_refused(make: Any) -> None:
    with pytest.raises(InvalidParameter):
        make()


@pytest.mark.parametrize("value", NONSENSE, ids=repr)
def test_nonsense_is_refused_in_every_number(value: Any) -> None:
    histogram = DegreeHistogram(nodes=5, largest=2, noise=LaplaceNoise(epsilon=Fraction(1)))
    for subject, names in (
        (TriangleQuery(nodes=5), ("nodes", "most")),
        (StarQuery(nodes=5, leaves=2), ("nodes", "leaves", "most")),
        (histogram, ("nodes", "largest", "at_least")),
    ):
        for name in names:
            if (name, value) in (("most", None), ("at_least", True)):
                continue
            with pytest.raises(InvalidParameter):
                dataclasses.replace(subject, **{name: value})


def test_a_bound_on_the_count_makes_the_grid_finer_and_cuts_the_count() -> None:
    many = 10**6
    assert TriangleQuery(nodes=many).grid.step == 100
    assert TriangleQuery(nodes=many).grid.high >= comb(many, 3)
    assert TriangleQuery(nodes=many, most=10**9).grid.step == 1
    assert TriangleQuery(nodes=4, most=2).value(slots(4)) == 2
    assert TriangleQuery(nodes=4, most=100).grid.high == 4
    assert StarQuery(nodes=many, leaves=200, most=10**6).local_sensitivity([(0, k) for k in range(1, 300)]) == 10**6
    assert [TriangleQuery(nodes=5, most=1).smooth_bound(slots(5), beta) for beta in BETAS] == [Peak(Fraction(1), 0)] * 4
    full = TriangleQuery(nodes=many)
    assert full.value([(0, 1), (1, 2), (0, 2)]) == Fraction(1, 100)
    assert full.local_sensitivity([(0, 1), (1, 2)]) == Fraction(1, 100)
