"""Fidelity of a synthetic table: distances of marginals, associations of columns, and single columns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet import noise
from discreet.lab.evaluation.table_rows import (
    CELLS,
    Codes,
    ColumnLayout,
    EvaluatedRows,
    ExactCells,
    chosen_cliques,
    left_out,
)
from discreet.synth.tables.table_shape import Distances, marginal, marginal_distances, total_variation

__all__ = [
    "Associations",
    "Correlations",
    "Fidelity",
    "Overlay",
    "Way",
    "associations",
    "correlations",
    "cramers_v",
    "fidelity",
    "overlays",
    "pairs_matrix",
]

# --- fidelity: How like the real table it is: distances of tables of counts, beside two that everybody can picture. ---


_WAYS = (1, 2, 3)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """The distances of all sets of so many columns, and those of two tables to compare with."""

    columns: int
    found: Distances
    fresh: float  # the mean for as many other people like these: as near as chance allows
    apart: float  # the mean for its columns drawn one by one: all links between them lost
    left_out: int  # sets that were not compared

    @property
    def kept(self) -> float | None:
        """The part of the links between columns that is kept; None where there are hardly any to lose."""
        if self.columns == 1 or self.apart < 1.2 * self.fresh:
            return None
        return float(np.clip((self.apart - self.found.mean) / (self.apart - self.fresh), 0.0, 1.0))


@final
@dataclass(frozen=True, slots=True)
class Fidelity:
    """The distances of one, two and three columns."""

    ways: tuple[Way, ...]

    def way(self, columns: int) -> Way | None:
        """Return the distances of sets of so many columns, if there are any."""
        return next((way for way in self.ways if way.columns == columns), None)

    @property
    def kept(self) -> float | None:
        """The part of the links between two columns that is kept."""
        pairs = self.way(2)
        return None if pairs is None else pairs.kept


def fidelity(cells: ExactCells) -> Fidelity:
    """Compare two tables through the counts of one, two and three columns."""
    synthetic, real = cells.synthetic, cells.real
    fresh, apart = _drawn_anew(real, len(synthetic)), _drawn_apart(real, len(synthetic))
    # Rows drawn anew stray from the real table by 1/m in variance; other people would, and it from them, by 1/m + 1/n.
    widened = math.sqrt(1 + len(synthetic) / len(real))
    ways = [(columns, chosen_cliques(cells.sizes, columns)) for columns in _WAYS]
    return Fidelity(
        tuple(
            Way(
                columns=columns,
                found=marginal_distances(synthetic, real, cells.sizes, sets),
                fresh=widened * marginal_distances(fresh, real, cells.sizes, sets).mean,
                apart=marginal_distances(apart, real, cells.sizes, sets).mean,
                left_out=left_out(cells.sizes, columns, len(sets)),
            )
            for columns, sets in ways
            if sets
        )
    )


def _drawn_anew(codes: Codes, rows: int) -> Codes:
    return codes[noise.uniform(len(codes), rows)]


def _drawn_apart(codes: Codes, rows: int) -> Codes:
    return np.stack([column[noise.uniform(len(column), rows)] for column in codes.T], axis=1)


def pairs_matrix(columns: int, found: Distances) -> list[list[float | None]]:
    """Lay distances of two columns out as a square; None where a pair was not compared."""
    known = found.by_clique
    places = range(columns)
    return [[known.get((min(a, b), max(a, b))) for b in places] for a in places]


# --- associations ---
# How strongly columns go together: Cramér's V, from 0 for not at all to 1 for one telling the other; correlations.


Square: TypeAlias = tuple[tuple[float | None, ...], ...]


@final
@dataclass(frozen=True, slots=True)
class Associations:
    """Cramér's V of every two columns, of the real table and of the synthetic one."""

    real: Square
    synthetic: Square

    @property
    def difference(self) -> Square:
        """Synthetic minus real: below 0 where a link is weakened, above where one is invented."""
        rows = zip(self.synthetic, self.real, strict=True)
        return tuple(tuple(_minus(a, b) for a, b in zip(one, other, strict=True)) for one, other in rows)

    @property
    def largest(self) -> float:
        """The largest change of a link."""
        return max((abs(value) for row in self.difference for value in row if value is not None), default=0.0)


def associations(layout: ColumnLayout, synthetic: EvaluatedRows, real: EvaluatedRows) -> Associations:
    """Measure how columns go together in both tables."""
    return Associations(_square(layout.sizes, real.codes), _square(layout.sizes, synthetic.codes))


