"""Where everything is written: results to stdout, the rest to stderr, and colours only where a terminal wants them."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict
from threading import Timer
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TextIO, TypeAlias, final

from discreet.cli.layout import Line, Meter, Styled, TextTable, meter_lines, styled_lines, table_lines

if TYPE_CHECKING:
    from rich.progress import Progress

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
    "show_limit",
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
    current = _now.get()
    if current is not None:
        current.end()  # What goes on is told on the same terminal.
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


def wants_colour(stream: TextIO) -> bool:
    """Tell whether a stream is a terminal whose owner wants colours (no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


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

_SILENT = 1.0  # Seconds: what takes no longer needs no progress.


@final
class Working:
    """Something that goes on. Whoever does it may say which step this is, of how many, or how long it may take."""

    def __init__(self, what: str, total: int | None, progress: Progress | None) -> None:
        self._progress, self._total, self._done = progress, total, 0
        self._task = None if progress is None else progress.add_task(what, total=total, told="")
        self._timer = None if progress is None else Timer(_SILENT, progress.start)
        if self._timer is not None:
            self._timer.daemon = True
            self._timer.start()

    def end(self) -> None:
        """Take it from the terminal: more than once does no harm."""
        if self._timer is not None and self._progress is not None:
            self._timer.cancel()
            self._timer.join()  # It may have begun just now.
            self._progress.stop()

    def step(self, told: str) -> None:
        """Count one more thing that is done."""
        self._done += 1
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, advance=1, told=told)
        elif self._total is not None:
            note(f"{self._done} of {self._total}  {told}")

    def limit(self, seconds: float) -> None:
        """Say how long it may take."""
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, told=f"(limit {seconds:.0f} s)")


_now: ContextVar[Working | None] = ContextVar("working", default=None)


@contextmanager
def working(what: str, *, total: int | None = None) -> Iterator[Working]:
    """Show a terminal that something goes on, if it takes longer than a second, and take it away at the end.

    Without `total` it is the time alone: how much is done of a private computation would tell about the data. With it,
    a bar and "3 of 60", for what is public or about made-up people; elsewhere than on a terminal each step is a line.
    """
    if _quiet.get() or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield Working(what, total, None)
        return
    outer = _now.get()
    if outer is not None:
        outer.end()
    current = Working(what, total, _progress(total))
    before = _now.set(current)
    try:
        yield current
    finally:
        _now.reset(before)
        current.end()


def show_limit(seconds: float) -> None:
    """Say how long what goes on now may take."""
    current = _now.get()
    if current is not None:
        current.limit(seconds)


def _progress(total: int | None) -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TextColumn
    from rich.table import Column
    from rich.text import Text

    class Elapsed(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(f"{task.elapsed or 0:.0f} s elapsed")

    def words(text: str) -> TextColumn:
        return TextColumn(text, markup=False, style="", table_column=Column(no_wrap=True))

    counted = (BarColumn(bar_width=20), words("{task.completed} of {task.total}")) if total is not None else ()
    console = Console(file=sys.stderr, highlight=False, color_system="auto" if wants_colour(sys.stderr) else None)
    columns = (words("{task.description}"), *counted, Elapsed(table_column=Column(no_wrap=True)))
    told = words("{task.fields[told]}")  # Results go to another stream, which may be a file: it is left alone.
    return Progress(SpinnerColumn(), *columns, told, console=console, transient=True, redirect_stdout=False)
