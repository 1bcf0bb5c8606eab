"""A good plan file, for tests that read it, spoil it, price it."""

from __future__ import annotations

from pathlib import Path

from discreet.release import read_release_plan
from discreet.release.plan import ReleasePlan

GOOD = """\
name = "stays"
title = "Hospital stays"
publisher = "Ministry of Health"
dataset = "hospital"
ledger = "hospital.ledger"

[unit]
column = "patient"

[budget]
epsilon = 40
delta = 1e-5

[tables.stays]
source = "stays.parquet"

[tables.stays.columns]
district = { categories = ["Harbour", "Hill", "Mill"] }
sex = { categories = ["f", "m"] }
cost = { low = 0, high = 20000 }
admitted = { low = 2020-01-01, high = 2029-12-31 }
urgent = { kind = "boolean" }
ward = { kind = "text" }

[release]
epsilon = 1
delta = 1e-7

[schedule]
every = "month"
first = 2026-01-01
column = "admitted"

[output]
folder = "published"
formats = ["csv", "parquet"]

[[levels]]
name = "region"
of = "district"
members = { Coast = ["Harbour"], Inland = ["Hill", "Mill"] }

[[publish]]
name = "by_sex"
title = "Stays by sex"
sql = "SELECT sex, COUNT(*) AS stays FROM stays GROUP BY sex"
expected = { "*" = 5000 }
relative_error = 0.02

[[publish]]
name = "stays"
from = "stays"
where = "cost > 0"
groupings = [[], ["region"], ["district"], ["district", "sex"]]
measures = { stays = "COUNT(*)", cost = "SUM(cost)" }
expected = { "*" = 800 }

[[publish]]
name = "wards"
sql = "SELECT ward, COUNT(*) AS stays FROM stays GROUP BY ward"
delta = 1e-8
share = 0.1

[[invariants]]
table = "stays"
column = "stays"
value = 12000
reason = "published by law since 1998"
"""


def written(folder: Path, content: str = GOOD) -> Path:
    path = folder / "plan.toml"
    path.write_text(content, encoding="utf-8")
    return path


def plan_in(folder: Path, *changes: tuple[str, str]) -> ReleasePlan:
    """Read the good plan with some of its text changed."""
    content = GOOD
    for old, new in changes:
        assert old in content, old
        content = content.replace(old, new, 1)
    return read_release_plan(written(folder, content))
