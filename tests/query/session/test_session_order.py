"""Charge, then read; draw and store, then return. What fails after the charge tells nothing and is not refunded."""

from __future__ import annotations

import traceback

import pytest
from session_data import charges, opened

import discreet as dp
from discreet.ledger import Ledger
from discreet.query.plan.planner import PricedQuery
from discreet.query.workers.worker_engine import WorkerEngine

QUERY = "SELECT city, COUNT(*) AS n FROM orders GROUP BY city"
CANARY = "CANARY-4711"


@pytest.fixture
def steps(monkeypatch):
    """The order in which the parts are called."""
    seen: list[str] = []
    for owner, method in (
        (Ledger, "stored"),
        (Ledger, "claim"),
        (WorkerEngine, "run_all"),
        (Ledger, "store"),
        (PricedQuery, "draw"),
    ):
        original = getattr(owner, method)

        def spied(self, *given, _original=original, _method=method, **named):
            seen.append(_method)
            return _original(self, *given, **named)

        monkeypatch.setattr(owner, method, spied)
    return seen


def test_steps_come_in_their_order(tmp_path, steps):
    with opened(tmp_path, version="1") as session:
        plan = session.sql(QUERY, epsilon=1)
        assert steps == []
        plan.release()
        assert steps == ["stored", "claim", "run_all", "store", "draw"]
        steps.clear()
        plan.release()
        assert steps == ["stored"]


def test_a_refused_charge_reads_nothing(tmp_path, steps):
    with opened(tmp_path, budget=dp.Budget(epsilon=1)) as session:
        with pytest.raises(dp.BudgetExceeded) as refused:
            session.sql(QUERY, epsilon=2).release()
        assert steps == ["stored", "claim"]
        assert "ε = 2" in str(refused.value)
        assert "ε = 1 of 1" in str(refused.value)
        assert charges(session) == 0


@pytest.mark.parametrize("owner", [WorkerEngine, PricedQuery], ids=["reading", "drawing"])
@pytest.mark.parametrize("kind", [RuntimeError, MemoryError, dp.Refused, OverflowError, AssertionError])
def test_what_fails_after_the_charge_is_constant_and_not_refunded(owner, kind, tmp_path, monkeypatch):
    def fails(*given, **named):
        raise kind(f"could not convert {CANARY}")

    monkeypatch.setattr(owner, "run_all" if owner is WorkerEngine else "draw", fails)
    with opened(tmp_path) as session:
        plan = session.sql(QUERY, epsilon=1)
        with pytest.raises(dp.AnswerFailed) as failed:
            plan.release()
        assert str(failed.value) == str(dp.AnswerFailed())
        assert failed.value.__cause__ is None
        assert failed.value.__context__ is None
        assert CANARY not in "".join(traceback.format_exception(failed.value))
        assert charges(session) == 1
        assert session.left.epsilon < 200
        monkeypatch.undo()
        assert all(CANARY not in str(entry) for entry in session.history())


def test_an_interrupt_is_an_interrupt_and_the_charge_stands(tmp_path, monkeypatch):
    def interrupted(*given, **named):
        raise KeyboardInterrupt

    monkeypatch.setattr(WorkerEngine, "run_all", interrupted)
    with opened(tmp_path) as session:
        with pytest.raises(KeyboardInterrupt):
            session.sql(QUERY, epsilon=1).release()
        assert charges(session) == 1


def test_a_question_stops_at_its_deadline(tmp_path):
    with opened(tmp_path, resources=dp.query.Resources(seconds="0.000001")) as session:
        plan = session.sql(QUERY, epsilon=1)
        with pytest.raises(dp.AnswerFailed):
            plan.release()
        assert charges(session) == 1
