"""A ledger in SQLite: the connection, its tables, and the store, in a file or in memory."""

from __future__ import annotations

import os
import sqlite3
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar, final

from discreet.errors import LedgerDamaged, LedgerUnavailable, Refused
from discreet.file_locks import lock_file, refuse_without_locks, unlock_file
from discreet.ledger.anchor import Anchor
from discreet.ledger.charge_record import BEGINNING, Head, ReadClaim
from discreet.ledger.charges_and_claims import append
from discreet.ledger.lease import hold_lease
from discreet.ledger.private_files import check_private, create_private, reachable, refuse_network
from discreet.ledger.requests import LedgerRequest
from discreet.ledger.store import (
    CommitLine,
    FoundDamage,
    LedgerRows,
    StoreTurn,
    WaitingRequest,
    claim_of,
    close_before_forks,
    opening_stores,
)
from discreet.ledger.verify_chain import CHECKPOINT_EVERY, add_checkpoint

__all__ = [
    "FORMAT",
    "FileStore",
    "MemoryStore",
    "OpenFiles",
    "SqliteRows",
    "begun",
    "connect",
    "create",
    "file_store",
    "format_of",
    "migrate",
    "sqlite_damage",
    "translated",
]

T = TypeVar("T")

# --- sqlite_tables: The record in sqlite3, within one transaction. ---


# --- schema: The tables, their version, and how an older file becomes a newer one. ---


FORMAT = 2  # 2: reads are claimed.
_APPLICATION = 0x44_53_43_54  # "DSCT": what a file says that is ours.

_CLAIMS = """
CREATE TABLE claims (charge INTEGER PRIMARY KEY, idx INTEGER NOT NULL, dataset TEXT NOT NULL, principal TEXT NOT NULL,
    until INTEGER NOT NULL, process TEXT NOT NULL, part INTEGER, failed INTEGER NOT NULL, counts INTEGER NOT NULL);
CREATE INDEX claims_by_dataset ON claims (dataset);
"""
# Entries and answers are the record; the other tables are kept so that a charge need not read the record again.
_TABLES = f"""
CREATE TABLE entries (idx INTEGER PRIMARY KEY, hash TEXT NOT NULL, time INTEGER NOT NULL, body TEXT NOT NULL);
CREATE TABLE answers (charge INTEGER PRIMARY KEY, body TEXT NOT NULL);
CREATE TABLE accounts (dataset TEXT PRIMARY KEY, declared TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE sums (dataset TEXT, scope TEXT, body TEXT NOT NULL, PRIMARY KEY (dataset, scope)) WITHOUT ROWID;
CREATE TABLE charges (idx INTEGER PRIMARY KEY, dataset TEXT NOT NULL, key TEXT, question TEXT);
CREATE UNIQUE INDEX charges_by_key ON charges (dataset, key) WHERE key IS NOT NULL;
CREATE INDEX charges_by_question ON charges (dataset, question) WHERE question IS NOT NULL;
{_CLAIMS.strip()}
CREATE TABLE lease (id INTEGER PRIMARY KEY CHECK (id = 1), host TEXT NOT NULL, until INTEGER NOT NULL);
CREATE TRIGGER entries_stay BEFORE UPDATE ON entries BEGIN SELECT RAISE(ABORT, 'entries are never changed'); END;
CREATE TRIGGER entries_last BEFORE DELETE ON entries BEGIN SELECT RAISE(ABORT, 'entries are never deleted'); END;
CREATE TRIGGER answers_stay BEFORE UPDATE ON answers BEGIN SELECT RAISE(ABORT, 'answers are never changed'); END;
CREATE TRIGGER answers_last BEFORE DELETE ON answers BEGIN SELECT RAISE(ABORT, 'answers are never deleted'); END;
"""


def create(connection: sqlite3.Connection) -> None:
    """Make the tables of a new file, within the transaction that is open."""
    _execute(connection, _TABLES)
    connection.execute(f"PRAGMA application_id = {_APPLICATION}")
    connection.execute(f"PRAGMA user_version = {FORMAT}")


