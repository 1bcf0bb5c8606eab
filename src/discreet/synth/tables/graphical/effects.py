"""Effects: tables split into parts of subsets of columns, and what noisy tables say of each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.synth.tables.graphical.belief_propagation import Clique, Floats

__all__ = [
    "Cells",
    "Effects",
    "Knowledge",
    "NoisyMarginal",
    "Places",
    "SparseMap",
    "SparseRows",
    "checked",
    "effects_within",
    "estimated_total",
    "places",
]

# --- linear: Sparse linear maps between the cells of tables and what their cells have in common. ---


Places: TypeAlias = NDArray[np.int32]


def places(sizes: Sequence[int], clique: Clique, part: Clique, start: int = 0) -> Places:
    """Return for every cell of a clique, in order, the place of the cell of some of its columns that it is in."""
    cells = np.arange(start, start + math.prod(sizes[column] for column in part), dtype=np.int32)
    narrow = cells.reshape([sizes[column] if column in part else 1 for column in clique])
    return np.broadcast_to(narrow, [sizes[column] for column in clique]).ravel()


@dataclass(frozen=True, slots=True)
class SparseRows:
    """Some rows of a map: for each entry of a row, where it is, by row, and how large, for all rows."""

    rows: int
    found: list[Places]
    weights: list[float]


@dataclass(frozen=True, slots=True)
class SparseMap:
    """A sparse matrix, held in both directions."""

    height: int
    _forth: Any
    _back: Any

    @staticmethod
    def of(blocks: Sequence[SparseRows], width: int) -> SparseMap:
        """Build it from blocks of rows."""
        from scipy.sparse import csr_array

        counts = np.repeat([len(block.found) for block in blocks], [block.rows for block in blocks])
        full = [block for block in blocks if block.found]
        indices = [np.stack(block.found, axis=1).ravel() for block in full]
        data = [np.tile(np.asarray(block.weights, dtype=np.float64), block.rows) for block in full]
        entries = np.concatenate([np.empty(0), *data]), np.concatenate([np.empty(0, dtype=np.int32), *indices])
        forth = csr_array((*entries, np.concatenate([[0], np.cumsum(counts)])), shape=(len(counts), width))
        return SparseMap(len(counts), forth, forth.T.tocsr())

    def times(self, vector: Floats) -> Floats:
        """Apply the map."""
        return np.asarray(self._forth @ vector)

    def transposed(self, vector: Floats) -> Floats:
        """Apply its transpose."""
        return np.asarray(self._back @ vector)


# --- effects ---
# Effects: tables split into parts of their subsets of columns, each summing to zero along every one of its axes.
#
# A table over columns is the sum of its mean, an effect of each column, one of each pair of columns and so on, and
# these
# are orthogonal. The tables of several cliques have effects in common, and listed once they describe all of them
# without
# contradiction and without repetition. Going from the one to the other is a product with a sparse matrix: in most fits
# the tables are many and small, and one product for all of them is quicker than a handful of operations on each.


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


# --- measured: What was measured: noisy tables of counts, and the number of rows they speak of. ---


@final
@dataclass(frozen=True, slots=True, eq=False)
class NoisyMarginal:
    """The counts of a clique's cells with independent noise, in the order of the clique's columns, flat or shaped.

    `deviation` is that of the noise in one cell, in rows. For a clique of one column it may be an array, one for each
    cell.
    """

    clique: Clique
    values: Floats
    deviation: float | Floats


def checked(sizes: Sequence[int], one: NoisyMarginal) -> NoisyMarginal:
    """Refuse nonsense, and return the same measurement shaped, with its columns in rising order."""
    clique = tuple(one.clique)
    if not clique or len(set(clique)) < len(clique) or not set(clique) <= set(range(len(sizes))):
        raise InvalidParameter("a measurement needs a clique of one or more different columns that are there")
    shape = tuple(sizes[column] for column in clique)
    values = np.asarray(one.values, dtype=np.float64)
    if values.size != math.prod(shape) or not np.isfinite(values).all():
        raise InvalidParameter("a measurement needs one finite number for each cell of its clique")
    order = sorted(range(len(shape)), key=clique.__getitem__)
    return NoisyMarginal(tuple(sorted(clique)), values.reshape(shape).transpose(order), _deviation(one, values.size))


def _deviation(one: NoisyMarginal, cells: int) -> float | Floats:
    deviations = np.asarray(one.deviation, dtype=np.float64).ravel()
    if not (np.isfinite(deviations).all() and (deviations > 0).all()):
        raise InvalidParameter("the deviation of a measurement must be positive and finite")
    if deviations.size == 1 or (deviations == deviations[0]).all():
        return float(deviations[0])
    if len(one.clique) > 1 or deviations.size != cells:
        raise InvalidParameter("give one deviation for all cells, or, for a clique of one column, one for each cell")
    return deviations


def estimated_total(measured: Sequence[NoisyMarginal]) -> float:
    """Estimate the number of rows by the sums of all measurements, weighted by their precision; at least one."""
    weights = [1 / float(np.sum(np.broadcast_to(one.deviation, one.values.size) ** 2)) for one in measured]
    sums = [float(one.values.sum()) * weight for one, weight in zip(measured, weights, strict=True)]
    return max(1.0, math.fsum(sums) / math.fsum(weights)) if measured else 1.0


# --- knowledge: What noisy tables say of the effects of the true counts: one value and one precision for each. ---
#
# The noise of a measured table is independent between its effects. So what several measurements say of one effect is
# joined by a mean, weighted by precision, and
#
#     sum over measured cells of (count - measured)^2 / (2 sigma^2)
#         = sum over effects of precision (effect - value)^2 / 2  +  what no model can avoid,
#
# for counts that sum to the total. [XHZK23]


@dataclass(frozen=True, slots=True)
class _Uneven:
    """A column's effect whose cells are not equally well known: a matrix of precision, and its inverse."""

    span: slice
    precision: Floats
    variance: Floats


