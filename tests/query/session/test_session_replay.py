"""An answer is given again, bit by bit, to whom it was given, for what it was given for, and to nobody else."""

from __future__ import annotations

import pytest
from session_data import charges, opened, shop

import discreet as dp

QUERY = "SELECT city, COUNT(*) AS n, AVG(price) AS price FROM orders GROUP BY city"


def test_a_repeated_question_is_free_and_bit_identical(tmp_path):
    with opened(tmp_path, version="2026-11") as session:
        first = session.sql(QUERY, epsilon=1).release()
        second = session.sql(QUERY, epsilon=1).release()
        rewritten = session.sql(
            " select CITY as city, count(*) n,\n avg(price) as price from ORDERS group by 1", epsilon=1
        )
        assert first.to_json() == second.to_json()
        before = charges(session)
        assert rewritten.release().to_json() == first.to_json() or charges(session) == before + 1
    with opened(tmp_path, version="2026-11") as session:
        assert session.sql(QUERY, epsilon=1).release().to_json() == first.to_json()


def test_a_name_for_the_unit_finds_the_answers_that_were_paid_before(tmp_path):
    limits = {"max_groups": 2, "max_rows_per_group": 2}
    with opened(tmp_path, version="2026-11", unit=dp.Unit("customer", **limits)) as session:
        first = session.sql(QUERY, epsilon=1).release()
    named = dp.Unit("customer", **limits, name="household", plural="homes")
    with opened(tmp_path, version="2026-11", unit=named) as session:
        plan = session.sql(QUERY, epsilon=1)
        assert plan.release().to_json() == first.to_json()
        assert charges(session) == 1
        assert plan.notes != first.notes


@pytest.mark.parametrize(
    "change",
    [
        {"principal": "ben"},
        {"project": "other"},
        {"version": "2026-12"},
        {"version": None},
        {"unit": dp.Unit("customer")},
    ],
    ids=["principal", "project", "version", "no version", "limits"],
)
def test_another_asker_or_version_pays_again_and_gets_fresh_noise(change, tmp_path):
    with opened(tmp_path, version="2026-11") as session:
        first = session.sql(QUERY, epsilon=1).release()
    with opened(tmp_path, **{"version": "2026-11"} | change) as session:
        second = session.sql(QUERY, epsilon=1).release()
        assert charges(session) == 2
    assert first.to_json() != second.to_json()


@pytest.mark.parametrize("offer", [{"epsilon": "1.5"}, {"rho": "0.5"}, {"epsilon": 1, "delta": "1e-9"}])
def test_another_price_is_another_question(offer, tmp_path):
    with opened(tmp_path, version="1") as session:
        session.sql(QUERY, epsilon=1).release()
        session.sql(QUERY, **offer).release()
        assert charges(session) == 2


def test_without_a_version_nothing_is_reused(tmp_path):
    with opened(tmp_path) as session:
        plan = session.sql(QUERY, epsilon=1)
        first, second = plan.release(), plan.release()
        assert charges(session) == 2
        assert first.to_json() != second.to_json()


def test_a_key_returns_what_was_stored_and_is_charged_once(tmp_path):
    with opened(tmp_path) as session:
        answers = {session.sql(QUERY, epsilon=1, idempotency_key="monday").release().to_json() for _ in range(20)}
        assert charges(session) == 1
    with opened(tmp_path, {"orders": shop(200)}) as session:
        answers.add(session.sql(QUERY, epsilon=1, idempotency_key="monday").release().to_json())
        assert charges(session) == 1
    assert len(answers) == 1


def test_a_key_is_refused_for_another_question_or_asker(tmp_path):
    with opened(tmp_path) as session:
        session.sql(QUERY, epsilon=1, idempotency_key="monday").release()
        with pytest.raises(dp.Refused, match="another plan"):
            session.sql("SELECT COUNT(*) AS n FROM orders", epsilon=1, idempotency_key="monday").release()
        with pytest.raises(dp.Refused, match="another plan"):
            session.sql(QUERY, epsilon=2, idempotency_key="monday").release()
    with opened(tmp_path, principal="ben") as session, pytest.raises(dp.Refused, match="principal"):
        session.sql(QUERY, epsilon=1, idempotency_key="monday").release()


def test_a_key_that_was_read_without_an_answer_is_read_again_only_when_a_custodian_says_so(tmp_path, monkeypatch):
    from discreet.query.workers.worker_engine import WorkerEngine

    def fails(*given, **named):
        raise RuntimeError

    with opened(tmp_path) as session:
        plan = session.sql(QUERY, epsilon=1, idempotency_key="monday")
        monkeypatch.setattr(WorkerEngine, "run_all", fails)
        with pytest.raises(dp.AnswerFailed):
            plan.release()
        monkeypatch.undo()
        for _ in range(5):
            with pytest.raises(dp.AnswerFailed):
                plan.release()
        (claim,) = session.ledger.claims()
        session.ledger.release_claim(claim.charge, reason="more memory", principal="custodian")
        assert plan.release().to_json() == plan.release().to_json()
        assert charges(session) == 1


def test_a_plan_says_that_it_is_free_or_paid_a_second_time(tmp_path):
    """Running a cell again paid again, silently; and a price was shown for what is free."""
    with opened(tmp_path, version="2026-11") as session:
        plan = session.sql(QUERY, epsilon=1)
        assert "already paid" not in dict(plan.explain().facts)
        first = plan.release()
        assert "for free" in dict(session.sql(QUERY, epsilon=1).explain().facts)["already paid"]
        assert plan.release().notes == first.notes
        assert "already paid" not in dict(session.sql(QUERY, epsilon=2).explain().facts)
    with opened(tmp_path) as session:
        plan = session.sql(QUERY, epsilon=1)
        first = plan.release()
        told = dict(session.sql(QUERY, epsilon=1).explain().facts)
        assert "version=" in told["asked before"]
        second = session.sql(QUERY, epsilon=1).release()
        assert charges(session) == 3
        assert second.notes[:-1] == first.notes
        assert second.notes[-1].startswith("asked before and paid again: declare version=")
