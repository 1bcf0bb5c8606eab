"""What may be declared again, raised or changed, and what may not."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from typing import Any

from discreet.errors import Refused
from discreet.ledger.account import Account
from discreet.ledger.book import Book
from discreet.ledger.budget import Budget
from discreet.ledger.filters import PrivacyFilter
from discreet.ledger.quota import Quota
from discreet.ledger.shares import FIRST

__all__ = [
    "as_split",
    "check_declared",
    "check_quotas",
    "check_raise",
    "check_restored",
    "declaration",
    "quotas_as_split",
]


def declaration(book: Book) -> dict[str, Any]:
    """Return a book as the content of an entry."""
    return {"declared": json.loads(book.text())}


def check_declared(account: Account, quotas: tuple[Quota, ...], before: Book) -> None:
    """Refuse to open a data set as something else than it was declared."""
    asked = replace(account, budget=as_split(account.budget, before.rule))
    if asked != before.account:
        raise Refused(
            f"data set {account.dataset!r} was declared as {before.account.describe()}{_split(before.account.budget)}, "
            f"and now as {account.describe()}{_split(account.budget)}. Open it as declared; a budget can be raised "
            "with raise_budget, nothing else changes"
        )
    declared = tuple(quota for quota, _ in before.quotas)
    if quotas and quotas_as_split(quotas, before) != declared:
        listed = "; ".join(quota.describe() for quota in declared) or "none"
        raise Refused(f"data set {account.dataset!r} has these quotas: {listed}. They are changed with set_quotas")


def as_split(said: Budget, rule: PrivacyFilter) -> Budget:
    """Return a budget as an account of this rule writes it down: the first one always said the share of events."""
    first = rule.budget.kind == "approximate" and rule.shares.version == FIRST
    return _as_first(said) if first and isinstance(said, Budget) else said


def _as_first(said: Budget) -> Budget:
    if said.kind != "approximate" or said.approximate is not None or said.expect is not None:
        return said
    return Budget(said.epsilon, said.delta, approximate=Fraction(1, 2))


def quotas_as_split(quotas: tuple[Quota, ...], before: Book) -> tuple[Quota, ...]:
    """Return quotas as they are written down: those that were there under the first rule say the share of events."""
    first = {quota for quota, rule in before.quotas if rule.shares.version == FIRST}
    old = [Quota.unpacked(quota.packed() | {"budget": _as_first(quota.budget).packed()}) for quota in quotas]
    return tuple(new if new in first else quota for new, quota in zip(old, quotas, strict=True))


def _split(budget: Budget) -> str:
    """Say how delta is split where that was said."""
    share = "" if budget.approximate is None else f", {budget.approximate} of δ for events with a δ"
    return share if budget.expect is None else f", expecting {budget.expect}{share}"


def check_raise(before: Budget, after: Budget) -> None:
    """Refuse anything but more of the same kind, with delta split as before."""
    split = isinstance(after, Budget) and (after.kind, after.approximate, after.expect)
    if split != (before.kind, before.approximate, before.expect):
        told = f"{before.describe()}{_split(before)}"
        raise Refused(f"a budget is raised within its kind and its split of delta: it is {told} now")
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
