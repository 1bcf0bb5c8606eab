"""`discreet attack scoreboard`: people found in diaries without names by a few things known roughly."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.output import show
from discreet.cli.words import AsJson, command

__all__ = ["add_to"]

_EXAMPLE = """\
discreet attack scoreboard stays.parquet --person patient --item diagnosis --value nights \\
  --when admitted --known 2 --days 3,14 --epsilon 1"""
_Table = Annotated[Path, typer.Argument(help="Entries without names: a Parquet, CSV or DuckDB file.")]
_Person = Annotated[str, typer.Option("--person", help="The column that tells whose entries are whose.")]
_Item = Annotated[str, typer.Option("--item", help="What it is about: a film, a shop, a diagnosis.")]
_Value = Annotated[str, typer.Option("--value", help="A number: a rating, an amount.")]
_When = Annotated[str, typer.Option("--when", help="A date, a time, or seconds since 1970.")]
_Known = Annotated[str, typer.Option("--known", help="How many entries of a person are known: 2,4,8.")]
_Days = Annotated[str, typer.Option("--days", help="By how many days the known dates are off, at most.")]
_False = Annotated[int, typer.Option("--false-facts", help="How many of the known things are not true.", min=0)]
_Targets = Annotated[int, typer.Option("--targets", help="How many people to look for, each time.", min=1)]
_Epsilon = Annotated[
    str | None, typer.Option("--epsilon", help="Also look for them in private counts of items, at this ε.")
]
_Plot = Annotated[Path | None, typer.Option("--plot", help="Draw it into this file: .png, .svg or .html.")]


def add_to(attack: typer.Typer) -> None:
    """Add the command."""
    command(attack, "scoreboard", example=_EXAMPLE)(scoreboard)


def scoreboard(
    table: _Table,
    person: _Person,
    item: _Item,
    value: _Value,
    when: _When,
    known: _Known = "2,4,8",
    days: _Days = "3,14",
    false_facts: _False = 0,
    targets: _Targets = 1000,
    epsilon: _Epsilon = None,
    plot: _Plot = None,
    as_json: AsJson = False,
) -> None:
    """Find people in a table of entries by a few that are known, with dates that are days off."""
    from discreet.cli.answers.attack_scoreboard import ScoreboardAnswer
    from discreet.cli.attacking import draw
    from discreet.cli.identifying import Diary, numbers, scored

    diary = Diary(table, person=person, item=item, value=value, when=when)
    counts, errors = numbers(known, "--known"), numbers(days, "--days")
    found, private = scored(diary, counts, errors, false_facts=false_facts, targets=targets, epsilon=epsilon)
    draw(found, plot)
    show(ScoreboardAnswer.of(found, private), as_json=as_json)
