"""Reconstruction from published tables: the rows of a small block, from tables of a few columns at a time. [GAM19]

No table shows anybody's row. But few blocks of people have all these tables at once; often it is only one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import prod
from typing import TYPE_CHECKING, Any, final

import numpy as np

from discreet.errors import InvalidParameter, Refused
from discreet.lab.attacks.lab_tables import laboratory, text_of
from discreet.lab.attacks.populations import Floats, Integers, VectorRelease, deviation_of, released
from discreet.lab.attacks.success_rates import Success, success_bars
from discreet.pages.progress import working
from discreet.privacy import Event, Relation, best_tpr
from discreet.privacy.not_private import NotPrivate

if TYPE_CHECKING:
    import altair as alt
    from scipy.sparse import csr_array

__all__ = [
    "MarginalReconstruction",
    "Marginals",
    "PeopleBlock",
    "block_of",
    "certain",
    "fitted",
    "marginal_reconstruction",
    "marginals",
    "nearest",
]

# --- marginals: All tables of a few columns at a time, as an office publishes them of a small block of people. ---


_MOST_KINDS, _MOST_ROWS = 20_000, 2_000


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Marginals:
    """Which tables are published: every choice of at most `ways` columns, each with all its groups.

    A person is one of `kinds`, a value of every column, numbered with the last column counting fastest.
    """

    columns: tuple[str, ...]
    values: tuple[tuple[str, ...], ...]
    ways: int

    def __post_init__(self) -> None:
        if not 1 <= self.ways <= len(self.columns):
            raise InvalidParameter("ways must be at least 1 and at most the number of columns")
        if self.kinds > _MOST_KINDS:
            raise InvalidParameter(
                f"these columns make more than {_MOST_KINDS:,} combinations of values: leave one out"
            )

    @property
    def shape(self) -> tuple[int, ...]:
        """How many values each column has."""
        return tuple(len(listed) for listed in self.values)

    @property
    def kinds(self) -> int:
        """How many different people there can be."""
        return prod(self.shape)

    @property
    def tables(self) -> tuple[tuple[int, ...], ...]:
        """The columns of each table, by number. Everybody is counted once in each, so one person changes one cell."""
        places = range(len(self.columns))
        return tuple(chosen for size in range(1, self.ways + 1) for chosen in combinations(places, size))

    @property
    def cells(self) -> int:
        """How many numbers are published."""
        return sum(prod(self.shape[place] for place in chosen) for chosen in self.tables)

    def matrix(self) -> csr_array[Any]:
        """Return which kinds of people each published cell counts, as rows of 0 and 1."""
        from scipy.sparse import csr_array

        codes = np.unravel_index(np.arange(self.kinds), self.shape)
        rows, start = [], 0
        for chosen in self.tables:
            sizes = [self.shape[place] for place in chosen]
            rows.append(start + np.ravel_multi_index([codes[place] for place in chosen], sizes))
            start += prod(sizes)
        columns = np.tile(np.arange(self.kinds), len(self.tables))
        entries = (np.ones(len(columns)), (np.concatenate(rows), columns))
        return csr_array(entries, shape=(start, self.kinds))

    def described(self, kind: int) -> dict[str, str]:
        """Say what a kind of person is."""
        codes = np.unravel_index(kind, self.shape)
        return {name: self.values[place][int(codes[place])] for place, name in enumerate(self.columns)}


@final
@dataclass(frozen=True, slots=True, eq=False)
class PeopleBlock:
    """A few people, each of a kind."""

    marginals: Marginals
    kinds: Integers  # one for each person


def block_of(
    table: Any, columns: Sequence[str], *, ways: int, where: str = "", values: Mapping[str, Sequence[str]] | None = None
) -> PeopleBlock:
    """Read the people of a block: the rows of a table of this machine that fulfil a condition, as in SQL.

    `values` lists the groups of a column; without it those of the whole table are taken. Values are read as text, and
    what is missing is the empty text.
    """
    with laboratory({"table": table}) as lab:
        listed = [f"coalesce({text_of(lab.column('table', name))}, '')" for name in columns]
        chosen = ", ".join(f"{text} AS c{i}" for i, text in enumerate(listed))
        condition = f" WHERE {lab.condition('table', where)}" if where else ""
        rows = lab.select(f"SELECT {chosen} FROM {lab.relations['table']}{condition} LIMIT {_MOST_ROWS + 1}")
        known = [_values(lab, text, (values or {}).get(name)) for name, text in zip(columns, listed, strict=True)]
    if not 1 <= rows.num_rows <= _MOST_ROWS:
        raise InvalidParameter(f"a block has from one to {_MOST_ROWS:,} people: say which with where='…'")
    plan = Marginals(columns=tuple(columns), values=tuple(known), ways=ways)
    return PeopleBlock(plan, _kinds(plan, [rows.column(f"c{i}").to_pylist() for i in range(len(columns))]))


def marginals(block: PeopleBlock) -> Integers:
    """Count a block exactly: the cells of all its tables, one after another."""
    people = np.bincount(block.kinds, minlength=block.marginals.kinds)
    return np.asarray(block.marginals.matrix() @ people).round().astype(np.int64)


def _values(lab: Any, text: str, listed: Sequence[str] | None) -> tuple[str, ...]:
    if listed is not None:
        return tuple(map(str, listed))
    found = lab.select(f"SELECT DISTINCT {text} AS value FROM {lab.relations['table']} LIMIT {_MOST_KINDS + 1}")
    return tuple(sorted(found.column("value").to_pylist()))


def _kinds(plan: Marginals, columns: Sequence[Sequence[str]]) -> Integers:
    codes = []
    for name, listed, column in zip(plan.columns, plan.values, columns, strict=True):
        places = {value: place for place, value in enumerate(listed)}
        if not set(column) <= set(places):
            raise InvalidParameter(f"column {name!r} has values that are not listed: list all of them")
        codes.append([places[value] for value in column])
    return np.ravel_multi_index(codes, plan.shape).astype(np.int64)


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

    __repr__ = __str__


@working("attacking", terminal=False)
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

    Args:
        rows: The private table: a file of this machine, a frame or an Arrow table.
        columns: The columns of which tables are published.
        ways: How many columns a table has at most.
        where: The condition, as in SQL, that the rows of the block fulfil; all rows if not said.
        values: The values of columns, by column; those in the data if not said.
        mechanism: What publishes all cells together; None publishes them exactly.
        trials: How many people are looked for.
        examples: How many rebuilt rows are told.

    Returns:
        How many rows were rebuilt, and how many without the person, marked as not private.

    Raises:
        InvalidParameter: If there is no such column, or the block is too large to solve.

    Examples:
        >>> import pyarrow as pa
        >>> block = pa.table({"sex": ["f", "m", "f"], "age": ["young", "old", "old"], "ill": ["yes", "no", "no"]})
        >>> found = dp.attacks.marginal_reconstruction(block, ["sex", "age", "ill"], ways=2, trials=0)
        >>> print(found.value.rebuilt)
        3 of 3 (100 %)
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


# --- marginal_fitting ---
# The people behind some tables: whole numbers of each kind whose tables are those that were published, or nearest.
#
# Integer programming, by HiGHS. Exact tables have at least one answer; noisy ones usually none, and the answer is the
# block whose tables are least off in sum of absolute differences.


_SECONDS = 60.0  # For one program over a small block; those of this size take a hundredth.


def fitted(plan: Marginals, cells: Integers) -> Integers:
    """Return how many people of each kind there may be, if these tables are exact."""
    matrix, possible = _possible(plan, cells)
    people = np.zeros(plan.kinds, dtype=np.int64)
    people[possible] = _solved(np.zeros(len(possible)), matrix, cells, cells)[: len(possible)]
    return people


def certain(plan: Marginals, cells: Integers, people: Integers) -> Integers:
    """Return how many people of each kind every block has that fits exact tables, `people` among them."""
    matrix, possible = _possible(plan, cells)
    surely = np.zeros(plan.kinds, dtype=np.int64)
    for place, kind in enumerate(possible):
        if people[kind]:
            one = np.zeros(len(possible))
            one[place] = 1
            surely[kind] = _solved(one, matrix, cells, cells)[place]
    return surely


def nearest(plan: Marginals, cells: Floats, *, people: int, gap: float = 0.02) -> Integers:
    """Return so many people whose tables are off by at most a part `gap` more than those of the nearest such block."""
    from scipy.sparse import csr_array, eye_array, hstack, vstack

    count = len(cells)
    # Sums of kinds plus too little minus too much are the published cells; the last row counts everybody.
    published: Any = hstack([plan.matrix(), eye_array(count), -eye_array(count)])
    everybody = csr_array(np.concatenate([np.ones(plan.kinds), np.zeros(2 * count)])[None, :])
    whole: Any = vstack([published, everybody]).tocsr()
    sums = np.concatenate([cells, [people]])
    costs = np.concatenate([np.zeros(plan.kinds), np.ones(2 * count)])
    return _solved(costs, whole, sums, sums, whole_numbers=plan.kinds, gap=gap)[: plan.kinds]


def _possible(plan: Marginals, cells: Integers) -> tuple[Any, Integers]:
    """Keep the kinds that no table excludes: each of its cells counts somebody."""
    matrix = plan.matrix()
    shown = np.asarray(matrix.T @ (cells > 0)).round()
    possible = np.flatnonzero(shown == len(plan.tables))
    return matrix.tocsc()[:, possible].tocsr(), possible


def _solved(
    costs: Floats, matrix: Any, low: Any, high: Any, *, whole_numbers: int | None = None, gap: float = 0.0
) -> Integers:
    from scipy.optimize import Bounds, LinearConstraint, milp

    integral = np.zeros(len(costs), dtype=np.int64)
    integral[: len(costs) if whole_numbers is None else whole_numbers] = 1
    result = milp(
        costs,
        constraints=LinearConstraint(matrix, low, high),
        integrality=integral,
        bounds=Bounds(0, np.inf),
        options={"time_limit": _SECONDS, "mip_rel_gap": gap},
    )
    if result.x is None:
        raise Refused(
            "no block of people fits these tables",
            reason="they contradict each other, or there are too many kinds of people to try",
            way_out="attack noisy tables with their mechanism, or take fewer columns",
        )
    return np.asarray(result.x).round().astype(np.int64)
