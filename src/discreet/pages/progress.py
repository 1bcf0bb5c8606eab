"""What is shown while something takes long: on a terminal a line that is taken away, in a notebook one in its place.

Elsewhere nothing is shown, or a line for each step. How much is done is told of public steps only; of what reads
private rows it is the time alone.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar, copy_context
from itertools import count
from threading import Event, Thread
from typing import Any, Protocol, TextIO, final

from discreet.pages.svg import words

__all__ = ["Working", "clear", "show_limit", "wants_colour", "working"]

_displays = count()  # Of this process: a notebook tells them apart by number.
_SILENT = 1.0  # Seconds: what takes no longer needs no progress.


class _Screen(Protocol):
    """Where it is shown: `beat` seconds after each other."""

    beat: float

    def show(self, current: Working) -> None: ...

    def close(self, current: Working) -> None: ...


@final
class Working:
    """Something that goes on. Whoever does it may say which step this is, of how many, or how long it may take."""

    def __init__(
        self,
        what: str,
        total: int | None = None,
        *,
        done: int = 0,
        screen: _Screen | None = None,
        lines: Callable[[str], None] | None = None,
    ) -> None:
        self.what, self.total, self.done, self.told = what, total, done, ""
        self._screen, self._lines = screen, lines
        self._first, self._begun, self._ended = done, time.monotonic(), Event()
        # What a notebook shows belongs to the cell that began it, which it knows by the context.
        self._thread = Thread(target=copy_context().run, args=(self._keep_showing,), daemon=True)
        if screen is not None:
            self._thread.start()

    def step(self, told: str) -> None:
        """Count one more thing that is done."""
        self.done, self.told = self.done + 1, told
        if self._lines is not None and self.total is not None:
            self._lines(f"{self.done} of {self.total}  {told}")

    def limit(self, seconds: float) -> None:
        """Say how long it may take."""
        self.told = f"(limit {seconds:.0f} s)"

    def end(self) -> None:
        """Take it from the screen: more than once does no harm."""
        self._ended.set()
        if self._screen is not None:
            self._thread.join()  # It may have begun just now.

    @property
    def counted(self) -> str:
        """How much is done, of what may be counted."""
        return "" if self.total is None else f"{self.done} of {self.total}"

    @property
    def time(self) -> str:
        """The seconds that are gone, and of steps those that remain."""
        gone, steps = time.monotonic() - self._begun, self.done - self._first
        left = f", about {gone / steps * (self.total - self.done):.0f} s left" if self.total and steps else ""
        return f"{gone:.0f} s elapsed{left}"

    def _keep_showing(self) -> None:
        """Show it until it ends. If a screen cannot, it is not the work that failed."""
        screen = self._screen
        if screen is None or self._ended.wait(_SILENT):
            return
        with suppress(Exception):
            screen.show(self)
            while not self._ended.wait(screen.beat):
                screen.show(self)
        with suppress(Exception):
            screen.close(self)


_now: ContextVar[Working | None] = ContextVar("working", default=None)


@contextmanager
def working(
    what: str,
    *,
    total: int | None = None,
    done: int = 0,
    shown: bool = True,
    terminal: bool = True,
    lines: Callable[[str], None] | None = None,
) -> Iterator[Working]:
    """Show that something goes on, if it takes longer than a second, and take it away at the end.

    Without `total` it is the time alone: how much is done of a private computation would tell about the data. With it,
    a bar and "3 of 60", for what is public or about made-up people; where there is no screen, `lines` gets each step.
    Without `terminal` it is for notebooks, and for those only if nothing else is shown: what is called there from
    Python has no command around it that tells.
    """
    outer = _now.get()
    screen = _screen(what, total, terminal=terminal) if shown and (terminal or outer is None) else None
    if screen is None:
        yield Working(what, total, done=done, lines=lines)
        return
    if outer is not None:
        outer.end()
    current = Working(what, total, done=done, screen=screen)
    before = _now.set(current)
    try:
        yield current
    finally:
        _now.reset(before)
        current.end()


def clear() -> None:
    """Take away what is shown now: a result follows on the same screen."""
    current = _now.get()
    if current is not None:
        current.end()


def show_limit(seconds: float) -> None:
    """Say how long what goes on now may take."""
    current = _now.get()
    if current is not None:
        current.limit(seconds)


def wants_colour(stream: TextIO) -> bool:
    """Tell whether a stream is a terminal whose owner wants colours (no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _screen(what: str, total: int | None, *, terminal: bool) -> _Screen | None:
    shell = _kernel_shell()
    if shell is not None:
        return _Notebook(shell)
    if terminal and sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
        return _Terminal(what, total)
    return None


def _kernel_shell() -> Any | None:
    """Return the shell of the notebook this runs in, if any; IPython on a terminal has no kernel."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell if hasattr(shell, "kernel") else None


# --- notebook: Plain text and HTML that are displayed once and then changed in place; no widgets, no script. ---


@final
class _Notebook:
    """The output of a cell. At the end a count stays; the time does not, since notebooks are saved and published."""

    beat = 0.5

    def __init__(self, shell: Any) -> None:
        self._publish, self._id, self._shown = (
            shell.display_pub.publish,
            f"discreet-{os.getpid()}-{next(_displays)}",
            False,
        )

    def show(self, current: Working) -> None:
        bar = f'<progress value="{current.done}" max="{current.total}"></progress> ' if current.total else ""
        self._put(bar, (current.what, current.counted, current.time, current.told))

    def close(self, current: Working) -> None:
        self._put("", (current.what, current.counted, current.told) if current.total else ())

    def _put(self, bar: str, parts: Iterable[str]) -> None:
        text = " · ".join(filter(None, parts))
        data = {"text/plain": text, "text/html": f"<div>{bar}{words(text)}</div>" if text else ""}
        self._publish(data, {}, transient={"display_id": self._id}, update=self._shown)
        self._shown = True


# --- terminal ---


@final
class _Terminal:
    """One line on stderr. Results go to another stream, which may be a file: it is left alone."""

    beat = 0.1

    def __init__(self, what: str, total: int | None) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn
        from rich.table import Column

        def field(name: str) -> TextColumn:
            text = f"{{task.fields[{name}]}}"
            return TextColumn(text, markup=False, style="", table_column=Column(no_wrap=True))

        stream = sys.stderr
        console = Console(file=stream, highlight=False, color_system="auto" if wants_colour(stream) else None)
        counted = () if total is None else (BarColumn(bar_width=20), field("counted"))
        columns = (SpinnerColumn(), field("what"), *counted, field("time"), field("told"))
        self._progress = Progress(*columns, console=console, transient=True, redirect_stdout=False, auto_refresh=False)
        self._task = self._progress.add_task(what, total=total, what=what, counted="", time="", told="")

    def show(self, current: Working) -> None:
        counted, gone, told = current.counted, current.time, current.told
        self._progress.update(self._task, completed=current.done, counted=counted, time=gone, told=told)
        self._progress.start()
        self._progress.refresh()

    def close(self, current: Working) -> None:
        self._progress.stop()
