"""Tables of a family count the same rows of every unit: they agree exactly before noise, and all of it is paid for."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest
from neighbours import exceeded, loss_between, price_of
from recorded import replayed

import discreet as dp
from discreet.errors import InvalidParameter, Refused
from discreet.query.bounding import secret
from discreet.query.engine import Deadline, ExactCounts, Stage
from discreet.query.engines import shared_scans
from discreet.query.engines.duckdb import DuckDBEngine
from discreet.query.execute import exact_numbers
from discreet.query.plan import measurements
from discreet.query.workers.worker_engine import WorkerEngine
from discreet.release import read_release_plan
from discreet.release.plan import ReleasePlan
from discreet.release.pricing.priced_release import PricedRelease, PricedTable
from discreet.release.pricing.release_price import price

AGES = ("0", "1", "2", "3")
PLAN = """\
name = "homes"
title = "People"
publisher = "Office"
dataset = "homes"
ledger = "homes.ledger"

[unit]
column = "home"
name = "household"
max_groups = 3
max_rows_per_group = 4

[budget]
epsilon = 40

[tables.people]
source = "people.parquet"

[tables.people.columns]
sex = { categories = ["f", "m"] }
age = { categories = ["0", "1", "2", "3"] }
income = { low = 0, high = 10 }
job = { kind = "text" }

[release]
epsilon = 1
split = "even"

[output]
folder = "published"
formats = ["csv"]

[[levels]]
name = "broad"
of = "age"
members = { young = ["0", "1"], old = ["2", "3"] }

