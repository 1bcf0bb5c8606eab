"""Four eyes: what waits, who may let it go, and that nothing else than what was looked at is run."""

from __future__ import annotations

import json
import time
from fractions import Fraction
from pathlib import Path

import pytest
from server_world import COUNT, GROUPED, prepare, running
from system_parts import needs_postgres

from discreet.errors import InvalidParameter
from discreet.ledger import Budget
from discreet.server.accounts import AccountRole
from discreet.server.approvals import ApprovalBook, ApprovalGate, ApprovalLimits
from discreet.server.approvals_api import ApprovalDetailModel, ApprovalsModel
from discreet.server.jobs import Jobs

LIMITED = ApprovalLimits.read(["one=0.5", "one:agent=0.1"], ["one=1.1"])
BIG = COUNT | {"epsilon": "0.75"}


@pytest.fixture(scope="module")
def limited(tmp_path_factory):
    folder = tmp_path_factory.mktemp("approvals")
    prepare(folder, epsilon="1000")
    with running(folder, approvals=LIMITED) as world:
        world.server.accounts.add("eve", AccountRole.CUSTODIAN, ["one"], by="test")
        world.server.accounts.add("far", AccountRole.CUSTODIAN, ["two"], by="test")
        for name in ("eve", "far"):
            world.tokens[name] = world.token(name)
        yield world


@pytest.fixture(autouse=True)
def nothing_waits(request):
    """At most eight releases of an account wait: each test begins with none."""
    yield
    if "limited" in request.fixturenames:
        state = request.getfixturevalue("limited").server.state
        with state.changing() as database:
            database.execute("UPDATE approvals SET until = 1 WHERE state = 'awaiting'")
        ApprovalBook(state).expire()


def awaiting(world, role="analyst", asked=BIG):
    answer = world.client(role).post("/v1/datasets/one/releases", json=asked)
    assert answer.status_code == 202, answer.text
    assert answer.json()["state"] == "awaiting"
    return answer.json()["id"]


def charges(world):
    return world.server.shelf["one"].session.spent.charges


def decided(world, number):
    rows = world.server.state.rows("SELECT who, what, outcome FROM decisions WHERE about = ? ORDER BY number", number)
    return [tuple(row) for row in rows]


class TestWaiting:
    def test_a_release_above_the_limit_waits_uncharged_and_another_custodian_lets_it_go(self, limited):
        before = charges(limited)
        number = awaiting(limited)
        assert charges(limited) == before
        answer = limited.client("custodian").post(f"/v1/releases/{number}/approve", json={"reason": "fine"})
        assert answer.status_code == 200, answer.text
        found = limited.client("analyst").get(f"/v1/releases/{number}?wait=60").json()
        assert found["state"] == "done"
        assert charges(limited) == before + 1
        assert decided(limited, number) == [
            ("analyst", "release", "awaiting"),
            ("custodian", "approve", "approved"),
            ("analyst", "release", "answered"),
        ]

    def test_what_is_at_the_limit_does_not_wait(self, limited):
        limited.server.accounts.add("exact", AccountRole.ANALYST, ["one"], by="test")
        limited.tokens["exact"] = limited.token("exact")
        answer = limited.client("exact").post("/v1/datasets/one/releases", json=COUNT | {"epsilon": "0.5"})
        assert (answer.status_code, answer.json()["state"]) == (200, "done")

    def test_a_role_has_a_limit_of_its_own(self, limited):
        awaiting(limited, "agent", COUNT | {"epsilon": "0.2"})

    def test_many_small_releases_wait_by_the_limit_of_a_day(self, limited):
        limited.server.accounts.add("small", AccountRole.ANALYST, ["one"], by="test")
        limited.tokens["small"] = limited.token("small")
        states = [
            limited.client("small").post("/v1/datasets/one/releases", json=COUNT | {"epsilon": "0.5"}).json()["state"]
            for _ in range(3)
        ]
        assert states == ["done", "done", "awaiting"]  # 0.5, 1.0, and 1.5 is above 1.1.

    def test_another_data_set_has_no_limit(self, limited):
        answer = limited.client("owner").post("/v1/datasets/two/releases", json=BIG)
        assert answer.json()["state"] == "done"

    def test_what_says_no_price_waits_wherever_there_is_a_limit(self, limited):
        """Another kind of job that forgets to say what it is charged is not let through."""
        server = limited.server
        caller = server.accounts.bearer(limited.tokens["owner"])
        question = server.jobs.get(awaiting(limited)).question
        job = server.jobs.ask(caller, "one", question, "?", None, lambda: None)
        assert job.state == "awaiting"
        assert server.jobs.gate.book.of(job.id).epsilon is None

    def test_a_key_stands_for_the_release_that_waits(self, limited):
        first, second = (awaiting(limited, asked=BIG | {"idempotency_key": "once"}) for _ in range(2))
        assert first == second

    def test_releases_that_wait_are_counted(self, limited):
        limited.server.accounts.add("many", AccountRole.ANALYST, ["one"], by="test")
        limited.tokens["many"] = limited.token("many")
        for _ in range(8):
            awaiting(limited, "many")
        assert limited.client("many").post("/v1/datasets/one/releases", json=BIG).status_code == 429


