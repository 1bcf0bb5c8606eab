"""Limits beside their error: noise as the edited plan is priced, bias as brute force finds it, and nothing private."""

from __future__ import annotations

import sqlite3
from fractions import Fraction
from itertools import combinations, product

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from plan_texts import plan_in
from publishing_world import stays

import discreet as dp
from discreet.errors import InvalidParameter, Refused
from discreet.query.engine import Deadline
from discreet.query.engines.duckdb import DuckDBEngine
from discreet.release import price, read_release_plan, tune
from discreet.release.plan import catalogue_of
from discreet.release.pricing.limit_bias import bias_share, contributions, expected_values
from discreet.release.pricing.quotes import quotes_of

ROWS = [  # patient, district, cost: units in one to three groups, with one to three rows in each
    ("a", "Harbour", 10), ("a", "Harbour", 90), ("a", "Hill", 30), ("a", "Mill", 50),
    ("b", "Hill", 70), ("b", "Hill", 20), ("b", "Hill", 40), ("b", "Mill", 60),
    ("c", "Mill", 80), (None, "Mill", 99), ("d", "elsewhere", 99), ("d", "Harbour", 55),
]  # fmt: skip
SMALL = """\
name = "small"
dataset = "small"
ledger = "small.ledger"

[unit]
column = "patient"
max_groups = {groups}
max_rows_per_group = {rows}

[budget]
epsilon = 40

[tables.stays]
source = "private.parquet"

[tables.stays.columns]
district = {{ categories = ["Harbour", "Hill", "Mill"] }}
cost = {{ low = 0, high = {high} }}

[release]
epsilon = 4

[[publish]]
name = "stays"
{asked}
expected = {{ "*" = 100, total = 5000, mean = 50 }}
"""
MEASURES = {
    "n": "COUNT(*)",
    "people": "COUNT(DISTINCT patient)",
    "total": "SUM(cost)",
    "mean": "AVG(cost)",
}
TABLE = 'sql = "SELECT district, {} FROM stays GROUP BY district"'.format(
    ", ".join(f"{measure} AS {name}" for name, measure in MEASURES.items())
)
FAMILY = """from = "stays"
groupings = [["district"], []]
max_rows = {most}
measures = {{ n = "COUNT(*)", people = "COUNT(DISTINCT patient)", total = "SUM(cost)", mean = "AVG(cost)" }}"""
KNOWN = ("Harbour", "Hill", "Mill")


def small(folder, *, groups=3, rows=3, high=100, asked=TABLE):
    file = folder / "small.toml"
    file.write_text(SMALL.format(groups=groups, rows=rows, high=high, asked=asked))
    return read_release_plan(file)


def sample():
    columns = zip(*ROWS, strict=True)
    return pa.table(dict(zip(("patient", "district", "cost"), columns, strict=True)))


def counted(plan, *, limited=True):
    """What the library says of the first table on the small rows."""
    quote = quotes_of(plan, catalogue_of(plan), plan.schedule.period(0))[0]
    engine = DuckDBEngine({"stays": sample()})
    try:
        asked = quote.at(Fraction(1))
        return expected_values(asked.draft, contributions(engine, asked), limited=limited)
    finally:
        engine.close()


def choices_of_table(rows, groups, most):
    """All choices of one unit's rows with their chances: some groups, and some rows in each."""
    mine = sorted({district for district, _ in rows})
    chosen = list(combinations(mine, min(groups, len(mine))))
    for some in chosen:
        each = [[row for row in rows if row[0] == district] for district in some]
        kept = list(product(*(combinations(those, min(most, len(those))) for those in each)))
        for one in kept:
            yield [row for part in one for row in part], 1 / (len(chosen) * len(kept))


def choices_of_family(rows, most):
    kept = list(combinations(rows, min(most, len(rows))))
    yield from ((list(one), 1 / len(kept)) for one in kept)


def brute_force(choices, high):
    """The average over all choices, group by group: of numbers, and for the mean the quotient of two averages."""
    units = {}
    for unit, district, cost in ROWS:
        if unit is not None and district in KNOWN:
            units.setdefault(unit, []).append((district, min(cost, high)))
    found = {name: dict.fromkeys(((one,) for one in KNOWN), 0.0) for name in MEASURES}
    for rows in units.values():
        for (kept, chance), district in product(choices(rows), KNOWN):
            costs = [cost for where, cost in kept if where == district]
            found["n"][district,] += chance * len(costs)
            found["people"][district,] += chance * bool(costs)
            found["total"][district,] += chance * sum(costs)
    found["mean"] = {key: found["total"][key] / found["n"][key] for key in found["n"]}
    return found


def same(one, other):
    return set(one) == set(other) and all(one[name] == pytest.approx(other[name], rel=1e-9) for name in other)


