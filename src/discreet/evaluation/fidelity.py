"""How like the real table it is: distances of tables of counts, beside two that everybody can picture."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from discreet import noise
from discreet.evaluation.cliques import chosen_cliques, left_out
from discreet.evaluation.exact_cells import ExactCells
from discreet.evaluation.rows import Codes
from discreet.synth.tables.distances import Distances, marginal_distances

__all__ = ["Fidelity", "Way", "fidelity", "pairs_matrix"]

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
