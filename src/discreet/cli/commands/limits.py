"""`discreet limits`: contribution limits that most units keep."""

from __future__ import annotations

from typing import Annotated

import typer

from discreet.cli.options import AsJson, AtDelta, Epsilon, MaxEpsilon, PolicyFile, Principal, Project, command
from discreet.cli.output import note, show

__all__ = ["add_to"]


def add_to(app: typer.Typer, panel: str) -> None:
    """Add the command."""
    example = "discreet limits --most 16 --groups diagnosis --epsilon 0.1 \\\n  --policy plan.toml --max-epsilon 0.1"
    command(app, "limits", panel=panel, example=example)(limits)


def limits(
    policy: PolicyFile,
    most: Annotated[int, typer.Option("--most", help="The largest limit worth considering; from 2.")],
    epsilon: Epsilon = None,
    rho: Annotated[str | None, typer.Option("--rho", help="The ρ (zCDP) to spend, instead of ε.")] = None,
    table: Annotated[str | None, typer.Option("--table", help="The table, where there are several.")] = None,
    groups: Annotated[
        list[str] | None, typer.Option("--groups", help="A column that answers are grouped by; may be repeated.")
    ] = None,
    coverage: Annotated[
        str, typer.Option("--coverage", help="The share of units that shall have no more, between 0 and 1.")
    ] = "0.98",
    max_epsilon: MaxEpsilon = None,
    at_delta: AtDelta = None,
    principal: Principal = None,
    project: Project = "",
    as_json: AsJson = False,
) -> None:
    """Propose contribution limits: how many rows and groups most units have, from private histograms."""
    from discreet.cli.policies import open_session
    from discreet.cli.query_support import limits_found

    said = {"most": most, "epsilon": epsilon, "rho": rho, "table": table, "groups": groups or (), "coverage": coverage}
    with open_session(policy, principal=principal, project=project) as session:
        show(limits_found(session, max_epsilon=max_epsilon, at_delta=at_delta, **said), as_json=as_json)
        note(session.money())
