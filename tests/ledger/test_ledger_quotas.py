"""A quota that stays in force keeps what was spent of it, and the orders that this was added up for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from discreet.errors import BudgetExceeded
from discreet.ledger import Account, Budget, Ledger, Quota, accounts
from discreet.ledger.delta_shares import Shares
from discreet.privacy import Gaussian
from discreet.privacy.relation import Relation

ADD = Relation.ADD_REMOVE
QUOTA = Quota(Budget(1, "1e-6"), principal="ana")


def test_a_release_that_chooses_other_orders_does_not_read_old_sums_as_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Divergences grow with the order: sums of small ones, taken for sums of large ones, would admit far more."""
    noise = Gaussian(noise_multiplier=20)
    with Ledger.open("memory", Account("people", "row", ADD, Budget(9, "1e-5")), quotas=[QUOTA]) as ledger:
        while ledger.times_left(noise, principal="ana"):
            ledger.charge(noise, relation=ADD, purpose="question", principal="ana")
        chosen = accounts.choose_shares

        def others(budget: Budget) -> Shares:
            shares = chosen(budget)
            return replace(shares, orders=tuple((order + 30, share) for order, share in shares.orders))

        monkeypatch.setattr(accounts, "choose_shares", others)
        ledger.set_quotas([QUOTA, Quota(Budget(5), project="new")], reason="one more", principal="custodian")
        with pytest.raises(BudgetExceeded):
            ledger.charge(noise, relation=ADD, purpose="question", principal="ana")
