"""Where everything is written: results to stdout, the rest to stderr, and colours only where a terminal wants them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import asdict
from typing import Any, ClassVar, Protocol, TextIO, TypeAlias

from discreet.cli.layout import Line, Meter, Styled, TextTable, meter_lines, styled_lines, table_lines
from discreet.pages import progress
from discreet.pages.progress import Working, wants_colour

__all__ = [
    "Block",
    "CommandAnswer",
    "Meter",
    "Styled",
    "TextTable",
    "complain",
    "level_style",
    "note",
    "printable",
    "quiet",
    "say",
    "show",
    "wants_colour",
    "working",
    "written",
]

Block: TypeAlias = str | Styled | Meter | TextTable
_quiet: ContextVar[bool] = ContextVar("quiet", default=False)


class CommandAnswer(Protocol):
    """What a command answers: a frozen dataclass, whose fields are the JSON, and which people read as blocks."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def blocks(self) -> Iterable[Block]:
        """Return lines and tables, for people."""


def show(answer: CommandAnswer, *, as_json: bool) -> None:
    """Write an answer to stdout, for programs or for people."""
    progress.clear()  # What goes on is told on the same terminal.
    if as_json:
        print(written(asdict(answer)))
    else:
        for block in answer.blocks():
            say(block)


def say(block: Block) -> None:
    """Write a part of an answer to stdout."""
    _show_block(block, sys.stdout)


def written(document: object) -> str:
    """Write JSON that is safe on any terminal and has no numbers that JSON does not know."""
    return json.dumps(document, indent=2, allow_nan=False)


def note(block: Block) -> None:
    """Tell people something that is no result: to stderr. Programs that read JSON are told no such things."""
    if not _quiet.get():
        _show_block(Styled(block, labels=_LABELS) if isinstance(block, str) else block, sys.stderr)


_LABELS: Mapping[str, str] = {"why:": "bold", "way out:": "bold green", "price:": "bold", "left:": "bold"}


def complain(word: str, message: str) -> None:
    """Tell people what went wrong, on stderr: always."""
    _show_block(Styled(f"{word}: {message}", labels={f"{word}:": "bold red", **_LABELS}), sys.stderr)


@contextmanager
def quiet(quiet_now: bool) -> Iterator[None]:
    """Tell nothing but results, errors and questions while this lasts."""
    before = _quiet.set(quiet_now)
    try:
        yield
    finally:
        _quiet.reset(before)


def printable(text: str) -> str:
    """Replace what could steer a terminal: names and purposes come from files that others wrote."""
    return "".join(letter if letter.isprintable() or letter == "\n" else "�" for letter in text)


def level_style(share_left: float) -> str:
    """Return the colour of what is left of something."""
    return "green" if share_left > 0.5 else "yellow" if share_left > 0.2 else "red"


def _show_block(block: Block, stream: TextIO) -> None:
    """Write a block: in the width of a terminal, or as plain text in lines of any length."""
    width = _width(stream) if stream.isatty() else None
    lines = list(_lines(block, width))
    if not wants_colour(stream):
        for line in lines:
            print("".join(text for text, _ in line).rstrip(" "), file=stream)
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(file=stream, highlight=False)
    for line in lines:  # Already as wide as they should be: what is wider is one word.
        console.print(Text.assemble(*((text, style) for text, style in line if text)), soft_wrap=True)


_NARROWEST = 20  # Cells: whatever says less is no terminal that people read.


def _width(stream: TextIO) -> int:
    from rich.console import Console

    return max(_NARROWEST, Console(file=stream).width)


def _lines(block: Block, width: int | None) -> Iterator[Line]:
    match block:
        case TextTable():
            return table_lines(block, width)
        case Meter():
            return meter_lines(block, width)
        case Styled(text, style, labels):
            return styled_lines(Styled(printable(text), style, labels), width)
    return styled_lines(Styled(printable(block)), width)


# --- progress: What is shown while something takes long. ---


def working(what: str, *, total: int | None = None) -> AbstractContextManager[Working]:
    """Show a terminal that something goes on; elsewhere each step of a known number of them is a line."""
    return progress.working(what, total=total, shown=not _quiet.get(), lines=note)
