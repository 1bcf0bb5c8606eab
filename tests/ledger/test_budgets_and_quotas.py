"""Budgets are exact, are only raised, and hold together with every quota below them."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from discreet.errors import BudgetExceeded, InvalidParameter, LedgerDamaged, Refused, UnsupportedEvent
from discreet.ledger import Account, Budget, Ledger, Quota, charges_and_claims, left_after, look
from discreet.ledger.accounts import Book, carried_over
from discreet.ledger.budget import EACH, Sums
from discreet.ledger.delta_shares import choose_shares
from discreet.privacy import ZCDP, ApproxDP, Gaussian, PoissonSampled, PureDP, Repeated
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


def test_a_pure_budget_gets_its_first_delta_by_an_entry(tmp_path: Path) -> None:
    path, later = tmp_path / "ledger", Budget(4, "1e-5", expect="gaussian")
    with opened(Budget(1), path=path) as book:
        charge(book, PureDP("0.75"))
        for lower in (Budget("0.7", "1e-5"), Budget(rho=4), Budget()):
            with pytest.raises(Refused, match="raised"):
                book.raise_budget(lower, reason="less than is spent, or another kind", principal="custodian")
        with pytest.raises(UnsupportedEvent):
            charge(book, Gaussian(10))  # type: ignore[arg-type]
        book.raise_budget(later, reason="Gaussian noise", principal="custodian")
        assert (book.spent().epsilon, book.spent().charges) == (Fraction(3, 4), 1)
        assert 0.8 < book.left().share <= 13 / 16  # What was spent before is spent.
        charge(book, Gaussian(10))  # type: ignore[arg-type]
        book.verify()
        left = book.times_left(Gaussian(10))
    rest = opened(Budget("3.25", "1e-5", expect="gaussian"))
    charge(rest, Gaussian(10))  # type: ignore[arg-type]
    assert left == rest.times_left(Gaussian(10)) > 0  # All that comes after keeps to what was not spent.
    with opened(later, path=path) as again:
        assert again.times_left(Gaussian(10)) == left
        assert left_after(again.history(), again.history()[-1].index).share == again.left().share
        again.raise_budget(Budget(8, "1e-5", expect="gaussian"), reason="more", principal="custodian")
        assert again.times_left(Gaussian(10)) > left
        again.verify()
    assert look(path).left("people").more == opened(Budget(8, "1e-5", expect="gaussian"), path=path).left().more


def test_a_first_delta_before_any_charge_is_as_if_it_had_been_there(tmp_path: Path) -> None:
    with opened(Budget(1), path=tmp_path / "ledger") as book, opened(Budget(1, "1e-6")) as fresh:
        book.raise_budget(Budget(1, "1e-6"), reason="Gaussian noise", principal="custodian")
        assert book.history()[-1].content["declared"] == fresh.history()[0].content["declared"]
        assert book.times_left(Gaussian(100)) == fresh.times_left(Gaussian(100))
        book.verify()


def test_an_entry_that_carries_over_less_than_was_spent_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forgetful(sums: Sums, book: Book) -> Sums:
        return replace(carried_over(sums, book), epsilon=Fraction(0))

    with opened(Budget(1), path=tmp_path / "ledger") as book:
        charge(book)
        monkeypatch.setattr("discreet.ledger.accounts.carried_over", forgetful)
        book.raise_budget(Budget(2, "1e-6"), reason="Gaussian noise", principal="custodian")
        with pytest.raises(LedgerDamaged, match="carries over"):
            book.verify()


@pytest.mark.parametrize(
    ("has", "says", "ways_out", "not_said"),
    [
        (
            Budget(1),
            Budget(4, "1e-5"),
            ("    [budget]\n    epsilon = 1\n", "--epsilon 4 --delta 1e-05 --reason"),
            "lower",
        ),
        (
            Budget(4, "1e-5"),
            Budget(2, "1e-5"),
            ("epsilon = 4\n    delta = 1e-05", "cannot be lowered"),
            "raise --policy",
        ),
        (Budget(4, "1e-5"), Budget(4), ("delta = 1e-05", "cannot be lowered"), "raise --policy"),
        (Budget(rho=1), Budget(rho=2), ("rho = 1\n", "--rho 2 --reason"), "lower"),
        (Budget(rho=1), Budget(4, "1e-5"), ("rho = 1", "keeps its kind"), "raise --policy"),
        (Budget("1/3"), Budget(1), ('epsilon = "1/3"', "--epsilon 1 "), "lower"),
    ],
)
def test_another_budget_is_refused_with_the_toml_and_the_command(
    tmp_path: Path, has: Budget, says: Budget, ways_out: tuple[str, ...], not_said: str
) -> None:
    opened(has, path=tmp_path / "ledger").close()
    with pytest.raises(Refused) as refused:
        opened(says, path=tmp_path / "ledger")
    assert all(way_out in str(refused.value) for way_out in ways_out)
    assert not_said not in str(refused.value)


def test_another_unit_is_refused_and_no_raise_is_proposed(tmp_path: Path) -> None:
    opened(Budget(1), path=tmp_path / "ledger").close()
    with pytest.raises(Refused, match="unit as 'row'") as refused:
        Ledger.open(tmp_path / "ledger", Account("people", "patient", ADD, Budget(2)))
    assert "raise --policy" not in str(refused.value)


KINDS: dict[str, tuple[Budget, tuple[Quota, ...], Any]] = {
    "pure": (Budget(1), (), PureDP("0.03")),
    "pure, ratios": (Budget("2/3"), (), PureDP("1/21")),
    "approximate, pure events": (Budget(1, "1e-6"), (), PureDP("0.05")),
    "approximate, Gaussian": (Budget(1, "1e-6"), (), Gaussian(30)),
    "approximate, with deltas": (Budget(4, "1e-6"), (), ApproxDP("0.01", "1e-8")),
    "approximate, the first takes all": (Budget(1, "1e-6"), (), ApproxDP(1, "1e-6")),
    "approximate, samples": (Budget(1, "1e-6"), (), Repeated(PoissonSampled(Gaussian(2), "0.01"), 60)),
    "for Gaussian noise": (Budget(1, "1e-6", expect="gaussian"), (), Gaussian(30)),
    "concentrated": (Budget(rho="0.5"), (), ZCDP("0.03")),
    "concentrated, Gaussian": (Budget(rho="0.5"), (), Gaussian(5)),
    "a quota of each": (Budget(1), (Quota(Budget("0.3"), principal=EACH),), PureDP("0.04")),
    "a window": (Budget(10, "1e-6"), (Quota(Budget("0.5", "1e-7"), window="day"),), Gaussian(60)),
    "a project": (Budget(1), (Quota(Budget("0.3"), project="survey"),), PureDP("0.1")),
    "only a window": (Budget(), (Quota(Budget("0.5"), window="week"),), PureDP("0.2")),
}


@pytest.mark.parametrize("name", KINDS)
def test_as_many_more_are_admitted_as_the_sentence_says_and_not_one_more(name: str, clock: Clock) -> None:
    budget, quotas, event = KINDS[name]
    with opened(budget, *quotas) as book:
        who = {"principal": "ann", "project": "survey"}
        charge(book, event, **who)
        left = book.left(**who)
        assert left.more is not None
        sentence = book.money(**who)
        assert (f"; left: {left.more} more like it" in sentence) or left.more == 0
        assert ("quota" in sentence) == bool(quotas)
        assert "unbounded" not in sentence
        for told in range(left.more, 0, -1):
            assert book.left(**who).more == told
            charge(book, event, **who)
        assert book.left(**who).more == 0
        with pytest.raises(BudgetExceeded):
            charge(book, event, **who)


@pytest.mark.parametrize("late", [Budget(2, "1e-6"), Budget(1, "1e-6")])
def test_the_number_is_true_after_a_first_delta_too(late: Budget) -> None:
    with opened(Budget(1)) as book:
        charge(book, PureDP("0.25"))
        book.raise_budget(late, reason="more", principal="custodian")
        more = book.left().more
        assert more is not None
        for _ in range(more):
            charge(book, PureDP("0.25"))
        with pytest.raises(BudgetExceeded):
            charge(book, PureDP("0.25"))


def test_a_number_of_many_thousands_is_told_at_once() -> None:
    with opened(Budget(10, "1e-6")) as book:
        charge(book, Gaussian(10**4))  # type: ignore[arg-type]
        book.money()
        began = time.process_time()
        for _ in range(20):
            told = book.left().more
        assert time.process_time() - began < 2
        assert told is not None
        assert told > 10**7


def test_the_sentence_of_an_unused_and_of_a_used_up_budget() -> None:
    with opened(Budget(4, "1e-5")) as book:
        assert book.money() == "spent: nothing; left: all of ε = 4, δ = 1e-05"
        charge(book, PureDP(3))
        assert book.money() == "spent: 75 % (1 charge, ε = 3); left: 25 %, and no more like it"
        charge(book, PureDP(1))
        assert book.money() == "spent: 100 % (2 charges, the last ε = 1); left: nothing"
        assert book.money(like=PureDP(1)).endswith("left: nothing")


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
        ("quarter", timedelta(days=55), timedelta(days=56)),
        ("year", timedelta(days=239), timedelta(days=240)),
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
        {}, {"window": "decade"}, {"window": timedelta(0)}, {"window": timedelta(seconds=1.5)}, {"project": ""},
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
    assert "Spent: 100 % (5 charges, the last ρ = 0.1)" in book.describe()
    assert book.money().endswith("left: nothing")


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
