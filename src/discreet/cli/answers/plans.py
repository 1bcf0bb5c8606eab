"""What is told of a release plan, and of what was written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from discreet.cli.output import Block
from discreet.exact import up

if TYPE_CHECKING:
    from discreet.release import Checked, PricedRelease, Series

__all__ = ["CheckedPlan", "Drafted", "PlanStatus", "PriceList", "TablePrice", "Total", "Written"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """What is divided among the tables: rho with Gaussian noise, epsilon with Laplace noise."""

    unit: str
    amount: str  # an exact fraction


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TablePrice:
    """One table: what it costs, and how far off it will be, at 95 %. Exact numbers are fractions, as text."""

    name: str
    title: str
    rows: int | None  # null if data must tell
    price: str
    rho: str | None
    epsilon: str | None
    epsilon_alone: float  # of this table by itself, at the delta of the release, rounded up
    delta: str | None
    errors: dict[str, float]
    relative_errors: dict[str, float]
    expected: dict[str, float]
    threshold: str | None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PriceList:
    """What one release costs, table by table and together, and what to change."""

    format: str
    plan: str
    title: str
    period: str
    epsilon: float
    delta: str
    total: Total
    releases_in_lifetime_budget: int
    lifetime_budget: str
    tables: list[TablePrice]
    running: list[dict[str, Any]]  # series of totals, each paid for once, for all its days
    advice: list[str]
    text: str

    @classmethod
    def of(cls, priced: PricedRelease) -> PriceList:
        """Read a priced release."""
        said = json.loads(priced.to_json())
        tables = [TablePrice(**table) for table in said.pop("tables")]
        return cls(**said | {"total": Total(**said["total"])}, tables=tables, text=str(priced))

    def blocks(self) -> Iterator[Block]:
        yield self.text


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedPlan:
    """A plan in which nothing was found wrong."""

    plan: str
    tables: list[str]
    running: list[str]
    epsilon: float  # of one release, at `delta`, rounded up
    delta: float
    notes: list[str]
    text: str

    @classmethod
    def of(cls, checked: Checked) -> CheckedPlan:
        """Read a plan that was checked."""
        return cls(
            plan=checked.plan.name,
            tables=[table.name for table in checked.plan.tables],
            running=[series.name for series in checked.plan.running],
            epsilon=checked.priced.epsilon,
            delta=up(checked.priced.delta),
            notes=list(checked.notes),
            text=str(checked),
        )

    def blocks(self) -> Iterator[Block]:
        yield self.text


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Drafted:
    """A plan that was written, and checked."""

    plan: str  # the file
    tables: list[str]
    epsilon: float  # of one release, rounded up
    text: str

    @classmethod
    def of(cls, checked: Checked, file: Path) -> Drafted:
        """Read a plan that was written."""
        tables = [table.name for table in checked.plan.tables]
        return cls(plan=str(file), tables=tables, epsilon=checked.priced.epsilon, text=str(checked))

    def blocks(self) -> Iterator[Block]:
        yield self.text
        yield f"Read {self.plan} and change what you know better; then: discreet plan price {self.plan}"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PlanStatus:
    """Where a plan that repeats stands today."""

    plan: str
    every: str
    today: str
    released: list[dict[str, Any]]
    unfinished: list[dict[str, Any]]
    due: list[str]
    gaps: list[str]
    next: str | None
    price: str
    holds: list[dict[str, Any]]
    more: int | None
    text: str

    @classmethod
    def of(cls, series: Series) -> PlanStatus:
        """Read a series."""
        return cls(**series.to_json(), text=str(series))

    def blocks(self) -> Iterator[Block]:
        yield self.text


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A bundle that was written: where it is, and the page to open."""

    bundle: str
    report: str

    @classmethod
    def of(cls, bundle: Path) -> Written:
        """Name a bundle."""
        return cls(bundle=str(bundle), report=str(bundle / "report.html"))

    def blocks(self) -> Iterator[Block]:
        yield self.bundle
        yield f"open {self.report}"
