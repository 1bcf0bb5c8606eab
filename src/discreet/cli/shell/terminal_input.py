"""Input of the shell: statements over several lines, completion, and a history of queries, never of answers."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from enum import Enum
from pathlib import Path
from typing import final

from discreet.cli.output import note

__all__ = ["history_file", "is_whole", "prepare_terminal", "statements"]

# --- lines: Statements as they are typed: over several lines, until a semicolon. ---


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


# --- terminal: What makes a terminal comfortable: it completes words, and remembers questions, never answers. ---


_MOST = 2000  # Lines of history that are kept.
_APART = " \t\n,;=<>()"
_SQL = (
    "SELECT", "FROM", "WHERE", "GROUP BY", "HAVING", "ORDER BY", "LIMIT", "JOIN", "ON", "AS", "AND", "OR", "NOT", "IN",
    "BETWEEN", "LIKE", "IS NULL", "CASE", "WHEN", "THEN", "ELSE", "END", "WITH", "UNION ALL", "COUNT(*)", "COUNT(",
    "COUNT(DISTINCT", "SUM(", "AVG(", "MEDIAN(", "QUANTILE(", "STDDEV(", "VAR_SAMP(", "MIN(", "MAX(", "MODE(",
    "FILTER (WHERE", "DP_LOW(", "DP_HIGH(", "DATE", "EXTRACT(", "DATE_TRUNC(", "COALESCE(",
)  # fmt: skip


def history_file() -> Path:
    """Return where questions of earlier sittings are kept: in the user's own folder for such things."""
    home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(home) / "discreet" / "history"


def prepare_terminal(words: Sequence[str]) -> None:
    """Let a terminal complete words and remember questions; one that cannot still asks, only less comfortably."""
    try:
        import readline
    except ImportError:
        return
    every = sorted({*_SQL, *words})

    def complete(begun: str, number: int) -> str | None:
        fitting = [word for word in every if word.casefold().startswith(begun.casefold())]
        return fitting[number] if number < len(fitting) else None

    readline.set_completer(complete)
    readline.set_completer_delims(_APART)
    readline.parse_and_bind("tab: complete")
    _remember()


def _remember() -> None:
    """Read earlier questions, and keep new ones when the process ends, in a file that its owner alone can read."""
    import atexit
    import readline

    file = history_file()
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(file, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))
        file.chmod(0o600)
        readline.read_history_file(file)
    except OSError:
        note("questions are not remembered: the folder for it cannot be written")
        return
    readline.set_history_length(_MOST)
    atexit.register(readline.write_history_file, file)
