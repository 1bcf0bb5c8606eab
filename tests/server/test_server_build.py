"""The wizard: names stay names, every choice can be asked, and what is taken away is accepted where it is taken."""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from datetime import date
from html import unescape
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pyarrow as pa
import pytest
from server_world import form_token

import discreet as dp
from discreet.cli.command_runner import run
from discreet.release import check, read_release_plan
from discreet.server.datasets import AskedQuestion
from discreet.server.pages.question_builder import read_choice, sql_name, table_choices
from discreet.server.pages.take_away import notebook, plan_file
from discreet.server.problems import Problem

PAYLOADS = Path(__file__).with_name("payloads.txt").read_text(encoding="utf-8").splitlines()
ODD = (
    "select", "GROUP BY", 'a"b', '""', '"', "x' OR 1=1 --", "/*", "*/", "--", ";", "größe", "名前", "🦊", "a.b", "$1",
    "%s", "back\\slash", "a) FROM other --", '" , COUNT(*) AS "x', "tab\tname", *PAYLOADS,
)  # fmt: skip
CHOSEN = {
    "dataset": "one",
    "table": "visits",
    "by1": "each:clinic",
    "measure": "count",
    "way": "epsilon",
    "amount": "0.5",
}


@contextmanager
def opened(table, columns, unit="row", name="people"):
    with dp.Session(
        {name: pa.table(table)} if name != "people" else pa.table(table),
        unit=unit,
        budget=dp.Budget(epsilon=10**5),
        columns={name: columns} if name != "people" else columns,
        ledger="memory",
        dataset="people",
        principal="ana",
    ) as found:
        yield found


# --- the closed builder ---


def test_whatever_a_column_is_called_the_question_is_about_that_column_alone():
    """Every odd name as key, measure and alias: it is read back as one query of that table, grouped by that column."""
    table = {name: [1, 2] for name in ODD}
    with opened(table, {name: dp.between(0, 9, whole=True) for name in ODD}) as session:
        for name in ODD:
            built = read_choice(session.catalogue, {"by1": f"1:{name}", "measure": f"sum:{name}"})
            query = session.sql(built.sql(), epsilon=1).question
            assert [key.name for key in query.keys] == [name]
            assert [output.name for output in query.outputs] == [name, "sum"]
            assert query.source.columns[0].column == name
            assert len(query.source.columns) == 1


@pytest.mark.parametrize("name", ['t"; DROP TABLE x; --', "select", "naïve table", "<b>t</b>", "a''b"])
def test_whatever_a_table_is_called_it_is_the_one_that_is_asked(name):
    with opened({"n": [1, 2]}, {"n": dp.between(0, 9)}, name=name) as session:
        built = read_choice(session.catalogue, {"table": name})
        assert session.sql(built.sql(), epsilon=1).question.source.table == name


def test_whatever_a_category_is_it_stays_a_text():
    """The filter of every odd category leaves exactly its own rows."""
    with opened({"kind": list(ODD)}, {"kind": dp.categories(ODD)}) as session:
        for number, value in enumerate(ODD):
            built = read_choice(session.catalogue, {"only": f"{number}:kind"})
            assert built.only.value == value
            assert session.sql(built.sql(), epsilon=100).release().columns[0][0].value == 1


def test_a_name_that_is_not_quoted_would_be_found():
    """The planted mistake: a builder that writes names as they are."""
    broken = [name for name in ODD if f'SELECT "{name}"' != f"SELECT {sql_name(name)}"]
    assert broken
    with opened({broken[0]: [1]}, {broken[0]: dp.between(0, 9, whole=True)}) as session, pytest.raises(dp.Refused):
        session.sql(f'SELECT "{broken[0]}", COUNT(*) AS n FROM people GROUP BY "{broken[0]}"', epsilon=1)


@pytest.mark.parametrize(
    "said",
    [
        {"table": "nowhere"},
        {"by1": "clinic"},
        {"by1": "each:age"},
        {"by1": "7:age"},
        {"by1": "1e9:age"},
        {"by1": "each:clinic", "by2": "each:clinic"},
        {"measure": "sum:clinic"},
        {"measure": "MAX:age"},
        {"measure": "COUNT(*) FROM visits; --"},
        {"only": "99:clinic"},
        {"only": "-1:clinic"},
        {"only": "0:clinic OR 1=1"},
    ],
)
def test_what_is_not_listed_is_refused(world, said):
    with pytest.raises(Problem) as refused:
        read_choice(world.server.shelf["one"].session.catalogue, said)
    assert refused.value.kind.code == "invalid"


