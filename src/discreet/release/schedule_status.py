"""A plan that repeats: what was released, what is due, what was skipped, and how long the budget lasts.

All of it follows from the plan and the ledger, which are public; no private data are opened.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, final

from discreet.errors import InvalidParameter
from discreet.formatting import significant_up
from discreet.ledger import Ledger
from discreet.ledger.charge_record import Entry
from discreet.privacy.events import Event
from discreet.query import Session
from discreet.release.plan import Allowance, Every, Period, ReleasePlan, Schedule, release_key

__all__ = ["ReleasedPeriod", "Series", "key_of", "plan_ledger", "series"]

_MOST_SHOWN = 12


def key_of(plan: ReleasePlan, period: Period) -> str:
    """Return the key under which the ledger has the release of a period."""
    return release_key(plan.name, period.label)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasedPeriod:
    """A release that was paid. One that was not answered yet is finished for free by releasing it again."""

    label: str
    charge: int  # the index of its entry in the ledger
    time: datetime  # when it was charged, in UTC
    is_answered: bool
    version: str | None = None  # the declared state of the data then


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Where a plan stands on a day."""

    plan: str
    schedule: Schedule
    today: date
    released: tuple[ReleasedPeriod, ...]  # in the order of the schedule
    unfinished: tuple[ReleasedPeriod, ...]  # paid, and not answered yet
    due: tuple[Period, ...]  # ended, and not released
    gaps: tuple[Period, ...]  # those of them that a later release has passed over
    same_rows: tuple[Period, ...]  # those of them that would charge again for the rows of the last release
    next: Period | None  # what `release` takes on next; None if all is done
    price: str  # what one release may spend, in a few words
    holds: tuple[tuple[str, int], ...]  # the budget and every quota: how many more such releases each holds now

    @property
    def more(self) -> int | None:
        """How many more releases could be charged now; None if it is not known what one costs."""
        return min((times for _, times in self.holds), default=None)

    def to_json(self) -> dict[str, Any]:
        """Return the same as JSON has it."""
        return {
            "plan": self.plan,
            "every": self.schedule.every.value,
            "today": self.today.isoformat(),
            "released": [_packed(one) for one in self.released],
            "unfinished": [_packed(one) for one in self.unfinished],
            "due": [period.label for period in self.due],
            "gaps": [period.label for period in self.gaps],
            "same_rows": [period.label for period in self.same_rows],
            "next": None if self.next is None else self.next.label,
            "price": self.price,
            "holds": [{"limit": limit, "releases": times} for limit, times in self.holds],
            "more": self.more,
        }

    def __str__(self) -> str:
        return "\n".join(f"{name:<11}{text}" for name, text in self._lines())

    __repr__ = __str__

    def _lines(self) -> Iterator[tuple[str, str]]:
        yield "plan", f"{self.plan}, {_rhythm(self.schedule)}, on {self.today}"
        yield "released", _listed([one.label for one in self.released])
        if self.unfinished:
            labels = _listed([one.label for one in self.unfinished])
            yield "unfinished", f"{labels} (paid; release again to finish, for free)"
        yield "due", _listed([period.label for period in self.due])
        if self.gaps:
            yield "gaps", f"{_listed([period.label for period in self.gaps])} (a later period was released)"
        if self.same_rows:
            labels = _listed([period.label for period in self.same_rows])
            yield "same rows", f"{labels} (would be charged again: only with --period)"
        yield "next", "nothing: all is released" if self.next is None else _when(self.next, self.today)
        yield "price", f"{self.price} for each release"
        for limit, times in self.holds:
            yield "holds", f"{times} more now, by {limit}"


def series(
    plan: ReleasePlan,
    ledger: Ledger | Session | None = None,
    *,
    today: date,
    event: Event | None = None,
    principal: str = "",
    nested: Sequence[Event] = (),
) -> Series:
    """Tell which periods of a plan were released, which are due, and how many more the budget holds.

    `event` is what the next release spends, such as `price(plan).event`; without it, what the newest release spent.
    Without a ledger the one of the plan is opened; one that is not there yet is not made. `principal` is who would
    release: there may be quotas for each.

    Args:
        plan: The plan, as `read_release_plan` returns it.
        ledger: The ledger, or a session that has it; that of the plan if not said.
        today: The day for which to tell it.
        event: What the next release spends.
        principal: Who would release.
        nested: What it spends for the inner unit of a chain, such as `price(plan).nested`.

    Returns:
        The periods that are `released` and `due`, the `next` one, and how many `more` there may be; it prints so.

    Raises:
        InvalidParameter: If `ledger` is neither a ledger nor a session.

    Examples:
        >>> from pathlib import Path
        >>> files = dp.data.copy("hospital", Path())
        >>> plan = dp.release.read_release_plan("plan.toml")
        >>> from datetime import date
        >>> found = dp.release.series(plan, today=date(2026, 1, 1))
        >>> [period.label for period in found.due]
        ['2025']
    """
    with plan_ledger(plan, ledger) as book:
        history = book.history()
        newest = _newest(plan, history)
        cost = event if event is not None else None if newest is None else newest.event
        within = tuple(nested) or (() if newest is None else newest.nested)
        is_known = cost is not None and len(within) == len(plan.policy.account.nested)
        limits = book.times_left_by(cost, principal=principal, nested=within) if cost is not None and is_known else ()
    paid = {one.label: one for one in _paid(plan, history)}
    holds = tuple((limit, times) for limit, times in limits if times < sys.maxsize)  # No limit is none.
    return _standing(plan, paid, today, holds)


