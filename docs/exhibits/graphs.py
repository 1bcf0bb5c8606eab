"""Triangles of a graph with private edges."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

from discreet import adaptive, plots
from discreet.adaptive import TriangleQuery
from discreet.adaptive.noise_recipes import Recipe
from discreet.noise import DiscreteLaplaceLaw
from docs.exhibits.exhibit import Exhibit

_NODES = 300
_NEAREST = (4, 10, 20, 40, 80, 120, 160, 200, 240, 280, 298)
_MANY = 3000
_EXPECTED = 20
_HALF = Fraction(1, 2)


def triangles() -> Exhibit:
    smooth = [_smooth(_NODES, nearest) for nearest in _NEAREST]
    worst = _worst(_NODES)
    across = [float(nearest) for nearest in _NEAREST]
    curves = {"smooth sensitivity": (across, smooth), "global sensitivity": (across, [worst] * len(across))}
    return Exhibit(
        chart=plots.lines(curves, across="neighbours of each node (number)", up="usual noise (triangles)"),
        figures={
            "expected": _EXPECTED,
            "triangles": float(TriangleQuery(nodes=_NODES).value(_ring(_NODES, 20))),
            "smooth_at_twenty": smooth[_NEAREST.index(20)],
            "smooth_at_full": smooth[-1],
            "worst": worst,
            "smooth_of_many": _smooth(_MANY, 20),
            "worst_of_many": _worst(_MANY),
        },
    )


def _ring(nodes: int, nearest: int) -> list[tuple[int, int]]:
    return [(a, (a + far) % nodes) for a in range(nodes) for far in range(1, nearest // 2 + 1)]


def _smooth(nodes: int, nearest: int) -> float:
    recipe = _recipe()
    return recipe.half_width(_HALF) * _bound(nodes, nearest, recipe.beta)


def _bound(nodes: int, nearest: int, beta: Fraction) -> float:
    return TriangleQuery(nodes=nodes).smooth_bound(_ring(nodes, nearest), beta).approximate(float(beta))


@cache
def _recipe() -> Recipe:
    return adaptive.best_recipe(
        lambda beta: adaptive.polynomial(1, beta=beta),
        guess=lambda beta: _bound(_NODES, _EXPECTED, beta),
        confidence=_HALF,
    )


def _worst(nodes: int) -> float:
    return DiscreteLaplaceLaw(Fraction(nodes - 2)).half_width(_HALF)
