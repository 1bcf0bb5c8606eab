"""What methods know of a table before they look: sizes, which codes have an order, and what cannot be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self, final

import numpy as np
from numpy.typing import NDArray

from discreet.synth.domain import Domain, Impossible, Numeric
from discreet.synth.tables.compressing import Grouping
from discreet.synth.tables.counting import Clique

__all__ = ["TableShape", "Zeros"]

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
