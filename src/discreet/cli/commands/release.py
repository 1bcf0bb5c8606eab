"""`discreet release`: publish a period of a release plan."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.options import AsJson, MaxEpsilon, Period, PlanFile, Principal, command
from discreet.cli.output import show

__all__ = ["add_to"]


def add_to(app: typer.Typer, panel: str) -> None:
    """Add the command."""
    command(app, "release", panel=panel, example="discreet release plan.toml --max-epsilon 1")(release)


def release(
    plan: PlanFile,
    period: Period = None,
    max_epsilon: MaxEpsilon = None,
    principal: Principal = None,
    key: Annotated[Path | None, typer.Option("--key", help="Sign the bundle with this private key.")] = None,
    as_json: AsJson = False,
) -> None:
    """Publish a release of a plan: priced, confirmed, charged, read, and written as a bundle.

    Safe to run again: the same period is never charged or drawn twice, and an interrupted run continues where it
    was. Without --period it is the oldest one that is due.
    """
    from discreet.cli.release_support import Written, released

    show(Written.of(released(plan, period, max_epsilon=max_epsilon, principal=principal, key=key)), as_json=as_json)