class TestWhoDecides:
    @pytest.mark.parametrize("act", ["approve", "decline"])
    def test_nobody_decides_about_what_they_asked(self, limited, act):
        """By a second token and by a visit neither."""
        number = awaiting(limited, "custodian")
        other = limited.client()
        other.headers["authorization"] = f"Bearer {limited.token('custodian')}"
        for client in (limited.client("custodian"), other):
            assert client.post(f"/v1/releases/{number}/{act}", json={"reason": "mine"}).status_code == 403
        assert limited.server.jobs.get(number).state == "awaiting"
        assert limited.client("eve").post(f"/v1/releases/{number}/{act}", json={"reason": "ok"}).status_code == 200

    @pytest.mark.parametrize(("role", "status"), [("analyst", 403), ("agent", 403), ("auditor", 403), ("far", 404)])
    def test_others_than_custodians_of_the_data_set_decide_nothing(self, limited, role, status):
        number = awaiting(limited, "owner")
        assert limited.client(role).post(f"/v1/releases/{number}/approve", json={}).status_code == status
        assert limited.server.jobs.get(number).state == "awaiting"

    def test_who_made_the_token_of_an_agent_does_not_approve_what_it_asks(self, limited):
        """They have the token: four eyes would be two."""
        custodian, other = limited.client("custodian"), limited.client("eve")
        said = {"name": "agent", "scopes": ["read", "ask", "release"], "cap": "5", "days": 0.01}
        made = custodian.post("/v1/tokens", json=said)
        limited.tokens["puppet"] = made.json()["secret"]
        number = awaiting(limited, "puppet")
        for act in ("approve", "decline"):
            answer = custodian.post(f"/v1/releases/{number}/{act}", json={"reason": "mine"})
            assert answer.json()["code"] == "forbidden"
        shown = {who: client.get(f"/v1/approvals/{number}").json() for who, client in (("c", custodian), ("e", other))}
        assert {who: one["approval"]["yours_to_decide"] for who, one in shown.items()} == {"c": False, "e": True}
        assert other.post(f"/v1/releases/{number}/approve", json={"reason": "fine"}).status_code == 200

    def test_a_token_needs_the_scope(self, limited):
        number, client = awaiting(limited), limited.client()
        client.headers["authorization"] = f"Bearer {limited.token('eve', scopes=['read', 'ask', 'release', 'audit'])}"
        assert client.post(f"/v1/releases/{number}/approve", json={}).status_code == 403

    def test_it_is_decided_once(self, limited):
        number = awaiting(limited)
        url = f"/v1/releases/{number}"
        assert limited.client("eve").post(f"{url}/decline", json={"reason": "no need"}).status_code == 200
        for who, act in (("custodian", "approve"), ("eve", "decline"), ("analyst", "withdraw")):
            answer = limited.client(who).post(f"{url}/{act}", json={"reason": "x"} if act != "withdraw" else None)
            assert (answer.status_code, answer.json()["code"]) == (409, "decided")
        told = limited.client("analyst").get(url).json()
        assert (told["state"], told["problem"]["code"], told["problem"]["reason"]) == (
            "failed",
            "not-approved",
            "no need",
        )

    def test_declining_needs_a_reason(self, limited):
        number = awaiting(limited)
        assert limited.client("eve").post(f"/v1/releases/{number}/decline", json={}).status_code == 422

    def test_only_who_asked_withdraws(self, limited):
        number = awaiting(limited)
        assert limited.client("owner").post(f"/v1/releases/{number}/withdraw").status_code == 403
        assert limited.client("analyst").post(f"/v1/releases/{number}/withdraw").status_code == 200
        assert decided(limited, number)[-1] == ("analyst", "withdraw", "withdrawn")

    def test_it_expires(self, limited):
        number = awaiting(limited)
        with limited.server.state.changing() as database:
            database.execute("UPDATE approvals SET until = 1 WHERE job = ?", (number,))
        answer = limited.client("eve").post(f"/v1/releases/{number}/approve", json={})
        assert (answer.status_code, answer.json()["code"]) == (409, "decided")
        assert decided(limited, number)[-1] == ("", "approval expires", "expired")


