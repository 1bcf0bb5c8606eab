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
    as_json: AsJson = False,
) -> None:
    """Check every file of a bundle, and with the ledger that it is what was paid for; exit code 3 if it is not."""
    from discreet.cli.answers.bundles import VerifiedBundle
    from discreet.release import verify_bundle

    found = VerifiedBundle.of(verify_bundle(path, ledger=ledger))
    show(found, as_json=as_json)
    if not found.ok:
        raise typer.Exit(Code.REFUSED)
