"""Minimise the smooth convex function of one step: L-BFGS, scaled by what each cell's curvature is near. [NW06]"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from discreet.synth.tables.graphical.contraction import Floats
from discreet.synth.tables.graphical.problem import Point

__all__ = ["minimise"]

_MEMORY = 8
_HALVINGS = 30
_LONGER = 4.0  # Times the last step is the most to try first: where one was too long the next mostly is too.
_SLOPE = 1e-4  # Armijo: the share of the promised decrease that a step must keep.


def minimise(
    at: Callable[[Floats], Point],
    scale: Callable[[Point], Callable[[Floats], Floats]],
    change: Floats,
    *,
    most: int,
    enough: float,
) -> tuple[Floats, Point, int]:
    """Step until the fault is small enough, or `most` points were looked at; then return the one of least loss."""
    here, used = at(change), 1
    if not math.isfinite(here.value):  # A guess so far out that every product is zero; the base itself is possible.
        change, used = np.zeros_like(change), 2
        here = at(change)
    best = (change, here)
    pairs: list[tuple[Floats, Floats, float]] = []
    length = 1.0
    while used < most and here.fault > enough:
        inverse = scale(here)
        direction = _direction(here.gradient, inverse, pairs)
        slope = float(here.gradient @ direction)
        if slope >= 0:  # Only rounding can turn it; begin again with the plain scaled gradient.
            pairs, direction = [], -inverse(here.gradient)
            slope = float(here.gradient @ direction)
        first = min(1.0, _LONGER * length)
        length, found, looked = _search(at, change, direction, here, slope, first, most - used)
        used += looked
        if found is None:
            break
        step = length * direction
        _remember(pairs, step, found.gradient - here.gradient)
        change, here = change + step, found
        if here.loss < best[1].loss:
            best = (change, here)
    return (change, here, used) if here.fault <= enough else (*best, used)


def _direction(
    gradient: Floats, inverse: Callable[[Floats], Floats], pairs: list[tuple[Floats, Floats, float]]
) -> Floats:
    """Apply the inverse of the approximate second derivative to minus the gradient."""
    vector, shares = -gradient, []
    for step, turn, product in reversed(pairs):
        share = float(step @ vector) / product
        shares.append(share)
        vector = vector - share * turn
    vector = inverse(vector)
    if pairs:
        _, turn, product = pairs[-1]
        vector *= _length(product, float(turn @ inverse(turn)))
    for (step, turn, product), share in zip(pairs, reversed(shares), strict=True):
        vector += (share - float(turn @ vector) / product) * step
    return vector


def _length(product: float, curved: float) -> float:
    """Return how long the scaled step is to be; as it is where rounding has left nothing to compare it with."""
    ratio = product / curved if curved > 0 else 1.0
    return ratio if 0 < ratio < math.inf else 1.0


def _remember(pairs: list[tuple[Floats, Floats, float]], step: Floats, turn: Floats) -> None:
    product = float(step @ turn)
    if product > 0:
        pairs.append((step, turn, product))
        del pairs[:-_MEMORY]


def _search(
    at: Callable[[Floats], Point],
    change: Floats,
    direction: Floats,
    here: Point,
    slope: float,
    length: float,
    most: int,
) -> tuple[float, Point | None, int]:
    """Shorten the step until the function has decreased as it should; nothing is found if it never does."""
    for looked in range(1, min(_HALVINGS, most) + 1):
        found = at(change + length * direction)
        decrease = here.value - found.value
        if decrease >= -_SLOPE * length * slope:
            return length, found, looked
        length *= _shorter(decrease, length * slope)
    return 0.0, None, min(_HALVINGS, most)


def _shorter(decrease: float, promised: float) -> float:
    """Return by what to shorten: to the lowest point of the parabola through what is known."""
    if not np.isfinite(decrease):
        return 0.1
    return float(np.clip(promised / (2 * (promised + decrease)), 0.1, 0.5))
