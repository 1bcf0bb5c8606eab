"""Statements as they are typed: over several lines until a semicolon, with history and completion on a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

__all__ = ["history_file", "is_whole", "prepare_terminal", "statements"]

_FIRST, _MORE = "discreet> ", "     ...> "
_MOST = 2000  # Lines of history that are kept.
_SQL = (
    "SELECT", "FROM", "WHERE", "GROUP BY", "HAVING", "ORDER BY", "LIMIT", "JOIN", "ON", "AS", "AND", "OR", "NOT", "IN",
    "BETWEEN", "LIKE", "IS NULL", "CASE", "WHEN", "THEN", "ELSE", "END", "WITH", "UNION ALL", "COUNT(*)", "COUNT(",
    "COUNT(DISTINCT", "SUM(", "AVG(", "MEDIAN(", "QUANTILE(", "STDDEV(", "VAR_SAMP(", "MIN(", "MAX(", "MODE(",
    "FILTER (WHERE", "DP_LOW(", "DP_HIGH(", "DATE", "EXTRACT(", "DATE_TRUNC(", "COALESCE(",
)  # fmt: skip


def statements() -> Iterator[str]:
    """Return what is typed, statement by statement, until the end of the input or `\\quit`."""
    lines: list[str] = []
    while (line := _line(_MORE if lines else _FIRST)) is not None:
        if not lines and line.strip() in (r"\quit", r"\q", "quit", "exit"):
            return
        lines += [line] if line.strip() else []
        if is_whole("\n".join(lines)):
            yield "\n".join(lines).strip().removesuffix(";").rstrip()
            lines = []
    if lines:
        yield "\n".join(lines).strip()  # The input ended; what is unfinished is refused by whoever reads it.


def is_whole(text: str) -> bool:
    """Tell whether a statement is at its end: a semicolon outside of quotes; `\\budget` and the like need none."""
    written = text.strip()
    if written.startswith("\\") and not written.startswith(r"\explain"):
        return True
    return written.endswith(";") and written.count("'") % 2 == 0


def _line(prompt: str) -> str | None:
    """Read a line; the prompt goes to the terminal, never into results."""
    if not sys.stdin.isatty():
        prompt = ""
    elif not sys.stdout.isatty():
        sys.stderr.write(prompt)
        sys.stderr.flush()
        prompt = ""
    try:
        return input(prompt)
    except EOFError:
        return None


def history_file() -> Path:
    """Return where questions of earlier sittings are kept: in the user's own folder for such things."""
    home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(home) / "discreet" / "history"


def prepare_terminal(words: Sequence[str]) -> None:
    """Let a terminal complete words and remember questions, in a file that its owner alone can read."""
    try:
        import atexit
        import readline
    except ImportError:  # A Python without it still asks, only less comfortably.
        return
    file = history_file()
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.close(os.open(file, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    file.chmod(0o600)
    readline.read_history_file(file)
    readline.set_history_length(_MOST)
    atexit.register(readline.write_history_file, file)
    every = sorted({*_SQL, *words})

    def complete(begun: str, number: int) -> str | None:
        fitting = [word for word in every if word.casefold().startswith(begun.casefold())]
        return fitting[number] if number < len(fitting) else None

    readline.set_completer(complete)
    readline.set_completer_delims(" \t\n,;=<>()")
    readline.parse_and_bind("tab: complete")