def _execute(connection: sqlite3.Connection, statements: str) -> None:
    """Run statements within the transaction that is open; `executescript` would end it."""
    for statement in statements.split(";\n"):
        if text := statement.strip():
            connection.execute(text)


def _add_claims(connection: sqlite3.Connection) -> None:
    _execute(connection, _CLAIMS)


# How a file of each format becomes one of the next.
STEPS: dict[int, Callable[[sqlite3.Connection], None]] = {1: _add_claims}


def format_of(connection: sqlite3.Connection) -> int:
    """Return the version of a file: 0 for an empty one; refuse what is not a ledger, or is newer than this release."""
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    application = int(connection.execute("PRAGMA application_id").fetchone()[0])
    if version == 0 and connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
        return 0
    if application != _APPLICATION:
        raise LedgerDamaged("this file is not a ledger")
    if version > FORMAT:
        raise LedgerDamaged(
            f"this ledger has format {version}, this release knows {FORMAT}: use a newer release of discreet"
        )
    return version


def migrate(connection: sqlite3.Connection, rows: LedgerRows, version: int) -> None:
    """Bring an older file up to date, within the transaction that is open. Entries stay; each step adds one."""
    for step in range(version, FORMAT):
        STEPS[step](connection)
        append(rows, "", "format", {"from": step, "to": step + 1})
    connection.execute(f"PRAGMA user_version = {FORMAT}")


_ROWS_CLAIMS = (
    "SELECT charge, hash, claims.idx, dataset, principal, until, process, part, failed, counts "
    "FROM claims JOIN entries ON entries.idx = charge"
)


