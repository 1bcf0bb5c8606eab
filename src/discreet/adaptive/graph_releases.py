"""Triangles, stars and degrees of a graph under edge privacy, in one call each.

One edge is protected, `Relation.ADD_REMOVE` with an edge as the unit; the nodes are public. All choices here are made
from public facts; a guess of how dense the graph is decides about accuracy only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from math import comb
from typing import ClassVar, TypeVar, final

import numpy as np

from discreet.adaptive.approximate_recipes import laplace
from discreet.adaptive.graph_queries import (
    Edges,
    Nodes,
    StarQuery,
    TriangleQuery,
    graph_of,
    node_count,
    public_nodes,
    read_nodes,
)
from discreet.adaptive.noise_recipes import Recipe, best_recipe, polynomial
from discreet.adaptive.smooth_mechanisms import SmoothSensitivityMechanism
from discreet.errors import InvalidParameter
from discreet.exact import Number, exact, exact_or_none, positive_integer
from discreet.mechanisms.additive_noise import GaussianNoise, LaplaceNoise, Noise, Sensitivity
from discreet.mechanisms.measurement import BoundedQuery, Measurement
from discreet.mechanisms.parameters import read_flag, settle
from discreet.mechanisms.release import EachCell, Release
from discreet.privacy.events import Event
from discreet.privacy.outcomes import Outcomes
from discreet.privacy.payer import Payer, paid
from discreet.privacy.relation import Relation

__all__ = ["DegreeHistogram", "degree_histogram", "stars", "triangles"]

T = TypeVar("T")


def triangles(
    graph: Edges,
    *,
    epsilon: Number,
    delta: Number | None = None,
    nodes: Nodes | None = None,
    expected: int = 10,
    most: int | None = None,
    session: Payer | None = None,
) -> Release[Fraction]:
    """Count the triangles of a graph: pairs of nodes, with `nodes`, or a networkx graph.

    `expected` is a public guess of the largest number of neighbours that two nodes have in common; `most` a public
    bound on the count. The noise is polynomial, or Laplace noise if a delta is given. [NRS07]

    Args:
        graph: The private edges: pairs of nodes, or a networkx graph.
        epsilon: What a release spends.
        delta: The delta that goes with it; Laplace noise if it is said.
        nodes: The public nodes, as a number or by name; a networkx graph names its own.
        expected: A public guess of the most neighbours that two nodes have in common.
        most: A public bound on the count; more are not counted.
        session: Who pays; it is charged before the data is read. Nobody if not said.

    Returns:
        The noisy count.

    Examples:
        >>> dp.adaptive.triangles([(0, 1), (1, 2), (0, 2)], nodes=10, epsilon=1).cost
        'ε = 1'
    """
    query = TriangleQuery(nodes=read_nodes(public_nodes(graph, nodes)), most=most)
    start = positive_integer(expected, name="expected")
    recipe = _recipe(epsilon, delta, lambda extra: start + extra, reach=1)
    release = SmoothSensitivityMechanism(query=query, recipe=recipe).release(graph, session=session)
    return _quoted(release, delta)


def stars(
    graph: Edges,
    *,
    leaves: int,
    epsilon: Number,
    delta: Number | None = None,
    nodes: Nodes | None = None,
    expected: int = 30,
    most: int | None = None,
    session: Payer | None = None,
) -> Release[Fraction]:
    """Count the stars of a graph, each a node with `leaves` of its neighbours, in the same way.

    `expected` is a public guess of the largest degree. [KRSY11]

    Args:
        graph: The private edges: pairs of nodes, or a networkx graph.
        leaves: How many neighbours a star has, at least 2.
        epsilon: What a release spends.
        delta: The delta that goes with it; Laplace noise if it is said.
        nodes: The public nodes, as a number or by name; a networkx graph names its own.
        expected: A public guess of the largest degree.
        most: A public bound on the count; more are not counted.
        session: Who pays; it is charged before the data is read. Nobody if not said.

    Returns:
        The noisy count.

    Examples:
        >>> dp.adaptive.stars([(0, 1), (1, 2)], leaves=2, nodes=10, epsilon=1).cost
        'ε = 1'
    """
    query = StarQuery(nodes=read_nodes(public_nodes(graph, nodes)), leaves=leaves, most=most)
    start, k = max(positive_integer(expected, name="expected"), query.leaves), query.leaves - 1
    recipe = _recipe(epsilon, delta, lambda extra: comb(start + extra, k) + comb(start, k), reach=k)
    release = SmoothSensitivityMechanism(query=query, recipe=recipe).release(graph, session=session)
    return _quoted(release, delta)


def degree_histogram(
    graph: Edges,
    *,
    largest: int,
    epsilon: Number,
    delta: Number | None = None,
    nodes: Nodes | None = None,
    at_least: bool = False,
    session: Payer | None = None,
) -> Release[tuple[int, ...]]:
    """Count the nodes of each degree up to `largest`, or of at least each; Gaussian noise if a delta is given.

    Args:
        graph: The private edges: pairs of nodes, or a networkx graph.
        largest: The largest degree that is counted by itself; nodes of a higher one are counted with it.
        epsilon: What a release spends.
        delta: The delta that goes with it; Gaussian noise if it is said.
        nodes: The public nodes, as a number or by name; a networkx graph names its own.
        at_least: Whether nodes of at least each degree are counted.
        session: Who pays; it is charged before the data is read. Nobody if not said.

    Returns:
        One noisy count for each degree.

    Raises:
        InvalidParameter: If `largest` is not below the number of nodes.

    Examples:
        >>> release = dp.adaptive.degree_histogram([(0, 1), (1, 2)], largest=2, nodes=10, epsilon=1)
        >>> len(release.value)
        3
    """
    known = read_nodes(public_nodes(graph, nodes))
    noise: Noise = LaplaceNoise(epsilon=exact(epsilon, name="epsilon"))
    if delta is not None:
        noise = GaussianNoise.for_epsilon(epsilon, delta)
    mechanism = DegreeHistogram(nodes=known, largest=largest, noise=noise, at_least=at_least)
    return _quoted(mechanism.release(graph, session=session), delta)


def _quoted(release: Release[T], delta: Number | None) -> Release[T]:
    """Tell the cost at the delta that the caller named."""
    return replace(release, delta=exact_or_none(delta, name="delta"))


def _recipe(epsilon: Number, delta: Number | None, heights: Callable[[int], int], *, reach: int) -> Recipe:
    """Choose the recipe for a local sensitivity that grows with the distance as guessed.

    It grows by less than the factor (1 + 1 / k)^reach from k - 1 to k, so it is largest, faded, before reach / beta.
    """
    budget, chance = exact(epsilon, name="epsilon"), exact_or_none(delta, name="delta")

    def guess(beta: Fraction) -> float:
        decay = float(beta)
        return max(heights(k) * math.exp(-decay * k) for k in _places(reach / decay))

    return best_recipe(lambda beta: _of_family(budget, chance, beta), guess=guess)


def _places(last: float) -> list[int]:
    """Name some distances up to a last one, close enough for a guess."""
    return sorted({0, *(math.ceil(last * part / 64) for part in range(1, 65))})


@lru_cache(maxsize=1024)
def _of_family(epsilon: Fraction, delta: Fraction | None, beta: Fraction) -> Recipe:
    return polynomial(epsilon, beta=beta) if delta is None else laplace(epsilon, delta, beta=beta)


# --- degree_histogram: How many nodes have each degree, for private edges. ---


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DegreeHistogram:
    """Count the nodes of degree 0, 1, …, `largest` or more; or of degree at least 1, 2, …, `largest`.

    Guarantee   what the noise spends on l1 sensitivity 4 and squared l2 sensitivity 8; for nodes of at least a
                degree, 2 and 4.
    Theorem     An edge more moves two nodes up by one degree. Each leaves one bin and enters another; it joins the
                nodes of at least one more degree, and leaves no such count. Both nodes may do so at the same
                degree. [HLMJ09]
    Utility     noise of one size in every bin. The difference of two counts of at least a degree is a bin with half
                the variance.
    """

    relation: ClassVar[Relation] = Relation.ADD_REMOVE

    nodes: int | tuple[Hashable, ...]
    largest: int  # public; nodes of higher degree are counted with it
    noise: Noise
    at_least: bool = False

    def __post_init__(self) -> None:
        known, largest = read_nodes(self.nodes), positive_integer(self.largest, name="largest")
        if largest >= node_count(known):
            raise InvalidParameter("largest must be below the number of nodes: no node can have more neighbours")
        settle(self, nodes=known, largest=largest, at_least=read_flag(self.at_least, name="at_least"))
        _ = self.event  # Refuses noise that no sampler takes, while nothing is spent yet.

    @property
    def event(self) -> Event:
        return self._measurement.event

    @property
    def labels(self) -> tuple[str, ...]:
        """The public names of the cells."""
        if self.at_least:
            return tuple(f"{degree} or more" for degree in range(1, self.largest + 1))
        return (*map(str, range(self.largest)), f"{self.largest} or more")

    @property
    def sensitivity(self) -> Sensitivity:
        """How far one edge moves the counts."""
        moved = 2 if self.at_least else 4
        return Sensitivity(l1=moved, squared_l2=2 * moved, dimension=len(self.labels))

    def release(self, data: Edges, *, session: Payer | None = None) -> Release[tuple[int, ...]]:
        """Charge, then count with noise."""
        with paid(session, self, purpose="degrees of nodes, one edge protected"):
            measurement = self._measurement
            return Release(
                value=measurement.measure(data),
                event=self.event,
                relation=self.relation,
                accuracy=EachCell(cells=(measurement.accuracy(),)),
                limits=(Fraction(0), Fraction(node_count(self.nodes))),
                labels=self.labels,
            )

    def distribution(self, data: Edges) -> Outcomes:
        return self._measurement.distribution(data)

    def counts(self, data: Edges) -> tuple[int, ...]:
        """Count without noise. This is private."""
        degrees = np.minimum(graph_of(data, self.nodes).degrees, self.largest)
        bins = np.bincount(degrees, minlength=self.largest + 1)
        return tuple((bins[::-1].cumsum()[::-1][1:] if self.at_least else bins).tolist())

    @property
    def _measurement(self) -> Measurement:
        query = BoundedQuery(evaluate=self.counts, sensitivity=self.sensitivity, relation=self.relation)
        return Measurement(query=query, noise=self.noise)
