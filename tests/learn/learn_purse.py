"""A payer that remembers what it was charged, or refuses."""

from __future__ import annotations

from typing import Any

import discreet as dp
from discreet.privacy import Relation

__all__ = ["Purse"]


class Purse:
    """A payer for tests."""

    def __init__(self, *, is_empty: bool = False) -> None:
        self.charges: list[Any] = []
        self.is_empty = is_empty

    def charge(self, event: Any, *, relation: Relation, purpose: str) -> None:
        if self.is_empty:
            raise dp.BudgetExceeded(asked=event, left="nothing")
        self.charges.append((event, relation, purpose))
