"""Singling out: which few facts about one person leave nobody else in a table."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, final

from discreet.attacks.codes import written_columns
from discreet.attacks.local import Lab, laboratory
from discreet.errors import InvalidParameter
from discreet.privacy.notprivate import NotPrivate

__all__ = ["SingledOut", "singling_out"]

_MOST = 62  # Columns: each is one bit of a word.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SingledOut:
    """One record: how many people fit all of it, and the smallest combinations of facts that only one person fits."""

    columns: tuple[str, ...]
    size: int  # of the largest combination
    people: int
    fits: int  # people who fit all columns; 0 if nobody does
    combinations: tuple[tuple[str, ...], ...]  # none holds another; the shortest first
    crowds: tuple[tuple[str, int], ...]  # how many fit each column by itself

    def __str__(self) -> str:
        if not self.fits:
            return f"nobody of {self.people:,} fits this record in all of {', '.join(self.columns)}"
        lines = [f"  {crowd:>12,}  {column}" for column, crowd in self.crowds]
        head = [f"{self.fits:,} of {self.people:,} people fit this record; by one column alone"]
        if not self.combinations:
            return "\n".join([*head, *lines, f"no {self.size} columns single it out"])
        singled = [f"  {', '.join(columns)}" for columns in self.combinations]
        return "\n".join([*head, *lines, "only one person fits it in", *singled])

    def to_json(self) -> str:
        """Write everything as one JSON object."""
        document = {
            "columns": list(self.columns),
            "size": self.size,
            "people": self.people,
            "fits": self.fits,
            "combinations": [list(columns) for columns in self.combinations],
            "crowds": dict(self.crowds),
        }
        return json.dumps(document, ensure_ascii=False)


def singling_out(
    rows: Any, record: Mapping[str, Any], *, size: int = 4, person: str | None = None
) -> NotPrivate[SingledOut]:
    """Find the smallest combinations of columns in which only one person fits a record.

    `record` is what is known of somebody, by column: {"zip": "02138", "birth_date": "1945-07-31"}. Values are read as
    the column has them; None is a missing one. `person` tells whose rows are whose.
    """
    if size < 1 or not 0 < len(record) <= _MOST:
        raise InvalidParameter(f"say from 1 to {_MOST} facts of a record, and a size of at least 1")
    with laboratory({"rows": rows}) as lab:
        _match(lab, record, person)
        return NotPrivate(_found(lab, tuple(record), min(size, len(record)), "rows" if person is None else "who"))


def _match(lab: Lab, record: Mapping[str, Any], person: str | None) -> None:
    """Make a table of which columns each row fits, one bit each; rows that are alike are counted."""
    columns = written_columns(lab, list(record), None)
    types = [lab.columns["rows"][name] for name in columns]
    values = [None if value is None else str(value) for value in record.values()]
    read = lab.connection.execute(f"SELECT {', '.join(f'TRY_CAST(? AS {kind})' for kind in types)}", values).fetchone()
    for name, value, meant in zip(columns, values, read, strict=True):
        if value is not None and meant is None:
            raise InvalidParameter(
                f"what is known of {name!r} cannot be read as its type, {types[[*columns].index(name)]}"
            )
    bits = " + ".join(
        f"CASE WHEN {column} IS NOT DISTINCT FROM CAST(? AS {kind}) THEN {1 << i} ELSE 0 END"
        for i, (column, kind) in enumerate(zip(columns.values(), types, strict=True))
    )
    who = "0" if person is None else lab.column("rows", person)
    lab.connection.execute(
        f"CREATE TEMP TABLE matched AS SELECT CAST({bits} AS BIGINT) AS bits, {who} AS who, count(*) AS rows "
        f"FROM {lab.relations['rows']} GROUP BY ALL",
        values,
    )


def _found(lab: Lab, columns: tuple[str, ...], size: int, counted: str) -> SingledOut:
    amount = "coalesce(sum(rows), 0)" if counted == "rows" else "count(DISTINCT who)"

    def crowd(places: Sequence[int]) -> int:
        mask = sum(1 << place for place in places)
        query = f"SELECT {amount} FROM matched WHERE bits & {mask} = {mask}"
        return int(lab.connection.execute(query).fetchone()[0])

    singled: list[frozenset[int]] = []
    fits = crowd(range(len(columns)))
    for length in range(1, size + 1 if fits else 0):
        for places in combinations(range(len(columns)), length):
            # What holds a combination that singles out needs no counting.
            if not any(smaller <= set(places) for smaller in singled) and crowd(places) == 1:
                singled.append(frozenset(places))
    return SingledOut(
        columns=columns,
        size=size,
        people=crowd(()),
        fits=fits,
        combinations=tuple(tuple(columns[place] for place in sorted(one)) for one in singled),
        crowds=tuple((name, crowd([place])) for place, name in enumerate(columns)),
    )
