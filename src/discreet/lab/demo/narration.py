"""The demo in words, for somebody who never heard of ε."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from discreet.formatting import percent, significant_up
from discreet.lab.attacks.differencing import Differencing
from discreet.lab.attacks.linkage import Linkage
from discreet.lab.attacks.success_rates import Success
from discreet.release.pricing.priced_release import PricedRelease

if TYPE_CHECKING:
    from rich.console import Console

__all__ = [
    "DemoResult",
    "Person",
    "Teller",
    "count_words",
    "difference_words",
    "guess_words",
    "verdict_words",
]

# --- results: What the demo has found, in one value. ---


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Somebody who does not exist, and whom differences of exact tables give away."""

    name: str  # from the list of voters; empty for whoever is not on it
    facts: str  # what one must know about the person
    diagnosis: str
    group: str  # whom the two counts are about …
    others: str  # … and whom the smaller one is about
    exact: tuple[float, float]  # their counts in the exact tables …
    private: tuple[float, float]  # … and in the private ones


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DemoResult:
    """Figures of the demo. They are about people who do not exist; about real ones they would be `NotPrivate`."""

    folder: Path
    bundle: Path
    linkage: Linkage
    priced: PricedRelease
    charged: bool  # False if the period had been released before
    exact: Differencing
    private: Differencing
    people: tuple[Person, ...]
    seconds: float

    @property
    def report(self) -> Path:
        """The report of the release, which may be published."""
        return self.bundle / "report.html"

    @property
    def attack_report(self) -> Path:
        """The page about the attacks, which may not."""
        return self.folder / "attack-report.html"

    @property
    def example(self) -> Person:
        """Somebody to tell the story with: whose private difference is not by chance the exact one."""
        told = [person for person in self.people if person.private[0] - person.private[1] != 1]
        return (told or list(self.people))[0]

    @property
    def epsilon(self) -> float:
        """What the release spent."""
        return self.priced.epsilon

    @property
    def tables(self) -> int:
        """How many tables were published."""
        return len(self.priced.tables)

    def to_json(self) -> dict[str, Any]:
        """Return the figures in plain values."""
        return {
            "folder": str(self.folder),
            "bundle": str(self.bundle),
            "report": str(self.report),
            "attack_report": str(self.attack_report),
            "stays": self.linkage.named.of,
            "stays_named": self.linkage.named.hits,
            "tables": self.tables,
            "epsilon": self.epsilon,
            "delta": float(self.priced.delta),
            "charged": self.charged,
            "exact_tables": _figures(self.exact),
            "private_tables": _figures(self.private),
            "seconds": round(self.seconds, 1),
        }

    def __str__(self) -> str:
        return json.dumps(self.to_json(), indent=1)

    __repr__ = __str__


def _figures(found: Differencing) -> dict[str, Any]:
    return {
        "attacked": found.named.of,
        "right": found.named.hits,
        "right_without_their_row": found.without.hits,
        "right_by_what_is_common": found.commonest.hits,
        "drawn_anew": _drawn(found.fresh),
        "drawn_anew_without_their_row": _drawn(found.fresh_without),
        "ceiling": found.ceiling,
    }


def _drawn(success: Success | None) -> dict[str, int] | None:
    return None if success is None else {"right": success.hits, "of": success.of}


_STEPS = {
    "opened": "opened the ledger",
    "answered": "charged the price, counted, added noise, stored the answers",
    "tidied": "made the tables add up",
    "written": "wrote tables, guarantee and report",
}
_AGAIN = "found the answers in the ledger: this year was released before, so nothing is charged and nothing drawn anew"
_WIDTH = 100


