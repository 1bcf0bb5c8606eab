"""One proximal step of the fit: a smooth and strictly convex function of the effects by which potentials change.

    f(change) = N log Z(base + change) - <change, value> + (ease / 2) <change, variance change>

has the gradient  counts - value + ease variance change. Where that is zero, change = precision (value - counts) / ease:
an implicit step of mirror descent on the loss, of length 1 / ease, from the base. [MSM19]
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from discreet.synth.tables.graphical.contraction import Floats
from discreet.synth.tables.graphical.effects import Effects
from discreet.synth.tables.graphical.knowledge import Knowledge
from discreet.synth.tables.graphical.network import HALF_NEVER, Network

__all__ = ["Point", "Problem"]


@dataclass(frozen=True, slots=True)
class Point:
    """What was found at one change: the function's value, its gradient, and the model's counts."""

    value: float
    gradient: Floats
    counts: Floats  # As effects.
    tables: list[Floats]  # Of every factor's clique.


@dataclass(frozen=True, slots=True)
class Problem:
    """A network of factors, and what is known of the effects of their cliques."""

    network: Network
    effects: Effects
    known: Knowledge
    total: float

    def moved(self, base: Sequence[Floats], change: Floats) -> list[Floats]:
        """Return the potentials after a change."""
        return [table + layout.potentials(change) for table, layout in zip(base, self.effects.carried, strict=True)]

    def at(self, base: Sequence[Floats], change: Floats, ease: float) -> Point:
        """Evaluate the function of one step; it is infinite where every product would be zero."""
        log_sum, tables = self.tables(self.moved(base, change))
        counts = self.effects.of_counts(tables)
        pull = ease * self.known.times_variance(change)
        value = self.total * log_sum - float(change @ self.known.value) + float(change @ pull) / 2
        gradient = np.where(self.known.precision > 0, counts - self.known.value + pull, 0.0)
        return Point(value if math.isfinite(value) else math.inf, gradient, counts, tables)

    def tables(self, potentials: list[Floats]) -> tuple[float, list[Floats]]:
        """Return log Z, and the model's counts for each factor's clique. The potentials are overwritten."""
        tops = [float(table.max()) for table in potentials]
        if min(tops) < HALF_NEVER:  # Scaled by its largest, a table of nothing but impossible cells would look uniform.
            return -math.inf, potentials
        for table, top in zip(potentials, tops, strict=True):
            table -= top
            np.exp(table, out=table)
        log_sum, tables = self.network.run(potentials)
        for table in tables:
            table *= self.total
        return log_sum + math.fsum(tops), tables
