"""Whether tables still are what a session was opened on.

What is declared of a private table is about its columns, so these are looked at again before and after every read; what
is known of a public table was read from its rows, so its files must be the very same. Whether a check fails depends on
names, types and public files only, never on a private row.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from typing import Any, Protocol, TypeAlias, final

from discreet.errors import AnswerFailed, Refused
from discreet.query.engines.tables import Schemas

__all__ = ["ColumnLookup", "OpenedTable", "changed"]

_Identity: TypeAlias = tuple[tuple[int, ...] | None, ...]
_SETTLED = 2 * 10**9  # Nanoseconds. A file that was written later than this before may change and keep its time.


class ColumnLookup(Protocol):
    """What is asked of a table here."""

    @property
    def paths(self) -> tuple[str, ...]:
        """Its files."""

    def columns_now(self, connection: Any, name: str) -> Schemas:
        """Return the columns at this moment, as every file has them."""


@final
class OpenedTable:
    """A table as it was when a session was opened."""

    def __init__(self, held: ColumnLookup, name: str, *, public: bool) -> None:
        self._held, self._name, self._public = held, name, public
        self._known: Schemas = frozenset()
        self._files: _Identity = ()
        self._looked_at: _Identity | None = None  # files that were found to have the known columns

    def begin(self, connection: Any) -> int:
        """Remember files and columns, and return how many schemas the files have.

        Files first: whatever changes from now on is a change.
        """
        self._files = _identity(self._held.paths)
        self._known = self._held.columns_now(connection, self._name)
        return len(self._known)

    def is_unchanged(self, connection: Any) -> bool:
        """Whether columns are what they were and, of a public table, files are, too."""
        files = _identity(self._held.paths)
        if self._public and files != self._files:
            return False
        if files and files == self._looked_at:
            return True
        looked = time.time_ns()
        if self._columns(connection) != self._known:
            return False
        if files and all(one is not None and max(one[-2:]) < looked - _SETTLED for one in files):
            self._looked_at = files
        return True

    def _columns(self, connection: Any) -> Schemas:
        """Return the columns as they are; none if the table cannot be read any more."""
        import duckdb

        try:
            return self._held.columns_now(connection, self._name)
        except (duckdb.Error, OSError, ValueError, AnswerFailed):
            return frozenset()


def changed(private: Iterable[str], public: Iterable[str]) -> Refused:
    """Say which tables are not those of the opening."""
    columns, files = (", ".join(map(repr, names)) for names in (private, public))
    if columns:
        return Refused(
            f"the columns of table {columns} changed since this session was opened",
            reason="what was declared is about the columns as they were, and nothing may be read by another rule",
            way_out="open a new session on the table as it is now",
        )
    return Refused(
        f"public table {files} changed since this session was opened",
        reason="what is known of it, such as which columns have no duplicates, was read at the opening",
        way_out="open a new session",
    )


def _identity(paths: Iterable[str]) -> _Identity:
    return tuple(_stat(path) for path in paths)


def _stat(path: str) -> tuple[int, ...] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
