"""`discreet attack attributes`: what a model tells about one person, beyond what it tells about all."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.output import show
from discreet.cli.words import AsJson, command

__all__ = ["add_to"]

_EXAMPLE = """\
discreet attack attributes stays.parquet --secret diagnosis \\
  --known zip,birth_date,sex --rows 60 --people 20"""
_Table = Annotated[Path, typer.Argument(help="A table, one row a person: a Parquet, CSV or DuckDB file.")]
_Secret = Annotated[str, typer.Option("--secret", help="The column to guess.")]
_Known = Annotated[list[str], typer.Option("--known", help="The columns that the attacker knows.")]
_Rows = Annotated[int, typer.Option("--rows", help="Rows to draw from the table, to train on.")]
_People = Annotated[int, typer.Option("--people", help="People among them to attack: two models for each.")]
_Synthesise = Annotated[
    str | None, typer.Option("--synthesise", help="Look in a synthetic table instead: my_module:fn, of columns.")
]
_Plot = Annotated[Path | None, typer.Option("--plot", help="Draw the result into this file: .png, .svg or .html.")]


def add_to(attack: typer.Typer) -> None:
    """Add the command."""
    command(attack, "attributes", example=_EXAMPLE)(attributes)


def attributes(
    table: _Table,
    secret: _Secret,
    known: _Known,
    rows: _Rows = 300,
    people: _People = 50,
    synthesise: _Synthesise = None,
    plot: _Plot = None,
    as_json: AsJson = False,
) -> None:
    """Ask a plain model for a secret of people, once trained with their row and once without it."""
    from discreet.attacks import attributes_of_table
    from discreet.cli.answers.attack_attributes import AttributesAnswer
    from discreet.cli.attacking import draw, listed
    from discreet.cli.loading import function_named

    own = None if synthesise is None else function_named(synthesise)
    found = attributes_of_table(table, secret=secret, known=listed(known), rows=rows, people=people, synthesise=own)
    draw(found, plot)
    show(AttributesAnswer.of(found), as_json=as_json)