@pytest.mark.parametrize("high", [100, 45])
@pytest.mark.parametrize(("groups", "rows"), [(1, 1), (2, 1), (1, 2), (3, 2), (3, 3)])
def test_what_a_table_keeps_is_what_brute_force_finds(groups, rows, high, tmp_path):
    plan = small(tmp_path, groups=groups, rows=rows, high=high)
    found = counted(plan)
    assert same(found, brute_force(lambda mine: choices_of_table(mine, groups, rows), high))
    if (groups, rows) != (3, 3):  # A bias that ignores the cut, and one that forgets the choice of groups, are refused.
        assert not same(counted(plan, limited=False), brute_force(lambda m: choices_of_table(m, groups, rows), high))
    if groups < 3:
        assert not same(found, brute_force(lambda mine: choices_of_table(mine, 3, rows), high))


@pytest.mark.parametrize("most", [1, 2, 3, 4])
def test_what_a_family_keeps_is_what_brute_force_finds(most, tmp_path):
    plan = small(tmp_path, groups=4, rows=1, asked=FAMILY.format(most=most))
    found = counted(plan)
    assert same(found, brute_force(lambda mine: choices_of_family(mine, most), 100))
    other = brute_force(lambda mine: choices_of_table(mine, 3, most), 100)
    assert same(found, other) is (most == 4)


def test_the_engine_keeps_as_many_rows_as_expected(tmp_path):
    plan = small(tmp_path, groups=2, rows=1)
    units = pa.table(
        {
            "patient": [f"p{number // 6}" for number in range(60)],  # each in three groups, with two rows
            "district": [KNOWN[number % 3] for number in range(60)],
            "cost": [50] * 60,
        }
    )
    asked = quotes_of(plan, catalogue_of(plan), plan.schedule.period(0))[0].at(Fraction(1))
    engine = DuckDBEngine({"stays": units})
    tallied = engine.run(asked.stage, deadline=Deadline.after(60))
    expected = expected_values(asked.draft, contributions(engine, asked), limited=True)
    engine.close()
    assert sum(expected["n"].values()) == pytest.approx(tallied.tally.rows.sum()) == 20


@pytest.mark.long
def test_noise_is_that_of_the_plan_edited_to_the_limit(tmp_path):
    plan = plan_in(tmp_path)
    grid = tune(plan)
    shared = ('where = "cost > 0"\n', 'where = "cost > 0"\nmax_rows = 3\n')
    # The unit must allow for it, and the other tables keep their own limits.
    wider = ('column = "patient"\n', 'column = "patient"\nmax_groups = 1\nmax_rows_per_group = 3\n')
    others = [
        ("relative_error = 0.02\n", "relative_error = 0.02\nmax_rows_per_group = 1\n"),
        ("delta = 1e-8\n", "delta = 1e-8\nmax_rows_per_group = 1\n"),
    ]
    priced = price(plan_in(tmp_path, shared, wider, *others))
    tried = [row for row in grid.grid if row.published == "stays" and row.limit == "max_rows = 3"]
    assert {row.column for row in tried} == {"stays", "cost"}
    for row in tried:
        assert row.noise == priced.table(row.table).errors[row.column]
    halved = price(plan_in(tmp_path, ("high = 20000", "high = 10000")))
    tried = [row for row in grid.grid if row.limit == "cost = { low = 0, high = 10000 }"]
    assert {row.table for row in tried} == {table.name for table in plan.tables if table.family == "stays"}
    for row in tried:
        assert row.noise == halved.table(row.table).errors["cost"]
    now = price(plan)
    assert all(row.noise == now.table(row.table).errors[row.column] for row in grid.grid if row.current)


@pytest.mark.long
def test_nothing_private_is_opened_and_nothing_is_charged(tmp_path, monkeypatch):
    plan = plan_in(tmp_path)
    source = plan.policy.tables["stays"].source
    source.mkdir()  # Whoever opened it would fail.
    connect, opened = sqlite3.connect, []
    monkeypatch.setattr("sqlite3.connect", lambda place, **named: opened.append(place) or connect(place, **named))
    grid = tune(plan)
    assert grid.rows == "made-up"
    assert "Nothing private was read, and nothing was charged." in str(grid)
    assert not plan.policy.ledger.exists()
    assert set(opened) == {":memory:"}  # For how many releases a lifetime budget holds, and nothing else.
    assert list(source.iterdir()) == []


@pytest.mark.long
def test_a_grid_marks_the_least_total_and_the_limit_that_holds_now(tmp_path):
    grid = tune(plan_in(tmp_path))
    for table, column, of in {(row.table, row.column, row.of) for row in grid.grid}:
        rows = [row for row in grid.grid if (row.table, row.column, row.of) == (table, column, of)]
        (least,) = (row for row in rows if row.least)
        (_,) = (row for row in rows if row.current)
        assert least.total_share == min(row.total_share for row in rows if row.total_share is not None)
        assert least.total_share == least.noise_share + least.bias_share
    assert set(grid.proposals) == {"by_sex", "stays", "wards"}


@pytest.mark.long
def test_public_rows_tell_their_own_bias(tmp_path):
    plan = plan_in(tmp_path)
    pq.write_table(stays(), tmp_path / "sample.parquet")
    grid = tune(plan, public={"stays": tmp_path / "sample.parquet"})
    (row,) = (one for one in grid.grid if one.table == "stays" and one.column == "stays" and one.current)
    rows = [one for one in stays().to_pylist() if one["admitted"].month == 1 and one["cost"] > 0]
    patients = {one["patient"] for one in rows}
    assert row.bias_share == pytest.approx(1 - len(patients) / len(rows))
    assert grid.rows == "public"


