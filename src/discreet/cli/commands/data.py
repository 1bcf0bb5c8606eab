"""`discreet data`: the sets that come with the package."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.output import show
from discreet.cli.words import AsJson, command, group

__all__ = ["add_to"]

data = group("Made-up data that come along, to try things on.")


def add_to(app: typer.Typer, panel: str) -> None:
    """Add the group."""
    app.add_typer(data, name="data", rich_help_panel=panel)


@command(data, "list", example="discreet data list")
def list_sets(as_json: AsJson = False) -> None:
    """List the data sets that come along. Everybody in them is made up."""
    from discreet.cli.answers.sets import Sets
    from discreet.data import bundled

    show(Sets.of(bundled()), as_json=as_json)


@command(data, "copy", example="discreet data copy hospital .")
def copy_set(
    name: Annotated[str, typer.Argument(help="Which set; see data list.")],
    folder: Annotated[Path, typer.Argument(help="Where to; no file is overwritten.")] = Path(),
    as_json: AsJson = False,
) -> None:
    """Copy the files of a set into a folder."""
    from discreet.cli.answers.sets import Copied
    from discreet.data import copy

    show(Copied.of(copy(name, folder)), as_json=as_json)
