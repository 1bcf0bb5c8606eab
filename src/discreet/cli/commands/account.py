"""`discreet account`: the accountant, on numbers that you type; no data, no ledger."""

from __future__ import annotations

from typing import Annotated

import typer

from discreet.cli.options import AsJson, command, group
from discreet.cli.output import show

__all__ = ["add_to"]

accountant = group("Privacy accounting: compose, convert and calibrate; no data, no ledger, nothing is spent.")
_Delta = Annotated[str, typer.Option("--delta", help="The δ at which ε is computed; 0 for pure ε-DP.")]


def add_to(app: typer.Typer, panel: str) -> None:
    """Add the group."""
    app.add_typer(accountant, name="account", rich_help_panel=panel)


@command(
    accountant,
    "compose",
    example='discreet account compose "gaussian:sigma=20 x 10, laplace:scale=30" --delta 1e-6',
    busy="composing",
)
def compose(
    events: Annotated[str, typer.Argument(help='Such as "gaussian:sigma=2 x 10, laplace:scale=3"; "@ 0.01" samples.')],
    delta: _Delta = "0",
    as_json: AsJson = False,
) -> None:
    """Compose events: a proven upper bound on the total ε of many releases about the same people."""
    from discreet.cli.account_support import composed

    show(composed(events, delta), as_json=as_json)


@command(accountant, "convert", example="discreet account convert --rho 0.1 --delta 1e-6", busy="converting")
def convert(
    rho: Annotated[str | None, typer.Option("--rho", help="Convert from the ρ of zero-concentrated DP (zCDP).")] = None,
    mu: Annotated[str | None, typer.Option("--mu", help="Convert from the µ of Gaussian DP.")] = None,
    epsilon: Annotated[str | None, typer.Option("--epsilon", help="Convert from the ε of pure DP.")] = None,
    delta: _Delta = "0",
    as_json: AsJson = False,
) -> None:
    """Convert between zCDP (ρ), Gaussian DP (µ), pure DP (ε) and (ε, δ)."""
    from discreet.cli.account_support import converted

    show(converted(rho=rho, mu=mu, epsilon=epsilon, delta=delta), as_json=as_json)


@command(
    accountant,
    "calibrate",
    example="discreet account calibrate --epsilon 2 --delta 1e-6 --steps 1000 --sampling-rate 0.01",
    busy="calibrating",
)
def calibrate(
    epsilon: Annotated[str, typer.Option("--epsilon", help="The total ε of all releases.")],
    delta: _Delta = "0",
    steps: Annotated[int, typer.Option("--steps", help="Number of releases (steps).", min=1)] = 1,
    sampling_rate: Annotated[
        str,
        typer.Option("--sampling-rate", help="Sampling probability, if each release is on a secret Poisson sample."),
    ] = "1",
    noise: Annotated[str, typer.Option("--noise", help="The noise: gaussian or laplace.")] = "gaussian",
    as_json: AsJson = False,
) -> None:
    """Calibrate noise: the least noise multiplier with which many releases stay within ε and δ."""
    from discreet.cli.account_support import calibrated

    show(calibrated(epsilon, delta, steps=steps, rate=sampling_rate, noise=noise), as_json=as_json)