@final
class SqliteRows:
    """One statement for each thing that a ledger asks."""

    __slots__ = ("_accounts", "_anchor", "_connection", "_head", "new_checkpoint")

    def __init__(self, connection: sqlite3.Connection, anchor: Anchor | None = None) -> None:
        self._connection, self._anchor = connection, anchor
        self._head: Head | None = None  # Within a transaction nobody else moves it, nor declares anything.
        self._accounts: dict[str, str | None] = {}
        self.new_checkpoint: Head | None = None

    def checkpoint(self) -> Head | None:
        return None if self._anchor is None else self._anchor.checkpoint()

    def anchor_checkpoint(self, head: Head) -> None:
        self.new_checkpoint = head

    def mark(self) -> Head:
        """Begin something that may be taken back; `keep` or `back_to` ends it."""
        self._connection.execute("SAVEPOINT one")
        return self.head()

    def keep(self) -> None:
        """Keep what was written since the mark."""
        self._connection.execute("RELEASE one")

    def back_to(self, mark: Head) -> None:
        """Take back what was written since the mark."""
        self._connection.execute("ROLLBACK TO one")
        self.keep()
        self._head = mark
        self._accounts.clear()

    def _one(self, statement: str, *values: object) -> Any:
        row = self._connection.execute(statement, values).fetchone()
        return None if row is None else row[0]

    def head(self) -> Head:
        if self._head is None:
            row = self._connection.execute("SELECT idx, hash, time FROM entries ORDER BY idx DESC LIMIT 1").fetchone()
            self._head = BEGINNING if row is None else Head(*row)
        return self._head

    def append(self, head: Head, body: str) -> None:
        self._connection.execute("INSERT INTO entries VALUES (?, ?, ?, ?)", (head.index, head.hash, head.time, body))
        self._head = head

    def entry(self, index: int) -> tuple[str, str] | None:
        row = self._connection.execute("SELECT body, hash FROM entries WHERE idx = ?", (index,)).fetchone()
        return None if row is None else (_text(row[0]), row[1])

    def marked(self, mark: str, *, after: int) -> Iterator[tuple[str, str]]:
        rows = self._connection.execute(
            "SELECT body, hash FROM entries WHERE idx > ? AND instr(body, ?) ORDER BY idx DESC", (after, mark)
        )
        yield from ((_text(body), written_hash) for body, written_hash in rows)

    def clock(self) -> None:
        return None

    def entries(self, *, after: int = 0) -> Iterator[tuple[Head, str]]:
        rows = self._connection.execute(
            "SELECT idx, hash, time, body FROM entries WHERE idx > ? ORDER BY idx", (after,)
        )
        yield from ((Head(index, written_hash, time), _text(body)) for index, written_hash, time, body in rows)

    def links(self, *, before: int) -> Iterator[tuple[int, str, int, bytes]]:
        return self._connection.execute(
            "SELECT idx, hash, time, CASE typeof(body) WHEN 'text' THEN CAST(body AS BLOB) ELSE x'' END "
            "FROM entries WHERE idx < ? ORDER BY idx",  # What is no text has no hash of an entry.
            (before,),
        )

    def account(self, dataset: str) -> str | None:
        if dataset not in self._accounts:
            found = self._one("SELECT declared FROM accounts WHERE dataset = ?", dataset)
            self._accounts[dataset] = found
        return self._accounts[dataset]

    def set_account(self, dataset: str, declared: str) -> None:
        self._connection.execute("INSERT OR REPLACE INTO accounts VALUES (?, ?)", (dataset, declared))
        self._accounts.clear()

    def clear_accounts(self) -> None:
        self._connection.execute("DELETE FROM accounts")
        self._accounts.clear()

    def accounts(self) -> dict[str, str]:
        return dict(self._connection.execute("SELECT dataset, declared FROM accounts"))

    def sums(self, dataset: str, scope: str) -> str | None:
        return self._one("SELECT body FROM sums WHERE dataset = ? AND scope = ?", dataset, scope)  # type: ignore[no-any-return]

    def set_sums(self, dataset: str, scope: str, text: str) -> None:
        self._connection.execute("INSERT OR REPLACE INTO sums VALUES (?, ?, ?)", (dataset, scope, text))

    def all_sums(self) -> dict[tuple[str, str], str]:
        rows = self._connection.execute("SELECT dataset, scope, body FROM sums")
        return {(dataset, scope): body for dataset, scope, body in rows}

    def remember(self, index: int, dataset: str, *, key: str | None, question: str | None) -> None:
        self._connection.execute("INSERT INTO charges VALUES (?, ?, ?, ?)", (index, dataset, key, question))

    def by_key(self, dataset: str, key: str) -> int | None:
        return self._one("SELECT idx FROM charges WHERE dataset = ? AND key = ?", dataset, key)  # type: ignore[no-any-return]

    def by_question(self, dataset: str, question: str) -> int | None:
        return self._one(  # type: ignore[no-any-return]
            "SELECT max(idx) FROM charges JOIN answers ON charge = idx WHERE dataset = ? AND question = ?",
            dataset,
            question,
        )

    def newest(self, dataset: str, question: str) -> int | None:
        return self._one("SELECT max(idx) FROM charges WHERE dataset = ? AND question = ?", dataset, question)  # type: ignore[no-any-return]

    def remembered(self) -> dict[int, tuple[str, str | None, str | None]]:
        rows = self._connection.execute("SELECT idx, dataset, key, question FROM charges")
        return {index: (dataset, key, question) for index, dataset, key, question in rows}

    def answer(self, charge: int) -> str | None:
        found = self._one("SELECT body FROM answers WHERE charge = ?", charge)
        return None if found is None else _text(found)

    def set_answer(self, charge: int, text: str) -> None:
        self._connection.execute("INSERT INTO answers VALUES (?, ?)", (charge, text))

    def answers(self) -> dict[int, str]:
        rows = self._connection.execute("SELECT charge, body FROM answers")
        return {charge: _text(body) for charge, body in rows}

    def claim(self, charge: int) -> ReadClaim | None:
        row = self._connection.execute(f"{_ROWS_CLAIMS} WHERE charge = ?", (charge,)).fetchone()
        return None if row is None else claim_of(*row)

    def claims(self, dataset: str | None = None) -> tuple[ReadClaim, ...]:
        if dataset is None and not self._one("SELECT count(*) FROM sqlite_master WHERE name = 'claims'"):
            return ()  # A file of an older format that is only looked at.
        which, values = ("", ()) if dataset is None else (" WHERE dataset = ?", (dataset,))
        rows = self._connection.execute(f"{_ROWS_CLAIMS}{which} ORDER BY claims.idx", values)
        return tuple(claim_of(*row) for row in rows)

    def set_claim(self, claim: ReadClaim) -> None:
        values = (claim.dataset, claim.principal, claim.until, claim.process, claim.part, claim.is_failed, claim.counts)
        self._connection.execute(
            "INSERT OR REPLACE INTO claims VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", (claim.charge.id, claim.index, *values)
        )

    def end_claim(self, charge: int) -> None:
        self._connection.execute("DELETE FROM claims WHERE charge = ?", (charge,))


