"""Tables of a family share their noise: for the same price none is less exact, and what was released stays as it is."""

from __future__ import annotations

import csv
from contextlib import closing
from datetime import date, timedelta
from fractions import Fraction
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pytest

import discreet as dp
from discreet.errors import InvalidParameter, Refused
from discreet.privacy import epsilon
from discreet.query import Session
from discreet.query.engine import Deadline
from discreet.query.plan.planner import draw_together, joint_event
from discreet.query.plan.residuals import ResidualNoise
from discreet.query.session.engine_choice import open_here
from discreet.release import dummy, price, publish, read_release_plan, verify_bundle
from discreet.release.pricing import family_noise
from discreet.release.pricing.release_price import apart
from discreet.release.release_order import publish_in

SIZES = {"a": 2, "b": 3, "c": 4}
PLAN = """
name = "pairs"
dataset = "people"
ledger = "people.ledger"
unit = {{ column = "{unit}" {limit} }}
budget = {{ epsilon = 20, delta = 1e-5 }}

[release]
epsilon = 2
{delta}

[tables.people.columns]
{columns}
age = {{ low = 0, high = 100, whole = true }}

[[levels]]
name = "half"
of = "c"
members = {{ one = ["c0", "c1"], two = ["c2", "c3"] }}

[[publish]]
name = "n"
from = "people"
groupings = {groupings}
measures = {{ {measures} }}
expected = {{ "*" = 100, years = 3000 }}
{said}
"""
GROUPINGS = '[["a", "b"], ["a", "half"], ["c", "b"], []]'


def plan_of(folder: Path, said="", *, delta="delta = 1e-7", measures='people = "COUNT(*)"', unit="row", **more):
    columns = "\n".join(
        f"{name} = {{ categories = [{', '.join(repr(f'{name}{k}') for k in range(size))}] }}".replace("'", '"')
        for name, size in SIZES.items()
    )
    groupings, limit = more.get("groupings", GROUPINGS), more.get("limit", "")
    text = PLAN.format(
        columns=columns, said=said, delta=delta, measures=measures, unit=unit, groupings=groupings, limit=limit
    )
    (folder / "plan.toml").write_text(text)
    return read_release_plan(folder / "plan.toml")


def rows(count=60):
    table = {name: [f"{name}{(k * k + k // 3) % size}" for k in range(count)] for name, size in SIZES.items()}
    return pa.table(table | {"who": [str(k % 20) for k in range(count)], "age": [k % 90 for k in range(count)]})


def variances(priced):
    return {table.name: table.priced.variances for table in priced.tables}


def is_shared(priced) -> bool:
    return all(table.priced.draft.noising.shared is not None for table in priced.tables)


@pytest.mark.parametrize("unit", [{"unit": "row"}, {"unit": "who", "limit": ", max_rows_per_group = 3"}])
@pytest.mark.parametrize("measures", ['people = "COUNT(*)"', 'people = "COUNT(*)", years = "SUM(age)"'])
def test_no_table_is_less_exact_than_with_noise_of_its_own_and_the_price_is_the_same(tmp_path, measures, unit):
    shared = price(plan_of(tmp_path, measures=measures, **unit))
    alone = price(plan_of(tmp_path, 'aim = "apart"', measures=measures, **unit))
    assert is_shared(shared)
    assert shared.event == alone.event
    assert [table.priced.event for table in shared.tables] == [table.priced.event for table in alone.tables]
    ours, theirs = variances(shared), variances(alone)
    assert all(ours[name][column] <= theirs[name][column] for name in theirs for column in theirs[name])
    assert min(ours[name]["people"] / theirs[name]["people"] for name in theirs) < Fraction(7, 10)
    assert variances(apart(shared)) == theirs
    assert "drawn once for 4 tables, by residuals" in str(shared)
    assert "residuals" not in str(alone)


@pytest.mark.parametrize("measures", ['people = "COUNT(*)"', 'people = "COUNT(*)", ages = "COUNT(DISTINCT age)"'])
def test_a_table_is_said_to_tell_alone_what_it_tells_and_not_what_it_pays(tmp_path, measures):
    """The finest table holds all residuals of a family of two: whoever has it alone has everything."""
    groupings = '[["a", "b"], []]'
    priced = price(plan_of(tmp_path, groupings=groupings, measures=measures))
    finest, coarsest = priced.tables
    assert is_shared(priced)
    assert finest.epsilon(priced.delta) <= priced.epsilon * (1 + 1e-9)
    assert finest.epsilon(priced.delta) > priced.epsilon * 0.999 or "ages" in measures
    assert finest.epsilon(priced.delta) > 1.05 * epsilon(finest.priced.event, priced.delta)
    assert joint_event([finest.priced.event, coarsest.priced.event]) == priced.event
    alone = price(plan_of(tmp_path, 'aim = "apart"', groupings=groupings, measures=measures))
    assert [table.priced.alone for table in alone.tables] == [table.priced.event for table in alone.tables]
    folder = dummy(plan_of(tmp_path, groupings=groupings, measures=measures), tmp_path / "try")
    assert f"| `n_by_a_b` | {finest.epsilon(priced.delta):.4g} |" in next(folder.glob("guarantee*.md")).read_text()


