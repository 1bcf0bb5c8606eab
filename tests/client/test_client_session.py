"""The client has the verbs of a session: the same tables to the last bit, the same errors, and the same sums."""

from __future__ import annotations

import pickle
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest
from client_world import Listening
from server_world import COUNT, GROUPED, prepare

import discreet as dp
from discreet import client as client_module
from discreet import http_client
from discreet.client import NotAnsweredYet, ServerUnavailable, connect
from discreet.errors import AnswerFailed, LedgerUnavailable
from discreet.ledger import Ledger
from discreet.query import ReleaseTable
from discreet.query.plan.explain import Explanation
from discreet.query.session.plans import Plan
from discreet.server.sign_in import device_flow
from discreet.server.sign_in.device_flow import DeviceCodes

MEAN = "SELECT clinic, AVG(age) AS age, COUNT(*) AS n FROM visits GROUP BY clinic"


def session_of(served):
    return served.world.server.shelf["one"].session


@pytest.mark.long
def test_the_whole_way_of_a_question(served):
    with served.connect() as server:
        assert (server.name, server.role, server.datasets) == ("analyst", "analyst", ("one",))
        data = server.dataset("one")
        assert data.tables["visits"].columns["age"].high == 120
        before = data.spent.charges
        plan = data.sql(MEAN, epsilon=Fraction(1, 3))
        assert plan.cost == session_of(served).sql(MEAN, epsilon=Fraction(1, 3)).cost
        assert plan.affordable
        assert isinstance(plan.explain(), Explanation)
        assert "±" in dict(plan.explain().errors)["age"]
        assert "DUMMY" in plan.dummy().notes[0]
        assert data.spent.charges == before
        table = plan.release()
        assert isinstance(table, ReleaseTable)
        assert data.spent.charges == before + 1
        assert data.history()[0].purpose == MEAN
        assert next(data.releases()).text == MEAN
        assert data.questions_left() > 0


@pytest.mark.long
def test_an_answer_is_the_stored_one_to_the_last_bit(served):
    """Means have denominators that no float has: as JSON they would be rounded."""
    data = served.data()
    table = data.sql(MEAN, epsilon="0.5").release()
    stored = served.world.server.jobs.get(next(data.releases()).id).answer
    assert table.to_json() == stored
    assert any(table["age"][row].value.denominator > 1 for row in range(len(table)))
    assert table._repr_html_() == ReleaseTable.from_json(stored)._repr_html_()


@pytest.mark.long
def test_sums_are_those_of_the_ledger_exactly(served):
    data, session = served.data(), session_of(served)
    data.sql(COUNT["sql"], epsilon="1/7").release()
    assert data.spent == session.spent
    assert data.left == session.left
    assert data.left.epsilon.denominator % 7 == 0
    assert data.budget == session.spent.budget
    assert data.money() == session.for_principal("analyst").money()
    assert "<svg" in data.left._repr_html_()
    assert served.data("auditor").verify() == data.spent.charges


@pytest.mark.long
def test_one_plan_is_paid_once_and_another_plan_again(served):
    data, before = served.data(), served.charges
    plan = data.sql(COUNT["sql"], epsilon="0.1")
    first, again = plan.release(), plan.release()
    assert first.to_json() == again.to_json()
    assert served.charges == before + 1
    data.sql(COUNT["sql"], epsilon="0.1").release()  # Its noise is its own, and may be the same number by chance.
    assert served.charges == before + 2
    named = [data.sql(COUNT["sql"], epsilon="0.1", idempotency_key="report") for _ in range(2)]
    assert named[0].release().to_json() == named[1].release().to_json()
    with pytest.raises(dp.Refused, match="another question"):
        data.sql(COUNT["sql"], epsilon="0.2").release(idempotency_key="report")
    assert served.charges == before + 3


REFUSED = (
    "SELECT age FROM visits",
    "SELECT COUNT(*) AS n\nFROM visits\nWHERE random() > 1",
    "SELECT COUNT(*) AS n FROM nowhere",
    "SELEC",
)


@pytest.mark.parametrize("sql", REFUSED)
def test_what_is_refused_is_refused_in_the_words_of_a_session(served, sql):
    with pytest.raises(dp.Refused) as here:
        session_of(served).sql(sql, epsilon=1)
    with pytest.raises(dp.Refused) as there:
        served.data().sql(sql, epsilon=1)
    assert str(there.value) == str(here.value)
    for field in ("line", "column", "caret", "excerpt", "reason", "way_out", "problem"):
        assert getattr(there.value, field) == getattr(here.value, field)