_NO_TEXT = "a text of this ledger was changed into something else"


def _text(found: Any) -> str:
    """Refuse what stands where a text was written: a column of sqlite3 takes anything, and bytes compare with none."""
    if not isinstance(found, str):
        raise LedgerDamaged(_NO_TEXT)
    return found


# --- sqlite_store ---
# The record in a sqlite3 file of this machine, or in memory, with its lock, its lease and its anchor.


# --- open_files: What one process has open of a ledger: the file, the lock beside it and the anchor outside it. ---


@final
class OpenFiles:
    """Open files, checked against the anchor when they are opened and in every transaction."""

    def __init__(self, path: Path, anchor: Path, *, is_restored: bool = False) -> None:
        self.process, self.path, self._is_closed = os.getpid(), path, False
        refuse_network(path)
        with reachable(), ExitStack() as opened:
            self._lock = _open_lock(path)
            opened.callback(self._close_lock)
            with self.locked():
                if is_restored and not Anchor.is_made(anchor):
                    Anchor.create(anchor).close()
                self.anchor = _anchor_of(path, anchor)
                opened.callback(self.anchor.close)
                check_private(path)
                self.connection = connect(str(path))
                opened.callback(self.connection.close)
                self._identity = _identity(path)
                self.seen = 0  # entries after the last transaction
                self._checked = 0  # the last checkpoint that is known here, or attempt at one
                if not is_restored:
                    self._prepare()
            self._opened = opened.pop_all()

    def _prepare(self) -> None:
        """Make the tables of a new file or bring an old one up to date; refuse a file the anchor does not know."""
        with begun(self.connection, "IMMEDIATE"):
            version, rows = format_of(self.connection), SqliteRows(self.connection)
            if version == 0:
                if self.anchor.read().index > 0:
                    raise LedgerDamaged("this ledger is empty, but its anchor knows entries: it was replaced or cut")
                create(self.connection)
            self.check(rows)
            hold_lease(self.connection)
            if 0 < version < FORMAT:
                migrate(self.connection, rows, version)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Wait in line with the other processes. The kernel lets go of the lock if this one dies."""
        try:
            lock_file(self._lock)  # Within the block: an interrupt just after it must not leave it locked.
            yield
        finally:
            if not self._is_closed:  # Else its number may be that of another file by now.
                unlock_file(self._lock)

    def check(self, rows: SqliteRows) -> None:
        """Refuse a chain that does not contain what is anchored. Only what is committed is ever anchored."""
        anchored, head = self.anchor.read(), rows.head()
        self._check_same(rows, anchored)
        if anchored.index > head.index:
            raise LedgerDamaged(
                f"this ledger ends at entry {head.index}, but entry {anchored.index} was anchored: an old copy was "
                "restored, or the file was cut. What was spent since is unknown, so nothing more is answered"
            )

    def check_read(self, rows: SqliteRows) -> None:
        """Refuse another history before its end is anchored; others may have gone on since this one was read."""
        self._check_same(rows, self.anchor.read())

    def _check_same(self, rows: SqliteRows, anchored: Head) -> None:
        if _identity(self.path) != self._identity:
            raise LedgerDamaged("the file of this ledger was replaced while it was open")
        if not 0 < anchored.index <= rows.head().index or anchored == rows.head():
            return
        if (rows.entry(anchored.index) or ("", ""))[1] != anchored.hash:
            raise LedgerDamaged("this ledger does not contain its anchored entry: it is another one, or was changed")

    def move_anchor(self, rows: SqliteRows, head: Head) -> None:
        """Anchor what is committed, before anybody is told."""
        self.anchor.move(head)
        self.seen = head.index
        if rows.new_checkpoint is not None:
            self.anchor.keep_checkpoint(rows.new_checkpoint)

    def is_due(self, every: int) -> bool:
        """Tell whether so many entries came since the last checkpoint, or attempt at one."""
        if self.seen - self._checked < every:
            return False
        known = self.anchor.checkpoint()
        self._checked = max(self._checked, 0 if known is None else known.index)  # Another process may have written one.
        return self.seen - self._checked >= every

    def has_checked(self) -> None:
        """Note that everything was added up, and no damage was found."""
        self._checked = self.seen

    def close(self) -> None:
        """Close everything."""
        self._opened.close()

    def _close_lock(self) -> None:
        self._is_closed = True
        os.close(self._lock)


def _open_lock(path: Path) -> int:
    lock = path.with_name(f"{path.name}.lock")
    create_private(lock)
    return os.open(lock, os.O_RDWR | os.O_CLOEXEC)


def _anchor_of(path: Path, anchor: Path) -> Anchor:
    """Open the anchor; make both files if neither is there. The anchor comes first, so a crash leaves no orphan."""
    if not Anchor.is_made(anchor):
        if path.exists() and path.stat().st_size:
            raise LedgerDamaged(f"the anchor of this ledger is missing ({anchor.name}): restore it, not a new one")
        Anchor.create(anchor).close()
    check_private(anchor)
    found = Anchor(anchor)
    try:
        if not path.exists() and found.read().index:
            raise LedgerDamaged("the ledger is gone, but its anchor knows entries: restore the ledger file")
        create_private(path)
    except BaseException:
        found.close()
        raise
    return found


def _identity(path: Path) -> tuple[int, int]:
    try:
        facts = os.stat(path)
    except FileNotFoundError:
        raise LedgerDamaged("the file of this ledger is gone") from None
    return facts.st_dev, facts.st_ino


# --- sqlite_store: The record in a file of this machine, or in memory. ---
#
# One connection for each process, one transaction at a time. A fork waits until no transaction runs and closes the
# files; parent and child open them again: a lock or a connection that two processes share protects neither.


@final
class MemoryStore:
    """A record that ends with the process. A forked child may not use its copy."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self.turn = StoreTurn()
        self._connection = connect(":memory:")
        with begun(self._connection, "IMMEDIATE"):
            create(self._connection)

    @contextmanager
    def writing(self) -> Iterator[SqliteRows]:
        if os.getpid() != self._process:
            raise Refused("a ledger in memory belongs to the process that made it: use a file to share a budget")
        with self.turn.taken(), translated(), begun(self._connection, "IMMEDIATE"):
            yield SqliteRows(self._connection)

    reading = verifying = writing  # Nobody else can change it.

    def close(self) -> None:
        if os.getpid() == self._process:
            self._connection.close()


