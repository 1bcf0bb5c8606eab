"""A key and an identical question give the stored answer again, bit by bit, and cost nothing."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from discreet.errors import InvalidParameter, Refused
from discreet.ledger import Account, Budget, Ledger
from discreet.ledger.charge_record import Charge
from discreet.privacy import PureDP
from discreet.privacy.relation import Relation

ADD = Relation.ADD_REMOVE
TENTH = PureDP("0.1")


@pytest.fixture
def book() -> Ledger:
    return Ledger.open("memory", Account("people", "row", ADD, Budget(1)))


def charged(book: Ledger, **said: str | None) -> Charge:
    facts = {"principal": "ann", "plan": "count", "version": "v1"} | said
    return book.charge(TENTH, relation=ADD, purpose="question", **facts)


def never() -> str:
    raise AssertionError("noise is drawn once")


def test_a_key_is_charged_once_and_answered_a_thousand_times(book: Ledger) -> None:
    first = charged(book, idempotency_key="k")
    answer = book.store(first, lambda: "42 ± 3")
    for _ in range(1000):
        again = charged(book, idempotency_key="k")
        assert again == first
        assert book.store(again, never) == answer
    found = book.stored(idempotency_key="k", plan="count", principal="ann", version="v1")
    assert found is not None
    assert (found.text, found.charge) == (answer, first)
    assert book.spent().epsilon == Fraction(1, 10)


@pytest.mark.parametrize(
    "other", [{"plan": "sum"}, {"principal": "bob"}, {"version": "v2"}, {"project": "p"}, {"plan": None}]
)
def test_a_key_that_was_used_for_something_else_is_refused(book: Ledger, other: dict[str, str | None]) -> None:
    charged(book, idempotency_key="k")
    with pytest.raises(Refused, match="key"):
        charged(book, idempotency_key="k", **other)
    asked = {"plan": "count", "principal": "ann", "version": "v1"} | other
    with pytest.raises(Refused, match="key"):
        book.stored(idempotency_key="k", **asked)  # type: ignore[arg-type]
    with pytest.raises(Refused, match="event"):
        book.charge(
            PureDP("0.2"), relation=ADD, purpose="q", idempotency_key="k", principal="ann", plan="count", version="v1"
        )
    assert book.spent().charges == 1


def test_an_identical_question_is_free_and_bit_identical(book: Ledger) -> None:
    book.store(charged(book), lambda: "0.1234567890123456789")
    found = book.stored(plan="count", principal="ann", version="v1")
    assert found is not None
    assert found.text == "0.1234567890123456789"


@pytest.mark.parametrize(
    "other", [{"plan": "sum"}, {"principal": "bob"}, {"version": "v2"}, {"version": None}, {"project": "p"}]
)
def test_another_question_finds_nothing(book: Ledger, other: dict[str, str | None]) -> None:
    book.store(charged(book), lambda: "42")
    asked = {"plan": "count", "principal": "ann", "version": "v1"} | other
    assert book.stored(**asked) is None  # type: ignore[arg-type]


def test_without_a_version_nothing_is_reused_but_a_key(book: Ledger) -> None:
    book.store(charged(book, version=None, idempotency_key="k"), lambda: "42")
    assert book.stored(plan="count", principal="ann", version=None) is None
    found = book.stored(idempotency_key="k", plan="count", principal="ann", version=None)
    assert found is not None


def test_a_charge_without_an_answer_is_found_by_nobody_and_can_be_tried_again(book: Ledger) -> None:
    first = charged(book, idempotency_key="k")
    assert book.stored(idempotency_key="k", plan="count", principal="ann", version="v1") is None
    assert book.stored(plan="count", principal="ann", version="v1") is None
    with pytest.raises(ZeroDivisionError):
        book.store(first, lambda: str(1 / 0))
    assert book.store(charged(book, idempotency_key="k"), lambda: "42") == "42"
    assert book.spent().charges == 1
    book.verify()


def test_another_data_set_has_other_keys_and_charges(place: Path | str) -> None:
    with (
        Ledger.open(place, Account("people", "row", ADD, Budget(1))) as people,
        Ledger.open(place, Account("places", "row", ADD, Budget(1))) as places,
    ):
        first = charged(people, idempotency_key="k")
        second = charged(places, idempotency_key="k", plan="other")
        assert first.id != second.id
        with pytest.raises(InvalidParameter, match="no such charge"):
            places.store(first, lambda: "42")
        assert people.spent().charges == places.spent().charges == 1


@pytest.mark.parametrize("index", [0, 1, 99])
def test_there_is_no_answer_to_what_was_not_charged(book: Ledger, index: int) -> None:
    charged(book)
    with pytest.raises(InvalidParameter, match="no such charge"):
        book.store(index, lambda: "42")


def test_the_noise_is_drawn_inside_one_transaction(book: Ledger) -> None:
    """Whoever asks the ledger from there would read a state that is not yet written."""
    with pytest.raises(Refused, match="inside"):
        book.store(charged(book), lambda: str(book.left()))
    with pytest.raises(InvalidParameter, match="text"):
        book.store(charged(book), lambda: 5)  # type: ignore[arg-type, return-value]
    assert book.stored(plan="count", principal="ann", version="v1") is None
