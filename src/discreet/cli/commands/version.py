"""`discreet version`, and what is told about this machine."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version as metadata_version
from typing import final

import typer

from discreet.cli.options import AsJson, command
from discreet.cli.output import Block, Styled, TextTable, show

__all__ = ["Check", "Health", "Version", "add_to"]


def add_to(app: typer.Typer, panel: str) -> None:
    """Add the command."""
    command(app, "version", panel=panel, example="discreet version")(version)


def version(as_json: AsJson = False) -> None:
    """Print the versions of discreet and Python."""
    show(Version.installed(), as_json=as_json)


# --- machine: What is told about this machine. ---


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """Which version this is, and on what it runs."""

    discreet: str
    python: str

    @classmethod
    def installed(cls) -> Version:
        """Read what is installed."""
        return cls(discreet=metadata_version("discreet"), python=platform.python_version())

    def blocks(self) -> Iterator[Block]:
        yield f"discreet {self.discreet}, Python {self.python}"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was looked at, what was found, and, if it is not right, what to do."""

    name: str
    ok: bool
    found: str
    fix: str = ""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """Everything that was looked at."""

    healthy: bool
    checks: list[Check]

    def blocks(self) -> Iterator[Block]:
        rows = [("ok" if check.ok else "NOT OK", check.name, check.found) for check in self.checks]
        yield TextTable(head=("", "what", "found"), rows=rows, marks={"ok": "green", "NOT OK": "bold red"})
        for check in self.checks:
            if not check.ok:
                yield f"{check.name}: {check.fix}"
        if self.healthy:
            yield Styled("Everything is in order.", "bold green")
        else:
            yield Styled("Fix what is not ok before you publish from here.", "bold red")
