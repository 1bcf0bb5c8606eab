"""`discreet demo`: attacks on made-up data, published exactly and published privately."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, final

import typer

from discreet.cli.options import AsJson, command
from discreet.cli.output import Block, show

if TYPE_CHECKING:
    from discreet.lab.demo.narration import DemoResult

__all__ = ["DemoAnswer", "add_to"]


def add_to(app: typer.Typer, panel: str) -> None:
    """Add the command."""
    command(app, "demo", panel=panel, example="discreet demo")(demo)


def demo(
    folder: Annotated[Path, typer.Argument(help="The folder for the reports.")] = Path("discreet-demo"),
    as_json: AsJson = False,
) -> None:
    """Attack a made-up hospital's tables, published exactly and published privately, and see the difference."""
    from rich.console import Console

    from discreet.lab.demo.demo_run import run

    show(DemoAnswer.of(run(folder, console=Console(quiet=as_json))), as_json=as_json)


# --- demos: What the demo has found. ---


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DemoAnswer:
    """Figures about people who do not exist. The story itself is told while it happens."""

    folder: str
    bundle: str
    report: str
    attack_report: str
    stays: int
    stays_named: int
    tables: int
    epsilon: float
    delta: float
    charged: bool
    exact_tables: dict[str, Any]
    private_tables: dict[str, Any]
    seconds: float

    @classmethod
    def of(cls, result: DemoResult) -> DemoAnswer:
        """Read what was found."""
        return cls(**result.to_json())

    def blocks(self) -> Iterator[Block]:
        return iter(())
