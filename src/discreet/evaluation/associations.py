"""How strongly columns go together: Cramér's V, from 0 for not at all to 1 for one telling the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.evaluation.caps import CELLS
from discreet.evaluation.rows import Codes, Layout, Rows
from discreet.synth.tables.counting import marginal

__all__ = ["Associations", "associations", "cramers_v"]

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


def associations(layout: Layout, synthetic: Rows, real: Rows) -> Associations:
    """Measure how columns go together in both tables."""
    return Associations(_square(layout.sizes, real.codes), _square(layout.sizes, synthetic.codes))


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
