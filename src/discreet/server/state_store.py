"""The state of a server: people, tokens, jobs, and a log of decisions that only grows; in a file or in a database.

The budget is not in it: that is the ledger's. A state that was rolled back would bring back revoked tokens and spent
caps of tokens, never budget; so the end of its log is anchored outside of it, in the order *commit, anchor, answer*,
and a state that does not contain its anchor is refused until somebody restores it on purpose.

`StateFile` is an SQLite file, for one server; `PostgresState` a schema of a PostgreSQL database, for several. Whatever
uses them writes SQL that both take: `?` for values, `ON CONFLICT`, no `INSERT OR`, no PRAGMA.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from threading import RLock
from typing import Any, Protocol, final

from discreet.errors import InvalidParameter, LedgerDamaged, LedgerUnavailable
from discreet.ledger.anchor import Anchor
from discreet.ledger.charge_record import BEGINNING, Head
from discreet.ledger.private_files import check_private, reachable
from discreet.ledger.server_address import LedgerAddress, as_place
from discreet.server.state_tables import FORMAT, MIGRATIONS, AddedColumn, statements

__all__ = [
    "ServerState",
    "StateChange",
    "StateConflict",
    "StateDamaged",
    "StateUnavailable",
    "chain_end",
    "copy_rows",
    "opened_state",
    "state_place",
]

_SCHEMA = "discreet_server"
_FIRST_ANCHORED = 2  # the first format whose states have an anchor
_LAST = "SELECT number, at, hash FROM decisions ORDER BY number DESC LIMIT 1"


@final
class StateUnavailable(LedgerUnavailable):
    """The state cannot be read or written now. What was asked for was not done, or nobody was told."""


@final
class StateDamaged(LedgerDamaged):
    """The state was changed, cut or rolled back: nothing is served from it."""


@final
class StateConflict(InvalidParameter):
    """There is something of this name or number already."""


class _Cursor(Protocol):
    """What a statement found or did: that of sqlite3 and of psycopg."""

    @property
    def rowcount(self) -> int: ...
    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...


@final
class StateChange:
    """Statements of one change, which is done whole or not at all."""

    def __init__(self, run: Callable[[str, Sequence[Any]], Any]) -> None:
        self._run = run

    def execute(self, query: str, values: Sequence[Any] = ()) -> _Cursor:
        """Run a statement."""
        found: _Cursor = self._run(query, values)
        return found

    def executemany(self, query: str, many: Iterable[Sequence[Any]]) -> None:
        """Run a statement for each of many."""
        for values in many:
            self._run(query, values)


class ServerState(ABC):
    """One connection, shared by threads. Whoever changes something is alone, among all servers."""

    name: str  # how texts call it, without a password

    def __init__(self, clock: Callable[[], float] | None, anchor: Path) -> None:
        self.anchor = anchor
        self._clock, self._latest = clock or time.time, 0.0
        self._stopwatch: Callable[[], float] = time.monotonic if clock is None else float  # `float()` is 0: none.
        self._ticked = self._stopwatch()
        self._lock, self._is_changing = RLock(), False
        self._head: Head | None = None  # what is to be anchored when the change is committed
        self._anchor: Anchor | None = None
        self._restores = self._is_new = False
        self.heard: Callable[[Sequence[Any]], None] | None = None  # who is told of decisions once they are on record
        self._said: list[Sequence[Any]] = []

    # --- what a store brings ---

    @abstractmethod
    def _begin(self) -> None:
        """Begin a transaction, alone among all that change this state."""

    @abstractmethod
    def _end(self, word: str) -> None:
        """End it: COMMIT or ROLLBACK."""

    @abstractmethod
    def _run(self, query: str, values: Sequence[Any]) -> Any:
        """Run a statement and return its cursor."""

    @abstractmethod
    def _errors(self) -> AbstractContextManager[None]:
        """Say in our words what goes wrong; no text of the database is repeated."""

    @abstractmethod
    def _format(self) -> int:
        """Return the format of the tables; 0 if there are none."""

    @abstractmethod
    def _set_format(self, number: int) -> None:
        """Note the format of the tables, within a change."""

    @abstractmethod
    def _table_columns(self, table: str) -> set[str]:
        """Return the names of the columns of a table."""

    @abstractmethod
    def _made(self, statement: str) -> str:
        """Return a statement that makes a table or a column, as this database takes it."""

    @abstractmethod
    def _keep_rows(self) -> None:
        """Let rows of tables that only grow be neither changed nor deleted."""

    @abstractmethod
    def take_alone(self) -> None:
        """Refuse a second server where the store is for one."""

    @property
    @abstractmethod
    def is_shared(self) -> bool:
        """Whether other servers may run on it."""

    @abstractmethod
    def copy_to(self, file: Path) -> None:
        """Copy it into a new SQLite file, as it is at one moment, while it is used."""

    @abstractmethod
    def count_on(self) -> None:
        """Let numbers go on after those of rows that were copied here."""

    @abstractmethod
    def close(self) -> None:
        """Let go of it."""

    # --- tables ---

    def _prepare(self) -> None:
        """Make tables where there are none, bring older ones up to date, all in one change; refuse newer ones."""
        with self.changing() as change:
            found = self._format()
            if found > FORMAT:
                raise InvalidParameter(f"{self.name} was written by a newer version of the server")
            for number in range(found + 1, FORMAT + 1) if found else ():
                for step in MIGRATIONS[number]:
                    self._migrate(change, step)
            for statement in statements():
                change.execute(self._made(statement))
            self._keep_rows()
            if found != FORMAT:
                self._set_format(FORMAT)
            last = change.execute(_LAST).fetchone()
            self._latest = max(self._latest, 0.0 if last is None else float(last["at"]))
            self._is_new = last is None or 0 < found < _FIRST_ANCHORED
            if self._is_new:
                self._opened_anchor()

    def _migrate(self, change: StateChange, step: AddedColumn | str) -> None:
        if isinstance(step, str):
            change.execute(self._made(step))
        elif step.name not in self._table_columns(step.table):
            change.execute(self._made(f"ALTER TABLE {step.table} ADD COLUMN {step.name} {step.kind}"))

    # --- time ---

    def now(self) -> float:
        """Return the time, which never goes back: a clock that jumps back revives no session and no token.

        Nor does it stand still, if the clock was wrong for a moment: no session and no lock-out would ever end.
        """
        with self._lock:
            ticked = self._stopwatch()
            gone, self._ticked = ticked - self._ticked, ticked
            self._latest = max(self._latest + gone, self._clock())
            return self._latest

    # --- changes and rows ---

    @contextmanager
    def changing(self) -> Iterator[StateChange]:
        """Change something, whole or not at all; a change within a change is part of it."""
        with self._lock, self._errors():
            change = StateChange(self._run)
            if self._is_changing:
                yield change
                return
            self._begin()
            self._is_changing = True
            try:
                yield change
                self._end("COMMIT")
            except BaseException:
                self._head = None
                self._said = []
                self._end("ROLLBACK")
                raise
            finally:
                self._is_changing = False
            self._anchor_head()
            said, self._said = self._said, []
            for decision in said if self.heard is not None else ():
                self.heard(decision)  # type: ignore[misc]

    def rows(self, query: str, *values: Any) -> list[Any]:
        """Return all rows of a query; a row is read by names of columns."""
        with self._lock, self._errors():
            found: list[Any] = self._run(query, values).fetchall()
            return found

    def row(self, query: str, *values: Any) -> Any | None:
        """Return the first row of a query, if there is one."""
        return next(iter(self.rows(query, *values)), None)

    # --- decisions ---

    def decide(self, who: str, what: str, *, dataset: str = "", outcome: str = "done", about: str = "") -> None:
        """Write a decision down: who, what, about which data set, and how it ended. No value of data, no SQL.

        Within a change it is part of it. It refuses to add to a log that was rolled back meanwhile.
        """
        with self.changing() as change:
            last = change.execute(_LAST).fetchone()
            self._check_anchor(last, self._anchored())
            number, before = (1, "") if last is None else (last["number"] + 1, last["hash"])
            self._latest = max(self._latest, 0.0 if last is None else last["at"])
            said = (number, self.now(), who, what, dataset, outcome, about)
            hashed = _chained(before, said)
            change.execute("INSERT INTO decisions VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (*said, hashed))
            self._head = Head(number, hashed)
            self._said.append(said)

    def decisions(
        self, *, before: int | None = None, most: int = 100, only: Iterable[str] | None = None
    ) -> list[dict[str, Any]]:
        """Return the last decisions, the newest first: all, or those about some data sets."""
        last, named = (1 << 62) if before is None else before, [] if only is None else sorted(set(only) - {""})
        if only is not None and not named:
            return []
        among = "" if only is None else f"AND dataset IN ({', '.join('?' * len(named))})"
        query = f"SELECT * FROM decisions WHERE number < ? {among} ORDER BY number DESC LIMIT ?"
        return [dict(row) for row in self.rows(query, last, *named, most)]

    def decisions_hold(self) -> bool:
        """Tell whether every decision is the one that was written, with none left out before the last."""
        return chain_end(self.rows("SELECT * FROM decisions ORDER BY number")) is not None

    # --- the anchor ---

    def check_anchored(self) -> None:
        """Refuse a state whose log does not contain what was anchored: an old copy, or one that was cut.

        What is seen now is anchored, too: others may have written it.
        """
        with self._lock:
            anchored = self._anchored()  # before the log is read: other servers add to both meanwhile, to the log first
            last = self.row(_LAST)
            self._check_anchor(last, anchored)
            if last is not None:
                self._opened_anchor().move(Head(last["number"], last["hash"]))

    def _anchored(self) -> Head:
        return BEGINNING if self._restores else self._opened_anchor().read()

    def _check_anchor(self, last: Any | None, anchored: Head) -> None:
        if anchored.index == 0:
            return
        number = 0 if last is None else last["number"]
        if number < anchored.index:
            raise StateDamaged(
                f"the log of decisions in {self.name} ends at {number}, but {anchored.index} was anchored: an old copy "
                "was put back, and with it revoked tokens and used caps. Put the newest copy back, or accept this one "
                "with `discreet backup restore`, which voids them"
            )
        found = self.row("SELECT hash FROM decisions WHERE number = ?", anchored.index)
        if found is None or found["hash"] != anchored.hash:
            raise StateDamaged(
                f"the log of decisions in {self.name} was changed, or is another one: it does not contain its anchored "
                "decision. Put the newest copy back, or accept this one with `discreet backup restore`"
            )

    def _anchor_head(self) -> None:
        head, self._head = self._head, None
        if head is None:
            return
        if self._restores:
            self._opened_anchor().replace(head)
            self._restores = False
        else:
            self._opened_anchor().move(head)

    def _opened_anchor(self) -> Anchor:
        """Open the anchor. On a machine that was never there before it knows nothing, and learns what it sees."""
        if self._anchor is None:
            with reachable():
                self.anchor.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                if not Anchor.is_made(self.anchor):
                    if not (self.is_shared or self._is_new or self._restores):
                        raise StateDamaged(
                            f"the anchor of {self.name} is missing, so nobody knows whether this is an old copy: name "
                            "it with --state-anchor, or accept the state with `discreet backup restore`"
                        )
                    Anchor.create(self.anchor).close()
                check_private(self.anchor)
                self._anchor = Anchor(self.anchor)
        return self._anchor

    def _close_anchor(self) -> None:
        if self._anchor is not None:
            self._anchor.close()
            self._anchor = None

    @contextmanager
    def restoring(self) -> Iterator[StateChange]:
        """Change a state that its anchor does not know, and anchor what it then is: accepted on purpose."""
        with self._lock:
            self._restores = True
            try:
                with self.changing() as change:
                    yield change
            finally:
                self._restores = False


def _chained(before: str, said: tuple[Any, ...]) -> str:
    return hashlib.sha256(json.dumps([before, *said], ensure_ascii=True).encode()).hexdigest()


def chain_end(log: Iterable[Any]) -> str | None:
    """Return the hash of the last of all decisions, in order; None if one was changed or left out."""
    before = ""
    for place, row in enumerate(log, 1):
        *said, found = tuple(row)
        if said[0] != place or found != _chained(before, tuple(said)):
            return None
        before = found
    return before


def copy_rows(rows: Iterable[Any], table: str, change: StateChange) -> None:
    """Add rows of one state to the same table of another."""
    for row in rows:
        names = list(row.keys())
        places = ", ".join("?" * len(names))
        change.execute(f"INSERT INTO {table} ({', '.join(names)}) VALUES ({places})", tuple(row))


# --- places ---


def state_place(place: str | Path) -> Path | LedgerAddress:
    """Return where a state is: a file, or a schema of a database, `discreet_server` unless `?schema=` says another."""
    found = as_place(place)
    if isinstance(found, LedgerAddress):
        return found if "schema=" in str(place) else replace(found, schema=_SCHEMA)
    return Path(place)


def opened_state(place: str | Path, *, anchor: Path | None = None) -> ServerState:
    """Open the state at a place, a path or `postgresql://host/database`; it is made where there is none.

    Its anchor is where `anchor` or the variable DISCREET_STATE_ANCHOR says; else beside a file, or for a database in
    the folder in which this machine keeps anchors of ledgers.
    """
    from discreet.server.state_file import StateFile
    from discreet.server.state_server import PostgresState

    found, said = state_place(place), os.environ.get("DISCREET_STATE_ANCHOR")
    kept = Path(said) if anchor is None and said else anchor
    return PostgresState(found, anchor=kept) if isinstance(found, LedgerAddress) else StateFile(found, anchor=kept)
