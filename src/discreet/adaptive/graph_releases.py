"""Triangles, stars and degrees of a graph with private edges, in one call each.

One edge is protected, `Relation.ADD_REMOVE` with an edge as the unit; the nodes are public. All choices here are made
from public facts; a guess of how dense the graph is decides about accuracy only.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from math import comb
from typing import TypeVar

from discreet.adaptive.degree_histogram import DegreeHistogram
from discreet.adaptive.delta_recipes import laplace
from discreet.adaptive.graph import Edges, Nodes, public_nodes, read_nodes
from discreet.adaptive.graph_queries import StarQuery, TriangleQuery
from discreet.adaptive.pure_recipes import polynomial
from discreet.adaptive.recipe import Recipe
from discreet.adaptive.smooth import SmoothSensitivityMechanism
from discreet.adaptive.tuning import best_recipe
from discreet.exact import Number, exact, exact_or_none, positive_integer
from discreet.mechanisms.budget import GaussianNoise, LaplaceNoise, Noise
from discreet.mechanisms.release import Release
from discreet.privacy.payer import Payer

__all__ = ["degree_histogram", "stars", "triangles"]

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
    """Count the nodes of each degree up to `largest`, or of at least each; Gaussian noise if a delta is given."""
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
