"""Names of files and folders: made of validated words of the plan only, never of data."""

from __future__ import annotations

import re
from collections.abc import Iterable

from discreet.errors import InvalidParameter
from discreet.release.published import Published

__all__ = ["DUMMY", "TABLES", "bundle_name", "check_tables", "table_file"]

DUMMY = "DUMMY"
TABLES = "tables"  # The folder of the tables, within a bundle.

_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
# Names that one widely used system keeps for its devices, whatever their suffix.
_DEVICES = {"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(1, 10))}


def bundle_name(published: Published) -> str:
    """Name the folder of a bundle after its plan and its period; that of a dummy says so."""
    words = [_word(published.plan.name, "the name of a plan"), _word(published.period.label, "the label of a period")]
    return "-".join([*words, *([DUMMY] if published.ledger is None else [])])


def table_file(name: str, suffix: str, *, tidy: bool, dummy: bool) -> str:
    """Return where a table is, as a path within the bundle."""
    parts = [_word(name, "the name of a table"), *(["tidy"] if tidy else []), *([DUMMY] if dummy else []), suffix]
    return f"{TABLES}/{'.'.join(parts)}"


def check_tables(names: Iterable[str]) -> None:
    """Refuse names that are no file names, and two that some file systems hold for one."""
    seen: set[str] = set()
    for name in names:
        if _word(name, "the name of a table").casefold() in seen:
            raise InvalidParameter(f"two tables are called {name!r}, apart from capitals: rename one of them")
        seen.add(name.casefold())


def _word(text: str, what: str) -> str:
    if not _WORD.fullmatch(text) or text.casefold() in _DEVICES:
        raise InvalidParameter(f"{what} is made of letters, digits, - and _ (at most 100), and is no device: {text!r}")
    return text
