"""Effects: tables split into parts of their subsets of columns, each summing to zero along every one of its axes.

A table over columns is the sum of its mean, an effect of each column, one of each pair of columns and so on, and these
are orthogonal. The tables of several cliques have effects in common, and listed once they describe all of them without
contradiction and without repetition. Going from the one to the other is a product with a sparse matrix: in most fits
the tables are many and small, and one product for all of them is quicker than a handful of operations on each.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.synth.tables.graphical.contraction import Floats
from discreet.synth.tables.graphical.junction import Clique
from discreet.synth.tables.graphical.linear import SparseMap, SparseRows, places

__all__ = ["Cells", "Effects", "effects_within"]


def effects_within(clique: Clique) -> list[Clique]:
    """List the effects of a clique, without the mean."""
    chosen = range(1, 1 << len(clique))
    return [tuple(column for axis, column in enumerate(clique) if bits >> axis & 1) for bits in chosen]


@dataclass(frozen=True, slots=True)
class Cells:
    """The cells of the tables of some cliques, one table after the other in one long vector."""

    cliques: tuple[Clique, ...]
    shapes: tuple[tuple[int, ...], ...]
    starts: NDArray[np.int64]  # Of each table, and the end of the last.

    @staticmethod
    def of(sizes: Sequence[int], cliques: Sequence[Clique]) -> Cells:
        """Lay out the tables."""
        shapes = tuple(tuple(sizes[column] for column in clique) for clique in cliques)
        return Cells(tuple(cliques), shapes, np.cumsum([0, *(math.prod(shape) for shape in shapes)]))

    def tables(self, vector: Floats) -> list[Floats]:
        """Return the tables as views of the vector."""
        pairs = zip(self.starts[:-1].tolist(), self.starts[1:].tolist(), strict=True)
        return [vector[a:b].reshape(shape) for (a, b), shape in zip(pairs, self.shapes, strict=True)]

    def spread(self, by_table: Floats) -> Floats:
        """Repeat one number for each table over its cells."""
        return np.repeat(by_table, np.diff(self.starts))


@dataclass(frozen=True, slots=True)
class Effects:
    """All effects of some cliques in one long vector, and the linear maps between them and the cells."""

    spans: dict[Clique, slice]
    length: int
    carried: SparseMap  # From effects to potentials of cells: each effect is added to the first clique that has it.
    shared: SparseMap  # From effects to counts of cells: those of the clique whose marginals have these effects.
    _subsets: SparseMap  # From sums over the subsets of each effect's columns back to the effect's entries.
    _signs: Floats  # Of those sums.

    @staticmethod
    def of(sizes: Sequence[int], cliques: Sequence[Clique]) -> Effects:
        """Lay out the effects of these cliques."""
        spans: dict[Clique, slice] = {}
        own: list[list[Clique]] = []
        length = 0
        for clique in cliques:
            own.append([effect for effect in effects_within(clique) if effect not in spans])
            for effect in own[-1]:
                spans[effect] = slice(length, length + math.prod(sizes[column] for column in effect))
                length = spans[effect].stop
        carried = SparseMap.of(
            [_block(sizes, c, e, spans, even=False) for c, e in zip(cliques, own, strict=True)], length
        )
        shared = SparseMap.of([_block(sizes, c, effects_within(c), spans, even=True) for c in cliques], length)
        return Effects(spans, length, carried, shared, *_subsets(sizes, spans))

    def centred(self, vector: Floats) -> Floats:
        """Take out of each table of the vector what is not the effect itself: its sums along axes."""
        return vector + self._subsets.times(self._signs * self._subsets.transposed(vector))

    def of_counts(self, cells: Floats) -> Floats:
        """Return the effects of counts, given for the cells of all cliques and read where each effect is carried."""
        return self.centred(self.carried.transposed(cells))

    def shared_by(self, sizes: Sequence[int], cliques: Sequence[Clique]) -> SparseMap:
        """Return the map from effects to counts of the cells of other cliques, all of whose effects are here."""
        return SparseMap.of([_block(sizes, c, effects_within(c), self.spans, even=True) for c in cliques], self.length)


def _block(
    sizes: Sequence[int], clique: Clique, effects: list[Clique], spans: dict[Clique, slice], *, even: bool
) -> SparseRows:
    """List where a clique's cells find effects; if even, with their share of each entry."""
    cells = math.prod(sizes[column] for column in clique)
    found = [places(sizes, clique, effect, spans[effect].start) for effect in effects]
    entries = [spans[effect].stop - spans[effect].start for effect in effects]
    return SparseRows(cells, found, [count / cells if even else 1.0 for count in entries])


def _subsets(sizes: Sequence[int], spans: dict[Clique, slice]) -> tuple[SparseMap, Floats]:
    """Describe the projection on effects: with all sums over the columns left out, of alternating sign. [XHZK23]"""
    blocks, signs, width = [], [np.empty(0)], 0
    for effect, span in spans.items():
        rows, found = span.stop - span.start, []
        for subset in [(), *effects_within(effect)[:-1]]:
            found.append(places(sizes, effect, subset, width))
            entries = math.prod(sizes[column] for column in subset)
            signs.append(np.full(entries, (-1.0) ** (len(effect) - len(subset)) * entries / rows))
            width += entries
        blocks.append(SparseRows(rows, found, [1.0] * len(found)))
    return SparseMap.of(blocks, width), np.concatenate(signs)