@final
class Teller:
    """Tells each part as it is done."""

    def __init__(self, console: Console | None) -> None:
        from rich.console import Console as RichConsole

        self._console = RichConsole(highlight=False) if console is None else console

    def opening(self) -> None:
        """Say what this is."""
        self._heading("Discreet, a demonstration")
        self._say(
            "Northmere is a county with hospitals and a list of voters. Everybody in it is made up, so this demo may "
            "show what nobody should ever see about real people."
        )

    def linked(self, found: Linkage) -> None:
        """Tell who was named."""
        self._heading("1  The list without names")
        self._say(
            f"The hospitals give away a list of {found.named.of:,} stays. It has no names: only ZIP code, birth date, "
            "sex, and why people came. The list of voters knows the same three things, with names. So join them."
        )
        self._say(
            f"[bold red]{found.named.hits:,} stays ({percent(found.named.share)}) fit exactly one voter.[/] About "
            f"{percent(found.right)} of these names are right; by luck alone {found.by_chance:,} would fit. Some of "
            "them:"
        )
        self._table(
            ("name", "admitted", "nights", "diagnosis"),
            [(row["name"], row["admitted"], row["nights"], row["diagnosis"]) for row in found.sample],
        )

    def priced(self, priced: PricedRelease) -> None:
        """Tell what the plan costs, before anything is read."""
        self._heading("2  Tables instead of lists, by a plan")
        self._say(
            f"plan.toml lists {len(priced.tables)} tables of counts. Noise is added to every number, just enough that "
            "it hardly matters whether any one patient is in the data. ε measures how much it matters; less is safer. "
            "What is known before the data are read:"
        )
        largest = max(error for table in priced.tables for error in table.errors.values())
        promise = (
            f"whoever guesses whether you are in the data is right at most {guess_words(priced)} times in 100; a "
            "coin is right 50 times"
        )
        self._table(
            ("", ""),
            [
                (
                    "price",
                    f"ε = {significant_up(priced.epsilon)} of {_budget(priced)} that may ever be spent",
                ),
                ("exactness", f"every number within ± {math.ceil(largest)} or less, 95 times in 100"),
                ("promise", promise),
            ],
            head=False,
        )
        self._say("")

    def step(self, name: str, *, charged: bool) -> None:
        """Tell how far a release is."""
        if name in _STEPS:
            self._say(f"[green]✓[/] {_STEPS[name] if charged or name != 'answered' else _AGAIN}")

    def published(self, bundle: Path) -> None:
        """Show some of what was published."""
        self._say(
            "\nOne of the tables that anybody may see now; 95 times in 100 the exact number of the counted rows is "
            "from … to:"
        )
        self._table(("region", "patients", "from", "to"), _regions(bundle))

    def attacked(self, found: DemoResult) -> None:
        """Compare both kinds of tables."""
        self._heading("3  The same tables, exactly and by the plan")
        exact, private = found.exact, found.private
        self._say(
            "An office could publish the same tables exactly and hide every number below five. It looks safe. But "
            "tables can be subtracted from each other, until one person is left:"
        )
        self._say(difference_words(found.example), indent=2)
        self._table(
            ("", "exact tables", "by the plan"),
            [
                ("people left alone by subtracting", f"{exact.named.of}", f"{private.named.of}"),
                ("whose diagnosis is guessed right", _hits(exact.named), _hits(private.named)),
                ("by an attacker without their row", _hits(exact.without), _hits(private.without)),
                ("no attacker can exceed", "no limit", _share(private.ceiling)),
            ],
        )
        bad, good = verdict_words(found)
        self._say(f"\n[bold red]{bad}[/] [bold green]{good}[/]")

    def closing(self, found: DemoResult) -> None:
        """Say where everything is."""
        self._heading("4  Where to look")
        self._table(
            ("", ""),
            [
                ("what is published", f"{found.report}"),
                ("both attacks, in pictures", f"{found.attack_report}"),
                ("", "(exact facts: not to be published)"),
                ("the plan", f"{found.folder / 'plan.toml'}"),
                ("next", "docs/quickstart.md: your own table in two minutes"),
            ],
            head=False,
        )
        self._say(f"\n[dim]{found.seconds:.0f} seconds[/]")

    def _heading(self, text: str) -> None:
        self._console.print(f"\n[bold]{text}[/]", highlight=False)

    def _say(self, text: str, *, indent: int = 0) -> None:
        from rich.text import Text

        margin = Text(" " * (2 + indent))
        room = min(_WIDTH, self._console.width) - len(margin)
        for line in Text.from_markup(text).wrap(self._console, room):
            line.rstrip()
            self._console.print(margin + line, highlight=False)

    def _table(self, names: tuple[str, ...], rows: list[tuple[Any, ...]], *, head: bool = True) -> None:
        from rich.padding import Padding
        from rich.table import Table

        table = Table(box=None, show_header=head, header_style="dim", padding=(0, 3, 0, 0))
        for place, name in enumerate(names):
            table.add_column(name, style="" if place or head else "dim", overflow="fold")
        for row in rows:
            table.add_row(*map(str, row))
        told = Padding(table, (1, 0, 0, 2), expand=False)
        self._console.print(told, width=min(_WIDTH, self._console.width), highlight=False)


def difference_words(person: Person) -> str:
    """Tell how one person is given away, and how not."""
    more, fewer = map(count_words, person.exact)
    noisy = [count_words(count) for count in (*person.private, person.private[0] - person.private[1])]
    return (
        f"{person.group}: {more} in all, {fewer} {person.others}. {more} − {fewer} = 1. Whoever knows that "
        f"{person.name or 'a neighbour'} {person.facts} now knows the diagnosis: {person.diagnosis}. By the plan the "
        f"numbers are {noisy[0]} and {noisy[1]}; their difference, {noisy[2]}, is nothing but noise."
    )


def guess_words(priced: PricedRelease) -> str:
    """Tell how often of 100 times the best attacker is right whether somebody is in the data, who starts at 50."""
    from discreet.release.bundle.claims import best_guess

    return f"{math.ceil(100 * best_guess(priced.event, priced.relation))}"


def count_words(count: float) -> str:
    """Write a count."""
    return f"{count:,.0f}".replace("-", "−")


def verdict_words(found: DemoResult) -> tuple[str, str]:
    """Tell what exact tables give away, and what private ones do; how the latter compares is read off the figures."""
    drawn, without = found.private.fresh, found.private.fresh_without
    assert drawn is not None
    assert without is not None
    same = drawn.interval()[0] <= without.interval()[1]
    return (
        f"Exact tables name the diagnosis of {found.exact.named.hits} people.",
        f"The private ones do {'no' if same else 'little'} better than an attacker who never had that person's row: "
        f"over {drawn.of:,} attacks on tables drawn anew, {percent(drawn.share, 1)} right with the row and "
        f"{percent(without.share, 1)} without it.",
    )


def _regions(bundle: Path) -> list[tuple[str, str, str, str]]:
    import pyarrow.parquet as pq

    table = pq.read_table(bundle / "tables" / "patients_by_region.parquet").to_pylist()
    names = ("patients", "patients_low", "patients_high")
    return [(row["region"], *(count_words(float(row[name])) for name in names)) for row in table]


def _budget(priced: PricedRelease) -> str:
    budget = priced.plan.policy.budget
    return "what" if budget.epsilon is None else significant_up(budget.epsilon)


def _hits(success: Success) -> str:
    return f"{success.hits} of {success.of}"


def _share(ceiling: float | None) -> str:
    return "–" if ceiling is None else f"{math.ceil(100 * ceiling)} %"
