"""`discreet user`: people who have an account on a server."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.options import AsJson, command, group
from discreet.cli.output import show

__all__ = ["add_to"]

user = group("People who have an account on a server.")

_State = Annotated[Path, typer.Option("--state", help="The state of the server, which may be running.")]
_Name = Annotated[str, typer.Argument(help="The name of the account.", metavar="NAME")]
_HERE = Path("discreet-server.db")


def add_to(app: typer.Typer, panel: str) -> None:
    """Add the group."""
    app.add_typer(user, name="user", rich_help_panel=panel)


@command(user, "add", example="discreet user add ana --role analyst --dataset northmere-stays")
def add(
    name: _Name,
    role: Annotated[str, typer.Option("--role", help="owner, custodian, analyst, auditor, agent or reader.")],
    dataset: Annotated[
        list[str] | None, typer.Option("--dataset", help="A data set to grant; several times for several.")
    ] = None,
    state: _State = _HERE,
    as_json: AsJson = False,
) -> None:
    """Add somebody, and print an invitation with which they sign in once, within a week, and set a password."""
    from discreet.cli.server_support import NewSecret, accounts_of, role_named, who_changes

    with accounts_of(state, may_begin=True) as accounts:
        made = accounts.add(name, role_named(role), dataset or (), by=who_changes())
        show(NewSecret(name=name, secret=made, use="invitation"), as_json=as_json)


@command(user, "invite", example="discreet user invite ana")
def invite(name: _Name, state: _State = _HERE, as_json: AsJson = False) -> None:
    """Print another invitation of somebody, such as for a forgotten password."""
    from discreet.cli.server_support import NewSecret, accounts_of, who_changes

    with accounts_of(state) as accounts:
        made = accounts.invite(name, by=who_changes())
        show(NewSecret(name=name, secret=made, use="invitation"), as_json=as_json)


@command(user, "grant", example="discreet user grant ana --dataset northmere-stays")
def grant(
    name: _Name,
    dataset: Annotated[list[str], typer.Option("--dataset", help="A data set; several times for several.")],
    revoke: Annotated[bool, typer.Option("--revoke", help="Take the data sets back.")] = False,
    state: _State = _HERE,
    as_json: AsJson = False,
) -> None:
    """Grant somebody data sets, or take them back with --revoke; it counts from their next request on."""
    from discreet.cli.server_support import PeopleList, accounts_of, who_changes

    with accounts_of(state) as accounts:
        accounts.grant(name, dataset, revoke=revoke, by=who_changes())
        show(PeopleList.of(accounts), as_json=as_json)


@command(user, "list", example="discreet user list")
def list_people(state: _State = _HERE, as_json: AsJson = False) -> None:
    """List everybody who has an account, their roles and data sets."""
    from discreet.cli.server_support import PeopleList, accounts_of

    with accounts_of(state) as accounts:
        show(PeopleList.of(accounts), as_json=as_json)


@command(user, "disable", example="discreet user disable ana")
def disable(name: _Name, state: _State = _HERE, as_json: AsJson = False) -> None:
    """Disable an account: its visits end and its tokens are revoked; what was asked stays on record."""
    from discreet.cli.server_support import PeopleList, accounts_of, who_changes

    with accounts_of(state) as accounts:
        accounts.disable(name, by=who_changes())
        show(PeopleList.of(accounts), as_json=as_json)