class TestBinding:
    """An approval is for what was looked at and for nothing else."""

    @pytest.mark.parametrize(
        "changed",
        [
            {"sql": GROUPED["sql"]},
            {"offer": {"epsilon": "7"}},
            {"token": None},
            {"kind": "another", "details": {"x": 1}},
        ],
    )
    def test_a_request_that_was_changed_is_not_run(self, limited, changed):
        """What only whoever writes the state could do: the digest is compared before anything is charged."""
        number, before = awaiting(limited), charges(limited)
        request = json.loads(limited.server.state.row("SELECT request FROM jobs WHERE id = ?", number)["request"])
        with limited.server.state.changing() as database:
            database.execute("UPDATE jobs SET request = ? WHERE id = ?", (json.dumps(request | changed), number))
        answer = limited.client("eve").post(f"/v1/releases/{number}/approve", json={})
        assert answer.status_code == 409
        ApprovalBook(limited.server.state).accept(number, by="somebody on the command line")
        assert finished(limited, number).problem.kind.code == "not-approved"
        assert charges(limited) == before

    def test_a_job_that_was_queued_past_the_approval_is_not_run(self, limited):
        number, before = awaiting(limited), charges(limited)
        with limited.server.state.changing() as database:
            database.execute("UPDATE jobs SET state = 'queued' WHERE id = ?", (number,))
        assert finished(limited, number).problem.kind.code == "not-approved"
        assert charges(limited) == before

    def test_these_checks_can_fail(self, limited, monkeypatch):
        """The planted mistake: a gate that looks at nothing runs what nobody approved."""
        monkeypatch.setattr(ApprovalGate, "check_may_run", lambda self, job: None)
        number, before = awaiting(limited), charges(limited)
        with limited.server.state.changing() as database:
            database.execute("UPDATE jobs SET state = 'queued' WHERE id = ?", (number,))
        assert finished(limited, number).state == "done"
        assert charges(limited) == before + 1

    def test_a_data_set_that_was_declared_anew_needs_another_approval(self, tmp_path):
        prepare(tmp_path)
        with running(tmp_path, names=("one",), approvals=ApprovalLimits.read(["one=0.5"], [])) as world:
            numbers = [awaiting(world) for _ in range(2)]
        text = (tmp_path / "one.toml").read_text()
        (tmp_path / "one.toml").write_text(text.replace("high = 120", "high = 110"))
        with running(tmp_path, names=("one",), approvals=ApprovalLimits.read(["one=0.5"], [])) as world:
            answer = world.client("custodian").post(f"/v1/releases/{numbers[0]}/approve", json={})
            assert answer.status_code == 409
            ApprovalBook(world.server.state).accept(numbers[1], by="cli")
            assert finished(world, numbers[1]).problem.kind.code == "not-approved"
            assert charges(world) == 0

    def test_it_waits_over_a_restart_and_the_price_is_looked_up_again(self, tmp_path):
        prepare(tmp_path, epsilon="2")
        limits = {"names": ("one",), "approvals": ApprovalLimits.read(["one=0.9"], [])}
        asked = COUNT | {"epsilon": "0.95"}
        with running(tmp_path, **limits) as world:
            number = awaiting(world, asked=asked)
        with running(tmp_path, **limits) as world:
            for _ in range(2):
                world.client("owner").post("/v1/datasets/one/releases", json=COUNT | {"epsilon": "0.9"})
            answer = world.client("custodian").post(f"/v1/releases/{number}/approve", json={})
            assert (answer.status_code, answer.json()["code"]) == (409, "budget-exceeded")
            assert world.server.jobs.get(number).state == "awaiting"

    @pytest.mark.parametrize("planted", [False, True])
    def test_a_share_of_a_budget_that_was_raised_meanwhile_is_not_what_was_approved(
        self, tmp_path, monkeypatch, planted
    ):
        """It was ε = 1 when it was asked and approved, and would be ε = 10 when it runs."""
        prepare(tmp_path, epsilon="10")
        if planted:
            monkeypatch.setattr(ApprovalGate, "_costs_the_same", lambda self, job, record: True)
        with running(tmp_path, names=("one",), approvals=ApprovalLimits.read(["one=0.5"], [])) as world:
            number = awaiting(world, asked={"sql": COUNT["sql"], "share": "0.1"})
            world.server.shelf["one"].session.raise_budget(Budget(epsilon=100), reason="a test")
            ApprovalBook(world.server.state).accept(number, by="somebody")
            job, spent = finished(world, number), world.server.shelf["one"].session.spent.epsilon
            assert (job.state, spent) == (("done", 10) if planted else ("failed", 0))


