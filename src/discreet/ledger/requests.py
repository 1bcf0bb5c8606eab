"""What is asked of a ledger: a charge, a claim, an answer to store. Each is decided within one transaction.

A request can be written down, so that on a server whoever has the turn decides it for whoever waits. It is decided by
the same code wherever that runs, and says all that the decision depends on: the process that will read, too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, Protocol, TypeGuard, TypeVar, final

from discreet.errors import InvalidParameter, Refused
from discreet.exact import Number, exact
from discreet.ledger.accounts import Book
from discreet.ledger.budget import canonical, digest
from discreet.ledger.charge_record import (
    Charge,
    Entry,
    ReadClaim,
    StoredAnswer,
    as_charge,
    check_nested,
    check_relation,
    check_unit,
    question_of,
    same_charge,
    same_price,
)
from discreet.ledger.charges_and_claims import (
    add_claim,
    append,
    charge_entry,
    check_claim,
    check_not_claimed,
    check_room,
    now,
    spend,
)
from discreet.ledger.installments import check_known, check_single, is_known
from discreet.ledger.lease import this_process
from discreet.ledger.store import LedgerRows, Store
from discreet.privacy.events import Event, from_json
from discreet.privacy.relation import Relation

__all__ = [
    "AnswerRequest",
    "BatchingStore",
    "ChargeRequest",
    "ClaimRequest",
    "LedgerRequest",
    "answer_before",
    "book_of",
    "decided",
    "is_shared",
    "process_of",
    "read_request",
    "refuse_arriving",
    "refuse_moved",
    "with_all_quotas",
]

T = TypeVar("T")
_FORM = 1  # of a request that was written down; whoever does not know it leaves it to whoever asked


class LedgerRequest(Protocol[T]):
    """Something that is decided within one transaction."""

    @property
    def dataset(self) -> str:
        """The data set that it is about."""

    def decide(self, rows: LedgerRows) -> T:
        """Write what follows from it, or raise; whoever calls takes everything back then."""

    def text(self) -> str | None:
        """Write it down for somebody else to decide; None if it has what nobody may see before it is decided."""

    def told(self, decision: T) -> str:
        """Write down what was decided."""

    def read(self, rows: LedgerRows, told: str) -> T:
        """Read what was decided, by somebody else."""


class BatchingStore(Store, Protocol):
    """A store that decides what many have asked in one transaction."""

    def decide(self, request: LedgerRequest[T]) -> T:
        """Return what was decided, durably and anchored; or raise what a transaction of its own would have raised."""


def _is_batching(store: Store) -> TypeGuard[BatchingStore]:
    return hasattr(store, "decide")


def is_shared(store: Store) -> bool:
    """Tell whether machines share a store: then nobody keeps the others waiting for a draw, or for a whole reading."""
    return getattr(store, "is_shared", False)


def process_of(store: Store) -> str:
    """Name this process in a claim, for all who can see the store."""
    return this_process(is_shared=is_shared(store))


def decided(store: Store, request: LedgerRequest[T]) -> T:
    """Have a request decided: together with others where the store does that, or in a transaction of its own."""
    if _is_batching(store):
        return store.decide(request)
    with store.writing() as rows:
        return request.decide(rows)


def refuse_moved(rows: LedgerRows) -> None:
    """Refuse to open a ledger that was moved, and say where to."""
    found = rows.entry(rows.head().index)
    last = None if found is None else Entry.read(*found)
    if last is not None and last.kind == "moved":
        raise Refused(
            f"this ledger was moved to {last.content['to']}, and nothing is charged here any more",
            way_out="name that place in the policy, the plan or the command",
        )


def refuse_arriving(rows: LedgerRows) -> None:
    """Refuse to begin a ledger where another one is being moved to: its data sets would have a second budget."""
    if rows.head().index == 0 and rows.accounts():
        raise Refused(
            "a ledger is being moved to this place, and has not arrived",
            way_out="let the move end, or give the same command again: discreet ledger move",
        )


def book_of(rows: LedgerRows, dataset: str) -> Book:
    """Read what is declared now: another process may have raised the budget."""
    declared = rows.account(dataset)
    if declared is None:
        raise Refused("this data set is not declared in this ledger")
    return Book.read(dataset, declared)


def with_all_quotas(rows: LedgerRows, book: Book) -> Book:
    """Return the book with every quota that it ever had: the sums of one are kept, so its shares of delta are."""
    dataset = book.account.dataset
    entries = (Entry.read(body, head.hash) for head, body in rows.entries() if '"declared":' in body)
    declared = [entry.content.get("declared") for entry in entries if entry.dataset == dataset]
    books = [Book.read(dataset, canonical(each)) for each in declared if each is not None]
    return replace(book, quotas=tuple({quota: rule for each in books for quota, rule in each.quotas}.items()))


def _check(rows: LedgerRows, asked: ChargeRequest | ClaimRequest) -> None:
    account = book_of(rows, asked.dataset).account
    check_relation(Relation(asked.facts["relation"]), account)
    check_unit(asked.unit, account)
    check_nested(asked.nested, account)


def _by_key(rows: LedgerRows, dataset: str, facts: Mapping[str, Any]) -> Entry | None:
    """Return the charge that was made under this key before, unless it can no longer be answered."""
    index = None if facts.get("key") is None else rows.by_key(dataset, facts["key"])
    if index is None:
        return None
    entry = charge_entry(rows, dataset, index)
    same_charge(entry, facts)
    if rows.answer(entry.index) is None and "parts" not in entry.content:
        check_known(rows, entry)
    return entry


def _by_question(rows: LedgerRows, dataset: str, facts: Mapping[str, Any]) -> Entry | None:
    """Return the charge that answers this question, or else the newest one for it; a new key pays anew."""
    question = question_of(facts)
    if question is None:
        return None
    index = rows.by_question(dataset, question)
    if index is None and facts.get("key") is None:
        index = rows.newest(dataset, question)
    entry = None if index is None else charge_entry(rows, dataset, index)
    if entry is None or "parts" in entry.content or not same_price(entry, facts):
        return None
    return entry if rows.answer(entry.index) is not None or is_known(rows, entry) else None


def _spent(rows: LedgerRows, asked: ChargeRequest | ClaimRequest) -> Charge:
    """Add a charge to every sum it counts against, and to the chain."""
    moment, facts = now(rows), dict(asked.facts)
    book, principal = book_of(rows, asked.dataset), facts["principal"]
    book.check_cap(principal)
    scopes = book.scopes(project=facts["project"], principal=principal, time=moment)
    facts["prices"] = spend(rows, asked.dataset, scopes, asked.event, Relation(facts["relation"]), asked.nested)
    charge = append(rows, asked.dataset, "charge", facts, moment)
    key, question = facts.get("key"), question_of(facts)
    if key is not None or question is not None:
        rows.remember(charge.id, asked.dataset, key=key, question=question)
    return charge


@final
@dataclass(frozen=True, slots=True)
class ChargeRequest:
    """A charge: what it is for, and what it spends."""

    dataset: str
    event: Event
    facts: Mapping[str, Any]
    unit: str
    nested: Sequence[Event]

    def decide(self, rows: LedgerRows) -> Charge:
        _check(rows, self)
        again = _by_key(rows, self.dataset, self.facts)
        return _spent(rows, self) if again is None else as_charge(again)

    def text(self) -> str:
        return _written("charge", dataset=self.dataset, facts=self.facts, unit=self.unit)

    def told(self, decision: Charge) -> str:
        return canonical([decision.id, decision.hash])

    def read(self, rows: LedgerRows, told: str) -> Charge:
        index, written_hash = json.loads(told)
        return Charge(index, index, written_hash)


@final
@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """A charge, unless it was charged before, and the claim of the one read that it pays for."""

    dataset: str
    event: Event
    facts: Mapping[str, Any]
    unit: str
    nested: Sequence[Event]
    seconds: Number
    process: str

    def decide(self, rows: LedgerRows) -> ReadClaim | StoredAnswer:
        _check(rows, self)
        entry = _by_key(rows, self.dataset, self.facts) or _by_question(rows, self.dataset, self.facts)
        if entry is not None:
            text = rows.answer(entry.index)
            if text is not None:
                return StoredAnswer(as_charge(entry), text)
            check_not_claimed(rows, entry.index)
        principal = self.facts["principal"]
        check_room(rows, self.dataset, principal)
        charge = _spent(rows, self) if entry is None else as_charge(entry)
        return add_claim(
            rows, charge, dataset=self.dataset, principal=principal, seconds=self.seconds, process=self.process
        )

    def text(self) -> str:
        seconds = exact(self.seconds, name="seconds")
        return _written(
            "claim",
            dataset=self.dataset,
            facts=self.facts,
            unit=self.unit,
            seconds=[seconds.numerator, seconds.denominator],
            process=self.process,
        )

    def told(self, decision: ReadClaim | StoredAnswer) -> str:
        charge = decision.charge
        claimed = [decision.index, decision.until] if isinstance(decision, ReadClaim) else []
        return canonical([charge.id, charge.hash, *claimed])

    def read(self, rows: LedgerRows, told: str) -> ReadClaim | StoredAnswer:
        index, written_hash, *claimed = json.loads(told)
        charge = Charge(index, index, written_hash)
        if claimed:
            return ReadClaim(charge, claimed[0], self.dataset, self.facts["principal"], claimed[1], self.process)
        return StoredAnswer(charge, _stored(rows, index))


def answer_before(rows: LedgerRows, dataset: str, charge: int, claim: ReadClaim | None) -> str | None:
    """Return the answer of a charge; None if it may be drawn now, and refuse if it may not."""
    entry = charge_entry(rows, dataset, charge)
    check_single(entry)
    text = rows.answer(charge)
    if text is None:
        check_known(rows, entry)
        check_claim(rows, charge, claim)
    return text


@final
@dataclass(frozen=True, slots=True)
class AnswerRequest:
    """An answer that was drawn and is stored under its charge, unless there is one: then that one is the answer."""

    dataset: str
    charge: int
    claim: ReadClaim | None
    answer: str

    def decide(self, rows: LedgerRows) -> str:
        text = answer_before(rows, self.dataset, self.charge, self.claim)
        if text is not None:
            return text
        rows.set_answer(self.charge, self.answer)
        append(rows, self.dataset, "answer", {"charge": self.charge, "answer": digest(self.answer)})
        rows.end_claim(self.charge)
        return self.answer

    def text(self) -> None:
        """A draw may be dropped yet: then nobody may have seen it."""

    def told(self, decision: str) -> str:
        return "mine" if decision == self.answer else "another"

    def read(self, rows: LedgerRows, told: str) -> str:
        return self.answer if told == "mine" else _stored(rows, self.charge)


def _stored(rows: LedgerRows, charge: int) -> str:
    text = rows.answer(charge)
    if text is None:
        raise Refused("an answer that was stored is gone: verify this ledger")
    return text


def _written(kind: str, **facts: Any) -> str:
    return canonical({"form": _FORM, "kind": kind, **facts})


@lru_cache(maxsize=1024)
def _event(text: str) -> Event:
    return from_json(text)


def read_request(text: str) -> ChargeRequest | ClaimRequest:
    """Read what somebody else has asked; refuse a form that this release does not know."""
    said = json.loads(text)
    if said["form"] != _FORM:
        raise InvalidParameter("this request was written by another release")
    facts = said["facts"]
    event = _event(json.dumps(facts["event"]))
    nested = tuple(_event(json.dumps(each)) for each in facts.get("nested", ()))
    if said["kind"] == "charge":
        return ChargeRequest(said["dataset"], event, facts, said["unit"], nested)
    if said["kind"] == "claim":
        return ClaimRequest(
            said["dataset"], event, facts, said["unit"], nested, Fraction(*said["seconds"]), said["process"]
        )
    raise InvalidParameter("this request is of a kind that this release does not know")
