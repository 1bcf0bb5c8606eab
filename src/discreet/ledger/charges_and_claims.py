"""The steps of one transaction: add an entry, add a charge to every sum, and claim the one read that it pays for."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, TypeVar

from discreet.errors import AnswerFailed, BudgetExceeded, DiscreetError, InvalidParameter, Refused
from discreet.exact import Number, positive
from discreet.ledger.accounts import LIFETIME, Book, LedgerScope
from discreet.ledger.budget import Sums, canonical, readable
from discreet.ledger.charge_record import Charge, Entry, ReadClaim, check_texts, question_of, written
from discreet.ledger.filters import fitting_sums
from discreet.ledger.spending import Left, Spending, left_of, more_of, price_words, spending_of
from discreet.ledger.store import LedgerRows
from discreet.privacy.events import Event
from discreet.privacy.relation import Relation

__all__ = [
    "MOST_UNANSWERED",
    "add_claim",
    "append",
    "bundles_of",
    "charge_entry",
    "check_claim",
    "check_not_claimed",
    "check_room",
    "fail_claim",
    "finish_claim",
    "last_charge",
    "last_event",
    "nested_left",
    "now",
    "release_claim",
    "reopen",
    "spend",
    "sums_of",
    "until_claimed",
]

# --- steps ---
# The steps within one transaction: add an entry, add a charge to every sum it counts against, read one back.


_UNDECLARED = (
    "open",
    "restored",
    "moved",
    "arrived",
    "format",
    "checkpoint",
)  # what is written before a data set is declared
_NEARBY = 100  # Charges of all data sets among which the newest of one is looked for.


def now(rows: LedgerRows) -> int:
    """Return the time in microseconds since 1970. It never goes back, so no window comes twice."""
    shared = rows.clock()
    return max(time.time_ns() // 1000 if shared is None else shared, rows.head().time)


def append(rows: LedgerRows, dataset: str, kind: str, content: Mapping[str, Any], moment: int | None = None) -> Charge:
    """Add an entry at the end of the chain. A ledger that was moved declares nothing, and nothing is added to it."""
    if kind not in _UNDECLARED and rows.account(dataset) is None:
        raise Refused(
            "this data set is not declared in this ledger", way_out="if the ledger was moved, name the new place"
        )
    at = now(rows) if moment is None else moment
    head, body = written(rows.head(), kind=kind, dataset=dataset, time=at, content=content)
    _check_readable(body, {"dataset": dataset, **content})
    rows.append(head, body)
    return Charge(head.index, head.index, head.hash)


def _check_readable(body: str, said: Mapping[str, Any]) -> None:
    """Refuse an entry that is not read as it is written: whoever verifies would refuse the ledger, for ever."""
    read = json.loads(body)
    if any(read.get(name) != value for name, value in said.items()) and canonical(read) != body:
        raise InvalidParameter("this entry would not be read as it is written: it has names or texts that are none")


def spend(
    rows: LedgerRows,
    dataset: str,
    scopes: list[LedgerScope],
    main: Event,
    relation: Relation,
    nested: Sequence[Event] = (),
) -> dict[str, Any]:
    """Add an event to every sum it counts against, if all of them admit it; return what it cost each.

    Of a unit within the first, what the charge spends for that unit is added.
    """
    prices, after = {}, {}
    for scope in scopes:
        event = scope.event(main, nested)
        before = sums_of(rows, dataset, scope)
        fits = fitting_sums(scope.rule, before, event, relation)
        if fits is None:
            left, way_out = _left(scope, before, event, relation)
            raise BudgetExceeded(asked=event, left=f"{left} ({scope.text})", way_out=way_out)
        price, after[scope.name] = fits
        if price.is_free:
            raise InvalidParameter("an event that costs nothing reads nothing: there is nothing to charge")
        prices[scope.name] = price.packed()
    for name, sums in after.items():
        rows.set_sums(dataset, name, sums.text())
    return prices


def _left(scope: LedgerScope, sums: Sums, event: Event, relation: Relation) -> tuple[str, str]:
    """Say what is left and, if too little of delta is left for an event with a delta of its own, what to do."""
    left = left_of(scope.rule, sums)
    if left.delta is None or scope.rule.price(event, relation).delta <= left.delta:
        return str(left), ""
    told = f"{left}, with δ = {readable(left.delta)} of it for events with a δ of their own"
    smaller = "ask with a smaller delta=, or about" if left.delta else "ask about"
    way_out = f"{smaller} groups whose keys are listed (keys=…), which need no δ"
    if scope.name == LIFETIME:
        way_out += (
            "; or raise the budget with a larger delta (`discreet budget raise --delta …`, session.raise_budget). "
            'Where a ledger is opened, Budget(…, expect="mixed") or approximate= keeps more of δ for such questions'
        )
    return told, way_out


def sums_of(rows: LedgerRows, dataset: str, scope: LedgerScope) -> Sums:
    """Return what was spent in a scope."""
    text = rows.sums(dataset, scope.name)
    return Sums.nothing(scope.rule.shares.kept) if text is None else Sums.from_text(text)


def last_event(rows: LedgerRows, dataset: str) -> Event | None:
    """Return what the newest charge of a data set was for; None if there is none nearby."""
    entry = last_charge(rows, dataset)
    return None if entry is None else entry.event


def last_charge(rows: LedgerRows, dataset: str) -> Entry | None:
    """Return the newest charge of a data set; None if there is none nearby.

    Near is counted in charges: how many reads and answers were written since then tells what is known, not told yet.
    """
    after, charge = 0, None
    for entry in islice(_newest(rows, "charge", after=0), _NEARBY):
        after = entry.index
        if entry.dataset == dataset:
            charge = entry
            break
    return next((entry for entry in _newest(rows, "restored", after=after) if entry.dataset == dataset), charge)


def _newest(rows: LedgerRows, kind: str, *, after: int) -> Iterator[Entry]:
    entries = (Entry.read(*found) for found in rows.marked(f'"kind":"{kind}"', after=after))
    return (entry for entry in entries if entry.kind == kind)


def nested_left(
    rows: LedgerRows, dataset: str, book: Book, like: Sequence[Event]
) -> tuple[tuple[str, Spending, Left], ...]:
    """Return, of each unit within the first, what was spent and what is left of its own budget."""
    last, relation, found = last_charge(rows, dataset), book.account.relation, []
    events = tuple(like) or (() if last is None else last.nested)
    for scope, (unit, budget) in zip(book.nested_scopes(), book.account.nested, strict=True):
        sums = sums_of(rows, dataset, scope)
        event = events[scope.nested or 0] if events else None
        words = None if event is None else price_words(event, relation, budget)
        more = more_of(scope.rule, sums, event, relation)
        found.append((unit, spending_of(scope.rule, sums, words), left_of(scope.rule, sums, more)))
    return tuple(found)


def bundles_of(rows: LedgerRows, charge: int) -> list[dict[str, Any]]:
    """Return what was recorded of bundles of a charge: they come after it, and soon."""
    read = [Entry.read(*found) for found in rows.marked('"kind":"bundle"', after=charge)][::-1]
    return [dict(entry.content) for entry in read if entry.kind == "bundle" and entry.content["charge"] == charge]


def charge_entry(rows: LedgerRows, dataset: str, index: int) -> Entry:
    """Return the entry of a charge of this data set."""
    found = rows.entry(index)
    entry = None if found is None else Entry.read(*found)
    if entry is None or entry.kind != "charge" or entry.dataset != dataset:
        raise InvalidParameter("there is no such charge for this data set")
    return entry


# --- read_claims ---
# Reads are claimed: under one charge private rows are read once, and only a custodian lets them be read again.
#
# That a read fails, and not only what it answers, can depend on one person's row: a value that needs too much memory, a
# group that takes too long. Such a failure is one exact bit that no charge pays for. So
#
# - a read is an entry of the chain before its first row is read;
# - a claim that ends without an answer, whatever ended it, stays: whoever asks the same again gets the constant
# failure;
# - a principal has at most three claims without an answer on a data set, live ones included, before whoever holds the
#   data has looked. So of n questions there are at most 1 + n + n(n-1)/2 + n(n-1)(n-2)/6 patterns of failures to learn
#   from, where there were 2^n.


MOST_UNANSWERED = 3  # of a principal on a data set, live ones included
_FIRST_PAUSE, _LONGEST_PAUSE = 0.002, 0.1  # seconds between two looks at the ledger

Found = TypeVar("Found")


class _NotYet(Exception):
    """A read cannot begin before others have ended; it says what to raise if that takes too long."""

    def __init__(self, at_last: DiscreetError) -> None:
        super().__init__()
        self.at_last = at_last


def until_claimed(attempt: Callable[[], Found], seconds: Number) -> Found:
    """Try until somebody else's read has ended; after `seconds` give up, with nothing charged and nothing read."""
    ends, pause = time.monotonic() + float(positive(seconds, name="seconds")), _FIRST_PAUSE
    while True:
        try:
            return attempt()
        except _NotYet as wait:
            at_last = wait.at_last
        if time.monotonic() >= ends:
            raise at_last
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)


