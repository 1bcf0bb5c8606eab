"""`discreet doctor`: check this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.exits import Code
from discreet.cli.options import AsJson, command
from discreet.cli.output import show

__all__ = ["add_to"]


def add_to(app: typer.Typer, panel: str) -> None:
    """Add the command."""
    command(app, "doctor", panel=panel, example="discreet doctor", busy="looking")(doctor)


def doctor(
    policy: Annotated[
        Path | None, typer.Option("--policy", help="A policy whose ledger and sources are checked, too.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check this machine: versions, randomness, the engine, and whether a ledger is safe in this folder."""
    from discreet.cli.doctor_support import examine

    found = examine(Path.cwd(), policy)
    show(found, as_json=as_json)
    if not found.healthy:
        raise typer.Exit(Code.REFUSED)
