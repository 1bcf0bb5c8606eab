"""Where everything is written: results to stdout, the rest to stderr, and colours only where a terminal wants them."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TextIO, TypeAlias, final

if TYPE_CHECKING:
    from rich.table import Table as RichTable

__all__ = ["Block", "CommandAnswer", "TextTable", "note", "printable", "quiet", "show", "wants_colour", "written"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TextTable:
    """Words in rows, under a head. `right` names the columns of numbers, by position; `styles` colours whole rows."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    right: frozenset[int] = frozenset()
    styles: Sequence[str] = ()


Block: TypeAlias = str | TextTable
_quiet: ContextVar[bool] = ContextVar("quiet", default=False)


class CommandAnswer(Protocol):
    """What a command answers: a frozen dataclass, whose fields are the JSON, and which people read as blocks."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def blocks(self) -> Iterable[Block]:
        """Return lines and tables, for people."""


def show(answer: CommandAnswer, *, as_json: bool) -> None:
    """Write an answer to stdout, for programs or for people."""
    if as_json:
        print(written(asdict(answer)))
    else:
        for block in answer.blocks():
            _show_block(block, sys.stdout)


def written(document: object) -> str:
    """Write JSON that is safe on any terminal and has no numbers that JSON does not know."""
    return json.dumps(document, indent=2, allow_nan=False)


def note(block: Block) -> None:
    """Tell people something that is no result: to stderr. Programs that read JSON are told no such things."""
    if not _quiet.get():
        _show_block(block, sys.stderr)


@contextmanager
def quiet(quiet_now: bool) -> Iterator[None]:
    """Tell nothing but results, errors and questions while this lasts."""
    before = _quiet.set(quiet_now)
    try:
        yield
    finally:
        _quiet.reset(before)


def wants_colour(stream: TextIO) -> bool:
    """Tell whether a stream is a terminal whose owner wants colours (no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def printable(text: str) -> str:
    """Replace what could steer a terminal: names and purposes come from files that others wrote."""
    return "".join(letter if letter.isprintable() or letter == "\n" else "�" for letter in text)


def _show_block(block: Block, stream: TextIO) -> None:
    if isinstance(block, TextTable) and wants_colour(stream):
        from rich.console import Console

        Console(file=stream).print(_rich(block))
        return
    for line in _aligned(block) if isinstance(block, TextTable) else [printable(block)]:
        print(line, file=stream)


def _rich(table: TextTable) -> RichTable:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table as RichTable
    from rich.text import Text

    drawn = RichTable(box=SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for position, name in enumerate(table.head):
        right = position in table.right  # Numbers stay whole; words may go on in the next line.
        drawn.add_column(Text(printable(name)), justify="right" if right else "left", no_wrap=right, overflow="fold")
    styles = table.styles or [""] * len(table.rows)
    for row, style in zip(table.rows, styles, strict=True):
        drawn.add_row(*(Text(printable(cell)) for cell in row), style=style)
    return drawn


def _aligned(table: TextTable) -> Iterator[str]:
    """Write a table as plain text."""
    rows = [[printable(cell) for cell in row] for row in (table.head, *table.rows)]
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    rows.insert(1, ["─" * width for width in widths])
    for row in rows:
        cells = zip(row, widths, strict=True)
        aligned = (cell.rjust(n) if i in table.right else cell.ljust(n) for i, (cell, n) in enumerate(cells))
        yield "  ".join(aligned).rstrip()
