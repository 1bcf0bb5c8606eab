"""Effects: tables split into parts of their subsets of columns, each summing to zero along every one of its axes.

A table over columns is the sum of its mean, an effect of each column, one of each pair of columns and so on, and these
are orthogonal. The tables of several cliques have effects in common, and listed once they describe all of them without
contradiction and without repetition.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from discreet.synth.tables.graphical.contraction import Floats
from discreet.synth.tables.graphical.junction import Clique

__all__ = ["Effects", "Layout", "effects_within", "split"]


def split(table: Floats) -> list[Floats]:
    """Split a table; part k is over the axes that are the bits of k, its other axes have length one."""
    parts = [table]
    for axis in range(table.ndim):
        means = [part.mean(axis=axis, keepdims=True) for part in parts]
        parts = means + [part - mean for part, mean in zip(parts, means, strict=True)]
    return parts


def effects_within(clique: Clique) -> list[tuple[int, Clique]]:
    """List the effects of a clique, without the mean: which part of its tables, and of which columns."""
    chosen = range(1, 1 << len(clique))
    return [(part, tuple(column for axis, column in enumerate(clique) if part >> axis & 1)) for part in chosen]


@dataclass(frozen=True, slots=True)
class _Place:
    """One effect within a clique's table."""

    part: int
    span: slice  # Of the long vector.
    shape: tuple[int, ...]  # With ones at the axes it does not have.
    shared: int  # Cells of the table for each entry of the effect.


@dataclass(frozen=True, slots=True)
class Layout:
    """The effects of one clique, as they lie in the long vector."""

    shape: tuple[int, ...]
    places: tuple[_Place, ...]

    @staticmethod
    def of(sizes: Sequence[int], clique: Clique, spans: dict[Clique, slice]) -> Layout:
        """Find the places of those effects that are in the long vector."""
        places = []
        for part, effect in effects_within(clique):
            if effect in spans:
                shape = tuple(sizes[column] if column in effect else 1 for column in clique)
                shared = math.prod(sizes[column] for column in clique if column not in effect)
                places.append(_Place(part, spans[effect], shape, shared))
        return Layout(tuple(sizes[column] for column in clique), tuple(places))

    def potentials(self, vector: Floats) -> Floats:
        """Return the table to which each effect adds its own entry in every cell."""
        table = np.zeros(self.shape)
        for place in self.places:
            table += vector[place.span].reshape(place.shape)
        return table

    def counts(self, vector: Floats) -> Floats:
        """Return the table of counts whose marginals have these effects, and whose sum is zero."""
        table = np.zeros(self.shape)
        for place in self.places:
            table += vector[place.span].reshape(place.shape) * (1 / place.shared)
        return table

    def add_means(self, vector: Floats, table: Floats, sign: float) -> None:
        """Add to the vector the mean effects of a table: the reverse of `counts`."""
        parts = split(table)
        for place in self.places:
            vector[place.span] += sign * parts[place.part].ravel()

    def put_sums(self, vector: Floats, table: Floats) -> None:
        """Write into the vector the effects of the marginals of a table of counts."""
        parts = split(table)
        for place in self.places:
            vector[place.span] = parts[place.part].ravel()
            vector[place.span] *= place.shared


@dataclass(frozen=True, slots=True)
class Effects:
    """All effects of some cliques in one long vector; what several have in common is carried by the first."""

    spans: dict[Clique, slice]
    length: int
    full: tuple[Layout, ...]  # By clique, with all its effects.
    carried: tuple[Layout, ...]  # By clique, with those it carries.

    @staticmethod
    def of(sizes: Sequence[int], cliques: Sequence[Clique]) -> Effects:
        """Lay out the effects of these cliques."""
        spans: dict[Clique, slice] = {}
        carried, length = [], 0
        for clique in cliques:
            own: dict[Clique, slice] = {}
            for _, effect in effects_within(clique):
                if effect not in spans:
                    cells = math.prod(sizes[column] for column in effect)
                    own[effect] = slice(length, length + cells)
                    length += cells
            spans |= own
            carried.append(Layout.of(sizes, clique, own))
        return Effects(spans, length, tuple(Layout.of(sizes, clique, spans) for clique in cliques), tuple(carried))

    def of_counts(self, tables: Sequence[Floats]) -> Floats:
        """Return the effects of a model's counts, given as one table for each clique."""
        vector = np.empty(self.length)
        for layout, table in zip(self.carried, tables, strict=True):
            layout.put_sums(vector, table)
        return vector
