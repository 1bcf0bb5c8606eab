"""Diaries: what people did or liked, when and how much, a few things each out of very many."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.attacks.counts import Floats
from discreet.attacks.local import Lab, laboratory
from discreet.errors import InvalidParameter

__all__ = ["Diaries", "Numbers", "diaries"]

Numbers: TypeAlias = NDArray[np.int64]
_DAY = 86_400  # Seconds.


@final
@dataclass(frozen=True, slots=True, eq=False)
class Diaries:
    """Entries in the order of their items: whose, how much, on which day."""

    who: Numbers
    item: Numbers
    value: Floats
    day: Floats
    starts: Numbers  # where the entries of each item begin, and the end of all
    of: tuple[Numbers, ...]  # the entries of each person

    @property
    def people(self) -> int:
        """How many people have entries."""
        return len(self.of)

    @property
    def support(self) -> Numbers:
        """How many entries each item has."""
        return np.diff(self.starts)


def diaries(rows: Any, *, person: str, item: str, value: str, when: str) -> Diaries:
    """Read entries. `when` is a date, a time, or seconds since 1970; an entry with something missing is left out."""
    with laboratory({"rows": rows}) as lab:
        found = lab.select(
            f"SELECT dense_rank() OVER (ORDER BY {lab.column('rows', person)}) - 1 AS who, "
            f"dense_rank() OVER (ORDER BY {lab.column('rows', item)}) - 1 AS item, value, day FROM "
            f"(SELECT {lab.column('rows', person)}, {lab.column('rows', item)}, "
            f"TRY_CAST({lab.column('rows', value)} AS DOUBLE) AS value, {_days(lab, when)} AS day "
            f"FROM {lab.relations['rows']}) WHERE {lab.column('rows', person)} IS NOT NULL "
            f"AND {lab.column('rows', item)} IS NOT NULL AND isfinite(value) AND isfinite(day) ORDER BY item"
        )
    columns = {name: found.column(name).to_numpy() for name in ("who", "item", "value", "day")}
    if not len(columns["who"]):
        raise InvalidParameter("no row has a person, an item, a number and a time: check the names of the columns")
    order = np.argsort(columns["who"], kind="stable")
    ends = np.cumsum(np.bincount(columns["who"]))
    starts = np.concatenate(([0], np.cumsum(np.bincount(columns["item"]))))
    return Diaries(**columns, starts=starts, of=tuple(np.split(order, ends[:-1])))


def _days(lab: Lab, when: str) -> str:
    """Write the days since 1970; a column of text is read as a time."""
    column, kind = lab.column("rows", when), lab.columns["rows"][when]
    if kind.startswith(("DATE", "TIMESTAMP", "VARCHAR")):
        return f"epoch(TRY_CAST({column} AS TIMESTAMP)) / {_DAY}"
    return f"TRY_CAST({column} AS DOUBLE) / {_DAY}"
