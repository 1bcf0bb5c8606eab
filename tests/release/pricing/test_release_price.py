"""A price is within what one release may spend, tells the error that comes out, and opens no private file."""

from __future__ import annotations

import json
import re
from fractions import Fraction

import pytest
from plan_texts import plan_in

from discreet.errors import InvalidParameter, Refused
from discreet.privacy import epsilon
from discreet.privacy.relation import Relation
from discreet.query.plan.planner import joint_event
from discreet.release import check, price, to_reach
from discreet.release.plan import catalogue_of

ALLOWANCE = "epsilon = 1\ndelta = 1e-7"
PURE = (ALLOWANCE, "epsilon = 1")
CONCENTRATED = (ALLOWANCE, "rho = 0.02\ndelta = 1e-7")
LISTED = ('delta = 1e-8\nshare = 0.1', 'keys = { ward = ["A", "B"] }\nshare = 0.1')  # fmt: skip


def test_a_price_needs_no_private_file(tmp_path):
    plan = plan_in(tmp_path)
    assert not plan.policy.tables["stays"].source.exists()
    assert price(plan).event is not None
    assert set(catalogue_of(plan).tables["stays"].columns) == {"patient", *plan.policy.tables["stays"].columns}


@pytest.mark.parametrize("change", [(), PURE, CONCENTRATED], ids=["approximate", "pure", "rho"])
def test_a_release_stays_within_its_allowance_and_uses_nearly_all_of_it(change, tmp_path):
    changes = [LISTED, *([change] if change else [])]
    priced = price(plan_in(tmp_path, *changes))
    allowance = priced.plan.allowance
    assert priced.event == joint_event(table.priced.event for table in priced.tables)
    assert priced.epsilon == epsilon(priced.event, priced.delta, relation=Relation.ADD_REMOVE)
    if allowance.rho is not None:
        assert Fraction(0.999) * allowance.rho < priced.total <= allowance.rho
    else:
        assert 0.999 < priced.epsilon <= 1
    assert priced.total == sum(table.amount for table in priced.tables)


def test_hidden_groups_take_their_delta_from_the_allowance(tmp_path):
    own = price(plan_in(tmp_path))
    assert own.table("wards").offer["delta"] == Fraction("1e-8")
    assert own.table("wards").threshold
    shared = price(plan_in(tmp_path, ("delta = 1e-8\n", "")))
    assert shared.table("wards").offer["delta"] == Fraction("1e-7") / 2
    assert shared.epsilon <= 1
    with pytest.raises(InvalidParameter, match="line 25, release: tables whose groups nobody listed take"):
        price(plan_in(tmp_path, ("delta = 1e-8\n", "delta = 1e-7\n")))


def test_a_table_may_have_tighter_limits_than_the_unit(tmp_path):
    wider = ('column = "patient"\n', 'column = "patient"\nmax_groups = 3\nmax_rows_per_group = 2\n')
    own = ("relative_error = 0.02\n", "rho = 0.001\nmax_groups = 1\n")
    family = ('where = "cost > 0"\n', 'where = "cost > 0"\nmax_rows_per_group = 1\n')
    plain = price(plan_in(tmp_path, wider, ("relative_error = 0.02\n", "rho = 0.001\n")))
    tight = price(plan_in(tmp_path, wider, own, family))
    errors = [priced.table("by_sex").errors["stays"] for priced in (plain, tight)]
    assert 1.3 < errors[0] / errors[1] < 1.5  # √2: a patient is in one of two groups instead of both.
    assert tight.table("by_sex").offer["max_groups"] == 1
    assert tight.table("stays_by_district").offer["max_rows_per_group"] == 1
    assert "max_groups" not in plain.table("by_sex").offer
    with pytest.raises(
        InvalidParameter, match=r"line \d+, publish.0.*may only be tightened: the unit allows at most 1"
    ):
        price(plan_in(tmp_path, ("relative_error = 0.02\n", "max_groups = 2\n")))


def test_an_error_that_is_wanted_is_reached_by_little_more_than_it_takes(tmp_path):
    table = price(plan_in(tmp_path)).table("by_sex")
    assert Fraction(18, 1000) < table.relative_errors["stays"] <= Fraction(2, 100)


