"""`discreet attack tracing`: who is among the people whose counts were published?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.options import AsJson, command
from discreet.cli.output import show

__all__ = ["add_to"]

_EXAMPLE = "discreet attack tracing --people 60 --attributes 600 --epsilon 1"
_Table = Annotated[Path | None, typer.Argument(help="A table, half of whose rows are traced; else people are made up.")]
_Columns = Annotated[list[str] | None, typer.Option("--columns", help="Columns whose values are counted.")]
_People = Annotated[int, typer.Option("--people", help="How many people to make up.", min=2)]
_Attributes = Annotated[int, typer.Option("--attributes", help="How many counts are published of them.", min=1)]
_Genes = Annotated[bool, typer.Option("--genes", help="Two copies and rarer values, as in a study of genes.")]
_Score = Annotated[str, typer.Option("--score", help="inner-product, likelihood-ratio or distance.")]
_Trials = Annotated[int, typer.Option("--trials", help="How many members to look for, at most.", min=1)]
_Epsilon = Annotated[str | None, typer.Option("--epsilon", help="Publish private counts with this ε instead.")]
_Delta = Annotated[str, typer.Option("--delta", help="The δ of the private counts.")]
_Plot = Annotated[Path | None, typer.Option("--plot", help="Also draw it: a .png, .svg or .html file.")]


def add_to(attack: typer.Typer) -> None:
    """Add the command."""
    command(attack, "tracing", example=_EXAMPLE)(tracing)


def tracing(
    table: _Table = None,
    columns: _Columns = None,
    people: _People = 100,
    attributes: _Attributes = 1000,
    genes: _Genes = False,
    score: _Score = "inner-product",
    trials: _Trials = 500,
    epsilon: _Epsilon = None,
    delta: _Delta = "1e-6",
    plot: _Plot = None,
    as_json: AsJson = False,
) -> None:
    """Tell from published counts of many attributes who is among the people that were counted."""
    from discreet.cli.attack.attack_support import draw
    from discreet.cli.attack.count_attacks import TracingAnswer, traced

    said = {"people": people, "attributes": attributes, "trials": trials}
    found = traced(table, columns, **said, genes=genes, score=score, epsilon=epsilon, delta=delta)
    draw(found, plot)
    show(TracingAnswer.of(found), as_json=as_json)
