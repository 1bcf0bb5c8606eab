"""`discreet budget`: what is spent and left of a privacy budget, and raising it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.options import POLICY, AsJson, Delta, PolicyFile, Principal, Project, command, group
from discreet.cli.output import show, working

__all__ = ["add_to"]

budget = group(
    "Privacy budget of a data set: show what is spent and left, over everybody and all days; raise it.",
    example="discreet budget --policy plan.toml",
)


def add_to(app: typer.Typer, panel: str) -> None:
    """Add the group."""
    app.add_typer(budget, name="budget", rich_help_panel=panel)


@budget.callback(invoke_without_command=True)
def show_budget(
    context: typer.Context,
    policy: Annotated[Path | None, typer.Option("--policy", envvar="DISCREET_POLICY", help=POLICY)] = None,
    principal: Principal = None,
    project: Project = "",
    details: Annotated[bool, typer.Option("--details", help="Show all sums and quotas too.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show what was spent on a data set by everybody, what is left, and how many more like the last one fit."""
    from discreet.cli.budget_support import BudgetNow, DetailedBudget
    from discreet.cli.policies import asker, needed, open_ledger, release_delta, unit_names

    if context.invoked_subcommand is None:
        at = release_delta(needed(policy))
        called = unit_names(needed(policy))
        with working("reading the ledger"), open_ledger(needed(policy)) as ledger:
            now = BudgetNow.of(ledger, principal=asker(principal), project=project, at=at, called=called)
            show(DetailedBudget(now=now) if details and not as_json else now, as_json=as_json)


@command(
    budget,
    "raise",
    example='discreet budget raise --policy plan.toml --epsilon 6 --reason "one more year"',
)
def raise_budget(
    policy: PolicyFile,
    reason: Annotated[str, typer.Option("--reason", help="The reason; it is recorded in the ledger.")],
    epsilon: Annotated[str | None, typer.Option("--epsilon", help="The new lifetime ε.")] = None,
    delta: Delta = None,
    rho: Annotated[str | None, typer.Option("--rho", help="The new lifetime ρ.")] = None,
    unit: Annotated[str | None, typer.Option("--unit", help="Of two units, the inner one whose budget it is.")] = None,
    principal: Principal = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask on a terminal.")] = False,
    as_json: AsJson = False,
) -> None:
    """Raise the lifetime budget of a data set: recorded in the ledger with who and why, and irreversible.

    Without --epsilon, --delta and --rho it is raised to what the policy declares. A pure budget may get a δ.
    """
    from discreet.cli.budget_support import raised
    from discreet.cli.policies import asker

    who = asker(principal)
    now = raised(policy, (epsilon, delta, rho), unit=unit, reason=reason, principal=who, agreed=yes)
    show(now, as_json=as_json)
