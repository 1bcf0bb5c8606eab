"""The tables of a server's state: one section for each chapter that keeps something.

They are written once, for SQLite and PostgreSQL: types are TEXT, INTEGER and REAL, a key that counts by itself is
`INTEGER PRIMARY KEY AUTOINCREMENT`, and every statement ends with `;` at the end of a line. `state_server.py` has the
rules by which they are read for PostgreSQL.

- **A new table** is written here with `CREATE TABLE IF NOT EXISTS`: it is made when a server starts. If its rows must
  never change, name it in `APPEND_ONLY`. If it lets somebody in, or holds what is used up, say in `VOIDED` how a
  restored copy forgets it.
- **A new column** of a table that is there is written here, for new states, *and* FORMAT is raised by one, *and* a step
  is added to `MIGRATIONS` under the number that it leads to: `{3: (AddedColumn("jobs", "urgency", "INTEGER"),)}`. Steps
  are never changed afterwards. Code that inserts names its columns.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

__all__ = [
    "APPEND_ONLY",
    "FORMAT",
    "MIGRATIONS",
    "TABLES",
    "VOIDED",
    "AddedColumn",
    "counting_keys",
    "statements",
    "table_names",
]

FORMAT = 2

_PEOPLE = """
CREATE TABLE IF NOT EXISTS people (
  name TEXT PRIMARY KEY, role TEXT NOT NULL, password TEXT, disabled INTEGER NOT NULL DEFAULT 0, since REAL NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS grants (
  name TEXT NOT NULL REFERENCES people, dataset TEXT NOT NULL, PRIMARY KEY (name, dataset)
) STRICT;
CREATE TABLE IF NOT EXISTS tokens (
  id TEXT PRIMARY KEY, digest TEXT NOT NULL, name TEXT NOT NULL REFERENCES people, kind TEXT NOT NULL,
  scopes TEXT NOT NULL, datasets TEXT, cap TEXT, used TEXT NOT NULL, since REAL NOT NULL, until REAL NOT NULL,
  revoked INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE IF NOT EXISTS visits (
  digest TEXT PRIMARY KEY, name TEXT NOT NULL REFERENCES people, form_token TEXT NOT NULL, began_by TEXT NOT NULL,
  until REAL NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS failures (
  name TEXT PRIMARY KEY, count INTEGER NOT NULL, last REAL NOT NULL, locked_until REAL NOT NULL
) STRICT;
"""

# `server` is the one that holds a slot for the job, also for a while after an overrun was told.
_JOBS = """
CREATE TABLE IF NOT EXISTS jobs (
  number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, dataset TEXT NOT NULL, name TEXT NOT NULL,
  key TEXT NOT NULL, request TEXT NOT NULL, cost TEXT NOT NULL, state TEXT NOT NULL, problem TEXT, answer TEXT,
  asked REAL NOT NULL, kind TEXT NOT NULL DEFAULT 'question', started REAL, server TEXT, UNIQUE (name, dataset, key)
) STRICT;
CREATE INDEX IF NOT EXISTS jobs_queued ON jobs (number) WHERE state = 'queued';
CREATE INDEX IF NOT EXISTS jobs_open ON jobs (name) WHERE (state IN ('queued', 'running') OR server IS NOT NULL);
CREATE INDEX IF NOT EXISTS jobs_held ON jobs (name, dataset) WHERE server IS NOT NULL;
CREATE TABLE IF NOT EXISTS servers (
  id TEXT PRIMARY KEY, datasets TEXT NOT NULL, since REAL NOT NULL, until REAL NOT NULL
) STRICT;
"""

_DECISIONS = """
CREATE TABLE IF NOT EXISTS decisions (
  number INTEGER PRIMARY KEY, at REAL NOT NULL, who TEXT NOT NULL, what TEXT NOT NULL, dataset TEXT NOT NULL,
  outcome TEXT NOT NULL, about TEXT NOT NULL, hash TEXT NOT NULL
) STRICT;
"""

_APPROVALS = """
CREATE TABLE IF NOT EXISTS approvals (
  number INTEGER PRIMARY KEY AUTOINCREMENT, job TEXT NOT NULL UNIQUE, dataset TEXT NOT NULL, name TEXT NOT NULL,
  epsilon TEXT, why TEXT NOT NULL, state TEXT NOT NULL, asked REAL NOT NULL, until REAL NOT NULL, bound TEXT NOT NULL,
  events TEXT, decided_by TEXT, decided REAL, reason TEXT
) STRICT;
"""

_SAVED = """
CREATE TABLE IF NOT EXISTS saved_questions (
  id TEXT PRIMARY KEY, dataset TEXT NOT NULL, name TEXT NOT NULL REFERENCES people, title TEXT NOT NULL,
  request TEXT NOT NULL, shared INTEGER NOT NULL, at REAL NOT NULL
) STRICT;
"""

_SIGN_IN = """
CREATE TABLE IF NOT EXISTS identities (
  issuer TEXT NOT NULL, subject TEXT NOT NULL, name TEXT NOT NULL UNIQUE REFERENCES people, made INTEGER NOT NULL,
  since REAL NOT NULL, PRIMARY KEY (issuer, subject)
) STRICT;
CREATE TABLE IF NOT EXISTS sign_ins (digest TEXT PRIMARY KEY, name TEXT NOT NULL, until REAL NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS devices (
  digest TEXT PRIMARY KEY, user_digest TEXT NOT NULL UNIQUE, state TEXT NOT NULL, label TEXT NOT NULL,
  scopes TEXT NOT NULL, name TEXT NOT NULL, granted TEXT NOT NULL, asked REAL NOT NULL, polled REAL NOT NULL,
  until REAL NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS device_tries (name TEXT NOT NULL, at REAL NOT NULL) STRICT;
"""

TABLES = _PEOPLE + _JOBS + _DECISIONS + _APPROVALS + _SAVED + _SIGN_IN
APPEND_ONLY = ("decisions",)
# What a restored copy would bring back: who was let in since is let in no more, and what was used counts as used up.
VOIDED = (
    "UPDATE tokens SET used = cap WHERE cap IS NOT NULL",
    "UPDATE tokens SET revoked = 1",
    "UPDATE people SET password = NULL",
    "DELETE FROM visits",
    "DELETE FROM identities",
    "DELETE FROM sign_ins",
    "DELETE FROM devices",
    "DELETE FROM servers",
    "UPDATE jobs SET server = NULL",
    "UPDATE jobs SET state = 'queued' WHERE state = 'running'",
)


@final
@dataclass(frozen=True, slots=True)
class AddedColumn:
    """A column that a step adds to a table; one that is there already is left as it is."""

    table: str
    name: str
    kind: str


# By the format that a step leads to. The first format was written for a while with the first two of these columns.
MIGRATIONS: Mapping[int, tuple[AddedColumn | str, ...]] = {
    2: (
        AddedColumn("jobs", "kind", "TEXT NOT NULL DEFAULT 'question'"),
        AddedColumn("jobs", "started", "REAL"),
        AddedColumn("jobs", "server", "TEXT"),
    ),
}


def statements() -> list[str]:
    """Return what makes all tables, a statement each."""
    return [found for part in re.split(r";\s*\n", TABLES) if (found := part.strip())]


def table_names() -> list[str]:
    """Return all tables, each after those that it refers to."""
    return re.findall(r"CREATE TABLE IF NOT EXISTS (\w+)", TABLES)


def counting_keys() -> list[tuple[str, str]]:
    """Return the tables whose key counts by itself, and that key."""
    return re.findall(r"CREATE TABLE IF NOT EXISTS (\w+) \(\s*(\w+) INTEGER PRIMARY KEY AUTOINCREMENT", TABLES)
