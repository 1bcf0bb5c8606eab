"""`discreet synth sample`: made-up rows from a model, at no cost."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.options import AsJson, command
from discreet.cli.output import show

__all__ = ["add_to"]

_Model = Annotated[Path, typer.Argument(help="A model that `synth fit` wrote.", metavar="MODEL")]
_Rows = Annotated[int | None, typer.Option("--rows", help="How many; about as many as the real table has otherwise.")]
_Out = Annotated[Path, typer.Option("--out", help="The table to write: .csv or .parquet; pictures: .safetensors.")]


def add_to(synth: typer.Typer) -> None:
    """Add the command."""
    command(synth, "sample", example="discreet synth sample stays.safetensors --out synthetic.csv")(sample)


def sample(model: _Model, rows: _Rows = None, out: _Out = Path("synthetic.csv"), as_json: AsJson = False) -> None:
    """Draw made-up rows. That costs nothing, however often and however many: the model was paid for."""
    from discreet.cli.synth.synth_runs import sampled

    show(sampled(model, rows, out), as_json=as_json)
