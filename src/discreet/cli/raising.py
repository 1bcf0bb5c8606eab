"""Raise the budget of a policy's data set."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

from discreet.cli.answers.budgets import BudgetNow
from discreet.cli.policies import open_ledger
from discreet.exact import exact_or_none
from discreet.ledger import Budget

__all__ = ["raised"]


def raised(
    policy: Path, *, epsilon: str | None, delta: str | None, rho: str | None, reason: str, principal: str
) -> BudgetNow:
    """Raise what is named, keep the rest, and tell what there is now."""
    with open_ledger(policy, must_exist=True) as ledger:
        old = ledger.account.budget
        new = Budget(
            epsilon=_new(epsilon, old.epsilon, "--epsilon"),
            delta=_new(delta, old.delta, "--delta"),
            rho=_new(rho, old.rho, "--rho"),
            approximate=old.approximate,
            expect=old.expect,
        )
        ledger.raise_budget(new, reason=reason, principal=principal)
        return BudgetNow.of(ledger, principal=principal, project="")


def _new(said: str | None, old: Fraction | None, name: str) -> Fraction | None:
    return old if said is None else exact_or_none(said, name=name)
