"""A question whose read failed is not read again: that a failure depends on one person is told at most three times."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from session_data import charges, opened

import discreet as dp
from discreet.ledger import Ledger, look
from discreet.query.plan.planner import PricedQuery
from discreet.query.session.executor import Executor
from discreet.query.session.requests import Request
from discreet.query.workers.worker_engine import WorkerEngine

QUERY = "SELECT city, COUNT(*) AS n FROM orders GROUP BY city"
TINY = "1e-5"  # The least price: what a failure costs whoever wants to learn from it.


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """How often the engine was asked; it fails whenever `failing` is in the list."""
    seen: list[str] = []
    original = WorkerEngine.run_all

    def counted(self: WorkerEngine, *given: Any, **named: Any) -> Any:
        seen.append("read")
        if "failing" in seen:
            raise MemoryError
        return original(self, *given, **named)

    monkeypatch.setattr(WorkerEngine, "run_all", counted)
    return seen


def failing(reads: list[str], ask: Callable[[], object], times: int = 1) -> None:
    reads.append("failing")
    for _ in range(times):
        with pytest.raises(dp.AnswerFailed):
            ask()
    reads.remove("failing")


@pytest.mark.parametrize(("key", "version"), [("k", None), (None, "1"), ("k", "1")])
def test_a_question_whose_read_failed_is_not_read_again(
    key: str, version: str, reads: list[str], tmp_path: Path
) -> None:
    with opened(tmp_path, version=version) as session:
        ask = session.sql(QUERY, epsilon=1, idempotency_key=key).release
        failing(reads, ask, times=3)
        for _ in range(3):  # Also when it would not fail any more.
            with pytest.raises(dp.AnswerFailed) as failed:
                ask()
            assert failed.value.__context__ is None
        assert reads == ["read"]
        assert charges(session) == 1


def test_a_draw_that_failed_is_neither_drawn_nor_read_again(
    reads: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path) as session:
        ask = session.sql(QUERY, epsilon=1, idempotency_key="k").release
        with monkeypatch.context() as wrong:
            wrong.setattr(PricedQuery, "draw", lambda *given: 1 / 0)
            with pytest.raises(dp.AnswerFailed):
                ask()
        with pytest.raises(dp.AnswerFailed):
            ask()
        assert reads == ["read"]
        assert [claim.is_failed for claim in session.ledger.claims()] == [True]


def test_whoever_saw_three_failures_reads_nothing_more_until_a_custodian_looks(
    reads: list[str], tmp_path: Path
) -> None:
    """Four yes-or-no questions about one person at no price: the fourth is refused, and charges nothing."""
    with opened(tmp_path) as session:
        failing(reads, lambda: session.sql(QUERY, epsilon=TINY).release(), times=3)
        with pytest.raises(dp.Refused, match="discreet ledger claims"):
            session.sql(QUERY, epsilon=TINY).release()
        assert (reads, charges(session)) == (["read"] * 3, 3)
        session.ledger.reopen(session.principal, reason="a limit of memory", principal="custodian")
        session.sql(QUERY, epsilon=1).release()
    with opened(tmp_path, principal="ben") as other:
        other.sql(QUERY, epsilon=1).release()


@pytest.mark.parametrize("way", ["together", "private_keys", "private_bounds", "profile"])
def test_every_way_to_ask_counts(way: str, reads: list[str], tmp_path: Path) -> None:
    from discreet.query.session.private_bounds_and_keys import private_bounds, private_keys
    from discreet.release.profiling.profile_plan import plan_profile

    names = count()
    with opened(tmp_path) as session:
        ways: dict[str, Callable[[], object]] = {
            "together": lambda: session.batch(
                {"a": session.sql(QUERY, epsilon=TINY)}, idempotency_key=None, purpose="several"
            ).release(),
            "private_keys": lambda: private_keys(session, "city", epsilon=TINY, delta="1e-9"),
            "private_bounds": lambda: private_bounds(session, "age", within=(0, 200), epsilon=TINY),
            "profile": lambda: plan_profile(session, epsilon=1, idempotency_key=str(next(names))).release(),
        }
        failing(reads, ways[way], times=3)
        with pytest.raises(dp.Refused, match="ended without an answer"):
            ways[way]()
        assert (len(reads), charges(session)) == (3, 3)


def test_the_claim_is_durable_before_the_first_row_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the engine reads, another look at the file finds the claim."""
    check_claimed_while_reading(tmp_path, monkeypatch)


