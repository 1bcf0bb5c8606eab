"""`discreet attack sticky`: noise that sticks to who is counted tells who is counted."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.output import show
from discreet.cli.words import AsJson, command

__all__ = ["add_to"]

_EXAMPLE = """\
discreet attack sticky stays.parquet --known district,sex,birth_date,nights \\
  --secret diagnosis --victims 20"""
_Table = Annotated[Path, typer.Argument(help="A table, one row for each person: a Parquet, CSV or DuckDB file.")]
_Known = Annotated[list[str], typer.Option("--known", help="Columns that the attacker knows, such as zip,sex.")]
_Secret = Annotated[str, typer.Option("--secret", help="The column to find out.")]
_Value = Annotated[str | None, typer.Option("--value", help="Which value of it; the commonest unless you say it.")]
_Victims = Annotated[int, typer.Option("--victims", help="How many people to attack.", min=1)]
_Epsilon = Annotated[str | None, typer.Option("--epsilon", help="Attack a private session with this ε instead.")]
_Plot = Annotated[Path | None, typer.Option("--plot", help="Also draw it: a .png, .svg or .html file.")]


def add_to(attack: typer.Typer) -> None:
    """Add the command."""
    command(attack, "sticky", example=_EXAMPLE)(sticky)


def sticky(
    table: _Table,
    known: _Known,
    secret: _Secret,
    value: _Value = None,
    victims: _Victims = 100,
    epsilon: _Epsilon = None,
    plot: _Plot = None,
    as_json: AsJson = False,
) -> None:
    """Put a table behind a model of sticky noise, and read secrets off the noise."""
    from discreet.attacks import sticky
    from discreet.cli.answers.attack_sticky import StickyAnswer
    from discreet.cli.attacking import draw, listed

    found = sticky(table, known=listed(known), secret=secret, value=value, victims=victims, epsilon=epsilon)
    draw(found, plot)
    show(StickyAnswer.of(found), as_json=as_json)