@pytest.mark.long
class TestEveryKind:
    """Plans, profiles, synthetic rows and models go through the same gate."""

    @pytest.fixture(scope="class")
    def kinds(self, tmp_path_factory):
        from test_server_work import prepared

        folder = tmp_path_factory.mktemp("kinds")
        plan = prepared(folder)
        with running(folder, plans=(plan,), approvals=ApprovalLimits.read(["one=0.1"], [])) as world:
            yield world

    def test_all_of_them_wait_and_show_what_they_cost(self, kinds):
        from test_server_work import KINDS

        client, asked = kinds.client("owner"), {**KINDS, "plans": {"plan": "visits"}}
        for path, body in asked.items():
            answer = client.post(f"/v1/datasets/one/{path}/releases", json=body)
            assert (answer.status_code, answer.json()["state"]) == (202, "awaiting"), (path, answer.text)
            told = kinds.client("custodian").get(f"/v1/approvals/{answer.json()['id']}").json()
            ApprovalDetailModel.model_validate(told)
            assert told["guarantee"]
            assert told["approval"]["yours_to_decide"]
        assert charges(kinds) == 0

    def test_a_plan_that_was_approved_is_released(self, kinds):
        number = kinds.client("owner").post("/v1/datasets/one/plans/releases", json={"plan": "visits"}).json()["id"]
        assert kinds.client("custodian").post(f"/v1/releases/{number}/approve", json={}).status_code == 200
        assert finished(kinds, number).state == "done"


@needs_postgres
def test_it_is_the_same_in_a_database(postgres_database, tmp_path):
    """The record of approvals in PostgreSQL: limits of one release and of a day, decisions, expiry, lists."""
    prepare(tmp_path)
    place = Path(f"{postgres_database}?schema=approvals_{tmp_path.name[-6:]}")
    limits = ApprovalLimits.read(["one=0.5"], ["one=0.6"])
    with running(tmp_path, names=("one",), state=place, approvals=limits) as world:
        small = [world.client("owner").post("/v1/datasets/one/releases", json=COUNT | {"epsilon": "0.4"}).json()]
        small.append(world.client("owner").post("/v1/datasets/one/releases", json=COUNT | {"epsilon": "0.4"}).json())
        assert [one["state"] for one in small] == ["done", "awaiting"]
        first, second = awaiting(world), awaiting(world)
        assert world.client("custodian").post(f"/v1/releases/{first}/approve", json={}).status_code == 200
        assert finished(world, first).state == "done"
        with world.server.state.changing() as database:
            database.execute("UPDATE approvals SET until = 1 WHERE job = ?", (second,))
        listed = world.client("custodian").get("/v1/approvals").json()["approvals"]
        assert [one["state"] for one in listed] == ["expired", "approved", "awaiting"]
        assert ApprovalBook(world.server.state).found(first[:8]).job == first


