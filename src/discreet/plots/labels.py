"""Direct labels: each curve carries its name, where it hides the least."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from discreet.plots.curves import Floats, Read
from discreet.plots.frame import ChartFrame

__all__ = ["Label", "place"]

_LETTER = 7.3  # Pixels: the mean width of a letter of a label, and the height of its line.
_LINE = 16.0
_GAP = 5.0  # From a label to its own curve.
_ENOUGH = 45.0  # More distance from the other curves makes a label no clearer.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """A text and the pixel of its centre."""

    text: str
    x: float
    y: float

    @property
    def half(self) -> tuple[float, float]:
        """Half the width and half the height."""
        return len(self.text) * _LETTER / 2, _LINE / 2

    def distance(self, x: Floats, y: Floats) -> float:
        """Return how far the nearest of some pixels is from the box of the text; 0 if one is inside."""
        if x.size == 0:
            return _ENOUGH
        wide, high = self.half
        return float(np.hypot(np.maximum(abs(x - self.x) - wide, 0), np.maximum(abs(y - self.y) - high, 0)).min())

    def covered(self, x: Floats, y: Floats) -> int:
        """Count the pixels that the box hides."""
        wide, high = self.half
        return int(((abs(x - self.x) < wide) & (abs(y - self.y) < high)).sum())

    def overlap(self, other: Label) -> bool:
        """Tell whether two texts would touch."""
        wide, high = self.half[0] + other.half[0], self.half[1] + other.half[1]
        return abs(self.x - other.x) < wide + _GAP and abs(self.y - other.y) < high


def place(curves: Read, frame: ChartFrame) -> list[Label]:
    """Place one label a curve, next to it, away from the other curves and from the labels before it."""
    pixels = {name: frame.inside(*pair) for name, pair in curves.items()}
    placed: list[Label] = []
    for name in curves:
        others = [pair for other, pair in pixels.items() if other != name]
        placed.append(_best(name, pixels[name], others, placed, frame))
    return placed


def _best(
    name: str, own: tuple[Floats, Floats], others: list[tuple[Floats, Floats]], placed: list[Label], frame: ChartFrame
) -> Label:
    rest = tuple(np.concatenate([np.empty(0), *(pair[side] for pair in others)]) for side in (0, 1))

    def score(label: Label) -> float:
        """Reward distance from the other curves; what hides a line or a label costs more than any distance."""
        clear = min(label.distance(rest[0], rest[1]), _ENOUGH) - label.covered(rest[0], rest[1])
        clear -= 1000 * sum(label.overlap(other) for other in placed)
        return clear - 100 * (label.distance(*own) < _GAP / 2) - 1000 * _outside(label, frame)

    return max(_candidates(name, own), key=score, default=_centre(name, frame))


def _candidates(name: str, own: tuple[Floats, Floats]) -> list[Label]:
    """List places on both sides of the curve."""
    wide, high = len(name) * _LETTER / 2, _LINE / 2
    sides = [(1, -1), (1, 1), (-1, 1), (-1, -1)]
    shifts = [(right * (wide + _GAP), down * (high + _GAP / 2)) for right, down in sides]
    shifts += [(0, -high - _GAP), (0, high + _GAP)]
    points = zip(own[0][::3], own[1][::3], strict=True)
    return [Label(text=name, x=float(x) + dx, y=float(y) + dy) for x, y in points for dx, dy in shifts]


def _outside(label: Label, frame: ChartFrame) -> bool:
    wide, high = label.half
    wide += _GAP  # Or else a text would touch the axis.
    return not (wide <= label.x <= frame.x.pixels - wide and high <= label.y <= frame.y.pixels - high)


def _centre(name: str, frame: ChartFrame) -> Label:
    return Label(text=name, x=frame.x.pixels / 2, y=frame.y.pixels / 2)
