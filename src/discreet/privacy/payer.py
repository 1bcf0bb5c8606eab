"""Who pays: whatever reads private data charges a `Payer` first."""

from __future__ import annotations

from typing import Protocol

from discreet.privacy.events import Event
from discreet.privacy.relation import Relation

__all__ = ["Payer"]


class Payer(Protocol):
    """Something that can be charged. It commits the charge or raises; it never returns a flag."""

    def charge(self, event: Event, *, relation: Relation, purpose: str) -> object:
        """Commit the charge durably or raise `BudgetExceeded`; a receipt, if any, is the payer's own."""
