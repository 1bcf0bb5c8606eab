"""Four eyes: a release above a declared limit waits until another custodian has looked at it.

What is approved is the request as it is stored, with its price, the version of the data and the public facts of the
data set: a digest of all of them is kept when it is asked, and compared when it is approved and again when it is run.
Nothing is charged before it runs, and whether it can be paid is looked up when it is approved, too.

Many small releases are a way around a limit of one release, so that there is a limit of a day as well: of what an
account asked of a data set in the last 24 hours and nobody has looked at. Accounts that work together have one each.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, final

from discreet.errors import InvalidParameter, UnsupportedEvent
from discreet.exact import nonnegative
from discreet.formatting import significant_up
from discreet.ledger.prices import plain_price
from discreet.privacy.events import Event
from discreet.privacy.events import from_json as event_from_json
from discreet.privacy.guarantee import epsilon
from discreet.privacy.relation import Relation
from discreet.server.accounts import AccountRole, Accounts, Caller
from discreet.server.datasets import DatasetShelf, ServedDataset
from discreet.server.problems import Problem
from discreet.server.state_store import ServerState

if TYPE_CHECKING:
    from discreet.server.jobs import Job

__all__ = ["AWAITING", "ApprovalBook", "ApprovalGate", "ApprovalLimits", "ApprovalRecord", "Weighed", "release_epsilon"]

AWAITING = "awaiting"  # the state of a job that waits for a person
APPROVED, DECLINED, WITHDRAWN, EXPIRED, NOT_NEEDED = "approved", "declined", "withdrawn", "expired", "not needed"
_DAY = 86_400.0
_ALL = "*"  # every data set, those too that are added while the server runs
_LONGEST_REASON, _LEAST_BEGINNING = 500, 8
_USUAL_DELTA = Fraction(1, 10**6)  # where a budget of ρ has no δ at which an ε could be told


# --- limits ---


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalLimits:
    """Above which ε a release waits, and above which sum of a day; by data set, and by data set and role.

    Whoever runs the server declares them. A limit of a role replaces that of the data set for this role.
    """

    each: Mapping[tuple[str, str], Fraction] = field(default_factory=dict)
    daily: Mapping[tuple[str, str], Fraction] = field(default_factory=dict)
    days: float = 7.0  # after which nobody can approve it any more

    @classmethod
    def read(cls, each: Iterable[str], daily: Iterable[str], days: float = 7.0) -> ApprovalLimits:
        """Read `visits=0.5` and `visits:agent=0.1`."""
        if not 0 < days <= 366:
            raise InvalidParameter("an approval waits for more than 0 and at most 366 days")
        return cls(each=_limits("--approve-above", each), daily=_limits("--approve-above-daily", daily), days=days)

    def check(self, datasets: Iterable[str]) -> None:
        """Refuse a limit of a data set that is not there: it would hold nobody back."""
        known = {*datasets, _ALL}
        for dataset, _ in (*self.each, *self.daily):
            if dataset not in known:
                raise InvalidParameter(f"a limit for approvals names {dataset}, and there is no such data set")

    def of(self, dataset: str, role: AccountRole) -> tuple[Fraction | None, Fraction | None]:
        """Return the limit of one release and that of a day."""
        places = [(name, one) for name in (dataset, _ALL) for one in (role.value, "")]  # The nearest counts.
        each, daily = (next((one[place] for place in places if place in one), None) for one in (self.each, self.daily))
        return each, daily


def _limits(option: str, said: Iterable[str]) -> dict[tuple[str, str], Fraction]:
    found: dict[tuple[str, str], Fraction] = {}
    for text in said:
        place, _, amount = text.rpartition("=")
        dataset, _, role = place.rpartition(":") if place.rpartition(":")[2] in _ROLES else (place, "", "")
        if not dataset:
            raise InvalidParameter(f"{option} is DATASET=ε or DATASET:ROLE=ε, such as visits=0.5 or visits:agent=0.1")
        found[dataset, role] = nonnegative(amount, name=option)
    return found


_ROLES = frozenset(role.value for role in AccountRole)


# --- what a release weighs ---


def release_epsilon(charged: Sequence[Event], served: ServedDataset) -> Fraction | None:
    """Return the ε of a release, rounded up: its own, or at the δ of the budget; None if no bound is known.

    What is charged for units within has an ε each, and the largest counts; what is charged nothing has none to count.
    """
    budget, relation = served.session.ledger.account.budget, served.policy.unit.relation
    try:
        found = [_epsilon(one, relation, budget.delta or _USUAL_DELTA) for one in charged]
    except UnsupportedEvent:
        return None
    return Fraction(max(found, default=0)) if all(map(math.isfinite, found)) else None


def _epsilon(event: Event, relation: Relation, delta: Fraction) -> Fraction | float:
    known = plain_price(event, relation).epsilon
    return epsilon(event, delta, relation=relation) if known is None else known


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Weighed:
    """What a release weighs under the limits of its data set; no ε is more than any limit."""

    charged: tuple[Event, ...] | None  # None if nobody said what is
    epsilon: Fraction | None
    each: Fraction | None
    daily: Fraction | None

    def why(self, spent_today: Fraction) -> str:
        """Say why it waits; nothing if it does not."""
        if self.epsilon is None:
            return "no ε of it is known, and this data set has a limit"
        if self.each is not None and self.epsilon > self.each:
            return f"ε = {significant_up(self.epsilon)} is above {significant_up(self.each)}, the limit of one release"
        total = spent_today + self.epsilon
        if self.daily is not None and total > self.daily:
            of_day = f"ε = {significant_up(total)} in 24 hours is above {significant_up(self.daily)}"
            return f"{of_day}, the limit of what one account asks and nobody looks at"
        return ""


# --- the record ---


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRecord:
    """What is on record about a release that waited for somebody."""

    number: int
    job: str
    dataset: str
    name: str  # who asked
    epsilon: str | None
    why: str
    state: str
    asked: float
    until: float
    decided_by: str | None
    decided: float | None
    reason: str | None
    bound: str
    events: str | None

    @classmethod
    def of(cls, row: Any) -> ApprovalRecord:
        """Read a row of the state."""
        return cls(**{name: row[name] for name in cls.__dataclass_fields__})

    @property
    def is_open(self) -> bool:
        """Whether somebody may still decide."""
        return self.state == AWAITING

    def charged(self) -> tuple[Event, ...]:
        """Return what a release would be charged, and what for units within; nothing if that is not known."""
        return () if self.events is None else tuple(map(event_from_json, json.loads(self.events)))


@final
class ApprovalBook:
    """The record of approvals in the state of a server, and every way in which one ends: each is in the log."""

    def __init__(self, state: ServerState) -> None:
        self._state = state

    def of(self, job: str) -> ApprovalRecord | None:
        """Return what is on record about a release."""
        row = self._state.row("SELECT * FROM approvals WHERE job = ?", job)
        return None if row is None else ApprovalRecord.of(row)

    def found(self, beginning: str) -> ApprovalRecord:
        """Return what is on record under an id, or under the one that begins so; at least 8 letters are needed."""
        if len(beginning) < _LEAST_BEGINNING or not beginning.isalnum():
            raise InvalidParameter(f"say the id of a release, or at least its first {_LEAST_BEGINNING} letters")
        query = "SELECT * FROM approvals WHERE substr(job, 1, ?) = ? AND state <> ?"
        rows = self._state.rows(query, len(beginning), beginning, NOT_NEEDED)
        if len(rows) != 1:
            raise InvalidParameter("there is no one release of this id that waits: see `discreet approve list`")
        return ApprovalRecord.of(rows[0])

    def sql_of(self, job: str) -> str:
        """Return what a release asks for, as it is stored."""
        row = self._state.row("SELECT request FROM jobs WHERE id = ?", job)
        return "" if row is None else str(json.loads(row["request"])["sql"])

    def token_of(self, job: str) -> str | None:
        """Return the public part of the token by which a release was asked for; None for a visit."""
        row = self._state.row("SELECT request FROM jobs WHERE id = ?", job)
        found: str | None = None if row is None else json.loads(row["request"]).get("token")
        return found

    def listed(
        self, *, only: str | None, datasets: Iterable[str] | None, before: int | None, most: int
    ) -> list[ApprovalRecord]:
        """Return releases that waited or wait, the newest first: of one account or all, on some data sets or all."""
        self.expire()
        query, values = "SELECT * FROM approvals WHERE state <> ? AND number < ?", [NOT_NEEDED, before or 1 << 62]
        if only is not None:
            query, values = query + " AND name = ?", [*values, only]
        if datasets is not None:
            named = sorted(datasets)
            query += f" AND dataset IN ({', '.join('?' * len(named))})" if named else " AND 1 = 0"
            values += named
        found = self._state.rows(f"{query} ORDER BY number DESC LIMIT ?", *values, most)
        return [ApprovalRecord.of(row) for row in found]

    def waiting(self, name: str) -> int:
        """Return how many releases of an account wait for somebody."""
        row = self._state.row("SELECT COUNT(*) AS n FROM approvals WHERE name = ? AND state = ?", name, AWAITING)
        return 0 if row is None else int(row["n"])

    def accept(self, job: str, *, by: str, reason: str = "") -> None:
        """Let a release be run. Whoever asked cannot, under whatever name they come."""
        self._end(job, APPROVED, by=by, reason=_read_reason(reason), job_state="queued")

    def decline(self, job: str, *, by: str, reason: str) -> None:
        """Refuse a release, and say why; nothing is charged."""
        said = _read_reason(reason)
        if not said:
            raise Problem("invalid", "say why it is declined: whoever asked reads it")
        self._end(job, DECLINED, by=by, reason=said, job_state="failed")

    def withdraw(self, job: str, *, by: str) -> None:
        """Take back a release that waits; only who asked does."""
        self._end(job, WITHDRAWN, by=by, reason="", job_state="failed")

    def expire(self) -> None:
        """End what waited for too long; it is a decision of nobody."""
        late = self._state.rows("SELECT job FROM approvals WHERE state = ? AND until <= ?", AWAITING, self._state.now())
        for row in late:
            self._end(row["job"], EXPIRED, by="", reason="", job_state="failed")

    def _end(self, job: str, outcome: str, *, by: str, reason: str, job_state: str) -> None:
        """End the waiting, once: of two who decide at the same time one is told that it was decided."""
        now, least = self._state.now(), -1.0 if outcome == EXPIRED else self._state.now()
        problem = None if job_state == "queued" else json.dumps(_not_approved(outcome, by, reason).document())
        with self._state.changing() as database:
            changed = database.execute(
                "UPDATE approvals SET state = ?, decided_by = ?, decided = ?, reason = ?"
                " WHERE job = ? AND state = ? AND until > ?",
                (outcome, by, now, reason, job, AWAITING, least),
            ).rowcount
            if changed:
                database.execute(
                    "UPDATE jobs SET state = ?, problem = ? WHERE id = ? AND state = ?",
                    (job_state, problem, job, AWAITING),
                )
        if not changed and outcome != EXPIRED:
            raise Problem("decided")
        if changed:
            found = self.of(job)
            dataset = "" if found is None else found.dataset
            self._state.decide(by, _ACTS[outcome], dataset=dataset, outcome=outcome, about=job)

    # --- what waits ---

    def asked_today(self, database: Any, name: str, dataset: str) -> Fraction:
        """Return the sum of ε that an account asked for in 24 hours and that nobody looked at."""
        since = self._state.now() - _DAY
        query = "SELECT epsilon FROM approvals WHERE name = ? AND dataset = ? AND state = ? AND asked > ?"
        found = database.execute(query, (name, dataset, NOT_NEEDED, since)).fetchall()
        return sum((Fraction(row["epsilon"]) for row in found), Fraction(0))

    def write(self, database: Any, job: Job, weighed: Weighed, why: str, bound: str, until: float) -> None:
        """Put a release on record, in the transaction in which it is asked for."""
        events = None if weighed.charged is None else [one.to_json() for one in weighed.charged]
        database.execute(
            "INSERT INTO approvals (job, dataset, name, epsilon, why, state, asked, until, bound, events)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                job.id,
                job.dataset,
                job.name,
                None if weighed.epsilon is None else str(weighed.epsilon),
                why,
                AWAITING if why else NOT_NEEDED,
                self._state.now(),
                until,
                bound,
                None if events is None else json.dumps(events),
            ),
        )


_ACTS = {APPROVED: "approve", DECLINED: "decline", WITHDRAWN: "withdraw", EXPIRED: "approval expires"}


def _read_reason(said: str) -> str:
    text = said.strip()
    if len(text) > _LONGEST_REASON:
        raise Problem("invalid", f"a reason has at most {_LONGEST_REASON} characters")
    return text


def _not_approved(outcome: str, by: str, reason: str) -> Problem:
    told = {
        DECLINED: f"{by} declined this release, and nothing was charged",
        WITHDRAWN: "whoever asked withdrew this release, and nothing was charged",
        EXPIRED: "nobody approved this release in time, and nothing was charged",
    }
    return Problem("not-approved", told[outcome], reason=reason or None)


# --- the gate ---


@final
class ApprovalGate:
    """What holds releases back, and lets them go: the one place through which every kind of job goes."""

    def __init__(
        self, state: ServerState, shelf: DatasetShelf, accounts: Accounts, limits: ApprovalLimits | None = None
    ) -> None:
        self.book, self.limits = ApprovalBook(state), limits or ApprovalLimits()
        self._state, self._shelf, self._accounts = state, shelf, accounts

    def weigh(self, caller: Caller, dataset: str, charged: Sequence[Event] | None) -> Weighed | None:
        """Weigh what is asked for; None where no limit is declared."""
        each, daily = self.limits.of(dataset, caller.role)
        if each is None and daily is None:
            return None
        known = None if charged is None else release_epsilon(charged, self._shelf[dataset])
        events = None if charged is None else tuple(charged)
        return Weighed(charged=events, epsilon=known, each=each, daily=daily)

    def holds_back(self, database: Any, job: Job, weighed: Weighed | None) -> bool:
        """Put a new job on record, in its own transaction, and tell whether it waits for somebody."""
        if weighed is None:
            return False
        why = weighed.why(self.book.asked_today(database, job.name, job.dataset))
        until = job.asked + self.limits.days * _DAY
        self.book.write(database, job, weighed, why, self.bound(job), until)
        return bool(why)

    def check_may_run(self, job: Job) -> None:
        """Refuse what waits, was ended, or is no longer what was approved. It is asked when a job begins to be run."""
        found = self.book.of(job.id)
        if found is None or found.state == NOT_NEEDED:
            return
        if found.state != APPROVED or found.bound != self.bound(job) or not self._costs_the_same(job, found):
            raise Problem("not-approved", _CHANGED)

    def _costs_the_same(self, job: Job, record: ApprovalRecord) -> bool:
        """Price a question once more: a share of a budget that was raised meanwhile is more than was approved.

        All other kinds are asked for with everything that their price follows from, which is in the digest.
        """
        if job.kind != "question" or record.events is None:
            return True
        plan = job.question.plan(self._shelf[job.dataset].asked_by(job.name))
        return (plan.event, *plan.nested) == record.charged()

    def bound(self, job: Job) -> str:
        """Return a digest of everything that an approval is for: the request, its price, and the data as declared."""
        told = self._shelf[job.dataset].public_facts()
        # Times may be others after each start, and change nothing that is released.
        facts = [told[name] for name in ("name", "protects", "relation", "budget", "version", "tables")]
        asked = [job.id, job.name, job.dataset, job.key, job.kind, job.cost, job.token, job.sql]
        whole = [asked, dict(job.offer), dict(job.details), facts]
        return hashlib.sha256(json.dumps(whole, sort_keys=True, default=str).encode()).hexdigest()

    def may_decide(self, caller: Caller, record: ApprovalRecord) -> bool:
        """Tell whether somebody may approve or decline: another person, with the right role, who sees the data set."""
        allowed = record.is_open and caller.may("approve") and caller.sees(record.dataset)
        return allowed and not self._asked_it(caller, record)

    def _asked_it(self, caller: Caller, record: ApprovalRecord) -> bool:
        """Tell whether somebody asked for a release, in their own name or by a token that they made for an agent."""
        if self._accounts.is_same_person(caller.name, record.name):
            return True
        return self._accounts.gave_token(caller.name, record.name, self.book.token_of(record.job))

    def decide(self, caller: Caller, job: Job, *, approve: bool, reason: str) -> None:
        """Approve or decline, for somebody else than who asked."""
        record = self._open(job)
        caller.check("approve", record.dataset)
        if self._asked_it(caller, record):
            told = "whoever asked for a release cannot approve or decline it, nor who made the token that asked"
            raise Problem("forbidden", told)
        if not approve:
            self.book.decline(job.id, by=caller.name, reason=reason)
            return
        self._check_unchanged(job, record)
        self.book.accept(job.id, by=caller.name, reason=reason)

    def withdraw(self, caller: Caller, job: Job) -> None:
        """Take back what one asked for."""
        record = self._open(job)
        if caller.name != record.name:
            raise Problem("forbidden", "only who asked for a release withdraws it")
        self.book.withdraw(job.id, by=caller.name)

    def _open(self, job: Job) -> ApprovalRecord:
        self.book.expire()
        record = self.book.of(job.id)
        if record is None or not record.is_open:
            raise Problem("decided")
        return record

    def _check_unchanged(self, job: Job, record: ApprovalRecord) -> None:
        if record.bound != self.bound(job):
            raise Problem("decided", _CHANGED)
        charged, ledger = record.charged(), self._shelf[job.dataset].session.ledger
        if charged and not ledger.times_left(charged[0], principal=job.name, nested=charged[1:]):
            raise Problem("budget-exceeded", f"the price {job.cost} does not fit into what is left")


_CHANGED = "the data set was declared anew since this was asked: nothing was charged; ask again"
