"""Discreet: a year of totals so far: the error of every way to measure them, real draws, and the time of a day."""

from __future__ import annotations

import math
import tempfile
import time
from datetime import date, timedelta
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa

import discreet as dp
from benchmarks.peers.protocol import emit, is_quick
from benchmarks.timing import cpu_seconds
from discreet.query import Policy, Unit
from discreet.query.session.policy_file import TablePolicy
from discreet.release import advance, price_running
from discreet.release.cumulative.series_price import measured_day, read_day
from discreet.release.cumulative.strategies import errors_by_day, least_error, strategies
from discreet.release.plan import Allowance, Every, Output, ReleasePlan, RunningPlan, Schedule, Wish

DAYS, RUNS, UNITS = 365, 100, 1_000_000
SHOWN = (1, 30, 182, DAYS)
FIRST = date(2026, 1, 1)
EPSILON, DELTA = Fraction(1), Fraction(1, 10**6)


def plan_in(folder: Path) -> ReleasePlan:
    """A plan with one series, which is all that is released."""
    running = RunningPlan(
        name="so_far",
        title="Visits so far",
        source="visits",
        day="day",
        first=FIRST.isoformat(),
        days=DAYS,
        wish=Wish(epsilon=EPSILON),
    )
    return ReleasePlan(
        name="visits",
        title="Visits",
        policy=Policy(
            dataset="visits",
            ledger=folder / "visits.ledger",
            anchor=None,
            version=None,
            unit=Unit("person"),
            budget=dp.Budget(4, 1e-5),
            quotas=(),
            tables={"visits": TablePolicy(source=None, public=False, columns={})},
        ),
        allowance=Allowance(epsilon=EPSILON, delta=DELTA),
        tables=(),
        schedule=Schedule(every=Every.DAY, first=FIRST),
        output=Output(folder=folder),
        running=(running,),
    )


def show_errors(mu: float) -> None:
    """Every way at the same price; what none of them goes below."""
    for most in (1, 5):
        for way in strategies(DAYS):
            errors = [error / mu for error in errors_by_day(way, most)]
            days = {f"day {day}": errors[day - 1] for day in SHOWN}
            mean = math.sqrt(math.fsum(error**2 for error in errors) / DAYS)
            emit(job="error", way=way.name, max_days=most, **days, mean=mean, largest=max(errors))
        bound = least_error(DAYS, most) / mu
        emit(job="error", way="no way goes below", max_days=most, mean=bound, largest=bound)


def show_draws(plan: ReleasePlan) -> None:
    """Measure whole years of made-up counts, as a release does, and compare with what was announced."""
    priced = price_running(plan, plan.running[0])
    counts = [100 + day % 7 for day in range(DAYS)]
    exact = np.cumsum(counts)
    runs = RUNS // 10 if is_quick() else RUNS
    errors = np.empty((runs, DAYS))
    for run in range(runs):
        told = [read_day(measured_day(priced, counts[: day + 1], ""))[0] for day in range(DAYS)]
        errors[run] = [float(total) for total in priced.strategy.totals(told)] - exact
    announced = np.array([float(one) for one in priced.deviations])
    emit(
        job="draws",
        way=priced.strategy.name,
        runs=runs,
        announced=float(np.sqrt(np.square(announced).mean())),
        real=float(np.sqrt(np.square(errors).mean())),
        covered=float((abs(errors) <= [float(one) for one in priced.errors]).mean()),
    )


def show_time(plan: ReleasePlan) -> None:
    """Release a year at once, then one more day, with a million people in the table."""
    units = UNITS // 10 if is_quick() else UNITS
    days = np.arange(units) * (DAYS - 1) // units
    rows = pa.table(
        {"person": pa.array(np.arange(units)), "day": pa.array([FIRST + timedelta(days=int(day)) for day in days])}
    )
    for job, until in (("364 days", DAYS - 1), ("one more day", DAYS)):
        started = cpu_seconds(), time.perf_counter()
        with dp.Session(
            {"visits": rows},
            unit=plan.policy.unit,
            budget=plan.policy.budget,
            ledger=plan.policy.ledger,
            dataset="visits",
            principal="bench",
        ) as session:
            advance(plan, plan.running[0], session, until=FIRST + timedelta(days=until))
        emit(
            job="time",
            what=job,
            units=units,
            cpu=cpu_seconds() - started[0],
            wall=time.perf_counter() - started[1],
        )


def main() -> None:
    """Do all of it."""
    with tempfile.TemporaryDirectory() as folder:
        plan = plan_in(Path(folder))
        show_errors(math.sqrt(price_running(plan, plan.running[0]).mu_squared))
        show_draws(plan)
        show_time(plan)


if __name__ == "__main__":
    main()
