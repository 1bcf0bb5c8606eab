"""`discreet version`."""

from __future__ import annotations

import typer

from discreet.cli.answers.machine import Version
from discreet.cli.output import show
from discreet.cli.words import AsJson, command

__all__ = ["add_to"]


def add_to(app: typer.Typer, panel: str) -> None:
    """Add the command."""
    command(app, "version", panel=panel, example="discreet version")(version)


def version(as_json: AsJson = False) -> None:
    """Say which version this is."""
    show(Version.installed(), as_json=as_json)
