"""`discreet attack uniqueness` and `singling-out`: who is alone with their values, and how little it takes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.output import show
from discreet.cli.words import AsJson, command

__all__ = ["add_to"]

_Table = Annotated[Path, typer.Argument(help="A Parquet, CSV or DuckDB file.")]
_Columns = Annotated[
    list[str] | None,
    typer.Option("--columns", help="What an attacker may know, such as zip,birth_date,sex; all columns if not said."),
]
_As = Annotated[
    list[str] | None, typer.Option("--as", help='One more that is calculated, as in SQL: "year=year(birth_date)".')
]
_Size = Annotated[int, typer.Option("--size", help="How many columns at once, at most.", min=1)]
_Person = Annotated[str | None, typer.Option("--person", help="The column that tells whose rows are whose.")]
_Plot = Annotated[Path | None, typer.Option("--plot", help="Draw it into this file: .png, .svg or .html.")]
_Facts = Annotated[list[str], typer.Option("--fact", help="What is known of one person: birth_date=1929-10-15.")]


def add_to(attack: typer.Typer) -> None:
    """Add both commands."""
    example = "discreet attack uniqueness stays.parquet --columns zip,birth_date,sex --person patient"
    command(attack, "uniqueness", example=example)(uniqueness)
    example = (
        "discreet attack singling-out stays.parquet --fact zip=37360 --fact birth_date=1929-10-15 \\\n"
        "  --fact sex=f --person patient"
    )
    command(attack, "singling-out", example=example)(singling_out)


def uniqueness(
    table: _Table,
    columns: _Columns = None,
    calculated: _As = None,
    size: _Size = 3,
    person: _Person = None,
    plot: _Plot = None,
    as_json: AsJson = False,
) -> None:
    """Count who is alone with their values, under every combination of columns; the worst come first."""
    from discreet.attacks import uniqueness
    from discreet.cli.answers.attack_uniqueness import UniquenessAnswer
    from discreet.cli.attacking import draw
    from discreet.cli.identifying import calculations

    found = uniqueness(table, calculations(columns, calculated), size=size, person=person)
    draw(found, plot)
    show(UniquenessAnswer.of(found), as_json=as_json)


def singling_out(
    table: _Table, facts: _Facts, size: _Size = 4, person: _Person = None, as_json: AsJson = False
) -> None:
    """Find the fewest facts about one person that fit nobody else."""
    from discreet.attacks import singling_out
    from discreet.cli.answers.attack_uniqueness import SingledOutAnswer
    from discreet.cli.identifying import pairs

    found = singling_out(table, pairs(facts, "--fact"), size=size, person=person)
    show(SingledOutAnswer.of(found), as_json=as_json)
