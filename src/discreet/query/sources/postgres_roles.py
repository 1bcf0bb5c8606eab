"""The user that reads a table in PostgreSQL: statements that make it, and what is open to it besides."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, final

from discreet.errors import InvalidParameter
from discreet.query.engine import Deadline
from discreet.query.sources.postgres import PostgresSource, connected, quoted
from discreet.query.sources.protocol import silent, unreachable

__all__ = ["SideDoor", "look_at_doors", "prepared"]

_SECONDS = 60.0
_VIEWS = "discreet"  # The schema of views that show some columns of a table.
# What PostgreSQL says about a failure quotes the row that failed: none of it is to be in the server's log.
_LOGGING = ("log_min_messages = 'panic'", "log_min_error_statement = 'panic'", "log_min_duration_statement = -1")
_STATISTICS = ("pg_stats", "pg_stats_ext", "pg_stats_ext_exprs")


def prepared(tables: Sequence[PostgresSource], role: str, *, columns: Sequence[str] = ()) -> list[str]:
    """Return the statements that make a user who reads some tables and can do nothing else.

    A superuser runs them once. Whoever is not this user is not kept out of the tables by them.
    """
    if re.fullmatch(r"[a-z_][a-z0-9_]{0,62}", role) is None or role.startswith("pg_"):
        raise InvalidParameter("a role is named by lower-case letters, digits and _, and does not begin with pg_")
    if columns and len(tables) != 1:
        raise InvalidParameter("columns are chosen of one table: prepare the others without")
    user = quoted(role)
    schemas = dict.fromkeys(_VIEWS if columns else table.schema for table in tables)
    return [
        f"CREATE ROLE {user} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS NOINHERIT",
        f"ALTER ROLE {user} SET default_transaction_read_only = on",
        f"ALTER ROLE {user} SET statement_timeout = '1h'",
        *(f"ALTER ROLE {user} SET {setting}" for setting in _LOGGING),
        *(statement for table in tables for statement in _view(table, columns)),
        *(f"REVOKE CREATE ON SCHEMA {quoted(schema)} FROM PUBLIC" for schema in schemas),
        *(f"GRANT USAGE ON SCHEMA {quoted(schema)} TO {user}" for schema in schemas),
        *(f"GRANT SELECT ON {_readable(table, columns)} TO {user}" for table in tables),
        # Statistics hold common values of columns; a function of somebody else runs with their rights.
        *(f"REVOKE SELECT ON pg_catalog.{view} FROM PUBLIC" for view in _STATISTICS),
        *(f"REVOKE EXECUTE ON ALL ROUTINES IN SCHEMA {quoted(schema)} FROM PUBLIC" for schema in schemas),
        "ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON ROUTINES FROM PUBLIC",
    ]


def _readable(table: PostgresSource, columns: Sequence[str]) -> str:
    return f"{quoted(_VIEWS if columns else table.schema)}.{quoted(table.table)}"


def _view(table: PostgresSource, columns: Sequence[str]) -> Iterator[str]:
    if columns:
        listed = ", ".join(map(quoted, columns))
        yield f"CREATE SCHEMA IF NOT EXISTS {quoted(_VIEWS)}"
        yield (
            f"CREATE VIEW {_readable(table, columns)} WITH (security_barrier) AS "
            f"SELECT {listed} FROM {quoted(table.schema)}.{quoted(table.table)}"
        )


@final
@dataclass(frozen=True, slots=True)
class SideDoor:
    """Something that was looked at: whether it is closed, and what closes it."""

    name: str
    closed: bool
    found: str
    fix: str = ""


_RIGHTS = """
SELECT (rolsuper OR rolcreaterole OR rolcreatedb OR rolreplication OR rolbypassrls)::pg_catalog.int4,
       (SELECT pg_catalog.count(*) FROM pg_catalog.pg_roles p WHERE p.rolname LIKE 'pg\\_%'
        AND pg_catalog.pg_has_role(r.oid, p.oid, 'member') AND NOT r.rolsuper)::pg_catalog.int4,
       (pg_catalog.current_setting('log_min_messages') = 'panic'
        AND pg_catalog.current_setting('log_min_error_statement') = 'panic')::pg_catalog.int4,
       (pg_catalog.has_table_privilege('pg_catalog.pg_stats', 'SELECT')
        OR pg_catalog.has_table_privilege('pg_catalog.pg_stats_ext', 'SELECT'))::pg_catalog.int4,
       (SELECT pg_catalog.count(*) FROM pg_catalog.pg_proc f JOIN pg_catalog.pg_namespace n ON n.oid = f.pronamespace
        WHERE f.prosecdef AND n.nspname NOT IN ('pg_catalog', 'information_schema')
        AND pg_catalog.has_function_privilege(f.oid, 'EXECUTE')
        AND pg_catalog.has_schema_privilege(n.oid, 'USAGE'))::pg_catalog.int4,
       (SELECT pg_catalog.count(*) FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
        WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname NOT IN ('pg_catalog', 'information_schema')
        AND n.nspname NOT LIKE 'pg\\_toast%' AND pg_catalog.has_schema_privilege(n.oid, 'USAGE')
        AND (pg_catalog.has_table_privilege(c.oid, 'INSERT') OR pg_catalog.has_table_privilege(c.oid, 'UPDATE')
             OR pg_catalog.has_table_privilege(c.oid, 'DELETE')))::pg_catalog.int4
FROM pg_catalog.pg_roles r WHERE r.rolname = CURRENT_USER
"""


def look_at_doors(source: PostgresSource) -> list[SideDoor]:
    """Look, as the user who reads a table, at what else is open to it. Reads no row of any table."""
    columns = source.describe()
    failed = partial(unreachable, "the PostgreSQL server")
    with connected(source._dsn, Deadline.after(_SECONDS)) as opened, silent(failed), opened.cursor() as cursor:
        cursor.execute(_RIGHTS)
        ((powers, predefined, quiet, statistics, functions, written),) = cursor.fetchall()
    return list(_doors(len(columns), powers, predefined, quiet, statistics, functions, written))


def _doors(
    columns: int, powers: Any, predefined: Any, quiet: Any, statistics: Any, functions: Any, written: Any
) -> Iterator[SideDoor]:
    yield SideDoor("columns", True, f"{columns} that can be read")
    yield SideDoor(
        "powers", not powers, "more than reading" if powers else "none", "read as a user that `source prepare` writes"
    )
    yield SideDoor(
        "predefined roles",
        not predefined,
        f"a member of {predefined}" if predefined else "none",
        "REVOKE the roles that begin with pg_ from this user",
    )
    yield SideDoor(
        "server log",
        bool(quiet),
        "closed" if quiet else "what fails is logged, with the row",
        "ALTER ROLE … SET log_min_messages = 'panic', log_min_error_statement = 'panic'",
    )
    yield SideDoor(
        "statistics",
        not statistics,
        "pg_stats can be read" if statistics else "closed",
        "REVOKE SELECT ON pg_catalog.pg_stats, pg_stats_ext, pg_stats_ext_exprs FROM PUBLIC",
    )
    yield SideDoor(
        "functions",
        not functions,
        f"{functions} run with another's rights" if functions else "closed",
        "REVOKE EXECUTE ON ALL ROUTINES IN SCHEMA … FROM PUBLIC",
    )
    yield SideDoor(
        "writing", not written, f"{written} tables" if written else "closed", "REVOKE all but SELECT from this user"
    )
