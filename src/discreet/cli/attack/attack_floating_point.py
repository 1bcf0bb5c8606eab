"""`discreet attack floating-point`: the last digits of noisy numbers, against the exact value behind them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, final

import typer

from discreet.cli.attack.attack_support import Share
from discreet.cli.options import AsJson, command
from discreet.cli.output import Block, show

if TYPE_CHECKING:
    from discreet.lab.attacks.floating_point_attack import FloatingPoint

__all__ = ["FloatingPointAnswer", "add_to"]

_EXAMPLE = """\
discreet attack floating-point discreet.lab.attacks.textbook_noise:laplace --epsilon 1 \\
  --law laplace --samples 10000"""
_Noise = Annotated[str, typer.Argument(help="A function that adds noise: my_module:fn, of value or of value and size.")]
_Epsilon = Annotated[str, typer.Option("--epsilon", help="The ε that it claims for the two inputs.")]
_Delta = Annotated[str, typer.Option("--delta", help="The δ that it claims.")]
_Inputs = Annotated[str, typer.Option("--inputs", help="The exact values on two neighbouring data sets.")]
_Samples = Annotated[int, typer.Option("--samples", help="Number of outputs to sample for each input.", min=1000)]
_Law = Annotated[
    str | None,
    typer.Option("--law", help="laplace, if the noise is Laplace by inversion: outputs are then traced back exactly."),
]
_Scale = Annotated[float, typer.Option("--scale", help="The scale of that Laplace distribution.")]
_Plot = Annotated[Path | None, typer.Option("--plot", help="Plot the result to this file: .png, .svg or .html.")]


def add_to(attack: typer.Typer) -> None:
    """Add the command."""
    command(attack, "floating-point", example=_EXAMPLE, busy="attacking")(floating_point)


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
    """Floating-point attack: test whether the last digits of a noisy number reveal the exact value."""
    from discreet.cli.attack.attack_support import draw, tested_noise

    found = tested_noise(noise, inputs, law, epsilon=epsilon, delta=delta, samples=samples, scale=scale)
    draw(found, plot)
    show(FloatingPointAnswer.of(found), as_json=as_json)


# --- attack_floating_point: What the last digits of a noise function tell. ---


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FloatingPointAnswer:
    """Whether a claim is refuted. An `epsilon_at_least` of null means that no ε holds."""

    inputs: list[float]
    samples: int
    epsilon: float
    delta: float
    error: float  # the chance that a correct function is called broken
    broken: bool
    epsilon_at_least: float | None
    telling: str
    seen: list[Share]
    baseline: float  # the share of such outputs that the claim allows
    unreachable: list[Share] | None  # null if the law is unknown
    text: str

    @classmethod
    def of(cls, found: FloatingPoint) -> FloatingPointAnswer:
        """Read what was found."""
        plain = found.to_json()
        exact = None if found.unreachable is None else [Share.of_success(one) for one in found.unreachable]
        names = ("inputs", "samples", "epsilon", "delta", "error", "broken", "epsilon_at_least", "telling", "baseline")
        return cls(
            **{name: plain[name] for name in names},
            seen=[Share.of_success(one) for one in found.seen],
            unreachable=exact,
            text=str(found),
        )

    def blocks(self) -> Iterator[Block]:
        yield self.text
