"""Counts that protect a whole node: sensitivities by brute force over all small graphs, and wrong ways found out."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

import pytest
from contracts.mechanism_contract import NONSENSE
from graph_worlds import (
    World,
    graphs,
    joined,
    node_removals,
    node_replacements,
    records_of_all,
    records_of_some,
)
from statistical import expected_p_value, fits, rejects

import discreet as dp
from discreet import adaptive
from discreet.adaptive import Graph
from discreet.adaptive.node_private_graphs import NodePrivateCounts, kept_edges
from discreet.errors import AnswerFailed, BudgetExceeded, DiscreetError, InvalidParameter
from discreet.lab import verify
from discreet.lab.verify.small_worlds import Worlds
from discreet.mechanisms.additive_noise import GaussianNoise, LaplaceNoise
from discreet.mechanisms.measurement import BoundedQuery, Measurement
from discreet.privacy.events import Event
from discreet.privacy.outcomes import Outcomes
from discreet.privacy.relation import Relation

ADD_REMOVE, REPLACE_ONE = Relation.ADD_REMOVE, Relation.REPLACE_ONE
PAIRS = {ADD_REMOVE: node_removals, REPLACE_ONE: node_replacements}
LOUD = LaplaceNoise(epsilon=Fraction(4))
Kept = Callable[[World, int], list[tuple[int, int]]]


def counts(nodes: Any, cap: Any, relation: Any = ADD_REMOVE, **more: Any) -> NodePrivateCounts:
    return NodePrivateCounts(nodes=nodes, cap=cap, relation=relation, **{"noise": LOUD, **more})


def largest_changes(count: Callable[[World], tuple[int, ...]], nodes: int, relation: Relation) -> tuple[int, int]:
    """The largest change in l1 and in squared l2 over all pairs of graphs that differ in one node."""
    values = {graph: count(graph) for graph in graphs(nodes)}
    moves = {
        tuple(a - b for a, b in zip(values[one], values[other], strict=True)) for one, other in PAIRS[relation](nodes)
    }
    return max(sum(map(abs, move)) for move in moves), max(sum(part * part for part in move) for move in moves)


SIZES = [(nodes, cap) for nodes in (2, 3, 4, 5) for cap in range(1, nodes)]


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize(("nodes", "cap"), SIZES)
def test_a_node_moves_the_number_of_edges_by_exactly_the_cap(nodes: int, cap: int, relation: Relation) -> None:
    mechanism = counts(nodes, cap, relation)
    found = largest_changes(mechanism.counts, nodes, relation)
    assert found == (mechanism.sensitivity.l1, mechanism.sensitivity.squared_l2) == (cap, cap * cap)


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize(("nodes", "cap"), SIZES)
def test_a_node_moves_degrees_no_further_than_is_paid_for(nodes: int, cap: int, relation: Relation) -> None:
    mechanism = counts(nodes, cap, relation, by_degree=True)
    l1, squared = largest_changes(mechanism.counts, nodes, relation)
    assert l1 == mechanism.sensitivity.l1 == 2 * cap
    assert squared <= mechanism.sensitivity.squared_l2
    if relation is ADD_REMOVE or cap == 1 or (nodes, cap) == (5, 2):  # 4 D² needs room for two nodes' worth of edges.
        assert squared == mechanism.sensitivity.squared_l2


@pytest.mark.parametrize(("nodes", "cap"), SIZES)
def test_a_node_more_never_takes_edges_away(nodes: int, cap: int) -> None:
    values = {graph: counts(nodes, cap).counts(graph) for graph in graphs(nodes)}
    assert all(values[larger] >= values[smaller] for larger, smaller in node_removals(nodes))


def degrees(edges: Any, nodes: int = 5) -> list[int]:
    return [sum(node in edge for edge in edges) for node in range(nodes)]


def without_nodes_above_the_cap(graph: World, cap: int) -> list[tuple[int, int]]:
    """Naive truncation: nodes of too high a degree go, with all their edges."""
    have = degrees(graph)
    return [(a, b) for a, b in graph if have[a] <= cap and have[b] <= cap]


def room_at_one_end(graph: World, cap: int) -> list[tuple[int, int]]:
    """Edges are added while one of their ends has room."""
    have, kept = [0] * 5, []
    for a, b in graph:
        if have[a] < cap or have[b] < cap:
            have[a], have[b] = have[a] + 1, have[b] + 1
            kept.append((a, b))
    return kept


WRONG: dict[str, Kept] = {
    "naive truncation": without_nodes_above_the_cap,
    "room at one end": room_at_one_end,
}


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("cap", [1, 2])
@pytest.mark.parametrize("name", WRONG)
def test_wrong_ways_to_cap_degrees_are_found_out(name: str, cap: int, relation: Relation) -> None:
    keep = WRONG[name]
    found, _ = largest_changes(lambda graph: (len(keep(graph, cap)),), 5, relation)
    assert found > counts(5, cap, relation).sensitivity.l1


def test_a_cap_keeps_all_of_what_it_allows_and_half_of_the_best_choice() -> None:
    for graph in graphs(4):
        for cap in (1, 2, 3):
            kept = set(map(tuple, kept_edges(Graph.of(graph, nodes=4), cap).tolist()))
            assert kept <= set(graph)
            assert max(degrees(kept)) <= cap
            if max(degrees(graph)) <= cap:
                assert kept == set(graph)
            choices = (some for many in range(len(graph) + 1) for some in combinations(graph, many))
            best = max(len(some) for some in choices if max(degrees(some)) <= cap)
            assert 2 * len(kept) >= best


def small_worlds(relation: Relation, nodes: int) -> list[Worlds]:
    if relation is ADD_REMOVE:
        return [Worlds(tuple(records_of_some(nodes)), ordered=False)]
    return [Worlds(tuple(records_of_all(nodes, node)), ordered=False) for node in range(nodes)]


@pytest.mark.parametrize("relation", Relation)
def test_records_of_a_small_world_are_all_graphs_and_all_neighbours(relation: Relation) -> None:
    pairs = set()
    for world in small_worlds(relation, 4):
        rows = [joined(row) for row in world]
        assert set(rows) == set(graphs(4))
        pairs |= {(rows[a], rows[b]) for a, b in verify.small_worlds.neighbours(world, relation)}
    assert pairs >= {pair for pair in PAIRS[relation](4) if pair[0] != pair[1]}


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("noise", [LOUD, GaussianNoise.for_epsilon(2, "1e-3")])
def test_edges_keep_their_claim_on_all_graphs_of_four_nodes(noise: Any, relation: Relation) -> None:
    for cap in (1, 2):
        mechanism = counts(4, cap, relation, noise=noise)
        for world in small_worlds(relation, 4):
            result = verify.check(mechanism, world, query=joined)
            assert result.holds, str(result)


@pytest.mark.parametrize("relation", Relation)
def test_degrees_keep_their_claim_on_all_graphs_of_three_nodes(relation: Relation) -> None:
    mechanism = counts(3, 2, relation, by_degree=True, noise=LaplaceNoise(epsilon=Fraction(8)))
    for world in small_worlds(relation, 3):
        result = verify.check(mechanism, world, query=joined)
        assert result.holds, str(result)


@dataclass(frozen=True)
class Truncated:
    """The number of edges by naive truncation, priced as if a node could move it by the cap only."""

    cap: int
    relation: Relation

    @property
    def measurement(self) -> Measurement:
        def evaluate(graph: World) -> tuple[int, ...]:
            return (len(without_nodes_above_the_cap(graph, self.cap)),)

        paid = counts(5, self.cap, self.relation).sensitivity
        query = BoundedQuery(evaluate=evaluate, sensitivity=paid, relation=self.relation)
        return Measurement(query=query, noise=LOUD)

    @property
    def event(self) -> Event:
        return self.measurement.event

    def distribution(self, data: Any) -> Outcomes:
        return self.measurement.distribution(data)


@pytest.mark.parametrize("relation", Relation)
def test_verification_refutes_naive_truncation(relation: Relation) -> None:
    results = [verify.check(Truncated(2, relation), world, query=joined) for world in small_worlds(relation, 4)]
    assert any(result.violated and result.lower > 1.4 * result.claimed for result in results)


class Network:
    """What this package knows of networkx, with nodes that may not be asked for."""

    def __init__(self, *edges: tuple[str, str], directed: bool = False) -> None:
        self._edges, self._directed = edges, directed

    def nodes(self) -> Any:
        raise AssertionError("who is in the graph is private")

    def edges(self) -> Any:
        return iter(self._edges)

    def is_directed(self) -> bool:
        return self._directed

    def is_multigraph(self) -> bool:
        return False


def test_a_graph_is_read_without_asking_who_is_in_it() -> None:
    names = ("ann", "bob", "cy", "dee")
    mechanism = counts(names, 2)
    assert mechanism.counts(Network(("cy", "bob"), ("bob", "ann"))) == (2,)
    assert mechanism.counts([("dee", "ann"), ("dee", "bob"), ("dee", "cy")]) == (2,)
    assert counts(4, 2, by_degree=True).counts([(3, 0), (3, 1), (3, 2)]) == (3, 1)
    assert counts(4, 2).counts([]) == (0,)
    with pytest.raises(InvalidParameter, match="undirected"):
        mechanism.counts(Network(("ann", "bob"), directed=True))
    for wanted in (adaptive.node_private_edges, adaptive.node_private_degrees):
        with pytest.raises(InvalidParameter, match="nodes="):
            wanted(Network(("ann", "bob")), cap=1, epsilon=1, relation=ADD_REMOVE)
        assert wanted(Graph.of([(0, 1)], nodes=5), cap=1, epsilon=1, relation="replace-one").relation is REPLACE_ONE


class Ordered(Network):
    """A graph that has its nodes in the order in which edges brought them, as networkx does."""

    def nodes(self) -> Any:
        return list(dict.fromkeys(name for edge in self._edges for name in edge))


def test_a_graph_in_an_order_that_follows_from_edges_is_refused() -> None:
    """One node more can turn that order round, and then many edges are kept or not."""
    rest = [pair for i in range(20) for pair in ((f"a{i}", f"b{i}"), (f"c{i}", f"d{i}"), (f"b{i}", f"c{i}"))]
    hub = [("v", f"{side}{i}") for side in "bc" for i in range(20)]
    one, other = (Graph.of(Ordered(*edges)) for edges in (rest, hub + rest))
    assert len(kept_edges(one, 1)) - len(kept_edges(other, 1)) > 10
    for call in (adaptive.node_private_edges, adaptive.node_private_degrees):
        book = ledger("node")
        for nodes in (None, other.size):
            with pytest.raises(InvalidParameter, match="public order"):
                call(other, cap=1, epsilon=1, relation=ADD_REMOVE, nodes=nodes, session=book)
        assert book.left().epsilon == 1
    with pytest.raises(InvalidParameter, match="public_order"):
        Graph(2, other.ends[:0], public_order="no")  # type: ignore[arg-type]
    named = ["v", *(f"{side}{i}" for side in "abcd" for i in range(20))]
    with_v, without = (counts(named, 1).counts(Ordered(*edges)) for edges in (hub + rest, rest))
    assert 0 <= with_v[0] - without[0] <= 1


@pytest.mark.parametrize("names", [5, ("ann", "bob", "cy", "dee", "eve")])
def test_no_edge_of_a_node_makes_it_refuse(names: Any) -> None:
    """Whether an answer fails would tell that a node with a loop, a repeated edge or an unknown friend is there."""
    mechanism = counts(names, 2)
    one, two, three = (0, 1, 2) if names == 5 else ("ann", "bob", "cy")
    other = 99 if names == 5 else "zoe"
    others, odd = [(one, two)], [(three, three), (three, other), (two, three), (three, two), (two, three)]
    readers: list[Callable[[Any], Any]] = [list, lambda edges: Network(*edges)]
    for read in readers:
        assert mechanism.counts(read(others)) == (1,)
        assert mechanism.counts(read(others + odd)) == (2,)
        assert mechanism.counts(read([(three, other)])) == mechanism.counts(read([])) == (0,)


CALLS: list[Callable[..., Any]] = [adaptive.node_private_edges, adaptive.node_private_degrees]


def ledger(unit: str, epsilon: Any = 1) -> dp.ledger.Ledger:
    return dp.ledger.Ledger.open("memory", dp.ledger.Account("friends", unit, ADD_REMOVE, dp.Budget(epsilon=epsilon)))


@pytest.mark.parametrize("call", CALLS)
def test_a_count_is_paid_for_nodes_before_it_is_read(call: Callable[..., Any]) -> None:
    class Unread(Network):
        def edges(self) -> Any:
            raise AssertionError("data was read")

    asked = {"cap": 2, "nodes": 5, "epsilon": Fraction(1, 2)}
    with pytest.raises(BudgetExceeded):
        call(Unread(), **asked, relation=ADD_REMOVE, session=ledger("node", "0.1"))
    for payer, relation in ((ledger("row"), ADD_REMOVE), (ledger("node"), REPLACE_ONE)):
        with pytest.raises(DiscreetError) as caught:
            call(Unread(), **asked, relation=relation, session=payer)
        assert not isinstance(caught.value, AnswerFailed)
        assert payer.left().epsilon == 1
    payer = ledger("node")
    release = call([(0, 1)], **asked, relation=ADD_REMOVE, session=payer)
    assert payer.left().epsilon == Fraction(1, 2)
    assert release.unit == "node"
    assert "for one node" in repr(release)
    assert "not in the ±" in release.to_json()
    with pytest.raises(AnswerFailed):
        call([(0, 1, 2)], **asked, relation=ADD_REMOVE, session=payer)
    assert payer.left().epsilon == 0
    assert "δ" in call([(0, 1)], **asked, relation=ADD_REMOVE, delta="1e-6").cost


def test_intervals_are_about_the_edges_that_are_kept() -> None:
    hub = [(0, node) for node in range(1, 100)]
    release = adaptive.node_private_edges(hub, cap=3, nodes=100, epsilon=10**4, relation=ADD_REMOVE)
    assert release.value == 3
    assert release.interval() == (3, 3)
    assert release.limits == (0, 150)
    assert adaptive.node_private_degrees(hub, cap=3, nodes=100, epsilon=10**4, relation=ADD_REMOVE).as_dict() == {
        "1 or more": 4, "2 or more": 1, "3 or more": 1,
    }  # fmt: skip


@pytest.mark.statistical
def test_a_release_follows_its_distribution() -> None:
    mechanism, graph, draws = counts(5, 2, noise=LaplaceNoise(epsilon=Fraction(1))), graphs(5)[900], 500
    less = dataclasses.replace(mechanism, noise=LaplaceNoise(epsilon=Fraction(2)))
    law, other = (fold(one.distribution(graph)) for one in (mechanism, less))
    sample = [min(max(mechanism.release(graph).value[0], -10), 20) + 10 for _ in range(draws)]
    assert fits(sample, law)
    assert expected_p_value(law, other, draws) < 1e-15
    assert rejects(sample, other)


def fold(listed: Outcomes) -> list[float]:
    """The shares of -10, …, 20, what lies beyond counted with the ends."""
    shares = [0.0] * 31
    for (value,), mass in listed.masses.items():
        shares[min(max(value, -10), 20) + 10] += float(mass)
    return [share / sum(shares) for share in shares]


@pytest.mark.parametrize(
    "make",
    [
        lambda: counts(5, 0),
        lambda: counts(5, 5),
        lambda: counts(1, 1),
        lambda: counts(5, 2, "edge"),
        *(lambda value=value: counts(5, value) for value in NONSENSE),
        *(lambda value=value: counts(value, 2) for value in NONSENSE),
        *(lambda value=value: counts(5, 2, by_degree=value) for value in NONSENSE if value is not True),
        lambda: adaptive.node_private_edges([(0, 1)], cap=2, nodes=5, epsilon=0, relation=ADD_REMOVE),
        lambda: adaptive.node_private_edges([(0, 1)], cap=2, nodes=5, epsilon=1, delta=0, relation=ADD_REMOVE),
        lambda: adaptive.node_private_degrees([(0, 1)], cap=2, nodes=5, epsilon=1, relation="node"),
    ],
)
def test_nonsense_is_refused(make: Any) -> None:
    with pytest.raises(InvalidParameter):
        make()
