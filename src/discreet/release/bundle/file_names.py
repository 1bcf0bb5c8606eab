"""Names of files and folders: made of validated words of the plan only, never of data."""

from __future__ import annotations

import re
from collections.abc import Iterable

from discreet.errors import InvalidParameter
from discreet.release.published import Published

__all__ = ["DUMMY", "TABLES", "bundle_name", "check_tables", "name_of_release", "table_file"]

DUMMY = "DUMMY"
TABLES = "tables"  # The folder of the tables, within a bundle.

_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
# Names that one widely used system keeps for its devices, whatever their suffix.
_DEVICES = {"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(1, 10))}


def bundle_name(published: Published) -> str:
    """Name the folder of a bundle after its plan and its period; that of a dummy says so."""
    return name_of_release(published.plan.name, published.period.label, dummy=published.ledger is None)


def name_of_release(plan: str, period: str, *, dummy: bool) -> str:
    """Return the name of a bundle from what its manifest says; refuse words that no plan has."""
    words = [_word(plan, "the name of a plan"), _word(period, "the label of a period")]
    return "-".join([*words, *([DUMMY] if dummy else [])])


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
