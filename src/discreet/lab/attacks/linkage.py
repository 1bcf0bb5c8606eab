"""Linkage: a table without names, joined with a list that has them, on what both know about people. [Swe02]"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, final

from discreet.errors import InvalidParameter
from discreet.lab.attacks.lab_tables import Lab, laboratory, text_of
from discreet.lab.attacks.success_rates import Success
from discreet.pages.progress import working
from discreet.privacy.not_private import NotPrivate

if TYPE_CHECKING:
    import altair as alt

__all__ = ["Linkage", "linkage"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Linkage:
    """How many records of a table without names fit exactly one person of a list with names."""

    on: tuple[str, ...]  # what both tables know
    unique: Success  # records of the table that share these values with no other person in it
    listed: Success  # people of the list who share these values with nobody else in it
    named: Success  # records that fit exactly one person of the list
    people: Success | None  # the same counted by person, if the table tells which records are one person's
    ambiguous: int  # records that fit several people of the list
    by_chance: int  # records that would fit one person if their values were those of strangers
    sample: tuple[Mapping[str, Any], ...]  # a few of the named: the name, and what was learnt

    @property
    def right(self) -> float:
        """About which part of the named is rightly named: a record of somebody who is not listed may fit by chance."""
        chance = self.by_chance / self.named.of if self.named.of else 0.0
        if not self.named.hits or chance == 1:
            return 0.0
        return min(1.0, max(0.0, (self.named.share - chance) / (1 - chance) / self.named.share))

    def __str__(self) -> str:
        right = f"about {100 * self.right:.1f} % of the named are right"
        lines = [
            f"linked on {', '.join(self.on)}",
            f"  records that fit exactly one name   {self.named}",
            *([f"  people named                        {self.people}"] if self.people else []),
            f"  records that fit several names      {self.ambiguous:,}",
            f"  fits by chance alone                {self.by_chance:,}: {right}",
            f"  unique in the table                 {self.unique}",
            f"  unique in the list of names         {self.listed}",
        ]
        return "\n".join(lines + ["  " + ", ".join(f"{k}: {v}" for k, v in row.items()) for row in self.sample])

    __repr__ = __str__

    def to_json(self) -> str:
        """Write everything as one JSON object; what is told of the named, as text."""
        return json.dumps(asdict(self) | {"right": self.right}, ensure_ascii=False, default=str)

    def plot(self, *, title: str | None = None) -> alt.LayerChart:
        """Draw how many records fit exactly one name, and how many would by chance."""
        from discreet.plots import shares

        named, chance = self.named.share, self.by_chance / max(1, self.named.of)
        parts = {
            "fits exactly one name": [named, chance],
            "several names, or none": [1 - named, 1 - chance],
        }
        return shares([f"on {', '.join(self.on)}", "with a stranger's values"], parts, across="records", title=title)


@working("attacking", terminal=False)
def linkage(
    table: Any,
    names: Any,
    *,
    on: Sequence[str],
    name: str,
    tell: Sequence[str] = (),
    person: str | None = None,
    sample: int = 5,
) -> NotPrivate[Linkage]:
    """Linkage: join a table without names with a list that has them, and count who is re-identified.

    `tell` are the columns of the table to show in the sample beside the name, and `person` the one that tells people
    apart who have several records. Both tables are on this machine. A record with a value missing fits nobody.

    Args:
        table: The private table without names: a file of this machine, a frame or an Arrow table.
        names: The list with names.
        on: The columns that both have.
        name: The column of the list that has the names.
        tell: The columns of the table that are shown beside a name.
        person: The column of the table that tells people apart; every record is a person if not said.
        sample: How many named records are shown.

    Returns:
        How many records and people are named, and a sample, marked as not private.

    Raises:
        InvalidParameter: If no columns are said, or a table has no such column.

    Examples:
        >>> import pyarrow as pa
        >>> stays = pa.table({"zip": [1, 1, 2], "born": [1950, 1980, 1990], "illness": ["flu", "HIV", "flu"]})
        >>> voters = pa.table({"zip": [1, 2], "born": [1980, 1990], "name": ["Ada", "Bob"]})
        >>> linked = dp.attacks.linkage(stays, voters, on=["zip", "born"], name="name", tell=["illness"])
        >>> print(linked.value.named)
        2 of 3 (67 %)
    """
    if not on:
        raise InvalidParameter("say on which columns to link, such as on=['zip', 'birth_date', 'sex']")
    with laboratory({"table": table, "names": names}) as lab:
        _prepare(lab, on, name, tell, person)
        found = _counts(lab, person)
        rows = _sample(lab, name, tell, sample)
        chance = _by_chance(lab, len(on))
    return NotPrivate(Linkage(on=tuple(on), by_chance=chance, sample=rows, **found))


def _prepare(lab: Lab, on: Sequence[str], name: str, tell: Sequence[str], person: str | None) -> None:
    """Make three tables: records and listed people with the key as texts, and groups of listed people of one key."""
    keys = [text_of(lab.column("table", column)) for column in on]
    theirs = [text_of(lab.column("names", column)) for column in on]
    told = [f"{lab.column('table', column)} AS tell_{i}" for i, column in enumerate(tell)]
    who = "row_number() OVER ()" if person is None else lab.column("table", person)
    lab.connection.execute(
        f"CREATE TEMP TABLE records AS SELECT {who} AS who, {_listed(keys)}"
        f"{''.join(', ' + column for column in told)}, row_number() OVER () AS place FROM {lab.relations['table']}"
    )
    lab.connection.execute(
        f"CREATE TEMP TABLE listed AS SELECT {_names(len(on))}, count(*) AS fits, any_value(name) AS name FROM "
        f"(SELECT {_listed(theirs)}, {lab.column('names', name)} AS name FROM {lab.relations['names']}) "
        f"WHERE {_present(len(on))} GROUP BY {_names(len(on))}"
    )
    lab.connection.execute(
        f"CREATE TEMP TABLE linked AS SELECT records.*, fits, name FROM records JOIN listed USING ({_names(len(on))})"
    )
    lab.connection.execute(
        f"CREATE TEMP TABLE crowds AS SELECT count(DISTINCT who) AS crowd, count(*) AS rows FROM records "
        f"WHERE {_present(len(on))} GROUP BY {_names(len(on))}"
    )


def _counts(lab: Lab, person: str | None) -> dict[str, Any]:
    (rows, people) = _row(lab, "SELECT count(*), count(DISTINCT who) FROM records")
    (named, whom, ambiguous) = _row(
        lab,
        "SELECT count(*) FILTER (fits = 1), count(DISTINCT who) FILTER (fits = 1), count(*) FILTER (fits > 1) "
        "FROM linked",
    )
    (unique,) = _row(lab, "SELECT coalesce(sum(rows) FILTER (crowd = 1), 0) FROM crowds")
    (listed, alone) = _row(lab, "SELECT coalesce(sum(fits), 0), count(*) FILTER (fits = 1) FROM listed")
    return {
        "unique": Success(int(unique), rows),
        "listed": Success(alone, int(listed)),
        "named": Success(named, rows),
        "people": None if person is None else Success(whom, people),
        "ambiguous": ambiguous,
    }


def _sample(lab: Lab, name: str, tell: Sequence[str], size: int) -> tuple[dict[str, Any], ...]:
    """Take a few of the named, in an order that has nothing to do with them."""
    told = "".join(f", tell_{i}" for i in range(len(tell)))
    rows = lab.connection.execute(
        f"SELECT name{told} FROM linked WHERE fits = 1 ORDER BY hash(place) LIMIT {int(size)}"
    ).fetchall()
    return tuple(dict(zip((name, *tell), row, strict=True)) for row in rows)


def _by_chance(lab: Lab, size: int) -> int:
    """Count what fits if the most telling value is a stranger's: that of the next record in an order of no meaning."""
    if size == 1:
        return 0
    distinct = _row(lab, f"SELECT {', '.join(f'count(DISTINCT key_{i})' for i in range(size))} FROM records")
    telling = f"key_{distinct.index(max(distinct))}"
    moved = f"lead({telling}) OVER (ORDER BY hash(place))"
    (found,) = _row(
        lab,
        f"SELECT count(*) FROM (SELECT * REPLACE ({moved} AS {telling}) FROM records) "
        f"JOIN listed USING ({_names(size)}) WHERE fits = 1",
    )
    return int(found)


def _row(lab: Lab, statement: str) -> tuple[Any, ...]:
    return tuple(lab.connection.execute(statement).fetchone())


def _listed(columns: Sequence[str]) -> str:
    return ", ".join(f"{column} AS key_{i}" for i, column in enumerate(columns))


def _names(size: int) -> str:
    return ", ".join(f"key_{i}" for i in range(size))


def _present(size: int) -> str:
    return " AND ".join(f"key_{i} IS NOT NULL" for i in range(size))
