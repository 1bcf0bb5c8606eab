"""Entries of the ledger: what is written of an account, a charge, a claim and an answer. Public facts only."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, final

from discreet.errors import InvalidParameter, Refused
from discreet.formatting import record, with_article
from discreet.ledger.budget import Budget, canonical, digest
from discreet.ledger.lease import may_run
from discreet.privacy.events import Event, from_json
from discreet.privacy.relation import Relation, read_relation

__all__ = [
    "BEGINNING",
    "ROW_OR_NONE",
    "Account",
    "Charge",
    "Entry",
    "Head",
    "ReadClaim",
    "StoredAnswer",
    "as_charge",
    "check_digests",
    "check_key",
    "check_nested",
    "check_relation",
    "check_texts",
    "check_unit",
    "facts_of",
    "packed_event",
    "question_of",
    "same_charge",
    "same_price",
    "written",
]

# --- account: What a data set is opened with, and what may never change afterwards. ---


ROW_OR_NONE = "row or none"  # The unit of a session of rows under replace-one, each of which may be missing.
_LONGEST = 1000  # Characters of a name; a longer one is a mistake.


@final
@dataclass(frozen=True, slots=True)
class Account:
    """A data set, whom it protects, who counts as a neighbour, and its lifetime budget.

    `unit` is public text such as "customer_id" or "row". Unit and relation are fixed for ever; the budget can only
    be raised, which is an entry of its own.

    A data set can make a second promise, to units within the first: `nested` names them, each with a budget of its own.
    Then every charge says what it spends for each, and is admitted only if all budgets admit it.

    Args:
        dataset: The public name of the data set.
        unit: Who is protected, as public text.
        relation: The neighbouring relation.
        budget: What all charges together may spend.
        nested: Units within `unit` that are protected too, as public texts with their budgets.

    Raises:
        InvalidParameter: If a name is empty or too long, or something is of another type.

    Examples:
        >>> account = dp.ledger.Account("visits", "patient_id", dp.Relation.ADD_REMOVE, dp.Budget(epsilon=1))
        >>> account.budget.kind
        'pure'
    """

    dataset: str
    unit: str
    relation: Relation
    budget: Budget
    nested: tuple[tuple[str, Budget], ...] = ()

    __repr__ = record

    def __post_init__(self) -> None:
        object.__setattr__(self, "nested", tuple((unit, budget) for unit, budget in self.nested))
        units = [self.unit, *(unit for unit, _ in self.nested)]
        if len(set(units)) != len(units) or not all(isinstance(unit, str) and unit for unit in units):
            raise InvalidParameter("the units of a data set must be different texts, each with a budget of its own")
        for name in ("dataset", "unit"):
            value = getattr(self, name)
            if not isinstance(value, str) or not 0 < len(value) <= _LONGEST:
                raise InvalidParameter(f"{name} must be a text of 1 to {_LONGEST} characters")
        object.__setattr__(self, "relation", read_relation(self.relation))
        if not all(isinstance(budget, Budget) for budget in self.budgets):
            raise InvalidParameter(
                "budget must be a Budget: say Budget(epsilon=…), with delta or not, or Budget(rho=…)"
            )

    @property
    def budgets(self) -> tuple[Budget, ...]:
        """The budget of the unit, then those of the units within it."""
        return (self.budget, *(budget for _, budget in self.nested))

    def describe(self) -> str:
        """Return the declaration as people read it."""
        within = "".join(f"; within it unit {unit!r}, {budget.describe()}" for unit, budget in self.nested)
        return f"unit {self.unit!r}, {self.relation.value}, {self.budget.describe()}{within}"

    def packed(self) -> dict[str, Any]:
        """Return what JSON writes."""
        packed = {"unit": self.unit, "relation": self.relation.value, "budget": self.budget.packed()}
        nested = [{"unit": unit, "budget": budget.packed()} for unit, budget in self.nested]
        return packed | ({"nested": nested} if nested else {})

    @classmethod
    def unpacked(cls, dataset: str, packed: dict[str, Any]) -> Account:
        """Read what `packed` returned."""
        nested = tuple((each["unit"], Budget.unpacked(each["budget"])) for each in packed.get("nested", ()))
        return cls(dataset, packed["unit"], Relation(packed["relation"]), Budget.unpacked(packed["budget"]), nested)


# --- facts: What is written about a charge, and when two charges are the same. Public facts only. ---


_FACTS_LONGEST = 10_000  # Characters of a purpose, an idempotency key, a plan or a name.
_IDENTITY = ("principal", "project", "plan", "version")


def facts_of(
    event: Event,
    relation: Relation,
    *,
    purpose: str,
    principal: str,
    project: str,
    idempotency_key: str | None,
    plan: str | None,
    version: str | None,
    nested: Sequence[Event] = (),
) -> dict[str, Any]:
    """Collect what is written about a charge; what was not said is left out."""
    # Names in entries are hashed into the chain and looked up by later releases: they never change.
    said = {
        "purpose": purpose,
        "principal": principal,
        "project": project,
        "key": idempotency_key,
        "plan": plan,
        "version": version,
    }
    check_texts(**{"idempotency_key" if name == "key" else name: value for name, value in said.items()})
    facts = {"event": packed_event(event), "relation": relation.value}
    if nested:
        facts["nested"] = [packed_event(each) for each in nested]
    return facts | {name: value for name, value in said.items() if value is not None}


def check_texts(**texts: str | None) -> None:
    """Refuse what is not a text of a sane length that can be stored as UTF-8."""
    for name, value in texts.items():
        if value is not None and (not isinstance(value, str) or len(value) > _FACTS_LONGEST):
            raise InvalidParameter(f"{name} must be a text of at most {_FACTS_LONGEST:,} characters")
        if value is not None and not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value):
            raise InvalidParameter(f"{name} has half of a surrogate pair, which is no character: it cannot be stored")


def check_digests(digests: Mapping[str, str]) -> None:
    """Refuse what cannot be written as digests by names: names are texts of an entry as much as digests are."""
    for name, value in digests.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise InvalidParameter("digests must be texts by names, which are texts too")
        check_texts(**{"a name of what is published": name, "a digest": value})


def check_relation(relation: Relation, account: Account) -> None:
    """Refuse a charge under another relation: what it says about neighbours cannot be added up."""
    if relation is not account.relation:
        raise InvalidParameter(
            f"this data set is accounted under {account.relation.name}; a charge under {relation.name} cannot be added"
        )


def check_unit(unit: str, account: Account) -> None:
    """Refuse a charge that protects somebody else: what one row gives says nothing about a person with many."""
    if unit != account.unit:
        raise Refused(
            f"this data set protects {_whom(account.unit)}, and this charge protects {_whom(unit)}: bound what each "
            "of them gives, and name the unit with the charge"
        )


def check_nested(nested: Sequence[Event], account: Account) -> None:
    """Refuse a charge that says what it spends for some of the promises only: none of them may go unpaid."""
    if len(nested) != len(account.nested):
        raise Refused(
            f"this data set makes {1 + len(account.nested)} promises ({account.describe()}), and this charge says what "
            f"it spends for {1 + len(nested)}",
            reason="every answer is paid for under each promise, and what was proven for one unit says nothing yet for "
            "another",
            way_out="ask with session.sql or a release plan, which know what an answer costs each of them",
        )


def _whom(unit: str) -> str:
    """Say whom an account protects: its ledger has the column, or all that a unit is made of, and no other name."""
    if unit == "row":
        return "each row by itself"
    if unit == ROW_OR_NONE:
        return "what each row says, or that it is missing"
    return f"everybody who shares {unit}" if unit.startswith("[") else f"everybody who shares {with_article(unit)}"


def question_of(facts: Mapping[str, Any]) -> str | None:
    """Name what must be the same for an answer to be given again; None if it never is."""
    if facts.get("plan") is None or facts.get("version") is None:
        return None
    return digest(canonical([facts.get(name) for name in _IDENTITY]))


def same_charge(entry: Entry, facts: Mapping[str, Any]) -> Charge:
    """Return the charge that has this idempotency key already; refuse if it was for anything else."""
    check_key(entry, facts)
    if not same_price(entry, facts):
        raise Refused("this idempotency key was used for another event: choose a new key")
    if entry.content.get("parts") != facts.get("parts"):
        raise Refused("this idempotency key was used for another number of answers: choose a new key")
    return as_charge(entry)


def same_price(entry: Entry, facts: Mapping[str, Any]) -> bool:
    """Tell whether a charge spent the same, for every unit."""
    return all(entry.content.get(name) == facts.get(name) for name in ("event", "nested"))


def check_key(entry: Entry, asked: Mapping[str, Any]) -> None:
    """Refuse an idempotency key that was used for anything else. The message does not say by whom or for what."""
    if any(entry.content.get(name) != asked.get(name) for name in _IDENTITY):
        raise Refused(
            "this idempotency key was used with another plan, principal, project or version: choose a new key"
        )


def as_charge(entry: Entry) -> Charge:
    """Return the receipt of an entry."""
    return Charge(entry.index, entry.index, entry.hash)


# --- event_text: An event as part of a record. ---


def packed_event(event: Event) -> Any:
    """Return what JSON writes of an event."""
    if not isinstance(event, Event):
        raise InvalidParameter(f"expected an event of discreet.privacy, not {type(event).__name__}")
    try:
        return _packed(event)
    except ValueError:
        raise InvalidParameter("this event has a number with too many digits to be written down") from None


@lru_cache(maxsize=4096)
def _packed(event: Event) -> Any:
    return json.loads(event.to_json())


# --- entry: One line of the record: public facts, hashed together with the line before. ---


@final
@dataclass(frozen=True, slots=True)
class Head:
    """The end of the chain: how many entries there are, and the hash of the last one."""

    index: int
    hash: str
    time: int = field(default=0, compare=False)  # of the last entry; the anchor does not keep it


BEGINNING = Head(0, "0" * 64)


@final
@dataclass(frozen=True, slots=True)
class Charge:
    """A charge that is durable: it was written, forced to disk and anchored before this value existed.

    Args:
        id: The index of its entry.
        index: The same index.
        hash: The hash of its entry, which stands for the record up to there.

    Examples:
        >>> account = dp.ledger.Account("visits", "row", dp.Relation.ADD_REMOVE, dp.Budget(epsilon=1))
        >>> ledger = dp.ledger.Ledger.open("memory", account)
        >>> charge = ledger.charge(dp.privacy.PureDP(0.5), relation=dp.Relation.ADD_REMOVE, purpose="count")
        >>> ledger.entry(charge).hash == charge.hash
        True
    """

    id: int  # the index of its entry
    index: int
    hash: str


@final
@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """An answer that was released under a charge. Giving it out again costs nothing.

    Args:
        charge: The charge that paid for it.
        text: The answer, as it was stored.

    Examples:
        >>> account = dp.ledger.Account("visits", "row", dp.Relation.ADD_REMOVE, dp.Budget(epsilon=1))
        >>> ledger = dp.ledger.Ledger.open("memory", account)
        >>> event, relation = dp.privacy.PureDP(0.5), dp.Relation.ADD_REMOVE
        >>> charge = ledger.charge(event, relation=relation, purpose="count", plan="q", version="1")
        >>> text = ledger.store(charge, lambda: "42")
        >>> ledger.stored(principal="", version="1", plan="q").text
        '42'
    """

    charge: Charge
    text: str


@final
@dataclass(frozen=True, slots=True)
class ReadClaim:
    """A read that was begun under a charge and has no answer yet: the only one, and the last one if it has none.

    It is durable before the first row is read. Nobody else reads under that charge until there is an answer, or until
    whoever holds the data releases the claim.

    Args:
        charge: The charge that pays for the read.
        index: The index of its own entry.
        dataset: The data set that is read.
        principal: For whom it is read.
        until: Microseconds since 1970, from which on it counts as failed.
        process: The process that reads.
        part: Of a series, the last answer that follows from this read.
        is_failed: Whether the process lived to say that it failed.
        counts: Whether it counts towards the limit of failures.

    Examples:
        >>> account = dp.ledger.Account("visits", "row", dp.Relation.ADD_REMOVE, dp.Budget(epsilon=1))
        >>> ledger = dp.ledger.Ledger.open("memory", account)
        >>> event, relation = dp.privacy.PureDP(0.5), dp.Relation.ADD_REMOVE
        >>> claim = ledger.claim(event, relation=relation, purpose="count", seconds=60)
        >>> ledger.store(claim, lambda: "42")
        '42'
    """

    charge: Charge
    index: int  # of its own entry
    dataset: str
    principal: str  # for whom it is read
    until: int  # microseconds since 1970: from then on it counts as failed, whatever became of the process
    process: str  # that reads: once it is gone no answer will come
    part: int | None = None  # of a series: the last answer that follows from this read
    is_failed: bool = False  # the process lived to say so
    counts: bool = True  # towards the limit of failures; not any more once whoever holds the data has looked

    def is_live(self, moment: int) -> bool:
        """Tell whether an answer may still come."""
        return not self.is_failed and moment < self.until and may_run(self.process)


@final
@dataclass(frozen=True, slots=True)
class Entry:
    """One entry as it was read back.

    Args:
        index: Its place in the record, from 0.
        hash: The hash of this entry and, through `previous`, of all before it.
        previous: The hash of the entry before.
        kind: What sort of entry it is, such as "charge".
        dataset: The data set that it belongs to.
        time: Microseconds since 1970, never before that of the entry before.
        content: The rest, as JSON has it.

    Examples:
        >>> account = dp.ledger.Account("visits", "row", dp.Relation.ADD_REMOVE, dp.Budget(epsilon=1))
        >>> [entry.kind for entry in dp.ledger.Ledger.open("memory", account).history()]
        ['open']
    """

    index: int
    hash: str
    previous: str
    # "open", "charge", "answer", "part", "bundle", "raise", "quotas", "format", "restored", "moved", "arrived" or
    # "checkpoint"; and of claims "reading", "read", "failed", "released" or "reopened"
    kind: str
    dataset: str
    time: int  # microseconds since 1970, never before the time of the entry before
    content: Mapping[str, Any]

    @property
    def event(self) -> Event | None:
        """The event that was charged; None for another kind of entry."""
        return from_json(json.dumps(self.content["event"])) if self.kind == "charge" else None

    @property
    def nested(self) -> tuple[Event, ...]:
        """What was charged to the units within the first, in their order; none for another kind of entry."""
        return tuple(from_json(json.dumps(each)) for each in self.content.get("nested", ()))

    def __repr__(self) -> str:
        return self.describe()

    @property
    def moment(self) -> str:
        """When it was written, as UTC, to the second."""
        return datetime.fromtimestamp(self.time / 1e6, UTC).isoformat(timespec="seconds")

    def describe(self) -> str:
        """Return the entry on one line."""
        return f"{self.index} {self.moment} {self.kind} {self.dataset} {self.content.get('purpose', '')}".rstrip()

    @classmethod
    def read(cls, body: str, written_hash: str) -> Entry:
        """Read the text of an entry."""
        packed = json.loads(body)
        fixed = {name: packed.pop(name) for name in ("index", "previous", "kind", "dataset", "time")}
        return cls(hash=written_hash, content=packed, **fixed)


def written(head: Head, *, kind: str, dataset: str, time: int, content: Mapping[str, Any]) -> tuple[Head, str]:
    """Return the head after an entry, and the text of the entry: canonical JSON with the hash of the one before."""
    fixed = {"index": head.index + 1, "previous": head.hash, "kind": kind, "dataset": dataset, "time": time}
    body = canonical(fixed | dict(content))
    return Head(head.index + 1, digest(body), time), body
