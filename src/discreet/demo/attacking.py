"""Both attacks on the made-up county: who is named by linkage, and by differences of published tables."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from discreet import attacks
from discreet.attacks import CountTable, Differencing, Isolation, Linkage
from discreet.demo.results import Person
from discreet.privacy import Event
from discreet.release import ReleasePlan

__all__ = ["by_differences", "exact_tables", "link", "people_given_away", "published_tables"]

HIDDEN_BELOW = 5  # What a careful office does not show.
_SECRET, _PERSON = "diagnosis", "patient"
_KNOWN = ("zip", "birth_date", "sex")  # what a voter list and a hospital both know
# What is left when the patients of a condition are subtracted, and those patients, in words.
_WORDS = {
    "age_group <> '95+'": ("is 95 or older", "younger than 95"),
    "nights < 28": ("was in hospital for four weeks or longer", "who stayed less than four weeks"),
    "admitted < DATE '2025-12-31'": ("was admitted on New Year's Eve", "admitted until 30 December"),
}


def link(folder: Path) -> Linkage:
    """Name the stays by the list of voters."""
    stays, voters = folder / "stays.parquet", folder / "voters.parquet"
    found = attacks.linkage(
        stays, voters, on=_KNOWN, name="name", tell=("admitted", "nights", _SECRET), person=_PERSON, sample=4
    )
    return found.value  # Nobody in it exists.


def exact_tables(plan: ReleasePlan, folder: Path) -> list[CountTable]:
    """Count what the plan publishes as a careful office would without it: exactly, but small numbers are hidden."""
    where = _conditions(plan)
    return [
        attacks.tabulate(
            folder / "stays.parquet",
            table.by,
            where=where[table.family or ""],
            name=table.name,
            hide_below=HIDDEN_BELOW,
        ).value
        for table in plan.tables
    ]


def published_tables(plan: ReleasePlan, bundle: Path) -> list[CountTable]:
    """Read what was published from the bundle, as an attacker would."""
    where = _conditions(plan)
    return [
        attacks.published_counts(
            bundle / "tables" / f"{table.name}.parquet",
            by=table.by,
            count="patients",
            where=where[table.family or ""],
            name=table.name,
        )
        for table in plan.tables
    ]


def _conditions(plan: ReleasePlan) -> dict[str, str]:
    """Return which rows each family counts, as the plan file says it."""
    return {part["name"]: part.get("where", "") for part in tomllib.loads(plan.written)["publish"]}


def by_differences(
    plan: ReleasePlan,
    folder: Path,
    tables: Sequence[CountTable],
    *,
    isolating: Sequence[CountTable],
    event: Event | None = None,
) -> Differencing:
    """Attack tables by differences; the event is what they claim to have spent."""
    levels = [attacks.AxisLevel(name=level.name, of=level.of, members=level.members) for level in plan.levels]
    found = attacks.differencing(
        folder / "stays.parquet",
        tables,
        attribute=_SECRET,
        person=_PERSON,
        levels=levels,
        isolating=isolating,
        event=event,
        examples=10**6,
    )
    return found.value  # Nobody in it exists.


def people_given_away(folder: Path, exact: Differencing, published: Sequence[CountTable]) -> tuple[Person, ...]:
    """Tell who is given away by a difference of two exact counts, with the same difference of published ones."""
    names = _names(folder, [one.who for one in exact.examples])
    counts = {
        (table.name, key): float(count)
        for table in published
        for key, count in zip(table.keys, table.counts, strict=True)
    }
    simple = [one for one in exact.examples if len(one.chain) == 2 and one.guess == one.truth]
    people = [_person(names.get(one.who, ""), one, counts) for one in simple]
    return tuple(sorted(people, key=lambda person: (not person.name, person.name)))


def _person(name: str, one: Isolation, published: Mapping[Any, float]) -> Person:
    ((_, larger, key, more), (_, smaller, _, fewer)) = one.chain
    (condition,) = (fact for fact, holds in one.facts.items() if holds is False)
    left, others = _WORDS[condition]
    return Person(
        name=name,
        facts=left,
        others=others,
        diagnosis=str(one.truth),
        group=f"{'Women' if one.facts['sex'] == 'f' else 'Men'} from {one.facts['district']} with {one.truth}",
        exact=(more, fewer),
        private=(published[larger, key], published[smaller, key]),
    )


def _names(folder: Path, patients: Sequence[str]) -> dict[str, str]:
    """Look up who some patients are, if exactly one voter fits."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    stays = pq.read_table(folder / "stays.parquet")
    chosen = stays.filter(pc.is_in(stays.column(_PERSON), pa.array(patients, pa.string())))
    found = attacks.linkage(
        chosen, folder / "voters.parquet", on=_KNOWN, name="name", tell=(_PERSON,), sample=len(patients)
    ).value
    return {row[_PERSON]: row["name"] for row in found.sample}