def test_every_choice_that_is_offered_can_be_priced():
    """All keys, measures and filters of a table of every kind of column, alone and together."""
    table = {
        "who": list(range(8)),
        "kind": ["a", "b"] * 4,
        "code": [1, 2] * 4,
        "age": [3, 4] * 4,
        "pay": [1.5, 2.5] * 4,
        "tiny": [0.1, 0.2] * 4,
        "day": [date(2024, 5, 1)] * 8,
        "ok": [True, False] * 4,
        "note": ["x"] * 8,
    }
    columns = {
        "kind": dp.categories(["a", "b"]),
        "code": dp.categories([1, 2]),
        "age": dp.between(0, 120, whole=True),
        "pay": dp.between(-5e6, 9e6),
        "tiny": dp.between(0, "0.003"),
        "day": dp.between(date(2020, 1, 1), date(2025, 12, 31)),
        "ok": dp.boolean(),
        "note": dp.text(),
    }
    with opened(table, columns, unit=dp.Unit("who", max_groups=3)) as session:
        choices = table_choices(session.catalogue.tables["people"])
        assert {key.column for key in choices.keys.values()} == {"kind", "code", "age", "pay", "tiny", "day", "ok"}
        assert {one.column for one in choices.measures.values()} == {None, "age", "pay", "tiny"}
        assert {one.column for one in choices.filters.values()} == {"kind", "code", "ok"}
        for key in choices.keys:
            built = read_choice(session.catalogue, {"by1": key})
            plan = session.sql(built.sql(), epsilon=1)
            assert 0 < plan.cells <= 2 * built.groups, key
        for measure in choices.measures:
            session.sql(read_choice(session.catalogue, {"by1": "each:kind", "measure": measure}).sql(), epsilon=1)
        for only in choices.filters:
            session.sql(read_choice(session.catalogue, {"only": only}).sql(), epsilon=1)


# --- the pages ---


def address(step, **said):
    from urllib.parse import urlencode

    return "/build?" + urlencode({**CHOSEN, **said, "step": step})


def hidden(page):
    """What the last form of a page sends."""
    form = page.text.rpartition("<form")[2]
    found = re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', form)
    return {name: unescape(value) for name, value in found}


def test_the_wizard_goes_from_data_to_release_without_sql_and_without_a_script(world):
    browser = world.browser("analyst")
    for step, text in enumerate(("Which data?", "Nobody can tell", "What do you want", "What more accuracy costs"), 1):
        page = browser.get(address(step))
        assert page.status_code == 200
        assert text in page.text
    assert "±" in page.text
    page = browser.get(address(5))
    assert "nothing was read" in page.text
    assert "bar-table" in page.text or "<svg" in page.text
    before = world.server.shelf["one"].session.spent.charges
    form = {**CHOSEN, "form_token": form_token(page), "once": "first"}
    taken = browser.post("/build", data=form)
    assert taken.status_code == 303
    assert browser.post("/build", data=form).headers["location"] == taken.headers["location"]  # Sent twice, paid once.
    job = world.server.jobs.get(dict(parse_qsl(urlsplit(taken.headers["location"]).query))["release"])
    over = world.server.jobs.over(job)
    if over is not None:
        over.result(240)
    page = browser.get(taken.headers["location"])
    assert "Released" in page.text
    assert "Harbour" in page.text
    assert world.server.shelf["one"].session.spent.charges == before + 1


def test_a_release_of_the_wizard_needs_the_form_of_the_page(world):
    browser = world.browser("analyst")
    assert browser.post("/build", data={**CHOSEN, "once": "x"}).status_code == 403
    assert world.browser("reader").get("/build").status_code == 403
    assert world.browser("auditor").get("/build/plan.toml?dataset=one").status_code == 403
    assert browser.get("/build?dataset=two").status_code == 404
    assert browser.get("/build/plan.toml?dataset=two").status_code == 404
    assert browser.get("/build/else?dataset=one").status_code == 404


@pytest.mark.parametrize("said", [{"amount": "much"}, {"amount": "-1"}, {"way": "gold"}, {"amount": "1" * 70}])
def test_a_price_that_cannot_be_read_is_asked_for_again(world, said):
    page = world.browser("analyst").get(address(5, **said))
    assert page.status_code == 422
    assert "What more accuracy costs" in page.text


def test_a_price_that_does_not_fit_is_told_before_anything_is_paid(world):
    browser = world.browser("analyst")
    spent = world.server.shelf["one"].session.spent.charges
    form = {**CHOSEN, "amount": "99", "form_token": form_token(browser.get(address(5))), "once": "dear"}
    page = browser.post("/build", data=form)
    assert page.status_code == 409
    assert "does not fit" in page.text
    assert world.server.shelf["one"].session.spent.charges == spent


def test_somebody_else_s_release_is_not_shown_by_the_wizard(world):
    owner = world.browser("owner")
    form = {**CHOSEN, "form_token": form_token(owner.get(address(5))), "once": "owner"}
    location = owner.post("/build", data=form).headers["location"]
    analyst = world.browser("analyst")
    assert analyst.get(location).status_code == 404
    release = dict(parse_qsl(urlsplit(location).query))["release"]
    assert analyst.get(f"/build/notebook.ipynb?dataset=one&release={release}").status_code == 404


# --- what is taken away ---