@final
@dataclass(frozen=True, slots=True)
class Correlations:
    """Pearson's correlation of every two numeric columns, in both tables, over rows that have both numbers."""

    names: tuple[str, ...]
    real: Square
    synthetic: Square

    @property
    def changes(self) -> list[tuple[tuple[str, str], float, float]]:
        """Pairs of columns with their real and their synthetic correlation, the largest change first."""
        pairs = [
            ((self.names[a], self.names[b]), real, made)
            for a, b in combinations(range(len(self.names)), 2)
            if (real := self.real[a][b]) is not None and (made := self.synthetic[a][b]) is not None
        ]
        return sorted(pairs, key=lambda one: -abs(one[2] - one[1]))


def correlations(layout: ColumnLayout, synthetic: EvaluatedRows, real: EvaluatedRows) -> Correlations:
    """Measure how numbers go together in both tables, by their values and not by their bins."""
    names = tuple(layout.names[place] for place in layout.numbers)
    return Correlations(names, _correlated(real.places), _correlated(synthetic.places))


def _correlated(places: NDArray[np.float32]) -> Square:
    width = places.shape[1]
    found: list[list[float | None]] = [[None] * width for _ in range(width)]
    for a, b in combinations(range(width), 2):
        found[a][b] = found[b][a] = _pearson(places[:, a].astype(np.float64), places[:, b].astype(np.float64))
    return tuple(tuple(row) for row in found)


def _pearson(one: NDArray[np.float64], other: NDArray[np.float64]) -> float | None:
    """Return the correlation; None where a column does not vary."""
    both = ~(np.isnan(one) | np.isnan(other))
    one, other = one[both] - one[both].mean() if both.any() else one[both], other[both]
    other = other - other.mean() if both.any() else other
    spread = float(np.sqrt((one @ one) * (other @ other)))
    return float(one @ other) / spread if spread > 0 else None


def cramers_v(table: NDArray[np.int64]) -> float:
    """Return Cramér's V of a table of counts, corrected for what chance alone would show. [Ber13]"""
    seen = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0].astype(np.float64)
    rows, columns = seen.shape
    total = seen.sum()
    if min(rows, columns) < 2 or total < 2:
        return 0.0
    expected = seen.sum(axis=1, keepdims=True) * seen.sum(axis=0) / total
    phi = float(((seen - expected) ** 2 / expected).sum() / total)
    phi = max(0.0, phi - (rows - 1) * (columns - 1) / (total - 1))
    least = min(rows - (rows - 1) ** 2 / (total - 1), columns - (columns - 1) ** 2 / (total - 1)) - 1
    return float(min(1.0, np.sqrt(phi / least))) if least > 0 else 0.0


def _square(sizes: Sequence[int], codes: Codes) -> Square:
    width = len(sizes)
    found: list[list[float | None]] = [[None] * width for _ in range(width)]
    for a, b in combinations(range(width), 2):
        if sizes[a] * sizes[b] <= CELLS:
            found[a][b] = found[b][a] = cramers_v(marginal(codes, sizes, (a, b)).reshape(sizes[a], sizes[b]))
    return tuple(tuple(row) for row in found)


def _minus(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one - other


# --- overlays: Every column by itself: the share of each cell, in both tables. ---


_MOST = 8  # Values of a category that are drawn; the rest is one bar.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Overlay:
    """The shares of the cells of one column."""

    name: str
    labels: tuple[str, ...]
    real: tuple[float, ...]
    synthetic: tuple[float, ...]
    ordered: bool  # numbers, from low to high; values are sorted by how common they really are
    distance: float  # in exact cells: undeclared values and places within bins count
    lost: float  # the share of real rows whose value the synthetic table does not have and nobody declared


def overlays(
    layout: ColumnLayout, synthetic: EvaluatedRows, real: EvaluatedRows, cells: ExactCells
) -> tuple[Overlay, ...]:
    """Compare both tables column by column."""
    return tuple(_overlay(layout, synthetic, real, cells, place) for place in range(len(layout.names)))


def _overlay(
    layout: ColumnLayout, synthetic: EvaluatedRows, real: EvaluatedRows, cells: ExactCells, place: int
) -> Overlay:
    ours, theirs = (marginal(rows.codes, layout.sizes, (place,)) for rows in (synthetic, real))
    shares = ours / ours.sum(), theirs / theirs.sum()
    ordered = place in layout.numbers
    order = np.arange(len(ours)) if ordered else np.argsort(-shares[1], kind="stable")
    kept = order if ordered or len(order) <= _MOST else order[: _MOST - 1]
    labels, (made, true) = [layout.labels[place][cell] for cell in kept], (share[kept].tolist() for share in shares)
    if len(kept) < len(order):
        labels.append(f"{len(order) - len(kept)} other values")
        made.append(float(1 - sum(made)))
        true.append(float(1 - sum(true)))
    return Overlay(
        name=layout.names[place],
        labels=tuple(labels),
        real=tuple(true),
        synthetic=tuple(made),
        ordered=ordered,
        distance=total_variation(cells.synthetic, cells.real, cells.sizes, (place,)),
        lost=cells.lost[place],
    )
