"""Statements as they are typed: over several lines, until a semicolon."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from enum import Enum
from typing import final

__all__ = ["is_whole", "statements"]

_FIRST, _MORE = "discreet> ", "     ...> "
_LEAVE = (r"\quit", r"\q", "quit", "exit")


@final
class _Key(Enum):
    """What is pressed instead of typing a line."""

    END = "Ctrl-D, or the end of the input"
    DROP = "Ctrl-C"


def statements() -> Iterator[str]:
    r"""Return what is typed, statement by statement, until the end of the input or `\quit`."""
    lines: list[str] = []
    while (line := _line(_MORE if lines else _FIRST)) is not _Key.END:
        if line is _Key.DROP:
            lines = []  # As in other shells: what was begun is dropped, the sitting goes on.
            continue
        assert isinstance(line, str)
        if not lines and line.strip() in _LEAVE:
            return
        lines += [line] if line.strip() else []
        if is_whole("\n".join(lines)):
            yield _without_end(lines)
            lines = []
    if lines:
        yield _without_end(lines)  # The input ended: what was piped in needs no semicolon.


def _without_end(lines: list[str]) -> str:
    return "\n".join(lines).strip().removesuffix(";").rstrip()


def is_whole(text: str) -> bool:
    r"""Tell whether a statement is at its end: a semicolon outside of quotes; `\budget` and the like need none."""
    written = text.strip()
    if written.startswith("\\") and not written.startswith(r"\explain"):
        return True
    return written.endswith(";") and written.count("'") % 2 == 0


def _line(prompt: str) -> str | _Key:
    """Read a line. The prompt goes to the terminal, never into results."""
    at_terminal = sys.stdin.isatty()
    if at_terminal and not sys.stdout.isatty():
        sys.stderr.write(prompt)
        sys.stderr.flush()
    try:
        return input(prompt if at_terminal and sys.stdout.isatty() else "")
    except EOFError:
        _new_line(at_terminal)
        return _Key.END
    except KeyboardInterrupt:
        if not at_terminal:
            raise
        _new_line(at_terminal)
        return _Key.DROP


def _new_line(at_terminal: bool) -> None:
    if at_terminal:
        print(file=sys.stderr)
