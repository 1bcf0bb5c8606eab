"""`discreet ledger`: what is told of a ledger, and reads without an answer."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from itertools import zip_longest
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any, final

from discreet.cli.output import Block, Styled, TextTable
from discreet.cli.policies import named_ledger, read_any_policy
from discreet.errors import InvalidParameter
from discreet.ledger import Budget, Ledger, look
from discreet.ledger.charge_record import ReadClaim
from discreet.ledger.spending import price_words
from discreet.privacy import Relation

if TYPE_CHECKING:
    from discreet.ledger.charge_record import Account, Entry
    from discreet.ledger.inspect import LedgerView
    from discreet.privacy import Event
    from discreet.query import Policy

__all__ = [
    "ClaimedRead",
    "Claims",
    "DetailedHistory",
    "Exported",
    "History",
    "MovedLedger",
    "Recorded",
    "VerifiedLedger",
    "claims_of",
    "released",
    "reopened",
]

# --- claiming: Reads without an answer, in every account of a policy's ledger that belongs to its data set. ---


def claims_of(path: Path) -> tuple[ReadClaim, ...]:
    """List them; a ledger that is not there yet has none."""
    policy = read_any_policy(path)
    if not policy.ledger.exists():
        return ()
    seen = look(policy.ledger, anchor=policy.anchor)
    return tuple(claim for claim in seen.claims() if claim.dataset in _datasets(policy))


def released(path: Path, charge: int, *, reason: str, principal: str) -> tuple[ReadClaim, ...]:
    """Release one, and list what is left."""
    policy = read_any_policy(path)
    dataset = next((claim.dataset for claim in claims_of(path) if claim.charge.id == charge), None)
    if dataset is None:
        raise InvalidParameter("no read without an answer is claimed under this charge: see `discreet ledger claims`")
    with _opened(policy, dataset) as ledger:
        ledger.release_claim(charge, reason=reason, principal=principal)
    return claims_of(path)


def reopened(path: Path, analyst: str, *, reason: str, principal: str) -> tuple[ReadClaim, ...]:
    """Count the failures of somebody no more, and list what is left."""
    policy = read_any_policy(path)
    closed = {claim.dataset for claim in claims_of(path) if claim.counts and claim.principal == analyst}
    if not closed:
        raise InvalidParameter(f"no read for {analyst!r} has failed since anybody looked: see `discreet ledger claims`")
    for dataset in sorted(closed):
        with _opened(policy, dataset) as ledger:
            ledger.reopen(analyst, reason=reason, principal=principal)
    return claims_of(path)


def _datasets(policy: Policy) -> tuple[str, str]:
    """The account of a data set, and the one of its series that protect each day by itself."""
    return policy.dataset, f"{policy.dataset} by day"


@contextmanager
def _opened(policy: Policy, dataset: str) -> Iterator[Ledger]:
    account = look(policy.ledger, anchor=policy.anchor).account(dataset)
    with Ledger.open(policy.ledger, account, anchor=policy.anchor) as ledger:
        yield ledger


# --- records: What is told of a ledger. ---


_LONGEST = 70  # Characters of a purpose, for people who want all of it.
_WIDTH, _LEAST = 80, 16  # Characters of a line, and of what is shown of a purpose at least.
_QUIET = ("reading", "read", "answer", "part", "bundle", "format")  # What follows from a charge by itself.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedLedger:
    """A record that was read from its beginning to its end, and in which everything is right."""

    dataset: str
    entries: int
    charges: int
    head: str  # the hash of the last entry: whoever notes it elsewhere can tell later that nothing was taken back

    @classmethod
    def of(cls, ledger: Ledger) -> VerifiedLedger:
        """Describe a record that was verified."""
        entries = ledger.history()
        dataset, charges = ledger.account.dataset, sum(entry.kind == "charge" for entry in entries)
        return cls(dataset=dataset, entries=len(entries), charges=charges, head=entries[-1].hash)

    def blocks(self) -> Iterator[Block]:
        told = f"{self.dataset}: verified, {self.entries:,} entries of which {self.charges:,} are charges"
        yield Styled(told, "bold green")
        yield f"the last one is {self.head}"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MovedLedger:
    """A record that is at another place now, where it was verified."""

    to: str
    entries: int
    head: str

    @classmethod
    def of(cls, seen: LedgerView, to: Path) -> MovedLedger:
        """Describe what is there now."""
        entries, named = seen.entries(), named_ledger(to)
        return cls(to=to.name if named is None else named.name, entries=len(entries), head=entries[-1].hash)

    def blocks(self) -> Iterator[Block]:
        yield Styled(f"{self.to}: moved and verified, {self.entries:,} entries", "bold green")
        yield f"the last one is {self.head}; name the new place in policies and plans"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """One entry: what is public of it."""

    index: int
    time: str  # ISO 8601, UTC
    kind: str
    principal: str
    project: str
    purpose: str
    hash: str
    event: dict[str, Any] | None  # what was charged
    price: str | None  # what it cost, in words
    budget: str | None  # the lifetime budget that was declared by it

    @classmethod
    def of(cls, entry: Entry, account: Account, at: Fraction | None, called: Mapping[str, str]) -> Recorded:
        """Read an entry; a price is told at a delta, by default that of the budget, and for every unit."""
        said, event = entry.content, entry.event
        return cls(
            index=entry.index,
            time=datetime.fromtimestamp(entry.time // 1_000_000, UTC).isoformat(),
            kind=entry.kind,
            principal=said.get("principal", ""),
            project=said.get("project", ""),
            purpose=said.get("purpose") or said.get("reason", ""),
            hash=entry.hash,
            event=said.get("event"),
            price=None if event is None else _price(entry, event, account, at, called),
            budget=_budgets(said["declared"], called) if "declared" in said else None,
        )

    @property
    def told(self) -> str:
        """What it was for, and which budget was declared."""
        return ": ".join(text for text in (self.budget, " ".join(self.purpose.split())) if text)


def _price(entry: Entry, event: Event, account: Account, at: Fraction | None, called: Mapping[str, str]) -> str | None:
    relation = Relation(entry.content["relation"])
    first = price_words(event, relation, account.budget, at)
    if not account.nested:
        return first
    within = zip(entry.nested, account.nested, strict=True)
    told = [(account.unit, first), *((unit, price_words(each, relation, own, at)) for each, (unit, own) in within)]
    return "; ".join(f"{price or 'unknown'} for one {called.get(unit, unit)}" for unit, price in told)


def _budgets(declared: Mapping[str, Any], called: Mapping[str, str]) -> str:
    first, *within = (Budget.unpacked(each["budget"]).describe() for each in (declared, *declared.get("nested", ())))
    names = (called.get(each["unit"], each["unit"]) for each in declared.get("nested", ()))
    return ", and ".join((first, *(f"{told} for one {name}" for told, name in zip(within, names, strict=True))))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Every entry of a data set."""

    dataset: str
    entries: list[Recorded]
    sentence: str  # what was spent in all, and how many more like the last one fit

    @classmethod
    def of(cls, ledger: Ledger, at: Fraction | None, called: Mapping[str, str]) -> History:
        """Read a ledger; prices are told at a delta, by default that of the budget. `called` has the names of units."""
        account = ledger.account
        entries = [Recorded.of(entry, account, at, called) for entry in ledger.history()]
        return cls(dataset=account.dataset, entries=entries, sentence=ledger.money(at=at, called=called))

    def blocks(self) -> Iterator[Block]:
        told = [entry for entry in self.entries if entry.kind not in _QUIET]
        yield _listed(told, _WIDTH)
        if len(told) < len(self.entries):
            yield f"{len(self.entries) - len(told):,} entries about reads and answers are not shown: --details"
        yield self.sentence


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DetailedHistory:
    """The same with every entry, however long its purpose, for people; JSON always has them."""

    history: History

    def blocks(self) -> Iterator[Block]:
        yield _listed(self.history.entries, None)
        yield self.history.sentence