def test_errors_are_those_of_the_library(served, monkeypatch):
    data, before = served.data(), served.charges
    with pytest.raises(dp.BudgetExceeded, match="ε = 21"):
        data.sql(COUNT["sql"], epsilon=21).release()
    for wrong in ({}, {"epsilon": 1, "rho": 1}, {"epsilon": -1}, {"epsilon": True}, {"epsilon": "nan"}):
        with pytest.raises(dp.InvalidParameter):
            data.sql(COUNT["sql"], **wrong)
    with pytest.raises(dp.InvalidParameter):
        served.connect().dataset("two")
    with pytest.raises(dp.NotAuthorised):
        connect(served.address, token="dsc_" + "0" * 40)
    with pytest.raises(dp.NotAuthorised):
        served.data("reader").sql(COUNT["sql"], epsilon=1)
    assert served.charges == before

    def broken(*_, **__):
        raise LedgerUnavailable("the disk is full")

    monkeypatch.setattr(Ledger, "times_left", broken)
    with pytest.raises(dp.LedgerUnavailable):
        served.data(patience=0.01).sql(COUNT["sql"], epsilon=1)


def test_a_release_that_fails_after_its_charge_is_the_constant_failure(served, monkeypatch):
    plan = served.data().sql(COUNT["sql"], epsilon="0.1")

    def broken(*_, **__):
        raise AnswerFailed

    monkeypatch.setattr(Plan, "release", broken)
    for _ in range(2):
        with pytest.raises(AnswerFailed) as failed:
            plan.release()
        assert str(failed.value) == str(AnswerFailed())


@pytest.mark.long
def test_waiting_ends_when_it_should_and_goes_on_later(tmp_path):
    """The release is not answered before somebody lets it: a wait of its own ends, another one gets the answer."""
    from threading import Event

    let = Event()
    prepare(tmp_path)
    with Listening(tmp_path, until=lambda moment, known: let.wait(100)) as served:
        plan, told = served.data().sql(COUNT["sql"], epsilon="0.1"), []
        with pytest.raises(NotAnsweredYet) as late:
            plan.release(timeout=1.5, on_progress=lambda state, gone: told.append((state, gone)))
        assert isinstance(late.value, TimeoutError)
        assert {state for state, _ in told} <= {"queued", "running"}
        assert len(told) >= 2
        let.set()
        table = late.value.release.wait(timeout=100)
        assert plan.release().to_json() == table.to_json()
        assert served.connect().release(late.value.release.id).answer().to_json() == table.to_json()
        assert served.charges == 1


@pytest.mark.long
def test_pages_are_gone_through(served, monkeypatch):
    monkeypatch.setattr(client_module, "_PAGE", 2)
    data = served.data()
    plans = [data.sql(GROUPED["sql"], epsilon="0.01") for _ in range(5)]
    numbers = [plan.submit().id for plan in plans]
    for plan in plans:
        plan.release()
    assert [one.id for one in data.releases()][:5] == numbers[::-1]
    listed = data.history()
    assert [one.number for one in listed] == sorted({one.number for one in listed}, reverse=True)
    assert len(listed) == sum(entry.content["principal"] == "analyst" for entry in charges(served))
    assert "for what" in repr(listed)
    assert "<table" in listed._repr_html_()


def charges(served):
    return [entry for entry in session_of(served).history() if entry.kind == "charge"]


def test_a_page_after_somebody_elses_release_is_empty(served):
    """Whose release it is that was named is not told, not even by what follows."""
    served.data().sql(COUNT["sql"], epsilon="0.1").release()
    other = served.data("owner").sql(COUNT["sql"], epsilon="0.1").submit().id
    analyst = served.world.client("analyst")
    for name in (other, "0" * 32, "x"):
        assert analyst.get("/v1/datasets/one/releases", params={"after": name}).json() == {"releases": []}


@pytest.mark.long
def test_every_word_of_a_session_is_sent(served):
    data, session = served.data(), session_of(served)
    words = {"keys": {"clinic": ["Harbour", "Market"]}, "max_groups": None, "quantile_intervals": True}
    asked = "SELECT clinic, MEDIAN(age) AS age FROM visits GROUP BY clinic"
    plan, own = data.sql(asked, epsilon="0.3", **words), session.sql(asked, epsilon="0.3", **words)
    assert dict(plan.explain().errors) == dict(own.explain().errors)
    for said in ({"error": 50}, {"relative_error": "0.1", "expected": 400}, {"share": 0.01}):
        assert data.sql(COUNT["sql"], **said).cost == session.sql(COUNT["sql"], **said).cost
    wanted = {"relative_error": "0.1", "expected": {"*": 400}}
    assert data.sql(COUNT["sql"], **wanted).cost == session.sql(COUNT["sql"], **wanted).cost
    for wrong in ({"keys": {"clinic": [1.5]}}, {"expected": 1.5}, {"expected": True}):
        with pytest.raises(dp.InvalidParameter):
            data.sql(COUNT["sql"], epsilon=1, **wrong)


