"""Run a short life of a ledger again and again, each time with another write or flush that goes wrong.

Run with faults.c preloaded: `python fault_points.py FOLDER STRIDE [WRONG]`. It prints one JSON object: how many points
there were, how many runs of each kind, and every violation that was found. `WRONG` names a ledger as a wrong author
wrote it; then it ends with the first point that shows one.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import shutil
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from discreet.errors import AnswerFailed, DiscreetError
from discreet.ledger import Account, Budget, Ledger, sqlite_store, verify_chain
from discreet.ledger.charge_record import ReadClaim, StoredAnswer
from discreet.ledger.sqlite_store import FileStore, SqliteRows
from discreet.privacy import PureDP
from discreet.privacy.relation import Relation

ADD = Relation.ADD_REMOVE
ACCOUNT = Account("people", "row", ADD, Budget(1))
CHARGES = 4
PATIENCE = 60.0  # Seconds; a hundredth of one is usual, and the machine may be busy.
KINDS = {
    "killed before": (1, 0),
    "killed after": (2, 0),
    "torn and killed": (3, 0),
    "EIO once": (4, errno.EIO),
    "disk full from here": (5, errno.ENOSPC),
    "read-only from here": (5, errno.EROFS),
    "power off, all lost": (6, 0),
    "power off, some lost": (6, 1),
    "power off, others lost": (6, 2),
}
sqlite_store._CHECKPOINT = 3  # So that checkpoints of the log are among the points, and those of the sums.
sqlite_store.CHECKPOINT_EVERY = verify_chain.CHECKPOINT_EVERY = 5  # type: ignore[misc]


def life(path: Path, outlet: int) -> None:
    """Open, charge and claim, read, store, and tell the world only what was stored; the last read fails."""
    with Ledger.open(path, ACCOUNT) as book:
        for number in range(CHARGES):
            claim = claimed(book, outlet, number)
            charge = claim.charge
            tell(outlet, "charged", charge.id, charge.hash)
            read(outlet, claim)
            text = book.store(claim, partial(drawn, outlet, charge.id))
            tell(outlet, "released", charge.id, text)
        failed = claimed(book, outlet, CHARGES)
        tell(outlet, "charged", failed.charge.id, failed.charge.hash)
        read(outlet, failed)
        book.fail(failed)


def asked(book: Ledger, number: int) -> ReadClaim | StoredAnswer:
    """Ask under a key, with no patience."""
    return book.claim(
        PureDP("0.1"),
        relation=ADD,
        purpose="question",
        idempotency_key=str(number),
        plan=str(number),
        version="v",
        seconds="0.01",
    )


def claimed(book: Ledger, outlet: int, number: int) -> ReadClaim:
    found = asked(book, number)
    assert isinstance(found, ReadClaim)
    return found


def read(outlet: int, claim: ReadClaim) -> None:
    """Read private rows: that it happened cannot be taken back."""
    tell(outlet, "read", claim.charge.id, claim.index)


def claimed_after_reading(book: Ledger, outlet: int, number: int) -> ReadClaim:
    """Wrong: charge, read, and claim when there is something to store."""
    said = {"relation": ADD, "purpose": "question", "idempotency_key": str(number), "plan": str(number), "version": "v"}
    charge = book.charge(PureDP("0.1"), **said)
    tell(outlet, "read", charge.id, 0)
    found = asked(book, number)
    assert isinstance(found, ReadClaim)
    return found


def drawn(outlet: int, index: int) -> str:
    return os.urandom(8).hex()


def drawn_and_told(outlet: int, index: int) -> str:
    """Wrong: answer first, store afterwards."""
    text = os.urandom(8).hex()
    tell(outlet, "released", index, text)
    return text


CONNECT = sqlite_store.connect  # as it is before anything goes wrong


@contextmanager
def anchored_first(self: FileStore) -> Iterator[SqliteRows]:
    """Wrong: the anchor runs ahead of the ledger."""
    files = self._files()
    with files.locked(), sqlite_store.begun(files.connection, "IMMEDIATE"):
        rows = SqliteRows(files.connection)
        files.check(rows)
        yield rows
        files.anchor.move(rows.head())


@contextmanager
def not_begun(connection: sqlite3.Connection, how: str) -> Iterator[None]:
    """Wrong: each statement is a transaction of its own."""
    yield


def connected_lazily(location: str) -> sqlite3.Connection:
    """Wrong: commit without forcing anything to disk."""
    connection = CONNECT(location)
    connection.execute("PRAGMA synchronous = OFF")
    return connection


def go_wrong(how: str) -> None:
    """Put the work of a wrong author in place."""
    if how == "answers before it stores":
        globals()["drawn"] = drawn_and_told
    elif how == "anchors before it commits":
        FileStore.writing = anchored_first  # type: ignore[method-assign]
    elif how == "has no transactions":
        sqlite_store.begun = not_begun
    elif how == "claims after it reads":
        globals()["claimed"] = claimed_after_reading
        globals()["read"] = lambda outlet, claim: None
    elif how == "does not flush":
        sqlite_store.connect = connected_lazily
    else:
        raise ValueError(how)
    for kind in KINDS.keys() - {"killed before", "power off, all lost"}:
        del KINDS[kind]  # These two are enough to catch it.


def tell(outlet: int, *words: object) -> None:
    os.write(outlet, (json.dumps(words) + "\n").encode())


def in_child(path: Path, library: ctypes.CDLL, kind: tuple[int, int], point: int) -> tuple[list[list[object]], int]:
    """Live once in a child with a fault armed; return what the world heard and how many points were passed."""
    inlet, outlet = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(inlet)
        library.fault_arm(kind[0], point, kind[1])
        try:
            life(path, outlet)
        except (DiscreetError, OSError):
            pass
        finally:
            tell(outlet, "seen", library.fault_seen(), "")
            os._exit(0)
    os.close(outlet)
    with os.fdopen(inlet) as pipe:
        heard = [json.loads(line) for line in pipe if line.endswith("\n")]
    os.waitpid(child, 0)
    told = [words for words in heard if words[0] != "seen"]
    return told, next((words[1] for words in heard if words[0] == "seen"), -1)


def violations(path: Path, told: list[list[object]]) -> Iterator[str]:
    """Open again, as after a restart: what the world heard must be in the record, and the record must be whole."""
    start = time.perf_counter()
    with Ledger.open(path, ACCOUNT) as book:
        if time.perf_counter() - start > PATIENCE:
            yield "recovery hangs"
        book.verify()
        entries = {entry.index: entry for entry in book.history()}
        spent = [entry for entry in entries.values() if entry.kind == "charge"]
        if book.spent().epsilon != PureDP("0.1").epsilon * len(spent) or len(spent) > CHARGES + 1:
            yield "the sum is not the sum of the charges"
        if len({entry.content["key"] for entry in spent}) < len(spent):
            yield "a key was charged twice"
        for what, index, detail in told:
            entry = entries.get(int(str(index)))
            if entry is None or entry.kind != "charge":
                yield f"{what}: the charge is lost"
            elif what == "charged" and entry.hash != detail:
                yield "charged: the entry is another one"
            elif what == "released":
                key = str(entry.content["key"])
                stored = book.stored(idempotency_key=key, plan=key, principal="", version="v")
                if stored is None or stored.text != detail:
                    yield "released: the answer is lost or another one"
        yield from reads_again(book, told)
        book.verify()
        book.charge(PureDP("0.1"), relation=ADD, purpose="life goes on")


def reads_again(book: Ledger, told: list[list[object]]) -> Iterator[str]:
    """Ask everything again: what was read is answered as it was, or fails for ever, and is not charged again."""
    read_before = {index for what, index, _ in told if what == "read"}
    before = book.spent().charges
    for entry in book.history():
        if entry.kind != "charge":
            continue
        try:
            found = asked(book, int(entry.content["key"]))
        except AnswerFailed:
            continue
        if isinstance(found, ReadClaim):
            if entry.index in read_before:
                yield "read: it may be read a second time under the same charge"
            book.fail(found)
    if book.spent().charges != before:
        yield "asked again: it was charged again"


def main(folder: Path, stride: int, *, to_the_end: bool) -> None:
    library = ctypes.CDLL(None)
    library.fault_seen.restype = ctypes.c_long
    library.fault_arm.argtypes = (ctypes.c_int, ctypes.c_long, ctypes.c_int)
    (folder / "count").mkdir()
    _, points = in_child(folder / "count" / "ledger", library, (0, 0), -1)
    runs, found = Counter[str](), list[str]()
    for shift, (name, kind) in enumerate(KINDS.items()):
        for point in range(shift % stride, points, stride):
            if found and not to_the_end:
                break
            place = folder / "life"
            place.mkdir()
            told, _ = in_child(place / "ledger", library, kind, point)
            runs[name] += 1
            try:
                found += [f"{name} at {point}: {each}" for each in violations(place / "ledger", told)]
            except DiscreetError as error:
                found.append(f"{name} at {point}: refused, {error}")
            shutil.rmtree(place)
    print(json.dumps({"points": points, "runs": runs, "violations": found}))


if __name__ == "__main__":
    if len(sys.argv) > 3:
        go_wrong(sys.argv[3])
    main(Path(sys.argv[1]), int(sys.argv[2]), to_the_end=len(sys.argv) == 3)
