"""`discreet token`: tokens with which programs ask a server."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.options import AsJson, command, group
from discreet.cli.output import show

__all__ = ["add_to"]

token = group("Tokens with which programs ask a server.")

_State = Annotated[Path, typer.Option("--state", help="The state of the server, which may be running.")]
_HERE = Path("discreet-server.db")


def add_to(app: typer.Typer, panel: str) -> None:
    """Add the group."""
    app.add_typer(token, name="token", rich_help_panel=panel)


@command(token, "new", example="discreet token new ana --scope read --scope ask --days 30")
def new(
    name: Annotated[str, typer.Argument(help="Whose token it is.", metavar="NAME")],
    scope: Annotated[list[str], typer.Option("--scope", help="read, ask, release, audit, approve, manage; several.")],
    dataset: Annotated[
        list[str] | None, typer.Option("--dataset", help="Only for this data set; several times for several.")
    ] = None,
    cap: Annotated[str | None, typer.Option("--cap", help="The ε that it may spend in all.")] = None,
    days: Annotated[int, typer.Option("--days", help="How long it lasts, at most 366.")] = 90,
    state: _State = _HERE,
    as_json: AsJson = False,
) -> None:
    """Make a token of somebody, and print it this once; the server keeps a digest."""
    from discreet.cli.server_support import NewSecret, accounts_of, who_changes

    with accounts_of(state) as accounts:
        made = accounts.new_token(
            name, scopes=scope, datasets=dataset, cap=cap, seconds=86_400.0 * days, by=who_changes()
        )
        show(NewSecret(name=name, secret=made, use="token"), as_json=as_json)


@command(token, "list", example="discreet token list")
def list_tokens(state: _State = _HERE, as_json: AsJson = False) -> None:
    """List tokens and invitations, without their secrets."""
    from discreet.cli.server_support import TokenList, accounts_of

    with accounts_of(state) as accounts:
        show(TokenList.of(accounts), as_json=as_json)


@command(token, "revoke", example="discreet token revoke --all-of ana")
def revoke(
    number: Annotated[str | None, typer.Argument(help="The id of the token, as listed.", metavar="ID")] = None,
    all_of: Annotated[str | None, typer.Option("--all-of", help="Revoke every token of this account.")] = None,
    state: _State = _HERE,
    as_json: AsJson = False,
) -> None:
    """Revoke a token, or all of an account, from now on."""
    from discreet.cli.server_support import TokenList, accounts_of, revoke_tokens

    with accounts_of(state) as accounts:
        revoke_tokens(accounts, number, all_of)
        show(TokenList.of(accounts), as_json=as_json)
