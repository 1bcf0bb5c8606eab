"""What `discreet doctor` looks at, and `discreet source`: the user of a database, and what is open to it.

Nothing is spent, no row is read, and what is tried out is taken away again.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import TypeAlias, final

from discreet.cli.commands.version import Check, Health
from discreet.cli.output import Block
from discreet.cli.policies import open_ledger, read_any_policy
from discreet.errors import DiscreetError, InvalidParameter, Refused

__all__ = ["PreparedSource", "doors_of", "examine", "statements_for"]

Trial: TypeAlias = Callable[[], str]
_LEAST_FREE = 1 << 30  # Bytes of disk: a bundle and the log of a ledger are small, temporary files are not.
_RELEASED = 1_767_225_600  # 2026-01-01: a clock before this is wrong, and quotas by day would be too.


def examine(folder: Path, policy: Path | None) -> Health:
    """Look at this machine, this folder and, if one is named, at a policy with its ledger and sources."""
    checks = [*_machine(), *_folder(folder), *(() if policy is None else _policy(policy))]
    return Health(healthy=all(check.ok for check in checks), checks=checks)


def _machine() -> Iterator[Check]:
    yield Check(
        name="python", ok=sys.version_info >= (3, 11), found=platform.python_version(), fix="use Python 3.11 or later"
    )
    yield _packages()
    yield _tried("secure randomness", _randomness, "discreet needs the operating system's source and `cryptography`")
    yield _tried("engine", _engine, "install duckdb again: pip install --force-reinstall duckdb")
    now = time.time()
    today = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(now))
    yield Check(name="clock", ok=now > _RELEASED, found=today, fix="set the clock: quotas by day follow it")
    letters = (sys.stdout.encoding or "").lower()
    yield Check(name="letters", ok=letters.startswith("utf"), found=letters, fix="set LC_ALL=C.UTF-8 to see ε, δ and ±")


def _packages() -> Check:
    """Compare what is installed with what the package asks for."""
    missing = []
    for asked in requires("discreet") or ():
        name = asked.partition(";")[0].partition(">")[0].strip()
        if "extra ==" not in asked and not _is_installed(name):
            missing.append(name)
    found = f"discreet {version('discreet')}" + (f", without {', '.join(missing)}" if missing else " and all it needs")
    return Check(name="packages", ok=not missing, found=found, fix="pip install --upgrade discreet")


def _is_installed(name: str) -> bool:
    try:
        version(name)
    except PackageNotFoundError:
        return False
    return True


def _tried(name: str, trial: Trial, fix: str) -> Check:
    """Try something out; why it failed stays inside where the words are not ours."""
    try:
        return Check(name=name, ok=True, found=trial())
    except Refused as error:
        return Check(name=name, ok=False, found=error.problem, fix=error.way_out or fix)
    except (DiscreetError, OSError) as error:
        return Check(name=name, ok=False, found=str(error) if isinstance(error, DiscreetError) else "failed", fix=fix)
    except (ImportError, RuntimeError, AttributeError):
        return Check(name=name, ok=False, found="failed", fix=fix)


def _randomness() -> str:
    from discreet import noise

    if len({noise.uniform(1 << 62) for _ in range(4)}) < 4:
        raise RuntimeError
    return "AES-256, keyed by the operating system"


def _engine() -> str:
    import duckdb
    import pyarrow as pa

    from discreet.ledger import Budget
    from discreet.query import Session, categories

    table = pa.table({"side": ["a", "b", "a"]})
    with Session(
        table,
        unit="row",
        budget=Budget(epsilon=1),
        columns={"side": categories(["a", "b"])},
        ledger="memory",
        dataset="doctor",
        principal="doctor",
    ) as session:
        session.sql("SELECT side, COUNT(*) AS n FROM doctor GROUP BY side", epsilon=1).release()
    return f"DuckDB {duckdb.__version__} answers"


def _folder(folder: Path) -> Iterator[Check]:
    free = shutil.disk_usage(folder).free
    yield Check(
        name="disk", ok=free >= _LEAST_FREE, found=f"{free >> 30:,} GB free here", fix="make room, or work elsewhere"
    )
    yield _tried(
        "ledger in this folder", lambda: _ledger(folder), "keep ledgers on a local disk, in a folder of your own"
    )


def _ledger(folder: Path) -> str:
    """Make a ledger, charge it, verify it, and take it away."""
    from discreet.ledger import Account, Budget, Ledger
    from discreet.privacy import PureDP, Relation

    with tempfile.TemporaryDirectory(prefix=".discreet-doctor-", dir=folder) as place:
        account = Account("doctor", "row", Relation.ADD_REMOVE, Budget(epsilon=1))
        with Ledger.open(Path(place) / "try.ledger", account) as ledger:
            ledger.charge(PureDP(1), relation=Relation.ADD_REMOVE, purpose="a try", principal="doctor")
            ledger.verify()
    return "charged, forced to disk and verified"


def _policy(path: Path) -> Iterator[Check]:
    yield _tried("policy", lambda: f"{read_any_policy(path).dataset}, well written", "see docs/session.md")
    yield _tried("its ledger", lambda: _verified(path), "see docs/ledger.md, Backup and restore")
    try:
        policy = read_any_policy(path)
    except DiscreetError:
        return
    for name, table in policy.tables.items():
        ok = table.source is None or os.access(table.source, os.R_OK)
        found = "handed over by a program" if table.source is None else "there" if ok else "cannot be read"
        yield Check(name=f"table {name}", ok=ok, found=found, fix="check the path of its source, and permissions")


def _verified(path: Path) -> str:
    with open_ledger(path) as ledger:
        ledger.verify()
        return ledger.money()


# --- sources: The user of a database, which can only read. ---


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
