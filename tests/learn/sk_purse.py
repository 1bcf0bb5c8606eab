"""A payer for tests of estimators, and tables that notice who looks at them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import discreet as dp
from discreet.privacy.relation import Relation

__all__ = ["Purse", "Watched"]


class Purse:
    """A payer that remembers what it was charged, or refuses."""

    def __init__(self, *, is_empty: bool = False) -> None:
        self.charges: list[Any] = []
        self.is_empty = is_empty

    def charge(
        self, event: Any, *, relation: Relation, purpose: str, unit: str = "row", idempotency_key: str | None = None
    ) -> None:
        if self.is_empty:
            raise dp.BudgetExceeded(asked=event, left="nothing")
        self.charges.append((event, relation, purpose))


class Watched(Sequence[Any]):
    """A table whose shape is public and whose values may only be read once the purse was charged."""

    def __init__(self, values: Any, purse: Purse) -> None:
        self._values, self._purse = np.asarray(values), purse
        self.shape = self._values.shape

    def __len__(self) -> int:
        return int(self.shape[0])

    def _opened(self) -> Any:
        assert self._purse.charges, "read before it was paid for"
        return self._values

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array(self._opened(), dtype=dtype)

    def __getitem__(self, place: Any) -> Any:
        return self._opened()[place]
