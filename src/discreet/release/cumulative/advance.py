"""Release the days of a series that are due: charge once, then count, measure and store day after day."""

from __future__ import annotations

import json
import os
import sqlite3
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from discreet import noise
from discreet.custodian_debug import ConstantFailure
from discreet.errors import BudgetExceeded, LedgerUnavailable, Refused
from discreet.ledger import Account, Budget, Ledger, look
from discreet.ledger.charge_record import Charge, Entry
from discreet.ledger.private_files import create_private
from discreet.ledger.server_address import LedgerAddress
from discreet.ledger.sqlite_store import begun, connect
from discreet.privacy import epsilon
from discreet.privacy.events import Event
from discreet.privacy.relation import Relation
from discreet.query import Policy, Session
from discreet.query.plan.planner import joint_event
from discreet.query.session.row_streams import DailyRows
from discreet.release.cumulative.series_price import PricedRunning, measured_day, price_running, read_day, table_of
from discreet.release.cumulative.strategies import strategies
from discreet.release.plan import Allowance, Period, ReleasePlan, RunningPlan, Wish, running_key
from discreet.release.published import RunningRelease
from discreet.release.schedule_status import key_of, plan_ledger

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "NextCharge",
    "State",
    "advance",
    "begun_running",
    "dummy_running",
    "key_of_running",
    "next_charge",
    "opened_state",
    "running_ledger",
    "state_of",
]

# --- series_state ---
# What a series must remember from one day to the next: who was counted how often, and the exact counts so far.
#
# This is private data, in a file beside the ledger that only its owner can read. Nothing of it is ever shown.
#
# Guarantee   Whatever becomes of the rows of a table from one day to the next, a unit adds one to the count of at most
#             `most` days of the series, and at most one to each. On which days depends on its own rows alone.
# Theorem     A unit is counted on a day if, by what is there now, it has rows on more days up to it than it was counted
#             on so far, and it was counted less than `most` times. Both numbers are about that unit only. What was
#             counted is written here before anything is measured, is never counted again, and never taken back.
#
# So a row that comes late is counted on the next day of the series rather than on its own; one that is taken away later
# was counted all the same. All days that are due are counted in one transaction: a crash leaves all of them, or none.


_TABLES = (
    "CREATE TABLE IF NOT EXISTS series (id INTEGER PRIMARY KEY CHECK (id = 1), charge TEXT NOT NULL, kind TEXT)",
    "CREATE TABLE IF NOT EXISTS days (day INTEGER PRIMARY KEY, counted INTEGER NOT NULL, token TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS units (unit TEXT PRIMARY KEY, counted INTEGER NOT NULL) WITHOUT ROWID",
)
_SEEN = "CREATE TEMP TABLE seen (unit TEXT, place INTEGER, day INTEGER, PRIMARY KEY (unit, place)) WITHOUT ROWID"
_TAKE = "INSERT INTO seen SELECT ?1, ?2, ?3 WHERE NOT EXISTS (SELECT 1 FROM units WHERE unit = ?1 AND counted >= ?2)"
_BY_DAY = (
    "CREATE INDEX temp.seen_by_day ON seen (day)"  # Places grow with days: a unit's first place has its first day.
)
_TODAY = "CREATE TEMP TABLE today AS SELECT unit, min(place) AS place FROM seen WHERE day <= ? GROUP BY unit"
_COUNT = (
    "INSERT INTO units SELECT unit, place FROM today WHERE true ON CONFLICT DO UPDATE SET counted = excluded.counted"
)
_DONE = "DELETE FROM seen WHERE (unit, place) IN (SELECT unit, place FROM today)"
_BATCH = 100_000


