"""A plan file becomes a plan: groupings are SQL, levels are CASEs, and totals hold the rows that groups hold."""

from __future__ import annotations

import csv
import json
import tomllib
from datetime import date
from fractions import Fraction
from pathlib import Path

import jsonschema
from plan_texts import GOOD, plan_in, written

import discreet as dp
from discreet.release import read_release_plan, release_plan_schema
from discreet.release.levels_and_families import sql_in
from discreet.release.plan import Allowance, Every, Invariant, Level, Output, Schedule, Wish

LISTED = "district IN ('Harbour', 'Hill', 'Mill')"
SEXES = "sex IN ('f', 'm')"
REGION = "CASE WHEN district IN ('Harbour') THEN 'Coast' WHEN district IN ('Hill', 'Mill') THEN 'Inland' END AS region"


def test_a_plan_file_says_what_the_nouns_say(tmp_path):
    plan = plan_in(tmp_path)
    assert (plan.name, plan.title, plan.publisher, plan.contact) == (
        "stays",
        "Hospital stays",
        "Ministry of Health",
        "",
    )
    assert plan.policy.dataset == "hospital"
    assert plan.allowance == Allowance(epsilon=Fraction(1), delta=Fraction("1e-7"))
    assert plan.schedule == Schedule(every=Every.MONTH, first=date(2026, 1, 1), column="admitted")
    assert plan.output == Output(folder=tmp_path / "published")
    assert plan.levels == (
        Level(name="region", of="district", members={"Coast": ("Harbour",), "Inland": ("Hill", "Mill")}),
    )
    assert plan.invariants == (
        Invariant(table="stays", column="stays", value=Fraction(12000), where={}, reason="published by law since 1998"),
    )
    assert (plan.written, plan.file) == (GOOD, "plan.toml")
    assert plan.tables[0].wish == Wish(relative_error=Fraction(1, 50))
    assert plan.tables[-1].delta == Fraction("1e-8")


def test_groupings_become_one_table_each_over_the_same_rows(tmp_path):
    family = [table for table in plan_in(tmp_path).tables if table.family == "stays"]
    assert [table.name for table in family] == [
        "stays",
        "stays_by_region",
        "stays_by_district",
        "stays_by_district_sex",
    ]
    assert [table.title for table in family] == [
        "Stays", "Stays by region", "Stays by district", "Stays by district and sex",
    ]  # fmt: skip
    measures, rows = "COUNT(*) AS stays, SUM(cost) AS cost", f"FROM stays WHERE (cost > 0) AND {LISTED} AND {SEXES}"
    assert [table.sql for table in family] == [
        f"SELECT {measures} {rows}",
        f"SELECT {REGION}, {measures} {rows} GROUP BY 1",
        f"SELECT district, {measures} {rows} GROUP BY 1",
        f"SELECT district, sex, {measures} {rows} GROUP BY 1, 2",
    ]


def test_what_is_expected_of_the_finest_groups_is_more_in_coarser_ones(tmp_path):
    change = ('expected = { "*" = 800 }', 'expected = { "*" = 800, cost = 5 }')
    family = [table for table in plan_in(tmp_path, change).tables if table.family]
    assert [table.expected["*"] for table in family] == [4800, 2400, 1600, 800]
    assert [table.expected["cost"] for table in family] == [30, 15, 10, 5]
    averages = (change, ("SUM(cost)", "AVG(cost)"))
    assert {table.expected["cost"] for table in plan_in(tmp_path, *averages).tables if table.family} == {5}


def test_a_price_of_a_family_is_divided_and_an_error_is_not(tmp_path):
    for word, each in (("share = 0.4", Wish(share=Fraction(1, 10))), ("error = 20", Wish(error=Fraction(20)))):
        plan = plan_in(tmp_path, ('expected = { "*" = 800 }', word))
        assert {table.wish for table in plan.tables if table.family} == {each}


def test_levels_of_levels_reach_down_to_the_column(tmp_path):
    nation = '[[levels]]\nname = "nation"\nof = "region"\nmembers = { All = ["Coast", "Inland"] }\n\n'
    plan = plan_in(tmp_path, ("[[publish]]", nation + "[[publish]]"), ('["region"]', '["nation"]'))
    assert "CASE WHEN district IN ('Harbour', 'Hill', 'Mill') THEN 'All' END AS nation" in plan.tables[2].sql


def test_keys_that_are_listed_with_a_table_count_like_declared_ones(tmp_path):
    change = ('["district", "sex"]', '["ward"]'), ('expected = { "*" = 800 }', 'keys = { ward = ["A", "B\'s"] }')
    plan = plan_in(tmp_path, *change)
    by_ward = next(table for table in plan.tables if table.by == ("ward",))
    assert by_ward.keys == {"ward": ("A", "B's")}
    assert all("ward IN ('A', 'B''s')" in table.sql for table in plan.tables if table.family)