def test_the_same_offer_to_a_session_makes_the_same_price(tmp_path):
    import pyarrow as pa

    import discreet as dp

    plan = plan_in(tmp_path)
    policy = plan.policy
    # The data have a column that the plan does not speak of, and it is called like a level.
    empty = {
        "patient": ["p"],
        "region": ["R"],
        "district": ["Hill"],
        "sex": ["f"],
        "cost": [1],
        "urgent": [True],
        "ward": ["A"],
    }
    rows = pa.table(empty).append_column("admitted", pa.array([19_000], pa.int32()).view(pa.date32()))
    session = dp.Session(
        {"stays": rows},
        unit=policy.unit,
        budget=policy.budget,
        ledger="memory",
        dataset="x",
        principal="ana",
        columns={name: table.columns for name, table in policy.tables.items()},
    )
    for table in price(plan, plan.schedule.period(3)).tables:
        assert session.sql(table.sql, **table.offer).event == table.priced.event


def test_the_price_is_the_same_in_every_period(tmp_path):
    plan = plan_in(tmp_path)
    first, later = price(plan), price(plan, plan.schedule.period(7))
    assert (first.event, first.period.label, later.period.label) == (later.event, "2026-01", "2026-08")
    assert "DATE '2026-08-01'" in later.tables[0].sql


def test_days_of_the_schedule_are_those_of_the_period(tmp_path):
    by_day = ('["district", "sex"]]', '["admitted"]]')
    plan = plan_in(tmp_path, by_day, ("sex, COUNT", "admitted, COUNT"), ("BY sex", "BY admitted"))
    assert [table.expected["*"] for table in plan.tables if table.family] == [
        800 * 31,
        400 * 31,
        Fraction(800 * 31, 3),
        800,
    ]
    for number, days in ((0, 31), (1, 28)):
        priced = price(plan, plan.schedule.period(number))
        for name in ("by_sex", "stays_by_admitted"):
            table = priced.table(name)
            assert table.groups == days
            assert len(table.offer["keys"]["admitted"]) == days


def test_what_the_lifetime_budget_holds_is_told(tmp_path):
    assert (
        price(plan_in(tmp_path, LISTED)).lifetime
        > price(plan_in(tmp_path, LISTED, ("epsilon = 40", "epsilon = 9"))).lifetime
        > 9
    )
    with pytest.raises(Refused, match=r"(?s)line 10, budget.*one kind"):
        price(plan_in(tmp_path, ("epsilon = 40\ndelta = 1e-5", "rho = 5")))


def test_a_plan_may_have_a_budget_per_window_instead_of_a_lifetime_budget(tmp_path):
    windows = ("epsilon = 40\ndelta = 1e-5", '\n[[quotas]]\nwindow = "year"\nepsilon = 4\ndelta = 1e-5')
    priced = price(plan_in(tmp_path, LISTED, windows))
    assert priced.lifetime is None
    assert json.loads(priced.to_json())["releases_in_lifetime_budget"] is None
    assert "per year; k years: kε, kδ. There is no lifetime budget." in str(priced)
    assert "is right" in str(check(priced.plan))
    with pytest.raises(Refused, match="a quota does not hold one release"):
        check(plan_in(tmp_path, LISTED, (windows[0], windows[1].replace("epsilon = 4", "epsilon = 0.1"))))


def test_series_that_are_paid_for_once_leave_less_for_releases(tmp_path):
    last = 'reason = "published by law since 1998"\n'
    series = (
        '\n[[running]]\nname = "so_far"\nfrom = "stays"\nday = "admitted"\nfirst = 2026-01-01\ndays = 30\nrho = 1\n'
    )
    without, beside = price(plan_in(tmp_path, LISTED)), price(plan_in(tmp_path, LISTED, (last, last + series)))
    assert beside.event == without.event
    assert 0 < beside.lifetime < without.lifetime
    assert "so_far: ε =" in str(beside)
    assert json.loads(beside.to_json())["running"][0]["name"] == "so_far"


def test_the_list_of_prices_names_tables_errors_and_what_to_change(tmp_path):
    priced = price(plan_in(tmp_path))
    text = str(priced)
    for words in ("stays_by_district_sex", "stays ± ", "holds 200 such releases", "usually stays hidden", "ε = 1 at"):
        assert words in text
    document = json.loads(priced.to_json())
    assert [table["name"] for table in document["tables"]] == [table.name for table in priced.tables]
    assert document["epsilon"] == priced.epsilon


