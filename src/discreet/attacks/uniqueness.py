"""Uniqueness: how many people are alone with their values, under every combination of columns. [Swe02]"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, final

from discreet.attacks.codes import Encoded, NamedColumns, encoded, written_columns
from discreet.attacks.crowds import EDGES, crowds
from discreet.attacks.local import laboratory
from discreet.attacks.results import Success
from discreet.errors import InvalidParameter
from discreet.privacy.notprivate import NotPrivate
from discreet.query.engines.cage import default_threads

if TYPE_CHECKING:
    import altair as alt

__all__ = ["CROWDS", "Combination", "Uniqueness", "uniqueness"]

CROWDS = ("alone", *(f"{low}-{high - 1}" for low, high in pairwise(EDGES[1:])), f"{EDGES[-1]} or more")
_FEW = 12  # Combinations that are printed and drawn; all of them are in the result.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Combination:
    """Some columns, and how many people share their values with how many others."""

    columns: tuple[str, ...]
    profile: tuple[int, ...]  # people by the size of their crowd, in the classes of CROWDS

    @property
    def unique(self) -> Success:
        """The people who are alone with their values."""
        return Success(self.profile[0], sum(self.profile))

    def fewer_than(self, crowd: int) -> Success:
        """The people in a crowd of fewer than so many: whom a table that is k-anonymous has none of. [Swe02]"""
        if crowd not in EDGES[1:]:
            raise InvalidParameter(f"crowds are counted in classes; take one of {', '.join(map(str, EDGES[1:]))}")
        return Success(sum(self.profile[: EDGES.index(crowd)]), sum(self.profile))

    def __str__(self) -> str:
        return f"{100 * self.unique.share:5.1f} %  {', '.join(self.columns)}"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Uniqueness:
    """Every combination of columns, those that single out most people first; of two alike, the one of fewer columns."""

    columns: tuple[str, ...]
    size: int  # of the largest combination
    rows: int
    people: int
    combinations: tuple[Combination, ...]

    def of(self, *columns: str) -> Combination:
        """Return one combination, in any order of its columns."""
        for one in self.combinations:
            if set(one.columns) == set(columns):
                return one
        raise InvalidParameter(f"there is no combination of these; columns are {', '.join(self.columns)}")

    @property
    def best(self) -> tuple[Combination, ...]:
        """Of each number of columns, the combination that singles out most people."""
        sizes = range(1, self.size + 1)
        return tuple(next(one for one in self.combinations if len(one.columns) == size) for size in sizes)

    @property
    def telling(self) -> tuple[Combination, ...]:
        """The combinations of which no column can be left out without losing somebody, best first."""
        alone = {frozenset(one.columns): one.profile[0] for one in self.combinations} | {frozenset[str](): 0}
        return tuple(
            one
            for one in self.combinations
            if all(one.profile[0] > alone[frozenset(one.columns) - {column}] for column in one.columns)
        )

    def __str__(self) -> str:
        count = len(self.combinations)
        head = f"{self.people:,} people, {count:,} combinations of up to {self.size} of {len(self.columns)} columns"
        lines = ["  alone with their values, at most, if an attacker knows", *_told(self.best)]
        listed = self.telling[:_FEW]
        lines += [f"  the {len(listed)} that single out most, with no column to spare", *_told(listed)]
        worst = self.combinations[0]
        crowd = zip(CROWDS, worst.profile, strict=True)
        lines.append(f"  people by how many have the same {', '.join(worst.columns)}")
        return "\n".join([head, *lines, *(f"    {name:<12} {number:>12,}" for name, number in crowd)])

    def to_json(self) -> str:
        """Write everything as one JSON object."""
        listed = [
            {"columns": list(one.columns), "unique": one.unique.share, "profile": list(one.profile)}
            for one in self.combinations
        ]
        document = {"columns": list(self.columns), "size": self.size, "rows": self.rows, "people": self.people}
        return json.dumps(document | {"crowds": list(CROWDS), "combinations": listed}, ensure_ascii=False)

    def plot(self, *, most: int = _FEW, title: str | None = None) -> alt.LayerChart:
        """Draw, for the combinations that single out most, how many people hide in a crowd of which size."""
        from discreet.plots import shares

        drawn = self.telling[:most] or self.combinations[:most]
        parts = {name: [one.profile[i] / self.people for one in drawn] for i, name in enumerate(CROWDS)}
        return shares(
            [" + ".join(one.columns) for one in drawn],
            parts,
            across="people, by how many have the same values",
            title=title,
        )


def uniqueness(
    rows: Any, columns: NamedColumns | None = None, *, size: int = 3, person: str | None = None
) -> NotPrivate[Uniqueness]:
    """Count who is alone with their values, under every combination of up to `size` columns.

    `columns` are those that an attacker may know, or a mapping of names to what is calculated, as in SQL, such as
    {"born": "year(birth_date)"}; all if none are named. `person` tells whose rows are whose; without it every row is a
    person. Of people with several rows the one that gives away most counts. A missing value is a value of its own.
    """
    if size < 1:
        raise InvalidParameter("size is the number of columns that an attacker knows: at least 1")
    with laboratory({"rows": rows}) as lab:
        table = encoded(lab, written_columns(lab, columns, person), person)
    if not table.rows:
        raise InvalidParameter("the table has no rows")
    return NotPrivate(_ranked(table, min(size, len(table.names))))


def _ranked(table: Encoded, size: int) -> Uniqueness:
    found = [
        Combination(columns=tuple(table.names[i] for i in sorted(numbers)), profile=profile)
        for numbers, profile in crowds(table, size, default_threads())
    ]
    found.sort(key=lambda one: (-one.profile[0], len(one.columns), one.columns))
    return Uniqueness(columns=table.names, size=size, rows=table.rows, people=table.people, combinations=tuple(found))


def _told(combinations: Sequence[Combination]) -> list[str]:
    return [f"    {one}" for one in combinations]
