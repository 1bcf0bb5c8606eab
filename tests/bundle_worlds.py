"""Releases to write bundles of: real plans, run on a small made-up table and charged to a real ledger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.release import publish, read_release_plan
from discreet.release.published import Published

DISTRICTS = ("Harbour", "Hill", "Mill")
HEAD = """\
name = "stays"
title = "TITLE"
publisher = "Ministry of Health"
contact = "data@health.example"
dataset = "hospital"
ledger = "hospital.ledger"
[unit]
column = "patient"
[budget]
epsilon = 8
delta = 1e-6
[tables.stays]
source = "stays.parquet"
[tables.stays.columns]
district = { categories = ["Harbour", "Hill", "Mill"] }
sex = { categories = ["f", "m"] }
cost = { low = 0, high = 20000 }
ward = { kind = "text" }
admitted = { low = 2026-01-01, high = 2026-12-31 }
[release]
epsilon = 2
delta = 1e-7
split = "even"
[schedule]
every = "month"
first = 2026-01-01
[output]
folder = "published"
[[levels]]
name = "region"
of = "district"
members = { Coast = ["Harbour"], Inland = ["Hill", "Mill"] }
"""
INVARIANT = """\
[[invariants]]
table = "all_stays"
column = "stays"
value = 3000
reason = "known by law"
"""
SERIES = """\
[[running]]
name = "so_far"
title = "Stays so far"
from = "stays"
day = "admitted"
first = 2026-01-01
days = 31
rho = 0.02
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


def plan_text(
    tables: Mapping[str, str] = TABLES, *, title: str = "Hospital stays by district", more: str = INVARIANT
) -> str:
    """A plan file that publishes some tables, each by its SQL."""
    hidden = {"wards": "delta = 1e-8\n"}
    listed = "".join(
        f'[[publish]]\nname = "{name}"\ntitle = "Table {name}"\nsql = "{sql}"\n{hidden.get(name, "")}'
        for name, sql in tables.items()
    )
    return HEAD.replace("TITLE", title) + listed + more


def pure_text() -> str:
    """The same without any delta: Laplace noise, and no groups that nobody listed."""
    first = {name: TABLES[name] for name in list(TABLES)[:3]}
    return plan_text(first, more="").replace("delta = 1e-6\n", "").replace("delta = 1e-7\n", "")


def household_text() -> str:
    """The same for households of a census, by an ugly column and with limits that can cut; a series beside it."""
    unit = '[unit]\ncolumn = "SERIALNO"\nname = "household"\nmax_groups = 2\nmax_rows_per_group = 3\n'
    return plan_text(more=INVARIANT + SERIES).replace('[unit]\ncolumn = "patient"\n', unit)


def release(folder: Path, text: str | None = None, *, unit: str = "patient") -> Published:
    """Release the first period of a plan in `folder`, and return what its bundle is written of."""
    (folder / "plan.toml").write_text(plan_text() if text is None else text, encoding="utf-8")
    table = stays()
    pq.write_table(
        table.rename_columns([unit if n == "patient" else n for n in table.column_names]), folder / "stays.parquet"
    )
    plan = read_release_plan(folder / "plan.toml")
    caught: list[Published] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "discreet.release.release_order.write_bundle", lambda published, _, **_more: caught.append(published)
        )
        publish(plan, principal="ana", period=plan.schedule.period(0))
    return caught[0]


def dummy(published: Published) -> Published:
    return replace(published, ledger=None)
