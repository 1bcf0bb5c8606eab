"""`discreet approve`: releases that wait on a server for another custodian."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.options import AsJson, command, group
from discreet.cli.output import show

__all__ = ["add_to"]

approve = group("Releases that wait on a server for another custodian.")

_State = Annotated[Path, typer.Option("--state", help="The state of the server, which may be running.")]
_Id = Annotated[str, typer.Argument(help="The id of the release, or its first 8 letters.", metavar="ID")]
_HERE = Path("discreet-server.db")


def add_to(app: typer.Typer, panel: str) -> None:
    """Add the group."""
    app.add_typer(approve, name="approve", rich_help_panel=panel)


@command(approve, "list", example="discreet approve list")
def list_waiting(state: _State = _HERE, as_json: AsJson = False) -> None:
    """List what waits, with its price and why it waits."""
    from discreet.cli.server_support import WaitingList, waiting_in

    with waiting_in(state) as book:
        show(WaitingList.of(book), as_json=as_json)


@command(approve, "accept", example="discreet approve accept 5f3a9c07")
def accept(
    number: _Id,
    reason: Annotated[str, typer.Option("--reason", help="Why; whoever asked reads it.")] = "",
    state: _State = _HERE,
    as_json: AsJson = False,
) -> None:
    """Let a release run that somebody else asked for; the server checks it once more, and charges it then."""
    from discreet.cli.server_support import WaitingList, decide_waiting, waiting_in

    with waiting_in(state) as book:
        decide_waiting(book, number, reason, accept=True)
        show(WaitingList.of(book), as_json=as_json)


@command(approve, "decline", example='discreet approve decline 77b1d24e --reason "released last week"')
def decline(
    number: _Id,
    reason: Annotated[str, typer.Option("--reason", help="Why; whoever asked reads it.")],
    state: _State = _HERE,
    as_json: AsJson = False,
) -> None:
    """Decline a release that somebody else asked for, and say why; nothing is charged."""
    from discreet.cli.server_support import WaitingList, decide_waiting, waiting_in

    with waiting_in(state) as book:
        decide_waiting(book, number, reason, accept=False)
        show(WaitingList.of(book), as_json=as_json)
