"""A table model: groups of codes that noise would not drown, how they go together, and how rows are drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

from discreet import noise
from discreet.errors import InvalidParameter, Refused
from discreet.frames.column import Column
from discreet.synth.domain.coding import Coder
from discreet.synth.domain.domain import Domain, DomainColumn, Rule, cells_where, cut_column, read_condition
from discreet.synth.domain.numeric import Numeric
from discreet.synth.domain.value_forms import fractions
from discreet.synth.tables.graphical.graphical_model import Graphical

__all__ = ["Grouping", "TableModel", "group_cells", "likely_counts", "spread_evenly"]

# --- compressing: Merge what noise would drown: cells of a column that joint marginals need not tell apart. ---
#
# Which cells are merged follows from the noisy counts of the column and from public facts, never from exact counts. How
# rows are spread inside a group follows from the same noisy counts, so undoing it costs nothing either.


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
        if self.size > self.groups.size or set(self.groups.tolist()) != set(range(self.size)):
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


# --- model ---
# A table model: groups of codes, how they go together, and how to draw rows from that. All of it is released.


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TableModel:
    """A joint law of groups of codes, and the share of each code in its group."""

    domain: Domain
    groupings: tuple[Grouping, ...]
    joint: Graphical

    def __post_init__(self) -> None:
        known = tuple(grouping.groups.size for grouping in self.groupings)
        if known != self.domain.sizes or self.joint.sizes != tuple(grouping.size for grouping in self.groupings):
            raise InvalidParameter("this model does not fit its domain: it belongs to another table, or was changed")

    def __repr__(self) -> str:
        return f"TableModel of {len(self.groupings)} columns"

    @property
    def rows(self) -> int:
        """How many rows the table has by the noisy counts."""
        return max(1, round(self.joint.total))

    def codes(self, rows: int) -> NDArray[np.int32]:
        """Draw rows of codes."""
        drawn = self.joint.sample(rows)
        return np.column_stack([grouping.expand(drawn[:, place]) for place, grouping in enumerate(self.groupings)])

    def sample(self, rows: int) -> dict[str, Column]:
        """Draw rows of declared values."""
        return Coder(self.domain).decode(self.codes(rows))

    def given(self, where: Rule) -> TableModel:
        """Return the law of the rows that are as `where` says, or refuse if the model has none.

        Bins are cut where a range ends, as numbers are drawn evenly within them: what is drawn is the exact conditional
        law of the model.
        """
        columns, groupings, weights = dict(self.domain.columns), list(self.groupings), {}
        for name, value in read_condition(where, self.domain).items():
            place = self.domain.place(name)
            columns[name], finer = _cut_within(columns[name], value, groupings[place])
            groupings[place], weights[place] = _kept_of(finer, cells_where(columns[name], value, name))
        joint = self.joint.given(weights)
        if joint is None:
            raise Refused(
                f"the model has no rows with this combination of {', '.join(where)}: it gives it no chance",
                way_out="ask for fewer columns at once, or for wider ranges",
            )
        return TableModel(Domain(columns), tuple(groupings), joint)

    def document(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return what is to be saved."""
        arrays: dict[str, NDArray[Any]] = {}
        for place, grouping in enumerate(self.groupings):
            arrays |= {f"groups.{place}": grouping.groups, f"shares.{place}": grouping.shares}
        arrays |= {f"potential.{place}": table for place, table in enumerate(self.joint.potentials)}
        return {"cliques": [list(clique) for clique in self.joint.cliques], "total": self.joint.total}, arrays

    @classmethod
    def restored(cls, domain: Domain, document: tuple[dict[str, Any], dict[str, NDArray[Any]]]) -> Self:
        """Make a model from what was saved, or refuse what does not fit together."""
        facts, arrays = document
        try:
            groupings = tuple(
                Grouping(arrays[f"groups.{place}"].astype(np.int32), arrays[f"shares.{place}"].astype(np.float64))
                for place in range(len(domain.names))
            )
            cliques = tuple(tuple(int(column) for column in clique) for clique in facts["cliques"])
            tables = tuple(arrays[f"potential.{place}"].astype(np.float64) for place in range(len(cliques)))
            total = float(facts["total"])
        except (KeyError, TypeError, ValueError, AttributeError):
            raise InvalidParameter("this model is not complete: a part is missing or is of another kind") from None
        return cls(domain, groupings, Graphical(tuple(one.size for one in groupings), cliques, total, tables))


def _cut_within(column: DomainColumn, value: Any, grouping: Grouping) -> tuple[DomainColumn, Grouping]:
    """Cut the bins of a number where a range ends: each part has the share of its bin's points that it holds."""
    cut = cut_column(column, value)
    if not isinstance(column, Numeric) or not isinstance(cut, Numeric) or cut.size == column.size:
        return column, grouping
    bins = [np.append(one.starts, one.grid.last + 1) for one in (column, cut)]
    whole = np.searchsorted(bins[0], bins[1][:-1], side="right") - 1
    parts = np.diff(bins[1]) / np.diff(bins[0])[whole]
    if column.null_code is not None:
        whole, parts = np.append(whole, column.null_code), np.append(parts, 1.0)
    return cut, Grouping(grouping.groups[whole], grouping.shares[whole] * parts)


def _kept_of(grouping: Grouping, cells: tuple[int, ...]) -> tuple[Grouping, NDArray[np.float64]]:
    """Keep some codes: return how those that are left share their groups, and the share of each group that is kept."""
    inside = np.zeros(grouping.shares.size)
    inside[list(cells)] = grouping.shares[list(cells)]
    kept = np.bincount(grouping.groups, inside, grouping.size)
    of_group = kept[grouping.groups]
    shares = np.divide(inside, of_group, out=grouping.shares.copy(), where=of_group > 0)
    return Grouping(grouping.groups, shares), np.minimum(kept, 1.0)


# --- chances ---
# Draws from released shares that carry no privacy: as even as they can be, still from the one secure source.


def spread_evenly(shares: NDArray[np.float64], count: int) -> NDArray[np.intp]:
    """Draw places with these shares, in random order: each comes up as often as its share says, up to one row."""
    if not count:
        return np.zeros(0, np.intp)
    ladder = np.cumsum(shares)
    # One offset for all makes every count the floor or the ceiling of what is expected.
    points = (np.arange(count) + fractions(1)[0]) / count * ladder[-1]
    drawn = np.minimum(np.searchsorted(ladder, points, side="right"), np.flatnonzero(shares > 0)[-1])
    order = noise.permutation(count)
    return np.asarray(drawn[order], np.intp)
