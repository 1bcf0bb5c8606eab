"""Answers leave at declared times: when is a matter of what was asked and declared, never of the rows."""

from __future__ import annotations

import time
from queue import Queue
from threading import Event

import pytest
from server_world import COUNT, prepare, running
from starlette.datastructures import Headers

from discreet.errors import InvalidParameter, Refused
from discreet.query import read_policy
from discreet.query.workers.worker_engine import WorkerEngine
from discreet.server.datasets import open_shelf, trial_seconds
from discreet.server.http_limits import HttpLimits, RequestGate
from discreet.server.jobs import _until_moment
from discreet.server.listener import ServerSettings
from discreet.server.problems import Problem


class SlowClock:
    """Declared moments come when the test says so."""

    def __init__(self):
        self.reached, self.go = Queue(), Queue()

    def __call__(self, moment, known):
        self.reached.put((moment - time.monotonic(), known))
        self.go.get(timeout=240)


def eventually(found, wanted):
    until = time.monotonic() + 240
    while found() != wanted:
        assert time.monotonic() < until
        time.sleep(0.01)


@pytest.mark.long
def test_an_answer_that_is_known_is_not_told_before_its_time_and_holds_its_slot(tmp_path):
    prepare(tmp_path)
    clock = SlowClock()
    with running(tmp_path, names=("one",), until=clock, workers=1) as world:
        client, owner = world.client("analyst"), world.client("owner")
        first = client.post("/v1/datasets/one/releases?wait=0", json=COUNT).json()["id"]
        second = owner.post("/v1/datasets/one/releases?wait=0", json=COUNT).json()["id"]
        left, known = clock.reached.get(timeout=240)
        assert known.wait(240)  # It is known,
        assert client.get(f"/v1/releases/{first}?wait=0").json()["state"] == "running"  # and nobody is told,
        assert client.get(f"/v1/releases/{first}/answer.csv").status_code == 404
        assert owner.get(f"/v1/releases/{second}?wait=0").json()["state"] == "queued"  # and the slot is taken.
        assert 0 < left <= 300
        clock.go.put(None)
        assert client.get(f"/v1/releases/{first}?wait=60").json()["state"] == "done"
        assert clock.reached.get(timeout=240)[1].wait(240)
        clock.go.put(None)
        assert owner.get(f"/v1/releases/{second}?wait=60").json()["state"] == "done"


@pytest.mark.long
def test_two_jobs_of_one_account_on_one_data_set_run_one_after_the_other(tmp_path):
    """The ledger lets a principal wait for their own reads: that would make the second depend on the first."""
    prepare(tmp_path)
    clock = SlowClock()
    with running(tmp_path, until=clock, workers=3) as world:
        owner = world.client("owner")
        ids = [
            owner.post(f"/v1/datasets/{name}/releases?wait=0", json=COUNT).json()["id"]
            for name in ("one", "one", "two")
        ]
        running_now = [clock.reached.get(timeout=240)[1] for _ in range(2)]
        states = [owner.get(f"/v1/releases/{number}?wait=0").json()["state"] for number in ids]
        assert states == ["running", "queued", "running"]
        assert all(known.wait(240) for known in running_now)
        for _ in range(2):
            clock.go.put(None)
        assert clock.reached.get(timeout=240)[1].wait(240)
        clock.go.put(None)
        eventually(lambda: [owner.get(f"/v1/releases/{n}?wait=0").json()["state"] for n in ids], ["done"] * 3)


@pytest.mark.long
def test_what_is_not_known_in_time_is_charged_and_fails_like_everything_else(tmp_path, monkeypatch):
    prepare(tmp_path)
    ended = Event()
    run_all = WorkerEngine.run_all

    def slow(self, *arguments, **named):
        assert ended.wait(240)
        return run_all(self, *arguments, **named)

    monkeypatch.setattr(WorkerEngine, "run_all", slow)
    clock = SlowClock()
    with running(tmp_path, names=("one",), until=clock, workers=1) as world:
        client = world.client("analyst")
        number = client.post("/v1/datasets/one/releases?wait=0", json=COUNT).json()["id"]
        _, known = clock.reached.get(timeout=240)
        eventually(lambda: client.get("/v1/datasets/one/budget").json()["charges"], 1)
        assert not known.is_set()
        clock.go.put(None)
        told = client.get(f"/v1/releases/{number}?wait=60").json()
        assert (told["state"], told["problem"]["code"]) == ("failed", "answer-failed")
        ended.set()
        known.wait(240)
        assert client.get(f"/v1/releases/{number}?wait=0").json() == told  # What was told stays.


