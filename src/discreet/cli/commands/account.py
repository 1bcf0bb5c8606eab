"""`discreet account`: the accountant, on numbers that you type; no data, no ledger."""

from __future__ import annotations

from typing import Annotated

import typer

from discreet.cli.options import AsJson, command, group
from discreet.cli.output import show

__all__ = ["add_to"]

accountant = group("Compose, convert and calibrate privacy: no data, no ledger, nothing is spent.")
_Delta = Annotated[str, typer.Option("--delta", help="The δ at which ε is told; 0 for pure privacy.")]


def add_to(app: typer.Typer, panel: str) -> None:
    """Add the group."""
    app.add_typer(accountant, name="account", rich_help_panel=panel)


@command(
    accountant,
    "compose",
    example='discreet account compose "gaussian:sigma=20 x 10, laplace:scale=30" --delta 1e-6',
)
def compose(
    events: Annotated[str, typer.Argument(help='Such as "gaussian:sigma=2 x 10, laplace:scale=3"; "@ 0.01" samples.')],
    delta: _Delta = "0",
    as_json: AsJson = False,
) -> None:
    """Tell the total ε of many releases about the same people, with a proof."""
    from discreet.cli.account_support import composed

    show(composed(events, delta), as_json=as_json)


@command(accountant, "convert", example="discreet account convert --rho 0.1 --delta 1e-6")
def convert(
    rho: Annotated[str | None, typer.Option("--rho", help="From ρ of zero-concentrated privacy.")] = None,
    mu: Annotated[str | None, typer.Option("--mu", help="From µ of Gaussian privacy.")] = None,
    epsilon: Annotated[str | None, typer.Option("--epsilon", help="From a pure ε.")] = None,
    delta: _Delta = "0",
    as_json: AsJson = False,
) -> None:
    """Tell what one way of saying privacy means in the others."""
    from discreet.cli.account_support import converted

    show(converted(rho=rho, mu=mu, epsilon=epsilon, delta=delta), as_json=as_json)


@command(
    accountant,
    "calibrate",
    example="discreet account calibrate --epsilon 2 --delta 1e-6 --steps 1000 --sampling-rate 0.01",
)
def calibrate(
    epsilon: Annotated[str, typer.Option("--epsilon", help="The ε of everything together.")],
    delta: _Delta = "0",
    steps: Annotated[int, typer.Option("--steps", help="How many releases.", min=1)] = 1,
    sampling_rate: Annotated[str, typer.Option("--sampling-rate", help="Of a secret Poisson sample each.")] = "1",
    noise: Annotated[str, typer.Option("--noise", help="gaussian or laplace.")] = "gaussian",
    as_json: AsJson = False,
) -> None:
    """Find the least noise with which many releases stay within ε and δ."""
    from discreet.cli.account_support import calibrated

    show(calibrated(epsilon, delta, steps=steps, rate=sampling_rate, noise=noise), as_json=as_json)
