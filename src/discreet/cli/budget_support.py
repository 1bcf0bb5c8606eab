"""`discreet budget`: what is told of a budget, spent rounded up and left rounded down, and raising it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, final

from discreet.cli.output import Block, Meter, Styled, level_style, note
from discreet.cli.policies import named_ledger, open_ledger, read_any_policy, unit_names
from discreet.cli.spending import answer_to, can_ask
from discreet.errors import InvalidParameter, Refused
from discreet.exact import down, exact_or_none, up
from discreet.ledger import Budget
from discreet.ledger.accounts import budget_toml

if TYPE_CHECKING:
    from discreet.ledger import Account, Ledger
    from discreet.ledger.spending import Left

__all__ = ["Amount", "BudgetNow", "DetailedBudget", "QuotaNow", "raised"]

# --- raising: Raise the budget of a policy's data set. ---


_INNER = "[unit.inner.budget]"


def raised(
    policy: Path,
    told: tuple[str | None, str | None, str | None],
    *,
    unit: str | None,
    reason: str,
    principal: str,
    agreed: bool = False,
) -> BudgetNow:
    """Raise what is named, or all to what the policy declares, and tell what there is now; ask on a terminal."""
    account = None if named_ledger(policy) is not None else read_any_policy(policy).account
    with open_ledger(policy, must_exist=True) as ledger:
        whose = _named(unit, policy, ledger.account)
        old = dict(ledger.account.nested).get(whose or "", ledger.account.budget)
        declared = None if account is None else dict(account.nested).get(whose or "", account.budget)
        if told == (None, None, None) and declared is None:
            raise InvalidParameter("say the new budget: --epsilon, --delta or --rho")
        split = old if old.kind == "approximate" or declared is None else declared
        new = Budget(
            epsilon=_new(told[0], old.epsilon, "--epsilon"),
            delta=_new(told[1], old.delta, "--delta"),
            rho=_new(told[2], old.rho, "--rho"),
            approximate=split.approximate,
            expect=split.expect if told[1] is not None or old.delta is not None else None,
        )
        chosen = declared if told == (None, None, None) and declared is not None else new
        if not agreed:
            _confirm(old, chosen)
        ledger.raise_budget(chosen, reason=reason, principal=principal, unit=whose)
        if declared is not None and declared != chosen:
            section = budget_toml(chosen, indent="  ").replace("[budget]", "[budget]" if whose is None else _INNER)
            note(f"Write the new budget into {policy.name} too, or it is refused:\n{section}")
        return BudgetNow.of(ledger, principal=principal, project="", called=unit_names(policy))


def _named(unit: str | None, policy: Path, account: Account) -> str | None:
    """Return what the ledger calls a unit within the first; None for the first itself."""
    names = {called: name for name, called in unit_names(policy).items()}
    whose = None if unit is None else names.get(unit, unit)
    return None if whose == account.unit else whose


def _confirm(old: Budget, new: Budget) -> None:
    """Ask on a terminal: bundles that are out already told the old budget, and it cannot be lowered again."""
    if not can_ask():
        return
    asked = f"Raise the lifetime budget from {old.describe()} to {new.describe()}? It cannot be lowered again. [y/N] "
    if answer_to(asked) not in ("y", "yes"):
        raise Refused("not confirmed; the budget is as it was")


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
    sentence: str  # what was spent, and how many more charges like the last one fit, by the budget and all quotas
    more: int | None  # of them; null before the first charge

    @classmethod
    def of(
        cls, ledger: Ledger, *, principal: str, project: str, at: Fraction | None = None, called: Mapping[str, str]
    ) -> BudgetNow:
        """Read a ledger, for one who asks; the price of the last charge is told at a delta.

        `called` has what a policy calls one unit; a ledger has no names, only what tells units apart.
        """
        account, spent = ledger.account, ledger.spent(at=at)
        left = ledger.left(principal=principal, project=project)
        quotas = ledger.quotas_left(principal=principal, project=project)
        promises = [(account.unit, account.budget), *account.nested]
        first, *within = (f"{budget.describe()} for one {called.get(unit, unit)}" for unit, budget in promises)
        return cls(
            dataset=account.dataset,
            guarantee=", and ".join((f"{first} ({account.relation.value})", *within)),
            charges=spent.charges,
            budget=_amount(account.budget, down, account.budget.describe()),
            spent=_amount(spent, up, spent.describe()),
            left=_left(left),
            share_left=left.share,
            quotas=[QuotaNow(quota=text, left=_left(rest)) for text, rest in quotas],
            sentence=ledger.money(principal=principal, project=project, at=at, called=called),
            more=left.more,
        )

    def blocks(self) -> Iterator[Block]:
        left = f"{int(1000 * self.share_left + 1e-9) / 10:g} % left"
        yield Styled(f"{self.dataset}: {self.guarantee}", labels={f"{self.dataset}:": "bold"})
        yield Meter(label="", share=self.share_left, words=left, style=level_style(self.share_left))
        yield self.sentence


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DetailedBudget:
    """The same with its sums and quotas, for people; JSON always has them."""

    now: BudgetNow

    def blocks(self) -> Iterator[Block]:
        yield from self.now.blocks()
        spent, whole = self.now.spent, self.now.budget
        for name, sign in (("epsilon", "ε"), ("delta", "δ"), ("rho", "ρ")):
            limit, total = getattr(whole, name), getattr(spent, name)
            if limit is not None:
                yield f"sum of {sign}: {self._sum(name, sign, total)}; lifetime {sign} = {limit:.6g}"
        if whole.delta is not None:
            yield (
                "ε does not simply add up: two charges of ε = 1 at a δ cost less than ε = 2 at it. The part that is "
                "spent is that of the rule which has used least: docs/ledger.md, Privacy filters"
            )
        for quota in self.now.quotas:
            yield f"{quota.quota}: {quota.left.words}"

    def _sum(self, name: str, sign: str, total: float | None) -> str:
        if total is None:
            return f"not added up, for a charge has no {sign} of its own: such as Gaussian ones, composed together"
        apart = name == "delta" and self.now.spent.epsilon is None
        return f"{total:.6g}{', of charges that have one of their own' if apart else ''}"


def _left(left: Left) -> Amount:
    return _amount(left, down, left.describe())


def _amount(of: Budget | Left | object, rounded: Callable[[Fraction], float], words: str) -> Amount:
    values = {name: getattr(of, name) for name in ("epsilon", "delta", "rho")}
    return Amount(**{name: None if value is None else rounded(value) for name, value in values.items()}, words=words)
