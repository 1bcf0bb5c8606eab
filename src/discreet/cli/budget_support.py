"""`discreet budget`: what is told of a budget, spent rounded up and left rounded down, and raising it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, final

from discreet.cli.output import Block, Meter, Styled, level_style
from discreet.cli.policies import open_ledger
from discreet.exact import down, exact_or_none, up
from discreet.ledger import Budget

if TYPE_CHECKING:
    from discreet.ledger import Ledger
    from discreet.ledger.spending import Left

__all__ = ["Amount", "BudgetNow", "QuotaNow", "raised"]

# --- raising: Raise the budget of a policy's data set. ---


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


# --- budgets: What is told of a budget: spent is rounded up, left is rounded down. ---


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """An amount of privacy; null where it is not kept or has no bound."""

    epsilon: float | None
    delta: float | None
    rho: float | None
    words: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaNow:
    """A quota that counts for whoever asks, and what is left of it."""

    quota: str
    left: Amount


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetNow:
    """What a data set may spend over its lifetime, what it has spent, and what is left."""

    dataset: str
    guarantee: str
    charges: int
    budget: Amount
    spent: Amount
    left: Amount
    share_left: float  # by the rule under which most is left, rounded down
    quotas: list[QuotaNow]

    @classmethod
    def of(cls, ledger: Ledger, *, principal: str, project: str) -> BudgetNow:
        """Read a ledger, for one who asks."""
        account, spent, left = ledger.account, ledger.spent(), ledger.left()
        quotas = ledger.quotas_left(principal=principal, project=project)
        return cls(
            dataset=account.dataset,
            guarantee=f"{account.budget.describe()} for one {account.unit} ({account.relation.value})",
            charges=spent.charges,
            budget=_amount(account.budget, down, account.budget.describe()),
            spent=_amount(spent, up, spent.describe()),
            left=_left(left),
            share_left=left.share,
            quotas=[QuotaNow(quota=text, left=_left(rest)) for text, rest in quotas],
        )

    def blocks(self) -> Iterator[Block]:
        left = f"{int(1000 * self.share_left) / 10} %"
        yield Styled(f"{self.dataset}: {self.guarantee}", labels={f"{self.dataset}:": "bold"})
        yield Meter(label="left ", share=self.share_left, words=left, style=level_style(self.share_left))
        yield f"       {self.left.words}"
        yield f"spent  {self.spent.words}"
        for quota in self.quotas:
            yield f"{quota.quota}: {quota.left.words} left"


def _left(left: Left) -> Amount:
    return _amount(left, down, left.describe())


def _amount(of: Budget | Left | object, rounded: Callable[[Fraction], float], words: str) -> Amount:
    values = {name: getattr(of, name) for name in ("epsilon", "delta", "rho")}
    return Amount(**{name: None if value is None else rounded(value) for name, value in values.items()}, words=words)