def _listed(entries: list[Recorded], width: int | None) -> TextTable:
    """Write entries as a table that fits a line, with what is left of it for the purpose."""
    rows = [(str(e.index), e.time[:16].replace("T", " "), e.kind, e.principal, e.price or "") for e in entries]
    head = ("", "time, UTC", "entry", "who", "price")
    used = sum(
        max(len(line) for cell in column for line in cell.split("; ")) + 2 for column in zip(head, *rows, strict=True)
    )
    most = _LONGEST if width is None else max(_LEAST, width - used)
    told = [line for row, entry in zip(rows, entries, strict=True) for line in _wrapped(row, entry.told, most)]
    return TextTable(head=(*head, "what for"), rows=told, right=frozenset({0}), marks={"charge": "cyan"})


def _wrapped(row: tuple[str, ...], purpose: str, most: int) -> Iterator[tuple[str, ...]]:
    """Write a purpose beside its row; what does not fit, and prices for other units, below it: no word is lost."""
    *facts, price = row
    first, *rest = zip_longest(price.split("; "), wrap(purpose, most) or [""], fillvalue="")
    yield (*facts, *first)
    yield from ((*("" for _ in facts), *more) for more in rest)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedRead:
    """One read without an answer: what is public of it."""

    charge: int
    dataset: str
    principal: str
    until: str  # ISO 8601, UTC: when its time is over
    state: str  # "may be answered", "failed", or "failed, looked at": it counts no more
    counts: bool

    @classmethod
    def of(cls, claim: ReadClaim) -> ClaimedRead:
        """Read a claim."""
        failed = "failed" if claim.counts else "failed, looked at"
        return cls(
            charge=claim.charge.id,
            dataset=claim.dataset,
            principal=claim.principal,
            until=datetime.fromtimestamp(claim.until // 1_000_000, UTC).isoformat(),
            state="may be answered" if claim.is_live(time.time_ns() // 1000) else failed,
            counts=claim.counts,
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """Every read that was begun and has no answer."""

    claims: list[ClaimedRead]
    most: int  # that somebody may have on a data set before nothing more is read for them

    @classmethod
    def of(cls, claims: Iterable[ReadClaim]) -> Claims:
        """List claims."""
        from discreet.ledger.charges_and_claims import MOST_UNANSWERED

        return cls(claims=[ClaimedRead.of(claim) for claim in claims], most=MOST_UNANSWERED)

    def blocks(self) -> Iterator[Block]:
        if not self.claims:
            yield "every read that was begun has its answer"
            return
        rows = [(str(one.charge), one.dataset, one.principal, _when(one.until), one.state) for one in self.claims]
        yield TextTable(head=("charge", "data set", "who", "until (UTC)", "state"), rows=rows, right=frozenset({0}))
        yield f"at {self.most} that count, nothing more is read for whoever asked: see ledger release, ledger reopen"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """A record that was written out."""

    file: str
    entries: int
    head: str

    @classmethod
    def of(cls, ledger: Ledger, file: Path) -> Exported:
        """Describe an export."""
        entries = ledger.history()
        return cls(file=str(file), entries=len(entries), head=entries[-1].hash)

    def blocks(self) -> Iterator[Block]:
        yield f"{self.file}: {self.entries:,} entries"


def _when(iso: str) -> str:
    """Write a time in UTC as people read it."""
    return iso.replace("T", " ").removesuffix("+00:00")