def _same_rows(plan: ReleasePlan, due: tuple[Period, ...], paid: Mapping[str, ReleasedPeriod]) -> tuple[Period, ...]:
    """Return the periods that a release would take from the rows of the last one, and charge for them again.

    Without a schedule's column a release is about all rows there are. So a period that had ended when the last one was
    released has nothing new to tell, unless the data have another version since.
    """
    if plan.schedule.column is not None or not plan.tables or not paid:
        return ()
    last = max(paid.values(), key=lambda one: one.charge)
    if last.version != plan.policy.version:
        return ()
    return tuple(one for one in due if one.label not in paid and one.end is not None and one.end <= last.time.date())


def _standing(
    plan: ReleasePlan, paid: Mapping[str, ReleasedPeriod], today: date, holds: tuple[tuple[str, int], ...]
) -> Series:
    ended = plan.schedule.until(today)
    done = {label for label, one in paid.items() if one.is_answered}
    due = tuple(period for period in ended if period.label not in done)
    last = max((number for number, period in enumerate(ended) if period.label in done), default=0)
    in_order = [paid[period.label] for period in ended if period.label in paid]
    early = [one for one in paid.values() if one not in in_order]  # such as a period that has not ended yet
    told = (*in_order, *early)
    same_rows = _same_rows(plan, due, paid)
    return Series(
        plan=plan.name,
        schedule=plan.schedule,
        today=today,
        released=tuple(one for one in told if one.is_answered),
        unfinished=tuple(one for one in told if not one.is_answered),
        due=due,
        gaps=tuple(period for period in ended[:last] if period.label not in done),
        same_rows=same_rows,
        next=_next(plan.schedule, tuple(period for period in due if period not in same_rows), done, today),
        price=_price(plan.allowance),
        holds=holds,
    )


def _next(schedule: Schedule, due: tuple[Period, ...], done: set[str], today: date) -> Period | None:
    if due:
        return due[0]
    if schedule.first is None:
        return None
    begun = schedule.containing(max(today, schedule.first))
    return begun if begun.label not in done else None


@contextmanager
def plan_ledger(plan: ReleasePlan, ledger: Ledger | Session | None = None) -> Iterator[Ledger]:
    """Open the ledger of a plan; one that is not there yet is not made, and holds nothing."""
    if isinstance(ledger, (Ledger, Session)):
        yield ledger.ledger if isinstance(ledger, Session) else ledger
        return
    if ledger is not None:
        raise InvalidParameter("ledger must be a Ledger or a Session; leave it out for the ledger of the plan")
    policy = plan.policy
    place = policy.ledger if policy.ledger.exists() else "memory"
    with Ledger.open(place, policy.account, anchor=policy.anchor, quotas=policy.quotas) as book:
        yield book


def _newest(plan: ReleasePlan, history: tuple[Entry, ...]) -> Entry | None:
    mine = [entry for entry in history if _label(plan, entry) is not None]
    return mine[-1] if mine else None


def _paid(plan: ReleasePlan, history: tuple[Entry, ...]) -> Iterator[ReleasedPeriod]:
    answered = {entry.content["charge"] for entry in history if entry.kind == "answer"}
    for entry in history:
        label = _label(plan, entry)
        if label is not None:
            moment = datetime.fromtimestamp(entry.time / 1e6, UTC)
            yield ReleasedPeriod(
                label=label,
                charge=entry.index,
                time=moment,
                is_answered=entry.index in answered,
                version=entry.content.get("version"),
            )


def _label(plan: ReleasePlan, entry: Entry) -> str | None:
    """Return the period that an entry paid for; None if it is about anything else."""
    before = f"release/{plan.name}/"
    key = entry.content.get("key") if entry.kind == "charge" else None
    return key.removeprefix(before) if isinstance(key, str) and key.startswith(before) else None


def _price(allowance: Allowance) -> str:
    if allowance.rho is not None:
        return f"ρ = {significant_up(allowance.rho)}"
    epsilon = "ε = ?" if allowance.epsilon is None else f"ε = {significant_up(allowance.epsilon)}"
    return epsilon if allowance.delta is None else f"{epsilon}, δ = {significant_up(allowance.delta)}"


def _packed(one: ReleasedPeriod) -> dict[str, Any]:
    return {"period": one.label, "charge": one.charge, "time": one.time.isoformat()}


def _rhythm(schedule: Schedule) -> str:
    return "once" if schedule.every is Every.ONCE else f"every {schedule.every.value} from {schedule.first}"


def _listed(labels: list[str]) -> str:
    if not labels:
        return "none"
    shown = labels if len(labels) <= _MOST_SHOWN else [*labels[: _MOST_SHOWN - 2], "…", labels[-1]]
    return f"{len(labels)}: {', '.join(shown)}"


def _when(period: Period, today: date) -> str:
    if period.end is None or period.end <= today:
        return period.label
    return f"{period.label}, after it has ended: from {period.end} on"
