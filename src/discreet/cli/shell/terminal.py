"""What makes a terminal comfortable: it completes words, and remembers questions, never answers."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from discreet.cli.output import note

__all__ = ["history_file", "prepare_terminal"]

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
