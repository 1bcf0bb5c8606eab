"""One order: priced, opened, charged, read, drawn and stored, tidied, written; each period once."""

from __future__ import annotations

import json
import secrets
import shutil
import threading
from dataclasses import replace
from datetime import date

import pytest
from plan_texts import plan_in
from publishing_world import JANUARY, KEY, PATIENTS, SMALLER, answers, entries, files_of, stays, world
from system_parts import needs_postgres

import discreet as dp
from discreet.cli import ledger_support
from discreet.ledger import Ledger, move
from discreet.query.plan.planner import PricedQuery
from discreet.query.workers.worker_engine import WorkerEngine
from discreet.release import price, publish, release_order, verify_bundle
from discreet.release.plan import Period
from discreet.release.release_order import STEPS

FEBRUARY = Period(label="2026-02", first=date(2026, 2, 1), end=date(2026, 3, 1))
PURE = (
    ("epsilon = 40\ndelta = 1e-5\n", "epsilon = 40\n"),
    ("epsilon = 1\ndelta = 1e-7\n", "epsilon = 0.1\n"),
    ("relative_error = 0.02\n", ""),
    ("\ndelta = 1e-8\nshare = 0.1\n", '\nshare = 0.1\nkeys = { ward = ["ward 0", "ward 1"] }\n'),
)
MARCH = Period(label="2026-03", first=date(2026, 3, 1), end=date(2026, 4, 1))


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """A plan, the steps of its release, and the bundle."""
    plan, steps = world(tmp_path_factory.mktemp("released")), []
    return plan, publish(plan, principal="ana", period=JANUARY, on_step=steps.append), steps


def test_a_release_is_one_charge_one_answer_and_one_bundle(released):
    plan, bundle, steps = released
    (charge,) = entries(plan)
    assert len(entries(plan, "answer")) == len(answers(plan)) == 1
    assert charge.content["key"] == KEY
    assert charge.content["principal"] == "ana"
    assert charge.event == price(plan, JANUARY).event
    assert tuple(steps) == STEPS
    assert bundle == plan.output.folder / "stays-2026-01"
    checked = verify_bundle(bundle, ledger=plan.policy.ledger)
    assert checked.ok, str(checked)


def test_a_release_is_about_the_rows_of_its_period(tmp_path):
    """Without noise to speak of the tables would count the whole year."""
    plan = world(tmp_path, ("epsilon = 1\n", "epsilon = 40\n"), ("relative_error = 0.02\n", ""))
    publish(plan, principal="ana", period=JANUARY)
    (text,) = answers(plan)
    rows = stays(PATIENTS).to_pylist()
    expected = len({row["patient"] for row in rows if row["admitted"] < date(2026, 2, 1)})
    counted = json.loads(text)["tables"]["stays"]["columns"][0]["values"]["over"][0]
    assert abs(counted - expected) < 30
    assert abs(counted - PATIENTS) > 30


def test_a_table_with_tighter_limits_is_published_and_verified(tmp_path):
    wider = ('column = "patient"\n', 'column = "patient"\nmax_groups = 2\nmax_rows_per_group = 2\n')
    plan = world(tmp_path, wider, ("relative_error = 0.02\n", "max_groups = 1\nmax_rows_per_group = 1\n"))
    bundle = publish(plan, principal="ana", period=JANUARY)
    assert verify_bundle(bundle, ledger=plan.policy.ledger).ok


def test_a_unit_within_a_window_is_published_with_its_sentence(tmp_path):
    window = ('column = "patient"\n', 'column = "patient"\nwindow = "month"\ntime = "admitted"\n')
    plan = world(tmp_path, window)
    bundle = publish(plan, principal="ana", period=JANUARY)
    assert verify_bundle(bundle, ledger=plan.policy.ledger).ok
    for page in ("guarantee.md", "report.html"):
        text = (bundle / page).read_text(encoding="utf-8")
        assert "The promise is for one month: for k months of one person ε is k times as large." in text