def test_numbers_and_truth_values_that_have_bounds_are_listed_by_not_being_null(tmp_path):
    plan = plan_in(tmp_path, ('["district", "sex"]', '["urgent"]'))
    assert all("urgent IS NOT NULL" in table.sql for table in plan.tables if table.family)


def test_names_that_are_no_words_are_quoted(tmp_path):
    plan = plan_in(
        tmp_path, ("sex = {", '"marital-status" = {'), ('"sex"]]', '"marital-status"]]'), ('stays = "C', 'order = "C')
    )
    assert 'SELECT district, "marital-status", COUNT(*) AS "order"' in plan.tables[4].sql


def test_the_window_of_a_period_is_put_in_front_of_every_question(tmp_path):
    plan = plan_in(tmp_path)
    shadow = "stays AS (SELECT * FROM stays WHERE admitted >= DATE '2026-02-01' AND admitted < DATE '2026-03-01')"
    assert sql_in(plan, plan.tables[0], plan.schedule.period(1)) == f"WITH {shadow} {plan.tables[0].sql}"
    again = (
        ('sql = "SELECT sex', 'sql = "with x AS (SELECT * FROM stays) SELECT sex'),
        ("FROM stays GROUP BY s", "FROM x GROUP BY s"),
    )
    plan = plan_in(tmp_path, *again)
    assert sql_in(plan, plan.tables[0], plan.schedule.period(1)).startswith(f"WITH {shadow}, x AS (")
    once = plan_in(tmp_path, ('every = "month"\nfirst = 2026-01-01\ncolumn = "admitted"', 'every = "once"'))
    assert sql_in(once, once.tables[0], once.schedule.period(0)) == once.tables[0].sql


def test_the_published_schema_of_plans_is_the_one_of_the_models():
    """If this fails, `python scripts/make_release_plan_schema.py` renews it."""
    published = Path(__file__).parents[2] / "docs" / "schema" / "release-plan.schema.json"
    assert json.loads(published.read_text(encoding="utf-8")) == release_plan_schema()


def test_the_published_schema_accepts_a_good_plan_and_refuses_bad_ones():
    validator = jsonschema.Draft202012Validator(release_plan_schema())

    def problems(content: str) -> list[object]:
        return list(validator.iter_errors(json.loads(json.dumps(tomllib.loads(content), default=str))))

    assert problems(GOOD) == []
    assert problems(GOOD.replace('name = "stays"', 'name = "../stays"', 1))
    assert problems(GOOD.replace("groupings =", "grouping ="))
    assert problems(GOOD.replace("[release]", "[releases]"))


def test_a_total_so_far_is_read(tmp_path):
    series = (
        '\n[[running]]\nname = "so_far"\nfrom = "stays"\nday = "admitted"\nfirst = 2026-01-01\ndays = 365\nrho = 0.1\n'
    )
    (running,) = read_release_plan(written(tmp_path, GOOD + series)).running
    assert (running.source, running.first, running.days, running.max_days) == ("stays", "2026-01-01", 365, 1)
    assert running.wish == Wish(rho=Fraction(1, 10))


WRITTEN = """
name = "pay"
dataset = "pay"
ledger = "pay.ledger"
[unit]
column = "id"
[budget]
epsilon = 200
[tables.pay]
source = "pay.csv"
[tables.pay.csv]
delimiter = ";"
decimal = ","
encoding = "cp1252"
dates = "%d.%m.%Y"
[tables.pay.columns]
Datum = { low = 2026-01-01, high = 2026-12-31 }
Lohn = { low = 0.0, high = 10.0 }
"Stra\u00dfe" = { categories = ["K\u00f6ln"] }
[release]
epsilon = 100
[[publish]]
name = "all"
sql = "SELECT COUNT(*) AS n, AVG(Lohn) AS lohn FROM pay WHERE MONTH(Datum) = 2 AND Stra\u00dfe = 'K\u00f6ln'"
expected = { "*" = 100 }
"""


def test_a_plan_says_how_its_file_is_written(tmp_path: Path) -> None:
    rows = "".join(f"{place};0{place % 9 + 1}.02.2026;{place % 5},5;K\u00f6ln\n" for place in range(1000))
    (tmp_path / "pay.csv").write_text(f"id;Datum;Lohn;Stra\u00dfe\n{rows}", encoding="cp1252")
    (tmp_path / "plan.toml").write_text(WRITTEN, encoding="utf-8")
    plan = dp.release.read_release_plan(tmp_path / "plan.toml")
    assert dp.release.check(plan).priced.epsilon == 100
    bundle = dp.release.publish(plan, principal="ana")
    table = bundle / "tables" / "all.csv"
    (told,) = csv.DictReader(table.read_text(encoding="utf-8").splitlines())
    assert abs(float(told["n"]) - 1000) < 1
    assert abs(float(told["lohn"]) - 2.5) < 0.1
