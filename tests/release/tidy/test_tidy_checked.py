"""What cannot be made to add up is refused before anything is charged; raw values are unbiased, tidy ones are not."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from plan_texts import plan_in
from statistical import FALSE_ALARM

import discreet as dp
from discreet.errors import InvalidParameter
from discreet.query.engine import Deadline
from discreet.query.plan.planner import PricedQuery
from discreet.release import price
from discreet.release.plan import Invariant, ReleasePlan
from discreet.release.published import PublishedTable
from discreet.release.tidy import cell_layout
from discreet.release.tidy.tidy_check import check_tidy


def priced_tables(plan: ReleasePlan) -> dict[str, PricedQuery]:
    return {table.name: table.priced for table in price(plan).tables}


@pytest.fixture
def plan(tmp_path):
    return plan_in(tmp_path)


def known(table: str, value: int | str, column: str = "stays", **where: str) -> Invariant:
    return Invariant(table=table, column=column, value=Fraction(value), where=where, reason="law")


def check(plan: ReleasePlan, *invariants: Invariant) -> None:
    check_tidy(replace(plan, invariants=invariants), priced_tables(plan))


def test_invariants_that_fit_pass(plan):
    check(
        plan,
        known("stays", 100),
        known("stays_by_region", 40, region="Coast"),
        known("stays_by_district", 40, district="Harbour"),
        known("stays_by_district_sex", 7, district="Hill", sex="f"),
        known("stays", 99, column="cost"),
    )


@pytest.mark.parametrize(
    ("invariants", "problem"),
    [
        ((known("stays", 100), known("stays_by_region", 101, region="Coast")), "contradict"),
        ((known("stays_by_region", 4, region="Coast"), known("stays_by_district", 5, district="Harbour")), "contra"),
        ((known("stays", 100), known("stays", 101)), "twice"),
        ((known("stays", -1),), "contradict"),
        ((known("stays", "1/2"),), "multiple of 1"),
        ((known("stays_by_district", 5),), "all keys of the table: district"),
        ((known("stays", 5, district="Hill"),), "none, since the table has one row"),
        ((known("stays_by_district", 5, district="Moon"),), "not among its public ones"),
        ((known("nothing", 5),), "no such table"),
        ((known("stays", 5, column="beds"),), "no count or sum"),
    ],
)  # fmt: skip
def test_invariants_that_do_not_fit_are_refused(plan, invariants, problem):
    with pytest.raises(InvalidParameter, match=problem):
        check(plan, *invariants)


def test_a_family_with_too_many_groups_is_refused_unless_nobody_wants_it_tidy(plan, monkeypatch):
    monkeypatch.setattr(cell_layout, "MOST_ATOMS", 5)
    with pytest.raises(InvalidParameter, match="6 groups"):
        check_tidy(plan, priced_tables(plan))
    check_tidy(replace(plan, output=replace(plan.output, tidy=False)), priced_tables(plan))


DISTRICTS = ("Harbour", "Hill", "Mill")
DRAWS = 1000


def drawn(tmp_path) -> tuple[list[list[PublishedTable]], dict[str, dict[str, np.ndarray]]]:
    """Release a family many times from one scan of a sparse table, and say what was exact."""
    plan = plan_in(tmp_path, ('where = "cost > 0"\n', ""), ('every = "month"', 'every = "once"'),
                   ("first = 2026-01-01\n", ""), ('column = "admitted"\n', ""))  # fmt: skip
    kept = tuple(table for table in plan.tables if table.name in ("stays", "stays_by_district_sex"))
    plan = replace(plan, invariants=(), tables=kept)
    rows = {"patient": [f"p{n}" for n in range(40)], "district": ["Harbour"] * 38 + ["Hill"] * 2,
            "sex": ["f", "m"] * 20, "cost": [100 * (n % 7) for n in range(40)]}  # fmt: skip
    declared = {name: said for name, said in plan.policy.tables["stays"].columns.items() if name in rows}
    session = dp.Session({"stays": pa.table(rows)}, unit=dp.Unit("patient"), budget=dp.Budget(epsilon=40, delta="1e-5"),
                         ledger="memory", dataset="d", principal="p", columns={"stays": declared})  # fmt: skip
    tables, truth = [], {}
    for table in price(plan).tables:
        priced = session.sql(table.sql, **table.offer)._asked.priced
        tally = session._desk.engine.run(priced.stage, deadline=Deadline.after(60))
        tables.append((table.plan, priced, tally))
        measured = tally.tally.measures[0].total
        truth[table.name] = {"stays": np.array(tally.tally.rows, float), "cost": np.array(measured, float)}
    draws = [
        [PublishedTable(plan=one, raw=priced.draw(tally), tidy=None, deviations=priced.deviations)
         for one, priced, tally in tables]
        for _ in range(DRAWS)
    ]  # fmt: skip
    return draws, truth


def lean(draws, truth, move=lambda values: values) -> float:
    """Return the largest mean error of any cell, in standard deviations of an unbiased mean."""
    most = 0.0
    for place, table in enumerate(draws[0]):
        for column, exact in truth[table.plan.name].items():
            values = np.array([_floats(tables[place].raw.column(column)) for tables in draws])
            deviation = float(table.deviations[column]) / math.sqrt(len(draws))
            most = max(most, float(np.abs((move(values) - exact).mean(axis=0)).max()) / deviation)
    return most


def _floats(column) -> list[float]:
    return [float(column.values[row]) for row in range(len(column))]


@pytest.mark.long
@pytest.mark.statistical
def test_raw_counts_and_sums_are_unbiased_and_those_moved_to_zero_are_not(tmp_path):
    """Rounded normal noise is as good as normal in means of hundreds; moving up to zero leans by 0.4 deviations."""
    draws, truth = drawn(tmp_path)
    cells = sum(values.size for columns in truth.values() for values in columns.values())
    limit = math.sqrt(2 * math.log(2 * cells / FALSE_ALARM))
    assert lean(draws, truth) < limit < lean(draws, truth, move=lambda values: np.maximum(values, 0))