def check_claimed_while_reading(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[int] = []
    original = WorkerEngine.run_all

    def watched(self: WorkerEngine, *given: Any, **named: Any) -> Any:
        found.append(len(look(folder / "shop.ledger").claims()))
        return original(self, *given, **named)

    monkeypatch.setattr(WorkerEngine, "run_all", watched)
    with opened(folder) as session:
        session.sql(QUERY, epsilon=1, idempotency_key="k").release()
        session.batch({"a": session.sql(QUERY, epsilon=1)}, idempotency_key="j", purpose="several").release()
    assert found == [1, 1]


def test_a_claim_that_is_written_after_the_read_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a wrong author writes it: charge, read, and claim when there is something to store."""

    def answer(self: Executor, asked: Request) -> Any:
        tallied = self.engine.run_all(asked.stages, deadline=dp.query.engine.Deadline.after(60))
        claim: Any = self._claim(asked, asked.fingerprint)
        return type("Told", (), {"text": self.ledger.store(claim, lambda: asked.draw(tallied)), "charge": claim.charge})

    monkeypatch.setattr(Executor, "answer", answer)
    with pytest.raises(AssertionError):
        check_claimed_while_reading(tmp_path, monkeypatch)


def test_a_process_that_is_killed_while_it_reads_leaves_a_claim_and_no_second_read(
    reads: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        child = os.fork()
        if child == 0:
            with opened(tmp_path) as session:
                monkeypatch.setattr(
                    WorkerEngine, "run_all", lambda *given, **named: os.kill(os.getpid(), signal.SIGKILL)
                )
                session.sql(QUERY, epsilon=1, idempotency_key=str(number)).release()
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    with opened(tmp_path) as session:
        for number in range(3):
            with pytest.raises(dp.AnswerFailed):
                session.sql(QUERY, epsilon=1, idempotency_key=str(number)).release()
        with pytest.raises(dp.Refused, match="ended without an answer"):
            session.sql(QUERY, epsilon=1, idempotency_key="another").release()
        assert reads == []
        assert charges(session) == 3


def test_threads_with_one_key_read_once(reads: list[str], tmp_path: Path) -> None:
    answers: list[str] = []
    with opened(tmp_path) as session:
        plan = session.sql(QUERY, epsilon=1, idempotency_key="k")
        threads = [threading.Thread(target=lambda: answers.append(plan.release().to_json())) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert charges(session) == 1
    assert reads == ["read"]
    assert len(answers) == 6
    assert len(set(answers)) == 1


def test_threads_that_fail_together_are_three(
    reads: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twenty at once, all of which will fail: three are read, the others wait for them and are refused."""
    reads.append("failing")
    ended: list[type[Exception]] = []
    slowly = WorkerEngine.run_all

    def slow(self: WorkerEngine, *given: Any, **named: Any) -> Any:
        time.sleep(0.05)
        return slowly(self, *given, **named)

    monkeypatch.setattr(WorkerEngine, "run_all", slow)
    with opened(tmp_path) as session:

        def ask(number: int) -> None:
            try:
                session.sql(QUERY, epsilon=TINY, idempotency_key=str(number)).release()
            except (dp.AnswerFailed, dp.Refused) as error:
                ended.append(type(error))

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert charges(session) == 3
    assert reads.count("read") == 3
    assert sorted(kind.__name__ for kind in ended) == ["AnswerFailed"] * 3 + ["Refused"] * 17


def test_a_fit_on_a_session_s_table_is_claimed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Synthesis and paid evaluation keep their result elsewhere, and are read under a claim all the same."""
    seen: list[int] = []
    original = WorkerEngine.rows

    def watched(self: WorkerEngine, *given: Any, **named: Any) -> Any:
        seen.append(len(look(tmp_path / "shop.ledger").claims()))
        if "fail" in os.environ.get("CLAIM_TEST", ""):
            raise MemoryError
        return original(self, *given, **named)

    monkeypatch.setattr(WorkerEngine, "rows", watched)
    with opened(tmp_path) as session:

        def fit() -> Any:
            return dp.synthesize(
                "orders",
                "independent",
                domain=dp.synth.Domain({"city": dp.synth.Category(["Bern", "Genf", "Lugano"])}),
                epsilon="0.1",
                delta="1e-9",
                unit="customer",
                rows_per_unit=1,
                session=session,
                progress=False,
            )

        fit()
        assert seen[0] == 1
        assert session.ledger.claims() == ()
        monkeypatch.setenv("CLAIM_TEST", "fail")
        for _ in range(3):
            with pytest.raises(dp.AnswerFailed):
                fit()
        with pytest.raises(dp.Refused, match="ended without an answer"):
            fit()
        assert charges(session) == 4


def test_a_ledger_that_cannot_be_written_while_an_answer_is_stored_leaves_the_claim(
    reads: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*given: Any, **named: Any) -> Any:
        raise dp.LedgerUnavailable("the disk is full")

    with opened(tmp_path) as session:
        plan = session.sql(QUERY, epsilon=1, idempotency_key="k")
        with monkeypatch.context() as wrong:
            wrong.setattr(Ledger, "store", full)
            wrong.setattr(Ledger, "fail", full)
            with pytest.raises(dp.AnswerFailed):
                plan.release()
        assert [claim.is_failed for claim in session.ledger.claims()] == [False]
    assert reads == ["read"]