def check_not_claimed(rows: LedgerRows, charge: int) -> None:
    """Raise the constant failure if a read of this charge has failed; wait for one that may still be answered."""
    claim = rows.claim(charge)
    if claim is not None:
        raise _NotYet(AnswerFailed()) if claim.is_live(now(rows)) else AnswerFailed


def check_room(rows: LedgerRows, dataset: str, principal: str) -> None:
    """Refuse a principal who has seen as many failures as anybody may; wait if it is not known yet."""
    unanswered = [claim for claim in rows.claims(dataset) if claim.counts and claim.principal == principal]
    if len(unanswered) < MOST_UNANSWERED:
        return
    moment = now(rows)
    if any(claim.is_live(moment) for claim in unanswered):
        raise _NotYet(_busy())
    raise Refused(
        f"{MOST_UNANSWERED} reads of data set {dataset!r} for {principal!r} ended without an answer, and nothing more "
        "is read for them",
        reason="that a read fails can depend on one person, and no charge pays for that: nobody sees more failures "
        "than these before whoever holds the data has looked",
        way_out="nothing was charged. Whoever holds the data looks with `discreet ledger claims`, then says "
        "`discreet ledger reopen PRINCIPAL --reason …`",
    )


def _busy() -> Refused:
    return Refused(
        f"{MOST_UNANSWERED} questions of this principal are being answered, and they took all the time of this one",
        reason="each of them may fail, and nobody sees more failures than these",
        way_out="nothing was charged: ask again when they are answered, or ask fewer at once",
    )


