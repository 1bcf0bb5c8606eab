"""`discreet attack floating-point`: the last digits of noisy numbers, against the exact value behind them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.output import show
from discreet.cli.words import AsJson, command

__all__ = ["add_to"]

_EXAMPLE = """\
discreet attack floating-point discreet.attacks.textbook:laplace --epsilon 1 \\
  --law laplace --samples 10000"""
_Noise = Annotated[str, typer.Argument(help="A function that adds noise: my_module:fn, of value or of value and size.")]
_Epsilon = Annotated[str, typer.Option("--epsilon", help="The ε that it claims for the two inputs.")]
_Delta = Annotated[str, typer.Option("--delta", help="The δ that it claims.")]
_Inputs = Annotated[str, typer.Option("--inputs", help="The exact values of two neighbours.")]
_Samples = Annotated[int, typer.Option("--samples", help="How many outputs of each.", min=1000)]
_Law = Annotated[str | None, typer.Option("--law", help="laplace, if it is that by inversion: counted exactly.")]
_Scale = Annotated[float, typer.Option("--scale", help="The scale of that law.")]
_Plot = Annotated[Path | None, typer.Option("--plot", help="Also draw it: a .png, .svg or .html file.")]


def add_to(attack: typer.Typer) -> None:
    """Add the command."""
    command(attack, "floating-point", example=_EXAMPLE)(floating_point)


def floating_point(
    noise: _Noise,
    epsilon: _Epsilon,
    delta: _Delta = "0",
    inputs: _Inputs = "0,1",
    samples: _Samples = 100_000,
    law: _Law = None,
    scale: _Scale = 1.0,
    plot: _Plot = None,
    as_json: AsJson = False,
) -> None:
    """Tell whether the last digits of a noisy number give away what it was made from."""
    from discreet.cli.answers.attack_floating_point import FloatingPointAnswer
    from discreet.cli.attacking import draw, tested_noise

    found = tested_noise(noise, inputs, law, epsilon=epsilon, delta=delta, samples=samples, scale=scale)
    draw(found, plot)
    show(FloatingPointAnswer.of(found), as_json=as_json)