def total(priced) -> Fraction:
    return sum((table.groups or 0) * table.priced.variances["people"] for table in priced.tables)


def test_each_aim_is_best_at_what_it_aims_at(tmp_path):
    found = {
        aim: price(plan_of(tmp_path, said))
        for aim, said in {"sum": 'aim = "sum"', "largest": 'aim = "largest"', "": "", "apart": 'aim = "apart"'}.items()
    }
    sums = {aim: total(priced) for aim, priced in found.items()}
    largest = {aim: max(one["people"] for one in variances(priced).values()) for aim, priced in found.items()}
    assert min(sums, key=sums.__getitem__) == "sum"
    assert min(largest, key=largest.__getitem__) == "largest"
    assert sums["sum"] <= sums[""] <= sums["apart"]


def test_weights_make_a_table_more_exact(tmp_path):
    plain = variances(price(plan_of(tmp_path, 'aim = "sum"')))
    weighed = variances(price(plan_of(tmp_path, 'aim = "sum"\nweights = [1, 1, 1, 50]')))
    assert weighed["n"]["people"] < plain["n"]["people"]
    assert weighed["n_by_c_b"]["people"] > plain["n_by_c_b"]["people"]


@pytest.mark.parametrize("delta", ["delta = 1e-7", ""])
@pytest.mark.parametrize("aim", ["sum", "largest"])
def test_only_the_ratios_of_weights_count(tmp_path, aim, delta):
    """The largest floats made shares that are none."""
    found = [
        variances(price(plan_of(tmp_path, f'aim = "{aim}"\nweights = {weights}', delta=delta)))
        for weights in ("[1, 1, 1, 1]", "[1e308, 1e308, 1e308, 1e308]", "[1e-300, 1e-300, 1e-300, 1e-300]")
    ]
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize(
    ("said", "more"),
    [
        ("weights = [1, 1, 1, 2]", {"delta": ""}),
        ('aim = "sum"', {"measures": 'people = "COUNT(DISTINCT age)"'}),
        ('aim = "sum"\nerror = 50', {}),
        ('aim = "largest"', {"groupings": '[["c", "half"], []]'}),
    ],
)
def test_an_aim_that_no_noise_can_have_is_refused(tmp_path, said, more):
    plan = plan_of(tmp_path, said, **more)
    with pytest.raises(Refused, match=r"line \d+, publish.0.*cannot share their noise"):
        price(plan)


@pytest.mark.parametrize("aim", ["sum", "largest"])
def test_laplace_noise_of_a_family_is_never_worse_than_even_for_what_it_aims_at(tmp_path, aim):
    def worth(said):
        priced = price(plan_of(tmp_path, said, delta=""))
        return total(priced) if aim == "sum" else max(one["people"] for one in variances(priced).values()), priced

    ours, priced = worth(f'aim = "{aim}"')
    assert not is_shared(priced)
    assert priced.epsilon <= 2
    assert "prices for the smallest" in str(priced)
    even, _ = worth('aim = "apart"')
    text = (tmp_path / "plan.toml").read_text().replace("epsilon = 2\n", 'epsilon = 2\nsplit = "even"\n')
    (tmp_path / "plan.toml").write_text(text)
    evenly = price(read_release_plan(tmp_path / "plan.toml"))
    least = total(evenly) if aim == "sum" else max(one["people"] for one in variances(evenly).values())
    assert ours <= min(even, least * Fraction(10001, 10000))
    assert aim == "largest" or ours < Fraction(99, 100) * least


def test_without_an_aim_tables_that_cannot_share_their_noise_have_their_own(tmp_path):
    assert not is_shared(price(plan_of(tmp_path, delta="")))
    assert not is_shared(price(plan_of(tmp_path, groupings='[["c", "half"], []]')))
    assert is_shared(price(plan_of(tmp_path, "error = 50")))


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ('weights = [1, 2]\naim = "sum"', "one number for each grouping: say 4 of them, not 2"),
        ('aim = "apart"\nweights = [1, 1, 1, 1]', 'leave it out with aim = "apart"'),
        ('aim = "least"', "sum"),
        ('aim = "sum"\nweights = [1e300, 1, 1, 1]', "differ by a factor"),
        ('aim = "largest"\nweights = [1, 1, 1, 1e-320]', "differ by a factor"),
    ],
)
def test_aims_and_weights_are_read_with_care(tmp_path, said, told):
    with pytest.raises(InvalidParameter, match=told):
        plan_of(tmp_path, said)


