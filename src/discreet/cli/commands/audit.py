"""`discreet audit`: statistical lower bounds on epsilon, for this library or for a function of yours."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.exits import Code
from discreet.cli.options import AsJson, command, group
from discreet.cli.output import show

__all__ = ["add_to"]

_SELF = "discreet audit self --only Laplace --out self-audit.html"
_MECHANISM = """\
discreet audit mechanism discreet.lab.audit.example_mechanisms:noisy_count \\
  --pairs discreet.lab.audit.example_mechanisms:pairs --epsilon 1 --runs 4000"""
_Name = Annotated[str, typer.Argument(help="A function that takes a data set: module:function.", metavar="FUNCTION")]
_Pairs = Annotated[str, typer.Option("--pairs", help="A function that returns pairs of neighbours: module:function.")]
_Epsilon = Annotated[str, typer.Option("--epsilon", help="The ε that it claims.", metavar="NUMBER")]
_Delta = Annotated[str, typer.Option("--delta", help="The δ that it claims.", metavar="NUMBER")]
_Relation = Annotated[str, typer.Option("--relation", help="The neighbouring relation: add-remove or replace-one.")]
_Runs = Annotated[int, typer.Option("--runs", help="Number of runs on each data set of the pairs that look worst.")]
_Level = Annotated[
    float, typer.Option("--level", help="Significance level: the largest probability of refuting a claim that holds.")
]
_Size = Annotated[str, typer.Option("--size", help="small (two to four minutes) or full (ten times as many runs).")]
_Only = Annotated[str | None, typer.Option("--only", help="Audit only what has this in its name.")]
_Out = Annotated[Path | None, typer.Option("--out", help="Write the report to this file: .html, .json or .txt.")]


def add_to(app: typer.Typer, panel: str) -> None:
    """Add the group."""
    audit = group(
        "Audit a claim of privacy: a statistical lower bound on ε, for this library or for a function of yours."
    )
    command(audit, "self", example=_SELF)(self_audit)
    command(audit, "mechanism", example=_MECHANISM, busy="auditing")(mechanism)
    app.add_typer(audit, name="audit", rich_help_panel=panel)


def self_audit(size: _Size = "small", only: _Only = None, out: _Out = None, as_json: AsJson = False) -> None:
    """Audit this library: every mechanism, function and whole answers to SQL."""
    from discreet.cli.audit_support import audited_self

    found = audited_self(size, only=only, out=out)
    show(found, as_json=as_json)
    if found.broken:
        raise typer.Exit(Code.REFUSED)


def mechanism(
    name: _Name,
    pairs: _Pairs,
    epsilon: _Epsilon,
    delta: _Delta = "0",
    relation: _Relation = "add-remove",
    runs: _Runs = 20_000,
    level: _Level = 1e-3,
    as_json: AsJson = False,
) -> None:
    """Audit a function, yours or of another library, by its outputs: exit code 3 if its claim is refuted."""
    from discreet.cli.audit_support import audited_mechanism

    found = audited_mechanism(
        name, pairs=pairs, epsilon=epsilon, delta=delta, relation=relation, runs=runs, level=level
    )
    show(found, as_json=as_json)
    if found.refuted:
        raise typer.Exit(Code.REFUSED)
