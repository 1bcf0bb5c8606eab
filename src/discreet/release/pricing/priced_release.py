"""A priced release: what every table costs and how exact it will be, before anything is read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

from discreet.privacy import epsilon
from discreet.privacy.events import Event
from discreet.privacy.relation import Relation
from discreet.query.planning import PricedQuery
from discreet.release.period import Period
from discreet.release.plan import ReleasePlan, TablePlan
from discreet.release.running.pricing import PricedRunning

__all__ = ["PricedRelease", "PricedTable"]


@final
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PricedTable:
    """One table with its price. `offer` is what `Session.sql(sql, …)` must be told to make the same price."""

    plan: TablePlan
    sql: str  # within the window of the period
    priced: PricedQuery
    offer: Mapping[str, Any]
    errors: Mapping[str, Fraction]  # the ± of each column at 95 %, where it follows from public facts
    relative_errors: Mapping[str, Fraction]  # the same as a part of the expected value, where one is declared
    threshold: str  # which groups stay hidden, in words; empty if all are listed

    @property
    def name(self) -> str:
        return self.plan.name

    @property
    def amount(self) -> Fraction:
        """What it spends: rho, or epsilon if its noise is not paid by rho."""
        spend = self.priced.spend
        amount = spend.rho if spend.rho is not None else spend.epsilon
        assert amount is not None
        return amount

    @property
    def groups(self) -> int | None:
        """How many rows it has; None if data must tell."""
        return self.priced.draft.groups

    def epsilon(self, delta: Fraction) -> float:
        """Return the epsilon of this table by itself, rounded up; tables together cost less than the sum."""
        return epsilon(self.priced.event, delta, relation=self.priced.relation)

    def __repr__(self) -> str:
        return f"PricedTable({self.name!r}: {self.priced.cost})"


@final
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PricedRelease:
    """All tables of one release with their prices, and what they cost together. Everything in it is public."""

    plan: ReleasePlan
    period: Period
    tables: tuple[PricedTable, ...]
    event: Event  # of the whole release, as it is charged
    epsilon: float  # of the whole release, at `delta`, rounded up
    delta: Fraction
    total: Fraction  # the sum of what is split: rho with Gaussian noise, epsilon with Laplace noise
    lifetime: int  # how many such releases the lifetime budget holds, beside its running series and nothing else
    running: tuple[PricedRunning, ...] = ()  # series of totals so far, each charged once and by itself

    @property
    def relation(self) -> Relation:
        return Relation.ADD_REMOVE

    @property
    def worst(self) -> Fraction | None:
        """The largest relative error of any table that declares what it expects."""
        return max((error for table in self.tables for error in table.relative_errors.values()), default=None)

    def table(self, name: str) -> PricedTable:
        """Return a table by its name."""
        return next(table for table in self.tables if table.name == name)

    def to_json(self) -> str:
        """Write everything that people read as one JSON object."""
        from discreet.release.pricing.price_list import as_document

        return json.dumps(as_document(self), ensure_ascii=False)

    def __str__(self) -> str:
        from discreet.release.pricing.price_list import as_text

        return as_text(self)

    def __repr__(self) -> str:
        return str(self)
