"""How strongly columns go together: Cramér's V, from 0 for not at all to 1 for one telling the other; correlations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.evaluation.caps import CELLS
from discreet.evaluation.rows import Codes, ColumnLayout, EvaluatedRows
from discreet.synth.tables.counting import marginal

__all__ = ["Associations", "Correlations", "associations", "correlations", "cramers_v"]

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
