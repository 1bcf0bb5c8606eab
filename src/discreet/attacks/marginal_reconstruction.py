"""Reconstruction from published tables: the rows of a small block, from tables of a few columns at a time. [GAM19]

No table shows anybody's row. But few blocks of people have all these tables at once; often it is only one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, final

import numpy as np

from discreet.attacks.drawing import success_bars
from discreet.attacks.marginal_fitting import certain, fitted, nearest
from discreet.attacks.marginals import Marginals, PeopleBlock, block_of, marginals
from discreet.attacks.results import Success
from discreet.attacks.vectors import Integers, VectorRelease, deviation_of, released
from discreet.errors import InvalidParameter
from discreet.privacy import Event, Relation, best_tpr
from discreet.privacy.notprivate import NotPrivate

if TYPE_CHECKING:
    import altair as alt

__all__ = ["MarginalReconstruction", "marginal_reconstruction"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MarginalReconstruction:
    """How many rows of a block were rebuilt, value by value in every column, from its tables."""

    columns: tuple[str, ...]
    people: int
    tables: int
    cells: int  # published numbers
    kinds: int  # of people that there can be
    deviation: float  # of the declared noise on each number
    rebuilt: Success  # rows of the block that are in the block that was rebuilt
    certain: int | None  # rows that every block has which fits the tables; None if they are noisy
    fresh: Success  # the same for people one by one, each from tables made anew …
    without: Success  # … and made anew without that person's row: the baseline
    ceiling: float | None  # the share that no attacker exceeds, by the guarantee that is claimed
    examples: tuple[Mapping[str, str], ...]  # rows of the rebuilt block

    @property
    def unique(self) -> bool:
        """Whether only one block of people fits the tables: then every row is proven."""
        return self.certain == self.people

    def plot(self) -> alt.LayerChart:
        """Draw the share of rows that were rebuilt, with and without the person's row, each with its limits."""
        return success_bars(
            {"rebuilt": self.fresh, "without the person's row": self.without},
            ceiling=self.ceiling,
            across="share of rows rebuilt exactly",
            title=f"{self.people} rows from {self.tables} tables",
        )

    def to_json(self) -> str:
        """Write the figures, without anybody's row."""
        return json.dumps(
            {
                "attack": "marginal_reconstruction",
                "columns": self.columns,
                "people": self.people,
                "tables": self.tables,
                "cells": self.cells,
                "kinds": self.kinds,
                "deviation": self.deviation,
                "rebuilt": [self.rebuilt.hits, self.rebuilt.of],
                "certain": self.certain,
                "unique": self.unique,
                "fresh": [self.fresh.hits, self.fresh.of],
                "without": [self.without.hits, self.without.of],
                "ceiling": self.ceiling,
            }
        )

    def __str__(self) -> str:
        noisy = f"noise ± {self.deviation:.3g} on each number" if self.deviation else "exact"
        low, high = self.fresh.interval()
        told = [
            f"{self.people} people, {self.tables} tables of {', '.join(self.columns)}: {self.cells:,} numbers, {noisy}",
            f"  rows rebuilt exactly        {self.rebuilt}",
        ]
        if self.certain is not None:
            proven = ": no other block fits" if self.unique else ""
            told.append(f"  … surely, in every block    {Success(self.certain, self.people)}{proven}")
        told += [
            f"  from tables made anew       {self.fresh}, between {100 * low:.0f} and {100 * high:.0f} %",
            f"  … without the person's row  {self.without}",
        ]
        if self.ceiling is not None:
            told.append(f"  no attacker exceeds         {100 * self.ceiling:.0f} %")
        return "\n".join(told + ["  " + ", ".join(f"{k}: {v}" for k, v in row.items()) for row in self.examples])


def marginal_reconstruction(
    rows: Any,
    columns: Sequence[str],
    *,
    ways: int = 2,
    where: str = "",
    values: Mapping[str, Sequence[str]] | None = None,
    mechanism: VectorRelease | None = None,
    trials: int | None = None,
    examples: int = 0,
) -> NotPrivate[MarginalReconstruction]:
    """Publish all tables of at most `ways` of the columns for a block of people, and rebuild the people.

    `where` says which rows are the block. All cells are one release of the `mechanism`; adding a person changes one
    cell of each table: `gaussian_counts(cells, squared_sensitivity=tables, …)`, both told by `block_of(…).marginals`.
    Without one they are exact. `trials` people, everybody unless said otherwise, are looked for in tables of their own.
    """
    block = rows if isinstance(rows, PeopleBlock) else block_of(rows, columns, ways=ways, where=where, values=values)
    attack = _MarginalAttack(block, mechanism)
    cells = marginals(block)
    found = attack.rebuilt(cells)
    truth = np.bincount(block.kinds, minlength=block.marginals.kinds)
    tried = [attack.trial(number, cells) for number in range(len(block.kinds) if trials is None else trials)]
    without = Success(sum(absent for _, absent in tried), len(tried))
    shown = np.flatnonzero(found)[:examples]
    return NotPrivate(
        MarginalReconstruction(
            columns=block.marginals.columns,
            people=len(block.kinds),
            tables=len(block.marginals.tables),
            cells=block.marginals.cells,
            kinds=block.marginals.kinds,
            deviation=deviation_of(mechanism, len(cells)),
            rebuilt=Success(int(np.minimum(found, truth).sum()), len(block.kinds)),
            certain=int(certain(block.marginals, cells, found).sum()) if mechanism is None else None,
            fresh=Success(sum(present for present, _ in tried), len(tried)),
            without=without,
            ceiling=None if mechanism is None else _ceiling(mechanism.event, mechanism.relation, without),
            examples=tuple(block.marginals.described(int(kind)) for kind in shown),
        )
    )


@final
@dataclass(frozen=True, slots=True, eq=False)
class _MarginalAttack:
    block: PeopleBlock
    mechanism: VectorRelease | None

    def rebuilt(self, cells: Integers) -> Integers:
        """Publish tables and return how many people of each kind fit them. How many there are is known anyway."""
        if self.mechanism is None:
            return fitted(self.block.marginals, cells)
        return nearest(self.block.marginals, released(self.mechanism, cells), people=len(self.block.kinds))

    def trial(self, number: int, cells: Integers) -> tuple[bool, bool]:
        """Look for a person in a block rebuilt from fresh tables, with their row and without it.

        Of people of one kind the first is found if one is there, the second if two are, and so on: as many are
        found as rows were rebuilt.
        """
        kinds = self.block.kinds
        person = number % len(kinds)
        rank = int(np.count_nonzero(kinds[:person] == kinds[person]))
        own = _row(self.block.marginals, int(kinds[person]))
        seen = (self.rebuilt(cells), self.rebuilt(cells - own))
        return bool(seen[0][kinds[person]] > rank), bool(seen[1][kinds[person]] > rank)


def _row(plan: Marginals, kind: int) -> Integers:
    """Return the cells that one person adds to."""
    one = np.zeros(plan.kinds)
    one[kind] = 1
    return np.asarray(plan.matrix() @ one).round().astype(np.int64)


def _ceiling(event: Event, relation: Relation, without: Success) -> float:
    """Bound the share that is found with the row by the trade-off curve at the share found without it."""
    if relation is not Relation.ADD_REMOVE:
        raise InvalidParameter("the mechanism must be calibrated for ADD_REMOVE: a row is there or not")
    return best_tpr(event, Fraction(without.interval()[1]), relation=relation)
