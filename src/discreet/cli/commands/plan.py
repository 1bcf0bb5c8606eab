"""`discreet plan`: everything about a release plan that needs no data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.options import AsJson, Period, PlanFile, command, group
from discreet.cli.output import show

__all__ = ["add_to"]

PublicRows = Annotated[
    list[str] | None,
    typer.Option(
        "--public",
        help="Rows that are public, in place of those that are made up: a file, or TABLE=FILE for each private table.",
        metavar="FILE",
    ),
]
plan = group("Check, price and try out a release plan. No private row is read, and nothing is spent.")


def add_to(app: typer.Typer, panel: str) -> None:
    """Add the group."""
    app.add_typer(plan, name="plan", rich_help_panel=panel)


@command(plan, "check", example="discreet plan check plan.toml", busy="checking")
def check(file: PlanFile, as_json: AsJson = False) -> None:
    """Check everything that can be checked without data; a mistake is named with its line and how to fix it."""
    from discreet.cli.release_support import CheckedPlan
    from discreet.release import check, read_release_plan

    show(CheckedPlan.of(check(read_release_plan(file))), as_json=as_json)


@command(plan, "price", example="discreet plan price plan.toml", busy="pricing")
def price(file: PlanFile, period: Period = None, as_json: AsJson = False) -> None:
    """Show what a release costs, the ± of every table, which groups stay hidden, and what to change."""
    from discreet.cli.release_support import PriceList, period_of
    from discreet.release import price, read_release_plan

    read = read_release_plan(file)
    show(PriceList.of(price(read, period_of(read, period))), as_json=as_json)


@command(plan, "tune", example="discreet plan tune plan.toml", busy="comparing limits")
def tune(file: PlanFile, period: Period = None, public: PublicRows = None, as_json: AsJson = False) -> None:
    """Compare contribution limits and value bounds by noise and by what they leave out of made-up or public rows."""
    from discreet.cli.release_support import ComparedLimits, period_of, public_rows
    from discreet.release import read_release_plan, tune

    read = read_release_plan(file)
    grid = tune(read, period_of(read, period), public=public_rows(read, public))
    show(ComparedLimits.of(grid), as_json=as_json)


@command(plan, "status", example="discreet plan status plan.toml", busy="reading the ledger")
def status(file: PlanFile, as_json: AsJson = False) -> None:
    """List which periods were released, are due or were skipped, and for how many more the budget lasts."""
    from discreet.cli.release_support import PlanStatus, standing

    show(PlanStatus.of(standing(file)), as_json=as_json)


@command(plan, "dummy", example="discreet plan dummy plan.toml", busy="making a bundle up")
def dummy(
    file: PlanFile,
    folder: Annotated[Path, typer.Argument(help="The folder to write the bundle to.")] = Path("dummy"),
    as_json: AsJson = False,
) -> None:
    """Write the whole bundle from made-up rows, to see what will be published. Free, and marked as a dummy."""
    from discreet.cli.release_support import Written
    from discreet.release import dummy, read_release_plan

    show(Written.of(dummy(read_release_plan(file), folder)), as_json=as_json)


@command(plan, "schema", example="discreet plan schema")
def schema(as_json: AsJson = False) -> None:
    """Print the JSON Schema of release plans, for editors and pipelines."""
    from discreet.cli.output import written
    from discreet.release import release_plan_schema

    print(written(release_plan_schema()))
