"""What a data set is opened with, and what may never change afterwards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

from discreet.errors import InvalidParameter
from discreet.ledger.budget import Budget
from discreet.privacy.relation import Relation

__all__ = ["Account"]

_LONGEST = 1000  # Characters of a name; a longer one is a mistake.


@final
@dataclass(frozen=True, slots=True)
class Account:
    """A data set, whom it protects, who counts as a neighbour, and its lifetime budget.

    `unit` is public text such as "customer_id" or "row". Unit and relation are fixed for ever; the budget can only
    be raised, which is an entry of its own.
    """

    dataset: str
    unit: str
    relation: Relation
    budget: Budget

    def __post_init__(self) -> None:
        for name in ("dataset", "unit"):
            value = getattr(self, name)
            if not isinstance(value, str) or not 0 < len(value) <= _LONGEST:
                raise InvalidParameter(f"{name} must be a text of 1 to {_LONGEST} characters")
        if not isinstance(self.relation, Relation):
            raise InvalidParameter("relation must be Relation.ADD_REMOVE or Relation.REPLACE_ONE")
        if not isinstance(self.budget, Budget):
            raise InvalidParameter(
                "budget must be a Budget: say Budget(epsilon=…), with delta or not, or Budget(rho=…)"
            )

    def describe(self) -> str:
        """Return the declaration as people read it."""
        return f"unit {self.unit!r}, {self.relation.value}, {self.budget.describe()}"

    def packed(self) -> dict[str, Any]:
        """Return what JSON writes."""
        return {"unit": self.unit, "relation": self.relation.value, "budget": self.budget.packed()}

    @classmethod
    def unpacked(cls, dataset: str, packed: dict[str, Any]) -> Account:
        """Read what `packed` returned."""
        return cls(dataset, packed["unit"], Relation(packed["relation"]), Budget.unpacked(packed["budget"]))
