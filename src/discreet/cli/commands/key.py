"""`discreet key`: who vouches for what is published."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.output import show
from discreet.cli.words import AsJson, command, group

__all__ = ["add_to"]

key = group("Keys that sign bundles, so that anybody can check who published them.")

_File = Annotated[Path, typer.Argument(help="The file of the private key.", metavar="FILE")]


def add_to(app: typer.Typer, panel: str) -> None:
    """Add the group."""
    app.add_typer(key, name="key", rich_help_panel=panel)


@command(key, "new", example="discreet key new board.key")
def new(
    file: _File,
    locked: Annotated[
        bool,
        typer.Option("--passphrase", help="Lock it: asked for twice, or taken from DISCREET_KEY_PASSPHRASE."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Make an Ed25519 key: FILE, which only you may read, and FILE.pub, which is for everybody.

    Make the fingerprint known where readers trust it, such as on the publisher's own web page. Keep a copy of FILE
    where nobody else reads it: there is no other.
    """
    from discreet.cli.answers.keys import KeyAnswer
    from discreet.cli.signing import new_passphrase
    from discreet.release import new_key

    made = new_key(file, passphrase=new_passphrase() if locked else None)
    show(KeyAnswer.of(made, private=str(file), public=f"{file}.pub"), as_json=as_json)


@command(key, "show", example="discreet key show board.key.pub")
def show_key(
    file: Annotated[Path, typer.Argument(help="A private or a public key.", metavar="FILE")], as_json: AsJson = False
) -> None:
    """Print the public key and its fingerprint; of a private key nothing else is told."""
    from discreet.cli.answers.keys import KeyAnswer
    from discreet.cli.signing import public_half

    show(KeyAnswer.of(public_half(file)), as_json=as_json)
