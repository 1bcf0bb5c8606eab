"""`discreet explain-epsilon`: what an ε means, in words, a table and a picture; no data, nothing is spent."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.output import show
from discreet.cli.words import AsJson, command

__all__ = ["add_to"]

_Epsilon = Annotated[str | None, typer.Argument(help="The ε to explain, such as 1.0.", metavar="EPSILON")]
_Delta = Annotated[str, typer.Option("--delta", help="The δ that comes with it; 0 for pure privacy.")]
_Rho = Annotated[str | None, typer.Option("--rho", help="Instead of ε: the ρ of zero-concentrated privacy.")]
_Mu = Annotated[str | None, typer.Option("--mu", help="Instead of ε: the µ of Gaussian privacy.")]
_Plot = Annotated[Path | None, typer.Option("--plot", help="Also draw it: a .png, .svg or .html file.")]


def add_to(app: typer.Typer, panel: str) -> None:
    """Add the command."""
    command(app, "explain-epsilon", example="discreet explain-epsilon 1.0 --delta 1e-6", panel=panel)(explain_epsilon)


def explain_epsilon(
    epsilon: _Epsilon = None,
    delta: _Delta = "0",
    rho: _Rho = None,
    mu: _Mu = None,
    plot: _Plot = None,
    as_json: AsJson = False,
) -> None:
    """Tell what an ε means: how far the best attacker gets, and what others spend."""
    from discreet.cli.answers.meanings import MeaningAnswer
    from discreet.cli.attacking import draw
    from discreet.privacy import explain_epsilon

    found = explain_epsilon(epsilon, delta=delta, rho=rho, mu=mu)
    draw(found, plot)
    show(MeaningAnswer.of(found), as_json=as_json)
