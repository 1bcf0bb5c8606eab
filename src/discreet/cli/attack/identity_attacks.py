"""What commands about identity share: how their words are read, and tables that are subtracted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, final

from discreet.cli.attack.attack_support import listed
from discreet.errors import InvalidParameter
from discreet.lab.attacks.count_tables import CountTable, noised

if TYPE_CHECKING:
    from discreet.lab.attacks.differencing import Differencing
    from discreet.lab.attacks.scoreboard import ItemCounts, Scoreboard
    from discreet.privacy import NotPrivate

__all__ = ["Diary", "calculations", "differenced", "numbers", "pairs", "scored"]


@final
@dataclass(frozen=True, slots=True)
class Diary:
    """A table of entries, and which of its columns say what."""

    table: Path
    person: str
    item: str
    value: str
    when: str


def pairs(words: Sequence[str] | None, option: str) -> dict[str, str]:
    """Read names with what is said of each: name=text."""
    found: dict[str, str] = {}
    for word in words or ():
        name, mark, text = word.partition("=")
        if not mark or not name.strip() or name.strip() in found:
            raise InvalidParameter(f"{option} takes name=value, and each name once")
        found[name.strip()] = text.strip()
    return found


def numbers(text: str, option: str) -> list[int]:
    """Read whole numbers that are separated by commas."""
    words = listed([text])
    if not words or not all(word.isdecimal() for word in words):
        raise InvalidParameter(f"{option} takes whole numbers, separated by commas, such as 2,4,8")
    return [int(word) for word in words]


def calculations(columns: Sequence[str] | None, calculated: Sequence[str] | None) -> dict[str, str] | list[str] | None:
    """Read which columns to take, and what is calculated of them."""
    named, more = listed(columns), pairs(calculated, "--as")
    if more:
        from discreet.query.engines.sql_writer import quote

        return {name: quote(name) for name in named} | more
    return named or None


def differenced(
    table: Path,
    by: Sequence[str],
    conditions: Sequence[str],
    attribute: str,
    person: str | None,
    hide_below: int,
    epsilon: str | None,
    delta: str,
) -> NotPrivate[Differencing]:
    """Subtract exact tables, or private ones of the same groups, in which nothing needs to be hidden."""
    from discreet.lab import attacks

    def tables(hide: int) -> list[CountTable]:
        names = ["all rows", *conditions[1:]]
        return [
            attacks.tabulate(table, by, where=where, name=name, hide_below=hide).value
            for name, where in zip(names, conditions, strict=True)
        ]

    exact = tables(hide_below)
    if epsilon is None:
        return attacks.differencing(table, exact, attribute=attribute, person=person)
    private, event = noised(tables(0), epsilon=epsilon, delta=delta)
    return attacks.differencing(table, private, attribute=attribute, person=person, isolating=exact, event=event)


def scored(
    diary: Diary, known: Sequence[int], days: Sequence[int], *, false_facts: int, targets: int, epsilon: str | None
) -> tuple[NotPrivate[Scoreboard], NotPrivate[ItemCounts] | None]:
    """Look for people in a table of entries and, at an epsilon, in private counts of its items."""
    from discreet.lab.attacks import item_counts, scoreboard

    found = scoreboard(
        diary.table,
        person=diary.person,
        item=diary.item,
        value=diary.value,
        when=diary.when,
        known=known,
        days=days,
        false_facts=false_facts,
        targets=targets,
    )
    if epsilon is None:
        return found, None
    return found, item_counts(
        diary.table,
        epsilon=epsilon,
        person=diary.person,
        item=diary.item,
        value=diary.value,
        when=diary.when,
        known=max(trial.known for trial in found.value.trials),
        targets=targets,
    )
