"""Copies of a server's state: made while it is used, checked, and put back on purpose.

A copy is a file with the same tables, whatever the state is kept in; so it also moves a state from a file to a database
and back. Putting one back brings back what was taken from people since: tokens and invitations that were revoked,
passwords that were changed, caps that were used. So all of them are void afterwards, which is a decision on record, and
owners get new invitations. What was charged is in the ledger, which has its own protection: nothing is charged twice.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from discreet.errors import InvalidParameter, Refused
from discreet.ledger.server_address import LedgerAddress
from discreet.server.accounts import AccountRole, Accounts
from discreet.server.state_file import locked_alone, make_private
from discreet.server.state_store import (
    ServerState,
    StateChange,
    StateDamaged,
    chain_end,
    copy_rows,
    opened_state,
    state_place,
)
from discreet.server.state_tables import FORMAT, VOIDED, table_names

__all__ = ["StateFacts", "check_copy", "check_state", "make_copy", "restore_state"]

_DECISIONS = "SELECT * FROM decisions ORDER BY number"
_BESIDE = ("", "-wal", "-shm")  # files that SQLite keeps


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StateFacts:
    """What is in a state or a copy of it."""

    name: str
    format: int
    decisions: int
    last: float | None  # when the last decision was made
    people: int
    jobs: int


def make_copy(place: Path, file: Path, *, anchor: Path | None = None) -> StateFacts:
    """Copy the state at a place, which may be used meanwhile, into a new file, and check the copy."""
    if file.exists():
        raise FileExistsError(f"{file.name} is there already: a copy is a new file")
    _check_there(place)
    with _opened(place, anchor) as state:
        state.check_anchored()
        state.copy_to(file)
    return check_copy(file)


def check_copy(file: Path) -> StateFacts:
    """Check a copy without changing a byte of it: the file is whole, and its log is as it was written."""
    if not file.is_file():
        raise FileNotFoundError(f"there is no file {file.name}")
    try:
        with closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro&immutable=1", uri=True)) as copy:
            copy.row_factory = sqlite3.Row
            if copy.execute("PRAGMA integrity_check").fetchone()[0] != "ok":
                raise StateDamaged(f"{file.name} is damaged: take another copy")
            number = int(copy.execute("PRAGMA user_version").fetchone()[0])
            if not 1 <= number <= FORMAT:
                raise InvalidParameter(f"{file.name} is no copy of a server's state, or was made by a newer version")
            return _facts(file.name, number, lambda query: copy.execute(query).fetchall())
    except sqlite3.DatabaseError:
        raise StateDamaged(f"{file.name} is no copy of a server's state, or is damaged") from None


def check_state(place: Path, *, anchor: Path | None = None) -> StateFacts:
    """Check a state, which may be used meanwhile: its log is as it was written, and contains what was anchored."""
    _check_there(place)
    with _opened(place, anchor) as state:
        facts = _facts(state.name, FORMAT, state.rows)
        state.check_anchored()
        return facts


def _check_there(place: Path) -> None:
    """Refuse to make a state where only one that is there was meant."""
    found = state_place(place)
    if isinstance(found, Path) and not found.is_file():
        raise FileNotFoundError(f"there is no state {found.name}")


def _facts(name: str, number: int, rows: Any) -> StateFacts:
    log = rows(_DECISIONS)
    if chain_end(log) is None:
        raise StateDamaged(f"the log of decisions in {name} was changed")
    counted = {table: rows(f"SELECT COUNT(*) AS n FROM {table}")[0]["n"] for table in ("people", "jobs")}
    last = float(log[-1]["at"]) if log else None
    return StateFacts(name=name, format=number, decisions=len(log), last=last, **counted)


def restore_state(
    place: Path, file: Path | None, *, reason: str, by: str, anchor: Path | None = None
) -> tuple[StateFacts, dict[str, str]]:
    """Put a copy back, or accept the old state that is there; return what it is now, and invitations of the owners.

    A file that is there is kept beside it under another name; a database must be empty. Nobody serves meanwhile.
    """
    if not reason.strip() or len(reason) > 500:
        raise InvalidParameter("say why it is restored, in at most 500 letters: it stands in the log")
    if file is not None:
        check_copy(file)
    found = state_place(place)
    if isinstance(found, Path):
        _replace_file(found, file)
    with _opened(place, anchor) as state:
        _check_unused(state)
        with state.restoring() as change:
            if isinstance(found, LedgerAddress) and file is not None:
                _fill(state, change, file)
            for statement in VOIDED:
                change.execute(statement)
            state.decide(by, "state restored", about=reason.strip())
        return _facts(state.name, FORMAT, state.rows), _owners(Accounts(state), by)


def _replace_file(path: Path, file: Path | None) -> None:
    """Set a state aside, and put a copy in its place; or leave it, if it is to be accepted as it is."""
    if file is None:
        if not path.is_file():
            raise FileNotFoundError(f"there is no state {path.name}: say which copy to put back")
        return
    if path.exists():
        os.close(locked_alone(path))  # Nobody serves from it.
        number = 1
        while path.with_name(f"{path.name}.before-{number}").exists():
            number += 1
        for ending in _BESIDE:
            if (old := path.with_name(path.name + ending)).exists():
                os.rename(old, path.with_name(f"{path.name}.before-{number}{ending}"))
    make_private(path)
    shutil.copyfile(file, path)


def _fill(state: ServerState, change: StateChange, file: Path) -> None:
    """Copy all rows of a file into an empty database."""
    with closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro&immutable=1", uri=True)) as copy:
        copy.row_factory = sqlite3.Row
        there = {row["name"] for row in copy.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if any(state.row(f"SELECT 1 FROM {table}") is not None for table in table_names()):
            raise Refused(
                f"there is a state in {state.name} already",
                way_out="name another schema (?schema=), or drop that one; without FILE the one there is accepted",
            )
        for table in table_names():
            if table in there:
                copy_rows(copy.execute(f"SELECT * FROM {table}").fetchall(), table, change)
        state.count_on()


def _check_unused(state: ServerState) -> None:
    """Refuse while somebody serves from a state, and one whose log was changed."""
    if state.is_shared and state.row("SELECT 1 FROM servers WHERE until >= ?", state.now()) is not None:
        raise Refused("servers run on this state", way_out="stop all of them; a lease lasts half a minute")
    state.take_alone()
    if not state.decisions_hold():
        raise StateDamaged(f"the log of decisions in {state.name} was changed: take another copy")


def _owners(accounts: Accounts, by: str) -> dict[str, str]:
    people: Iterable[dict[str, Any]] = accounts.people()
    owners = [one["name"] for one in people if one["role"] == AccountRole.OWNER.value and not one["disabled"]]
    return {name: accounts.invite(name, by=by) for name in owners}


@contextmanager
def _opened(place: Path, anchor: Path | None) -> Iterator[ServerState]:
    state = opened_state(place, anchor=anchor)
    try:
        yield state
    finally:
        state.close()
