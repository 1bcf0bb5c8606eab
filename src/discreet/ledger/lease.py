"""One machine at a time: a ledger file that another machine has open is refused.

SQLite's locks hold between processes of one kernel. A lease says which machine that is; it is renewed by charges
and ends by itself.
"""

from __future__ import annotations

import json
import os
import time
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.errors import LedgerUnavailable
from discreet.ledger.budget import canonical

if TYPE_CHECKING:
    import sqlite3

__all__ = ["hold_lease", "may_run", "this_process"]

_SECONDS = 60
_ENDED = ("Z", "X")  # A process that has ended is there until its parent has asked for its end.
_SHARED = ":shared"
_RENEW = 30  # Renewed when less than this is left, so that most charges do not write it.


def hold_lease(connection: sqlite3.Connection) -> None:
    """Take or renew the lease within a transaction; refuse if another machine has it."""
    now = int(time.time())
    row = connection.execute("SELECT host, until FROM lease WHERE id = 1").fetchone()
    ours = row is not None and (row[0] == _host_text() or _same(json.loads(row[0]), host()))
    if row is not None and not ours and now < row[1]:
        raise LedgerUnavailable(
            f"this ledger is open on another machine; its lease ends in {row[1] - now} s. "
            "One machine at a time may spend from a file: copies of it would spend the same budget twice"
        )
    if not ours or row[1] - now < _RENEW:
        connection.execute("INSERT OR REPLACE INTO lease VALUES (1, ?, ?)", (_host_text(), now + _SECONDS))


def _same(one: dict[str, str], other: dict[str, str]) -> bool:
    """Containers share the kernel, and with it the locks; after a restart the machine is still the same."""
    if one["boot"] and one["boot"] == other["boot"]:
        return True
    return one["machine"] == other["machine"] and one["name"] == other["name"]


@lru_cache(maxsize=1)
def _host_text() -> str:
    return canonical(host())


def host() -> dict[str, str]:
    """Say which machine this is."""
    return {
        "boot": _first_line("/proc/sys/kernel/random/boot_id"),
        "machine": _first_line("/etc/machine-id"),
        "name": os.uname().nodename,
    }


def this_process(*, is_shared: bool = False) -> str:
    """Name this process so that no other one is ever taken for it: since which boot it runs, where, and since when.

    A ledger that machines share says so: on another machine nobody can tell whether it still runs.
    """
    return _process(os.getpid()) + (_SHARED if is_shared else "")


@lru_cache(maxsize=1)
def _process(number: int) -> str:
    return f"{_boot()}:{_namespace()}:{number}:{_started(number)}"


def may_run(process: str) -> bool:
    """Tell whether a process may still run. One that cannot be seen from here, in another container, may."""
    boot, namespace, number, started = process.removesuffix(_SHARED).split(":")
    if boot != _boot():
        return process.endswith(_SHARED)
    return namespace != _namespace() or not started or _started(int(number)) == started


@lru_cache(maxsize=1)
def _boot() -> str:
    return _first_line("/proc/sys/kernel/random/boot_id")


@lru_cache(maxsize=1)
def _namespace() -> str:
    try:
        return str(os.stat("/proc/self/ns/pid").st_ino)
    except OSError:
        return ""


def _started(number: int) -> str:
    """Return when a process began, in ticks since the boot; empty if there is none, or if this system does not say."""
    state, *facts = _first_line(f"/proc/{number}/stat").rpartition(")")[2].split() or [""]  # A name may hold anything.
    return facts[18] if facts and state not in _ENDED else ""


def _first_line(path: str) -> str:
    try:
        return Path(path).read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""
