"""What methods know of a table before they look: sizes, which codes have an order, and structural zeros."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Self, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.frames.column import Column
from discreet.mechanisms.parameters import settle
from discreet.synth.domain.coding import Coder
from discreet.synth.domain.domain import Domain, Impossible
from discreet.synth.domain.numeric import Numeric
from discreet.synth.tables.graphical.belief_propagation import junction_cells
from discreet.synth.tables.graphical.entropy_fit import fit
from discreet.synth.tables.table_model import Grouping

__all__ = [
    "Clique",
    "Distances",
    "TableShape",
    "Zeros",
    "cells",
    "check_rules",
    "evenly_possible",
    "marginal",
    "marginal_cliques",
    "marginal_distances",
    "total_variation",
]

# --- marginals: Marginals of coded tables, exact and therefore not private, and how far two tables are apart. ---


# --- counting ---
# Marginals of coded tables: exact whole numbers. What they are counted from decides whether they are private.


Clique: TypeAlias = tuple[int, ...]  # the columns of a marginal, in rising order
_MOST_MARGINAL_CELLS = 1 << 28  # Of one marginal; more is a mistake.


def cells(sizes: Sequence[int], clique: Clique) -> int:
    """Return the number of cells of a marginal."""
    return math.prod(sizes[column] for column in clique)


def marginal(codes: NDArray[np.int32], sizes: Sequence[int], clique: Clique) -> NDArray[np.int64]:
    """Count the rows in each cell, the last column running quickest."""
    count = cells(sizes, clique)
    if count > _MOST_MARGINAL_CELLS:
        raise InvalidParameter(f"a marginal of {count} cells is too large: choose fewer columns or coarser bins")
    where = np.zeros(len(codes), np.int64)
    for column in clique:
        where *= sizes[column]
        where += codes[:, column]
    return np.bincount(where, minlength=count)


# --- distances: How far two coded tables are apart: total variation of their marginals. Exact, so not private. ---
#
# These compare whatever tables they are given. If one of them is the real table, the result is a fact about it: whoever
# shows it wraps it in `NotPrivate`.


@final
@dataclass(frozen=True, slots=True)
class Distances:
    """The total variation distance of each marginal: 0 where two tables agree, 1 where they share no cell."""

    by_clique: dict[Clique, float]

    @property
    def mean(self) -> float:
        return float(np.mean(list(self.by_clique.values())))

    @property
    def worst(self) -> tuple[Clique, float]:
        return max(self.by_clique.items(), key=lambda item: item[1])


def marginal_cliques(sizes: Sequence[int], ways: int, *, most_cells: int = 100_000) -> list[Clique]:
    """List all sets of so many columns whose marginal has at most `most_cells` cells."""
    return [clique for clique in combinations(range(len(sizes)), ways) if cells(sizes, clique) <= most_cells]


def marginal_distances(
    left: NDArray[np.int32], right: NDArray[np.int32], sizes: Sequence[int], cliques: Iterable[Clique]
) -> Distances:
    """Measure the distance of each of these marginals, each table as shares of its own rows."""
    if not len(left) or not len(right):
        raise InvalidParameter("an empty table has no shares: both tables need at least one row")
    return Distances({clique: total_variation(left, right, sizes, clique) for clique in cliques})


def total_variation(left: NDArray[np.int32], right: NDArray[np.int32], sizes: Sequence[int], clique: Clique) -> float:
    """Return half the l1 distance of the shares of all cells."""
    shares = marginal(left, sizes, clique) / len(left) - marginal(right, sizes, clique) / len(right)
    return float(np.abs(shares).sum()) / 2


Zeros = tuple[Clique, NDArray[np.bool_]]  # columns, and which of their cells cannot be


@final
@dataclass(frozen=True, slots=True, eq=False)
class TableShape:
    """The public facts of a domain, column by column."""

    sizes: tuple[int, ...]
    ordered: tuple[NDArray[np.bool_], ...]  # for each code, whether its neighbours are near it
    kinds: tuple[NDArray[np.int64], ...]  # for each code, which rules name it: codes of unlike kinds are never merged
    rules: tuple[Impossible, ...]
    favoured: int | None = None  # a column that matters more than others

    @classmethod
    def of(cls, domain: Domain, label: str | None = None) -> Self:
        """Read the facts of a domain."""
        columns = list(domain.columns.values())
        ordered = [np.full(column.size, isinstance(column, Numeric)) for column in columns]
        for column, flags in zip(columns, ordered, strict=True):
            if column.null_code is not None:
                flags[column.null_code] = False
        kinds = [_kinds(place, size, domain.impossible) for place, size in enumerate(domain.sizes)]
        favoured = None if label is None else domain.place(label)
        return cls(domain.sizes, tuple(ordered), tuple(kinds), domain.impossible, favoured)

    def zeros(self, groupings: Sequence[Grouping]) -> list[Zeros]:
        """Say which cells of groups cannot be. Each rule names whole groups."""
        return [_zeros(rule, groupings) for rule in self.rules]


def _kinds(place: int, size: int, rules: Sequence[Impossible]) -> NDArray[np.int64]:
    """Number the sets of rules that name a code."""
    named = [(*sorted(_rules_of(place, code, rules)),) for code in range(size)]
    known = {rule: number for number, rule in enumerate(dict.fromkeys(named))}
    return np.array([known[rule] for rule in named], np.int64)


def _rules_of(place: int, code: int, rules: Sequence[Impossible]) -> set[int]:
    return {
        number
        for number, rule in enumerate(rules)
        if place in rule.columns and code in rule.cells[rule.columns.index(place)]
    }


def _zeros(rule: Impossible, groupings: Sequence[Grouping]) -> Zeros:
    sizes = tuple(groupings[column].size for column in rule.columns)
    named = [
        np.unique(groupings[column].groups[list(codes)]) for column, codes in zip(rule.columns, rule.cells, strict=True)
    ]
    mask = np.zeros(sizes, np.bool_)
    mask[np.ix_(*named)] = True
    return rule.columns, mask


# --- rules ---
# Impossible combinations are public: rules that no row could keep, or no model could hold, are refused unpaid.


_MOST_CELLS = 1 << 24  # Of all tables that the rules alone ask for: 128 MB.


def check_rules(domain: Domain) -> None:
    """Refuse rules that together leave nothing possible, or that join columns to tables of too many cells.

    Codes that the same rules name are alike to them, so whether a row is left is asked of one cell for each kind.
    """
    if not domain.impossible:
        return
    shape = TableShape.of(_named(domain))
    cells = junction_cells(shape.sizes, [rule.columns for rule in shape.rules])
    if cells > _MOST_CELLS:
        raise InvalidParameter(
            f"the rules of impossible combinations join columns to tables of {cells:,} cells, {_MOST_CELLS:,} at most: "
            "name fewer columns in a rule, or declare coarser bins"
        )
    kinds = [Grouping(kind.astype(np.int32), 1 / np.bincount(kind)[kind]) for kind in shape.kinds]
    fit([kind.size for kind in kinds], [], impossible=shape.zeros(kinds))


def evenly_possible(domain: Domain, rows: int) -> dict[str, Column]:
    """Draw rows of which every combination that the rules leave is as likely as any other."""
    shape = TableShape.of(domain)
    groupings = [Grouping.none(size) for size in shape.sizes]
    return Coder(domain).decode(fit(shape.sizes, [], impossible=shape.zeros(groupings)).sample(rows))


def _named(domain: Domain) -> Domain:
    """Return the columns that rules name, and the rules; other columns may not even be found yet."""
    places = sorted({place for rule in domain.impossible for place in rule.columns})
    rules = [Impossible(tuple(places.index(place) for place in one.columns), one.cells) for one in domain.impossible]
    named = Domain({domain.names[place]: domain.columns[domain.names[place]] for place in places})
    settle(named, impossible=tuple(rules))
    return named