[[publish]]
name = "people"
from = "people"
where = "income > 0"
groupings = [[], ["sex"], ["broad"], ["age"], ["age", "sex"]]
measures = { n = "COUNT(*)", income = "SUM(income)" }
"""
RHO = (("epsilon = 40", "rho = 2"), ("epsilon = 1\nsplit", "rho = 0.1\ndelta = 1e-6\nsplit"))


def people(homes: int, most: int, label: int = 1) -> pa.Table:
    """Households of one to `most` people, nobody of whom is like the others."""
    chance = random.Random(label)
    rows = [
        {
            "home": home,
            "sex": chance.choice(["f", "m", "m", None]),
            "age": chance.choice([*AGES, "9"]),
            "income": chance.choice([None, *range(11)]),
            "job": chance.choice(["a", "b", "c"]),
        }
        for home in range(homes)
        for _ in range(chance.randint(1, most))
    ]
    return pa.Table.from_pylist(rows)


def plan_of(folder: Path, *changes: tuple[str, str]) -> ReleasePlan:
    text = PLAN
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new, 1)
    (folder / "plan.toml").write_text(text, encoding="utf-8")
    return read_release_plan(folder / "plan.toml")


def run(tables: Sequence[PricedTable], rows: pa.Table, stages: Sequence[Stage] | None = None) -> list[ExactCounts]:
    engine = DuckDBEngine({"people": rows}, threads=1)
    try:
        asked = [table.priced.stage for table in tables] if stages is None else stages
        return list(engine.run_all(asked, deadline=Deadline.after(60)))
    finally:
        engine.close()


def exact(priced: PricedRelease, found: Sequence[ExactCounts]) -> dict[str, list[Any]]:
    return {
        table.name: [np.asarray(one) for one in exact_numbers(table.priced.draft, counts.tally)]
        for table, counts in zip(priced.tables, found, strict=True)
    }


def agree(numbers: dict[str, list[Any]]) -> bool:
    """Whether the total, all margins and the level are the sums of the atoms, in every number."""
    return all(
        _cells_agree(*(numbers[f"people{by}"][place] for by in ("", "_by_sex", "_by_broad", "_by_age", "_by_age_sex")))
        for place in range(len(numbers["people"]))
    )


def _cells_agree(total: Any, sex: Any, broad: Any, age: Any, atoms: Any) -> bool:
    cells = atoms.reshape(len(AGES), 2)
    pairs = ((total, [cells.sum()]), (sex, cells.sum(0)), (age, cells.sum(1)), (broad, age.reshape(2, 2).sum(1)))
    return all(np.array_equal(one, other) for one, other in pairs)


def test_exact_totals_margins_and_levels_agree_where_limits_cut(tmp_path: Path) -> None:
    priced, rows = price(plan_of(tmp_path)), people(400, 12)
    numbers = exact(priced, run(priced.tables, rows))
    assert agree(numbers)
    counted = rows.to_pandas().dropna().query("income > 0 and age != '9'").groupby("home").size()
    assert counted.max() > 4
    assert numbers["people"][0].tolist() == [counted.clip(upper=4).sum()]


def test_tables_with_choices_of_their_own_are_caught(tmp_path: Path) -> None:
    """The planted mistake: the limits are paid for as before, and every table chooses for itself."""
    priced, rows = price(plan_of(tmp_path)), people(400, 12)
    stages = [table.priced.stage for table in priced.tables]
    apart = [replace(stage, family=None, max_groups=3) for stage in stages]
    assert not agree(exact(priced, run(priced.tables, rows, apart)))
    own = [replace(stage, family=f"f{place}") for place, stage in enumerate(stages)]
    assert not agree(exact(priced, run(priced.tables, rows, own)))


def test_a_worker_and_a_table_alone_follow_the_same_choice(tmp_path: Path) -> None:
    priced, rows = price(plan_of(tmp_path)), people(60, 9)
    stages = [table.priced.stage for table in priced.tables]
    with replayed("family"):
        here = exact(priced, run(priced.tables, rows))
    engine = WorkerEngine({"people": rows})
    try:
        with replayed("family"):
            there = exact(priced, engine.run_all(stages, deadline=Deadline.after(60)))
        assert str(there) == str(here)
        alone = engine.run(stages[0], deadline=Deadline.after(60))
        assert alone.tally.rows.tolist() == here["people"][0].tolist()
    finally:
        engine.close()


MEASURES = (
    'n = "COUNT(*)", homes = "COUNT(DISTINCT home)"',
    'n = "COUNT(income)", mean = "AVG(income)", sd = "STDDEV(income)"',
    'middle = "MEDIAN(income)", usual = "MODE(sex)"',
    'incomes = "COUNT(DISTINCT income)", n = "COUNT(*)"',
    'n = "COUNT(*)", low = "QUANTILE(FLOOR(LEAST(GREATEST(income, 0), 4)), [0.25, 0.75])"',
)


def complaints(priced: PricedRelease, secrets: Sequence[bytes]) -> list[str]:
    """Compare small tables with all their neighbours, under several secrets, with what was charged."""
    found = []
    for label, key in product((1, 2), secrets):
        rows = people(3, 7, label)
        with patch.object(secret, "read", {32: key}.__getitem__):
            whole = run(priced.tables, rows)
            for home in (0, 1, 2):
                less = run(priced.tables, rows.filter(pc.not_equal(rows["home"], home)))
                for table, one, other in zip(priced.tables, whole, less, strict=True):
                    loss = loss_between(table.priced, one, other)
                    found += exceeded(loss, price_of(table.priced))
    return found


SECRETS = [bytes([number]) * 32 for number in (3, 7)]


@pytest.mark.parametrize("measures", MEASURES)
@pytest.mark.parametrize("changes", [(), RHO], ids=["Laplace", "Gaussian"])
def test_no_neighbour_differs_by_more_than_is_paid(
    tmp_path: Path, measures: str, changes: tuple[tuple[str, str], ...]
) -> None:
    said = ('n = "COUNT(*)", income = "SUM(income)"', measures)
    assert complaints(price(plan_of(tmp_path, said, *changes)), SECRETS) == []


def test_households_that_are_paid_in_one_group_only_are_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A count of units moves in every group with a chosen row of the unit, not in one."""
    monkeypatch.setattr(measurements, "_spread", lambda draft, number: None)
    said = ('n = "COUNT(*)", income = "SUM(income)"', 'homes = "COUNT(DISTINCT home)"')
    assert complaints(price(plan_of(tmp_path, said)), SECRETS)


