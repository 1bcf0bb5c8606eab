"""The steps within one transaction: add an entry, add a charge to every sum it counts against, read one back."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from discreet.errors import BudgetExceeded, InvalidParameter
from discreet.ledger.accounts import LIFETIME, LedgerScope
from discreet.ledger.budget import readable
from discreet.ledger.charge_record import Charge, Entry, written
from discreet.ledger.exact_sums import EventPrice, Sums
from discreet.ledger.filters import PrivacyFilter, fitting
from discreet.ledger.spending import left_of
from discreet.ledger.store import LedgerRows
from discreet.privacy.events import Event
from discreet.privacy.relation import Relation

__all__ = ["append", "bundles_of", "charge_entry", "last_price", "now", "spend", "sums_of"]

_NEARBY = 100  # Entries among which the newest charge is looked for.


def now(rows: LedgerRows) -> int:
    """Return the time in microseconds since 1970. It never goes back, so no window comes twice."""
    return max(time.time_ns() // 1000, rows.head().time)


def append(rows: LedgerRows, dataset: str, kind: str, content: Mapping[str, Any], moment: int | None = None) -> Charge:
    """Add an entry at the end of the chain."""
    at = now(rows) if moment is None else moment
    head, body = written(rows.head(), kind=kind, dataset=dataset, time=at, content=content)
    rows.append(head, body)
    return Charge(head.index, head.index, head.hash)


def spend(
    rows: LedgerRows, dataset: str, scopes: list[LedgerScope], event: Event, relation: Relation
) -> dict[str, Any]:
    """Add an event to every sum it counts against, if all of them admit it; return what it cost each."""
    prices, after = {}, {}
    for scope in scopes:
        before = sums_of(rows, dataset, scope)
        price = fitting(scope.rule, before, event, relation)
        if price is None:
            raise BudgetExceeded(asked=event, left=f"{_left(scope.rule, before, event, relation)} ({scope.text})")
        if price.is_free:
            raise InvalidParameter("an event that costs nothing reads nothing: there is nothing to charge")
        after[scope.name] = before.plus(price)
        prices[scope.name] = price.packed()
    for name, sums in after.items():
        rows.set_sums(dataset, name, sums.text())
    return prices


def _left(rule: PrivacyFilter, sums: Sums, event: Event, relation: Relation) -> str:
    """Say what is left, and how much of delta if that is too little for an event with a delta of its own."""
    left = left_of(rule, sums)
    if left.delta is None or rule.price(event, relation).delta <= left.delta:
        return str(left)
    return f"{left}, with δ = {readable(left.delta)} of it for events with a δ of their own"


def sums_of(rows: LedgerRows, dataset: str, scope: LedgerScope) -> Sums:
    """Return what was spent in a scope."""
    text = rows.sums(dataset, scope.name)
    return Sums.nothing(scope.rule.shares.kept) if text is None else Sums.from_text(text)


def last_price(rows: LedgerRows, dataset: str) -> EventPrice | None:
    """Return what the newest charge of a data set cost its lifetime budget; None if there is none nearby."""
    newest = rows.head().index
    for index in range(newest, max(0, newest - _NEARBY), -1):
        found = rows.entry(index)
        entry = None if found is None else Entry.read(*found)
        if entry is not None and entry.dataset == dataset and entry.kind in ("charge", "restored"):
            return EventPrice.unpacked(entry.content["prices"][LIFETIME]) if entry.kind == "charge" else None
    return None


def bundles_of(rows: LedgerRows, charge: int) -> list[dict[str, Any]]:
    """Return what was recorded of bundles of a charge: they come after it, and soon."""
    later = (rows.entry(index) for index in range(charge + 1, rows.head().index + 1))
    read = (Entry.read(*found) for found in later if found is not None and '"kind":"bundle"' in found[0])
    return [dict(entry.content) for entry in read if entry.kind == "bundle" and entry.content["charge"] == charge]


def charge_entry(rows: LedgerRows, dataset: str, index: int) -> Entry:
    """Return the entry of a charge of this data set."""
    found = rows.entry(index)
    entry = None if found is None else Entry.read(*found)
    if entry is None or entry.kind != "charge" or entry.dataset != dataset:
        raise InvalidParameter("there is no such charge for this data set")
    return entry
