"""A ledger on a PostgreSQL server: many machines spend from one budget, and one flush serves all who wait.

Whoever asks goes to the gate, an advisory lock, if it is free. Else the request goes into a table, and whoever is at
the gate decides all that wait, in order, and commits their entries, the new head and what was decided in one
transaction; then the gate is open for a moment, and all who wait see what was decided. Whoever is there goes on for
them for a while, since one who knows the sums decides fastest. If the server ends whoever is at the gate, that
transaction never was, and one of those who wait goes there.

A request has a random number. What was decided is kept under it, so after a lost connection, also one that was lost
within COMMIT, the client passes the gate (nobody's transaction is under way then) and looks: decided, or not, and only
then asked again. So a request is charged once or not at all, and nobody is told what is not in the record. What was
decided half a million entries ago is forgotten; who asks again after that is refused.

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

from discreet.errors import DiscreetError, LedgerDamaged, LedgerUnavailable, Refused
from discreet.file_locks import refuse_without_locks
from discreet.ledger.anchor import Anchor, anchored_in
from discreet.ledger.budget import digest
from discreet.ledger.charge_record import BEGINNING, Head
from discreet.ledger.postgres_rows import FORMAT, PostgresRows, tables
from discreet.ledger.private_files import check_private, reachable
from discreet.ledger.requests import LedgerRequest, read_request
from discreet.ledger.server_address import LedgerAddress, connect, driver, is_lost, server_damage, server_errors
from discreet.ledger.store import FoundDamage, StoreTurn, close_before_forks
from discreet.noise.source import read

__all__ = ["PostgresStore", "server_snapshot"]

T = TypeVar("T")
_Reader = Callable[[str | None], LedgerRequest[Any] | None]
_MOST = 500  # requests in one transaction
_SERVICE = 0.05  # seconds for which whoever is at the gate goes on for others
_PATIENCE = 60.0  # seconds for which a server that was lost is looked for
_PAUSES = (0.01, 0.05, 0.2, 0.5, 1.0)  # seconds, and the last one again and again
_SNAPSHOT = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_WAIT = "SELECT pg_advisory_xact_lock(%s)"
_TOLD = "SELECT told, idx, hash FROM {s}.outcomes WHERE id = %s"
_ASKED = "CALL {s}.asked($1, $2, $3, $4, $5, $6, $7, NULL)"
_OPENED = "SELECT {s}.entered($1, $2, $3, $4, $5)"
_LOOKED = "SELECT {s}.looked($1)"
_DECIDED = "CALL {s}.decided($1, $2, $3, $4, $5, NULL)"


@final
class _Connected:
    """What one process has open: a connection, and the anchor of this machine."""

    def __init__(self, address: LedgerAddress, anchor: Path) -> None:
        self.process, self.schema = os.getpid(), address.schema
        self.gate, self.turn = (
            int(digest(f"discreet ledger {each} {address.schema}")[:16], 16) - 2**63 for each in ("gate", "turn")
        )
        self.at_gate = False  # by locks of the session, which also guard what is read between transactions
        self._prepared: dict[str, bytes] = {}
        self.connection = connect(address)
        try:
            self._prepare()
            self.anchor = _anchor(anchor)
        except BaseException:
            self.connection.close()
            raise

    def _prepare(self) -> None:
        """Make the tables where there are none, bring older ones up to date; refuse those of a newer release."""
        if self._format() != FORMAT:
            with self.connection.transaction():
                self.connection.execute("SELECT pg_advisory_xact_lock(%s)", (self.gate,))
                found = self._format()
                if found != FORMAT:
                    self.connection.execute(tables(self.schema, BEGINNING.hash, found).encode())

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
        return PostgresRows(self.connection, self.schema, self.anchor)

    def execute(self, text: str, *values: Any) -> Any:
        return self.connection.execute(text.replace("{s}", self.schema).encode(), values or None)

    def ask(self, statement: str, *values: str | int | bool | None) -> Any:
        """Run a prepared statement, below the driver, whose own work is longer than it; return a value in JSON."""
        wire = self.connection.pgconn
        if statement not in self._prepared:
            self._prepared[statement] = name = b"discreet %d" % len(self._prepared)
            self._checked(wire.prepare(name, statement.replace("{s}", self.schema).encode()))
        given: list[Any] = [None if each is None else str(each).encode() for each in values]
        result = self._checked(wire.exec_prepared(self._prepared[statement], given))
        value = result.get_value(0, 0) if result.ntuples == 1 else None
        return json.loads(value) if value else None

    def _checked(self, result: Any) -> Any:
        pg = driver()
        if result.status not in (pg.pq.ExecStatus.TUPLES_OK, pg.pq.ExecStatus.COMMAND_OK):
            if self.connection.pgconn.status != pg.pq.ConnStatus.OK:
                raise pg.OperationalError("the connection was lost")
            raise pg.errors.error_from_result(result)
        return result

    def back(self) -> None:
        """End a transaction, if there is one, without what it did, and leave the gate."""
        if not self.connection.closed and self.connection.info.transaction_status != 0:
            self.connection.execute("ROLLBACK")
        if self.at_gate and not self.connection.closed:
            self.execute("SELECT {s}.let_go()")
        self.at_gate = False

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

    is_shared = True

    def __init__(self, address: LedgerAddress, anchor: Path | None) -> None:
        refuse_without_locks("a ledger")
        self.address, self.anchor = address, anchor or address.default_anchor()
        self.turn = StoreTurn()
        self._damage = FoundDamage(server_damage)
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
    def verifying(self) -> Iterator[PostgresRows]:
        with self.turn.taken(), server_errors(), self._writing(verifies=True) as rows:
            yield rows

    @contextmanager
    def _writing(self, *, verifies: bool = False) -> Iterator[PostgresRows]:
        anchored, here = self._begun("BEGIN")
        number = _fresh_number()
        try:
            here.execute(_WAIT, here.gate)
            rows = here.rows()
            rows.streams = True
            _check(rows, anchored)
            before = rows.head()
            with self._damage.remembered(verifies=verifies):
                yield rows
            rows.send([(number, None)] if rows.head() != before or rows.has_written else [])
            head = rows.head()
        except BaseException:
            self._give_up(here)
            raise
        self._commit(here, number)
        self._anchored(self._persevering(self._connected), rows, head)

    @staticmethod
    def _anchored(here: _Connected, rows: PostgresRows, head: Head) -> None:
        here.anchor.move(head)
        if rows.new_checkpoint is not None:
            here.anchor.keep_checkpoint(rows.new_checkpoint)

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
                with self._damage.noted():
                    yield rows
                head = rows.head()
            finally:
                self._give_up(here)
            self._anchored(here, rows, head)

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
            self._damage.forget()

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
            self._damage.refuse()
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
        anchored, rows = here.anchor.read(), here.rows()
        try:
            found = self._entered(here, asked, anchored, rows)
            if isinstance(found, list):
                return self._heard(here, asked, anchored, found)
            rows.set_head(found["open"]["head"])
            if wanted := rows.look_for([asked.request], anchored.index):  # nobody looks ahead who only waits
                found["found"] = here.ask(_LOOKED, wanted)
            rows.found(found["found"])
            _check(rows, anchored)
            if found["told"] is not None:
                here.back()
                return self._as_told(here, asked, found["told"])
            asked.check_known(found["open"]["forgotten"])
            return self._at_gate(here, asked, rows, found["open"]["waiting"] or [])
        except BaseException:
            self._give_up(here)
            raise

    def _entered(self, here: _Connected, asked: _Asked[T], anchored: Head, rows: PostgresRows) -> Any:
        """Go to the gate if it is free, else ask by the table: return what was decided, or what is open at the gate."""
        body, found = asked.request.text(), None
        asked.begins(anchored.index)
        try:
            if body is None or not self._is_crowded:
                wanted = rows.look_for([asked.request], anchored.index)
                found = here.ask(_OPENED, asked.number, here.gate, body is None, _MOST, wanted)
                self._is_crowded = found is None
            if found is None:
                asked.is_waiting = True
                rows.unlooked()
                at = (here.gate, here.turn, anchored.index)
                found = here.ask(_ASKED, asked.number, asked.since, body, *at, _MOST)
        except BaseException:  # The server may have let this session to the gate, and the client does not know.
            self.drop()
            raise
        here.at_gate = not isinstance(found, list)
        return found

    def _heard(self, here: _Connected, asked: _Asked[T], anchored: Head, found: list[Any]) -> T:
        """Take over what somebody else has decided, who may not know what this machine knows."""
        *told, contained, forgotten = found
        if anchored.index and contained != anchored.hash:
            _check(here.rows(), anchored)
        if told[0] is None:
            asked.check_known(forgotten)
        return self._as_told(here, asked, told)

    def _as_told(self, here: _Connected, asked: _Asked[T], row: Any) -> T:
        asked.is_waiting = False
        told, index, written_hash = row
        here.anchor.move(Head(index, written_hash))
        if told is None:  # Whoever was at the gate could not decide it, or would have refused it: here it is said why.
            with self._writing() as rows:
                return asked.request.decide(rows)
        return asked.request.read(here.rows(), told)

    def _at_gate(self, here: _Connected, asked: _Asked[T], rows: PostgresRows, waiting: list[Any]) -> T:
        """Decide what waits and our own request; then go on for others for a while, who are many if anybody waits."""
        ends = time.monotonic() + _SERVICE
        found = self._decided(here, rows, waiting, asked)
        head, asked.is_waiting = rows.head(), False
        try:
            while found is not None:
                if rows.before != rows.set_head(found["head"]):  # Somebody was there who did not wait.
                    here.back()
                    break
                found = self._decided(here, rows, found["waiting"], None, goes_on=time.monotonic() < ends)
        except (driver().Error, DiscreetError):  # What we asked is decided, and those who wait decide theirs.
            self.drop()
        self._persevering(self._connected).anchor.move(head)
        self._refuse(asked)
        return asked.decision[0]

    def _refuse(self, asked: _Asked[T]) -> None:
        """Raise why a request of our own is refused, if it is; damage that it found stays found."""
        if asked.refusal is not None:
            with self._damage.noted():
                raise asked.refusal

    def _decided(
        self,
        here: _Connected,
        rows: PostgresRows,
        waiting: list[Any],
        own: _Asked[T] | None,
        *,
        goes_on: bool = True,
    ) -> Any:
        """Decide what waits, in order, and our own request; commit all at once; return what waits since."""
        try:
            return self._committed(here, rows, waiting, own, _read, goes_on)
        except driver().DataError:  # Something that was asked cannot be stored: each is left to whoever asked.
            rows.back_to(0)
            return self._committed(here, rows, waiting, own, lambda _: None, goes_on)

    def _committed(
        self,
        here: _Connected,
        rows: PostgresRows,
        waiting: list[Any],
        own: _Asked[T] | None,
        read: _Reader,
        goes_on: bool,
    ) -> Any:
        mine = None if own is None else own.number
        batch = {name: read(body) for name, body, is_old in waiting if not is_old and name != mine}
        if wanted := rows.look_for(request for request in batch.values() if request is not None):
            rows.found(here.ask(_LOOKED, wanted))
        if own is not None:
            self._is_crowded = bool(batch)
            own.decision, own.refusal = [], None  # What an attempt decided that was not committed never was.
        outcomes = [(name, _told(rows, request, None)) for name, request in batch.items()]
        if own is not None:
            outcomes.append((own.number, _told(rows, own.request, own)))
            if not waiting:
                self._refuse(own)
        payload = rows.payload(outcomes, [name for name, *_ in waiting])
        found = here.ask(_DECIDED, payload, here.gate, here.turn, _MOST, goes_on and bool(batch))
        here.at_gate = found is not None
        rows.sent()
        return found

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
        self.since, self._attempts = 0, 0  # The chain was at least so long when it was asked first.

    def begins(self, seen: int) -> None:
        """Note that it is asked, once more."""
        self.since = self.since if self._attempts else seen
        self._attempts += 1

    def check_known(self, forgotten: int) -> None:
        """Refuse to ask again if it may have been decided before, and that was forgotten since."""
        if self._attempts > 1 and self.since < forgotten:
            raise LedgerUnavailable(
                "the connection was lost for so long that it cannot be known whether this was charged: see the history "
                "of the ledger. Nothing was released"
            )


def _told(rows: PostgresRows, request: LedgerRequest[T] | None, own: _Asked[T] | None) -> str | None:
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
        if own is not None:
            own.refusal = error
        return None
    if own is not None:
        own.decision.append(decision)
    return told


def _fresh_number() -> str:
    """Return a number that no other request has, as the server writes it."""
    digits = read(16).hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _read(body: str | None) -> LedgerRequest[Any] | None:
    """Read what somebody else asked; None if this release cannot, or if it may have been decided before."""
    try:
        return None if body is None else read_request(body)
    except (DiscreetError, ValueError, LookupError, TypeError, ArithmeticError, AttributeError, RecursionError):
        return None


def _close_all(opened: list[_Connected]) -> None:
    while opened:
        each = opened.pop()  # First: what an interrupt leaves half closed is not used again.
        if each.process == os.getpid():  # What belongs to the parent is not ours to close.
            each.close()


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
