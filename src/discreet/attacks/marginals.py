"""All tables of a few columns at a time, as an office publishes them of a small block of people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod
from typing import TYPE_CHECKING, Any, final

import numpy as np

from discreet.attacks.local import laboratory, text_of
from discreet.attacks.vectors import Integers
from discreet.errors import InvalidParameter

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["Marginals", "PeopleBlock", "block_of", "marginals"]

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
            raise InvalidParameter(f"these columns make more than {_MOST_KINDS:,} kinds of people: leave one out")

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
