"""The tables of a server's state: one section for each chapter that keeps something.

Statements are those that SQLite and PostgreSQL both take, but for types and keys that count by themselves.
"""

from __future__ import annotations

__all__ = ["FORMAT", "TABLES"]

FORMAT = 1

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

_JOBS = """
CREATE TABLE IF NOT EXISTS jobs (
  number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, dataset TEXT NOT NULL, name TEXT NOT NULL,
  key TEXT NOT NULL, request TEXT NOT NULL, cost TEXT NOT NULL, state TEXT NOT NULL, problem TEXT, answer TEXT,
  asked REAL NOT NULL, kind TEXT NOT NULL DEFAULT 'question', started REAL, UNIQUE (name, dataset, key)
) STRICT;
"""

_DECISIONS = """
CREATE TABLE IF NOT EXISTS decisions (
  number INTEGER PRIMARY KEY, at REAL NOT NULL, who TEXT NOT NULL, what TEXT NOT NULL, dataset TEXT NOT NULL,
  outcome TEXT NOT NULL, about TEXT NOT NULL, hash TEXT NOT NULL
) STRICT;
CREATE TRIGGER IF NOT EXISTS decisions_stay BEFORE UPDATE ON decisions
  BEGIN SELECT RAISE(ABORT, 'decisions stay'); END;
CREATE TRIGGER IF NOT EXISTS decisions_last BEFORE DELETE ON decisions
  BEGIN SELECT RAISE(ABORT, 'decisions stay'); END;
"""

_APPROVALS = """
CREATE TABLE IF NOT EXISTS approvals (
  number INTEGER PRIMARY KEY AUTOINCREMENT, job TEXT NOT NULL UNIQUE, dataset TEXT NOT NULL, name TEXT NOT NULL,
  epsilon TEXT, why TEXT NOT NULL, state TEXT NOT NULL, asked REAL NOT NULL, until REAL NOT NULL, bound TEXT NOT NULL,
  events TEXT, decided_by TEXT, decided REAL, reason TEXT
) STRICT;
"""

TABLES = _PEOPLE + _JOBS + _DECISIONS + _APPROVALS
