"""Saved questions, the schema on the page, programs to take away, and the page of the budget."""

from __future__ import annotations

import ast
import sqlite3
from datetime import date
from pathlib import Path

import pytest
from server_world import COUNT, GROUPED, SAVE, form_token, prepare, running

import discreet as dp
from discreet.ledger.spending import shares_by_day
from discreet.server.accounts import AccountRole
from discreet.server.datasets import AskedQuestion
from discreet.server.pages.ask_pages import python_snippet
from discreet.server.pages.budget_pages import daily, forecast
from discreet.server.pages.schema_tree import SQL_FUNCTIONS, schema_tree
from discreet.server.saved_questions import MOST_SAVED

PAYLOADS = Path(__file__).with_name("payloads.txt").read_text(encoding="utf-8").splitlines()
QUESTIONS = "/v1/datasets/one/questions"


class TestSaved:
    def test_they_are_ones_own_unless_they_are_shared(self, world):
        analyst, custodian = world.client("analyst"), world.client("custodian")
        own = analyst.post(QUESTIONS, json=SAVE | {"title": "mine", "shared": False}).json()
        shared = analyst.post(QUESTIONS, json=SAVE | {"title": "ours"}).json()
        assert own["offer"] == {"epsilon": "0.1"}
        titles = {one["title"] for one in custodian.get(QUESTIONS).json()["questions"]}
        assert "ours" in titles
        assert "mine" not in titles
        assert custodian.get(f"{QUESTIONS}/{own['id']}").status_code == 404
        assert custodian.delete(f"{QUESTIONS}/{own['id']}").status_code == 404
        assert custodian.get(f"{QUESTIONS}/{shared['id']}").json() == shared
        assert custodian.delete(f"{QUESTIONS}/{shared['id']}").status_code == 403
        for question in (own, shared):
            assert analyst.delete(f"{QUESTIONS}/{question['id']}").json() == {"deleted": question["id"]}
            assert analyst.get(f"{QUESTIONS}/{question['id']}").status_code == 404

    def test_one_is_found_under_its_data_set_only_and_by_who_sees_it(self, world):
        owner = world.client("owner")
        number = owner.post("/v1/datasets/two/questions", json=SAVE).json()["id"]
        assert owner.get(f"{QUESTIONS}/{number}").status_code == 404
        assert world.client("analyst").get(f"/v1/datasets/two/questions/{number}").status_code == 404
        assert world.client("analyst").get(f"{QUESTIONS}/{number}").status_code == 404
        browser = world.browser("analyst")
        assert browser.get("/ask", params={"dataset": "one", "question": number}).status_code == 404

    def test_agents_see_none(self, world):
        """Titles and questions are texts of others, and an agent may follow a text."""
        agent = world.client("agent")
        assert agent.get(QUESTIONS).json()["code"] == "forbidden"
        assert agent.post(QUESTIONS, json=SAVE).json()["code"] == "forbidden"

    @pytest.mark.parametrize(
        "change",
        [
            {"title": ""},
            {"title": "   "},
            {"title": "x" * 121},
            {"question": COUNT | {"sql": "x" * 20_001}},
            {"question": COUNT | {"sql": ""}},
            {"more": 1},
            {"shared": "yes"},
        ],
    )
    def test_limits(self, world, change):
        assert world.client("analyst").post(QUESTIONS, json=SAVE | change).status_code == 422

    def test_an_account_keeps_so_many_and_their_text_is_in_no_log(self, world):
        world.server.accounts.add("sam", AccountRole.ANALYST, ["one"], by="test")
        client = world.client()
        client.headers["authorization"] = f"Bearer {world.token('sam')}"
        said = SAVE | {"title": "a-title-of-sam"}
        with world.server.state.changing() as database:
            for number in range(MOST_SAVED - 1):
                row = (f"sam-{number}", "one", "sam", "t", '{"sql": "SELECT 1", "offer": {}}', 0, 1.0)
                columns = "id, dataset, name, title, request, shared, at"
                database.execute(f"INSERT INTO saved_questions ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        assert client.post(QUESTIONS, json=said).status_code == 200
        assert client.post(QUESTIONS, json=said).json()["code"] == "too-many"
        log = str(world.client("auditor").get("/v1/log").json())
        assert "question save" in log
        assert "a-title-of-sam" not in log
        assert "SELECT" not in log
        assert len(client.get(QUESTIONS, params={"limit": 200}).json()["questions"]) <= 200

    def test_a_form_saves_opens_and_deletes(self, world):
        client = world.browser("analyst")
        said = {"form_token": form_token(client.get("/ask")), "dataset": "one", "title": "By <b>hand</b>"}
        asked = {"sql": GROUPED["sql"], "way": "epsilon", "amount": "0.25", "action": "save"}
        assert client.post("/questions", data=said | asked).status_code == 303
        page = client.get("/questions", params={"dataset": "one"}).text
        assert "By &lt;b&gt;hand&lt;/b&gt;" in page
        number = page.split("question=")[1].split('"')[0]
        opened = client.get("/ask", params={"dataset": "one", "question": number}).text
        assert GROUPED["sql"] in opened
        assert 'value="0.25"' in opened
        gone = said | {"action": "delete", "question": number}
        assert client.post("/questions", data=gone).status_code == 303
        assert client.post("/questions", data=gone).status_code == 404
        assert client.post("/questions", data=said | asked | {"title": ""}).status_code == 422
        without = {name: value for name, value in (said | asked).items() if name != "form_token"}
        assert client.post("/questions", data=without).status_code == 403


ARGUMENTS = {
    **dict.fromkeys(("QUANTILE", "QUANTILE_CONT"), "age, 0.5"),
    **dict.fromkeys(("LOWER", "UPPER", "LENGTH", "TRIM", "MODE"), "clinic"),
    **dict.fromkeys(("CORR", "COVAR_POP", "COVAR_SAMP"), "age, age * age"),
    "IFNULL": "age, 0",
    "NULLIF": "age, 0",
    "COALESCE": "age, 0",
    "LEFT": "clinic, 2",
    "RIGHT": "clinic, 2",
    "SUBSTRING": "clinic, 1, 2",
    "CONCAT": "clinic, 'x'",
    "REPLACE": "clinic, 'a', 'b'",
    **dict.fromkeys(("STARTS_WITH", "ENDS_WITH", "CONTAINS"), "clinic, 'H'"),
    "POWER": "age, 2",
    "LEAST": "age, 100",
    "GREATEST": "age, 1",
    "IF": "age > 3, 1, 0",
    "COUNT_IF": "age > 3",
    "EXTRACT": "YEAR FROM CAST('2026-01-31' AS DATE)",
    "DATE_PART": "'year', DATE '2026-01-31'",
    "DATE_TRUNC": "'month', DATE '2026-01-31'",
    "DATE_DIFF": "'day', DATE '2026-01-30', DATE '2026-01-31'",
    "STRFTIME": "DATE '2026-01-31', '%Y'",
    "CAST": "age AS DOUBLE",
    "TRY_CAST": "age AS DOUBLE",
    **dict.fromkeys(["YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "DAYOFWEEK", "DAYOFYEAR"], "DATE '2026-01-31'"),
    **dict.fromkeys(("HOUR", "MINUTE", "SECOND"), "TIMESTAMP '2026-01-31 01:02:03'"),
}


class TestSchema:
    def test_every_function_that_is_offered_is_read(self, world):
        session = world.server.shelf["one"].session
        names = SQL_FUNCTIONS.split()
        first = names.index("ABS")
        for place, name in enumerate(names):
            call = f"{name}({ARGUMENTS.get(name, 'age')})"
            asked = call if place < first else f"COUNT_IF({call} IS NOT NULL)"
            session.sql(f"SELECT {asked} AS x FROM visits", epsilon=1)  # Anything else is refused.

    def test_names_and_values_are_written_as_sql_reads_them(self, tmp_path):
        clinics = '["it\'s", "Old Mill", "a\\"b"]'
        prepare(tmp_path, clinics=clinics)
        with running(tmp_path, names=("one",)) as world:
            served = world.server.shelf["one"]
            (table,) = schema_tree(served)
            (column,) = [one for one in table["columns"] if one["name"] == "clinic"]
            for _, written in column["values"]:
                served.session.sql(f"SELECT COUNT(*) AS n FROM visits WHERE clinic = {written}", epsilon=1)
            assert [one["told"] for one in table["columns"] if one["name"] == "age"] == ["integer, 0 to 120"]

    @pytest.mark.parametrize("text", ["SELECT 1", 'a\n"""b', "a\n\\", "a\nb", "\u202e", "'''", 'x\n"', *PAYLOADS])
    def test_a_program_has_texts_and_nothing_else(self, text):
        """Whatever a question holds, the program is four statements with that text in it."""
        question = AskedQuestion(sql=text, offer={"epsilon": "0.1'); import os #"})
        program = ast.parse(python_snippet("http://127.0.0.1:8000", "visits", question))
        assert [type(one).__name__ for one in program.body] == ["ImportFrom", "Assign", "Assign", "Expr"]
        constants = [one.value for one in ast.walk(program) if isinstance(one, ast.Constant)]
        assert {text, "visits", "0.1'); import os #"} <= set(constants)


class TestBudget:
    def test_shares_by_day_end_at_what_is_spent(self):
        account = dp.ledger.Account("visits", "row", dp.Relation.ADD_REMOVE, dp.Budget(epsilon=2, delta="1e-6"))
        with dp.ledger.Ledger.open("memory", account) as ledger:
            assert shares_by_day(ledger.history()) == {}
            for number in range(30):
                who = "ana" if number % 3 else "bob"
                event = dp.privacy.PureDP("0.05")
                ledger.charge(event, relation=dp.Relation.ADD_REMOVE, purpose=str(number), principal=who)
            (share,) = shares_by_day(ledger.history()).values()
            assert share == ledger.spent().share
            (own,) = shares_by_day(ledger.history(), "bob").values()
            alone = dp.ledger.Ledger.open("memory", account)
            for _ in range(10):
                alone.charge(event, relation=dp.Relation.ADD_REMOVE, purpose="", principal="bob")
            assert own == alone.spent().share < share

    def test_what_others_charge_changes_nothing_of_ones_own(self):
        account = dp.ledger.Account("visits", "row", dp.Relation.ADD_REMOVE, dp.Budget(rho=1))
        told = []
        for others in (0, 5):
            with dp.ledger.Ledger.open("memory", account) as ledger:
                for number in range(others + 2):
                    who, cost = ("bob", "0.1") if number < 2 else ("ana", "0.03")
                    event = dp.privacy.ZCDP(cost)
                    ledger.charge(event, relation=dp.Relation.ADD_REMOVE, purpose="", principal=who)
                told.append(list(shares_by_day(ledger.history(), "bob").values()))
        assert told[0] == told[1] != []

    @pytest.mark.parametrize(
        ("shares", "left", "today", "said"),
        [
            ({"2026-01-01": 0.1}, 0.9, date(2026, 1, 10), "until about 2026-04-10"),
            ({"2026-01-01": 0.1}, 0.9, date(2026, 1, 3), "the last 3 days what is left lasts until about 2026-01-30"),
            (
                {"2025-01-01": 0.1, "2026-01-01": 0.4},
                0.6,
                date(2026, 1, 1),
                "the last 30 days what is left lasts until",
            ),
            ({"2025-01-01": 0.1}, 0.9, date(2026, 1, 1), "Nothing was spent in the last 30 days"),
            ({"2026-01-01": 1e-7}, 0.9, date(2026, 1, 9), "more than a hundred years"),
            ({"2026-01-01": 1.0}, 0.0, date(2026, 1, 9), "until about 2026-01-09"),
        ],
    )
    def test_how_long_it_lasts(self, shares, left, today, said):
        assert said in forecast(shares, left, today, None)
        assert "your own pace" in forecast(shares, left, today, "ana") or "Nothing" in said

    def test_a_day_or_two_are_no_pace(self):
        assert forecast({"2026-01-01": 0.5}, 0.5, date(2026, 1, 2), None) is None

    def test_days_are_drawn_for_at_most_a_year(self):
        found = daily({"2020-01-01": 0.1, "2026-01-01": 0.5}, date(2026, 1, 3))
        assert len(found) == 366
        assert found[0][1] == 0.1
        assert found[-1] == ("2026-01-03", 0.5)
        assert daily({"2030-01-01": 0.1}, date(2026, 1, 3))[-1][0] == "2026-01-03"  # A clock that was set back.

    @pytest.mark.long
    def test_an_analyst_sees_own_charges_page_by_page_and_nothing_of_others(self, world):
        owner, analyst = world.client("owner"), world.client("analyst")
        secret = {"sql": "SELECT COUNT(*) AS the_owners_own FROM visits", "epsilon": "0.01"}
        owner.post("/v1/datasets/one/releases", json=secret)
        for number in range(27):
            asked = {"sql": f"SELECT COUNT(*) AS n{number} FROM visits", "epsilon": "0.001"}
            assert analyst.post("/v1/datasets/one/releases", json=asked).status_code == 200
        browser = world.browser("analyst")
        first = browser.get("/budget").text
        older = browser.get(first.split("before=")[1].split('"')[0].join(("/budget?dataset=one&before=", ""))).text
        assert "n26 " in first
        assert "n0 " in older
        assert "n26 " not in older.split("Your charges")[1].split("releases")[0]
        for page in (first, older):
            assert "the_owners_own" not in page
            assert "Check the ledger" not in page
        everything = world.browser("auditor").get("/budget", params={"before": "10"}).text  # The owner was the first.
        assert "the_owners_own" in everything.split("Charges")[-1]
        for wrong in ("x", "-1", "1e3", "9" * 16, "²"):
            assert browser.get("/budget", params={"before": wrong}).status_code == 422

    @pytest.mark.long
    def test_the_ledger_is_checked_on_the_page_and_a_change_is_told(self, tmp_path):
        prepare(tmp_path)
        with running(tmp_path, names=("one",)) as world:
            world.client("analyst").post("/v1/datasets/one/releases", json=COUNT)
            client = world.browser("auditor")
            said = {"form_token": form_token(client.get("/budget")), "dataset": "one"}
            assert "The record is whole: 1 charge" in client.post("/budget", data=said).text
            with sqlite3.connect(tmp_path / "one.ledger") as database:
                for trigger in database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
                    database.execute(f"DROP TRIGGER {trigger[0]}")
                database.execute("UPDATE entries SET body = replace(body, 'COUNT', 'KOUNT') WHERE idx = 2")
            answer = client.post("/budget", data=said)
            assert answer.status_code == 503
            assert "The record is whole" not in answer.text
