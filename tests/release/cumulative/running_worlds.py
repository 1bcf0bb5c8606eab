"""Plans and tables for series of totals so far."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa

from discreet import Budget, Session
from discreet.query import Policy, Unit
from discreet.query.session.policy_file import TablePolicy
from discreet.release.plan import Allowance, Every, Output, ReleasePlan, RunningPlan, Schedule, Wish

FIRST = date(2026, 1, 1)
RHO = Wish(rho=Fraction(1, 2))


def day(number: int) -> date:
    return FIRST + timedelta(days=number)


def running_of(days: int = 8, **said: Any) -> RunningPlan:
    fields: dict[str, Any] = {"wish": RHO, "max_days": 1} | said
    return RunningPlan(
        name="so_far",
        title="Stays so far",
        source="stays",
        day="admitted",
        first=FIRST.isoformat(),
        days=days,
        **fields,
    )


def plan_of(folder: Path, *running: RunningPlan, unit: str = "patient", budget: Budget | None = None) -> ReleasePlan:
    return ReleasePlan(
        name="hospital",
        title="Hospital",
        policy=Policy(
            dataset="hospital",
            ledger=folder / "hospital.ledger",
            anchor=None,
            version=None,
            unit=Unit(unit),
            budget=budget or Budget(rho=2),
            quotas=(),
            tables={"stays": TablePolicy(source=None, public=False, columns={})},
        ),
        allowance=Allowance(epsilon=Fraction(1), delta=Fraction(1, 10**7)),
        tables=(),
        schedule=Schedule(every=Every.DAY, first=FIRST),
        output=Output(folder=folder),
        running=running,
    )


def stays(rows: Iterable[tuple[object, int]]) -> pa.Table:
    """A table of (unit, day) rows."""
    listed = list(rows)
    units, days = [unit for unit, _ in listed], [day(number) for _, number in listed]
    kind = pa.string() if units and isinstance(units[0], str) else pa.int64()
    return pa.table({"patient": pa.array(units, kind), "admitted": pa.array(days, pa.date32())})


def session_of(plan: ReleasePlan, rows: Iterable[tuple[object, int]] | pa.Table, principal: str = "ana") -> Session:
    table = rows if isinstance(rows, pa.Table) else stays(rows)
    policy = plan.policy
    unit: Any = "row" if policy.unit.is_row else policy.unit
    return Session(
        {"stays": table},
        unit=unit,
        budget=policy.budget,
        ledger=policy.ledger,
        dataset=policy.dataset,
        principal=principal,
    )
