"""Many processes and threads spend from one budget: none of it twice, none of it lost."""

from __future__ import annotations

import gc
import inspect
import multiprocessing
import os
import signal
import sqlite3
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from recorded import Recorded

from discreet.errors import BudgetExceeded, DiscreetError, LedgerDamaged, LedgerUnavailable, Refused
from discreet.file_locks import try_to_lock
from discreet.ledger import Account, Budget, Ledger, sqlite_store, store
from discreet.ledger.anchor import Anchor
from discreet.ledger.charge_record import Head
from discreet.ledger.sqlite_store import FileStore, SqliteRows
from discreet.ledger.store import CommitLine, WaitingRequest
from discreet.noise.source import _replaced
from discreet.privacy import PureDP
from discreet.privacy.relation import Relation

ADD = Relation.ADD_REMOVE
TINY = PureDP("1e-6")


def account(budget: Budget) -> Account:
    return Account("people", "row", ADD, budget)


def spend(book: Ledger, event: PureDP, times: int) -> list[int]:
    """Charge up to `times`; return the charges that were made."""
    made = []
    for _ in range(times):
        try:
            made.append(book.charge(event, relation=ADD, purpose="question").id)
        except DiscreetError:  # Nothing is left, or, in a wrong ledger, somebody else took the place.
            continue
    return made


def spender(path: Path, budget: Budget, event: PureDP, times: int, start: Any, results: Any) -> None:
    start.wait()
    made: list[int] = []
    try:
        with Ledger.open(path, account(budget)) as book:
            made = spend(book, event, times)
    finally:
        results.put(made)


def race(path: Path, processes: int, times: int, budget: Budget, event: PureDP, method: str) -> tuple[list[int], float]:
    """Let processes spend at the same time; return all charges that were made, and how many were tried in a second."""
    context = multiprocessing.get_context(method)
    start, results = context.Barrier(processes + 1), context.Queue()
    given = (path, budget, event, times, start, results)
    running = [context.Process(target=spender, args=given) for _ in range(processes)]
    for each in running:
        each.start()
    start.wait()
    began = time.perf_counter()
    made = [index for _ in running for index in results.get()]
    seconds = time.perf_counter() - began
    for each in running:
        each.join()
    return made, processes * times / seconds


def check_race(path: Path, processes: int, times: int, method: str = "fork") -> float:
    """Half of what is tried fits: exactly that half is made, no charge is lost and none is there twice."""
    total = processes * times // 2
    event = PureDP("1e-6")
    budget = Budget(event.epsilon * total)
    made, rate = race(path, processes, times, budget, event, method)
    assert len(made) == len(set(made)) == total
    with Ledger.open(path, account(budget)) as book:
        book.verify()
        assert book.spent().epsilon == budget.epsilon
        assert {entry.index for entry in book.history() if entry.kind == "charge"} == set(made)
    return rate


