"""What is declared for a data set, and which sums a charge is added to."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import final

from discreet.errors import InvalidParameter
from discreet.ledger.account import Account
from discreet.ledger.budget import Budget
from discreet.ledger.canonical import canonical
from discreet.ledger.filters import PrivacyFilter, filter_for
from discreet.ledger.quota import Quota
from discreet.ledger.shares import Shares, choose_shares

__all__ = ["LIFETIME", "Book", "LedgerScope", "declare"]

LIFETIME = ""  # The scope of all charges of a data set.


@final
@dataclass(frozen=True, slots=True)
class LedgerScope:
    """A sum and the rule it keeps to."""

    name: str
    rule: PrivacyFilter
    text: str


@final
@dataclass(frozen=True, slots=True)
class Book:
    """An account with its quotas and the split of delta chosen for each when it was declared."""

    account: Account
    rule: PrivacyFilter
    quotas: tuple[tuple[Quota, PrivacyFilter], ...]

    def scopes(self, *, project: str, principal: str, time: int) -> list[LedgerScope]:
        """List every sum that a charge counts against: all of them must admit it."""
        found = [LedgerScope(LIFETIME, self.rule, "the lifetime budget")]
        for quota, rule in self.quotas:
            if quota.covers(project=project, principal=principal):
                name = quota.scope(project=project, principal=principal, time=time)
                found.append(LedgerScope(name, rule, f"the quota of {quota.describe()}"))
        return found

    def describe(self) -> str:
        """Say what is guaranteed; quotas are quotas."""
        budget = self.account.budget
        whom = f"one {self.account.unit} ({self.account.relation.value})"
        if budget.kind != "unlimited":
            return f"all charges together: {budget.describe()} for {whom}"
        return f"{' and '.join(map(_per_window, self.windows()))} for {whom}; there is no lifetime limit"

    def windows(self) -> list[Quota]:
        """Return the quotas per window over all charges: the guarantee of a data set without a lifetime budget."""
        return [quota for quota, _ in self.quotas if quota.window and not quota.project and not quota.principal]

    def text(self) -> str:
        """Write the declaration in its one form."""
        quotas = [quota.packed() | rule.shares.packed() for quota, rule in self.quotas]
        return canonical(self.account.packed() | self.rule.shares.packed() | {"quotas": quotas})

    @classmethod
    def read(cls, dataset: str, text: str) -> Book:
        """Read what `text` wrote."""
        return _read(dataset, text)

    def with_budget(self, budget: Budget) -> Book:
        """Return the book after its budget was raised: the same shares of delta, for their sums are kept."""
        account = Account(self.account.dataset, self.account.unit, self.account.relation, budget)
        return Book(account, filter_for(budget, self.rule.shares), self.quotas)

    def with_quotas(self, quotas: tuple[Quota, ...]) -> Book:
        """Return the book after its quotas were replaced; what stays keeps its shares of delta."""
        chosen, kept = declare(self.account, quotas).quotas, dict(self.quotas)
        return Book(self.account, self.rule, tuple((quota, kept.get(quota, rule)) for quota, rule in chosen))


def _per_window(quota: Quota) -> str:
    """Say that windows add up: "ε = 1 per day; k days: kε"."""
    budget, unit = quota.budget, "window" if (quota.window or "").isdigit() else quota.window
    sums = {"pure": "kε", "approximate": "kε, kδ", "concentrated": "kρ"}[budget.kind]
    return f"{budget.describe()}{quota.per()}; k {unit}s: {sums}"


def declare(account: Account, quotas: tuple[Quota, ...]) -> Book:
    """Split the delta of a new data set, from public facts."""
    if not all(isinstance(quota, Quota) for quota in quotas):
        raise InvalidParameter("quotas must be a sequence of Quota")
    pairs = tuple((quota, filter_for(quota.budget, choose_shares(quota.budget))) for quota in quotas)
    book = Book(account, filter_for(account.budget, choose_shares(account.budget)), pairs)
    if account.budget.kind == "unlimited" and not book.windows():
        raise InvalidParameter("a data set without a lifetime budget needs a quota per window over all its charges")
    return book


@lru_cache(maxsize=64)
def _read(dataset: str, text: str) -> Book:
    packed = json.loads(text)
    account = Account.unpacked(dataset, packed)
    quotas = []
    for each in packed["quotas"]:
        quota = Quota.unpacked(each)
        quotas.append((quota, filter_for(quota.budget, Shares.unpacked(quota.budget, each))))
    return Book(account, filter_for(account.budget, Shares.unpacked(account.budget, packed)), tuple(quotas))
