"""`discreet key`: Ed25519 keys that sign bundles."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, final

import typer

from discreet.cli.options import AsJson, command, group
from discreet.cli.output import Block, show

if TYPE_CHECKING:
    from discreet.release.signatures import PublicKey

__all__ = ["KeyAnswer", "add_to"]

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
        typer.Option(
            "--passphrase", help="Encrypt it with a passphrase: asked for twice, or taken from DISCREET_KEY_PASSPHRASE."
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Make an Ed25519 key: FILE, which only you may read, and FILE.pub, which is for everybody.

    Make the fingerprint known where readers trust it, such as on the publisher's own web page. Keep a copy of FILE
    where nobody else reads it: there is no other.
    """
    from discreet.cli.signing import new_passphrase
    from discreet.release import new_key

    made = new_key(file, passphrase=new_passphrase() if locked else None)
    show(KeyAnswer.of(made, private=str(file), public=f"{file}.pub"), as_json=as_json)


@command(key, "show", example="discreet key show board.key.pub")
def show_key(
    file: Annotated[Path, typer.Argument(help="A private or a public key.", metavar="FILE")], as_json: AsJson = False
) -> None:
    """Print the public key and its fingerprint; of a private key nothing else is printed."""
    from discreet.cli.signing import public_half

    show(KeyAnswer.of(public_half(file)), as_json=as_json)


# --- keys: A key that signs bundles. ---


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class KeyAnswer:
    """A public key, its fingerprint, and where its files are if they were just made."""

    fingerprint: str
    public_key: str  # base64
    private_file: str | None
    public_file: str | None

    @classmethod
    def of(cls, key: PublicKey, *, private: str | None = None, public: str | None = None) -> KeyAnswer:
        """Describe a key."""
        return cls(fingerprint=key.fingerprint, public_key=key.text, private_file=private, public_file=public)

    def blocks(self) -> Iterator[Block]:
        yield f"fingerprint  {self.fingerprint}"
        yield f"public key   {self.public_key}"
        if self.private_file is not None:
            yield f"private key in {self.private_file}: only you may read it, and there is no other copy"
            yield f"public key in {self.public_file}: make it known where readers trust it"
