"""Rows whose counts follow a model as nearly as whole numbers can: expected counts, rounded at random.

The columns of one clique of the tree after the other are drawn, given those that its parent has drawn. Within each
group of rows that are equal so far, the expected count of every new value is rounded down or up, so that the sum is
that of the group and the mean over all chances is what was expected; then the values are dealt to the rows at random.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from discreet.noise import permutation, uniform
from discreet.synth.tables.graphical.contraction import Floats
from discreet.synth.tables.graphical.junction import Clique
from discreet.synth.tables.graphical.querying import Queries

__all__ = ["draw", "rounded"]

_PIECE = 1 << 22  # Cells of conditional distributions to hold at a time.


def draw(queries: Queries, rows: int) -> NDArray[np.int32]:
    """Draw rows of codes."""
    sizes, tree = queries.network.sizes, queries.network.tree
    codes = np.zeros((rows, len(sizes)), dtype=np.int32)
    for node, clique in enumerate(tree.cliques):
        given = tree.separator(node)
        new = tuple(column for column in clique if column not in given)
        shape = [sizes[column] for column in new]
        chances = queries.marginal(given + new).reshape(-1, int(np.prod(shape)))
        drawn = _given_groups(chances, _flat(codes, given, sizes))
        for column, values in zip(new, np.unravel_index(drawn, shape), strict=True):
            codes[:, column] = values
    return codes


def _flat(codes: NDArray[np.int32], columns: Clique, sizes: tuple[int, ...]) -> NDArray[np.int64]:
    """Number the groups of rows that are equal in some columns."""
    if not columns:
        return np.zeros(len(codes), dtype=np.int64)
    return np.ravel_multi_index([codes[:, column] for column in columns], [sizes[column] for column in columns])


def _given_groups(chances: Floats, groups: NDArray[np.int64]) -> NDArray[np.int64]:
    """Draw a cell for each row, from the line of chances that its group has."""
    shuffled = permutation(len(groups))
    order = shuffled[np.argsort(groups[shuffled], kind="stable")]
    present, counts = np.unique(groups, return_counts=True)
    drawn = np.empty(len(groups), dtype=np.int64)
    piece, start = max(1, _PIECE // chances.shape[1]), 0
    for first in range(0, len(present), piece):
        lines, sizes = present[first : first + piece], counts[first : first + piece]
        whole = rounded(chances[lines], sizes)
        stop = start + int(sizes.sum())
        drawn[order[start:stop]] = np.repeat(np.tile(np.arange(whole.shape[1]), len(lines)), whole.ravel())
        start = stop
    return drawn


def rounded(weights: Floats, totals: NDArray[np.int64]) -> NDArray[np.int64]:
    """Round each line of weights, scaled to its total, to whole numbers of that total.

    Theorem     With u uniform on [0, 1) and running sums s, the numbers floor(s_k + u) - floor(s_(k-1) + u) are the
                expected ones rounded down or up, and their means are the expected ones: systematic sampling. [MM44]
    """
    running = np.cumsum(weights, axis=1)
    last = running[:, -1:]
    running *= np.divide(totals[:, None], last, out=np.zeros_like(last), where=last > 0)
    running += (uniform(1 << 53, len(totals)) / float(1 << 53))[:, None]
    steps = np.floor(running).astype(np.int64)
    steps[:, -1] = totals  # The exact sum; rounding of floats must not lose a row.
    np.minimum(steps, totals[:, None], out=steps)
    return np.diff(steps, axis=1, prepend=0)
