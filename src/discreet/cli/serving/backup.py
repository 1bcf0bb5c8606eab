"""`discreet backup`: copies of the state of a server, which has people, tokens, jobs and the log."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.options import AsJson, command, group
from discreet.cli.output import show

__all__ = ["add_to"]

backup = group("Copies of the state of a server: make, check, and put back on purpose.")

_State = Annotated[Path, typer.Option("--state", help="The state of the server: a file, or postgresql://….")]
_Anchor = Annotated[
    Path | None, typer.Option("--state-anchor", help="Where the end of the log is kept, if not beside the state.")
]
_HERE = Path("discreet-server.db")


def add_to(app: typer.Typer, panel: str) -> None:
    """Add the group."""
    app.add_typer(backup, name="backup", rich_help_panel=panel)


@command(backup, "make", example="discreet backup make monday.db", busy="copying the state")
def make(
    file: Annotated[Path, typer.Argument(help="The copy, a new file.", metavar="FILE")],
    state: _State = _HERE,
    state_anchor: _Anchor = None,
    as_json: AsJson = False,
) -> None:
    """Copy the state of a server, which may be running, into a file, and check the copy."""
    from discreet.cli.serving.backup_support import CheckedCopy
    from discreet.server.watch.backup import make_copy

    show(CheckedCopy.of(make_copy(state, file, anchor=state_anchor)), as_json=as_json)


@command(backup, "check", example="discreet backup check monday.db", busy="reading the log")
def check(
    file: Annotated[Path | None, typer.Argument(help="A copy; left out, the state itself.", metavar="[FILE]")] = None,
    state: _State = _HERE,
    state_anchor: _Anchor = None,
    as_json: AsJson = False,
) -> None:
    """Check that the log of a copy is as it was written; without FILE, that the state itself is no old copy."""
    from discreet.cli.serving.backup_support import CheckedCopy
    from discreet.server.watch.backup import check_copy, check_state

    found = check_state(state, anchor=state_anchor) if file is None else check_copy(file)
    show(CheckedCopy.of(found), as_json=as_json)


@command(backup, "restore", example='discreet backup restore monday.db --reason "the disk was lost"')
def restore(
    reason: Annotated[str, typer.Option("--reason", help="Why; it stands in the log.")],
    file: Annotated[
        Path | None, typer.Argument(help="The copy; left out, the old state that is there.", metavar="[FILE]")
    ] = None,
    state: _State = _HERE,
    state_anchor: _Anchor = None,
    as_json: AsJson = False,
) -> None:
    """Put a copy back, or accept an old state; all tokens, invitations, passwords and visits are void afterwards."""
    from discreet.cli.server_support import who_changes
    from discreet.cli.serving.backup_support import CheckedCopy, RestoredState
    from discreet.server.watch.backup import restore_state

    facts, invitations = restore_state(state, file, reason=reason, by=who_changes(), anchor=state_anchor)
    show(RestoredState(state=CheckedCopy.of(facts), invitations=invitations), as_json=as_json)
