"""Whatever is lost between a client and the server of a ledger, and whenever: charged once or not at all.

A call to the server is cut before it is sent, or after the server has done it and before the client hears of it; the
backend is ended; the client is killed; the server is killed. Every call of a short life is such a point.
"""

from __future__ import annotations

import itertools
import os
import random
import select
import signal
import socket
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest
from postgres_cluster import Cluster, own_cluster
from searching import searched
from system_parts import needs_postgres

from discreet.errors import BudgetExceeded, DiscreetError, LedgerDamaged
from discreet.ledger import Account, Budget, Ledger
from discreet.ledger.anchor import Anchor
from discreet.ledger.charge_record import Head, ReadClaim
from discreet.ledger.postgres_store import PostgresStore, _Connected
from discreet.privacy import PureDP
from discreet.privacy.relation import Relation

pytestmark = needs_postgres

ADD = Relation.ADD_REMOVE
ACCOUNT = Account("people", "row", ADD, Budget(1))
SMALL = PureDP("1e-6")
CALLS = ((_Connected, "ask"), (_Connected, "execute"), (Anchor, "move"))  # All that a store does to others.


def cut(here: Any) -> None:
    """Cut the connection: neither side hears from the other again."""
    with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(here.connection.fileno())) as wire:
        wire.shutdown(socket.SHUT_RDWR)


def lose_before(here: Any, call: Callable[[], Any]) -> Any:
    cut(here)
    return call()


def lose_after(here: Any, call: Callable[[], Any]) -> Any:
    """The server has done it, and nobody hears of it."""
    call()
    cut(here)
    raise psycopg.OperationalError("the connection was lost")


def end_backend(here: Any, call: Callable[[], Any]) -> Any:
    with suppress(psycopg.Error):
        place = here.connection.info
        with psycopg.connect(host=place.host, port=place.port, dbname=place.dbname, user=place.user) as other:
            other.execute("SELECT pg_terminate_backend(%s)", (here.connection.info.backend_pid,))
    time.sleep(0.01)
    return call()


def kill_before(here: Any, call: Callable[[], Any]) -> Any:
    os.kill(os.getpid(), signal.SIGKILL)


def kill_after(here: Any, call: Callable[[], Any]) -> Any:
    call()
    os.kill(os.getpid(), signal.SIGKILL)


