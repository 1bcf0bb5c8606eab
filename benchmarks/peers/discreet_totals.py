"""Discreet: coverage of corrected totals and kept shares over many releases, and totals of a family before noise.

Rows are counted once, and the noise of every release is drawn by the code that releases.
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

import discreet as dp
from benchmarks.peers.protocol import emit, is_quick
from discreet.query.answer_columns import Cell
from discreet.query.engine import Deadline
from discreet.query.engines.duckdb import DuckDBEngine
from discreet.query.execute import exact_numbers
from discreet.query.parse.select import read
from discreet.query.plan.contribution_limits import bound_contributions
from discreet.query.plan.draft import PlanRequest, Spend
from discreet.query.plan.kept_share import kept_question, kept_share
from discreet.query.plan.planner import plan
from discreet.query.session.catalogue_builder import build_catalogue
from discreet.release import read_release_plan
from discreet.release.pricing.release_price import price

RELEASES = 400
HOMES = 25_000
SIZES = {1: 28, 2: 34, 3: 15, 4: 13, 5: 6, 6: 2.5, 7: 0.8, 8: 0.4, 10: 0.15, 12: 0.1, 16: 0.03, 20: 0.02}  # per cent
SPENDS = (Spend(epsilon=Fraction(1, 20)), Spend(rho=Fraction(1, 1000)))
PLAN = """
name = "totals"
title = "Totals"
publisher = "a benchmark"
dataset = "rows"
ledger = "rows.ledger"
[unit]
column = "{unit}"
max_groups = {groups}
max_rows_per_group = {rows}
[budget]
epsilon = 20
[tables.rows]
source = "rows.parquet"
[tables.rows.columns]
{columns}
[release]
split = "even"
epsilon = 1
[output]
folder = "out"
formats = ["csv"]
[[publish]]
name = "t"
from = "rows"
groupings = {groupings}
measures = {{ n = "COUNT(*)" }}
"""


@dataclass(frozen=True, slots=True)
class Asked:
    """A table, what it is asked, and for whom."""

    name: str
    table: pa.Table
    unit: dp.Unit
    columns: Mapping[str, Any]
    key: str | None
    value: str

    @property
    def sql(self) -> str:
        """The question: rows and a sum, by the key if there is one."""
        shown, grouped = (f"{self.key}, ", f" GROUP BY {self.key}") if self.key else ("", "")
        return f"SELECT {shown}COUNT(*) AS n, SUM({self.value}) AS s FROM t{grouped}"


def households() -> pa.Table:
    """Make up homes of one to twenty people."""
    drawn = random.Random(1)
    homes = HOMES // 10 if is_quick() else HOMES
    sizes = drawn.choices(list(SIZES), list(SIZES.values()), k=homes)
    people = [home for home, size in enumerate(sizes) for _ in range(size)]
    return pa.table(
        {
            "home": people,
            "sex": [drawn.choice("mf") for _ in people],
            "age": [drawn.randint(0, 95) for _ in people],
        }
    )


def flights(folder: Path) -> pa.Table:
    """Read the flights of planes that have a number; one plane has 575 of them."""
    path = folder / "nycflights13" / "flights.parquet"
    table = pq.read_table(path, columns=["tailnum", "origin", "month", "distance"])
    return table.filter(table["tailnum"].is_valid())


def asked(folder: Path | None) -> list[Asked]:
    """List the tables that can be read."""
    homes = households()
    person = {"sex": dp.categories(["m", "f"]), "age": dp.between(0, 100, whole=True)}
    by_sex = dp.Unit("home", 2, 2, name="household", rows_at_most=20)
    in_all = dp.Unit("home", 1, 4, name="household", rows_at_most=20)
    found = [
        Asked("households by sex", homes, by_sex, person, "sex", "age"),
        Asked("households in total", homes, in_all, person, None, "age"),
    ]
    if folder is not None:
        plane = dp.Unit("tailnum", 2, 40, name="plane", rows_at_most=600)
        flight = {"origin": dp.categories(["EWR", "JFK", "LGA"]), "distance": dp.between(0, 5000, whole=True)}
        found.append(Asked("flights by origin", flights(folder), plane, flight, "origin", "distance"))
    return found


def show_coverage(one: Asked, spend: Spend) -> None:
    """Release shares and corrected totals many times, and count how often they hold what is there."""
    unit = one.unit
    with closing(DuckDBEngine({"t": one.table})) as engine:
        catalogue = build_catalogue(engine, {"t": None}, unit=unit, columns={"t": one.columns})
        question = read(one.sql, catalogue).question
        whole = PlanRequest(
            question=question, catalogue=catalogue, spend=Spend(epsilon=Fraction(1)), tighter=None, pure=True
        )
        priced = plan(kept_question(bound_contributions(whole)), catalogue, spend, pure=False)
        counted = engine.run(priced.stage, deadline=Deadline.after(600))
    true = truth(one)
    releases = RELEASES // 10 if is_quick() else RELEASES
    covered, widths = dict.fromkeys(true, 0), dict.fromkeys(true, 0.0)
    for _ in range(releases):
        kept = kept_share(priced.draw(counted), priced.deviations, unit)
        told = (kept.units, kept.rows, kept.totals["all_rows"], kept.totals["all_s"])
        for what, (low, high) in zip(true, map(ends, told), strict=True):
            covered[what] += low <= true[what] <= high
            widths[what] += (high - low) / 2 / releases
    for what, exact in true.items():
        emit(
            job="coverage",
            table=one.name,
            spend="ε = 0.05" if spend.rho is None else "ρ = 0.001",
            what=what,
            exact=exact,
            plus_minus=widths[what],
            covered=covered[what],
            releases=releases,
            largest=largest(one),
            rows_at_most=unit.rows_at_most,
        )


def ends(cell: Cell | None) -> tuple[float, float]:
    """Return both ends of the interval, which is there where R is declared."""
    found = None if cell is None else cell.interval()
    assert found is not None
    return float(found[0]), float(found[1])


def sizes(one: Asked) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the number of the unit and the rows of each pair of a unit and a group that has any."""
    unit, key = one.unit.column, one.key
    assert isinstance(unit, str)
    grouped = one.table.group_by([unit, key] if key else [unit]).aggregate([([], "count_all")])
    units = np.unique(grouped[unit].to_numpy(zero_copy_only=False), return_inverse=True)[1]
    return units.astype(np.int64), grouped["count_all"].to_numpy().astype(np.int64)


