"""Releases about graphs, verified on all small ones, and refuted as wrong authors wrote them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
import pytest
from graph_worlds import World, graphs
from statistical import expected_p_value, fits, rejects

from discreet import adaptive
from discreet.adaptive import (
    SmoothlyBoundedQuery,
    SmoothSensitivityMechanism,
    StarQuery,
    TriangleQuery,
    laplace,
    polynomial,
)
from discreet.adaptive.graph_releases import DegreeHistogram
from discreet.adaptive.smooth_query import Peak
from discreet.balls import precision
from discreet.errors import BudgetExceeded, Refused
from discreet.lab import verify
from discreet.lab.verify.small_worlds import Worlds
from discreet.mechanisms.additive_noise import GaussianNoise, LaplaceNoise, Sensitivity
from discreet.mechanisms.measurement import BoundedQuery, Measurement
from discreet.privacy.events import Event, PureDP
from discreet.privacy.outcomes import Outcomes
from discreet.privacy.relation import Relation

FOUR, FIVE = Worlds(graphs(4), ordered=False), Worlds(graphs(5), ordered=False)
STEEP = polynomial(2, beta="0.4")
APPROXIMATE = laplace(1, "1e-3", alpha="0.5")
QUERIES: dict[str, Callable[[int], Any]] = {
    "triangles": lambda nodes: TriangleQuery(nodes=nodes),
    "stars of 2": lambda nodes: StarQuery(nodes=nodes, leaves=2),
    "stars of 3": lambda nodes: StarQuery(nodes=nodes, leaves=3),
}


@pytest.mark.long
@pytest.mark.parametrize("query", ["triangles", pytest.param("stars of 2", marks=pytest.mark.slow), "stars of 3"])
def test_a_count_keeps_its_claim_on_all_graphs_of_five_nodes(query: str) -> None:
    result = verify.check(SmoothSensitivityMechanism(query=QUERIES[query](5), recipe=STEEP), FIVE)
    assert result.holds, str(result)
    assert result.lower > Fraction(1, 2)


@pytest.mark.parametrize("query", QUERIES)
def test_a_count_keeps_an_approximate_claim_on_all_graphs_of_four_nodes(query: str) -> None:
    result = verify.check(SmoothSensitivityMechanism(query=QUERIES[query](4), recipe=APPROXIMATE), FOUR)
    assert result.holds, str(result)


@pytest.mark.slow
@pytest.mark.parametrize("query", QUERIES)
def test_a_count_keeps_an_approximate_claim_on_all_graphs_of_five_nodes(query: str) -> None:
    result = verify.check(SmoothSensitivityMechanism(query=QUERIES[query](5), recipe=APPROXIMATE), FIVE)
    assert result.holds, str(result)


@pytest.mark.long
@pytest.mark.parametrize("noise", [LaplaceNoise(epsilon=Fraction(8)), GaussianNoise.for_epsilon(8, "1e-3")])
@pytest.mark.parametrize("at_least", [False, True])
def test_degrees_keep_their_claim_on_all_graphs_of_four_nodes(noise: Any, at_least: bool) -> None:
    mechanism = DegreeHistogram(nodes=4, largest=1 + at_least, noise=noise, at_least=at_least)
    result = verify.check(mechanism, FOUR)
    assert result.holds, str(result)


@dataclass(frozen=True)
class HalfPaid:
    """Counts of degrees with the sensitivity of one node that moves, not of two."""

    honest: DegreeHistogram
    relation: Relation = Relation.ADD_REMOVE

    @property
    def measurement(self) -> Measurement:
        paid = self.honest.sensitivity
        half = Sensitivity(l1=paid.l1 // 2, squared_l2=paid.squared_l2 // 4, dimension=paid.dimension)
        query = BoundedQuery(evaluate=self.honest.counts, sensitivity=half, relation=self.relation)
        return Measurement(query=query, noise=self.honest.noise)

    @property
    def event(self) -> Event:
        return self.measurement.event

    def distribution(self, data: Any) -> Outcomes:
        return self.measurement.distribution(data)


@pytest.mark.parametrize("at_least", [False, True])
def test_degrees_with_half_their_sensitivity_are_refuted(at_least: bool) -> None:
    honest = DegreeHistogram(nodes=4, largest=1 + at_least, noise=LaplaceNoise(epsilon=Fraction(8)), at_least=at_least)
    result = verify.check(HalfPaid(honest), FOUR)
    assert result.violated
    assert result.lower > 1.9 * result.claimed


def neighbours(graph: World) -> list[set[int]]:
    near: list[set[int]] = [set() for _ in range(4)]
    for u, v in graph:
        near[u].add(v)
        near[v].add(u)
    return near


def common_and_others(graph: World) -> list[tuple[int, int, int, bool]]:
    """For each two nodes: a, the common neighbours; b, those of one only; the degrees; whether they are joined."""
    near = neighbours(graph)
    rows = []
    for u, v in combinations(range(4), 2):
        one, other = near[u] - {v}, near[v] - {u}
        rows.append((len(one & other), len(one ^ other), max(len(one), len(other)), v in near[u]))
    return rows


def highest(heights: Callable[[int], int], beta: Fraction, *, first: int = 0) -> Peak:
    peaks = [Peak(Fraction(heights(k)), k) for k in range(first, 12)]
    return max(peaks, key=lambda peak: peak.approximate(float(beta)))


def without_the_first_term(graph: World, beta: Fraction) -> Peak:
    rows = common_and_others(graph)
    return highest(lambda k: max(min(a + (k + min(k, b)) // 2, 2) for a, b, _, _ in rows), beta, first=1)


def two_changes_for_each(graph: World, beta: Fraction) -> Peak:
    """As if no node were the neighbour of one of the two already."""
    rows = common_and_others(graph)
    return highest(lambda k: max(min(a + k // 2, 2) for a, _, _, _ in rows), beta)


def edges_that_are_there(graph: World, beta: Fraction) -> Peak:
    """As if an edge could only go; without any, as if one triangle were at stake."""
    rows = [row for row in common_and_others(graph) if row[3]] or [(0, 0, 0, True)]
    return highest(lambda k: max(min(a + (k + min(k, b)) // 2, 2) for a, b, _, _ in rows), beta)


def local(graph: World, beta: Fraction) -> Peak:
    rows = common_and_others(graph)
    return Peak(Fraction(max(1, *(a for a, _, _, _ in rows))), 0)


def one_end_of_an_edge(graph: World, beta: Fraction) -> Peak:
    """Stars of three at one of the two nodes only, that of higher degree."""
    largest = max(d for _, _, d, _ in common_and_others(graph))
    return highest(lambda k: comb(min(largest + k, 2), 2), beta)


def degrees_do_not_grow(graph: World, beta: Fraction) -> Peak:
    near = neighbours(graph)
    found = max(comb(len(near[u] - {v}), 2) + comb(len(near[v] - {u}), 2) for u, v in combinations(range(4), 2))
    return Peak(Fraction(max(found, 1)), 0)


MUTANTS = {
    "triangles without the term of distance 0": ("triangles", without_the_first_term),
    "triangles, two changes for each common neighbour": ("triangles", two_changes_for_each),
    "triangles of edges that are there": ("triangles", edges_that_are_there),
    "triangles by their local sensitivity": ("triangles", local),
    "stars at one end of an edge": ("stars of 3", one_end_of_an_edge),
    "stars by their local sensitivity": ("stars of 3", degrees_do_not_grow),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_verification_refutes_the_wrong_bound(name: str) -> None:
    key, bound = MUTANTS[name]
    honest = QUERIES[key](4)
    query = SmoothlyBoundedQuery(evaluate=honest.value, bound=bound, grid=honest.grid, relation=honest.relation)
    result = verify.check(SmoothSensitivityMechanism(query=query, recipe=STEEP), FOUR)
    assert result.violated
    assert result.lower > result.claimed


@pytest.mark.statistical
def test_a_release_follows_its_distribution() -> None:
    mechanism, draws = SmoothSensitivityMechanism(query=TriangleQuery(nodes=5), recipe=STEEP), 500
    graph, wider = graphs(5)[900], dataclasses.replace(STEEP, alpha=STEEP.alpha / 2)
    with precision(128):
        law, other = (
            fold(dataclasses.replace(mechanism, recipe=recipe).distribution(graph)) for recipe in (STEEP, wider)
        )
    sample = [int(min(max(mechanism.release(graph).value, -10), 20)) + 10 for _ in range(draws)]
    assert fits(sample, law)
    assert expected_p_value(law, other, draws) < 1e-15
    assert rejects(sample, other)


def fold(listed: Outcomes) -> list[float]:
    """The shares of -10, …, 20, what lies beyond counted with the ends."""
    shares = np.zeros(31)
    for outcome, mass in listed.masses.items():
        first = outcome[0] if isinstance(outcome, tuple) else outcome
        shares[min(max(first, -10), 20) + 10] += float(mass)
    return (shares / shares.sum()).tolist()


class Purse:
    def __init__(self, *, empty: bool = False) -> None:
        self.charged: list[Event] = []
        self._empty = empty

    def charge(
        self, event: Event, *, relation: Relation, purpose: str, unit: str = "row", idempotency_key: str | None = None
    ) -> None:
        assert relation is Relation.ADD_REMOVE
        if self._empty:
            raise BudgetExceeded(asked=event, left=0)
        self.charged.append(event)


class Unread:
    """A graph whose edges must not be looked at."""

    def nodes(self) -> list[int]:
        return list(range(5))

    def edges(self) -> Any:
        raise AssertionError("data was read")

    def is_directed(self) -> bool:
        return False

    def is_multigraph(self) -> bool:
        return False


CALLS: dict[str, Callable[..., Any]] = {
    "triangles": adaptive.triangles,
    "stars": lambda graph, **more: adaptive.stars(graph, leaves=2, **more),
    "degrees": lambda graph, **more: adaptive.degree_histogram(graph, largest=2, **more),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_count_is_paid_for_before_an_edge_is_read(name: str) -> None:
    with pytest.raises(BudgetExceeded):
        CALLS[name](Unread(), epsilon=1, session=Purse(empty=True))
    purse = Purse()
    release = CALLS[name]([(0, 1)], nodes=5, epsilon=1, session=purse)
    assert purse.charged == [release.event]
    assert release.relation is Relation.ADD_REMOVE
    assert "δ" in CALLS[name]([(0, 1)], nodes=5, epsilon=1, delta="1e-6").cost


def test_counts_by_smooth_sensitivity_tell_no_scale_and_degrees_do() -> None:
    release = adaptive.triangles(list(combinations(range(9), 2)), nodes=9, epsilon=1)
    assert release.event == PureDP(1)
    with pytest.raises(Refused, match="private"):
        release.interval()
    degrees = adaptive.degree_histogram([(0, 1)], nodes=9, largest=3, epsilon=1)
    assert len(degrees.interval()) == 4
    assert degrees.labels == ("0", "1", "2", "3 or more")