@pytest.mark.long
def test_processes_spend_exactly_the_budget(quick_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rate = check_race(quick_folder / "ledger", 8, 500)
    with capsys.disabled():
        print(f"\n8 processes: {rate:.0f} charges a second, overspent 0, lost 0")


@contextmanager
def unguarded(self: FileStore, **_: Any) -> Iterator[SqliteRows]:
    """Wrong: read the sums, let others run, write the sums."""
    rows = SqliteRows(self._files().connection)
    rows.head()
    time.sleep(0.001)
    yield rows


def test_a_ledger_without_exclusive_transactions_is_caught(quick_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FileStore, "_writing", unguarded)
    # A race may end before two have met: it is begun again until they have.
    assert any(is_damaged_by_a_race(quick_folder / f"ledger {attempt}") for attempt in range(8))


def is_damaged_by_a_race(path: Path) -> bool:
    Ledger.open(path, account(Budget(1))).close()
    made, _ = race(path, 4, 25, Budget(1), PureDP(Fraction(1, 50)), "fork")
    assert made
    try:
        Ledger.open(path, account(Budget(1))).close()
    except LedgerDamaged:
        return True
    return False


@pytest.mark.long
def test_processes_that_were_spawned_spend_exactly_the_budget(tmp_path: Path) -> None:
    check_race(tmp_path / "ledger", 2, 40, "spawn")


@pytest.mark.soak
def test_64_processes_and_100_000_charges_spend_exactly_the_budget(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rate = check_race(tmp_path / "ledger", 64, 1563)
    with capsys.disabled():
        print(f"\n64 processes: {rate:.0f} charges a second, overspent 0, lost 0")


@pytest.mark.parametrize("place", ["memory", "file"])
def test_threads_spend_exactly_the_budget(place: str, tmp_path: Path) -> None:
    with Ledger.open("memory" if place == "memory" else tmp_path / "ledger", account(Budget(1))) as book:
        with ThreadPoolExecutor(16) as pool:
            made = [index for each in pool.map(lambda _: spend(book, PureDP("0.01"), 20), range(16)) for index in each]
        assert len(made) == len(set(made)) == 100
        assert book.spent().epsilon == 1
        book.verify()


# --- group commit: what threads ask while one writes is decided together ---


@dataclass
class Asked:
    """Requests of threads, of which the first leads and the others wait for it, or for the next one to lead."""

    book: Ledger
    store: FileStore
    told: list[int]
    refused: list[Exception]

    def ask(self, event: PureDP) -> threading.Thread:
        """Ask from a thread of its own, once that is in line."""

        line, before = self.store._line, self.waiting
        thread = threading.Thread(target=self.charge, args=(event,))
        thread.start()
        wait_until(lambda: bool(line._place) and self.waiting > before)
        return thread

    def charge(self, event: PureDP) -> None:
        """Note what is told."""
        try:
            self.told.append(self.book.charge(event, relation=ADD, purpose="question").id)
        except Exception as error:  # noqa: BLE001
            self.refused.append(error)

    @property
    def waiting(self) -> int:
        """How many wait for one who leads; -1: nobody does."""
        return len(self.store._line._queue) - 1


def wait_until(is_so: Callable[[], bool]) -> None:
    ends = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < ends
        time.sleep(0.001)


@pytest.fixture
def asked(quick_folder: Path) -> Iterator[Asked]:
    with Ledger.open(quick_folder / "ledger", account(Budget(1))) as book:
        assert isinstance(book._store, FileStore)
        yield Asked(book, book._store, [], [])


def answered_together(asked: Asked, events: list[PureDP]) -> None:
    """Let one thread lead and wait for its turn while the others come; then all but the first are one transaction."""
    with asked.store.turn.lock:
        threads = [asked.ask(event) for event in events]
    for thread in threads:
        thread.join()


def test_what_waits_is_decided_in_one_transaction(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    flushes, move = [], Anchor.move
    monkeypatch.setattr(Anchor, "move", lambda self, head: (flushes.append(head.index), move(self, head))[1])
    answered_together(asked, [PureDP("0.1")] * 8)
    assert sorted(asked.told) == list(range(2, 10))
    assert flushes == [2, 9]
    asked.book.verify()


def test_what_does_not_fit_is_refused_alone(asked: Asked) -> None:
    answered_together(asked, [PureDP("0.1"), PureDP(2), PureDP("0.2"), PureDP("0.9"), PureDP("0.3")])
    assert len(asked.told) == 3
    assert [type(error) for error in asked.refused] == [BudgetExceeded] * 2
    assert asked.book.spent().epsilon == Fraction(6, 10)
    asked.book.verify()


def told_before_it_is_durable(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> int:
    """Hold the anchor of a group back; return how many were told meanwhile, of what a crash might lose."""
    held, move = threading.Event(), Anchor.move
    writing = threading.Event()

    def moved(self: Anchor, head: Head) -> None:
        if head.index > 2:
            writing.set()
            held.wait(30)
        move(self, head)

    monkeypatch.setattr(Anchor, "move", moved)
    with asked.store.turn.lock:
        threads = [asked.ask(PureDP("0.1")) for _ in range(6)]
    writing.wait(30)
    time.sleep(0.1)
    told = len(asked.told) - 1  # The first was a transaction of its own.
    held.set()
    for thread in threads:
        thread.join()
    return told


def settled_early(self: FileStore, batch: list[WaitingRequest]) -> None:
    """Wrong: wake whoever waits as soon as it is decided."""
    with self.writing() as rows:
        for each in batch:
            each.settle(each.request.decide(rows))
            if each is not batch[0]:
                each.end(None)
                each.wake()
                time.sleep(0.01)


def test_nobody_is_told_before_the_group_is_durable(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    assert told_before_it_is_durable(asked, monkeypatch) == 0
    assert len(asked.told) == 6


def test_a_group_that_is_told_before_its_commit_is_caught(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FileStore, "_together", settled_early)
    assert told_before_it_is_durable(asked, monkeypatch) > 0


def test_a_group_that_is_not_anchored_is_told_to_nobody(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(self: Anchor, head: Head) -> None:
        raise LedgerUnavailable("the anchor could not be written; nothing was released")

    with monkeypatch.context() as patched:
        patched.setattr(Anchor, "move", failing)
        answered_together(asked, [PureDP("0.1")] * 4)
    assert asked.told == []
    assert [type(error) for error in asked.refused] == [LedgerUnavailable] * 4
    asked.book.verify()


def test_an_interrupt_of_the_leader_is_no_interrupt_of_others() -> None:
    """They are told that nothing was released, and the next one leads."""
    line, waits, told = CommitLine(), threading.Event(), list[BaseException]()

    def interrupted(batch: list[WaitingRequest]) -> None:
        waits.wait(30)
        if batch[0].request == "interrupted":
            raise KeyboardInterrupt
        batch[0].settle("decided")

    def ask() -> None:
        try:
            line.through("interrupted", interrupted)
        except BaseException as error:  # noqa: BLE001
            told.append(error)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for number, thread in enumerate(threads):
        thread.start()
        wait_until(partial(is_in_line, line, number))
    waits.set()
    for thread in threads:
        thread.join(30)
    kinds = Counter(type(error) for error in told)
    assert kinds == {KeyboardInterrupt: 2, LedgerUnavailable: 2}  # The second leads the others, who came meanwhile.
    assert line.through("last", interrupted).decision == "decided"


def test_an_interrupt_at_any_line_leaves_nobody_waiting(asked: Asked) -> None:
    """Interrupt one who leads, then one who waits, at each line of the code of the line."""
    lines, first = inspect.getsourcelines(CommitLine)
    hits = 0
    for line in range(first, first + len(lines)):
        for waits in (False, True):
            hits += was_interrupted(asked, line, waits=waits)
    assert hits > 40
    assert not asked.store._line._queue
    assert not asked.store._line._place
    recorded = {entry.index for entry in asked.book.history() if entry.kind == "charge"}
    assert set(asked.told) <= recorded
    assert len(set(asked.told)) == len(asked.told)
    assert {type(error) for error in asked.refused} <= {LedgerUnavailable}
    asked.book.verify()


def was_interrupted(asked: Asked, line: int, *, waits: bool) -> bool:
    """Interrupt one thread of several at a line, and see that all others end, and one that comes later."""
    hit, interrupted = list[int](), threading.Thread(target=lambda: ask_until(asked, line, hit))
    with asked.store.turn.lock:
        threads = [asked.ask(TINY)] if waits else []
        interrupted.start()
        ends = time.monotonic() + 0.01
        while interrupted.is_alive() and not asked.waiting and time.monotonic() < ends:
            time.sleep(0.001)
        threads += [threading.Thread(target=asked.charge, args=(TINY,)) for _ in range(2)]
        for thread in threads[-2:]:
            thread.start()
    late = threading.Thread(target=asked.charge, args=(TINY,))
    late.start()
    for thread in (interrupted, *threads, late):
        thread.join(30)
        assert not thread.is_alive()
    return bool(hit)


def ask_until(asked: Asked, line: int, hit: list[int]) -> None:
    def stop(frame: FrameType, event: str, _: Any) -> Any:
        if event == "line" and frame.f_lineno == line and not hit:
            hit.append(line)
            raise KeyboardInterrupt
        return stop

    def follow(frame: FrameType, *_: Any) -> Any:
        return stop if frame.f_code.co_filename == store.__file__ else None

    sys.settrace(follow)
    with suppress(KeyboardInterrupt):
        asked.charge(TINY)
    sys.settrace(None)


def test_a_request_that_cannot_be_stored_is_refused_alone(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a text that is longer than sqlite3 takes: who asked at the same time has nothing to do with it."""
    append = SqliteRows.append

    def limited(self: SqliteRows, head: Head, body: str) -> None:
        if '"1/7"' in body:
            raise sqlite3.DataError("string or blob too big")
        append(self, head, body)

    monkeypatch.setattr(SqliteRows, "append", limited)
    answered_together(asked, [PureDP("0.1"), PureDP("0.1"), PureDP(Fraction(1, 7)), PureDP("0.1")])
    assert len(asked.told) == 3
    assert [type(error) for error in asked.refused] == [LedgerUnavailable]
    asked.book.verify()


def test_damage_that_one_of_a_group_finds_is_told_to_all(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    """And nobody is charged then: not who asked before it, nor who asks later."""
    append = SqliteRows.append

    def damaged(self: SqliteRows, head: Head, body: str) -> None:
        if '"1/7"' in body:
            raise LedgerDamaged("a text of this ledger was changed")
        append(self, head, body)

    monkeypatch.setattr(SqliteRows, "append", damaged)
    answered_together(asked, [PureDP("0.1"), PureDP("0.1"), PureDP(Fraction(1, 7)), PureDP("0.1")])
    assert len(asked.told) == 1  # who was a transaction of its own, before the others
    asked.charge(PureDP("0.1"))
    assert [type(error) for error in asked.refused] == [LedgerDamaged] * 4
    asked.book.verify()


def test_what_an_interrupt_leaves_half_closed_is_not_used_again(
    place: Path | str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Ledger.open(place, account(Budget(1))) as book:
        opened = book._store._open[0]  # type: ignore[attr-defined]
        close = type(opened).close

        def interrupted(self: Any) -> None:
            close(self)
            raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr(type(opened), "close", interrupted)
            with pytest.raises(KeyboardInterrupt):
                book._store.drop()  # type: ignore[attr-defined]
        assert len(spend(book, TINY, 2)) == 2
        book.verify()


def test_an_interrupt_of_a_transaction_locks_nobody_out(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    """At every step of it, also between a lock and the block that lets it go: another connection can write."""
    lines, first = inspect.getsourcelines(sqlite_store.OpenFiles.locked)
    begun, start = inspect.getsourcelines(sqlite_store.begun)
    hits = 0
    for line in (*range(first, first + len(lines)), *range(start, start + len(begun))):
        hit: list[int] = []
        monkeypatch.setattr(store, "__file__", sqlite_store.__file__)
        ask_until(asked, line, hit)
        monkeypatch.undo()
        hits += bool(hit)
        other = sqlite3.connect(asked.store.path, timeout=5, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        other.close()
        lock = os.open(asked.store.path.with_name("ledger.lock"), os.O_RDWR)
        try_to_lock(lock)
        os.close(lock)
        assert spend(asked.book, TINY, 1)
    assert hits > 6
    asked.book.verify()


def is_in_line(line: CommitLine, waiting: int) -> bool:
    return bool(line._place) and len(line._queue) == waiting + 1


def test_a_thread_in_its_own_transaction_does_not_wait_for_itself(asked: Asked) -> None:
    """Another thread leads and waits for the transaction in which this one asks."""
    charge = asked.book.charge(PureDP("0.1"), relation=ADD, purpose="question")

    def draw() -> str:
        asked.ask(PureDP("0.1"))
        with pytest.raises(Refused, match="inside its own transaction"):
            asked.book.charge(PureDP("0.1"), relation=ADD, purpose="question")
        return "42"

    assert asked.book.store(charge, draw) == "42"
    wait_until(lambda: len(asked.told) == 1)
    asked.book.verify()


def test_a_signal_handler_does_not_wait_for_the_thread_that_it_has_come_upon(
    asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who leads has a place in the line before it has the turn; a handler runs in its thread, and it goes on after."""
    together = FileStore._together

    def signalled(self: FileStore, batch: list[WaitingRequest]) -> None:
        if not asked.refused:
            signal.raise_signal(signal.SIGUSR1)
        together(self, batch)

    monkeypatch.setattr(FileStore, "_together", signalled)
    before = signal.signal(signal.SIGUSR1, lambda *_: asked.charge(TINY))
    try:
        asked.charge(TINY)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert [type(error) for error in asked.refused] == [Refused]
    assert len(asked.told) == len(spend(asked.book, TINY, 1)) == 1


def test_a_child_has_none_of_the_threads_that_wait(asked: Asked) -> None:
    asked.store._line._place["leads"] = WaitingRequest(
        None
    )  # as while another thread leads, which a fork leaves behind
    assert in_child(lambda: len(spend(asked.book, PureDP("0.1"), 3))) == 3
    asked.store._line._place.clear()
    assert asked.book.spent().charges == 3


def spend_and_tell(path: Path, outlet: int) -> None:
    """Charge from threads until killed; the world hears of a charge only when the ledger has returned."""
    with Ledger.open(path, account(Budget(1))) as book, ThreadPoolExecutor(8) as pool:

        def go_on(_: int) -> None:
            for _ in range(10**6):
                os.write(outlet, f"{spend(book, TINY, 1)[0]}\n".encode())

        list(pool.map(go_on, range(8)))


def killed_after(path: Path, seconds: float) -> set[int]:
    inlet, outlet = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(inlet)
            spend_and_tell(path, outlet)
        finally:
            os._exit(1)
    os.close(outlet)
    with os.fdopen(inlet) as pipe:
        first = pipe.readline()
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
        told = {int(line) for line in [first, *pipe] if line.endswith("\n")}
    os.waitpid(child, 0)
    return told


@pytest.mark.long
def test_a_killed_process_of_threads_loses_nothing_that_was_told(quick_folder: Path) -> None:
    place, heard = quick_folder / "ledger", set[int]()
    for life in range(6):
        heard |= killed_after(place, 0.01 * life)
        with Ledger.open(place, account(Budget(1))) as book:
            assert heard <= {entry.index for entry in book.history() if entry.kind == "charge"}
    assert len(heard) > 20


def test_one_key_in_many_threads_is_charged_and_answered_once(place: Path | str) -> None:
    with Ledger.open(place, account(Budget(1))) as book:

        def ask(_: int) -> str:
            charge = book.charge(PureDP("0.1"), relation=ADD, purpose="q", idempotency_key="k", plan="p", version="v")
            return book.store(charge, lambda: os.urandom(8).hex())

        with ThreadPoolExecutor(8) as pool:
            assert len(set(pool.map(ask, range(40)))) == 1
        assert book.spent().charges == 1


def in_child(work: Callable[[], int]) -> int:
    """Run in a fork of this process; return what it returns, 99 if it raises."""
    child = os.fork()
    if child == 0:
        code = 99
        try:
            code = work()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_forked_child_spends_from_the_same_budget(place: Path | str) -> None:
    with Ledger.open(place, account(Budget(1))) as book:
        spend(book, PureDP("0.1"), 2)
        assert in_child(lambda: len(spend(book, PureDP("0.1"), 3))) == 3
        assert len(spend(book, PureDP("0.1"), 9)) == 5
        assert in_child(lambda: len(spend(book, PureDP("0.1"), 3))) == 0
        book.verify()


def test_a_child_outlives_a_parent_that_closes(place: Path | str) -> None:
    """A parent that believes to be the last user would take the log away under its child."""
    inlet, outlet = os.pipe()
    book = Ledger.open(place, account(Budget(1)))
    spend(book, PureDP("0.1"), 1)
    child = os.fork()
    if child == 0:
        try:
            spend(book, PureDP("0.1"), 1)
            os.write(outlet, b".")
            time.sleep(0.2)
            os._exit(len(spend(book, PureDP("0.1"), 3)))
        finally:
            os._exit(99)
    os.read(inlet, 1)
    spend(book, PureDP("0.1"), 1)
    book.close()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    with Ledger.open(place, account(Budget(1))) as again:
        assert again.spent().charges == 6
        again.verify()


def test_a_fork_waits_for_the_transaction_of_another_thread(place: Path | str) -> None:
    with Ledger.open(place, account(Budget(1))) as book:
        charge = book.charge(PureDP("0.1"), relation=ADD, purpose="question")
        drawing, done = threading.Event(), threading.Event()

        def draw() -> str:
            drawing.set()
            done.wait(0.3)
            return "42"

        thread = threading.Thread(target=book.store, args=(charge, draw))
        thread.start()
        drawing.wait()
        assert in_child(lambda: len(spend(book, PureDP("0.1"), 2))) == 2
        thread.join()
        assert book.store(charge, lambda: "43") == "42"
        book.verify()


def test_a_child_of_a_transaction_is_refused(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "ledger", account(Budget(1))) as book:
        charge = book.charge(PureDP("0.1"), relation=ADD, purpose="question")

        def refused() -> int:
            with pytest.raises(Refused):
                book.charge(PureDP("0.1"), relation=ADD, purpose="question")
            return 5

        assert book.store(charge, lambda: str(in_child(refused))) == "5"
        book.verify()


def test_a_child_may_not_spend_from_a_ledger_in_memory() -> None:
    """It would have a copy of the budget."""
    book = Ledger.open("memory", account(Budget(1)))

    def refused() -> int:
        with pytest.raises(Refused, match="memory"):
            book.charge(PureDP("0.1"), relation=ADD, purpose="question")
        return 5

    assert in_child(refused) == 5


def test_recorded_randomness_and_a_real_budget_exclude_each_other(place: Path | str) -> None:
    path, memory = place, account(Budget(1))
    with Ledger.open(path, memory), pytest.raises(Refused), _replaced(Recorded("ledger")):
        pass
    with _replaced(Recorded("ledger")):
        with pytest.raises(Refused, match="recording"):
            Ledger.open(path, memory)
        spend(Ledger.open("memory", memory), PureDP("0.1"), 1)
    forgotten = Ledger.open(path, memory)
    del forgotten
    gc.collect()
    with _replaced(Recorded("ledger")):
        pass


def test_only_the_word_memory_means_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Ledger.open(Path("memory"), account(Budget(1))).close()
    assert (tmp_path / "memory").exists()
    Ledger.open("memory", account(Budget(2))).close()


def test_one_file_has_one_anchor_at_a_time(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "ledger", account(Budget(1))), pytest.raises(Refused, match="another anchor"):
        Ledger.open(tmp_path / "ledger", account(Budget(1)), anchor=tmp_path / "other")
