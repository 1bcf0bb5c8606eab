"""`discreet attack tracing`: who is among the people whose counts were published?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.options import AsJson, command
from discreet.cli.output import show

__all__ = ["add_to"]

_EXAMPLE = "discreet attack tracing --people 60 --attributes 600 --epsilon 1"
_Table = Annotated[
    Path | None, typer.Argument(help="A table, half of whose rows are the members; without it people are made up.")
]
_Columns = Annotated[list[str] | None, typer.Option("--columns", help="Columns whose values are counted.")]
_People = Annotated[int, typer.Option("--people", help="Number of made-up people.", min=2)]
_Attributes = Annotated[
    int, typer.Option("--attributes", help="Number of attributes, each published as a count.", min=1)
]
_Genes = Annotated[bool, typer.Option("--genes", help="Made-up genomes: two copies of each gene, and rarer values.")]
_Score = Annotated[
    str, typer.Option("--score", help="The test statistic: inner-product, likelihood-ratio or distance.")
]
_Trials = Annotated[int, typer.Option("--trials", help="Largest number of members to look for.", min=1)]
_Epsilon = Annotated[str | None, typer.Option("--epsilon", help="Publish private counts with this ε instead.")]
_Delta = Annotated[str, typer.Option("--delta", help="The δ of the private counts.")]
_Plot = Annotated[Path | None, typer.Option("--plot", help="Plot the result to this file: .png, .svg or .html.")]


def add_to(attack: typer.Typer) -> None:
    """Add the command."""
    command(attack, "tracing", example=_EXAMPLE, busy="attacking")(tracing)


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
    """Tracing: infer membership from published counts of many attributes."""
    from discreet.cli.attack.attack_support import draw
    from discreet.cli.attack.count_attacks import TracingAnswer, traced

    said = {"people": people, "attributes": attributes, "trials": trials}
    found = traced(table, columns, **said, genes=genes, score=score, epsilon=epsilon, delta=delta)
    draw(found, plot)
    show(TracingAnswer.of(found), as_json=as_json)