@pytest.mark.long
def test_nothing_tells_that_an_answer_is_known_before_its_time(tmp_path, monkeypatch):
    """Not the price of the same question, not the budget, the history, the ledger or the log."""
    prepare(tmp_path)
    file = tmp_path / "one.toml"
    file.write_text('version = "1"\n' + file.read_text())
    ended, run_all, clock = Event(), WorkerEngine.run_all, SlowClock()

    def slow(self, *arguments, **named):
        assert ended.wait(240)
        return run_all(self, *arguments, **named)

    monkeypatch.setattr(WorkerEngine, "run_all", slow)
    with running(tmp_path, names=("one",), until=clock) as world:
        owner = world.client("owner")
        number = owner.post("/v1/datasets/one/releases?wait=0", json=COUNT).json()["id"]
        _, known = clock.reached.get(timeout=240)
        eventually(lambda: owner.get("/v1/datasets/one/budget").json()["charges"], 1)

        def everything():
            paths = [
                "me",
                "datasets",
                "datasets/one",
                "log",
                f"releases/{number}?wait=0",
                f"releases/{number}/answer.csv",
            ]
            paths += [f"datasets/one/{name}" for name in ("budget", "history", "ledger", "releases")]
            asked = [owner.post(f"/v1/datasets/one/{path}", json=COUNT).json() for path in ("estimate",)]
            return asked + [owner.get(f"/v1/{path}").text for path in paths]

        before = everything()
        ended.set()
        assert known.wait(240)
        after = everything()
        clock.go.put(None)
        assert after == before
        assert owner.get(f"/v1/releases/{number}?wait=60").json()["state"] == "done"
        assert everything() != before


@pytest.mark.long
def test_the_deadline_of_the_session_is_within_the_declared_time(tmp_path):
    prepare(tmp_path)
    shelf = open_shelf([read_policy(tmp_path / "one.toml")], {"one": 5.0})
    assert float(shelf["one"].policy.resources.seconds) == 4.0
    assert shelf["one"].answer_after == 5.0
    shelf.close()


@pytest.mark.long
def test_without_a_declaration_a_trial_on_made_up_rows_says_the_time(tmp_path, monkeypatch):
    prepare(tmp_path)
    policy = read_policy(tmp_path / "one.toml")
    assert trial_seconds(policy) >= 2
    assert not (tmp_path / "one.ledger").exists()  # It was tried on nothing of theirs.


def test_until_is_a_moment_and_not_the_answer():
    known = Event()
    known.set()
    moment = time.monotonic() + 0.2
    _until_moment(moment, known)
    assert time.monotonic() >= moment


@pytest.mark.parametrize("times", [{"one": 0.5}, {"one": float("nan")}, {"two": 5.0}])
def test_times_that_cannot_be_are_refused(tmp_path, times):
    prepare(tmp_path)
    with pytest.raises(InvalidParameter):
        open_shelf([read_policy(tmp_path / "one.toml")], times)


class TestSettings:
    def test_other_machines_are_served_over_tls_only(self, tmp_path):
        for host in ("0.0.0.0", "192.0.2.1", "::", "server.example"):
            with pytest.raises(Refused, match="TLS"):
                ServerSettings(state=tmp_path / "s.db", host=host)
            with pytest.raises(Refused, match="TLS"):
                ServerSettings(state=tmp_path / "s.db", host=host, behind_proxy=True)
            pair = {"certificate": tmp_path / "c.pem", "key": tmp_path / "k.pem"}
            ServerSettings(state=tmp_path / "s.db", host=host, **pair)
        for host in ("127.0.0.1", "localhost", "::1"):
            ServerSettings(state=tmp_path / "s.db", host=host, behind_proxy=True)
        with pytest.raises(InvalidParameter):
            ServerSettings(state=tmp_path / "s.db", certificate=tmp_path / "c.pem")

    def test_ipv6_addresses_are_known_as_browsers_say_them(self, tmp_path):
        pair = {"certificate": tmp_path / "c.pem", "key": tmp_path / "k.pem"}
        for host in ("2001:db8::7", "2001:DB8:0:0::7", "[2001:db8::7]"):
            settings = ServerSettings(state=tmp_path / "s.db", host=host, **pair)
            assert "[2001:db8::7]" in settings.hosts
            assert settings.address(443) == "https://[2001:db8::7]:443"
            gate = RequestGate(None, hosts=settings.hosts, limits=HttpLimits(), tls=True)
            for said in ("[2001:db8::7]", "[2001:db8::7]:443"):
                gate._check_host(Headers({"host": said}))
            for said in ("2001:db8::7", "[2001:db8::8]:443", "[2001:db8::7"):
                with pytest.raises(Problem):
                    gate._check_host(Headers({"host": said}))

    def test_a_state_that_others_may_read_is_refused(self, tmp_path):
        prepare(tmp_path)
        (tmp_path / "server.db").touch(0o644)
        with pytest.raises(Refused, match="others may read"), running(tmp_path, names=("one",)):
            pass
