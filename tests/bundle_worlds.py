"""Releases to write bundles of: real answers of a real session on a small made-up table, charged to a real ledger."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import pyarrow as pa

import discreet as dp
from discreet.ledger import Account, Ledger, left_after, look
from discreet.privacy import Composed, Relation, epsilon
from discreet.query import read_policy
from discreet.release import (
    Allowance,
    Every,
    Invariant,
    LedgerMark,
    Level,
    Output,
    Period,
    Published,
    PublishedTable,
    ReleasePlan,
    RunningPlan,
    Schedule,
    TablePlan,
    Wish,
    advance,
)

DISTRICTS = ("Harbour", "Hill", "Mill")
DELTA = Fraction(1, 10**7)
POLICY = """\
dataset = "hospital"
ledger = "hospital.ledger"
[unit]
column = "patient"
[budget]
epsilon = 8
delta = 1e-6
[tables.stays]
[tables.stays.columns]
district = { categories = ["Harbour", "Hill", "Mill"] }
sex = { categories = ["f", "m"] }
cost = { low = 0, high = 20000 }
ward = { kind = "text" }
"""
TABLES = {
    "all_stays": "SELECT COUNT(*) AS stays, SUM(cost) AS cost FROM stays",
    "by_district": "SELECT district, COUNT(*) AS stays, AVG(cost) AS cost FROM stays GROUP BY district",
    "by_district_sex": "SELECT district, sex, COUNT(*) AS stays FROM stays GROUP BY district, sex",
    "middle": "SELECT sex, MEDIAN(cost) AS cost FROM stays GROUP BY sex",
    "wards": "SELECT ward, COUNT(*) AS stays FROM stays GROUP BY ward",
}


def stays(rows: int = 3000) -> pa.Table:
    """A table that is the same every time, without a random number in it."""
    number = list(range(rows))
    return pa.table(
        {
            "patient": number,
            "district": [DISTRICTS[n * n % 7 % 3] for n in number],
            "sex": ["f" if n % 5 < 3 else "m" for n in number],
            "cost": [(n * 7919) % 20000 for n in number],
            "ward": [f"ward {n % 4}" for n in number],
            "admitted": [date(2026, 1, 1) + timedelta(days=n % 31) for n in number],
        }
    )


def plan_of(folder: Path, policy: str = POLICY, **changes: object) -> ReleasePlan:
    path = folder / "policy.toml"
    path.write_text(policy)
    plan = ReleasePlan(
        name="stays",
        title="Hospital stays by district",
        publisher="Ministry of Health",
        contact="data@health.example",
        policy=read_policy(path),
        allowance=Allowance(epsilon=Fraction(1), delta=DELTA),
        tables=tuple(TablePlan(name=name, title=f"Table {name}", sql=sql) for name, sql in TABLES.items()),
        schedule=Schedule(every=Every.MONTH, first=datetime(2026, 1, 1).date()),
        output=Output(folder=folder / "published"),
        levels=(Level(name="region", of="district", members={"Coast": ("Harbour",), "Inland": ("Hill", "Mill")}),),
        invariants=(
            Invariant(table="all_stays", column="stays", value=Fraction(3000), where={}, reason="known by law"),
        ),
        written=policy,
    )
    return replace(plan, **changes)  # type: ignore[arg-type]


def answers(plan: ReleasePlan, *, pure: bool = False) -> tuple[PublishedTable, ...]:
    """Ask every table of a plan, each with noise of its own."""
    with dp.Session(
        {"stays": stays()},
        unit=plan.policy.unit,
        budget=dp.Budget(epsilon=50) if pure else dp.Budget(epsilon=50, delta=1e-5),
        ledger="memory",
        dataset="trial",
        principal="ana",
        columns={"stays": plan.policy.tables["stays"].columns},
    ) as session:
        return tuple(_asked(session, table, pure=pure) for table in plan.tables)


def _asked(session: dp.Session, table: TablePlan, *, pure: bool) -> PublishedTable:
    hidden = table.name == "wards"
    if pure:
        asked = session.sql(table.sql, epsilon=0.2)
    elif hidden:
        asked = session.sql(table.sql, epsilon=0.5, delta=1e-8)
    else:
        asked = session.sql(table.sql, rho=0.02)
    raw = asked.release()
    threshold = "groups of fewer than about 50 patients are usually hidden" if hidden else ""
    return PublishedTable(plan=table, raw=raw, tidy=raw.tidy, deviations=asked.deviations, threshold=threshold)


def release(folder: Path, plan: ReleasePlan | None = None, *, pure: bool = False) -> Published:
    """Charge a whole release to the ledger in `folder`, store its tables there, and say what was published."""
    known = plan_of(folder) if plan is None else plan
    tables = answers(known, pure=pure)
    event = Composed(table.raw.event for table in tables)
    policy = known.policy
    account = Account(policy.dataset, policy.unit.column, Relation.ADD_REMOVE, policy.budget)
    text = json.dumps({"tables": {table.plan.name: json.loads(table.raw.to_json()) for table in tables}})
    with Ledger.open(policy.ledger, account) as book:
        key = f"release/{known.name}/2026-01"
        charge = book.charge(event, relation=Relation.ADD_REMOVE, purpose="release", key=key, unit=policy.unit.column)
        book.store(charge, lambda: text)
    entry = look(policy.ledger).charge(charge.id)
    assert entry is not None
    delta = Fraction(0) if pure else DELTA
    return Published(
        plan=known,
        period=Period(label="2026-01", first=datetime(2026, 1, 1).date(), end=datetime(2026, 2, 1).date()),
        tables=tables,
        event=event,
        relation=Relation.ADD_REMOVE,
        epsilon=epsilon(event, delta, relation=Relation.ADD_REMOVE),
        delta=delta,
        ledger=LedgerMark(
            dataset=policy.dataset,
            charge=charge.id,
            hash=charge.hash,
            time=datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=entry.time),
            left=left_after(look(policy.ledger).entries(policy.dataset), charge.id),
        ),
    )


def dummy(published: Published) -> Published:
    return replace(published, ledger=None)


def with_series(published: Published, *, person_day: bool = False, until: date = date(2026, 2, 1)) -> Published:
    """Let a release have a running total too, charged to the same ledger."""
    running = RunningPlan(
        name="so_far_by_day" if person_day else "so_far",
        title="Stays so far",
        source="stays",
        day="admitted",
        first="2026-01-01",
        days=60,
        person_day=person_day,
        wish=Wish(rho=Fraction(1, 50)),
    )
    plan, policy = published.plan, published.plan.policy
    with dp.Session(
        {"stays": stays()},
        unit=policy.unit,
        budget=policy.budget,
        ledger=policy.ledger,
        dataset=policy.dataset,
        principal="ana",
        columns={"stays": policy.tables["stays"].columns},
    ) as session:
        released = advance(plan, running, session, until=until)
    assert released is not None
    mark = published.ledger
    assert mark is not None
    if not person_day:
        assert released.charge is not None
        mark = replace(mark, left=left_after(look(policy.ledger).entries(policy.dataset), released.charge.id))
    return replace(published, plan=replace(plan, running=(running,)), running=(released,), ledger=mark)
