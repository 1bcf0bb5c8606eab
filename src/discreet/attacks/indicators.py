"""A table as yes-or-no attributes: one for each value of each column, as tables of counts show them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from discreet import noise
from discreet.attacks.local import laboratory, text_of
from discreet.attacks.vectors import Integers
from discreet.errors import InvalidParameter

__all__ = ["Indicators", "halves", "indicators"]

_MOST = 2_000  # Values of a column: one that has more tells people apart by itself.


@final
@dataclass(frozen=True, slots=True, eq=False)
class Indicators:
    """Rows of 0 and 1, one column for each value of a column of the table."""

    names: tuple[str, ...]
    rows: Integers
    squared_change: int  # l2, squared: the most that replacing one row changes the counts


def indicators(table: Any, columns: Sequence[str]) -> Indicators:
    """Read columns of a table of this machine; what is missing is a value too. Two values make one attribute."""
    if not columns:
        raise InvalidParameter("say which columns are counted, such as columns=['sex', 'district']")
    with laboratory({"table": table}) as lab:
        listed = ", ".join(f"{text_of(lab.column('table', name))} AS c{i}" for i, name in enumerate(columns))
        found = lab.select(f"SELECT {listed} FROM {lab.relations['table']}")
    read = [_one(name, found.column(f"c{i}").to_pylist()) for i, name in enumerate(columns)]
    names = tuple(name for labels, _ in read for name in labels)
    change = sum(1 if len(labels) == 1 else 2 for labels, _ in read)
    return Indicators(names, np.hstack([rows for _, rows in read]), change)


def halves(rows: Integers) -> tuple[Integers, Integers]:
    """Divide people at random into members and strangers."""
    order = noise.permutation(len(rows))
    return rows[order[::2]], rows[order[1::2]]


def _one(name: str, values: list[str | None]) -> tuple[list[str], Integers]:
    texts = np.array(["" if value is None else value for value in values], dtype=object)
    distinct, codes = np.unique(texts.astype(str), return_inverse=True)
    if not 2 <= len(distinct) <= _MOST:
        raise InvalidParameter(f"column {name!r} must have from two to {_MOST:,} different values")
    kept = distinct[1:] if len(distinct) == 2 else distinct
    first = len(distinct) - len(kept)
    rows = (codes[:, None] == np.arange(first, len(distinct))[None, :]).astype(np.int64)
    return [f"{name} = {value}" for value in kept], rows