def test_publishing_again_changes_nothing_and_costs_nothing(released, monkeypatch):
    plan, bundle, _ = released
    before, spent = files_of(bundle.parent), look_spent(plan)
    for owner, method in ((Ledger, "charge"), (WorkerEngine, "run_all"), (PricedQuery, "draw")):
        monkeypatch.setattr(owner, method, None)
    assert publish(plan, principal="ana", period=JANUARY) == bundle
    assert files_of(bundle.parent) == before
    assert look_spent(plan) == spent


def look_spent(plan):
    return [entry.hash for kind in ("charge", "answer") for entry in entries(plan, kind)]


def test_a_bundle_that_was_lost_is_written_again_to_the_letter(tmp_path):
    plan = world(tmp_path)
    bundle = publish(plan, principal="ana", period=JANUARY)
    before = files_of(bundle.parent)
    shutil.rmtree(bundle.parent)
    publish(plan, principal="ana", period=JANUARY)
    assert files_of(bundle.parent) == before


@pytest.mark.parametrize(
    "change",
    [
        ("cost > 0", "cost > 1"),
        ("epsilon = 1\n", "epsilon = 0.9\n"),
        ('"district", "sex"]]', '"district", "sex"], ["sex"]]'),
        ("high = 20000", "high = 30000"),
        ("[unit]\n", "[unit]\nmax_groups = 2\n"),
        ('name = "by_sex"', 'name = "by_gender"'),
    ],
    ids=["filter", "price", "one more table", "bounds", "limits", "name"],
)
def test_a_changed_plan_for_a_released_period_is_refused(change, released):
    plan = plan_in(released[0].policy.ledger.parent, change)
    before = look_spent(plan)
    with pytest.raises(dp.Refused, match="the plan changed since 'release/stays/2026-01' was charged"):
        publish(plan, principal="ana", period=JANUARY)
    assert look_spent(plan) == before


def test_data_that_changed_since_do_not_change_what_was_released(tmp_path):
    bundle = publish(world(tmp_path), principal="ana", period=JANUARY)
    before = files_of(bundle)
    shutil.rmtree(bundle.parent)
    assert files_of(publish(world(tmp_path, patients=50), principal="ana", period=JANUARY)) == before


def test_another_principal_or_version_is_refused_by_name(released):
    with pytest.raises(dp.Refused, match="another principal"):
        publish(released[0], principal="ben", period=JANUARY)
    versioned = plan_in(
        released[0].policy.ledger.parent, ('ledger = "hospital.ledger"', 'ledger = "hospital.ledger"\nversion = "2"')
    )
    with pytest.raises(dp.Refused, match="another version"):
        publish(versioned, principal="ana", period=JANUARY)


def test_a_release_that_costs_too_much_is_refused_before_anything_is_charged(tmp_path, monkeypatch):
    monkeypatch.setattr(WorkerEngine, "run_all", None)
    plan = world(tmp_path)
    with pytest.raises(dp.Refused, match=r"costs ε = 1, more than the ε = 0\.5"):
        publish(plan, principal="ana", period=JANUARY, max_epsilon="0.5")
    assert entries(plan) == []
    pure = world(tmp_path / "pure", *PURE)
    with pytest.raises(dp.AnswerFailed):  # What costs just as much as it may is charged, and then fails to read.
        publish(pure, principal="ana", period=JANUARY, max_epsilon="0.1")
    assert not plan.output.folder.exists()


def test_invariants_that_contradict_each_other_are_refused_before_anything_is_charged(tmp_path):
    plan = world(tmp_path)
    (known, *_) = plan.invariants
    plan = replace(plan, invariants=(known, replace(known, value=known.value + 1)))
    with pytest.raises(dp.InvalidParameter):
        publish(plan, principal="ana", period=JANUARY)
    assert entries(plan) == []


def test_every_period_is_paid_by_itself_until_the_budget_is_used_up(tmp_path):
    plan = world(tmp_path, ("epsilon = 40", "epsilon = 1.2"))
    first, second = (publish(plan, principal="ana", period=one) for one in (JANUARY, FEBRUARY))
    assert (first.name, second.name) == ("stays-2026-01", "stays-2026-02")
    with pytest.raises(dp.BudgetExceeded):
        publish(plan, principal="ana", period=MARCH)
    assert [entry.content["key"] for entry in entries(plan)] == [KEY, "release/stays/2026-02"]
    assert not (plan.output.folder / "stays-2026-03").exists()


