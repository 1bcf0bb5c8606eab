"""A table model: groups of codes that noise would not drown, how they go together, and how rows are drawn."""

from __future__ import annotations

from collections.abc import Mapping
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
from discreet.synth.tables.normal_scores import NormalScores, RankedRows, Tie, check_ties, in_order_of, score_ends

__all__ = ["Grouping", "TableModel", "TiedRows", "group_cells", "likely_counts", "spread_evenly"]

# --- compressing: Merge what noise would drown: cells of a column that joint marginals need not tell apart. ---
#
# Which cells are merged follows from the noisy counts of the column and from public facts, never from exact counts. How
# rows are spread inside a group follows from the same noisy counts, so undoing it costs nothing either.


_COARSER = 1.1  # By what groups grow until there are few enough.
_KNOWN = 1 << 14  # Rows by which it is known where a score stands in its group.
_TRIES = 100  # Times as many rows are looked at as are asked for, and at least of the most at a time.
_FEWEST, _MOST = 1 << 12, 1 << 17  # Rows that are looked at at a time.


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

    def placed(self, rows: NDArray[np.int32], ranks: NDArray[np.float64]) -> NDArray[np.int32]:
        """Return the code of each row whose share of its group's rows lies below it."""
        codes = np.empty(len(rows), np.int32)
        for group in range(self.size):
            members = np.flatnonzero(self.groups == group)
            where = np.flatnonzero(rows == group)
            ladder = np.cumsum(self.shares[members])
            found = np.searchsorted(ladder, ranks[where] * ladder[-1], side="right")
            codes[where] = members[np.minimum(found, np.flatnonzero(self.shares[members] > 0)[-1])]
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
    ties: tuple[Tie, ...] = ()  # of columns of numbers, within groups

    def __post_init__(self) -> None:
        known = tuple(grouping.groups.size for grouping in self.groupings)
        if known != self.domain.sizes or self.joint.sizes != tuple(grouping.size for grouping in self.groupings):
            raise InvalidParameter("this model does not fit its domain: it belongs to another table, or was changed")
        columns = enumerate(self.domain.columns.values())
        check_ties(self.ties, [place for place, column in columns if isinstance(column, Numeric)])

    def __repr__(self) -> str:
        return f"TableModel of {len(self.groupings)} columns"

    @property
    def rows(self) -> int:
        """How many rows the table has by the noisy counts."""
        return max(1, round(self.joint.total))

    def codes(self, rows: int) -> NDArray[np.int32]:
        """Draw rows of codes."""
        return self._drawn(rows)[0]

    def sample(self, rows: int) -> dict[str, Column]:
        """Draw rows of declared values."""
        return Coder(self.domain).decode(*self._drawn(rows))

    def _drawn(self, rows: int) -> tuple[NDArray[np.int32], dict[int, NDArray[np.float64]]]:
        """Draw rows of codes, and scores of tied columns, in whose order a group's codes are dealt to its rows."""
        drawn = self.joint.sample(rows)
        codes = np.column_stack([grouping.expand(drawn[:, place]) for place, grouping in enumerate(self.groupings)])
        scores = self.scores.draw(drawn)
        for place, own in scores.items():
            codes[:, place] = in_order_of(own, drawn[:, place], codes[:, place])
        return codes, scores

    @property
    def scores(self) -> NormalScores:
        """The law of scores of tied columns."""
        return NormalScores({place: self._ends(place) for place in self._tied}, self.ties)

    def _ends(self, place: int) -> NDArray[np.float64]:
        column, grouping = self.domain.columns[self.domain.names[place]], self.groupings[place]
        ordered = np.ones(grouping.size, np.bool_)
        if column.null_code is not None:
            ordered[grouping.groups[column.null_code]] = False
        return score_ends(self.joint.marginal((place,)), ordered)

    def given(self, where: Rule) -> TableModel | TiedRows:
        """Return the law of the rows that are as `where` says, or refuse if the model has none.

        Bins are cut where a range ends, as numbers are drawn evenly within them: what is drawn is the exact conditional
        law of the model. Where columns are tied, rows of the groups that are asked for are drawn, and kept if they are
        as `where` says.
        """
        columns, finer, kept = dict(self.domain.columns), list(self.groupings), {}
        for name, value in read_condition(where, self.domain).items():
            place = self.domain.place(name)
            columns[name], finer[place] = _cut_within(columns[name], value, finer[place])
            kept[place] = cells_where(columns[name], value, name)
        narrowed = {place: _kept_of(finer[place], cells) for place, cells in kept.items()}
        groupings = tuple(narrowed[place][0] if place in narrowed else own for place, own in enumerate(finer))
        weights = {place: weight for place, (_, weight) in narrowed.items()}
        joint = self.joint.given(weights)
        if joint is None:
            raise no_such_rows(where)
        if not self.ties:
            return TableModel(Domain(columns), groupings, joint)
        free = tuple(finer[place] if place in self._tied else own for place, own in enumerate(groupings))
        whole = TableModel(Domain(columns), free, self.joint, self.ties)
        touched = {place: np.ceil(own) if place in self._tied else own for place, own in weights.items()}
        wanted = {place: cells for place, cells in kept.items() if place in self._tied}
        return TiedRows(whole, self.joint.given(touched) or joint, wanted, joint.total, where)

    @property
    def _tied(self) -> list[int]:
        return list(dict.fromkeys(place for tie in self.ties for place in (tie.left, tie.right)))

    def document(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return what is to be saved."""
        arrays: dict[str, NDArray[Any]] = {}
        for place, grouping in enumerate(self.groupings):
            arrays |= {f"groups.{place}": grouping.groups, f"shares.{place}": grouping.shares}
        arrays |= {f"potential.{place}": table for place, table in enumerate(self.joint.potentials)}
        if self.ties:
            arrays["ties"] = np.array([(tie.left, tie.right, tie.strength) for tie in self.ties], np.float64)
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
            ties = np.asarray(arrays.get("ties", np.empty((0, 3))))
        except (KeyError, TypeError, ValueError, AttributeError):
            raise InvalidParameter("this model is not complete: a part is missing or is of another kind") from None
        joint = Graphical(tuple(one.size for one in groupings), cliques, total, tables)
        return cls(domain, groupings, joint, _ties_of(ties, len(groupings)))


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TiedRows:
    """The rows of a model with ties that are as a condition says: drawn with their scores until enough are."""

    whole: TableModel  # all rows, with bins cut where the condition cuts them
    joint: Graphical  # the law of groups in which such rows are
    wanted: Mapping[int, tuple[int, ...]]  # the cells of tied columns that are asked for
    total: float
    where: Rule

    @property
    def rows(self) -> int:
        """About how many such rows the table has by the noisy counts."""
        return max(1, round(self.total))

    def sample(self, rows: int) -> dict[str, Column]:
        """Draw rows of declared values."""
        ranked, found, held, looked = self._ranked(), [], 0, 0
        while looked < _TRIES * max(_MOST, rows):
            size = min(max(2 * rows * (looked + 1) // (held + 1), _FEWEST), _MOST)
            found.append(self._kept(ranked, size))
            held, looked = held + len(found[-1]), looked + size
            if held >= rows:
                return Coder(self.whole.domain).decode(np.concatenate(found)[:rows])
        raise too_few_rows(self.where)

    def _ranked(self) -> dict[int, RankedRows]:
        """Draw rows of all groups, by which it is known where in its group a score stands."""
        known = self.whole.joint.sample(_KNOWN)
        sizes = self.whole.joint.sizes
        drawn = self.whole.scores.draw(known).items()
        return {place: RankedRows.of(own, known[:, place], sizes[place]) for place, own in drawn}

    def _kept(self, ranked: Mapping[int, RankedRows], rows: int) -> NDArray[np.int32]:
        """Draw rows of codes, and keep those that are as asked."""
        drawn = self.joint.sample(rows)
        scores = self.whole.scores.draw(drawn)
        parts = []
        for place, grouping in enumerate(self.whole.groupings):
            groups = drawn[:, place]
            ranks = ranked[place].ranks(scores[place], groups) if place in ranked else None
            parts.append(grouping.expand(groups) if ranks is None else grouping.placed(groups, ranks))
        codes = np.column_stack(parts)
        asked = [np.isin(codes[:, place], cells) for place, cells in self.wanted.items()]
        return np.asarray(codes[np.logical_and.reduce(asked)] if asked else codes)

    def document(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return that of the whole model: a condition is not saved."""
        return self.whole.document()


def no_such_rows(where: Rule) -> Refused:
    """Say that a model has no rows as asked."""
    return Refused(
        f"the model has no rows with this combination of {', '.join(where)}: it gives it no chance",
        way_out="ask for fewer columns at once, or for wider ranges",
    )


def too_few_rows(where: Rule) -> Refused:
    """Say that hardly any row of a model with ties is as asked: they are drawn until enough are, but not for ever."""
    return Refused(
        f"hardly any row that the model draws has this combination of {', '.join(where)}",
        way_out="ask for fewer rows, for fewer columns at once, or for wider ranges",
    )


def _ties_of(listed: NDArray[Any], columns: int) -> tuple[Tie, ...]:
    """Read ties of a file; what has more of them than a forest is refused before it is listed."""
    if listed.shape[1:] != (3,) or len(listed) >= columns or not np.isfinite(listed).all():
        raise InvalidParameter("ties of a model must be a forest: two columns and a strength each")
    return tuple(Tie(int(left), int(right), float(own)) for left, right, own in listed)


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
