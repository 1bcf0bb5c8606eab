"""`discreet synth domain`: the file that says what is public of a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.options import AsJson, command
from discreet.cli.output import show

__all__ = ["add_to"]

_Source = Annotated[Path, typer.Argument(help="A policy or a plan; or a Parquet or CSV file.", metavar="FILE")]
_Table = Annotated[str | None, typer.Option("--table", help="Which table of a policy.")]
_Out = Annotated[Path, typer.Option("--out", help="The domain file to write.")]


def add_to(synth: typer.Typer) -> None:
    """Add the command."""
    command(synth, "domain", example="discreet synth domain plan.toml --out domain.toml")(domain)


def domain(source: _Source, table: _Table = None, out: _Out = Path("domain.toml"), as_json: AsJson = False) -> None:
    """Write a domain file: what a policy declares of a table, or the names of a file's columns, for you to fill in."""
    from discreet.cli.synth.synth_runs import drafted

    show(drafted(source, table, out), as_json=as_json)