def test_a_bundle_of_shared_noise_verifies_agrees_with_itself_and_is_written_once(tmp_path):
    plan = plan_of(tmp_path, unit="who", limit=", max_rows_per_group = 3")
    bundle = publish(plan, principal="ana", tables={"people": rows()})
    assert verify_bundle(bundle, ledger=tmp_path / "people.ledger").problems == ()
    assert publish(plan, principal="ana", tables={"people": rows()}) == bundle
    assert "residuals" in (bundle / "report.html").read_text()


def test_a_release_that_was_begun_with_noise_of_its_own_goes_on_with_it(tmp_path):
    plan = plan_of(tmp_path)
    with Session.from_policy(plan.policy, principal="ana", tables={"people": rows()}) as session:
        before = publish_in(session, apart(price(plan)))
    files = {path.name: path.read_bytes() for path in before.rglob("*.csv")}
    assert verify_bundle(before, ledger=tmp_path / "people.ledger").problems == ()
    again = publish(plan, principal="ana", tables={"people": rows()})
    assert {path.name: path.read_bytes() for path in again.rglob("*.csv")} == files
    assert verify_bundle(again, ledger=tmp_path / "people.ledger").problems == ()


def test_tidy_values_are_near_to_raw_ones_that_agree_already_and_add_up(tmp_path):
    plan = plan_of(tmp_path)
    folder = dummy(plan, tmp_path / "try")
    tables = {path.name.removesuffix(".DUMMY.csv"): list(csv.DictReader(path.open())) for path in folder.rglob("*.csv")}
    totals = {name: sum(int(row["people"]) for row in rows) for name, rows in tables.items() if ".tidy" in name}
    assert len(totals) == 4
    assert len(set(totals.values())) == 1
    for name in ("n_by_a_b", "n_by_a_half", "n_by_c_b"):
        moved = [int(a["people"]) - int(b["people"]) for a, b in zip(tables[name], tables[f"{name}.tidy"], strict=True)]
        assert max(map(abs, moved)) <= 3  # Rounding of raw cells, as no cell is near zero.


def test_a_dummy_counts_the_same_made_up_rows_in_all_tables_of_a_family(tmp_path):
    plan = plan_of(tmp_path, unit="who", limit=", max_rows_per_group = 2")
    assert is_shared(price(plan))
    assert dummy(plan, tmp_path / "try").exists()


def measured(priced, table, monkeypatch, draw) -> list[dict]:
    """Return what a release of these rows measures, number by number, with noise as it is told."""
    seen: list[dict] = []
    told = ResidualNoise.tables_of
    with monkeypatch.context() as patch, closing(open_here({"people": dp.public(table)})) as engine:
        patch.setattr(
            ResidualNoise, "tables_of", lambda self, found, fine=1: seen.append(found) or told(self, found, fine)
        )
        patch.setattr("discreet.noise.rounded_gaussian", draw)
        stages = [one.priced.stage for one in priced.tables]
        draw_together([one.priced for one in priced.tables], engine.run_all(stages, deadline=Deadline.after(60)))
    return seen


@pytest.mark.parametrize("unit", [{"unit": "row"}, {"unit": "who", "limit": ", max_rows_per_group = 3"}])
def test_a_release_moves_by_what_was_charged_if_a_unit_leaves(tmp_path, monkeypatch, unit):
    """From rows to residuals: one unit has all its rows in one cell, as old as can be, another has them anywhere."""
    priced = price(plan_of(tmp_path, measures='people = "COUNT(*)", years = "SUM(age)"', **unit))
    variances = [0]

    def marked(*, variance, size):
        variances.append(variance)
        return np.full(size, len(variances) - 1, np.int64)

    def silent(*, variance, size):
        return np.zeros(size, np.int64)

    columns = rows().to_pydict()
    columns |= {name: [f"{name}1"] * 3 + column[3:] for name, column in columns.items() if name in SIZES}
    columns |= {"who": ["x"] * 3 + columns["who"][3:], "age": [100] * 3 + columns["age"][3:]}
    whole = pa.table(columns)
    marks = measured(priced, whole.slice(0, 0), monkeypatch, marked)
    before = measured(priced, whole, monkeypatch, silent)
    spent = []
    for gone in {"row": [[0], [7]]}.get(unit["unit"], [[0, 1, 2], [place for place in range(60) if place % 20 == 7]]):
        left = whole.take([place for place in range(60) if place not in gone])
        after = measured(priced, left, monkeypatch, silent)
        spent.append(
            sum(
                Fraction(int(a - b) ** 2) / variances[mark]
                for number, found in enumerate(marks)
                for one in found
                for mark, a, b in zip(*(x[number][one].ravel().tolist() for x in (marks, before, after)), strict=True)
                if a != b
            )
        )
    assert len(marks) == 2
    assert max(spent) <= priced.event.mu_squared
    assert spent[0] > Fraction(99, 100) * priced.event.mu_squared > spent[1]


