"""A small method that keeps the protocol, a payer that watches, and tables that nobody would hand over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

import discreet as dp
from discreet import noise
from discreet.frames.column import Column
from discreet.privacy import DiscreteLaplace, Event, Relation
from discreet.synth.domain.coding import Coder, TableRows
from discreet.synth.domain.domain import Domain
from discreet.synth.method import Terms

CANARY = "canary-7f3a"


class Purse:
    """A payer that remembers what it was charged, or refuses."""

    def __init__(self, *, is_empty: bool = False) -> None:
        self.charges: list[tuple[Event, Relation, str, str]] = []
        self.is_empty = is_empty

    def charge(
        self, event: Event, *, relation: Relation, purpose: str, unit: str = "row", idempotency_key: str | None = None
    ) -> None:
        if self.is_empty:
            raise dp.BudgetExceeded(asked=event, left="nothing")
        self.charges.append((event, relation, purpose, unit))


class Guarded(Sequence[Any]):
    """A column whose values may only be read once the purse was charged."""

    def __init__(self, values: Sequence[Any], purse: Purse) -> None:
        self.values, self.purse = values, purse

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, place: Any) -> Any:
        assert self.purse.charges, "read before it was paid for"
        return self.values[place]


@dataclass(frozen=True)
class Columns:
    """Noisy counts of every column by itself."""

    name: str = "independent"

    def plan(self, terms: Terms[Domain]) -> ColumnsPlan:
        return ColumnsPlan(terms)


@dataclass(frozen=True)
class ColumnsPlan:
    terms: Terms[Domain]

    @property
    def reach(self) -> int:
        twice = 1 if self.terms.relation is Relation.ADD_REMOVE else 2
        return len(self.terms.domain.sizes) * self.terms.rows_per_unit * twice

    @property
    def event(self) -> DiscreteLaplace:
        return DiscreteLaplace(scale=self.reach / self.terms.epsilon, sensitivity=self.reach)

    def describe(self) -> str:
        return "counts of each column"

    def fit(self, rows: TableRows, *, progress: bool) -> ColumnsModel:
        codes, scale = rows.codes(), self.reach / Fraction(self.terms.epsilon)
        sizes = self.terms.domain.sizes
        counts = [np.bincount(codes[:, place], minlength=size) for place, size in enumerate(sizes)]
        return ColumnsModel(self.terms.domain, [own + noise.discrete_laplace(scale, len(own)) for own in counts])


@dataclass(frozen=True)
class ColumnsModel:
    domain: Domain
    counts: list[NDArray[np.int64]]

    @property
    def rows(self) -> int:
        return max(1, int(self.counts[0].sum()))

    def sample(self, rows: int) -> Mapping[str, Column]:
        drawn = [noise.uniform(len(own), rows) for own in self.counts]
        return Coder(self.domain).decode(np.column_stack(drawn))

    def document(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        return {"columns": len(self.counts)}, {f"{place}": own for place, own in enumerate(self.counts)}

    @classmethod
    def restored(cls, domain: Domain, document: tuple[dict[str, Any], dict[str, NDArray[Any]]]) -> Self:
        return cls(domain, [document[1][f"{place}"] for place in range(document[0]["columns"])])