@final
class FileStore:
    """A record in a file, with a lock beside it and an anchor outside it."""

    def __init__(self, path: Path, anchor: Path) -> None:
        self.path, self.anchor = path, anchor
        self.turn = StoreTurn()
        self._line = CommitLine()
        self._damage = FoundDamage(sqlite_damage)
        self._open: list[OpenFiles] = []  # one or none
        weakref.finalize(self, _close_all, self._open)
        close_before_forks(self)

    @contextmanager
    def writing(self) -> Iterator[SqliteRows]:
        with self.turn.taken(), translated(), self._writing() as rows:
            yield rows

    @contextmanager
    def verifying(self) -> Iterator[SqliteRows]:
        with self.turn.taken(), translated(), self._writing(verifies=True) as rows:
            yield rows

    @contextmanager
    def _writing(self, *, verifies: bool = False) -> Iterator[SqliteRows]:
        files = self._files()
        try:
            with files.locked(), begun(files.connection, "IMMEDIATE"):
                rows = SqliteRows(files.connection, files.anchor)
                files.check(rows)
                hold_lease(files.connection)
                with self._damage.remembered(verifies=verifies):
                    yield rows
                head = rows.head()
        except BaseException as error:
            if isinstance(error, sqlite3.Error) or not isinstance(error, Exception):
                self.drop()  # What a failed write, or an interrupt, left behind is looked at again from the disk.
            raise
        files.move_anchor(rows, head)

    def decide(self, request: LedgerRequest[T]) -> T:
        """Decide a request together with those of other threads of this process: one commit and one flush for all."""
        self.turn.refuse_within()
        if self._line.process != os.getpid():
            self._line = CommitLine()
        asked = self._line.through(request, self._together)
        if asked.is_settled:
            return asked.decision  # type: ignore[no-any-return]
        with self.writing() as rows:  # Others went on without it: here it is said why, or it fits after all.
            return request.decide(rows)

    def _together(self, batch: Sequence[WaitingRequest]) -> None:
        """Decide what several threads have asked, in order; what does not fit is left to whoever asked."""
        with self.turn.taken(), translated():
            self._checkpoint_if_due()
            try:
                with self._writing() as rows:
                    if len(batch) == 1:
                        decisions: list[Any] = [(batch[0].request.decide(rows),)]
                    else:
                        decisions = [_decided(rows, each.request) for each in batch]
            except sqlite3.Error as error:
                if len(batch) == 1 or isinstance(error, sqlite3.OperationalError):
                    raise
                return  # Something that was asked cannot be stored, and nothing was: each is left to whoever asked.
        for each, decision in zip(batch, decisions, strict=True):  # Nobody is told before this.
            if decision is not None:
                each.settle(*decision)

    def _checkpoint_if_due(self) -> None:
        """Write a checkpoint every so many entries, so that the next opening need not add up the whole record."""
        files = self._files()
        if files.is_due(CHECKPOINT_EVERY):
            with self._writing() as rows:
                add_checkpoint(rows)
            files.has_checked()

    @contextmanager
    def reading(self) -> Iterator[SqliteRows]:
        with self.turn.taken(), translated():
            files = self._files()
            with begun(files.connection, "DEFERRED"):
                rows = SqliteRows(files.connection, files.anchor)
                with self._damage.noted():
                    yield rows
                files.check_read(rows)
                head = rows.head()
            files.move_anchor(rows, head)  # Whoever wrote it may have died before they could.

    @contextmanager
    def restoring(self) -> Iterator[SqliteRows]:
        """Write to a file that the anchor does not know, and anchor it: an old copy is accepted, on purpose."""
        with self.turn.taken(), translated():
            self.drop()
            files = OpenFiles(self.path, self.anchor, is_restored=True)
            self._open.append(files)
            with files.locked():
                with begun(files.connection, "IMMEDIATE"):
                    hold_lease(files.connection)
                    rows = SqliteRows(files.connection)
                    yield rows
                    head = rows.head()
                files.anchor.replace(head)
            self._damage.forget()

    def close(self) -> None:
        with self.turn.taken():
            self.drop()

    def _files(self) -> OpenFiles:
        if not self._open:
            self._open.append(OpenFiles(self.path, self.anchor))
        if self._open[0].process != os.getpid():
            raise Refused("this process was forked from inside a transaction, or not by Python: open no ledger here")
        return self._open[0]

    def drop(self) -> None:
        """Close what is open; the next use opens it again."""
        _close_all(self._open)