@final
class State:
    """The private memory of one series."""

    __slots__ = ("_connection",)

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def days(self) -> list[tuple[int, str]]:
        """Return the exact count and the token of every day that was counted."""
        return list(self._connection.execute("SELECT counted, token FROM days ORDER BY day"))

    def begin(self, charge: str, kind: str) -> None:
        """Make this the memory of a series, or check that it is: of this charge, and of units of this kind."""
        with begun(self._connection, "IMMEDIATE"):
            for statement in _TABLES:
                self._connection.execute(statement)
            self._connection.execute("INSERT OR IGNORE INTO series VALUES (1, ?, ?)", (charge, kind))
            found = self._connection.execute("SELECT charge, kind FROM series").fetchone()
        if found[0] != charge:
            raise Refused(
                "the private state beside the ledger belongs to another series",
                way_out="put back the file that belongs here, or move this one away if its series has ended",
            )
        if found[1] != kind:
            raise Refused(
                f"the column that tells units apart was of the kind {found[1]} and is {kind} now",
                reason="nobody would be known again, and everybody counted once more",
                way_out="hand the column over as it was",
            )

    def add_counts(self, counts: Sequence[int]) -> None:
        """Count the days that were not counted yet, where days or rows are protected by themselves."""
        with begun(self._connection, "IMMEDIATE"):
            for day in range(self._next(), len(counts)):
                self._add(day, counts[day])

    def add_units(self, seen: pa.Table, days: int) -> None:
        """Count the days that were not counted yet; `seen` has the first days of every unit, by today's rows."""
        self._connection.execute("PRAGMA temp_store = MEMORY")  # No trace of a unit in a scratch file.
        with begun(self._connection, "IMMEDIATE"):
            self._connection.execute(_SEEN)
            for batch in seen.to_batches(_BATCH):
                columns = (batch.column(name).to_pylist() for name in ("unit", "place", "day"))
                self._connection.executemany(_TAKE, zip(*columns, strict=True))
            self._connection.execute(_BY_DAY)
            for day in range(self._next(), days):
                self._add(day, self._count(day))
            self._connection.execute("DROP TABLE seen")

    def _count(self, day: int) -> int:
        self._connection.execute(_TODAY, (day,))
        counted = int(self._connection.execute("SELECT count(*) FROM today").fetchone()[0])
        self._connection.execute(_COUNT)
        self._connection.execute(_DONE)
        self._connection.execute("DROP TABLE today")
        return counted

    def _next(self) -> int:
        return int(self._connection.execute("SELECT count(*) FROM days").fetchone()[0])

    def _add(self, day: int, counted: int) -> None:
        # The token is told with the day's answer: by it an old copy of this file is recognised. It says nothing else.
        token = f"{noise.uniform(1 << 62):x}"
        self._connection.execute("INSERT INTO days VALUES (?, ?, ?)", (day, counted, token))


@contextmanager
def opened_state(path: Path, *, may_begin: bool) -> Iterator[State]:
    """Open the memory of a series; make it only if nothing was measured yet."""
    if not path.exists() and not may_begin:
        raise Refused(
            f"the private state of this series, {path.name}, is missing, and days of it were released",
            reason="without it people who were counted would be counted again",
            way_out="put the file back from a backup made since the last release; or end the series and begin another",
        )
    try:
        create_private(path)
        _check_private(path)
        connection = connect(str(path))
    except (OSError, sqlite3.Error):
        raise LedgerUnavailable("the private state beside the ledger cannot be opened or made here") from None
    try:
        yield State(connection)
    except sqlite3.Error:
        # What sqlite3 says could name a unit.
        raise LedgerUnavailable("the private state beside the ledger could not be used; nothing was released") from None
    finally:
        connection.close()


def _check_private(path: Path) -> None:
    facts = os.stat(path)
    if not stat.S_ISREG(facts.st_mode) or facts.st_mode & 0o077:
        raise Refused(
            "others may read or write the private state beside the ledger: take their permissions away (chmod 600)"
        )


_ADD = Relation.ADD_REMOVE


def key_of_running(plan: ReleasePlan, running: RunningPlan) -> str:
    """Return the key under which the ledger has the charge of a series."""
    return running_key(plan.name, running.name)


def state_of(plan: ReleasePlan, running: RunningPlan) -> Path:
    """Return the file with the private state of a series, beside the ledger."""
    ledger = plan.policy.ledger
    if isinstance(ledger, LedgerAddress):
        raise _on_a_server()
    return ledger.with_name(f"{ledger.name}.{plan.name}.{running.name}.running")


def advance(plan: ReleasePlan, running: RunningPlan, session: Session, *, until: date) -> RunningRelease | None:
    """Release every day of a series that ended before `until` and was not released yet; return all of them.

    The series is charged before its first day is read, once for all days. After that each day is counted into the
    private state, measured, and stored in the ledger, in this order: a crash at any point neither counts nor draws
    twice. The table is a function of what was stored, so for the same `until` it is always the same. None if no day
    has ended.

    Args:
        plan: The plan, as `read_release_plan` returns it.
        running: The series, one of `plan.running`.
        session: Who pays, and has the private table; its ledger is a file.
        until: The day before which days have ended: today, usually.

    Returns:
        All days so far, with `table`; None if no day has ended.

    Raises:
        Refused: If the ledger is in memory, or the series was begun otherwise.
        BudgetExceeded: If the series cannot be paid; nothing is read.

    Examples:
        >>> from pathlib import Path
        >>> files = dp.data.copy("hospital", Path())
        >>> with open("plan.toml", "a") as file:
        ...     _ = file.write('''
        ... [[running]]
        ... name = "so_far"
        ... from = "stays"
        ... day = "admitted"
        ... first = 2025-01-01
        ... days = 365
        ... epsilon = 1
        ... ''')
        >>> plan = dp.release.read_release_plan("plan.toml")
        >>> from datetime import date
        >>> with dp.Session.from_policy(plan.policy, principal="ana") as session:
        ...     told = dp.release.advance(plan, plan.running[0], session, until=date(2025, 1, 4))
        >>> len(told.deviations)  # the first three days of January
        3
    """
    _check_file(plan)
    priced = price_running(plan, running)
    ended = priced.ended(until)
    if not ended:
        return None
    rows = DailyRows.of(
        session,
        running.source,
        running.day,
        where=running.where,
        first=priced.first,
        days=running.days,
        apart=running.person_day,
    )
    with running_ledger(plan, running, session) as book:
        charge, priced = _charged(plan, priced, session, book)
        _release_days(plan, priced, rows, book, charge, ended)
        told = book.parts(charge)[:ended]
    return RunningRelease(
        plan=running,
        table=table_of(priced, told),
        deviations=priced.deviations[:ended],
        charge=charge,
        event=priced.event,
        unit=priced.unit,
    )