def test_shared_noise_is_never_drawn_for_one_table_alone(tmp_path):
    priced = price(plan_of(tmp_path)).tables[0].priced
    with pytest.raises(RuntimeError, match="all its tables together"):
        priced.draw(None)


def test_a_family_is_said_in_one_place(tmp_path):
    """Under one name, tables of other rows or other sums shared their noise, and failed where one row was there."""
    plan_of(tmp_path)
    text = (tmp_path / "plan.toml").read_text()
    again = text[text.index("[[publish]]") :].replace(GROUPINGS, '[["b"]]').replace('name = "n"', 'name = "N"')
    (tmp_path / "plan.toml").write_text(text + again.replace("expected", 'where = "age < 50"\nexpected'))
    with pytest.raises(InvalidParameter, match="two families would be called 'N'"):
        read_release_plan(tmp_path / "plan.toml")


def test_tables_that_measure_other_things_share_no_noise(tmp_path):
    one, other = (price(plan_of(tmp_path, measures=f'years = "SUM({what})"')) for what in ("age", "age + 1"))
    drafts = [one.tables[0].priced.draft, other.tables[1].priced.draft]
    with pytest.raises(InvalidParameter, match="same numbers"):
        family_noise._numbers(drafts)
    assert family_noise._numbers([one.tables[0].priced.draft, one.tables[1].priced.draft])


class TestTrees:
    """A level is one of the column's only if each of its groups lies within one group above."""

    DOMAINS: ClassVar = {"d": tuple(range(7)), "week": tuple(range(7)), "half": (0, 1)}

    def test_as_many_pairs_as_groups_are_no_tree_if_a_group_is_missing(self):
        """Seven days of one week, and all seven weeks: 7 pairs, of which each has the same week."""
        days, weeks = np.arange(7), np.zeros(7, np.int64)
        with pytest.raises(InvalidParameter, match="cut across"):
            family_noise._tree([days, weeks], self.DOMAINS, ["d", "week"])
        with pytest.raises(InvalidParameter, match="cut across"):
            family_noise._tree([weeks, days], self.DOMAINS, ["week", "d"])

    def test_groups_within_groups_are_one(self):
        days = np.arange(7)
        tree = family_noise._tree([days // 4, days], self.DOMAINS, ["half", "d"])
        assert tree.parents == ((0, 0), (0, 0, 0, 0, 1, 1, 1))
        with pytest.raises(InvalidParameter, match="cut across"):
            family_noise._tree(
                [np.array([0, 1, 0, 1, 0, 1, 0]), days // 4], {**self.DOMAINS, "d": (0, 1)}, ["half", "d"]
            )


@pytest.mark.parametrize("where", [0, 1])
def test_a_week_of_days_is_published_wherever_its_rows_are(tmp_path, where):
    """A weekly release by days and by all weeks took every week for a part of one day, and failed after the charge."""
    days = [date(2026, 1, 5) + timedelta(days=n) for n in range(49)]
    members = ", ".join(f"w{w} = [{', '.join(map(str, days[7 * w : 7 * w + 7]))}]" for w in range(7))
    (tmp_path / "plan.toml").write_text(
        f"""
name = "weeks"
dataset = "people"
ledger = "people.ledger"
unit = {{ column = "row" }}
budget = {{ epsilon = 20, delta = 1e-5 }}

[release]
epsilon = 2
delta = 1e-7

[tables.people.columns]
d = {{ low = {days[0]}, high = {days[-1]} }}

[[levels]]
name = "week"
of = "d"
members = {{ {members} }}

[schedule]
every = "week"
first = {days[0]}
column = "d"

[[publish]]
name = "n"
from = "people"
groupings = [["d"], ["week"], []]
measures = {{ k = "COUNT(*)" }}
expected = {{ "*" = 100 }}
"""
    )
    plan = read_release_plan(tmp_path / "plan.toml")
    rows = pa.table({"d": [days[0]] * 3 + [days[where]]})
    assert publish(plan, principal="ana", period=plan.schedule.period(0), tables={"people": rows})
