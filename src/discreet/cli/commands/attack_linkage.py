"""`discreet attack linkage`: a table without names, joined with a list that has them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.output import show
from discreet.cli.words import AsJson, command

__all__ = ["add_to"]

_EXAMPLE = """\
discreet attack linkage stays.parquet voters.parquet --on zip,birth_date,sex \\
  --name name --tell diagnosis --person patient"""
_Table = Annotated[Path, typer.Argument(help="A table without names: a Parquet, CSV or DuckDB file.")]
_Names = Annotated[Path, typer.Argument(help="A list with names.")]
_On = Annotated[list[str], typer.Option("--on", help="Columns that both have, such as zip,birth_date,sex.")]
_Name = Annotated[str, typer.Option("--name", help="The column of the list that has the names.")]
_Tell = Annotated[list[str] | None, typer.Option("--tell", help="What to tell about a few who were named.")]
_Person = Annotated[str | None, typer.Option("--person", help="The column that tells whose records are whose.")]


def add_to(attack: typer.Typer) -> None:
    """Add the command."""
    command(attack, "linkage", example=_EXAMPLE)(linkage)


def linkage(
    table: _Table,
    names: _Names,
    on: _On,
    name: _Name,
    tell: _Tell = None,
    person: _Person = None,
    as_json: AsJson = False,
) -> None:
    """Give the records of a table their names back, by a list that knows the same about people."""
    from discreet.attacks import linkage
    from discreet.cli.answers.attack_linkage import LinkageAnswer
    from discreet.cli.attacking import listed

    found = linkage(table, names, on=listed(on), name=name, tell=listed(tell), person=person)
    show(LinkageAnswer.of(found), as_json=as_json)
