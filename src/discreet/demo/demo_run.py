"""The demo: stage a folder, link a list with names, publish tables by a plan, and attack both."""

from __future__ import annotations

import sys
import time
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet import attacks, data
from discreet.attacks import CountTable, Differencing, Isolation, Linkage
from discreet.demo.demo_page import attack_page
from discreet.demo.narration import DemoResult, Person, Teller
from discreet.errors import DiscreetError, Refused
from discreet.ledger import look
from discreet.privacy import Event
from discreet.release import ReleasePlan

if TYPE_CHECKING:
    from rich.console import Console

    from discreet.release import PricedRelease

__all__ = ["by_differences", "exact_tables", "link", "main", "people_given_away", "published_tables", "run", "stage"]

# --- story: The order of the demo: link, price, publish, attack, and say where everything is. ---


FOLDER = Path("discreet-demo")
PRINCIPAL = "demo"


def run(folder: Path = FOLDER, *, console: Console | None = None) -> DemoResult:
    """Run the demo in a folder of its own, tell it to a console, and return what was found.

    In the same folder it can be run again: what was released is neither charged nor drawn a second time.
    """
    from discreet import release

    begun, tell = time.monotonic(), Teller(console)
    tell.opening()
    plan = release.read_release_plan(stage(folder))
    linked = link(folder)
    tell.linked(linked)
    priced = release.price(plan, plan.schedule.period(0))
    tell.priced(priced)
    bundle, charged = _released(priced, tell)
    exact, published = exact_tables(plan, folder), published_tables(plan, bundle)
    named = by_differences(plan, folder, exact, isolating=exact)
    result = DemoResult(
        folder=folder,
        bundle=bundle,
        linkage=linked,
        priced=priced,
        charged=charged,
        exact=named,
        private=by_differences(plan, folder, published, isolating=exact, event=priced.event),
        people=people_given_away(folder, named, published),
        seconds=time.monotonic() - begun,
    )
    result.attack_report.write_text(attack_page(result), encoding="utf-8")
    tell.attacked(result)
    tell.closing(result)
    return result


def _released(priced: PricedRelease, tell: Teller) -> tuple[Path, bool]:
    """Publish, and return the bundle and whether anything was charged for it."""
    from discreet.release import publish

    charged = not _charged_before(priced.plan)
    bundle = publish(
        priced.plan,
        principal=PRINCIPAL,
        period=priced.period,
        on_step=lambda step: tell.step(step, charged=charged),
    )
    tell.published(bundle)
    return bundle, charged


def _charged_before(plan: ReleasePlan) -> bool:
    """Tell whether the ledger of the demo has a charge: only this one release is ever charged to it."""
    path = Path(plan.policy.ledger)
    return path.exists() and any(entry.kind == "charge" for entry in look(path).entries(plan.policy.dataset))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo from the command line, in the folder that is named or in discreet-demo."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if len(given) > 1 or any(argument.startswith("-") for argument in given):
        print("usage: python -m discreet.demo [FOLDER]", file=sys.stderr)
        return 2
    try:
        run(Path(given[0]) if given else FOLDER)
    except DiscreetError as refusal:
        print(refusal, file=sys.stderr)
        return 3
    return 0


# --- staging ---
# The folder of the demo: its data and its plan are put there, and nothing of somebody else's is overwritten.


_SET = "hospital"


def stage(folder: Path) -> Path:
    """Put the files of the demo into a folder and return its plan; a folder of an earlier run is taken as it is."""
    if folder.exists() and not folder.is_dir():
        raise _taken(folder.name)
    folder.mkdir(parents=True, exist_ok=True)
    with data.folder(_SET) as source:
        for file in sorted(path for path in source.iterdir() if path.is_file()):
            _put(file.read_bytes(), folder / file.name)
    return folder / "plan.toml"


def _put(content: bytes, target: Path) -> None:
    if not target.exists():
        target.write_bytes(content)
    elif not target.is_file() or target.read_bytes() != content:
        raise _taken(target.name)


def _taken(name: str) -> Refused:
    return Refused(
        f"there is a {name} already that is not the demo's",
        reason="the demo overwrites nothing of yours",
        way_out="name another folder, such as: discreet demo somewhere-else",
    )


# --- attacking ---
# Both attacks on the made-up county: who is named by linkage, and by differences of published tables.


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
