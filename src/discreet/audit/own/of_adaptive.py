"""One small instance of each mechanism that looks at the data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations
from typing import Any

from discreet import adaptive
from discreet.audit.own.subject import ListedSubject, small
from discreet.mechanisms import Grid, LaplaceNoise
from discreet.privacy.relation import Relation
from discreet.verify import Worlds, worlds

__all__ = ["of_adaptive"]

_LETTERS = ("a", "b", "c")
_GRID = Grid(low=Fraction(0), high=Fraction(4), step=Fraction(1), default=Fraction(0))
_NODES = 4
_DELTA = Fraction(1, 100)


def of_adaptive() -> Iterator[ListedSubject]:
    """List them: tests of stability, bins found in the data, smooth sensitivity, graphs, bounds found first."""
    for relation in Relation:
        for mechanism in _stable(relation):
            yield _listed(mechanism, small(_LETTERS, relation, 4))
        yield _listed(_selection(relation), small(_LETTERS, relation, 4), _letter_counts)
        yield _listed(_choosing(relation), small(_LETTERS[:2], relation, 6), Counter)
        yield _listed(_learner(relation), small(((1, 1), (2, 1), (1, 0)), relation, 3))
        size = 3 if relation is Relation.REPLACE_ONE else None
        proposed = adaptive.propose_median(grid=_GRID, bound=1, epsilon=6, delta="0.05", relation=relation, size=size)
        yield _listed(proposed, small((0, 2, 4), relation, 3), name="ProposeTestRelease of a median")
        query = adaptive.median_query(grid=_GRID, relation=relation, size=size)
        smooth = adaptive.SmoothSensitivityMechanism(query=query, recipe=adaptive.polynomial(2, beta="0.4"))
        yield _listed(smooth, small((0, 2, 4), relation, 3), name="SmoothSensitivityMechanism of a median")
    yield _listed(_clipped(), worlds((0, 1, 4), [3]), large=True)
    yield from _of_graphs()


def _listed(mechanism: Any, world: Worlds, query: Any = None, *, name: str = "", large: bool = False) -> ListedSubject:
    known = name or type(mechanism).__name__
    return ListedSubject(part="adaptive", name=known, mechanism=mechanism, worlds=world, query=query, large=large)


def _stable(relation: Relation) -> Iterator[Any]:
    yield adaptive.StableMode(domain=_LETTERS, epsilon=Fraction(1), delta=_DELTA, relation=relation)
    yield adaptive.TruncatedHistogram(noise=LaplaceNoise(epsilon=Fraction(2)), delta=_DELTA, relation=relation)
    yield adaptive.OptimalPartitionSelection(epsilon=Fraction(1), delta=_DELTA, relation=relation)


def _selection(relation: Relation) -> adaptive.StableSelection:
    return adaptive.StableSelection(
        epsilon=Fraction(1), delta=_DELTA, sensitivity=1, candidates=len(_LETTERS), relation=relation
    )


def _choosing(relation: Relation) -> adaptive.Choosing:
    return adaptive.Choosing(epsilon=Fraction(4), delta=_DELTA, growth=1, relation=relation)


def _learner(relation: Relation) -> adaptive.PointFunctionLearner:
    return adaptive.PointFunctionLearner(epsilon=Fraction(4), delta=Fraction(1, 20), relation=relation)


def _clipped() -> adaptive.ClippedMean:
    return adaptive.ClippedMean(
        grid=Grid(low=Fraction(0), high=Fraction(4), step=Fraction(1), default=Fraction(2)),
        relation=Relation.REPLACE_ONE,
        epsilon=Fraction(6),
        size=3,
        beyond=Fraction(1),
        centre_share=Fraction(1, 4),
        radius_share=Fraction(1, 2),
    )


def _of_graphs() -> Iterator[ListedSubject]:
    """All graphs of four nodes: a record is an edge."""
    pairs = list(combinations(range(_NODES), 2))
    graphs = tuple(edges for count in range(len(pairs) + 1) for edges in combinations(pairs, count))
    world, recipe = Worlds(graphs, ordered=False), adaptive.polynomial(2, beta="0.4")
    triangles = adaptive.TriangleQuery(nodes=_NODES)
    yield _listed(
        adaptive.SmoothSensitivityMechanism(query=triangles, recipe=recipe), world, name="triangles of a graph"
    )
    degrees = adaptive.DegreeHistogram(nodes=_NODES, largest=2, noise=LaplaceNoise(epsilon=Fraction(4)))
    yield _listed(degrees, world, large=True)


def _letter_counts(data: Any) -> list[int]:
    return [data.count(letter) for letter in _LETTERS]
