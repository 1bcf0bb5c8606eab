"""The publishable comparison with the real table: noisy distances, priced, charged, and only then read.

Theorem     With t the counts of the synthetic table, which are public, |c - t| summed over the cells of one table of
            counts changes by at most 1 if a row comes or goes, and by at most 2 if one is replaced: each row is in one
            cell. So k tables change by at most sqrt(k) times that in l2, and one Gaussian release pays for all of them.
            The sums are of whole numbers: exact. [DMNS06, BW18]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np

from discreet.exact import Number, positive_integer
from discreet.lab.evaluation.table_rows import Codes
from discreet.mechanisms.gaussian import VectorGaussian
from discreet.privacy import Relation, gaussian_sigma
from discreet.synth.promise import Promise
from discreet.synth.tables.table_shape import Clique, marginal

__all__ = ["NoisyComparison", "NoisyWay", "mechanism_for", "noisy_distances"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyWay:
    """Noisy distances of tables of so many columns, each within ± `error` 95 times in 100."""

    columns: int
    by_clique: dict[Clique, float]
    error: float
    mean_error: float

    @property
    def mean(self) -> float:
        """The noisy mean over all tables."""
        return float(np.mean(list(self.by_clique.values())))

    def ordered(self, most: int) -> list[tuple[Clique, float]]:
        """Return the tables that seem to differ most."""
        return sorted(self.by_clique.items(), key=lambda item: -item[1])[:most]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyComparison:
    """Noisy distances that were paid for, as shares of the rows of the synthetic table."""

    ways: tuple[NoisyWay, ...]
    spent: Promise


def mechanism_for(
    tables: int, *, epsilon: Number, delta: Number, relation: Relation, rows_per_unit: int
) -> VectorGaussian:
    """Return the mechanism that releases so many distances together."""
    moved = positive_integer(rows_per_unit, name="rows_per_unit") * (2 if relation is Relation.REPLACE_ONE else 1)
    squared = Fraction(tables * moved**2)
    return VectorGaussian(
        squared_sensitivity=squared,
        variance=squared * Fraction(gaussian_sigma(epsilon, delta)) ** 2,
        dimension=tables,
        relation=relation,
    )


def noisy_distances(
    mechanism: VectorGaussian,
    synthetic: Codes,
    real: Codes,
    sizes: Sequence[int],
    cliques: Sequence[Clique],
) -> tuple[NoisyWay, ...]:
    """Release the distances of all tables at once. This reads the real table: charge first."""
    sums = [int(np.abs(marginal(real, sizes, one) - marginal(synthetic, sizes, one)).sum()) for one in cliques]
    release = mechanism.release(sums)
    scale = 2 * len(synthetic)
    each = float(max(release.plus_minus())) / scale
    values = {one: value / scale for one, value in zip(cliques, release.value, strict=True)}
    return tuple(_way(values, columns, each) for columns in sorted({len(one) for one in cliques}))


def _way(values: dict[Clique, float], columns: int, each: float) -> NoisyWay:
    own = {one: value for one, value in values.items() if len(one) == columns}
    return NoisyWay(columns=columns, by_clique=own, error=each, mean_error=each / len(own) ** 0.5)