def test_periods_that_are_none_are_refused(tmp_path):
    plan = world(tmp_path)
    with pytest.raises(dp.InvalidParameter, match="say which period"):
        publish(plan, principal="ana")
    with pytest.raises(dp.InvalidParameter, match="no period of this plan"):
        publish(plan, principal="ana", period=Period(label="2026-01", first=date(2026, 1, 2), end=date(2026, 2, 2)))
    with pytest.raises(dp.Refused, match="is not over"):
        publish(plan, principal="ana", period=JANUARY, today=date(2026, 1, 31))
    once = world(tmp_path, ('[schedule]\nevery = "month"\nfirst = 2026-01-01\ncolumn = "admitted"\n', ""))
    with pytest.raises(dp.InvalidParameter, match="releases once"):
        publish(once, principal="ana", period=JANUARY)
    assert publish(once, principal="ana").name == "stays-once"


def test_sources_that_lack_a_column_are_refused_before_the_charge(tmp_path):
    plan = world(tmp_path)
    with pytest.raises(dp.DiscreetError, match="cost"):
        publish(plan, principal="ana", period=JANUARY, tables={"stays": stays().drop_columns("cost")})
    assert entries(plan) == []


def test_what_was_not_announced_is_not_charged(tmp_path, monkeypatch):
    plan = world(tmp_path)
    announced = price(plan, JANUARY)
    first, second, *rest = announced.tables
    other = replace(announced, tables=(replace(first, priced=second.priced), second, *rest))
    monkeypatch.setattr(release_order, "price", lambda *given, **named: other)
    with pytest.raises(dp.Refused, match="table 'by_sex' has another price or other noise"):
        publish(plan, principal="ana", period=JANUARY)
    assert entries(plan) == []


def test_tables_can_be_handed_over(tmp_path):
    plan = world(tmp_path, ('source = "stays.parquet"\n', ""))
    assert publish(plan, principal="ana", period=JANUARY, tables={"stays": stays()}).exists()


def test_a_failure_after_the_charge_is_made_up_for_without_a_charge_once_it_is_released(tmp_path, monkeypatch):
    plan = world(tmp_path)
    monkeypatch.setattr(WorkerEngine, "run_all", None)
    with pytest.raises(dp.AnswerFailed):
        publish(plan, principal="ana", period=JANUARY)
    assert len(entries(plan)) == 1
    assert not plan.output.folder.exists()
    monkeypatch.undo()
    with pytest.raises(dp.AnswerFailed):
        publish(plan, principal="ana", period=JANUARY)
    file = tmp_path / "plan.toml"
    (failed,) = ledger_support.claims_of(file)
    assert ledger_support.released(file, failed.charge.id, reason="mended", principal="custodian") == ()
    publish(plan, principal="ana", period=JANUARY)
    assert len(entries(plan)) == len(answers(plan)) == 1