def _on_a_server() -> Refused:
    return Refused(
        "a series cannot be charged to a ledger on a server yet",
        reason="what it has counted is private and kept in a file beside the ledger, on one machine",
        way_out="name a file as ledger for a plan with [[running]]",
    )


def _check_file(plan: ReleasePlan) -> None:
    if isinstance(plan.policy.ledger, LedgerAddress):
        raise _on_a_server()
    if str(plan.policy.ledger) == "memory":
        raise Refused(
            "a series goes on for days, and a ledger in memory ends with this process",
            way_out="name a file as ledger",
        )


@contextmanager
def running_ledger(plan: ReleasePlan, running: RunningPlan, session: Session | None = None) -> Iterator[Ledger]:
    """Open the account that a series is charged to.

    A series that protects each day by itself promises less than the budget of the data set does, so it cannot be
    charged to it: it has an account of its own in the same ledger, with the same budget, for units that are days.
    """
    policy = plan.policy
    if session is not None and not running.person_day:
        yield session.ledger
        return
    by_day = (f"{policy.dataset} by day", f"{policy.unit.account} and day")
    names = by_day if running.person_day else (policy.dataset, policy.unit.account)
    quotas = policy.quotas if policy.budget.kind == "unlimited" else ()
    account = Account(*names, _ADD, _opened_with(policy, names[0]) if running.person_day else policy.budget)
    with Ledger.open(policy.ledger, account, anchor=policy.anchor, quotas=quotas) as book:
        yield book


def _opened_with(policy: Policy, dataset: str) -> Budget:
    """Return the budget that an account was opened with: raising that of the data set does not raise this one."""
    known = look(policy.ledger, anchor=policy.anchor) if policy.ledger.exists() else None
    return known.account(dataset).budget if known is not None and dataset in known.datasets else policy.budget


def begun_running(plan: ReleasePlan, priced: PricedRunning, entry: Entry) -> PricedRunning:
    """Return a series as it was begun: by the price and the strategy that were charged, whatever is best today."""
    running = priced.running
    written = json.loads(entry.content["plan"])
    said = _said(plan, priced)
    if changed := sorted(name for name in said if written["said"].get(name) != said[name]):
        raise Refused(
            f"series {running.name!r} was begun with another {', '.join(changed)}",
            reason="all its days were paid for together, as they were said then",
            way_out="write it as it was, or begin another series under a new name",
        )
    ways = {one.name: one for one in strategies(running.days)}
    if written["strategy"] not in ways:
        raise Refused("this series is measured in a way that this release of the library does not know")
    return replace(priced, strategy=ways[written["strategy"]], mu_squared=Fraction(written["mu_squared"]))


def _charged(plan: ReleasePlan, priced: PricedRunning, session: Session, book: Ledger) -> tuple[Charge, PricedRunning]:
    key = key_of_running(plan, priced.running)
    entry = book.charged(key)
    if entry is not None:
        return Charge(entry.index, entry.index, entry.hash), begun_running(plan, priced, entry)
    facts = {"said": _said(plan, priced), "strategy": priced.strategy.name, "mu_squared": str(priced.mu_squared)}
    try:
        charge = book.charge(
            priced.event,
            relation=_ADD,
            purpose=f"{priced.running.title or priced.running.name}: totals so far, {priced.running.days} days",
            principal=session.principal,
            idempotency_key=key,
            plan=json.dumps(facts, sort_keys=True),
            unit=priced.unit,
            parts=priced.running.days,
        )
    except BudgetExceeded as refused:
        raise BudgetExceeded(asked=priced.cost, left=refused.left, way_out=refused.way_out) from None
    return charge, priced