def add_claim(
    rows: LedgerRows,
    charge: Charge,
    *,
    dataset: str,
    principal: str,
    seconds: Number,
    process: str,
    part: int | None = None,
) -> ReadClaim:
    """Claim the read of a charge; the caller has checked that it may begin."""
    moment = now(rows)
    until = moment + round(positive(seconds, name="seconds") * 1_000_000)
    content = {"charge": charge.id, "principal": principal, "until": until, "process": process}
    written = append(rows, dataset, "reading", content if part is None else content | {"part": part}, moment)
    claim = ReadClaim(charge, written.index, dataset, principal, until, process, part)
    rows.set_claim(claim)
    return claim


def check_claim(rows: LedgerRows, charge: int, claim: ReadClaim | None) -> None:
    """Refuse to answer a charge whose read somebody else has claimed, or from a claim that has ended."""
    known = rows.claim(charge)
    if claim is None and known is None:
        return
    if claim is None:
        raise Refused("a read is claimed under this charge: hand over the claim with its answer")
    if known is None or known.index != claim.index or known.is_failed:
        raise Refused("this claim has ended: it failed, or whoever holds the data released it")


def fail_claim(rows: LedgerRows, claim: ReadClaim) -> None:
    """Mark a claim as failed. One that was answered or released meanwhile stays as it is."""
    known = rows.claim(claim.charge.id)
    if known is not None and known.index == claim.index and not known.is_failed:
        append(rows, known.dataset, "failed", {"charge": known.charge.id, "principal": known.principal})
        rows.set_claim(replace(known, is_failed=True))


def finish_claim(rows: LedgerRows, entry: Entry, claim: ReadClaim) -> None:
    """End a claim whose result is not kept here; it has neither key nor question, so nobody can ask for it again."""
    if entry.content.get("key") is not None or question_of(entry.content) is not None:
        raise InvalidParameter(
            "a charge with an idempotency key or a version ends with store, so that its answer can be given again"
        )
    check_claim(rows, claim.charge.id, claim)
    append(rows, claim.dataset, "read", {"charge": claim.charge.id, "principal": claim.principal})
    rows.end_claim(claim.charge.id)


def release_claim(rows: LedgerRows, dataset: str, charge: int, *, reason: str, principal: str) -> None:
    """Let the rows of a charge be read once more."""
    _check_reason(reason, principal)
    claim = rows.claim(charge)
    if claim is None or claim.dataset != dataset:
        raise InvalidParameter("no read without an answer is claimed under this charge: see `discreet ledger claims`")
    if claim.is_live(now(rows)):
        raise Refused(
            "this read may still be answered", way_out="release it when its time is over: see `discreet ledger claims`"
        )
    append(rows, dataset, "released", {"charge": charge, "reason": reason, "principal": principal})
    rows.end_claim(charge)


def reopen(rows: LedgerRows, dataset: str, analyst: str, *, reason: str, principal: str) -> tuple[ReadClaim, ...]:
    """Count the failures of a principal no more. What they asked for stays unread."""
    _check_reason(reason, principal)
    moment = now(rows)
    failed = [
        one for one in rows.claims(dataset) if one.counts and one.principal == analyst and not one.is_live(moment)
    ]
    if not failed:
        raise InvalidParameter(f"no read of data set {dataset!r} for {analyst!r} has failed since anybody looked")
    charges = [claim.charge.id for claim in failed]
    content = {"analyst": analyst, "charges": charges, "reason": reason, "principal": principal}
    append(rows, dataset, "reopened", content)
    for claim in failed:
        rows.set_claim(replace(claim, counts=False))
    return tuple(failed)


def _check_reason(reason: str, principal: str) -> None:
    check_texts(reason=reason, principal=principal)
    if not (reason or "").strip() or not (principal or "").strip():
        raise InvalidParameter("say why, and who says so: both stay on record")