@dataclass(frozen=True, slots=True)
class Knowledge:
    """The value of every effect and how precisely it is known; effects that were not measured have precision zero."""

    value: Floats
    precision: Floats
    variance: Floats
    uneven: tuple[_Uneven, ...]
    unavoidable: float

    @staticmethod
    def of(sizes: Sequence[int], effects: Effects, measured: Sequence[NoisyMarginal], total: float) -> Knowledge:
        """Join all measurements."""
        value, precision = np.zeros(effects.length), np.zeros(effects.length)
        matrices: dict[tuple[int, int], Floats] = {}
        for one in measured:
            _join(sizes, effects, one, total, value, precision, matrices)
        uneven = tuple(_matrix(slice(*span), weights, precision) for span, weights in matrices.items())
        for part in uneven:
            precision[part.span] = np.diag(part.precision)  # Only to say that it was measured, and about how well.
        variance = np.divide(1.0, precision, out=np.zeros_like(precision), where=precision > 0)
        value = effects.centred(value)
        known = Knowledge(value, precision, variance, uneven, 0.0)
        best = known.times_variance(value)
        rest = (math.fsum(_squares(one, total) for one in measured) - float(best @ value)) / 2
        return Knowledge(best, precision, variance, uneven, max(0.0, rest))

    def times_precision(self, vector: Floats) -> Floats:
        """Multiply by the precisions."""
        result = vector * self.precision
        for one in self.uneven:
            result[one.span] = one.precision @ vector[one.span]
        return result

    def times_variance(self, vector: Floats) -> Floats:
        """Divide by the precisions; what was not measured becomes zero."""
        result = vector * self.variance
        for one in self.uneven:
            result[one.span] = one.variance @ vector[one.span]
        return result

    def loss(self, counts: Floats) -> float:
        """Return half the squared residuals of all measurements, in deviations of their noise."""
        apart = counts - self.value
        return float(apart @ self.times_precision(apart)) / 2 + self.unavoidable


def _join(
    sizes: Sequence[int],
    effects: Effects,
    one: NoisyMarginal,
    total: float,
    value: Floats,
    precision: Floats,
    matrices: dict[tuple[int, int], Floats],
) -> None:
    """Add what one measurement says, as marginals times precision."""
    if isinstance(one.deviation, float):
        for effect in effects_within(one.clique):
            span = effects.spans[effect]
            entries = span.stop - span.start
            sums = np.bincount(places(sizes, one.clique, effect), weights=one.values.ravel(), minlength=entries)
            weight = one.deviation**-2 * entries / one.values.size
            value[span] += sums * weight
            precision[span] += weight
        return
    span, weights = effects.spans[one.clique], one.deviation**-2
    pull = weights * (one.values - total / one.values.size)
    value[span] += pull
    held = matrices.setdefault((span.start, span.stop), np.zeros(weights.size))
    held += weights


def _matrix(span: slice, weights: Floats, precision: Floats) -> _Uneven:
    """Restrict diagonal weights, and the even precision of the same effect, to what sums to zero; and invert that."""
    size = weights.size
    centred = np.eye(size) - 1 / size
    whole = centred @ (weights[:, None] * centred) + centred * precision[span.start]
    # The mean direction is null; with any weight there the matrix can be inverted, and the weight is taken out again.
    level = float(weights.mean())
    return _Uneven(span, whole, np.linalg.inv(whole + level / size) - 1 / (size * level))


def _squares(one: NoisyMarginal, total: float) -> float:
    return float(np.sum(((one.values - total / one.values.size) / np.asarray(one.deviation)) ** 2))
