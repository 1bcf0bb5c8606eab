"""Every command that there is, and the examples in its help."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any

import typer

from discreet.cli.app import app

_EXAMPLE = re.compile(r"^ *Example: *\n(.*)\Z", re.MULTILINE | re.DOTALL)


def commands() -> dict[str, Any]:
    """Every command by its path, such as `account compose`; groups only if they do something by themselves."""
    return dict(_walk((), typer.main.get_command(app)))


def _walk(path: tuple[str, ...], command: Any) -> Iterator[tuple[str, Any]]:
    inside = getattr(command, "commands", {})
    if path and (not inside or command.invoke_without_command):
        yield " ".join(path), command
    for name, part in inside.items():
        yield from _walk((*path, name), part)


def examples_in(help_text: str) -> list[list[str]]:
    """The commands below "Example:", as a shell would read them, without the name of the program."""
    found = _EXAMPLE.search(help_text)
    return [] if found is None else read_commands(found[1])


def read_commands(text: str) -> list[list[str]]:
    """Read lines of a shell: a line that ends in a backslash goes on."""
    whole = re.sub(r"\\ *\n", " ", text)
    lines = [line.strip() for line in whole.splitlines() if line.strip()]
    assert all(line.startswith("discreet ") for line in lines), lines
    return [shlex.split(line)[1:] for line in lines]
