"""`discreet attack membership`: who was in the data of a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.output import show
from discreet.cli.words import AsJson, command

__all__ = ["add_to"]

_EXAMPLE = """\
discreet attack membership stays.parquet --label diagnosis \\
  --columns sex,age_group,district,nights --people 300 --shadows 8"""
_Table = Annotated[Path, typer.Argument(help="A table, one row a person: a Parquet, CSV or DuckDB file.")]
_Label = Annotated[str, typer.Option("--label", help="The column that the model tells.")]
_Columns = Annotated[list[str], typer.Option("--columns", help="The columns that it tells it from.")]
_People = Annotated[int, typer.Option("--people", help="Rows to draw from the table.")]
_Shadows = Annotated[int, typer.Option("--shadows", help="Models that the attacker trains: an even number.")]
_Plot = Annotated[Path | None, typer.Option("--plot", help="Draw the attackers into this file: .png, .svg or .html.")]
_Train = Annotated[str | None, typer.Option("--train", help="Your own: my_module:fn, of rows and labels.")]


def add_to(attack: typer.Typer) -> None:
    """Add the command."""
    command(attack, "membership", example=_EXAMPLE)(membership)


def membership(
    table: _Table,
    label: _Label,
    columns: _Columns,
    people: _People = 1000,
    shadows: _Shadows = 32,
    train: _Train = None,
    plot: _Plot = None,
    as_json: AsJson = False,
) -> None:
    """Train models on halves of a table, plain ones or your own, and guess from what they say who was in."""
    from discreet.attacks import membership_of_table
    from discreet.cli.answers.attack_membership import MembershipAnswer
    from discreet.cli.attacking import draw, listed
    from discreet.cli.loading import function_named

    own = None if train is None else function_named(train)
    found = membership_of_table(table, label=label, columns=listed(columns), people=people, shadows=shadows, train=own)
    draw(found, plot)
    show(MembershipAnswer.of(found), as_json=as_json)
