"""One proximal step of the fit: a smooth and strictly convex function of the effects by which potentials change.

    f(change) = N log Z(base + change) - <change, value> + (ease / 2) <change, variance change>

has the gradient  counts - value + ease variance change. Where that is zero, change = precision (value - counts) / ease:
an implicit step of mirror descent on the loss, of length 1 / ease, from the base. [MSM19]
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from discreet.synth.tables.graphical.contraction import Floats
from discreet.synth.tables.graphical.effects import Cells, Effects
from discreet.synth.tables.graphical.knowledge import Knowledge
from discreet.synth.tables.graphical.network import HALF_NEVER, FactorNetwork

__all__ = ["Point", "ProximalStep"]


@dataclass(frozen=True, slots=True)
class Point:
    """What was found at one change: the function's value, its gradient, and the model's counts."""

    value: float
    gradient: Floats
    cells: Floats  # Of every factor.
    loss: float
    fault: float  # Twice the loss that the gradient, as a residual, would make.


@dataclass(frozen=True, slots=True)
class ProximalStep:
    """A network of factors, and what is known of the effects of their cliques."""

    network: FactorNetwork
    cells: Cells
    effects: Effects
    known: Knowledge
    total: float

    def at(self, base: Floats, change: Floats, ease: float) -> Point:
        """Evaluate the function of one step; it is infinite where every product would be zero."""
        log_sum, cells = self.expected(base + self.effects.carried.times(change))
        counts = self.effects.of_counts(cells)
        pull = ease * self.known.times_variance(change)
        value = self.total * log_sum - float(change @ self.known.value) + float(change @ pull) / 2
        gradient = np.where(self.known.precision > 0, counts - self.known.value + pull, 0.0)
        fault = float(gradient @ self.known.times_precision(gradient))
        if not math.isfinite(value):  # No counts that could be compared with what was measured.
            return Point(math.inf, gradient, cells, math.inf, fault)
        return Point(value, gradient, cells, self.known.loss(counts), fault)

    def expected(self, potentials: Floats) -> tuple[float, Floats]:
        """Return log Z, and the model's counts in the cells of all factors."""
        tops = np.maximum.reduceat(potentials, self.cells.starts[:-1])
        if tops.min() < HALF_NEVER:  # Scaled by its largest, a table of nothing but impossible cells looks uniform.
            return -math.inf, np.zeros_like(potentials)
        log_sum, tables = self.network.run(self.cells.tables(np.exp(potentials - self.cells.spread(tops))))
        cells = np.concatenate([table.ravel() for table in tables])
        cells *= self.total
        return log_sum + math.fsum(tops.tolist()), cells
