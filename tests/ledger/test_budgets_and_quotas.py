"""Budgets are exact, are only raised, and hold together with every quota below them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from discreet.errors import BudgetExceeded, InvalidParameter, Refused, UnsupportedEvent
from discreet.ledger import Account, Budget, Ledger, Quota, charges_and_claims
from discreet.ledger.budget import EACH
from discreet.ledger.delta_shares import choose_shares
from discreet.privacy import ZCDP, ApproxDP, Gaussian, PureDP
from discreet.privacy.relation import Relation

ADD = Relation.ADD_REMOVE
TENTH = PureDP("0.1")


def opened(budget: Budget, *quotas: Quota, path: str | Path = "memory") -> Ledger:
    return Ledger.open(path, Account("people", "row", ADD, budget), quotas=quotas)


def charge(book: Ledger, event: PureDP = TENTH, **said: str) -> None:
    book.charge(event, relation=ADD, purpose="question", **said)


class Clock:
    """A clock that tests set."""

    def __init__(self, start: datetime) -> None:
        self.now = start

    def time_ns(self) -> int:
        return int(self.now.timestamp()) * 10**9


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock(datetime(2030, 5, 6, 12, tzinfo=UTC))  # a Monday
    monkeypatch.setattr(charges_and_claims, "time", made)
    return made


@pytest.mark.parametrize(
    ("budget", "kind", "text"),
    [
        (Budget(1), "pure", "ε = 1, pure"),
        (Budget(epsilon=0.1, delta=0), "pure", "ε = 0.1, pure"),
        (Budget("1/3"), "pure", "ε = 1/3, pure"),
        (Budget(epsilon=1, delta=1e-6), "approximate", "ε = 1, δ = 1e-06"),
        (Budget(rho=0.5), "concentrated", "ρ = 0.5, zero-concentrated"),
        (Budget(), "unlimited", "no lifetime limit"),
    ],
)
def test_a_budget_says_what_it_is_and_survives_json(budget: Budget, kind: str, text: str) -> None:
    assert (budget.kind, budget.describe()) == (kind, text)
    assert Budget.from_json(budget.to_json()) == budget
    assert len({budget, Budget.from_json(budget.to_json())}) == 1


@pytest.mark.parametrize(
    "bad",
    [
        {"epsilon": 0}, {"epsilon": -1}, {"epsilon": float("nan")}, {"epsilon": float("inf")}, {"delta": 1e-6},
        {"epsilon": 1, "delta": 1}, {"epsilon": 1, "delta": -1e-9}, {"rho": 0}, {"epsilon": 1, "rho": 1},
        {"epsilon": True}, {"epsilon": 1, "delta": 0.1, "approximate": 2},
    ],
)  # fmt: skip
def test_a_budget_that_is_none_is_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        Budget(**bad)


def test_delta_is_split_once_and_all_of_it_is_used() -> None:
    for expect in (None, "gaussian", "pure", "training", "mixed"):
        for share in (None, 0, "1/3", 1):
            shares = choose_shares(Budget(1, "1e-6", approximate=share, expect=expect))
            assert shares.total == 1
            assert share is None or shares.events == Fraction(share)
    assert choose_shares(Budget(1, "1e-6")).gaussian == Fraction(55, 100)
    assert choose_shares(Budget(1, "1e-6")).events == Fraction(20, 100)
    assert max(share for _, share in choose_shares(Budget(1, "1e-6")).orders) == Fraction(18, 100)


def test_what_is_expected_is_said_with_a_delta_or_not_at_all() -> None:
    for bad in ({"epsilon": 1, "expect": "pure"}, {"epsilon": 1, "delta": "1e-6", "expect": "laplace"}):
        with pytest.raises(InvalidParameter, match="expect"):
            Budget(**bad)  # type: ignore[arg-type]
    said = Budget(1, "1e-6", expect="training")
    assert Budget.from_json(said.to_json()) == said != Budget(1, "1e-6")


@pytest.mark.parametrize("text", ["[]", "{", '{"epsilon": "1", "more": "1"}', '"x"', '{"epsilon": []}'])
def test_text_that_is_no_budget_is_refused(text: str) -> None:
    with pytest.raises(InvalidParameter):
        Budget.from_json(text)


def test_a_budget_is_raised_by_an_entry_and_never_lowered(tmp_path: Path) -> None:
    book = opened(Budget(1, "1e-6"), path=tmp_path / "ledger")
    for lower in (Budget("0.5", "1e-6"), Budget(1, "1e-6"), Budget(2), Budget(rho=1), Budget(2, "1e-7")):
        with pytest.raises(Refused, match="raised"):
            book.raise_budget(lower, reason="less", principal="custodian")
    charge(book, PureDP(1))
    with pytest.raises(BudgetExceeded):
        charge(book, PureDP(1))
    book.raise_budget(Budget(2, "1e-6"), reason="a second survey", principal="custodian")
    charge(book, PureDP(1))
    assert [entry.kind for entry in book.history()] == ["open", "charge", "raise", "charge"]
    assert book.history()[2].content["reason"] == "a second survey"
    book.verify()
    book.close()
    with pytest.raises(Refused, match="δ = 1e-06, and now"):
        opened(Budget(1, "1e-6"), path=tmp_path / "ledger")
    with opened(Budget(2, "1e-6"), path=tmp_path / "ledger") as again:
        assert again.left().epsilon == 0


def test_everything_is_enforced_at_once(clock: Clock) -> None:
    book = opened(
        Budget(1),
        Quota(Budget("0.5"), project="survey"),
        Quota(Budget("0.2"), principal=EACH, window="day"),
        Quota(Budget("0.4"), window=timedelta(hours=2)),
    )
    charge(book, principal="ann", project="survey")
    charge(book, principal="ann")
    with pytest.raises(BudgetExceeded, match="analyst each"):
        charge(book, principal="ann", project="other")
    charge(book, principal="bob", project="survey")
    charge(book, principal="bob")
    with pytest.raises(BudgetExceeded, match="per 2:00:00"):
        charge(book, principal="carl")
    clock.now += timedelta(hours=2)
    for _ in range(2):
        charge(book, principal="carl", project="survey")
    clock.now += timedelta(days=1)
    charge(book, principal="carl", project="survey")
    with pytest.raises(BudgetExceeded, match="project survey"):
        charge(book, principal="dora", project="survey")
    for name in ("dora", "dora", "emil"):
        charge(book, principal=name)
    clock.now += timedelta(days=1)
    with pytest.raises(BudgetExceeded, match="lifetime"):
        charge(book, principal="emil")
    assert book.spent().epsilon == 1
    book.verify()


def test_what_is_left_is_the_least_of_all_limits(clock: Clock) -> None:
    book = opened(Budget(1), Quota(Budget("0.3"), principal="ann"), Quota(Budget("0.5"), window="day"))
    assert book.times_left(TENTH, principal="ann") == 3
    assert book.times_left(TENTH, principal="bob") == 5
    charge(book, principal="ann")
    assert book.times_left(TENTH, principal="ann") == 2
    assert book.times_left(TENTH, principal="bob") == 4
    ((_, left), *_) = book.quotas_left(principal="ann")
    assert left.epsilon == Fraction(1, 5)
    assert book.affords(PureDP("0.2"), principal="ann")
    assert not book.affords(PureDP("0.3"), principal="ann")


def test_a_clock_that_goes_back_gives_nothing_back(clock: Clock) -> None:
    book = opened(Budget(10), Quota(Budget("0.1"), window="day"))
    charge(book)
    clock.now += timedelta(days=1)
    charge(book)
    clock.now -= timedelta(days=30)
    with pytest.raises(BudgetExceeded, match="per day"):
        charge(book)
    times = [entry.time for entry in book.history()]
    assert times == sorted(times)


@pytest.mark.parametrize(
    ("window", "same", "other"),
    [
        ("day", timedelta(hours=11), timedelta(hours=13)),
        ("week", timedelta(days=6), timedelta(days=7)),
        ("month", timedelta(days=25), timedelta(days=26)),
        (timedelta(seconds=90), timedelta(seconds=89), timedelta(seconds=90)),
    ],
)
def test_windows_begin_where_the_calendar_says(
    clock: Clock, window: str | timedelta, same: timedelta, other: timedelta
) -> None:
    quota, start = Quota(Budget(1), window=window), clock.now
    first = quota.window_index(int(start.timestamp()) * 10**6)
    assert quota.window_index(int((start + same).timestamp()) * 10**6) == first
    assert quota.window_index(int((start + other).timestamp()) * 10**6) == first + 1


def test_without_a_lifetime_budget_the_text_says_that_windows_add_up(clock: Clock) -> None:
    with pytest.raises(InvalidParameter, match="quota per window"):
        opened(Budget())
    with pytest.raises(InvalidParameter, match="quota per window"):
        opened(Budget(), Quota(Budget(1), window="day", principal="ann"))
    book = opened(Budget(), Quota(Budget(1), window="day"))
    assert "ε = 1, pure per day; k days: kε for one row" in book.describe()
    charge(book, PureDP(1))
    with pytest.raises(BudgetExceeded):
        charge(book, TENTH)
    clock.now += timedelta(days=1)
    charge(book, PureDP(1))
    with pytest.raises(Refused, match="cannot be changed"):
        book.set_quotas([Quota(Budget(2), window="day")], reason="more", principal="custodian")


def test_without_a_lifetime_budget_a_quota_of_any_kind_decides(clock: Clock) -> None:
    book = opened(Budget(), Quota(Budget(rho="0.01"), window="day"))
    book.charge(Gaussian(10), relation=ADD, purpose="question")
    assert book.times_left(Gaussian(10)) == 1
    assert book.spent().epsilon is None
    assert "ρ = 0.01, zero-concentrated per day; k days: kρ" in book.describe()
    with pytest.raises(UnsupportedEvent):
        book.charge(ApproxDP("0.1", "1e-9"), relation=ADD, purpose="question")
    book.verify()


def test_quotas_stay_until_they_are_changed_by_an_entry(tmp_path: Path) -> None:
    path, quota = tmp_path / "ledger", Quota(Budget("0.1"), project="survey")
    opened(Budget(1), quota, path=path).close()
    with opened(Budget(1), path=path) as book:
        charge(book, project="survey")
        with pytest.raises(BudgetExceeded):
            charge(book, project="survey")
        book.set_quotas([Quota(Budget("0.2"), project="survey")], reason="more", principal="custodian")
        charge(book, project="survey")
        book.verify()
    with pytest.raises(Refused, match="set_quotas"):
        opened(Budget(1), quota, path=path)


@pytest.mark.parametrize(
    "bad",
    [
        {}, {"window": "year"}, {"window": timedelta(0)}, {"window": timedelta(seconds=1.5)}, {"project": ""},
        {"principal": 5}, {"window": 3600},
    ],
)  # fmt: skip
def test_a_quota_that_is_none_is_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        Quota(Budget(1), **bad)


def test_a_rho_budget_is_a_budget_too() -> None:
    book = opened(Budget(rho="0.5"))
    for _ in range(5):
        book.charge(ZCDP("0.1"), relation=ADD, purpose="question")
    assert book.spent().rho == Fraction(1, 2)
    assert not book.affords(Gaussian(1000))
    assert "Σρ = 0.5 of ρ = 0.5" in book.describe()


def test_the_total_of_charges_fixed_in_advance_is_reported_beside() -> None:
    book = opened(Budget(1, "1e-6"))
    assert book.total("1e-6").epsilon == 0
    for _ in range(50):
        book.charge(Gaussian(100), relation=ADD, purpose="question")
    total = book.total("1e-6")
    assert 0.25 < total.epsilon < 0.28
    assert "fixed in advance" in total.describe()


def test_bad_declarations_and_texts_are_refused() -> None:
    for bad in (
        ("", "row", ADD, Budget(1)),
        ("d", "", ADD, Budget(1)),
        ("d", "row", "add", Budget(1)),
        ("d", "row", ADD, 1),
    ):
        with pytest.raises(InvalidParameter):
            Account(*bad)  # type: ignore[arg-type]
    book = opened(Budget(1))
    with pytest.raises(InvalidParameter):
        charge(book, idempotency_key="k" * 10_001)
    with pytest.raises(InvalidParameter):
        book.charge(TENTH, relation="add remove", purpose="question")
    with pytest.raises(InvalidParameter):
        book.charge("0.1", relation=ADD, purpose="question")  # type: ignore[arg-type]
