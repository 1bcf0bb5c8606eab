"""What may be declared again, raised or changed, and what may not."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

from discreet.errors import Refused
from discreet.ledger.account import Account
from discreet.ledger.book import Book
from discreet.ledger.budget import Budget
from discreet.ledger.quota import Quota

__all__ = ["check_declared", "check_quotas", "check_raise", "check_restored", "declaration"]


def declaration(book: Book) -> dict[str, Any]:
    """Return a book as the content of an entry."""
    return {"declared": json.loads(book.text())}


def check_declared(account: Account, quotas: tuple[Quota, ...], before: Book) -> None:
    """Refuse to open a data set as something else than it was declared."""
    if account != before.account:
        raise Refused(
            f"data set {account.dataset!r} was declared as {before.account.describe()}, and now as "
            f"{account.describe()}. Open it as declared; a budget can be raised with raise_budget, nothing else changes"
        )
    declared = tuple(quota for quota, _ in before.quotas)
    if quotas and quotas != declared:
        listed = "; ".join(quota.describe() for quota in declared) or "none"
        raise Refused(f"data set {account.dataset!r} has these quotas: {listed}. They are changed with set_quotas")


def check_raise(before: Budget, after: Budget) -> None:
    """Refuse anything but more of the same kind, with delta split as before."""
    if not isinstance(after, Budget) or after.kind != before.kind or after.approximate != before.approximate:
        raise Refused(f"a budget is raised within its kind and its split of delta: it is {before.describe()} now")
    pairs = [(getattr(before, name), getattr(after, name)) for name in ("epsilon", "delta", "rho")]
    numbers = [(old or Fraction(0), new or Fraction(0)) for old, new in pairs]
    if any(new < old for old, new in numbers) or all(new == old for old, new in numbers):
        raise Refused(f"a budget can only be raised: it is {before.describe()} now")


def check_restored(before: Account, after: Account) -> None:
    """Refuse an account that a copy cannot have become: only its budget may have been raised since."""
    if (before.unit, before.relation) != (after.unit, after.relation):
        raise Refused(
            f"data set {before.dataset!r} was declared as {before.describe()}: unit and relation never change"
        )
    if before.budget != after.budget:
        check_raise(before.budget, after.budget)


def check_quotas(before: Book, after: Book) -> None:
    """Without a lifetime budget the quotas per window over all charges are the guarantee, and stay."""
    if before.account.budget.kind == "unlimited" and before.windows() != after.windows():
        raise Refused("this data set has no lifetime budget: its quotas per window over all charges cannot be changed")
