"""`discreet attack differencing`: tables are subtracted until one person is left."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.output import show
from discreet.cli.words import AsJson, command

__all__ = ["add_to"]

_EXAMPLE = """\
discreet attack differencing stays.parquet --by district,sex,diagnosis \\
  --attribute diagnosis --person patient --hide-below 5 \\
  --where "nights < 28" --where "age_group <> '95+'" --epsilon 1 --delta 1e-6"""
_Table = Annotated[Path, typer.Argument(help="The rows that the tables count: a Parquet, CSV or DuckDB file.")]
_By = Annotated[list[str], typer.Option("--by", help="What the tables are by, such as district,sex,diagnosis.")]
_Attribute = Annotated[str, typer.Option("--attribute", help="What an attacker wants to know; one of --by.")]
_Where = Annotated[
    list[str] | None, typer.Option("--where", help="One more table, of rows that fulfil this, as in SQL.")
]
_Person = Annotated[str | None, typer.Option("--person", help="The column that tells whose rows are whose.")]
_Hide = Annotated[int, typer.Option("--hide-below", help="Numbers from 1 to one less than this are not shown.", min=0)]
_Epsilon = Annotated[
    str | None, typer.Option("--epsilon", help="Attack private tables instead: the ε of all of them together.")
]
_Delta = Annotated[str, typer.Option("--delta", help="Their δ.")]
_Plot = Annotated[Path | None, typer.Option("--plot", help="Draw it into this file: .png, .svg or .html.")]


def add_to(attack: typer.Typer) -> None:
    """Add the command."""
    command(attack, "differencing", example=_EXAMPLE)(differencing)


def differencing(
    table: _Table,
    by: _By,
    attribute: _Attribute,
    where: _Where = None,
    person: _Person = None,
    hide_below: _Hide = 0,
    epsilon: _Epsilon = None,
    delta: _Delta = "1e-6",
    plot: _Plot = None,
    as_json: AsJson = False,
) -> None:
    """Publish tables of counts, of all rows and of each --where, and subtract them until one person is left."""
    from discreet.cli.answers.attack_differencing import DifferencingAnswer
    from discreet.cli.attacking import draw, listed
    from discreet.cli.identifying import differenced

    conditions = ["", *(where or [])]
    found = differenced(table, listed(by), conditions, attribute, person, hide_below, epsilon, delta)
    draw(found, plot)
    show(DifferencingAnswer.of(found), as_json=as_json)