POLICY = """\
dataset = "odd"
ledger = "secret-folder/odd.ledger"
{relation}
[unit]
{unit}
[budget]
{budget}
[tables."odd \\"table"]
source = "secret-folder/rows.csv"
[tables."odd \\"table".columns]
"a \\"name" = {{ categories = ["it's", "b\\\\", "c\\"", "é"] }}
age = {{ low = 0, high = 120, whole = true }}
pay = {{ low = -0.5, high = 1e6, step = 0.5, missing = 3 }}
day = {{ low = 2020-01-01, high = 2025-12-31 }}
code = {{ categories = [1, 2], labels = {{ 1 = "one", 2 = "two" }} }}
ok = {{ kind = "boolean", of_unit = {of_unit} }}
note = {{ kind = "text" }}
"""
KINDS = {
    "row": ("", 'column = "row"', "epsilon = 4", "false"),
    "unit": ("", 'column = "who"\nmax_groups = 3\nname = "person"', "epsilon = 4\ndelta = 1e-6", "true"),
    "rho": ("", 'column = ["who", "where"]\nmax_groups = 2', "rho = 2", "false"),
    "replace": ('relation = "replace-one"', 'column = "who"\nunits = 90', "epsilon = 4", "false"),
    "window": ("", 'column = "who"\nwindow = "day"\ntime = "day"\nmax_groups = 2', "epsilon = 4", "false"),
    "chain": (
        "",
        'column = "home"\nmax_inner = 4\ninner = { column = ["home", "who"], budget = { epsilon = 2 } }',
        "epsilon = 4",
        "false",
    ),
}


@pytest.fixture(params=KINDS)
def declared(request, tmp_path):
    """A policy of every kind of unit and budget, and a session on rows that fit."""
    relation, unit, budget, of_unit = KINDS[request.param]
    path = tmp_path / "policy.toml"
    path.write_text(POLICY.format(relation=relation, unit=unit, budget=budget, of_unit=of_unit))
    policy = dp.query.read_policy(path)
    (tmp_path / "secret-folder").mkdir()
    rows = {
        "who": list(range(20)),
        "where": ["x"] * 20,
        "home": list(range(20)),
        'a "name': ["it's"] * 20,
        "age": [7] * 20,
        "pay": [1.0] * 20,
        "day": [date(2024, 1, 1)] * 20,
        "code": [1] * 20,
        "ok": [True] * 20,
        "note": ["x"] * 20,
    }
    tables = {'odd "table': pa.table(rows)}
    with dp.Session.from_policy(policy, principal="ana", tables=tables) as session:
        yield policy, session


@pytest.mark.parametrize(
    ("measure", "offer"),
    [
        ("count", {"epsilon": "0.3"}),
        ("count", {"error": "25"}),
        ("count", {"share": "0.05"}),
        ("mean:age", {"error": "9", "expected": 400}),
        ("median:age", {"epsilon": "0.3", "quantile_intervals": True}),
    ],
)
def test_the_plan_that_is_taken_away_is_checked_and_asks_the_same(declared, offer, measure, tmp_path):
    """`discreet plan check` takes it as it is; unit, budget and the question read back as they were."""
    policy, session = declared
    said = {"by1": 'each:a "name', "measure": measure, "only": "0:code"}
    built = read_choice(session.catalogue, said)
    question = AskedQuestion(sql=built.sql(), offer=offer)
    plan = question.plan(session)
    text = plan_file(policy, question, plan, built.words())
    assert "secret-folder" not in text
    file = tmp_path / "taken" / "plan.toml"
    file.parent.mkdir()
    file.write_text(text, encoding="utf-8")
    read = read_release_plan(file)
    check(read)
    assert (read.policy.unit, read.policy.chain, read.policy.budget) == (policy.unit, policy.chain, policy.budget)
    assert read.policy.inner_budget == policy.inner_budget
    assert {name: table.columns for name, table in read.policy.tables.items()} == {
        name: table.columns for name, table in policy.tables.items()
    }
    (published,) = read.tables
    assert published.sql == question.sql


def test_the_plan_of_the_page_is_accepted_by_the_command_line(world, tmp_path):
    page = world.browser("analyst").get("/build/plan.toml?" + urlsplit(address(5, by2="20:age")).query)
    assert page.headers["content-disposition"] == 'attachment; filename="plan.toml"'
    (tmp_path / "plan.toml").write_bytes(page.content)
    assert run(["plan", "check", str(tmp_path / "plan.toml")]) == 0


def test_the_notebook_is_valid_and_texts_in_it_stay_texts():
    nbformat = pytest.importorskip("nbformat")
    for odd in ODD:
        question = AskedQuestion(sql=f"SELECT {sql_name(odd)}", offer={"epsilon": "0.1"})
        text = notebook("http://127.0.0.1:1", odd, question, odd, release=odd)
        read = nbformat.reads(text, as_version=4)
        nbformat.validate(read)
        assert read == nbformat.reads(json.dumps(read), as_version=4)
        for cell in read.cells:
            if cell.cell_type == "code":
                compile(cell.source, "cell", "exec")
        assert f"sql({question.sql!r}," in "".join(cell.source for cell in read.cells)
