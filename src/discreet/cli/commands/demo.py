"""`discreet demo`: what goes wrong without protection, and what does not with it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.output import show
from discreet.cli.words import AsJson, command

__all__ = ["add_to"]


def add_to(app: typer.Typer, panel: str) -> None:
    """Add the command."""
    command(app, "demo", panel=panel, example="discreet demo")(demo)


def demo(
    folder: Annotated[Path, typer.Argument(help="A folder of its own.")] = Path("discreet-demo"),
    as_json: AsJson = False,
) -> None:
    """Attack a made-up hospital's tables, published exactly and published privately, and see the difference."""
    from rich.console import Console

    from discreet.cli.answers.demos import DemoAnswer
    from discreet.demo import run

    show(DemoAnswer.of(run(folder, console=Console(quiet=as_json))), as_json=as_json)
