"""How much more common a row is in a synthetic table than elsewhere, by the counts of its pairs of values.

The synthesisers of tables learn such counts, so whoever was counted stands out a little. [BSQ23]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.evaluation.rows import Codes
from discreet.synth.tables.counting import Clique, cells, marginal

__all__ = ["density_scores"]

Floats: TypeAlias = NDArray[np.float64]
_PRIOR = 0.5  # A row in each cell before anything is counted, so that no cell has none.


def density_scores(
    asked: Codes, synthetic: Codes, reference: Codes, sizes: Sequence[int], cliques: Sequence[Clique]
) -> Floats:
    """Return the mean logarithm of how much likelier each row's values are in one table than in the other."""
    total = np.zeros(len(asked))
    for clique in cliques:
        here = _logarithms(synthetic, sizes, clique) - _logarithms(reference, sizes, clique)
        total += here[_cell(asked, sizes, clique)]
    return total / max(1, len(cliques))


def _logarithms(codes: Codes, sizes: Sequence[int], clique: Clique) -> Floats:
    count = marginal(codes, sizes, clique) + _PRIOR
    found: Floats = np.log(count / (len(codes) + _PRIOR * cells(sizes, clique)))
    return found


def _cell(codes: Codes, sizes: Sequence[int], clique: Clique) -> NDArray[np.int64]:
    where = np.zeros(len(codes), np.int64)
    for column in clique:
        where = where * sizes[column] + codes[:, column]
    return where