@pytest.mark.long
def test_work_is_priced_tried_released_and_saved(served, tmp_path):
    """A profile: its price, a trial on made-up rows, the release, paid once, and its files."""
    data, before = served.data("custodian"), served.charges
    assert data.plans == ()
    work = data.profile(epsilon="0.5", table="visits")
    assert work.affordable
    assert "ε" in work.cost
    assert "profile.html" in work.dummy().names
    assert served.charges == before
    made = work.release(timeout=200)
    paid = served.charges - before
    assert paid >= 1
    assert made.told["table"] == "visits"
    again = work.release(timeout=200)
    assert served.charges == before + paid
    assert again.read("profile.json") == made.read("profile.json")
    (page, document) = made.save(tmp_path / "profile")
    assert page.read_bytes().startswith(b"<!")
    assert document.name == "profile.json"
    with pytest.raises(FileExistsError):
        made.save(tmp_path / "profile")
    with pytest.raises(dp.InvalidParameter):
        made.read("../visits.csv")
    listed = next(data.releases())
    assert (listed.kind, listed.state) == ("profile", "done")
    with pytest.raises(dp.InvalidParameter, match="no question"):
        listed.answer()


def test_work_that_cannot_be_done_is_refused_as_everywhere(served):
    data = served.data("custodian")
    for wrong in (
        lambda: data.profile(epsilon="-1"),
        lambda: data.profile(epsilon="1", table="nowhere"),
        lambda: data.synthesize(epsilon="1", delta="1e-6", method="magic"),
        lambda: data.train("linear", target="nowhere", features=["age"], epsilon="1", delta="1e-6"),
        lambda: data.publish(),
        lambda: data.publish("nowhere"),
        lambda: data.publish(toml="x ="),
    ):
        with pytest.raises((dp.InvalidParameter, dp.Refused)):
            wrong()


def test_displays_name_no_token(served):
    token = served.world.tokens["analyst"]
    server = served.connect()
    data = server.dataset("one")
    plan = data.sql(COUNT["sql"], epsilon="0.1")
    release = plan.submit()
    for one in (server, data, plan, release, data.describe(), data.tables, server._link, server._link._http.headers):
        assert token not in f"{one!r}{one}"
        assert token not in getattr(one, "_repr_html_", str)()
    with pytest.raises(dp.Refused):
        pickle.dumps(server)
    with pytest.raises(ServerUnavailable) as lost:
        connect("http://127.0.0.1:9", token=token, patience=0.01)
    assert token not in repr(lost.value)


def test_the_token_is_taken_from_the_environment_if_none_is_said(served, monkeypatch):
    monkeypatch.setenv("DISCREET_TOKEN", served.world.tokens["owner"])
    monkeypatch.setenv("DISCREET_SERVER", served.address)
    assert connect().role == "owner"
    monkeypatch.delenv("DISCREET_SERVER")
    with pytest.raises(dp.InvalidParameter, match="DISCREET_SERVER"):
        connect()


class TestCodes:
    """A program without a token shows a code, and a person allows it on the page."""

    @pytest.fixture(autouse=True)
    def hurried(self, monkeypatch):
        monkeypatch.delenv("DISCREET_TOKEN", raising=False)
        monkeypatch.setattr(device_flow, "_INTERVAL", 1.0)

    def person(self, served, told, **decided):
        """Somebody who reads the code and decides, as on the page."""
        code = told.rpartition(" ")[2]
        state, accounts = served.world.server.state, served.world.server.accounts
        caller = accounts.visitor(accounts.accept(accounts.invite("analyst", by="test"))[0])
        said = {"scopes": ["read", "ask"], "datasets": None, "cap": None} | decided
        DeviceCodes(state, accounts).decide(caller, code, **said)

    @pytest.mark.long
    def test_what_a_person_allows_is_what_the_program_may(self, served):
        shown = []

        def show(told):
            shown.append(told)
            self.person(served, told)

        server = connect(served.address, show_code=show)
        assert server.name == "analyst"
        assert shown[0].startswith(f"To let this program in, open {served.address}/device and type ")
        plan = server.dataset("one").sql(COUNT["sql"], epsilon="0.1")
        with pytest.raises(dp.NotAuthorised):  # They were asked for releases, and did not allow them.
            plan.release()

    @pytest.mark.long
    def test_a_program_that_is_denied_or_forgotten_is_told_so(self, served, monkeypatch):
        with pytest.raises(dp.NotAuthorised, match="denied"):
            connect(served.address, show_code=lambda told: self.person(served, told, scopes=[]))
        monkeypatch.setattr(http_client, "_LONGEST_LOGIN", 1.5)
        with pytest.raises(dp.NotAuthorised, match="in time"):
            connect(served.address, show_code=lambda told: None)


@pytest.mark.slow
def test_the_example_starts_a_server_and_asks_it(tmp_path):
    file = Path(__file__).parents[2] / "examples" / "ask_a_server.py"
    done = subprocess.run([sys.executable, str(file), str(tmp_path)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    for told in ("ε = 0.5", "DUMMY", "Harbour", "7 more like the last charge", "rows themselves are never shown"):
        assert told in done.stdout
