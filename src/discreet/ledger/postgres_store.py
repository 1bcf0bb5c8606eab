"""A ledger on a PostgreSQL server: many machines spend from one budget, and one flush serves all who wait.

Whoever asks takes the turn, an advisory lock, if it is free. Else the request goes into a table, and whoever has the
turn decides all that wait, in order, and commits their entries, the new head and what was decided in one transaction;
when the lock is let go of, those who wait look for what was decided. If the server ends the one who has the turn,
its transaction never was and the lock is free: the next one decides.

A request has a random number. What was decided is kept under it for ever, so after a lost connection, also one that
was lost within COMMIT, the client takes the turn (nobody's transaction is under way then) and looks: decided, or not,
and only then asked again. So a request is charged once or not at all, and nobody is told what is not in the record.

Each machine keeps the last head that it told or saw in an anchor of its own; the chain of the server must contain it.
"""

from __future__ import annotations

import json
import os
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Generic, TypeVar, final

from discreet.errors import DiscreetError, LedgerDamaged, Refused
from discreet.file_locks import refuse_without_locks
from discreet.ledger.anchor import Anchor, anchored_in
from discreet.ledger.budget import digest
from discreet.ledger.charge_record import BEGINNING, Head
from discreet.ledger.postgres_rows import FORMAT, TABLES, Missing, PostgresRows
from discreet.ledger.private_files import check_private, reachable
from discreet.ledger.requests import LedgerRequest, read_request
from discreet.ledger.server_address import LedgerAddress, connect, driver, is_lost, server_errors
from discreet.ledger.store import StoreTurn, close_before_forks
from discreet.noise.source import read

__all__ = ["PostgresStore", "server_snapshot"]

T = TypeVar("T")
_Reader = Callable[[str], LedgerRequest[Any] | None]
_MOST = 500  # requests in one transaction
_PATIENCE = 60.0  # seconds for which a server that was lost is looked for
_PAUSES = (0.01, 0.05, 0.2, 0.5, 1.0)  # seconds, and the last one again and again
_SNAPSHOT = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_WAIT = "SELECT pg_advisory_xact_lock(%s)"
_ASK = "BEGIN; INSERT INTO {}.requests (id, body) VALUES ('{}', {}) ON CONFLICT (id) DO NOTHING; COMMIT; "
_TOLD = "SELECT told, idx, hash FROM {s}.outcomes WHERE id = %s"


@final
class _Connected:
    """What one process has open: a connection, and the anchor of this machine."""

    def __init__(self, address: LedgerAddress, anchor: Path) -> None:
        self.process, self.schema = os.getpid(), address.schema
        self.gate, self.turn = (
            int(digest(f"discreet ledger {each} {address.schema}")[:16], 16) - 2**63 for each in ("gate", "turn")
        )
        self.has_turn = False  # for the session; within the fast way the gate alone is tried
        self.connection = connect(address)
        try:
            self._prepare()
            self.anchor = _anchor(anchor)
        except BaseException:
            self.connection.close()
            raise

    def _prepare(self) -> None:
        """Make the tables where there are none; refuse those of a newer release."""
        if self._format() is None:
            with self.connection.transaction():
                self.connection.execute("SELECT pg_advisory_xact_lock(%s)", (self.gate,))
                if self._format() is None:
                    made = TABLES.replace("{s}", self.schema).replace("{format}", str(FORMAT))
                    self.connection.execute(made.replace("{beginning}", BEGINNING.hash).encode())

    def _format(self) -> int | None:
        """Return the version of the tables; None if there are none."""
        found = self.connection.execute("SELECT to_regclass(%s)", (f"{self.schema}.ledger",)).fetchone()
        if found is None or found[0] is None:
            return None
        row = self.connection.execute(f"SELECT format FROM {self.schema}.ledger".encode()).fetchone()
        if row is None or row[0] > FORMAT:
            raise LedgerDamaged(
                "the tables of this ledger are empty, or of a newer release: restore them, or use that release"
            )
        return int(row[0])

    def rows(self) -> PostgresRows:
        return PostgresRows(self.connection, self.schema)

    def execute(self, text: str, *values: Any) -> Any:
        return self.connection.execute(text.replace("{s}", self.schema).encode(), values or None)

    def quoted(self, text: str) -> str:
        """Write a text as part of a statement."""
        return driver().pq.Escaping(self.connection.pgconn).escape_literal(text.encode()).decode()  # type: ignore[no-any-return]

    def ask(self, statements: str) -> Any:
        """Send statements at once, below the driver, whose own work is longer than theirs; return a value in JSON."""
        pg, wire = driver(), self.connection.pgconn
        result = wire.exec_(statements.encode())
        if result.status not in (pg.pq.ExecStatus.TUPLES_OK, pg.pq.ExecStatus.COMMAND_OK):
            if wire.status != pg.pq.ConnStatus.OK:
                raise pg.OperationalError("the connection was lost")
            raise pg.errors.error_from_result(result)
        value = result.get_value(0, 0) if result.ntuples == 1 else None
        return json.loads(value) if value and value[:1] in b"{[" else None

    def back(self) -> None:
        """End a transaction, if there is one, without what it did."""
        if not self.connection.closed and self.connection.info.transaction_status != 0:
            self.connection.execute("ROLLBACK")

    def close(self) -> None:
        self.connection.close()
        self.anchor.close()