def _decided(rows: SqliteRows, request: LedgerRequest[Any]) -> tuple[Any] | None:
    """Decide one request of several; None if it is refused, and then nothing of it is written."""
    mark = rows.mark()
    try:
        decision = request.decide(rows)
    except Exception as error:
        if isinstance(error, (sqlite3.Error, LedgerDamaged)):  # Then nobody is charged.
            raise
        rows.back_to(mark)
        return None
    rows.keep()
    return (decision,)


def _close_all(files: list[OpenFiles]) -> None:
    while files:
        each = files.pop()  # First: what an interrupt leaves half closed is not used again.
        if each.process == os.getpid():  # What belongs to the parent is not ours to close.
            each.close()


_stores: weakref.WeakValueDictionary[Path, FileStore] = weakref.WeakValueDictionary()


def file_store(path: Path, anchor: Path | None) -> FileStore:
    """Return the store of a file: one for each file and process, so that two users of it wait for each other."""
    refuse_without_locks("a ledger in a file")
    place = path.resolve()
    outside = (anchor or place.with_name(f"{place.name}.anchor")).resolve()
    with opening_stores():
        found = _stores.get(place)
        if found is None:
            found = _stores[place] = FileStore(place, outside)
        if found.anchor != outside:
            raise Refused("this ledger is open already, with another anchor")
        return found


