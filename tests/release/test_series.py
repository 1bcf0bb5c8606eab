"""Where a plan that repeats stands: released, due, passed over, and how long the budget and the windows last."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from discreet.errors import BudgetExceeded, InvalidParameter
from discreet.ledger import Account, Budget, Ledger, Quota
from discreet.privacy import PureDP
from discreet.privacy.relation import Relation
from discreet.query import Policy, Unit
from discreet.release.plan import Allowance, Every, Output, Period, ReleasePlan, Schedule
from discreet.release.schedule_status import key_of, series

ADD = Relation.ADD_REMOVE
ONE = PureDP(1)
TODAY = date(2026, 6, 10)


def made(folder: Path, schedule: Schedule | None = None, **policy: Any) -> ReleasePlan:
    said: dict[str, Any] = {"budget": Budget(4), "quotas": ()} | policy
    return ReleasePlan(
        name="stays",
        title="Stays",
        policy=Policy(
            dataset="hospital",
            ledger=folder / "hospital.ledger",
            anchor=None,
            version=None,
            unit=Unit("patient"),
            tables={},
            **said,
        ),
        allowance=Allowance(epsilon=Fraction(1)),
        tables=(),
        schedule=schedule or Schedule(every=Every.MONTH, first=date(2026, 1, 1)),
        output=Output(folder=folder),
    )


def opened(plan: ReleasePlan) -> Ledger:
    account = Account("hospital", "patient", ADD, plan.policy.budget)
    return Ledger.open(plan.policy.ledger, account, quotas=plan.policy.quotas)


def release(book: Ledger, plan: ReleasePlan, label: str, *, answered: bool = True) -> None:
    key = key_of(plan, Period(label=label))
    charge = book.charge(
        ONE, relation=ADD, purpose="release", idempotency_key=key, plan="p", unit="patient", principal="ana"
    )
    if answered:
        book.store(charge, lambda: "tables")


def test_released_due_and_gaps_are_told_apart(tmp_path: Path) -> None:
    plan = made(tmp_path)
    with opened(plan) as book:
        release(book, plan, "2026-01")
        release(book, plan, "2026-03")
        book.charge(
            PureDP("0.5"),
            relation=ADD,
            purpose="something else",
            idempotency_key="release/other/2026-02",
            unit="patient",
        )
        found = series(plan, book, today=TODAY)
    assert [one.label for one in found.released] == ["2026-01", "2026-03"]
    assert [period.label for period in found.due] == ["2026-02", "2026-04", "2026-05"]
    assert [period.label for period in found.gaps] == ["2026-02"]
    assert found.next is not None
    assert found.next.label == "2026-02"
    assert found.unfinished == ()
    assert found.released[0].time.tzinfo is UTC
    assert found.released[0].time <= datetime.now(UTC)
    assert found.holds == (("the lifetime budget", 1),)  # 4 - 1 - 1 - 1/2
    assert found.more == 1


def test_what_was_paid_and_not_answered_is_unfinished_and_still_due(tmp_path: Path) -> None:
    plan = made(tmp_path)
    with opened(plan) as book:
        for label in ("2026-01", "2026-02", "2026-03", "2026-04"):
            release(book, plan, label)
        found = series(plan, book, today=date(2026, 5, 31))
        assert (found.due, found.gaps, found.more) == ((), (), 0)
        assert found.next is not None
        assert found.next.label == "2026-05"
        assert "from 2026-06-01 on" in str(found)
    plan = made(tmp_path / "other")
    (tmp_path / "other").mkdir()
    with opened(plan) as book:
        release(book, plan, "2026-01", answered=False)
        found = series(plan, book, today=TODAY)
    assert [one.label for one in found.unfinished] == ["2026-01"]
    assert found.due[0].label == "2026-01"
    assert found.released == ()


def test_nothing_is_made_for_a_plan_that_never_released(tmp_path: Path) -> None:
    plan = made(tmp_path)
    found = series(plan, today=TODAY, event=ONE)
    assert list(tmp_path.iterdir()) == []
    assert (len(found.due), found.more, found.gaps) == (5, 4, ())
    assert series(plan, today=TODAY).more is None  # Nobody has said what a release costs.
    with opened(plan) as book:
        release(book, plan, "2026-01")
    assert [one.label for one in series(plan, today=TODAY).released] == ["2026-01"]


def test_before_the_first_period_nothing_is_due(tmp_path: Path) -> None:
    found = series(made(tmp_path), today=date(2025, 12, 1))
    assert found.due == ()
    assert found.next is not None
    assert found.next.label == "2026-01"


def test_a_plan_that_releases_once_is_due_until_it_was(tmp_path: Path) -> None:
    plan = made(tmp_path, Schedule())
    assert [period.label for period in series(plan, today=TODAY).due] == ["once"]
    with opened(plan) as book:
        release(book, plan, "once")
        found = series(plan, book, today=TODAY)
    assert (found.due, found.next) == ((), None)
    assert "all is released" in str(found)


def test_a_release_beyond_the_quota_of_its_window_is_refused_under_a_budget_that_would_hold_it(tmp_path: Path) -> None:
    plan = made(tmp_path, budget=Budget(100), quotas=(Quota(Budget(2), window="month"),))
    with opened(plan) as book:
        release(book, plan, "2026-01")
        release(book, plan, "2026-02")
        found = series(plan, book, today=TODAY)
        assert dict(found.holds)["the lifetime budget"] == 98
        assert found.more == 0
        with pytest.raises(BudgetExceeded, match="the quota of all together: ε = 2, pure per month"):
            release(book, plan, "2026-03")
    assert "98 more now, by the lifetime budget" in str(found)
    assert "0 more now, by the quota of all together" in str(found)


def test_the_next_window_admits_what_this_one_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = made(tmp_path, budget=Budget(100), quotas=(Quota(Budget(1), window="month"),))
    with opened(plan) as book:
        release(book, plan, "2026-01")
        later = book.history()[-1].time * 1000 + 32 * 86_400 * 10**9
        monkeypatch.setattr("discreet.ledger.charges_and_claims.time.time_ns", lambda: later)
        assert series(plan, book, today=TODAY).more == 1
        release(book, plan, "2026-02")


def test_quotas_of_each_principal_are_told_for_the_one_who_asks(tmp_path: Path) -> None:
    plan = made(tmp_path, quotas=(Quota(Budget(1), principal="*"),))
    with opened(plan) as book:
        release(book, plan, "2026-01")
        assert series(plan, book, today=TODAY, principal="ana").more == 0
        assert series(plan, book, today=TODAY, principal="ben").more == 1


def test_json_says_what_the_text_says(tmp_path: Path) -> None:
    plan = made(tmp_path)
    with opened(plan) as book:
        release(book, plan, "2026-02")
        found = series(plan, book, today=TODAY)
    packed = json.loads(json.dumps(found.to_json()))
    assert packed["due"] == ["2026-01", "2026-03", "2026-04", "2026-05"]
    assert packed["gaps"] == ["2026-01"]
    assert packed["more"] == 3
    assert [one["period"] for one in packed["released"]] == ["2026-02"]
    for word in ("2026-01", "ε = 1 for each release", "every month from 2026-01-01"):
        assert word in str(found)


def test_many_periods_are_told_in_one_line(tmp_path: Path) -> None:
    text = str(series(made(tmp_path, Schedule(every=Every.DAY, first=date(2026, 1, 1))), today=TODAY))
    assert max(map(len, text.splitlines())) < 200
    assert "160: " in text


def test_what_is_no_ledger_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter):
        series(made(tmp_path), "hospital.ledger", today=TODAY)  # type: ignore[arg-type]