def _anchor(path: Path) -> Anchor:
    """Open the anchor of this machine. One that was never here before knows nothing, and learns what it sees."""
    with reachable():
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not Anchor.is_made(path):
            Anchor.create(path).close()
        check_private(path)
        return Anchor(path)


def _check(rows: PostgresRows, anchored: Head) -> None:
    """Refuse a chain that does not contain what this machine has told or seen before this transaction began."""
    head = rows.head()
    if anchored.index > head.index:
        raise LedgerDamaged(
            f"this ledger ends at entry {head.index}, but entry {anchored.index} was anchored on this machine: an old "
            "copy of the database was restored, or a standby that was behind took over. What was spent since is "
            "unknown, so nothing more is answered"
        )
    if anchored.index and (rows.entry(anchored.index) or ("", ""))[1] != anchored.hash:
        raise LedgerDamaged("this ledger does not contain its anchored entry: it is another one, or was changed")


@final
class PostgresStore:
    """A record on a server, with an anchor on this machine."""

    def __init__(self, address: LedgerAddress, anchor: Path | None) -> None:
        refuse_without_locks("a ledger")
        self.address, self.anchor = address, anchor or address.default_anchor()
        self.turn = StoreTurn()
        self._open: list[_Connected] = []  # one or none
        self._was_open = self._is_crowded = False
        weakref.finalize(self, _close_all, self._open)
        close_before_forks(self)

    # --- transactions of our own ---

    @contextmanager
    def writing(self) -> Iterator[PostgresRows]:
        with self.turn.taken(), server_errors(), self._writing() as rows:
            yield rows

    @contextmanager
    def _writing(self) -> Iterator[PostgresRows]:
        anchored, here = self._begun("BEGIN")
        number = _fresh_number()
        try:
            here.execute(_WAIT, here.gate)
            rows = here.rows()
            _check(rows, anchored)
            before = rows.head()
            yield rows
            rows.send([(number, None)] if rows.head() != before or rows.has_written else [])
            head = rows.head()
        except BaseException:
            self._give_up(here)
            raise
        self._commit(here, number)
        self._persevering(self._connected).anchor.move(head)

    def _commit(self, here: _Connected, number: str) -> None:
        """Commit; if the connection is lost meanwhile, find out whether it came through."""
        try:
            here.execute("COMMIT")
        except driver().Error as error:
            self.drop()
            if not is_lost(error) or self._looked_up(number) is None:
                raise

    def _looked_up(self, number: str) -> Any:
        """Return what was decided under a number, when whoever might still be deciding it has ended."""

        def look() -> Any:
            _, here = self._begun("BEGIN")
            try:
                here.execute(_WAIT, here.gate)
                return here.execute(_TOLD, number).fetchone()
            finally:
                self._give_up(here)

        return self._persevering(look)

    @contextmanager
    def reading(self) -> Iterator[PostgresRows]:
        with self.turn.taken(), server_errors():
            anchored, here = self._begun(_SNAPSHOT)
            try:
                rows = here.rows()
                _check(rows, anchored)
                yield rows
                head = rows.head()
            finally:
                self._give_up(here)
            here.anchor.move(head)

    @contextmanager
    def restoring(self) -> Iterator[PostgresRows]:
        """Write to a ledger that the anchor does not know, and anchor it: an old copy is accepted, on purpose."""
        with self.turn.taken(), server_errors():
            _, here = self._begun("BEGIN")
            try:
                here.execute(_WAIT, here.gate)
                rows = here.rows()
                yield rows
                rows.send()
                head = rows.head()
            except BaseException:
                self._give_up(here)
                raise
            here.execute("COMMIT")
            here.anchor.replace(head)

    def _begun(self, how: str) -> tuple[Head, _Connected]:
        """Begin a transaction, on a new connection if the old one was lost; return what was anchored before."""

        def begin() -> tuple[Head, _Connected]:
            here = self._connected()
            here.back()
            anchored = here.anchor.read()
            here.execute(how)
            return anchored, here

        return self._persevering(begin)

    def _give_up(self, here: _Connected) -> None:
        """End a transaction without what it did; a connection that cannot even do that is dropped."""
        try:
            here.back()
        except driver().Error:
            self.drop()
        if here.connection.closed:
            self.drop()

    def _persevering(self, work: Callable[[], T]) -> T:
        """Do something again if the connection is lost, for a while; it must be safe to do twice."""
        ends, pauses = time.monotonic() + _PATIENCE, iter(_PAUSES)
        while True:
            could = self._was_open
            try:
                return work()
            except driver().Error as error:
                self.drop()
                if not is_lost(error) or not could or time.monotonic() > ends:
                    raise
            time.sleep(next(pauses, _PAUSES[-1]))

    # --- requests that are decided together ---

    def decide(self, request: LedgerRequest[T]) -> T:
        with self.turn.taken(), server_errors():
            asked = _Asked(_fresh_number(), request)
            try:
                return self._persevering(lambda: self._attempt(asked))
            except BaseException:
                if asked.is_waiting:
                    self._withdraw(asked)
                raise

    def _attempt(self, asked: _Asked[T]) -> T:
        here = self._connected()
        here.back()
        told: Any = Missing
        if not self._is_crowded:
            told = self._decide_all(here, asked)
        entering = (
            "" if told is not Missing else _ASK.format(here.schema, asked.number, here.quoted(asked.request.text()))
        )
        while told is Missing:
            asked.is_waiting = True
            told, entering = self._waited(here, asked, entering), ""
            if told is Missing:
                told = self._decide_all(here, asked)
        if told is None:  # Whoever had the turn could not decide it, or would have refused it: here it is said why.
            with self._writing() as rows:
                return asked.request.decide(rows)
        return told  # type: ignore[no-any-return]

    def _waited(self, here: _Connected, asked: _Asked[T], entering: str) -> Any:
        """Wait until whoever has the turn has ended, and look for what was decided; if nothing was, take the turn."""
        anchored = here.anchor.read()
        look = f"SELECT {here.schema}.decision('{asked.number}', {here.turn}, {anchored.index})"
        try:
            found = here.ask(entering + look)
        except BaseException:  # The server may have given the turn to this session, and the client does not know.
            self.drop()
            raise
        here.has_turn = found is None
        if found is None:
            return Missing
        *told, contained = found
        if anchored.index and contained != anchored.hash:  # Whoever decided may not know what this machine knows.
            _check(here.rows(), anchored)
        return self._as_told(here, asked, told)

    def _as_told(self, here: _Connected, asked: _Asked[T], row: Any) -> Any:
        asked.is_waiting = False
        told, index, written_hash = row
        here.anchor.move(Head(index, written_hash))
        return None if told is None else asked.request.read(here.rows(), told)

    def _decide_all(self, here: _Connected, asked: _Asked[T]) -> Any:
        """Go to the gate if it is free, and decide everything that waits, unless this request was decided before."""
        try:
            return self._decide_those(here, asked, _read)
        except driver().DataError:  # Something that was asked cannot be stored: each is left to whoever asked.
            return self._decide_those(here, asked, lambda _: None)

    def _decide_those(self, here: _Connected, asked: _Asked[T], read: _Reader) -> Any:
        anchored, rows = here.anchor.read(), here.rows()
        try:
            wanted = here.quoted(rows.look_for([asked.request], anchored.index) or "{}")
            waits = "true" if here.has_turn else "false"
            opened = here.ask(
                f"BEGIN; SELECT {here.schema}.opened('{asked.number}', {here.gate}, {waits}, {_MOST}, {wanted})"
            )
            if opened is None:
                self._is_crowded = True
                here.back()
                return Missing
            rows.set_head(opened["head"])
            rows.found(opened["found"])
            _check(rows, anchored)
            if opened["told"] is not None:
                here.back()
                return self._as_told(here, asked, opened["told"])
            return self._decided(here, asked, rows, [(*each, read) for each in opened["waiting"] or []])
        except BaseException:
            self._give_up(here)
            raise
        finally:
            self._pass_turn(here)

    def _pass_turn(self, here: _Connected) -> None:
        """Let somebody else of those who wait go to the gate."""
        if here.has_turn and not here.connection.closed:
            here.execute("SELECT pg_advisory_unlock(%s)", here.turn)
        here.has_turn = False

    def _decided(self, here: _Connected, asked: _Asked[T], rows: PostgresRows, waiting: list[Any]) -> T:
        """Decide what waits, in order, and our own request; commit all of it at once."""
        new = [(name, body, read) for _, name, body, is_old, read in waiting if not is_old]
        batch = {name: asked.request if name == asked.number else read(body) for name, body, read in new}
        self._is_crowded = any(name != asked.number for name in batch)
        batch.setdefault(asked.number, asked.request)
        others = [request for name, request in batch.items() if request is not None and name != asked.number]
        if wanted := rows.look_for(others):
            rows.found(here.ask(f"SELECT {here.schema}.looked({here.quoted(wanted)})"))
        asked.decision, asked.refusal = [], None  # What an attempt decided that was not committed never was.
        outcomes = [(name, self._told(asked, rows, name, request)) for name, request in batch.items()]
        if not waiting and asked.refusal is not None:
            raise asked.refusal
        payload = here.quoted(rows.payload(outcomes, [number for number, *_ in waiting]) or "")
        then = f"; SELECT pg_advisory_unlock({here.turn})" if here.has_turn else ""
        here.ask(f"SELECT {here.schema}.written({payload}); COMMIT{then}")
        here.has_turn = asked.is_waiting = False
        here.anchor.move(rows.head())
        if asked.refusal is not None:
            raise asked.refusal
        return asked.decision[0]

    def _told(self, asked: _Asked[T], rows: PostgresRows, name: str, request: LedgerRequest[Any] | None) -> str | None:
        """Decide one request; None if it is refused, or cannot be read: then whoever asked does it again, alone."""
        mark = rows.mark()
        try:
            if request is None:
                return None
            decision = request.decide(rows)
            told = request.told(decision)
        except Exception as error:
            if isinstance(error, driver().Error):
                raise
            rows.back_to(mark)
            asked.refusal = error if name == asked.number else asked.refusal
            return None
        asked.decision += [decision] if name == asked.number else []
        return told

    def _withdraw(self, asked: _Asked[T]) -> None:
        """Take a request back that nobody waits for any more, if it is not decided yet."""
        with suppress(Exception):
            here = self._connected()
            here.back()
            here.execute("DELETE FROM {s}.requests WHERE id = %s", asked.number)

    # --- connections ---

    def close(self) -> None:
        with self.turn.taken():
            self.drop()

    def drop(self) -> None:
        """Close what is open; the next use connects again."""
        _close_all(self._open)

    def _connected(self) -> _Connected:
        if not self._open:
            self._open.append(_Connected(self.address, self.anchor))
            self._was_open = True
        if self._open[0].process != os.getpid():
            raise Refused("this process was forked from inside a transaction, or not by Python: open no ledger here")
        return self._open[0]