def largest(one: Asked) -> int:
    """Return the rows of the unit that has most."""
    units, rows = sizes(one)
    return int(np.bincount(units, rows).max())


def truth(one: Asked) -> dict[str, float]:
    """Return what is there: shares of units and of rows that are kept on average, all rows, and the sum of all."""
    units, rows = sizes(one)
    groups = np.bincount(units)
    most = np.zeros(len(groups), dtype=np.int64)
    np.maximum.at(most, units, rows)
    limit = one.unit.max_rows_per_group
    whole = (most <= limit) & (groups <= one.unit.max_groups)
    kept = np.bincount(units, np.minimum(rows, limit)) * np.minimum(one.unit.max_groups / groups, 1)
    values = one.table[one.value].to_numpy(zero_copy_only=False)
    return {
        "units": float(whole.mean()),
        "rows": float(kept.sum() / rows.sum()),
        "all rows": float(rows.sum()),
        "sum": float(values.sum()),
    }


def show_family(name: str, table: pa.Table, text: str) -> None:
    """Count the tables of a plan by choices of their own, and by one choice for all, before noise."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        pq.write_table(table, place / "rows.parquet")
        (place / "plan.toml").write_text(text, encoding="utf-8")
        family = read_release_plan(place / "plan.toml")
    tables = tuple(replace(one, limits=replace(one.limits, family=None)) for one in family.tables)
    with closing(DuckDBEngine({"rows": table})) as engine:
        for way, said in (("own", replace(family, tables=tables)), ("one", family)):
            priced = price(said)
            found = engine.run_all([one.priced.stage for one in priced.tables], deadline=Deadline.after(300))
            for one, counted in zip(priced.tables, found, strict=True):
                total = int(exact_numbers(one.priced.draft, counted.tally)[0].sum())
                emit(job="family", table=name, way=way, grouping=one.name, total=total, rows=table.num_rows)


def show_families(folder: Path | None) -> None:
    """Count the margins of people in homes, and of flights."""
    homes = households()
    bands = pa.array([str(min(age // 20, 4)) for age in homes["age"].to_pylist()])
    homes = homes.set_column(2, "age", bands)
    listed = 'sex = { categories = ["f", "m"] }\nage = { categories = ["0", "1", "2", "3", "4"] }'
    groupings = '[[], ["sex"], ["age"], ["age", "sex"]]'
    show_family("households", homes, PLAN.format(unit="home", groups=3, rows=4, columns=listed, groupings=groupings))
    if folder is not None:
        listed = 'origin = { categories = ["EWR", "JFK", "LGA"] }\nmonth = { low = 1, high = 12 }'
        groupings = '[[], ["origin"], ["month"], ["origin", "month"]]'
        text = PLAN.format(unit="tailnum", groups=5, rows=100, columns=listed, groupings=groupings)
        show_family("flights", flights(folder), text)


def main() -> None:
    """Report coverage and families; the folder of data is the first argument, if there is one."""
    named = [word for word in sys.argv[1:] if not word.startswith("--")]
    folder = Path(named[0]) if named else None
    for spend in SPENDS:
        for one in asked(folder):
            show_coverage(one, spend)
    show_families(folder)


if __name__ == "__main__":
    main()