# --- sqlite_connection: Connections to sqlite3 that force every commit to disk, and errors that say what to do. ---


_PATIENCE = 60.0  # Seconds to wait for somebody else who has the file locked.
_CHECKPOINT = 500  # Pages of the log; it is then written from its start again, which forces no new block.


def connect(location: str) -> sqlite3.Connection:
    """Open a file (or `:memory:`) so that a commit returns only when it is on the disk."""
    connection = sqlite3.connect(
        location, timeout=_PATIENCE, isolation_level=None, check_same_thread=False, cached_statements=64
    )
    if location != ":memory:":
        mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
        if mode != "wal":
            connection.close()
            raise LedgerUnavailable("this file system does not support a write-ahead log: use a local disk")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA fullfsync = ON")
        connection.execute("PRAGMA checkpoint_fullfsync = ON")
        connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT}")
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    return connection


@contextmanager
def begun(connection: sqlite3.Connection, how: str) -> Iterator[None]:
    """Run a block within a transaction; an exception takes everything back."""
    try:
        connection.execute(f"BEGIN {how}")  # Within the block: an interrupt just after it must not leave it begun.
        yield
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.ProgrammingError):  # An interrupt has closed it, and that took everything back.
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        raise


_USE = (sqlite3.OperationalError, sqlite3.DataError, sqlite3.ProgrammingError, sqlite3.InterfaceError)


def sqlite_damage(error: Exception) -> LedgerDamaged | None:
    """Say what is damaged, if that is what sqlite3 met while it read."""
    if isinstance(error, sqlite3.OperationalError) and str(error).startswith("Could not decode to UTF-8"):
        return LedgerDamaged(_NO_TEXT)  # What sqlite3 says of it has the text.
    if not isinstance(error, sqlite3.DatabaseError) or isinstance(error, (*_USE, sqlite3.IntegrityError)):
        return None
    return LedgerDamaged(f"this file is not a ledger, or is damaged ({error}): restore it from a backup")


@contextmanager
def translated() -> Iterator[None]:
    """Say in our words what sqlite3 met. Its own text names files and statements, never data; ours is shorter."""
    try:
        yield
    except sqlite3.IntegrityError as error:
        raise LedgerDamaged(f"the ledger refuses this change: {error}") from None
    except sqlite3.Error as error:
        damage = sqlite_damage(error)
        raise damage or LedgerUnavailable(f"the ledger could not be used ({error}); nothing was released") from None
