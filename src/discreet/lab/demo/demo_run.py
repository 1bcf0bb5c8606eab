"""The demo: stage a folder, link a list with names, publish tables by a plan, and attack both."""

from __future__ import annotations

import sys
import time
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet import data
from discreet.errors import DiscreetError, Refused
from discreet.formatting import percent
from discreet.lab import attacks
from discreet.lab.attacks.count_tables import CountTable
from discreet.lab.attacks.differencing import Differencing, Isolation
from discreet.lab.attacks.linkage import Linkage
from discreet.lab.attacks.success_rates import Success
from discreet.lab.demo.narration import DemoResult, Person, Teller, count_words, difference_words, guess_words
from discreet.ledger import look
from discreet.pages.kit import PAGE_STYLE, bar_table, cards, document, opening, paragraph, section, table
from discreet.pages.svg import Scale, strip, words
from discreet.privacy import Event
from discreet.release.plan import ReleasePlan

if TYPE_CHECKING:
    from rich.console import Console

    from discreet.release.pricing.priced_release import PricedRelease

__all__ = [
    "attack_page",
    "by_differences",
    "exact_tables",
    "link",
    "main",
    "people_given_away",
    "published_tables",
    "run",
    "stage",
]

# --- demo_page ---
# Both attacks as one page with pictures. It shows exact facts, so it is no part of what is published.


_MOST = 12  # People who are listed.
_STYLE = f"{PAGE_STYLE}td,th{{vertical-align:top}}.chart td,.chart th{{vertical-align:middle}}\n"


def attack_page(found: DemoResult) -> str:
    """Write the whole page."""
    parts = (_linked(found), _differences(found), _people(found), _meaning(found))
    return document("Two attacks", _opening(found), parts, style=_STYLE)


def _opening(found: DemoResult) -> str:
    exact, private = found.exact, found.private
    told = (
        ("", f"{found.linkage.named.hits:,}", f"of {found.linkage.named.of:,} stays without names get a name"),
        ("", f"{exact.named.hits} of {exact.named.of}", "people are given away by exact tables of counts"),
        (
            "",
            f"{private.named.hits} of {private.named.of}",
            f"are guessed right from private tables; {private.without.hits} of {private.without.of} without their row",
        ),
    )
    dummy = "Not to be published. This page shows exact facts about people; here they are made up."
    return opening(
        "Northmere, a county that does not exist", "Two attacks", [paragraph(dummy, kind="dummy"), cards(told)]
    )


def _linked(found: DemoResult) -> str:
    linked = found.linkage
    rows = [("fit exactly one voter", linked.named.hits, True), ("would fit by luck alone", linked.by_chance, False)]
    named = [[words(row[column]) for column in ("name", "admitted", "diagnosis")] for row in linked.sample]
    parts = (
        paragraph(
            f"The hospitals give away {linked.named.of:,} stays without names. ZIP code, birth date and sex are left "
            "in. The list of voters has the same three, and names. Joining them takes one line of SQL."
        ),
        _counts(f"Stays, of {linked.named.of:,}", rows, linked.named.of),
        paragraph(
            f"{percent(linked.listed.share)} of all voters share their ZIP code, birth date and sex with nobody else "
            f"on the list. So about {percent(linked.right)} of the names are right."
        ),
        table(("name", "admitted", "diagnosis"), named, kind=""),
    )
    return section("linkage", "A list without names gets its names back", parts)


def _differences(found: DemoResult) -> str:
    exact, private = found.exact, found.private
    rows = [
        ("exact tables", exact.named, True),
        ("… without their row", exact.without, False),
        ("by the plan", private.named, True),
        ("… without their row", private.without, False),
    ]
    parts = [
        paragraph(
            f"The same {found.tables} tables, published exactly and by the plan. In the exact ones every number from 1 "
            "to 4 is hidden, as many offices do. Two tables that differ by a few patients are subtracted; where one "
            f"patient is left, the diagnosis is read off. That happens to {exact.named.of} people."
        ),
        _shares("Whose diagnosis is guessed right", rows),
        paragraph(
            "“Without their row” is the same attacker on the same tables, made as if that one person had never been a "
            "patient: all that is right there is known about people in general. The lines show where the true share "
            "lies, 95 times in 100.",
            kind="note",
        ),
        *_anew(found),
    ]
    return section("differencing", "Tables are subtracted until one person is left", parts)


def _anew(found: DemoResult) -> list[str]:
    drawn, without, ceiling = found.private.fresh, found.private.fresh_without, found.private.ceiling
    if drawn is None or without is None or ceiling is None:
        return []
    rows = [("with their row", drawn, True), ("without their row", without, False)]
    return [
        paragraph(
            f"One set of tables could be luck. So the noise was drawn anew {drawn.of:,} times. The triangle is what no "
            f"attacker can exceed, whoever they are and whatever they know: {percent(ceiling, 1)}, by the proof "
            "behind ε."
        ),
        _shares("Right guesses on tables drawn anew", rows, mark=ceiling),
    ]


def _people(found: DemoResult) -> str:
    listed = [_row(person) for person in found.people[:_MOST]]
    caption = f"<b>Who is given away</b> (the first {len(listed)} of {len(found.people)})"
    parts = [
        paragraph(difference_words(found.example)),
        table(("who", "exact tables", "by the plan"), listed, caption=caption, kind=""),
        paragraph("Private counts may fall below zero; the tidy ones beside them in the bundle do not.", kind="note"),
    ]
    return section("people", "How it is done", parts)


def _row(person: Person) -> tuple[str, ...]:
    exact, private = (_subtracted(*counts) for counts in (person.exact, person.private))
    who = person.name or "Somebody who is not on the list of voters"
    return words(f"{who}, who {person.facts}"), f"{words(exact)}<br>{words(person.diagnosis)}", words(private)


def _subtracted(more: float, fewer: float) -> str:
    return f"{count_words(more)} − {count_words(fewer)} = {count_words(more - fewer)}"


def _meaning(found: DemoResult) -> str:
    return section(
        "meaning",
        "Why the private tables keep quiet",
        [
            paragraph(
                "Every published number has noise in it that is larger than any one person. The tables still tell how "
                "many patients a district has; they do not tell whether you are among them. ε says how much one person "
                f"can matter to everything that is published: here ε = {found.epsilon:.2f}. Whoever guesses whether "
                f"somebody is in the data, at even odds before, is right at most {guess_words(found.priced)} % of "
                "the time after."
            )
        ],
    )


def _counts(caption: str, rows: Sequence[tuple[str, int, bool]], most: int) -> str:
    scale = Scale(0.0, float(most))
    drawn = [(name, strip(scale, float(count), accent=accent), f"{count:,}") for name, count, accent in rows]
    return bar_table(caption, drawn, scale)


def _shares(caption: str, rows: Sequence[tuple[str, Success, bool]], *, mark: float | None = None) -> str:
    scale = Scale(0.0, 100.0)
    drawn = []
    for name, success, accent in rows:
        low, high = (100 * end for end in success.interval())
        picture = strip(
            scale,
            100 * success.share,
            low=low,
            high=high,
            accent=accent,
            mark=None if mark is None else 100 * mark,
        )
        drawn.append((name, picture, percent(success.share)))
    return bar_table(f"{caption}, in per cent", drawn, scale)


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
    path = plan.policy.ledger
    return path.exists() and any(entry.kind == "charge" for entry in look(path).entries(plan.policy.dataset))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo from the command line, in the folder that is named or in discreet-demo."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if len(given) > 1 or any(argument.startswith("-") for argument in given):
        print("usage: python -m discreet.lab.demo [FOLDER]", file=sys.stderr)
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