def test_rows_that_are_paid_at_the_limits_of_one_group_are_caught(tmp_path: Path) -> None:
    """With max_rows = 12 a household may have 12 rows in one group, not 4: noise for 4 is too little."""
    wide = price(plan_of(tmp_path, ('where = "income > 0"\n', "max_rows = 12\n")))
    narrow = price(plan_of(tmp_path, ('where = "income > 0"\n', "")))
    rows = pa.Table.from_pylist([{"home": 1, "sex": "f", "age": "0", "income": 10, "job": "a"}] * 12)
    none = rows.slice(0, 0)
    whole, less = run(wide.tables, rows), run(wide.tables, none)
    for place, table in enumerate(wide.tables):
        loss = loss_between(table.priced, whole[place], less[place])
        assert loss.pure == price_of(table.priced).pure  # Equality: nothing is paid for in vain.
        assert loss_between(narrow.tables[place].priced, whole[place], less[place]).pure > loss.pure


@pytest.mark.parametrize("changes", [(), RHO], ids=["Laplace", "Gaussian"])
@pytest.mark.parametrize("limits", [(1, 1), (3, 1), (3, 4), (8, 2)])
def test_no_cell_has_more_noise_than_in_a_table_by_itself(
    tmp_path: Path, limits: tuple[int, int], changes: tuple[tuple[str, str], ...]
) -> None:
    said = ("max_groups = 3\nmax_rows_per_group = 4", f"max_groups = {limits[0]}\nmax_rows_per_group = {limits[1]}")
    plan = plan_of(tmp_path, said, *changes)
    own = [replace(table, limits=replace(table.limits, family=None)) for table in plan.tables]
    together, apart = price(plan), price(replace(plan, tables=tuple(own)))
    for one, other in zip(together.tables, apart.tables, strict=True):
        assert all(one.priced.variances[name] <= variance for name, variance in other.priced.variances.items())
    assert not any("larger than" in note for note in dp.release.check(plan).notes)
    # Where nobody has more than one row, and no noise is shared, plan, price and answers are what they were.
    fingerprints = [[table.priced.fingerprint for table in release.tables] for release in (together, apart)]
    assert (fingerprints[0] == fingerprints[1]) is (limits == (1, 1) and not changes)


def test_notes_say_how_many_rows_count_and_what_more_of_them_cost(tmp_path: Path) -> None:
    few, more, max_groups = (
        dp.release.check(plan_of(tmp_path, ('where = "income > 0"\n', said))).notes
        for said in ("", "max_rows = 12\n", "max_groups = 2\n")
    )
    assert few[0].startswith("tables of 'people' count the same rows: at most 4 rows of a household in all groups")
    assert "a table by itself would count up to 12 rows of a household" in few[1]
    assert len(few) == 2
    assert "people 3 times, people_by_sex 1.5 times, people_by_broad 1.5 times at equal price" in more[-1]
    assert "max_groups changes nothing in 'people'" in max_groups[-1]
    homes = ('n = "COUNT(*)", income = "SUM(income)"', 'homes = "COUNT(DISTINCT home)"')
    counted = dp.release.check(plan_of(tmp_path, homes)).notes
    assert "people_by_age 1.3 times, people_by_age_sex 1.3 times" in counted[-1]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (('where = "income > 0"', "max_rows = 13"), "max_rows may be at most 12"),
        (('[[], ["sex"], ["broad"], ["age"], ["age", "sex"]]', '[["sex"]]\nmax_rows = 2'), "max_rows is for a family"),
        (('n = "COUNT(*)"', 'jobs = "COUNT(DISTINCT job)"'), "distinct values of a column without a list"),
    ],
)
def test_what_a_family_cannot_do_is_refused(tmp_path: Path, change: tuple[str, str], problem: str) -> None:
    with pytest.raises((InvalidParameter, Refused), match=problem):
        dp.release.check(plan_of(tmp_path, change))


def test_max_rows_is_no_word_of_a_table_by_its_sql_or_of_rows(tmp_path: Path) -> None:
    sql = '\n[[publish]]\nname = "own"\nsql = "SELECT COUNT(*) AS n FROM people"\nmax_rows = 2\n'
    with pytest.raises(InvalidParameter, match="leave out sql, or else max_rows"):
        plan_of(tmp_path, ('\n[[publish]]\nname = "people"', f'{sql}\n[[publish]]\nname = "people"'))
    unit = 'column = "home"\nname = "household"\nmax_groups = 3\nmax_rows_per_group = 4'
    rows = plan_of(tmp_path, (unit, 'column = "row"'), ('where = "income > 0"', "max_rows = 1"))
    with pytest.raises(InvalidParameter, match="max_rows is for a unit column"):
        price(rows)


