"""Go on with an old copy after a disk was lost: soundly, and only when said.

What was charged since the copy was made is unknown, but it was within the budget, for the filter saw to that. So
everything up to now, known and lost, is one event: the whole budget. Nothing is left until the budget is raised,
which is a decision of its own.
"""

from __future__ import annotations

import time
from fractions import Fraction
from pathlib import Path

from discreet.errors import Refused
from discreet.ledger.book import LIFETIME, Book
from discreet.ledger.checking import verify
from discreet.ledger.entry import written
from discreet.ledger.facts import check_texts
from discreet.ledger.pricing import mixed_price
from discreet.ledger.store import Rows
from discreet.ledger.sums import Price, Sums
from discreet.noise import source
from discreet.privacy.events import ApproxDP

__all__ = ["exhausted", "restore"]


def restore(path: str | Path, *, reason: str, principal: str, anchor: str | Path | None = None) -> None:
    """Accept the ledger file that is there, though its anchor knows more, or is lost too.

    Every data set in it counts as fully spent: what was charged since the copy was made is unknown, and was within
    the budget. `raise_budget` may then add to it.
    """
    from discreet.ledger.sqlite_store import file_store

    check_texts(reason=reason, principal=principal)
    with source.hold():
        store = file_store(Path(path), None if anchor is None else Path(anchor))
        with store.restoring() as rows:
            verify(rows)
            _spend_everything(rows, {"reason": reason, "principal": principal})
        store.close()


def _spend_everything(rows: Rows, facts: dict[str, str]) -> None:
    now = max(time.time_ns() // 1000, rows.head().time)
    for dataset, declared in rows.accounts().items():
        sums = exhausted(Book.read(dataset, declared))
        content = {**facts, "sums": sums.text()}
        head, body = written(rows.head(), kind="restored", dataset=dataset, time=now, content=content)
        rows.append(head, body)
        rows.set_sums(dataset, LIFETIME, sums.text())


def exhausted(book: Book) -> Sums:
    """Return the sums after one event that is the whole budget."""
    budget = book.account.budget
    match budget.kind:
        case "pure":
            price = Price(budget.epsilon, Fraction(0))
        case "concentrated":
            price = Price(None, Fraction(0), rho=budget.rho)
        case "approximate":
            everything = ApproxDP(budget.epsilon or 0, budget.delta or 0)
            price = mixed_price(everything, book.account.relation, book.rule.orders)
        case _:
            raise Refused("a data set without a lifetime budget cannot be restored: what it spent is unknown")
    return Sums.nothing(len(book.rule.orders)).plus(price)
