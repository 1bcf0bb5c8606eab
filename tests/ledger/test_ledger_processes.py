"""Many processes and threads spend from one budget: none of it twice, none of it lost."""

from __future__ import annotations

import gc
import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from recorded import Recorded

from discreet.errors import DiscreetError, LedgerDamaged, Refused
from discreet.ledger import Account, Budget, Ledger
from discreet.ledger.sqlite_store import FileStore, SqliteRows
from discreet.noise.source import _replaced
from discreet.privacy import PureDP
from discreet.privacy.relation import Relation

ADD = Relation.ADD_REMOVE


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
def unguarded(self: FileStore) -> Iterator[SqliteRows]:
    """Wrong: read the sums, let others run, write the sums."""
    rows = SqliteRows(self._files().connection)
    rows.head()
    time.sleep(0.001)
    yield rows


def test_a_ledger_without_exclusive_transactions_is_caught(quick_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FileStore, "writing", unguarded)
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