@final
class _Asked(Generic[T]):
    """A request under its number, and what has become of it."""

    def __init__(self, number: str, request: LedgerRequest[T]) -> None:
        self.number, self.request = number, request
        self.is_waiting = False  # It is, or may be, in the table.
        self.decision: list[T] = []  # one or none
        self.refusal: Exception | None = None


def _fresh_number() -> str:
    """Return a number that no other request has, as the server writes it."""
    digits = read(16).hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _read(body: str) -> LedgerRequest[Any] | None:
    """Read what somebody else asked; None if this release cannot."""
    try:
        return read_request(body)
    except (DiscreetError, ValueError, LookupError, TypeError, ArithmeticError, AttributeError, RecursionError):
        return None


def _close_all(opened: list[_Connected]) -> None:
    for each in opened:
        if each.process == os.getpid():  # What belongs to the parent is not ours to close.
            each.close()
    opened.clear()


@contextmanager
def server_snapshot(address: LedgerAddress, anchor: Path | None) -> Iterator[PostgresRows]:
    """Look at a ledger without making or changing anything; compared with the anchor of this machine, if it has one."""
    place = anchor or address.default_anchor()
    anchored = anchored_in(place.read_bytes()) if place.is_file() else BEGINNING
    with server_errors(), connect(address) as connection:
        connection.execute(_SNAPSHOT)
        rows = PostgresRows(connection, address.schema)
        _check(rows, anchored)
        yield rows
        connection.execute("ROLLBACK")