def test_columns_of_units_are_keys_of_a_family_too(tmp_path: Path) -> None:
    """A household is in one region: counts of households move in one group, and rows agree as ever."""
    plan = plan_of(
        tmp_path,
        ('job = { kind = "text" }', 'job = { categories = ["a", "b", "c"], of_unit = true }'),
        ('[[], ["sex"], ["broad"], ["age"], ["age", "sex"]]', '[[], ["job"], ["job", "sex"]]'),
        ('income = "SUM(income)"', 'homes = "COUNT(DISTINCT home)"'),
    )
    priced = price(plan)
    numbers = exact(priced, run(priced.tables, people(200, 9)))
    rows, homes = (list(places) for places in zip(*numbers.values(), strict=True))
    assert rows[1].tolist() == rows[2].reshape(3, 2).sum(1).tolist()
    assert rows[0].tolist() == [rows[1].sum()]
    assert homes[0].tolist() == [homes[1].sum()]
    assert [table.priced.draft.spreads[1] for table in priced.tables] == [1, 1, 2]
    assert complaints(priced, SECRETS[:1]) == []


def test_a_family_that_needs_two_scans_is_refused_before_it_is_paid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_scans, "_merged", lambda one, other: None)
    with pytest.raises(Refused, match="cannot be counted in one scan"):
        price(plan_of(tmp_path))


def test_the_kept_share_of_a_family_is_of_units_whose_rows_are_all_in_every_table(tmp_path: Path) -> None:
    """A household with five rows in five groups has one in each, and is not counted wholly all the same."""
    plan = plan_of(
        tmp_path, ('where = "income > 0"', "kept_share = 0.1"), ("max_groups = 3", "max_groups = 3\nrows_at_most = 12")
    )
    priced, rows = price(plan), people(300, 12)
    sizes = rows.to_pandas().dropna(subset=["sex"]).query("age != '9'").groupby("home").size()
    kept = [table for table in priced.tables if table.plan.kept_of is not None]
    assert [table.plan.kept_of for table in kept] == ["people"]
    for table, counts in zip(kept, run(kept, rows), strict=True):
        whole, others, all_rows, counted = (
            int(number.sum()) for number in exact_numbers(table.priced.draft, counts.tally)[:4]
        )
        assert [whole, others] == [(sizes <= 4).sum(), (sizes > 4).sum()]
        assert all_rows == sizes.sum()
        assert counted == sizes.clip(upper=4).sum()
    pq.write_table(rows, tmp_path / "people.parquet")
    assert dp.release.publish(plan, principal="office").exists()


def test_a_family_of_two_units_at_once_is_refused_before_it_is_paid(tmp_path: Path) -> None:
    """One choice of rows is proven for one unit: a chain of two publishes its tables by their SQL."""
    chain = 'column = "home"\nmax_inner = 4\n\n[unit.inner]\ncolumn = ["home", "person"]\nbudget = { epsilon = 20 }'
    unit = 'column = "home"\nname = "household"\nmax_groups = 3\nmax_rows_per_group = 4'
    with pytest.raises(Refused, match="one choice of rows for several tables is proven for one unit"):
        price(plan_of(tmp_path, (unit, chain)))


def test_released_tables_agree_within_their_noise(tmp_path: Path) -> None:
    """Each cell has Laplace noise; that a sum of 15 is 60 scales off has a chance far below 1e-9."""
    plan = plan_of(tmp_path)
    pq.write_table(people(2_000, 12), tmp_path / "people.parquet")
    folder = dp.release.publish(plan, principal="office")
    tables = {
        path.name.removesuffix(".csv"): csv.read_csv(path)
        for path in (folder / "tables").rglob("*.csv")
        if "tidy" not in str(path)
    }
    totals = {name: sum(table["n"].to_pylist()) for name, table in tables.items() if name.startswith("people")}
    assert len(totals) == 5
    scale = float(price(plan).tables[0].errors["n"]) / 3
    assert max(totals.values()) - min(totals.values()) < 60 * scale
    page = "\n".join(path.read_text(encoding="utf-8") for path in folder.rglob("*.md"))
    assert "one household is counted with at most 4 rows, the same ones, in all tables of 'people'" in page
    assert "totals of the same thing then differ" not in page