def _said(plan: ReleasePlan, priced: PricedRunning) -> dict[str, Any]:
    """Collect what a series is, in the words of the plan file."""
    running = priced.running
    return {
        "source": running.source,
        "day": running.day,
        "first": running.first,
        "days": running.days,
        "where": running.where,
        "max_days": running.max_days,
        "person_day": running.person_day,
        "unit": priced.unit,
        "bounds": _bounds_said(plan, running),
        "price": _price_said(running.wish, plan.allowance),
    }


def _bounds_said(plan: ReleasePlan, running: RunningPlan) -> list[str] | None:
    """Collect how days are read where rows are not known again: clamped to other bounds they would count once more."""
    if not (running.person_day or plan.policy.unit.is_row):
        return None
    table = next((one for name, one in plan.policy.tables.items() if _same(name, running.source)), None)
    columns = {} if table is None else table.columns
    declared = next((one.facts for name, one in columns.items() if _same(name, running.day)), None)
    return None if declared is None else [declared.kind.value, str(declared.low), str(declared.high)]


def _same(one: str, other: str) -> bool:
    return one.casefold() == other.casefold()


def _price_said(wish: Wish, allowance: Allowance) -> dict[str, str]:
    """Collect what the price follows from, and nothing else: the rest of a plan may change while a series goes on."""
    said: Mapping[str, Fraction | None] = {"rho": wish.rho, "error": wish.error}
    if wish.epsilon is not None:
        said = {"epsilon": wish.epsilon, "delta": allowance.delta}
    if wish.share is not None:
        said = {"share": wish.share, "of_rho": allowance.rho, "of": allowance.epsilon, "delta": allowance.delta}
    return {name: str(value) for name, value in said.items() if value is not None}


def _release_days(
    plan: ReleasePlan, priced: PricedRunning, rows: DailyRows, book: Ledger, charge: Charge, ended: int
) -> None:
    told = book.parts(charge)
    if len(told) >= ended:
        return
    with opened_state(state_of(plan, priced.running), may_begin=not told) as state:
        state.begin(charge.hash, "" if rows.kind is None else rows.kind.value)
        _check_same(told, state)
        # Days that were counted before a crash are not read again; storing them ends the claim they were read under.
        _store_days(priced, state, book, charge, range(len(told), min(len(state.days()), ended)))
        claim = book.claim_part(charge, ended - 1, seconds=rows.seconds)
        if claim is None:  # Somebody else has just released them.
            return
        book.attempt(claim, lambda: _count_days(state, priced, rows, ended))
        _store_days(priced, state, book, charge, range(len(book.parts(charge)), ended))


def _store_days(priced: PricedRunning, state: State, book: Ledger, charge: Charge, due: range) -> None:
    days = state.days()
    counts = [count for count, _ in days]
    for day in due:
        book.store_part(charge, day, lambda day=day: _measured(priced, counts[: day + 1], days[day][1]))  # type: ignore[misc]


def _measured(priced: PricedRunning, counts: list[int], token: str) -> str:
    with ConstantFailure():
        return measured_day(priced, counts, token)


def _count_days(state: State, priced: PricedRunning, rows: DailyRows, ended: int) -> None:
    if priced.running.person_day or rows.kind is None:
        state.add_counts(rows.counts(ended))
    else:
        state.add_units(rows.first_days(ended, priced.running.max_days), ended)


def _check_same(told: tuple[str, ...], state: State) -> None:
    """Refuse a state that does not know the days that were told: an old copy would count people again."""
    kept = [token for _, token in state.days()[: len(told)]]
    if kept != [read_day(text)[1] for text in told]:
        raise Refused(
            "the private state beside the ledger is older than what was released, or of another copy",
            reason="people who were counted since would be counted again",
            way_out="put the right file back; or end the series and begin another under a new name",
        )


# --- charging ---
# What the next publication of a period would charge: its tables, and every series that begins with it.


_INVENTED = 10  # Units on each day.


@final
@dataclass(frozen=True, slots=True)
class NextCharge:
    """What is not paid yet, by name: "release" for all tables of a period, and the series that begin."""

    parts: Mapping[str, Event]
    delta: Fraction
    nested: Sequence[Event] = ()  # what the release spends for each unit within the first

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
    from discreet.release.pricing.release_price import price

    parts: dict[str, Event] = {}
    nested: Sequence[Event] = ()
    with plan_ledger(plan, ledger) as book:
        if plan.tables and book.charged(key_of(plan, period)) is None:
            priced = price(plan, period, tables=tables)
            parts["release"], nested = priced.event, priced.nested
        parts |= dict(_beginning(plan, period, book))
    return NextCharge(parts, plan.allowance.delta or Fraction(0), nested)


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
