"""What was left right after a charge: told by the entries up to it, and the same whenever it is asked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from discreet.errors import InvalidParameter
from discreet.ledger.book import LIFETIME, Book
from discreet.ledger.canonical import canonical
from discreet.ledger.entry import Entry
from discreet.ledger.spending import Left, left_of
from discreet.ledger.sums import EventPrice, Sums

__all__ = ["left_after"]


def left_after(entries: Iterable[Entry], charge: int) -> Left:
    """Return what was left of the lifetime budget after a charge; `entries` are all those of its data set, in order."""
    declared: Any = None
    prices: list[EventPrice] = []
    dataset, before = "", None
    for entry in entries:
        if entry.index > charge:
            break
        dataset, declared = entry.dataset, entry.content.get("declared", declared)
        if entry.kind == "restored":
            before, prices = Sums.from_text(entry.content["sums"]), []
        elif entry.kind == "charge":
            prices.append(EventPrice.unpacked(entry.content["prices"][LIFETIME]))
    if declared is None:
        raise InvalidParameter("these are not the entries of a data set")
    book = Book.read(dataset, canonical(declared))
    total = Sums.nothing(book.rule.shares.kept) if before is None else before
    for price in prices:
        total = total.plus(price)
    return left_of(book.rule, total, prices[-1] if prices else None)
