"""Merge what noise would drown: cells of a column that joint marginals need not tell apart.

Which cells are merged follows from the noisy counts of the column and from public facts, never from exact counts. How
rows are spread inside a group follows from the same noisy counts, so undoing it costs nothing either.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.synth.tables.chances import spread_evenly

__all__ = ["Grouping", "group_cells", "likely_counts"]

_COARSER = 1.1  # By what groups grow until there are few enough.


@final
@dataclass(frozen=True, slots=True, eq=False)
class Grouping:
    """Groups of the codes of one column. All of it is released."""

    groups: NDArray[np.int32]  # the group of each code; groups are numbered from 0 without gaps
    shares: NDArray[np.float64]  # the share of each code among the rows of its group

    def __post_init__(self) -> None:
        if self.groups.shape != self.shares.shape or self.groups.ndim != 1 or not self.groups.size:
            raise InvalidParameter("a grouping has one group and one share for each code")
        if set(self.groups.tolist()) != set(range(self.size)):
            raise InvalidParameter("groups are numbered from 0 without gaps")
        totals = np.bincount(self.groups, self.shares, self.size)
        if not (self.shares >= 0).all() or not np.allclose(totals, 1):
            raise InvalidParameter("the shares of each group must add up to 1")

    @classmethod
    def none(cls, size: int) -> Grouping:
        """Tell all codes apart."""
        return cls(np.arange(size, dtype=np.int32), np.ones(size))

    @property
    def size(self) -> int:
        """How many groups there are."""
        return int(self.groups.max()) + 1

    def expand(self, rows: NDArray[np.int32]) -> NDArray[np.int32]:
        """Draw a code for each row from its group, as evenly as shares allow."""
        codes = np.empty(len(rows), np.int32)
        for group in range(self.size):
            members = np.flatnonzero(self.groups == group)
            where = np.flatnonzero(rows == group)
            codes[where] = members[spread_evenly(self.shares[members], len(where))]
        return codes


def group_cells(
    noisy: NDArray[np.float64],
    deviation: float,
    *,
    rare: float,
    most: int,
    ordered: NDArray[np.bool_],
    kinds: NDArray[np.int64],
) -> Grouping:
    """Merge cells until each holds `rare` deviations of the noise, and more if that leaves above `most` groups.

    Cells that have an order are merged with their neighbours, one after the other; of the others the rare ones
    become one group. Cells of unlike kinds stay apart, even if that makes more groups.
    """
    likely = likely_counts(noisy)
    merge = _in_order if ordered.any() else _rare
    least = rare * deviation
    labels = merge(likely, least, ordered, kinds)
    least = max(least, float(likely.sum()) / (4 * most))  # Groups of no more rows are too many.
    while np.unique(labels).size > most and least <= likely.sum():
        labels = merge(likely, least, ordered, kinds)
        least *= _COARSER
    groups = np.unique(labels, return_inverse=True)[1].astype(np.int32)
    return Grouping(groups, _shares(noisy, deviation, groups))


def likely_counts(noisy: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the nearest counts without a negative one that have the same sum, or 1 in all if that is not positive."""
    total = max(float(noisy.sum()), 1.0)
    falling = np.sort(noisy)[::-1]
    # Taking the same from all cells, and none below zero, is the projection onto counts of this sum.
    excess = (np.cumsum(falling) - total) / np.arange(1, noisy.size + 1)
    taken = excess[np.flatnonzero(falling > excess)[-1]]
    return np.asarray(np.maximum(noisy - taken, 0.0))


def _rare(
    likely: NDArray[np.float64], least: float, ordered: NDArray[np.bool_], kinds: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Label each frequent code by itself and all the rare ones of a kind alike, behind the others."""
    return np.where(likely >= least, np.arange(likely.size), likely.size + kinds)


def _in_order(
    likely: NDArray[np.float64], least: float, ordered: NDArray[np.bool_], kinds: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Walk along the codes and close a group when it is large enough; a large code stands alone."""
    labels = np.zeros(likely.size, np.int64)
    held = 0.0
    for code in range(1, likely.size):
        held += float(likely[code - 1])
        joins = ordered[code] and ordered[code - 1] and kinds[code] == kinds[code - 1]
        closes = not joins or held >= least or likely[code] >= least
        labels[code] = labels[code - 1] + closes
        held = 0.0 if closes else held
    return labels


def _shares(noisy: NDArray[np.float64], deviation: float, groups: NDArray[np.int32]) -> NDArray[np.float64]:
    shares = np.ones(noisy.size)
    for group in range(int(groups.max()) + 1):
        members = np.flatnonzero(groups == group)
        shares[members] = _shares_inside(noisy[members], deviation)
    return shares


def _shares_inside(noisy: NDArray[np.float64], deviation: float) -> NDArray[np.float64]:
    """Spread a group by its noisy counts, drawn towards even shares as far as noise alone would scatter them.

    Theorem     Drawing three or more noisy numbers together by this factor lowers their expected squared error,
                whatever they are. [JS61]
    """
    scatter = noisy - noisy.mean()
    expected = deviation**2 * max(noisy.size - 3, 1)
    kept = max(0.0, 1.0 - expected / max(float((scatter**2).sum()), expected))
    likely = likely_counts(noisy.mean() + kept * scatter)
    return np.asarray(likely / likely.sum())