def finished(world, number):
    world.server.jobs.take_approved()
    until = time.monotonic() + 60
    while not (job := world.server.jobs.get(number)).is_over:
        assert time.monotonic() < until
        time.sleep(0.01)
    return job


class TestWhatIsTold:
    def test_an_approver_sees_price_error_guarantee_and_what_is_left(self, limited):
        number = awaiting(limited)
        told = limited.client("custodian").get(f"/v1/approvals/{number}").json()
        ApprovalDetailModel.model_validate(told)
        ApprovalsModel.model_validate(limited.client("custodian").get("/v1/approvals").json())
        assert told["approval"]["why"] == "ε = 0.75 is above 0.5, the limit of one release"
        assert "±" in told["errors"]["n"]
        assert "in at most" in told["guarantee"][0]
        assert "more like it" in told["left_after"]
        assert told["approval"]["yours_to_decide"] is True

    def test_lists_are_paged_and_show_what_one_may_see(self, limited):
        mine, owners = awaiting(limited), awaiting(limited, "owner")
        listed = limited.client("custodian").get("/v1/approvals?limit=2").json()["approvals"]
        assert [one["release"] for one in listed] == [owners, mine]
        older = limited.client("custodian").get(f"/v1/approvals?limit=1&before={listed[0]['number']}").json()
        assert [one["release"] for one in older["approvals"]] == [mine]
        seen = limited.client("analyst").get("/v1/approvals").json()["approvals"]
        assert {one["who"] for one in seen} == {"analyst"}
        assert not any(one["yours_to_decide"] for one in seen)
        assert limited.client("far").get("/v1/approvals").json() == {"approvals": []}

    def test_the_log_has_no_sql_and_no_reason(self, limited):
        number = awaiting(limited)
        limited.client("eve").post(f"/v1/releases/{number}/decline", json={"reason": "SECRET"})
        log = json.dumps(limited.client("owner").get("/v1/log?limit=200").json())
        assert "SECRET" not in log
        assert "SELECT" not in log


class TestLimits:
    @pytest.mark.parametrize("said", ["visits", "=1", "visits=-1", "visits=x", ":agent=1"])
    def test_a_limit_that_cannot_be_read_is_refused(self, said):
        with pytest.raises(InvalidParameter):
            ApprovalLimits.read([said], [])

    def test_a_limit_of_a_data_set_that_is_not_there_is_refused(self):
        with pytest.raises(InvalidParameter):
            ApprovalLimits.read(["nowhere=1"], []).check(["one"])

    def test_a_role_replaces_the_limit_of_the_data_set(self):
        limits = ApprovalLimits.read(["a:b=1", "a:b:agent=0.5"], ["a:b=2"])
        assert limits.of("a:b", AccountRole.AGENT) == (Fraction(1, 2), 2)
        assert limits.of("a:b", AccountRole.OWNER) == (1, 2)

    def test_a_limit_of_all_data_sets_holds_where_there_is_no_nearer_one(self):
        """Also for those that are added on the page of data later."""
        limits = ApprovalLimits.read(["*=1", "*:agent=0.1", "visits=2"], [])
        limits.check(["visits"])
        found = {
            (name, role): limits.of(name, role)[0]
            for name in ("visits", "later")
            for role in (AccountRole.AGENT, AccountRole.OWNER)
        }
        assert list(found.values()) == [2, 2, Fraction(1, 10), 1]

    def test_a_job_is_asked_for_through_one_door(self):
        """Whoever adds another way into the queue adds the gate to it: only `_add` writes a job."""
        import inspect

        assert inspect.getsource(Jobs).count("INSERT INTO jobs") == 1
        assert "holds_back" in inspect.getsource(Jobs._add)
