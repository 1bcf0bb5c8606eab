"""The data sets of a server: a session each, what is publicly known of it, and the time after which it answers.

A `Session` stays the only door to the data. Whoever asks gets a view of it under their own name, so that ledger and
quotas know them.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from fractions import Fraction
from pathlib import Path
from threading import Lock
from typing import Any, cast, final

from discreet.errors import DiscreetError, InvalidParameter
from discreet.ledger.budget import Budget
from discreet.ledger.spending import Left, Spending, price_words
from discreet.query.catalogue import Catalogue, CatalogueColumn, CatalogueTable
from discreet.query.engines.made_up_rows import made_up_tables
from discreet.query.policy import PublicTable
from discreet.query.session.executor import Patience
from discreet.query.session.paid_work import with_seconds
from discreet.query.session.plans import Plan
from discreet.query.session.policy_file import Policy
from discreet.query.session.session import Session
from discreet.schema.columns import Kind, time_at
from discreet.server.problems import Problem

__all__ = [
    "KIND_SECONDS",
    "MOST_CELLS",
    "AskedQuestion",
    "DatasetShelf",
    "ServedDataset",
    "in_memory",
    "open_dataset",
    "open_shelf",
    "sample_question",
    "trial_seconds",
]

MOST_CELLS = 100_000  # groups times columns of a question
_GROUPS_NOT_LISTED = 1_000  # what they count as where only the rows say how many there are
_SHOWN_MEMBERS, _SAMPLE_GROUPS = 200, 40
_PLAIN = re.compile(r"[a-z_][a-z0-9_]*", re.ASCII)
_BEFORE_ITS_TIME = ("already paid", "asked before")
_TRIAL_ROWS = 100_000  # where the policy does not say how many there are
_LEAST_SECONDS = 1.0
_MOST_RETIRED = 50  # data sets that were replaced since the start
# Where nobody declared them: constants, since what such a job takes follows from more than a trial could try.
KIND_SECONDS: Mapping[str, float] = {"plan": 60.0, "profile": 60.0, "synth": 300.0, "train": 60.0}
_WORKING_PART = 0.8  # of the declared time is for reading; the rest for drawing, storing and a worker that is killed


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AskedQuestion:
    """What somebody asks and offers for it: the words of `Session.sql`, as they came over the network."""

    sql: str
    offer: Mapping[str, Any]

    def plan(self, session: Session, *, idempotency_key: str | None = None) -> Plan:
        """Read and price it; nothing is spent, and no row is read."""
        plan = session.sql(self.sql, **self.offer, idempotency_key=idempotency_key)
        columns = len(plan.question.outputs)
        cells = _GROUPS_NOT_LISTED * columns if plan.cells is None else plan.cells
        if cells > MOST_CELLS:
            raise Problem(
                "refused",
                f"an answer has at most {MOST_CELLS:,} cells here, and this one has {cells // columns:,} groups of "
                f"{columns:,} columns",
                reason="noise for each of them takes time and memory that others need"
                + (f"; groups that are not listed count as {_GROUPS_NOT_LISTED:,}" if plan.cells is None else ""),
                way_out="ask for fewer columns, or group by fewer keys or coarser ones",
            )
        return plan


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ServedDataset:
    """A data set that is served."""

    name: str
    policy: Policy
    session: Session
    answer_after: float  # seconds from the start of a job to its answer, whatever the data are
    own_seconds: float = math.inf  # what the policy itself lets a question read for
    times: Mapping[str, float] = field(default_factory=dict)  # the same for other kinds of jobs than questions

    def seconds_of(self, kind: str) -> float:
        """Return the seconds from the start of a job of a kind to its answer."""
        return self.times.get(kind, self.answer_after)

    def asked_by(self, name: str, patience: Patience | None = None, *, kind: str = "question") -> Session:
        """Return the session as somebody asks in it; reading may take the larger part of the time of that kind."""
        session = self.session.for_principal(name, patience=patience)
        most = min(self.seconds_of(kind) * _WORKING_PART, self.own_seconds)
        return session if kind == "question" else with_seconds(session, most)

    def public_facts(self) -> dict[str, Any]:
        """Say what anybody who may ask may know: declarations, never anything that was read from private rows."""
        unit, chain = self.policy.unit, self.policy.chain
        whom = "each row" if unit.is_row else f"each {unit.noun} with all its rows"
        return {
            "name": self.name,
            "protects": whom if chain is None else f"{whom}, and each {chain.inner.noun} within",
            "relation": self.policy.unit.relation.value,
            "budget": self.policy.budget.describe(),
            "version": self.session.version,
            "answer_after": self.answer_after,
            "answer_times": dict(self.times),
            "tables": [_table_facts(table) for table in self.session.catalogue.tables.values()],
        }

    def estimate(self, plan: Plan, name: str) -> dict[str, Any]:
        """Say what a question costs and how far off its answer will be."""
        told = plan.explain()
        more = self.session.ledger.times_left(plan.event, principal=name, nested=plan.nested)
        return {
            "cost": plan.cost,
            "affordable": more > 0,
            "more_like_this": min(more, 10**9),
            # Whether the answer is on record is left out: it is known before it may be told.
            "facts": {fact: text for fact, text in told.facts if fact not in _BEFORE_ITS_TIME},
            "errors": dict(told.errors),
            "notes": list(told.notes),
            "answer_after": self.answer_after,
        }

    def budget(self, name: str) -> dict[str, Any]:
        """Say what was spent and what is left."""
        session = self.asked_by(name)
        spent, left = session.spent, session.left
        return {
            "dataset": self.name,
            "sentence": session.money(),
            "budget": spent.budget.describe(),
            "charges": spent.charges,
            "spent_share": spent.share,
            "left_share": left.share,
            "spent": spent.describe(),
            "left": left.describe(),
            "exact": {"budget": spent.budget.packed(), "spent": _exact_spending(spent), "left": _exact_left(left)},
        }

    def history(self, *, only: str | None, before: int | None, most: int) -> list[dict[str, Any]]:
        """Return charges, the newest first: of one principal, or of everybody.

        A number is the place among all charges. Among all entries it would tell how many answers are known by now.
        """
        found = enumerate((entry for entry in self.session.history() if entry.kind == "charge"), 1)
        mine = [(number, entry) for number, entry in found if only is None or entry.content.get("principal") == only]
        page = [(number, entry) for number, entry in reversed(mine) if before is None or number < before][:most]
        relation, budget = self.policy.unit.relation, self._budget
        return [
            {
                "number": number,
                "when": entry.moment,
                "who": str(entry.content.get("principal", "")),
                "price": None if entry.event is None else price_words(entry.event, relation, budget),
                "purpose": str(entry.content.get("purpose", "")),
            }
            for number, entry in page
        ]

    @property
    def _budget(self) -> Budget:
        return self.session.ledger.account.budget


def _exact_spending(spent: Spending) -> dict[str, Any]:
    """Write every number as it is: whoever reads it back has the same `Spending`."""
    return {
        "epsilon": _ratio(spent.epsilon),
        "delta": str(spent.delta),
        "rho": _ratio(spent.rho),
        "renyi": [(str(order), total) for order, total in spent.renyi],
        "last": spent.last,
    }


def _exact_left(left: Left) -> dict[str, Any]:
    return {
        "epsilon": _ratio(left.epsilon),
        "delta": _ratio(left.delta),
        "rho": _ratio(left.rho),
        "more": left.more,
        "limit": left.limit,
        "delta_share": _ratio(left.delta_share),
    }


def _ratio(number: Fraction | None) -> str | None:
    return None if number is None else str(number)


@final
class DatasetShelf:
    """All data sets of a server, by name."""

    def __init__(self, served: Sequence[ServedDataset]) -> None:
        self._served = {one.name: one for one in served}
        self._retired: list[ServedDataset] = []  # Releases that are under way still read from these.
        self._changes = Lock()

    def put(self, one: ServedDataset) -> None:
        """Serve a data set from now on, instead of the one of its name if there is one."""
        with self._changes:
            old = self._served.get(one.name)
            if old is not None:
                if len(self._retired) >= _MOST_RETIRED:
                    raise Problem("unavailable", "too many policies were changed since the server was started")
                self._retired.append(old)
            self._served = {**self._served, one.name: one}  # Whoever goes through the old ones is not disturbed.

    def __iter__(self) -> Any:
        return iter(self._served.values())

    def __getitem__(self, name: str) -> ServedDataset:
        found = self._served.get(name)
        if found is None:
            raise Problem("not-found")
        return found

    def close(self) -> None:
        """Let go of all data and ledgers."""
        for one in (*self._served.values(), *self._retired):
            one.session.close()


def open_shelf(policies: Sequence[Policy], answer_after: Mapping[str, float]) -> DatasetShelf:
    """Open and verify every ledger, and every data set; whatever is damaged keeps the server from starting."""
    names = [policy.dataset for policy in policies]
    if not names or len(set(names)) != len(names):
        raise InvalidParameter("serve at least one policy, and each data set once")
    kinds = [f"{name}:{kind}" for name in names for kind in KIND_SECONDS]
    unknown = set(answer_after) - {*names, *kinds}
    if unknown:
        raise InvalidParameter(
            f"--answer-after names {', '.join(sorted(unknown))}, and there is no such data set, or no such kind of it: "
            f"beside questions there are {', '.join(KIND_SECONDS)}, as NAME:{next(iter(KIND_SECONDS))}=SECONDS"
        )
    served: list[ServedDataset] = []
    try:
        for policy in policies:
            said = {kind: answer_after.get(f"{policy.dataset}:{kind}") for kind in KIND_SECONDS}
            served.append(_served(policy, answer_after.get(policy.dataset), said))
    except BaseException:
        DatasetShelf(served).close()
        raise
    return DatasetShelf(served)


def open_dataset(policy: Policy, like: ServedDataset | None) -> ServedDataset:
    """Open a data set whose policy is new, with the times of the one that it replaces."""
    if like is None:
        with Session.from_policy(in_memory(policy), principal="trial"):
            pass  # What cannot be opened leaves no ledger behind.
        return _served(policy, None, dict.fromkeys(KIND_SECONDS))
    return _served(policy, like.answer_after, {kind: like.times.get(kind) for kind in KIND_SECONDS})


def _served(policy: Policy, said: float | None, kinds: Mapping[str, float | None]) -> ServedDataset:
    for one in (said, *kinds.values()):
        if one is not None and (not math.isfinite(one) or one < _LEAST_SECONDS):
            raise InvalidParameter(f"answers of {policy.dataset} leave after at least {_LEAST_SECONDS:g} second")
    seconds = trial_seconds(policy) if said is None else said
    reading = Fraction(seconds * _WORKING_PART).limit_denominator(1000)
    limited = replace(policy, resources=replace(policy.resources, seconds=min(reading, _exact(policy))))
    session = Session.from_policy(limited, principal="server")
    try:
        session.ledger.verify()
    except BaseException:
        session.close()
        raise
    times = {kind: max(KIND_SECONDS[kind], seconds) if one is None else one for kind, one in kinds.items()}
    own = float(_exact(policy))
    return ServedDataset(
        name=policy.dataset, policy=limited, session=session, answer_after=seconds, times=times, own_seconds=own
    )


def _exact(policy: Policy) -> Fraction:
    return Fraction(str(policy.resources.seconds))


# --- the trial ---


def trial_seconds(policy: Policy) -> float:
    """Return three times what a grouped count of made-up rows takes here, in whole seconds.

    Rows are made up from the declared columns, as many as the policy declares; the data are not opened. A question that
    does more than this one needs a longer time, which whoever holds the data declares with --answer-after.
    """
    tried = in_memory(policy)
    with Session.from_policy(tried, principal="trial") as opened:
        made_up = made_up_tables(opened.catalogue, rows=_declared_rows(policy))
    tables = {name: one.table if isinstance(one, PublicTable) else one for name, one in made_up.items()}
    try:
        return _timed(tried, tables)
    except DiscreetError:
        raise InvalidParameter(
            f"no trial on made-up rows could be made for {policy.dataset}: declare its time with --answer-after "
            f"{policy.dataset}=SECONDS, longer than any question takes that shall be answered"
        ) from None


def _timed(policy: Policy, tables: Mapping[str, Any]) -> float:
    with Session.from_policy(policy, principal="trial", tables=tables) as session:
        _trial_question(session).release()  # The first starts a worker.
        begun = time.monotonic()
        _trial_question(session).release()
        taken = time.monotonic() - begun
    return max(2.0, float(math.ceil(3 * taken)))


def in_memory(policy: Policy) -> Policy:
    """Return the policy with a ledger that is forgotten, for trials on made-up rows."""
    return replace(
        policy,
        ledger=cast(Path, "memory"),
        anchor=None,
        quotas=(),
        budget=Budget(epsilon=1000),
        inner_budget=None if policy.inner_budget is None else Budget(epsilon=1000),
    )


def _declared_rows(policy: Policy) -> int:
    units, each = policy.unit.units, policy.unit.rows_at_most
    return _TRIAL_ROWS if units is None else min(units * (each or 1), 20 * _TRIAL_ROWS)


def _trial_question(session: Session) -> Plan:
    table = next(table for table in session.catalogue.tables.values() if table.private)
    grouped = next((one.name for one in table.columns.values() if one.facts.members), None)
    quoted = _quoted(table.name)
    if grouped is None:
        return session.sql(f"SELECT COUNT(*) AS n FROM {quoted}", epsilon=1)
    key = _quoted(grouped)
    return session.sql(f"SELECT {key}, COUNT(*) AS n FROM {quoted} GROUP BY {key}", epsilon=1)


# --- public facts ---


def _table_facts(table: CatalogueTable) -> dict[str, Any]:
    columns = [_column_facts(one) for one in table.columns.values() if one.unit_key is None]
    return {"name": table.name, "private": table.private, "unit": table.unit, "columns": columns}


def _column_facts(column: CatalogueColumn) -> dict[str, Any]:
    facts = column.facts
    members = None if facts.members is None else [_plain(one) for one in facts.members[:_SHOWN_MEMBERS]]
    return {
        "name": column.name,
        "kind": facts.kind.value,
        "low": _bound(facts.kind, facts.low),
        "high": _bound(facts.kind, facts.high),
        "values": members,
        "values_in_all": None if facts.members is None else len(facts.members),
    }


def _bound(kind: Kind, number: Fraction | None) -> Any:
    if number is None:
        return None
    return _plain(time_at(kind, number)) if kind.is_time else _plain(number)


def _plain(value: Any) -> Any:
    if isinstance(value, Fraction):
        return int(value) if value.denominator == 1 else float(value)
    return value.isoformat() if isinstance(value, (date, datetime)) else value


def sample_question(catalogue: Catalogue) -> str:
    """Return a question that can be asked of these tables, for a page on which nothing was asked yet."""
    for table in catalogue.tables.values():
        listed = {one.name: len(one.facts.members or ()) for one in table.columns.values() if table.private}
        few = {name: members for name, members in listed.items() if 1 < members <= _SAMPLE_GROUPS}
        if few:
            key = _quoted(max(few, key=few.__getitem__))
            return f"SELECT {key}, COUNT(*) AS n\nFROM {_quoted(table.name)}\nGROUP BY {key}"
    private = next(table.name for table in catalogue.tables.values() if table.private)
    return f"SELECT COUNT(*) AS n\nFROM {_quoted(private)}"


def _quoted(name: str) -> str:
    """Write a name of SQL: plain, if it can only be one."""
    return name if _PLAIN.fullmatch(name) else '"' + name.replace('"', '""') + '"'
