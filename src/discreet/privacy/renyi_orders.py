"""Search a good Renyi order. Any order gives a valid bound, so the search may be as simple as it likes."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

__all__ = ["least"]

_GOLDEN = 0.6180339887498949
_REFINEMENTS = 24
_DOUBLINGS = 80


def least(bound: Callable[[Fraction], float], *, start: int = 3, refinements: int = _REFINEMENTS) -> float:
    """Return the least bound found over orders 1 + 2^x: walk from `start` while it falls, then golden section."""
    seen: dict[float, float] = {}

    def at(x: float) -> float:
        if x not in seen:
            seen[x] = bound(1 + Fraction(2.0**x))
        return seen[x]

    centre = _walk(at, float(start))
    _golden(at, centre - 1, centre + 1, refinements)
    return min(seen.values())


def _walk(at: Callable[[float], float], x: float) -> float:
    for direction in (1.0, -1.0):
        for _ in range(_DOUBLINGS):
            if not at(x + direction) < at(x):
                break
            x += direction
    return x


def _golden(at: Callable[[float], float], low: float, high: float, steps: int) -> None:
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    for _ in range(steps):
        if at(left) <= at(right):
            high, right = right, left
            left = high - _GOLDEN * (high - low)
        else:
            low, left = left, right
            right = low + _GOLDEN * (high - low)
