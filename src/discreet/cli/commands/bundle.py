"""`discreet bundle`: what was published, checked again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.exits import Code
from discreet.cli.output import show
from discreet.cli.words import AsJson, command, group

__all__ = ["add_to"]

bundle = group("What was published: check that nothing in it was changed.")


def add_to(app: typer.Typer, panel: str) -> None:
    """Add the group."""
    app.add_typer(bundle, name="bundle", rich_help_panel=panel)


@command(bundle, "verify", example="discreet bundle verify published/stays-2025 --ledger northmere.ledger")
def verify(
    path: Annotated[Path, typer.Argument(help="The folder or the .zip file.", metavar="BUNDLE")],
    ledger: Annotated[Path | None, typer.Option("--ledger", help="Also compare with what was paid and stored.")] = None,
    key: Annotated[
        str | None,
        typer.Option("--key", help="Whom you trust: a public key file, or a fingerprint.", metavar="FILE|FINGERPRINT"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check a bundle: its files, with --key who signed it, with --ledger that it is what was paid for and stored.

    Exit code 0 if it is verified, or signed by the key that you name; 3 if anything is wrong; 6 if nothing is wrong but
    not everything was checked: without --key and --ledger, files can only be found to agree with each other.
    """
    from discreet.cli.answers.bundles import VerifiedBundle
    from discreet.release import verify_bundle

    found = VerifiedBundle.of(verify_bundle(path, ledger=ledger, key=key))
    show(found, as_json=as_json)
    if not found.ok:
        raise typer.Exit(Code.REFUSED if found.outcome == "NOT VERIFIED" else Code.NOT_CHECKED)
