"""`discreet source`: prepare a database to be read, and tell what else is open."""

from __future__ import annotations

from typing import Annotated

import typer

from discreet.cli.exits import Code
from discreet.cli.options import AsJson, PolicyFile, command, group
from discreet.cli.output import show

__all__ = ["add_to"]

source = group("Tables in a database: statements that make a user who reads them, and what is open to that user.")


def add_to(app: typer.Typer, panel: str) -> None:
    """Add the group."""
    app.add_typer(source, name="source", rich_help_panel=panel)


@command(source, "prepare", example="discreet source prepare postgres public.visits --role discreet_reader")
def prepare(
    system: Annotated[str, typer.Argument(help="The database system: postgres.", metavar="SYSTEM")],
    tables: Annotated[list[str], typer.Argument(help="The tables, as schema.table.", metavar="TABLE...")],
    role: Annotated[str, typer.Option("--role", help="The name of the user that is made.")] = "discreet_reader",
    columns: Annotated[
        str, typer.Option("--columns", help="Columns of one table, with commas: a view shows these and no others.")
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Write the statements that make a user who reads some tables and can do nothing else; nothing is run."""
    from discreet.cli.doctor_support import statements_for

    show(statements_for(system, tables, role, columns), as_json=as_json)


@command(source, "check", example="discreet source check --policy plan.toml", busy="looking")
def check(policy: PolicyFile, as_json: AsJson = False) -> None:
    """Look at the databases of a policy, as the users that it names: what is open to them besides their tables."""
    from discreet.cli.doctor_support import doors_of

    health = doors_of(policy)
    show(health, as_json=as_json)
    if not health.healthy:
        raise typer.Exit(Code.REFUSED)