@contextmanager
def fault(point: int, what: Callable[..., Any], patch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Let one call go wrong; count the calls."""
    seen = [0]
    with patch.context() as inside:
        for kind, name in CALLS:
            real = getattr(kind, name)

            def call(self: Any, *given: Any, real: Any = real) -> Any:
                seen[0] += 1
                if seen[0] == point and hasattr(self, "connection"):
                    return what(self, lambda: real(self, *given))
                if seen[0] == point and what in (kill_before, kill_after):
                    return what(self, lambda: real(self, *given))
                return real(self, *given)

            inside.setattr(kind, name, call)
        yield seen


def life(book: Ledger, tell: Callable[[str, Any], None]) -> None:
    """Charge and claim, read, store; and tell the world what was told here."""
    for number in range(2):
        key = str(number)
        said = {
            "relation": ADD,
            "purpose": "q",
            "principal": "ana",
            "idempotency_key": key,
            "plan": key,
            "version": "v",
        }
        claim = book.claim(SMALL, seconds=3, **said)
        assert isinstance(claim, ReadClaim)
        tell("charged", claim.charge.id)
        text = book.store(claim, lambda: os.urandom(8).hex())
        tell("answered", text)
    paid = book.charge(SMALL, relation=ADD, purpose="q")
    tell("charged", paid.id)


def check_told(place: str, told: list[tuple[str, Any]], *, most: int = 3) -> None:
    """What was told is in the record, nothing is there twice, and what follows from the chain is there."""
    with Ledger.open(place, ACCOUNT) as book:
        book.verify()
        entries = book.history()
        charges = {entry.index for entry in entries if entry.kind == "charge"}
        assert len(charges) <= most
        assert {value for kind, value in told if kind == "charged"} <= charges
        answers = {book.stored(principal="ana", version="v", plan=key, idempotency_key=key) for key in "01"}
        texts = {answer.text for answer in answers if answer is not None}
        assert {value for kind, value in told if kind == "answered"} <= texts
        assert book.spent().epsilon == SMALL.epsilon * len(charges)


def fresh(place: str, name: str) -> str:
    return f"{place}_{name}"


def calls_of_a_life(place: str, crowded: bool, patch: pytest.MonkeyPatch) -> int:
    with Ledger.open(fresh(place, "count"), ACCOUNT) as book, fault(0, lose_before, patch) as seen:
        crowd(book, crowded)
        life(book, lambda *_: None)
    return seen[0]


def crowd(book: Ledger, crowded: bool) -> None:
    """Let a store believe that others wait, so that it asks by way of the table."""
    store = book._store
    assert isinstance(store, PostgresStore)
    store._is_crowded = crowded


def survived(place: str, what: Callable[..., Any], crowded: bool, stride: int, patch: pytest.MonkeyPatch) -> int:
    """Let each call of a life go wrong once: the life goes on as if nothing had happened, and each charge is one."""
    points = range(1, calls_of_a_life(place, crowded, patch) + 1, stride)
    for point in points:
        here, told = fresh(place, f"{point}"), list[tuple[str, Any]]()
        with Ledger.open(here, ACCOUNT) as book:
            crowd(book, crowded)
            with fault(point, what, patch):
                life(book, lambda kind, value: told.append((kind, value)))  # noqa: B023
            assert book.spent().charges == 3, point
        assert len(told) == 5
        check_told(here, told)
    return len(points)


@pytest.mark.long
@pytest.mark.parametrize("crowded", [False, True], ids=["alone", "by the table"])
@pytest.mark.parametrize("what", [lose_before, lose_after, end_backend])
def test_a_lost_connection_charges_once(
    what: Callable[..., Any], crowded: bool, server_place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert survived(server_place, what, crowded, 4, monkeypatch) >= 5


@pytest.mark.slow
@pytest.mark.parametrize("crowded", [False, True], ids=["alone", "by the table"])
@pytest.mark.parametrize("what", [lose_before, lose_after, end_backend])
def test_a_connection_that_is_lost_at_any_call_charges_once(
    what: Callable[..., Any], crowded: bool, server_place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert survived(server_place, what, crowded, 1, monkeypatch) >= 15


def decided_alone(self: PostgresStore, asked: Any) -> Any:
    with self._writing() as rows:
        return asked.request.decide(rows)


def test_a_commit_that_is_lost_is_looked_up_until_it_is_known(
    server_place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What nobody could decide for others is done alone. Its COMMIT is lost, and so is the first look for it."""
    lost: list[str] = []
    real = _Connected.execute

    def unlucky(self: Any, text: str, *values: Any) -> Any:
        if text == "COMMIT" and not lost:
            lost.append(text)
            return lose_after(self, lambda: real(self, text, *values))
        if "advisory_xact_lock" in text and lost == ["COMMIT"]:
            lost.append(text)
            return lose_before(self, lambda: real(self, text, *values))
        return real(self, text, *values)

    with Ledger.open(server_place, ACCOUNT) as book:
        monkeypatch.setattr(PostgresStore, "_attempt", decided_alone)
        monkeypatch.setattr(_Connected, "execute", unlucky)
        book.charge(SMALL, relation=ADD, purpose="q")
        assert len(lost) == 2
        assert book.spent().charges == 1


def test_a_turn_that_was_given_to_a_client_that_was_interrupted_is_free_again(
    server_place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = _Connected.ask

    def interrupted(self: Any, statement: str, *values: Any) -> Any:
        found = real(self, statement, *values)
        if ".asked(" in statement:
            raise KeyboardInterrupt
        return found

    with Ledger.open(server_place, ACCOUNT) as one, Ledger.open(server_place, ACCOUNT) as two:
        crowd(one, True)
        with monkeypatch.context() as patch:
            patch.setattr(_Connected, "ask", interrupted)
            with pytest.raises(KeyboardInterrupt):
                one.charge(SMALL, relation=ADD, purpose="q")
        store = two._store
        assert isinstance(store, PostgresStore)
        here = store._connected()
        for lock in (here.gate, here.turn):
            here.execute("SELECT pg_advisory_lock(%s)", lock)
            here.execute("SELECT pg_advisory_unlock(%s)", lock)
        two.charge(SMALL, relation=ADD, purpose="q")
        assert two.spent().charges == 1  # What was interrupted was withdrawn.


def asks_again_under_a_new_number(self: PostgresStore, asked: Any) -> Any:
    asked.number = str(uuid.uuid4())
    return RIGHT(self, asked)


RIGHT = PostgresStore._attempt


def test_a_store_that_asks_again_without_looking_is_caught(server_place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PostgresStore, "_attempt", asks_again_under_a_new_number)
    with pytest.raises((AssertionError, DiscreetError)):
        survived(server_place, lose_after, False, 1, monkeypatch)


def killed(place: str, point: int, what: Callable[..., Any], crowded: bool, patch: pytest.MonkeyPatch) -> list[Any]:
    """Live in a child that is killed at a call; return what the world heard."""
    inlet, outlet = os.pipe()
    child = os.fork()
    if child == 0:
        with suppress(BaseException), Ledger.open(place, ACCOUNT) as book:
            crowd(book, crowded)
            with fault(point, what, patch):
                life(book, lambda kind, value: os.write(outlet, f"{kind} {value}\n".encode()) and None)
        os._exit(0)
    os.close(outlet)
    with os.fdopen(inlet) as pipe:
        told = [line.split() for line in pipe if line.endswith("\n")]
    os.waitpid(child, 0)
    return [(kind, int(value) if kind == "charged" else value) for kind, value in told]


def kills(place: str, stride: int, patch: pytest.MonkeyPatch) -> None:
    for crowded in (False, True):
        calls = calls_of_a_life(fresh(place, f"c{int(crowded)}"), crowded, patch)
        for what in (kill_before, kill_after):
            for point in range(1, calls + 1, stride):
                here = fresh(place, f"{int(crowded)}{what.__name__}{point}")
                check_told(here, killed(here, point, what, crowded, patch))


@pytest.mark.long
def test_a_client_that_is_killed_loses_nothing_that_was_told(
    server_place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kills(server_place, 6, monkeypatch)


@pytest.mark.slow
def test_a_client_that_is_killed_at_any_call_loses_nothing_that_was_told(
    server_place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kills(server_place, 1, monkeypatch)


def anchors_first(self: PostgresStore, here: Any, number: str) -> None:
    """Wrong: the anchor is ahead of the ledger when the commit does not come through."""
    here.anchor.move(Head(10**6, "0" * 64))
    COMMIT(self, here, number)


COMMIT = PostgresStore._commit


def test_a_store_that_anchors_before_it_commits_is_caught(server_place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with Ledger.open(server_place, ACCOUNT) as book, monkeypatch.context() as wrong, suppress(DiscreetError):
        wrong.setattr(PostgresStore, "_commit", anchors_first)
        book.raise_budget(Budget(2), reason="more", principal="ana")
    with pytest.raises(LedgerDamaged):
        check_told(server_place, [])


# --- many at once ---


def spender(book: Ledger, outlet: int, life: int) -> None:
    """Charge until killed or until nothing is left; each charge is told when it was returned."""
    with suppress(BudgetExceeded):
        for number in itertools.count():
            paid = book.charge(SMALL, relation=ADD, purpose="q", idempotency_key=f"{life}-{number}")
            os.write(outlet, f"{paid.id}\n".encode())


class Crowd:
    """Processes that spend, and are replaced when they die; the world hears every charge that they were told.

    They are forked from one that has the ledger open, so that each begins with a connection and not by verifying.
    """

    def __init__(self, book: Ledger, processes: int) -> None:
        self.book, self.lives = book, 0
        self.inlet, self.outlet = os.pipe()
        os.set_blocking(self.inlet, False)
        self.heard: list[int] = []
        self._rest = b""
        self.running: set[int] = set()
        for _ in range(processes):
            self.start()

    def start(self) -> None:
        self.lives += 1
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            code = 1
            try:
                spender(self.book, self.outlet, self.lives)
                code = 0
            except DiscreetError:
                code = 3
            finally:
                os._exit(code)
        self.running.add(child)

    def listen(self, seconds: float) -> None:
        if select.select([self.inlet], [], [], seconds)[0]:
            with suppress(BlockingIOError):
                while part := os.read(self.inlet, 1 << 16):
                    *lines, self._rest = (self._rest + part).split(b"\n")
                    self.heard += [int(line) for line in lines]

    def ended(self) -> list[int]:
        """Return the exit codes of those that ended since."""
        codes = []
        for child in list(self.running):
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                self.running.remove(child)
                codes.append(os.waitstatus_to_exitcode(status))
        return codes

    def close(self) -> None:
        for child in self.running:
            os.kill(child, signal.SIGKILL)
        while self.running:
            self.listen(0.01)
            self.ended()
        self.listen(0.01)
        os.close(self.inlet)
        os.close(self.outlet)


def happen(what: str, cluster: Cluster, crowd: Crowd, chance: random.Random) -> None:
    """Kill a client, end the backend of one, or let the power of the server fail."""
    if what == "restart":
        cluster.restart("immediate")
    elif what == "kill" and crowd.running:
        os.kill(chance.choice(sorted(crowd.running)), signal.SIGKILL)
    else:
        with suppress(psycopg.Error):
            cluster.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = "
                "'discreet ledger' ORDER BY random() LIMIT 1"
            )


def run_crowd(
    cluster: Cluster, place: str, *, processes: int, charges: int, kills: int, ends: int, restarts: int, seed: int
) -> dict[str, float]:
    """Spend under kills of clients, backends and the server until nothing is left; compare the record.

    The budget holds just so many charges: one more is overspent, one fewer was lost with nobody to take its place.
    """
    chance, account = random.Random(seed), Account("people", "row", ADD, Budget(SMALL.epsilon * charges))
    faults = ["kill"] * kills + ["end"] * ends + ["restart"] * restarts
    chance.shuffle(faults)
    every, happened, codes = charges * 0.95 / (len(faults) + 1), Counter[str](), Counter[int]()
    with Ledger.open(place, account) as book:
        crowd, began = Crowd(book, processes), time.monotonic()
        while crowd.running:
            crowd.listen(0.05)
            for code in crowd.ended():
                codes[code] += 1
                if code:  # It did not end because nothing is left.
                    crowd.start()
            while happened.total() < len(faults) and len(crowd.heard) > every * (happened.total() + 1):
                what = faults[happened.total()]
                happen(what, cluster, crowd, chance)
                happened[what] += 1
        seconds = time.monotonic() - began
        crowd.close()
    with Ledger.open(place, account) as book:
        book.verify()
        made = [entry.index for entry in book.history() if entry.kind == "charge"]
        assert set(crowd.heard) <= set(made)  # Nothing that was told is lost,
        assert len(set(crowd.heard)) == len(crowd.heard)  # nothing was told twice,
        assert len(made) - len(crowd.heard) <= happened.total() - happened["restart"] + processes * restarts
        assert len(made) == charges  # and all of the budget is spent, and no more.
        assert book.left().share == 0
    assert happened.total() == len(faults)
    assert set(codes) <= {0, -signal.SIGKILL}  # Nobody who lived was told an error.
    return {"told": len(crowd.heard), "charged": len(made), "lives": crowd.lives, "seconds": seconds, **happened}


def crowd_on_a_server_of_its_own(tmp_path: Path, patch: pytest.MonkeyPatch, **sizes: int) -> str:
    patch.setenv("XDG_STATE_HOME", str(tmp_path))
    with own_cluster() as cluster, cluster.database() as dsn:
        return f"\na ledger on a server: {run_crowd(cluster, dsn, **sizes)}"


@pytest.mark.long
def test_processes_that_are_killed_lose_and_overspend_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sizes = {"processes": 6, "charges": 400, "kills": 8, "ends": 4, "restarts": 1}
    said = crowd_on_a_server_of_its_own(tmp_path, monkeypatch, **sizes, seed=searched(1))
    with capsys.disabled():
        print(said)


@pytest.mark.slow
def test_16_processes_10_000_charges_and_50_kills_lose_and_overspend_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sizes = {"processes": 16, "charges": 10_000, "kills": 50, "ends": 20, "restarts": 2}
    said = crowd_on_a_server_of_its_own(tmp_path, monkeypatch, **sizes, seed=searched(3))
    with capsys.disabled():
        print(said)


def test_processes_spend_exactly_what_a_server_holds(server_place: str) -> None:
    """Half of what is tried fits: exactly that half is made."""
    account = Account("people", "row", ADD, Budget(SMALL.epsilon * 100))
    Ledger.open(server_place, account).close()
    inlet, outlet = os.pipe()
    children = []
    for _ in range(4):
        child = os.fork()
        if child == 0:
            with suppress(BaseException), Ledger.open(server_place, account) as book:
                for _ in range(50):
                    with suppress(BudgetExceeded):
                        os.write(outlet, f"{book.charge(SMALL, relation=ADD, purpose='q').id}\n".encode())
            os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)
    os.close(outlet)
    with os.fdopen(inlet) as pipe:
        made = [int(line) for line in pipe]
    assert len(made) == len(set(made)) == 100
    with Ledger.open(server_place, account) as book:
        book.verify()
        assert book.left().share == 0


def test_two_who_both_believe_to_be_at_the_gate_cannot_both_write(
    server_place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Locks that protect nothing, as behind a pooler: the head and the index of the entries refuse the second."""
    with Ledger.open(server_place, ACCOUNT) as one, Ledger.open(server_place, ACCOUNT) as two:
        stores = [book._store for book in (one, two)]
        for number, store in enumerate(stores):
            assert isinstance(store, PostgresStore)
            store._connected().gate = number
        entered, go = threading.Event(), threading.Event()
        real = PostgresStore._decided

        def slow(self: PostgresStore, *given: Any) -> Any:
            if self is stores[0]:
                entered.set()
                go.wait(10)
            return real(self, *given)

        monkeypatch.setattr(PostgresStore, "_decided", slow)
        raised: list[BaseException] = []

        def first() -> None:
            try:
                one.charge(SMALL, relation=ADD, purpose="q")
            except DiscreetError as error:
                raised.append(error)

        thread = threading.Thread(target=first)
        thread.start()
        entered.wait(10)
        two.charge(SMALL, relation=ADD, purpose="q")
        go.set()
        thread.join()
        assert len(raised) == 1
        two.verify()
        assert two.spent().charges == 1


@pytest.mark.soak
def test_64_processes_100_000_charges_and_500_kills_lose_and_overspend_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sizes = {"processes": 64, "charges": 100_000, "kills": 500, "ends": 200, "restarts": 5}
    said = crowd_on_a_server_of_its_own(tmp_path, monkeypatch, **sizes, seed=searched(2))
    with capsys.disabled():
        print(said)