def test_public_values_beyond_the_bounds_are_part_of_the_bias(tmp_path):
    plan = small(tmp_path, high=45)
    grid = tune(plan, public={"stays": sample()})
    exact = brute_force(lambda mine: [(mine, 1)], 10**6)["total"]
    for row in grid.grid:
        if row.of == "bounds" and row.column == "total":
            high = int(row.limit.partition("high = ")[2].rstrip(" }"))
            cut = brute_force(lambda mine: choices_of_table(mine, 3, 3), high)["total"]
            assert row.bias_share == pytest.approx(bias_share(cut, exact))
    assert any(row.bias_share for row in grid.grid if row.of == "bounds")


def test_a_sample_is_read_as_its_ending_says_and_csv_as_the_plan_says(tmp_path):
    plan = small(tmp_path)
    file = tmp_path / "small.toml"
    file.write_text(
        file.read_text()
        .replace("[tables.stays.columns]", '[tables.stays.csv]\ndelimiter = ";"\n\n[tables.stays.columns]')
        .replace("private.parquet", "private.csv")
    )
    plan = read_release_plan(file)
    pq.write_table(sample(), tmp_path / "sample.parquet")
    lines = (
        ";".join("" if value is None else str(value) for value in row)
        for row in [("patient", "district", "cost"), *ROWS]
    )
    (tmp_path / "sample.csv").write_text("\n".join(lines) + "\n")
    first, second = (tune(plan, public={"stays": tmp_path / name}) for name in ("sample.csv", "sample.parquet"))
    assert first.to_json() == second.to_json()


def test_the_private_file_is_not_taken_for_public(tmp_path):
    plan, whole = small(tmp_path), tmp_path / "private.parquet"
    pq.write_table(sample(), whole)
    (tmp_path / "link.parquet").hardlink_to(whole)
    for name in ("private.parquet", "link.parquet", f"../{tmp_path.name}/private.parquet", "p*.parquet", "**/p*"):
        with pytest.raises(Refused, match="is the source of the private table"):
            tune(plan, public={"stays": tmp_path / name})
    for given in (str(whole), [tmp_path / "other.parquet", whole], dp.csv(str(whole)), dp.public(whole)):
        with pytest.raises(Refused, match="is the source of the private table"):
            tune(plan, public={"stays": given})
    with pytest.raises(InvalidParameter, match="none were given for 'stays'"):
        tune(plan, public={"stays": None})


def test_a_source_that_cannot_be_told_from_the_private_one_is_refused(tmp_path):
    with pytest.raises(Refused, match="somewhere else"):
        tune(small(tmp_path), public={"stays": dp.postgres("postgresql://reader@db.example/clinic", "stays")})
    pq.write_table(sample(), tmp_path / "private.parquet")
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE stays AS SELECT * FROM read_parquet('{tmp_path / 'private.parquet'}')")
        with pytest.raises(Refused, match="somewhere else"):
            tune(small(tmp_path), public={"stays": connection})


def test_the_private_file_of_another_table_is_not_taken_for_public(tmp_path):
    small(tmp_path)
    file = tmp_path / "small.toml"
    more = '[tables.visits]\nsource = "visits.parquet"\n\n[tables.visits.columns]\ncost = { low = 0, high = 9 }\n\n'
    file.write_text(file.read_text().replace("[release]", more + "[release]"))
    for name in ("private", "visits"):
        pq.write_table(sample(), tmp_path / f"{name}.parquet")
    own = {"stays": tmp_path / "visits.parquet", "visits": sample()}
    with pytest.raises(Refused, match="is the source of the private table 'visits'"):
        tune(read_release_plan(file), public=own)


@pytest.mark.long
def test_public_rows_are_of_every_private_table_with_its_columns(tmp_path):
    plan = plan_in(tmp_path)
    with pytest.raises(InvalidParameter, match="there is no private table 'visits'"):
        tune(plan, public={"visits": stays()})
    with pytest.raises(InvalidParameter, match="none were given for 'stays'"):
        tune(plan, public={})
    with pytest.raises(InvalidParameter, match="have no column 'cost'"):
        tune(plan, public={"stays": stays().drop_columns(["cost"])})
    with pytest.raises(InvalidParameter, match="there is nothing to compare"):
        tune(plan, plan.schedule.period(7), public={"stays": stays()})


@pytest.mark.long
def test_limits_of_a_unit_of_several_columns_and_of_rows_are_compared(tmp_path):
    several = ('column = "patient"', 'column = ["patient", "sex"]')
    assert {row.of for row in tune(plan_in(tmp_path, several)).grid} == {"contributions", "bounds"}
    rows = ('column = "patient"', 'column = "row"')
    grid = tune(plan_in(tmp_path, rows)).grid
    assert {row.of for row in grid} == {"bounds"}
    assert {row.bias_share for row in grid if row.current} == {0.0}
