"""Columns as small whole numbers: each value gets a number once, and everything after that is counting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.attacks.local import Lab
from discreet.errors import InvalidParameter

__all__ = ["Codes", "Encoded", "NamedColumns", "encoded", "written_columns"]

Codes: TypeAlias = NDArray[np.uint32]
NamedColumns: TypeAlias = Sequence[str] | Mapping[str, str]  # names of columns, or names for what is calculated of them


@final
@dataclass(frozen=True, slots=True, eq=False)
class Encoded:
    """A table of codes, column by column. A missing value is a value of its own."""

    names: tuple[str, ...]
    codes: tuple[Codes, ...]
    sizes: tuple[int, ...]  # how many codes a column has
    who: Codes | None  # whose row it is; None if every row is a person
    people: int

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self.codes[0])


def written_columns(lab: Lab, columns: NamedColumns | None, leave_out: str | None) -> dict[str, str]:
    """Return what is written in a statement for each column; all columns of the table if none are named."""
    if isinstance(columns, Mapping):
        for text in columns.values():
            lab.select(f"SELECT ({text}\n) AS value FROM {lab.relations['rows']} LIMIT 0")
        named = {name: f"({text}\n)" for name, text in columns.items()}
    else:
        chosen = [name for name in lab.columns["rows"] if name != leave_out] if columns is None else columns
        named = {name: lab.column("rows", name) for name in chosen}
    if not named:
        raise InvalidParameter("say which columns an attacker may know, such as columns=['zip', 'birth_date', 'sex']")
    return named


def encoded(lab: Lab, columns: Mapping[str, str], person: str | None) -> Encoded:
    """Number the values of each column, in an order of no meaning, and fetch the numbers."""
    written = [*columns.values(), *([] if person is None else [lab.column("rows", person)])]
    values = ", ".join(f"{text} AS value_{i}" for i, text in enumerate(written))
    lab.execute(f"CREATE TEMP TABLE picked AS SELECT {values} FROM {lab.relations['rows']}")
    for i in range(len(written)):
        lab.connection.execute(
            f"CREATE TEMP TABLE dictionary_{i} AS SELECT value_{i} AS value, "
            f"CAST(row_number() OVER () - 1 AS UINTEGER) AS code FROM (SELECT DISTINCT value_{i} FROM picked)"
        )
    codes, sizes = _fetched(lab.connection, len(written)), _sizes(lab.connection, len(written))
    who = None if person is None else codes[-1]
    count = len(columns)
    people = len(codes[0]) if person is None else sizes[-1]
    return Encoded(tuple(columns), tuple(codes[:count]), tuple(sizes[:count]), who, people)


def _fetched(connection: Any, count: int) -> list[Codes]:
    """Join every column with its dictionary; rows are in the same order in all columns, since they come at once."""
    joins = " ".join(
        f"JOIN dictionary_{i} ON picked.value_{i} IS NOT DISTINCT FROM dictionary_{i}.value" for i in range(count)
    )
    listed = ", ".join(f"dictionary_{i}.code AS code_{i}" for i in range(count))
    table = connection.sql(f"SELECT {listed} FROM picked {joins}").to_arrow_table()
    return [table.column(i).to_numpy() for i in range(count)]


def _sizes(connection: Any, count: int) -> list[int]:
    return [int(connection.execute(f"SELECT count(*) FROM dictionary_{i}").fetchone()[0]) for i in range(count)]
