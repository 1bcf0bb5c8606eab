"""What the next publication of a period would charge: its tables, and every series that begins with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from typing import Any, final

from discreet.ledger import Entry, Ledger
from discreet.privacy import epsilon
from discreet.privacy.events import Event
from discreet.privacy.relation import Relation
from discreet.query import Session
from discreet.query.planning import joint_event
from discreet.release.period import Period
from discreet.release.plan import ReleasePlan, RunningPlan
from discreet.release.published import RunningRelease
from discreet.release.running.advancing import begun_running, key_of_running, running_ledger
from discreet.release.running.measuring import measured_day, table_of
from discreet.release.running.pricing import price_running
from discreet.release.standing import key_of, plan_ledger

__all__ = ["NextCharge", "dummy_running", "next_charge"]

_INVENTED = 10  # Units on each day.


@final
@dataclass(frozen=True, slots=True)
class NextCharge:
    """What is not paid yet, by name: "release" for all tables of a period, and the series that begin."""

    parts: Mapping[str, Event]
    delta: Fraction

    @property
    def event(self) -> Event | None:
        """All of it together; None if everything is paid. It holds for whoever is protected least."""
        return joint_event(self.parts.values()) if self.parts else None

    @property
    def epsilon(self) -> float:
        """The epsilon of all of it at `delta`, rounded up."""
        return 0.0 if self.event is None else epsilon(self.event, self.delta, relation=Relation.ADD_REMOVE)


def next_charge(
    plan: ReleasePlan,
    period: Period,
    ledger: Ledger | Session | None = None,
    *,
    tables: Mapping[str, Any] | None = None,
) -> NextCharge:
    """Tell what publishing a period would charge now: nothing for what was charged before. Nothing is read."""
    from discreet.release.pricing.pricing import price

    parts: dict[str, Event] = {}
    with plan_ledger(plan, ledger) as book:
        if plan.tables and book.charged(key_of(plan, period)) is None:
            parts["release"] = price(plan, period, tables=tables).event
        parts |= dict(_beginning(plan, period, book))
    return NextCharge(parts, plan.allowance.delta or Fraction(0))


def _beginning(plan: ReleasePlan, period: Period, book: Ledger) -> Iterator[tuple[str, Event]]:
    """Find the series that begin; one that was begun otherwise than it is said now is refused before any charge."""
    for running in plan.running:
        priced = price_running(plan, running)
        if period.end is None or not priced.ended(period.end):
            continue
        entry = _begun(plan, running, book)
        if entry is None:
            yield running.name, priced.event
        else:
            begun_running(plan, priced, entry)


def _begun(plan: ReleasePlan, running: RunningPlan, book: Ledger) -> Entry | None:
    if not running.person_day:
        return book.charged(key_of_running(plan, running))
    if not plan.policy.ledger.exists():
        return None
    with running_ledger(plan, running) as own:
        return own.charged(key_of_running(plan, running))


def dummy_running(plan: ReleasePlan, running: RunningPlan, *, until: date) -> RunningRelease | None:
    """Return what a series will look like, from invented counts of ten a day: nobody's, so nothing is charged."""
    priced = price_running(plan, running)
    ended = priced.ended(until)
    if not ended:
        return None
    told = [measured_day(priced, [_INVENTED] * (day + 1), "") for day in range(ended)]
    return RunningRelease(
        plan=running,
        table=table_of(priced, told),
        deviations=priced.deviations[:ended],
        charge=None,
        event=priced.event,
        unit=priced.unit,
    )
