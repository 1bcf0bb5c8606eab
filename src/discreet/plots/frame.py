"""Axes: where a value lies on the paper, in pixels from the upper left corner."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from discreet.plots.curves import Floats, Read

__all__ = ["ChartAxis", "ChartFrame", "log_axis"]

_STOPS = 200  # Pixels of a curve that labels keep away from.
_ROOM = 0.04  # Free space at both ends of a logarithmic axis, as a part of its length.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ChartAxis:
    """One axis of a chart."""

    low: float
    high: float
    pixels: int
    log: bool = False
    upward: bool = False  # Values grow upward, pixels downward.

    def pixel(self, values: Floats) -> Floats:
        """Return where values lie."""
        share = (self._scaled(values) - self._ends[0]) / (self._ends[1] - self._ends[0])
        return (1 - share if self.upward else share) * self.pixels

    def value(self, pixel: float) -> float:
        """Return what lies at a pixel."""
        share = pixel / self.pixels
        scaled = self._ends[0] + (1 - share if self.upward else share) * (self._ends[1] - self._ends[0])
        return float(10**scaled if self.log else scaled)

    def _scaled(self, values: Floats) -> Floats:
        return np.log10(values) if self.log else values

    @property
    def _ends(self) -> tuple[float, float]:
        return (math.log10(self.low), math.log10(self.high)) if self.log else (self.low, self.high)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ChartFrame:
    """The two axes of a chart."""

    x: ChartAxis
    y: ChartAxis

    def inside(self, x: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Return the pixels of a curve, many of them and evenly spaced, without what lies outside."""
        across, down = self.x.pixel(x), self.y.pixel(y)
        length = np.concatenate([[0.0], np.cumsum(np.hypot(np.diff(across), np.diff(down)))])
        stops = np.linspace(0.0, length[-1], _STOPS)
        across, down = np.interp(stops, length, across), np.interp(stops, length, down)
        seen = (across >= 0) & (across <= self.x.pixels) & (down >= 0) & (down <= self.y.pixels)
        return across[seen], down[seen]


def log_axis(curves: Read, which: int, pixels: int, *, upward: bool = False) -> ChartAxis:
    """Return a logarithmic axis that shows every point."""
    low = min(float(pair[which].min()) for pair in curves.values())
    high = max(float(pair[which].max()) for pair in curves.values())
    if low == high:
        low, high = low / 2, high * 2
    room = (high / low) ** _ROOM
    return ChartAxis(low=low / room, high=high * room, pixels=pixels, log=True, upward=upward)
