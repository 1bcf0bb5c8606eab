"""Threads that ask at once never overspend, and never get each other's answers."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

from session_data import charges, opened

import discreet as dp


def test_threads_together_spend_no_more_than_the_budget(tmp_path):
    with opened(tmp_path, budget=dp.Budget(epsilon=1)) as session:
        plans = [session.sql("SELECT COUNT(*) AS n FROM orders", epsilon="0.1") for _ in range(24)]

        def ask(plan: dp.Plan) -> bool:
            try:
                plan.release()
            except dp.BudgetExceeded:
                return False
            return True

        with ThreadPoolExecutor(8) as threads:
            answered = sum(threads.map(ask, plans))
        assert answered == charges(session) == 10
        assert session.left.epsilon == 0


def test_threads_get_the_answers_to_their_own_questions(tmp_path):
    with opened(tmp_path) as session:

        def ask(age: int) -> float:
            query = f"SELECT COUNT(*) AS n FROM orders WHERE age < {age}"
            return float(session.sql(query, epsilon=4).release()["n"][0].value)

        ages = list(range(18, 100, 4))
        with ThreadPoolExecutor(8) as threads:
            counts = list(threads.map(ask, ages))
    # About six orders for each year of age; noise is below 20.
    exact = [450 * (age - 18) / 70 for age in ages]
    assert all(abs(count - min(450, expected)) < 60 for count, expected in zip(counts, exact, strict=True))


def test_one_key_asked_by_many_threads_is_charged_once(tmp_path):
    with opened(tmp_path) as session:
        with ThreadPoolExecutor(8) as threads:
            futures = [
                threads.submit(session.sql("SELECT COUNT(*) AS n FROM orders", epsilon=1, idempotency_key="k").release)
                for _ in range(16)
            ]
        assert len({future.result().to_json() for future in futures}) == 1
        assert charges(session) == 1


def test_a_forked_child_has_no_session(tmp_path):
    with opened(tmp_path) as session:
        plan = session.sql("SELECT COUNT(*) AS n FROM orders", epsilon=1)
        child = os.fork()
        if child == 0:
            refused = 0
            for ask in (plan.release, lambda: session.sql("SELECT COUNT(*) AS n FROM orders", epsilon=1)):
                try:
                    ask()
                except dp.Refused:
                    refused += 1
            os._exit(refused)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 2
        assert charges(session) == 0
        plan.release()
