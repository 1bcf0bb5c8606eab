"""`discreet synth fit`: a model of a private table, paid before it is read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.options import AsJson, MaxEpsilon, Principal, command
from discreet.cli.output import show

__all__ = ["add_to"]

_EXAMPLE = """\
discreet synth fit plan.toml --domain domain.toml --rows-per-unit 2 --method mst \\
  --epsilon 1 --delta 1e-6 --max-epsilon 1 --out stays.safetensors"""
_Source = Annotated[Path, typer.Argument(help="A Parquet or CSV file; or a policy or a plan.", metavar="FILE")]
_Domain = Annotated[Path | None, typer.Option("--domain", help="What is public of it; a policy may say it.")]
_Method = Annotated[str, typer.Option("--method", help="auto, aim, mst, independent or merf.")]
_Epsilon = Annotated[str, typer.Option("--epsilon", help="How much ε to spend.", metavar="NUMBER")]
_Delta = Annotated[str, typer.Option("--delta", help="The δ, such as 1e-6.", metavar="NUMBER")]
_Unit = Annotated[str | None, typer.Option("--unit", help='Whom to protect: a column, or "row". A policy says it.')]
_Rows = Annotated[int | None, typer.Option("--rows-per-unit", help="How many rows of one unit are used at most.")]
_Label = Annotated[str | None, typer.Option("--label", help="The column that matters most, if there is one.")]
_Table = Annotated[str | None, typer.Option("--table", help="Which table of a policy.")]
_Ledger = Annotated[Path | None, typer.Option("--ledger", help="Where it is charged; FILE.ledger unless you say it.")]
_Out = Annotated[Path, typer.Option("--out", help="The model to write: a .safetensors file.")]


def add_to(synth: typer.Typer) -> None:
    """Add the command."""
    command(synth, "fit", example=_EXAMPLE)(fit)


def fit(
    source: _Source,
    epsilon: _Epsilon,
    delta: _Delta,
    domain: _Domain = None,
    method: _Method = "auto",
    unit: _Unit = None,
    rows_per_unit: _Rows = None,
    label: _Label = None,
    table: _Table = None,
    ledger: _Ledger = None,
    out: _Out = Path("model.safetensors"),
    max_epsilon: MaxEpsilon = None,
    principal: Principal = None,
    as_json: AsJson = False,
) -> None:
    """Fit a model to a private table. Rows drawn from it belong to nobody, and it may be published."""
    from discreet.cli.synth.synth_runs import FitRequest, fitted

    wanted = FitRequest(
        domain=domain, method=method, epsilon=epsilon, delta=delta, rows_per_unit=rows_per_unit, label=label,
        table=table,
    )  # fmt: skip
    found = fitted(source, unit, ledger, wanted, principal=principal, max_epsilon=max_epsilon, out=out)
    show(found, as_json=as_json)
