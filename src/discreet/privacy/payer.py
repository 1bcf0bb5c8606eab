"""Who pays: whatever reads private data charges a `Payer` first."""

from __future__ import annotations

from typing import Protocol

from discreet.privacy.events import Event
from discreet.privacy.relation import Relation

__all__ = ["Payer"]


class Payer(Protocol):
    """Something that can be charged. It commits the charge or raises; it never returns a flag.

    Examples:
        >>> account = dp.ledger.Account("visits", "row", dp.Relation.ADD_REMOVE, dp.Budget(epsilon=1))
        >>> payer = dp.ledger.Ledger.open("memory", account)
        >>> release = dp.count([1, 2, 3], relation=dp.Relation.ADD_REMOVE, epsilon=0.25, session=payer)
        >>> payer.left().epsilon
        Fraction(3, 4)
    """

    def charge(self, event: Event, *, relation: Relation, purpose: str) -> object:
        """Commit the charge durably or raise `BudgetExceeded`; a receipt, if any, is the payer's own."""
