"""What `discreet source` answers: statements that make a user of a database, and what is open to one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import final

from discreet.cli.commands.version import Check, Health
from discreet.cli.output import Block
from discreet.errors import InvalidParameter

__all__ = ["PreparedSource", "doors_of", "statements_for"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedSource:
    """Statements that the superuser of a database runs once."""

    statements: list[str]

    def blocks(self) -> Iterator[Block]:
        yield "\n".join(f"{statement};" for statement in self.statements)


def statements_for(system: str, tables: Sequence[str], role: str, columns: str) -> PreparedSource:
    """Write the statements for some tables, or for some columns of one."""
    from discreet.query.sources.postgres import postgres
    from discreet.query.sources.postgres_roles import prepared

    if system != "postgres":
        raise InvalidParameter("the database system must be postgres: others are read as files, or need no user")
    named = [postgres("postgresql://localhost/", table) for table in tables]
    chosen = [name for part in columns.split(",") if (name := part.strip())]
    return PreparedSource(statements=prepared(named, role, columns=chosen))


def doors_of(policy: Path) -> Health:
    """Look at the databases of a policy, as the users that it names."""
    from discreet.cli.policies import read_any_policy
    from discreet.query.sources.postgres import PostgresSource
    from discreet.query.sources.postgres_roles import look_at_doors

    found = {name: table.handed(None) for name, table in read_any_policy(policy).tables.items() if table.postgres}
    checks = [
        Check(name=f"{name}: {door.name}", ok=door.closed, found=door.found, fix="" if door.closed else door.fix)
        for name, table in found.items()
        if isinstance(table, PostgresSource)
        for door in look_at_doors(table)
    ]
    if not checks:
        checks = [Check(name="databases", ok=True, found="no table of this policy is in one")]
    return Health(healthy=all(one.ok for one in checks), checks=checks)
