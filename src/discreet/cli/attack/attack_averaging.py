"""`discreet attack averaging`: asking again until the noise averages out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.options import AsJson, command
from discreet.cli.output import show

__all__ = ["add_to"]

_EXAMPLE = "discreet attack averaging --noise randomized-response --epsilon 1 --times 1,10,30,100"
_Noise = Annotated[str, typer.Option("--noise", help="The mechanism: randomized-response, laplace or gaussian.")]
_Epsilon = Annotated[str, typer.Option("--epsilon", help="The ε of one answer.")]
_Delta = Annotated[str, typer.Option("--delta", help="The δ of one answer, for gaussian.")]
_Times = Annotated[str, typer.Option("--times", help="Numbers of repeated answers, such as 1,10,100.")]
_Plot = Annotated[Path | None, typer.Option("--plot", help="Plot the result to this file: .png, .svg or .html.")]


def add_to(attack: typer.Typer) -> None:
    """Add the command."""
    command(attack, "averaging", example=_EXAMPLE, busy="attacking")(averaging)


def averaging(
    epsilon: _Epsilon,
    noise: _Noise = "randomized-response",
    delta: _Delta = "1e-6",
    times: _Times = "1,2,5,10,20,50,100",
    plot: _Plot = None,
    as_json: AsJson = False,
) -> None:
    """Averaging: how often repeated answers with fresh noise reveal a secret, and what stored answers do against it."""
    from discreet.cli.attack.attack_support import draw
    from discreet.cli.attack.count_attacks import AveragingAnswer, averaged

    curve = averaged(noise, times, epsilon=epsilon, delta=delta)
    draw(curve, plot)
    show(AveragingAnswer.of(curve), as_json=as_json)
