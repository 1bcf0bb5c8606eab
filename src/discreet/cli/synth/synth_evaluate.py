"""`discreet synth evaluate`: how good a model is, and what it gives away."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.options import AsJson, command
from discreet.cli.output import show

__all__ = ["add_to"]

_EXAMPLE = "discreet synth evaluate stays.safetensors stays.parquet"
_Model = Annotated[Path, typer.Argument(help="A model that `synth fit` wrote.", metavar="MODEL")]
_Rows = Annotated[Path, typer.Argument(help="The real table, or a public one with --public.", metavar="TABLE")]
_Label = Annotated[str | None, typer.Option("--label", help="The column that models learn to tell.")]
_Holdout = Annotated[Path | None, typer.Option("--holdout", help="Real rows that the model never saw.")]
_Refits = Annotated[int, typer.Option("--refits", help="Fit anew to 4, 6, … random halves, to attack those.")]
_Public = Annotated[bool, typer.Option("--public", help="TABLE is public: the report may be published.")]
_Out = Annotated[Path | None, typer.Option("--out", help="The page to write.")]


def add_to(synth: typer.Typer) -> None:
    """Add the command."""
    command(synth, "evaluate", example=_EXAMPLE)(evaluate)


def evaluate(
    model: _Model,
    table: _Rows,
    label: _Label = None,
    holdout: _Holdout = None,
    refits: _Refits = 0,
    public: _Public = False,
    out: _Out = None,
    as_json: AsJson = False,
) -> None:
    """Compare a sample with the real table and attack it. The report is about real people, and for you only."""
    from discreet.cli.synth.synth_runs import evaluated, evaluated_publicly
    from discreet.errors import InvalidParameter

    if public and (holdout is not None or refits):
        raise InvalidParameter("attacks need the real table: leave --holdout and --refits out, or --public")
    if public:
        found = evaluated_publicly(model, table, label, out)
    else:
        found = evaluated(model, table, label, holdout=holdout, refits=refits, out=out)
    show(found, as_json=as_json)
