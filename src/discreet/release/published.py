"""What one release has published: raw and tidy tables, what they cost, and where the ledger has it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from typing import final

from discreet.formatting import record
from discreet.ledger.charge_record import Charge
from discreet.ledger.spending import Left
from discreet.privacy.events import Event
from discreet.privacy.relation import Relation
from discreet.query import ReleaseTable
from discreet.query.plan.residuals import SharedNoise
from discreet.release.plan import Period, ReleasePlan, RunningPlan, TablePlan
from discreet.release.signatures import PublicKey

__all__ = ["LedgerMark", "Published", "PublishedTable", "RunningRelease"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerMark:
    """Where the ledger records a release. The hash is that of the entry of the charge."""

    dataset: str
    charge: int
    hash: str
    time: datetime  # when it was charged: everything in a bundle that needs a time takes this one
    left: Left | None = None  # of the lifetime budget, after this charge and those of the series beside it


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedTable:
    """One table as it was released, and, if it adds up with others, as it was made to."""

    plan: TablePlan
    raw: ReleaseTable  # noise and nothing else
    tidy: ReleaseTable | None  # whole, not negative, adding up; biased
    deviations: Mapping[str, Fraction] = field(default_factory=dict)  # of the noise, by column, where it is public
    shared: SharedNoise | None = None  # if its noise was drawn for its whole family
    threshold: str = ""  # which groups stay hidden, in words; empty if all are listed


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RunningRelease:
    """A series of totals so far, up to a day. It was paid for once, by a charge of its own."""

    plan: RunningPlan
    table: ReleaseTable  # columns `day` and `total`, whose ± differs from day to day
    deviations: tuple[Fraction, ...]  # of the noise in `total`, day by day, rounded up
    charge: Charge | None  # None for a dummy
    event: Event  # of all days of the series, also those to come
    unit: str  # whom the series protects: the unit of the plan, or one day of it

    __repr__ = record


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """Everything that goes into a bundle. All of it may be shown to anybody."""

    plan: ReleasePlan
    period: Period
    tables: tuple[PublishedTable, ...]
    event: Event  # of the whole release
    relation: Relation
    epsilon: float  # of the whole release, at `delta`, rounded up
    delta: Fraction
    ledger: LedgerMark | None  # None for a dummy, which is made of invented rows and costs nothing
    signer: PublicKey | None = None  # whose signature the bundle bears
    running: tuple[RunningRelease, ...] = ()  # series that go on, each paid for by itself
    nested: tuple[Event, ...] = ()  # of the whole release, for the inner unit of a chain