def test_a_mean_is_one_number_and_a_median_tells_its_rank(tmp_path):
    count, mean = "COUNT(*) AS stays FROM stays GROUP BY sex", "AVG(cost) AS stays FROM stays GROUP BY sex"
    median = ("COUNT(*) AS stays FROM stays GROUP BY ward", "COUNT(*) AS stays, MEDIAN(cost) AS middle FROM stays")
    alone = str(price(plan_in(tmp_path, (f"sex, {count}", f"sex, {mean}"), ("relative_error = 0.02", "share = 0.2"))))
    assert "by_sex pays for" not in alone
    assert "stays pays for 2 numbers in every group" in alone  # The family with a count and a sum.
    assert "Quantiles" not in alone
    text = str(price(plan_in(tmp_path, ("ward, " + median[0], median[1]), ("delta = 1e-8\nshare", "share"))))
    told = r"· middle in wards: .* its rank is off by at most \d[\d,]* rows, with 95 % confidence"
    assert re.search(told, text)


def test_what_an_error_would_take_is_told(tmp_path):
    priced = price(plan_in(tmp_path))
    reached = priced.table("by_sex").errors["stays"]
    assert "needs ρ × 4;" in to_reach(priced, "by_sex", reached / 2)
    assert "nothing needs to change" in to_reach(priced, "by_sex", reached)
    with pytest.raises(InvalidParameter, match="Did you mean 'by_sex'"):
        to_reach(priced, "by_sexx", Fraction(1))


def test_targets_that_do_not_fit_are_refused_with_their_costs_and_what_would_fit(tmp_path):
    with pytest.raises(Refused) as refused:
        price(plan_in(tmp_path, ("relative_error = 0.02", "error = 3")))
    told = str(refused.value)
    assert "by_sex takes ρ =" in told
    assert "for ± 3, and ± 9 would fit" in told
    assert "raise epsilon in [release] to" in told
    assert "times as large" in told


@pytest.mark.parametrize("change", [PURE, CONCENTRATED], ids=["pure", "rho"])
def test_what_would_fit_is_told_in_every_currency(change, tmp_path):
    with pytest.raises(Refused, match=r"(?s)for ± 0.02 %, and ± .* % would fit.*raise (epsilon|rho) in"):
        price(plan_in(tmp_path, change, LISTED, ("relative_error = 0.02", "relative_error = 0.0002")))


@pytest.mark.parametrize(
    ("changes", "line", "words"),
    [
        ([("share = 0.1", "share = 1")], 62, "leave nothing for the other tables"),
        ([("relative_error = 0.02", "share = 0.95")], 48, "make them smaller"),
        ([('expected = { "*" = 800 }\n', "")], 50, 'split = "even"'),
        ([PURE, LISTED, ("relative_error = 0.02", "rho = 0.1")], 47, "give [release] a delta"),
        ([CONCENTRATED, ("relative_error = 0.02", "epsilon = 0.1")], 48, "say rho here too"),
        ([("sex, COUNT(*)", "sex, MEDIAN(cost)"), ("relative_error = 0.02\n", "")], 47, "give it a share"),
        ([("FROM stays GROUP BY sex", "FROM stay GROUP BY sex")], 46, "stays"),
        ([("where = \"cost > 0\"", 'where = "costs > 0"')], 53, "cost"),
        ([("stays FROM", "stays, MODE(note) AS n FROM")], 46, "note = {"),
    ],
)  # fmt: skip
def test_what_cannot_be_priced_names_its_line(changes, line, words, tmp_path):
    with pytest.raises((InvalidParameter, Refused)) as refused:
        price(plan_in(tmp_path, *changes))
    assert f"plan.toml, line {line}," in str(refused.value)
    assert words in str(refused.value)


def test_a_refused_question_of_many_lines_names_its_own_line(tmp_path):
    sql = 'sql = """\nSELECT sex,\n       COUNT(*) AS stays,\n       MODE(note) AS note\nFROM stays\nGROUP BY sex\n"""'
    with pytest.raises(Refused) as refused:
        price(plan_in(tmp_path, ('sql = "SELECT sex, COUNT(*) AS stays FROM stays GROUP BY sex"', sql)))
    assert "plan.toml, line 49, publish.0.sql" in str(refused.value)