@pytest.mark.long
def test_two_who_publish_at_once_pay_once_and_write_the_same(tmp_path):
    plan, found = world(tmp_path), []
    together = threading.Barrier(2)

    def work() -> None:
        together.wait()
        found.append(publish(plan, principal="ana", period=JANUARY))

    workers = [threading.Thread(target=work) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(found) == 2
    assert found[0] == found[1]
    assert len(entries(plan)) == len(answers(plan)) == 1
    checked = verify_bundle(found[0], ledger=plan.policy.ledger)
    assert checked.ok, str(checked)


SERIES = """
[[running]]
name = "stays_so_far"
title = "Stays so far"
from = "stays"
day = "admitted"
first = 2026-01-01
days = 59
max_days = 1
rho = 0.01
"""
LAST = 'reason = "published by law since 1998"\n'


@pytest.mark.long
def test_a_series_goes_on_with_every_period_and_is_paid_once(tmp_path):
    plan = world(tmp_path, (LAST, LAST + SERIES))
    for turn, period in enumerate((JANUARY, JANUARY, FEBRUARY)):
        bundle = publish(plan, principal="ana", period=period)
        assert len(entries(plan)) == (2, 2, 3)[turn]
        assert len((bundle / "tables" / "stays_so_far.csv").read_text().splitlines()) == 1 + (31, 31, 59)[turn]
        checked = verify_bundle(bundle, ledger=plan.policy.ledger)
        assert checked.ok, str(checked)
    assert {entry.content["key"] for entry in entries(plan)} == {
        KEY,
        "release/stays/2026-02",
        "running/stays/stays_so_far",
    }


def test_what_a_series_costs_is_counted_before_the_first_charge(tmp_path):
    plan = world(tmp_path, (LAST, LAST + SERIES))
    with pytest.raises(dp.Refused, match=r"more than the ε = 1\.01"):
        publish(plan, principal="ana", period=JANUARY, max_epsilon="1.01")
    dear = world(tmp_path / "dear", (LAST, LAST + SERIES.replace("0.01", "2")), ("epsilon = 40", "epsilon = 4"))
    with pytest.raises(dp.BudgetExceeded):
        publish(dear, principal="ana", period=JANUARY)
    assert entries(plan) == entries(dear) == []


def test_quantiles_have_intervals_in_a_bundle_where_the_plan_pays_for_them(tmp_path):
    """Of a table by its SQL and of a family; the price stays what it was, and all texts say of what they are."""
    sql = (
        '"SELECT sex, COUNT(*) AS stays FROM stays GROUP BY sex"',
        '"SELECT sex, COUNT(*) AS stays, MEDIAN(cost) AS middle, MAX(cost) AS top, MAX(cost) / (1 + 1) AS part '
        'FROM stays GROUP BY sex"',
    )
    family = ('measures = { stays = "COUNT(*)"', 'measures = { stays = "COUNT(*)", half = "MEDIAN(cost)"')
    asked = (
        ('name = "by_sex"\n', 'name = "by_sex"\nquantile_intervals = true\n'),
        ('where = "cost > 0"', 'where = "cost > 0"\nquantile_intervals = true'),
    )
    common = (*SMALLER, ("rho = 0.02", "rho = 2"), sql, family)
    plain, plan = world(tmp_path / "plain", *common), world(tmp_path / "asked", *common, *asked)
    assert price(plain).total == price(plan).total
    assert "have no ±" in str(price(plain))
    assert "Quantiles whose ± is found in the data, and paid for" in str(price(plan))
    assert "have no ±" not in str(price(plan))
    bundle = publish(plan, principal="ana", period=JANUARY)
    assert not verify_bundle(bundle, ledger=plan.policy.ledger).problems
    known = json.loads((bundle / "dictionary.json").read_text(encoding="utf-8"))
    tables = {table["name"]: table["files"][0]["columns"] for table in known["tables"]}
    meanings = {column["name"]: column["meaning"] for column in tables["by_sex"]}
    assert "which holds the exact middle of the counted rows" in meanings["middle_low"]
    assert "which holds the exact 0.99 quantile of cost of the counted rows" in meanings["top_high"]
    assert "which holds the exact part with the 0.99 quantile as MAX, of the counted rows" in meanings["part_low"]
    assert "no interval" not in meanings["middle"]
    assert {"half_low", "half_high"} <= {column["name"] for column in tables["stays_by_district"]}
    assert "holds the quantile 0.5 of the rows that were counted" in (bundle / "report.html").read_text("utf-8")
    plain_bundle = publish(plain, principal="ana", period=JANUARY)
    assert "quantile_intervals pays for a ±" in (plain_bundle / "dictionary.json").read_text(encoding="utf-8")


def test_five_numbers_are_published_as_columns_and_drawn_as_boxes(tmp_path):
    """Of a table by its SQL and of a family: files, dictionary, tidy values and report have each quantile."""
    sql = (
        '"SELECT sex, COUNT(*) AS stays FROM stays GROUP BY sex"',
        '"SELECT sex, COUNT(*) AS stays, FIVE_NUMBERS(cost) AS cost FROM stays GROUP BY sex"',
    )
    family = ('measures = { stays = "COUNT(*)"', 'measures = { stays = "COUNT(*)", spent = "FIVE_NUMBERS(cost)"')
    paid = ('name = "by_sex"\n', 'name = "by_sex"\nquantile_intervals = true\n')
    plan = world(tmp_path, *SMALLER, ("rho = 0.02", "rho = 2"), sql, family, paid)
    assert "cost_q50 in by_sex" in str(price(plan))
    bundle = publish(plan, principal="ana", period=JANUARY)
    assert not verify_bundle(bundle, ledger=plan.policy.ledger).problems
    known = json.loads((bundle / "dictionary.json").read_text(encoding="utf-8"))
    tables = {table["name"]: table["files"][0]["columns"] for table in known["tables"]}
    meanings = {column["name"]: column["meaning"] for column in tables["by_sex"]}
    assert "quantile" in meanings["cost_q25"]
    assert "which holds the exact 0.25 quantile" in meanings["cost_q25_low"]
    assert {f"spent_q{end}" for end in ("05", "25", "50", "75", "95")} <= {
        column["name"] for column in tables["stays_by_district"]
    }
    report = (bundle / "report.html").read_text("utf-8")
    assert report.count("box plots of 5, 25, 50, 75 and 95 %") == 3
    assert "median (25 to 75 %)" in report
    assert "<script" not in report


@needs_postgres
def test_a_release_is_the_same_after_its_ledger_was_moved_to_a_server(tmp_path, monkeypatch, postgres_database):
    """The plan names the new place: its bundle was taken for another release, and verified in part only."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    plan = world(tmp_path, *SMALLER)
    bundle = publish(plan, principal="ana", period=JANUARY)
    before = files_of(bundle)
    place = f"{postgres_database}?schema=t_{secrets.token_hex(6)}"
    move(plan.policy.ledger, place, reason="two machines", principal="ana")
    moved = plan_in(tmp_path, *SMALLER, ('ledger = "hospital.ledger"', f'ledger = "{place}"'))
    assert publish(moved, principal="ana", period=JANUARY) == bundle
    assert files_of(bundle) == before
    assert verify_bundle(bundle, ledger=place).outcome == "verified"


def test_an_interval_for_a_population_is_said_to_hold_what_the_rows_were_drawn_from(tmp_path):
    """Means and quantiles of a table that asks for it, and nothing else; guarantee and report say it too."""
    sql = (
        '"SELECT sex, COUNT(*) AS stays FROM stays GROUP BY sex"',
        '"SELECT sex, COUNT(*) AS stays, SUM(cost) AS spent, AVG(cost) AS mean, MEDIAN(cost) AS middle, '
        'MAX(cost) AS top, AVG(cost) / 1000 AS part, FIVE_NUMBERS(cost) AS cost FROM stays GROUP BY sex"',
    )
    asked = (
        'name = "by_sex"\n',
        'name = "by_sex"\nquantile_intervals = true\npopulation = true\nmax_rows_per_group = 1\n',
    )
    plan = world(tmp_path, *SMALLER, ("rho = 0.02", "rho = 2"), sql, asked)
    bundle = publish(plan, principal="ana", period=JANUARY)
    assert not verify_bundle(bundle, ledger=plan.policy.ledger).problems
    known = json.loads((bundle / "dictionary.json").read_text(encoding="utf-8"))
    tables = {table["name"]: table["files"][0]["columns"] for table in known["tables"]}
    meanings = {column["name"]: column["meaning"] for column in tables["by_sex"]}
    drawn = "of what the counted rows were drawn from, if they were drawn independently of each other"
    said = {
        "mean_low": f"holds the mean {drawn}",
        "middle_high": f"holds the middle {drawn}",
        "top_low": f"holds the 0.99 quantile of cost {drawn}",
        "cost_q25_low": f"holds the 0.25 quantile of cost {drawn}",
        "part_high": f"holds the part, its means and quantiles being those {drawn}",
        "stays_low": "holds the exact stays of the counted rows",
        "spent_low": "holds the exact spent of the counted rows",
    }
    for name, words in said.items():
        assert f"{words}{',' if drawn in words else ''} with 95 % confidence" in meanings[name]
    others = [column["meaning"] for name in tables if name != "by_sex" for column in tables[name]]
    assert drawn not in " ".join(others)
    for name, table in (("guarantee.md", "`by_sex`"), ("report.html", "by_sex")):
        text = " ".join((bundle / name).read_text("utf-8").split())
        assert f"the exact value of the counted rows (of means and quantiles in {table}: that {drawn})" in text
