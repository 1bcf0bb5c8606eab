"""Which sets of columns are compared: all, or so many drawn at random. The choice looks at public sizes only."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb

import numpy as np

from discreet import noise
from discreet.evaluation.caps import CELLS, PAIRS, SETS
from discreet.synth.tables.counting import Clique
from discreet.synth.tables.distances import marginal_cliques

__all__ = ["chosen_cliques", "left_out"]


def chosen_cliques(sizes: Sequence[int], ways: int, *, most: int | None = None) -> tuple[Clique, ...]:
    """Choose sets of so many columns: all whose tables are not too large, or as many as the cap allows."""
    fitting = marginal_cliques(sizes, ways, most_cells=CELLS)
    cap = most or (SETS if ways > 2 else PAIRS)
    if len(fitting) <= cap:
        return tuple(fitting)
    return tuple(fitting[place] for place in np.sort(noise.permutation(len(fitting))[:cap]))


def left_out(sizes: Sequence[int], ways: int, compared: int) -> int:
    """Return how many sets of so many columns are not compared."""
    return comb(len(sizes), ways) - compared
