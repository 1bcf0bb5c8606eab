"""Answers leave at declared times: when is a matter of what was asked and declared, never of the rows."""

from __future__ import annotations

import asyncio
import re
import time
from concurrent.futures import ThreadPoolExecutor
from queue import Queue
from threading import Event

import pytest
from server_world import COUNT, prepare, running
from starlette.datastructures import Headers

from discreet.errors import InvalidParameter, Refused
from discreet.ledger import Ledger
from discreet.query import read_policy
from discreet.query.plan.planner import PricedQuery
from discreet.query.workers.worker_engine import WorkerEngine
from discreet.server.accounts import Accounts
from discreet.server.datasets import open_shelf, trial_seconds
from discreet.server.http_limits import HttpLimits, RequestGate
from discreet.server.jobs import _until_moment
from discreet.server.listener import ServerSettings
from discreet.server.problems import Problem
from discreet.server.state_store import ServerState


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
        clock.go.put(None)
        assert client.get(f"/v1/releases/{number}?wait=0").json() == told  # What was told stays.


@pytest.mark.long
def test_an_overrun_of_the_draw_counts_and_frees_its_slot_at_a_declared_time(tmp_path, monkeypatch):
    """A draw is not killed: its claim fails before anything is told, and when it ends is not seen."""
    prepare(tmp_path)
    ended, drawing, draw, clock = Event(), Queue(), PricedQuery.draw, SlowClock()

    def slow(self, tallied):
        drawing.put(None)
        assert ended.wait(240)
        return draw(self, tallied)

    monkeypatch.setattr(PricedQuery, "draw", slow)
    with running(tmp_path, names=("one",), until=clock, workers=1) as world:
        client, owner = world.client("analyst"), world.client("owner")
        ledger = world.server.shelf["one"].session.ledger
        for failures in range(1, 4):
            ended.clear()
            number = client.post("/v1/datasets/one/releases?wait=0", json=COUNT).json()["id"]
            drawing.get(timeout=240)
            _, known = clock.reached.get(timeout=240)
            clock.go.put(None)
            told = client.get(f"/v1/releases/{number}?wait=60").json()
            assert told["problem"]["code"] == "answer-failed"
            assert [claim.is_failed for claim in ledger.claims()] == [True] * failures  # while it still draws
            following = owner.post("/v1/datasets/one/releases?wait=0", json=COUNT).json()["id"]
            ended.set()
            left, again = clock.reached.get(timeout=240)
            assert again is known
            assert again.is_set()  # It has ended,
            assert 0 < left <= 300  # the next declared moment is awaited,
            assert owner.get(f"/v1/releases/{following}?wait=0").json()["state"] == "queued"  # and nothing begins.
            assert len(ledger.claims()) == failures  # The late draw was dropped.
            clock.go.put(None)
            assert clock.reached.get(timeout=240)[1].wait(240)
            clock.go.put(None)
            assert owner.get(f"/v1/releases/{following}?wait=60").json()["state"] == "done"
            drawing.get(timeout=240)
        number = client.post("/v1/datasets/one/releases?wait=0", json=COUNT).json()["id"]
        assert clock.reached.get(timeout=240)[1].wait(240)
        clock.go.put(None)
        told = client.get(f"/v1/releases/{number}?wait=60").json()
        assert (told["problem"]["code"], client.get("/v1/datasets/one/budget").json()["charges"]) == ("refused", 6)


@pytest.mark.long
def test_what_was_not_charged_in_time_is_not_charged_later(tmp_path, monkeypatch):
    prepare(tmp_path)
    ended, clock, may_still = Event(), SlowClock(), Accounts.may_still

    def slow(self, *arguments):
        assert ended.wait(240)
        return may_still(self, *arguments)

    monkeypatch.setattr(Accounts, "may_still", slow)
    with running(tmp_path, names=("one",), until=clock, workers=1) as world:
        client = world.client("analyst")
        number = client.post("/v1/datasets/one/releases?wait=0", json=COUNT).json()["id"]
        _, known = clock.reached.get(timeout=240)
        clock.go.put(None)
        assert client.get(f"/v1/releases/{number}?wait=60").json()["problem"]["code"] == "answer-failed"
        ended.set()
        assert known.wait(240)
        clock.go.put(None)
        assert client.get("/v1/datasets/one/budget").json()["charges"] == 0


@pytest.mark.long
def test_what_is_on_record_at_the_last_moment_is_told_at_the_next(tmp_path, monkeypatch):
    """Else whoever asks sees a failure that the ledger does not count."""
    prepare(tmp_path)
    ended, stored, clock, store = Event(), Event(), SlowClock(), Ledger.store

    def slow(self, charge, draw):
        text = store(self, charge, draw)
        stored.set()
        assert ended.wait(240)
        return text

    monkeypatch.setattr(Ledger, "store", slow)
    with running(tmp_path, names=("one",), until=clock, workers=1) as world:
        client = world.client("analyst")
        number = client.post("/v1/datasets/one/releases?wait=0", json=COUNT).json()["id"]
        clock.reached.get(timeout=240)
        assert stored.wait(240)
        clock.go.put(None)
        assert client.get(f"/v1/releases/{number}?wait=0.2").json()["state"] == "running"
        ended.set()
        clock.reached.get(timeout=240)
        assert client.get(f"/v1/releases/{number}?wait=0").json()["state"] == "running"
        clock.go.put(None)
        assert client.get(f"/v1/releases/{number}?wait=60").json()["state"] == "done"


@pytest.mark.long
def test_a_release_that_waits_for_the_ledger_holds_up_nobody_else(tmp_path, monkeypatch):
    """Nor is it paid twice under one key."""
    prepare(tmp_path)
    ended, paying, paid, pay_by = Event(), Event(), [], Accounts.pay_by

    def slow(self, token, epsilon):
        paid.append(token)
        if len(paid) == 1:
            paying.set()
            assert ended.wait(240)
        return pay_by(self, token, epsilon)

    monkeypatch.setattr(Accounts, "pay_by", slow)
    with running(tmp_path, names=("one",)) as world, ThreadPoolExecutor(3) as pool:
        client, owner = world.client("analyst"), world.client("owner")
        asked = COUNT | {"idempotency_key": "k"}
        ours = [pool.submit(client.post, "/v1/datasets/one/releases?wait=0", json=asked) for _ in range(2)]
        try:
            assert paying.wait(240)
            theirs = pool.submit(owner.post, "/v1/datasets/one/releases?wait=60", json=COUNT)
            assert theirs.result(timeout=60).json()["state"] == "done"
        finally:
            ended.set()
        assert len({one.result(timeout=60).json()["id"] for one in ours}) == 1
        assert len(paid) == 2


@pytest.mark.long
def test_decisions_are_not_written_on_the_loop_that_serves_everybody(tmp_path, monkeypatch):
    prepare(tmp_path)
    with running(tmp_path, names=("one",)) as world:
        reader, page = world.client("reader"), world.browser("reader")
        decide, loops = ServerState.decide, []

        def noted(self, *arguments, **named):
            try:
                loops.append(asyncio.get_running_loop())
            except RuntimeError:
                loops.append(None)
            return decide(self, *arguments, **named)

        monkeypatch.setattr(ServerState, "decide", noted)
        assert reader.post("/v1/datasets/one/releases", json=COUNT).status_code == 403
        assert page.get("/ask").status_code == 403
        assert loops == [None, None]


@pytest.mark.long
def test_a_job_that_waits_ends_with_its_token(tmp_path):
    prepare(tmp_path)
    clock = SlowClock()
    with running(tmp_path, names=("one",), until=clock, workers=1) as world:
        client, owner = world.client("analyst"), world.client("owner")
        owner.post("/v1/datasets/one/releases?wait=0", json=COUNT)
        number = client.post("/v1/datasets/one/releases?wait=0", json=COUNT).json()["id"]
        assert clock.reached.get(timeout=240)[1].wait(240)
        world.server.accounts.revoke(world.tokens["analyst"].split("_")[1], by="test")
        clock.go.put(None)
        assert clock.reached.get(timeout=240)[1].wait(240)
        clock.go.put(None)
        told = owner.get(f"/v1/releases/{number}?wait=60").json()
        assert told["problem"]["code"] == "forbidden"
        assert owner.get("/v1/datasets/one/budget").json()["charges"] == 1


@pytest.mark.long
def test_numbers_of_charges_do_not_tell_what_else_is_in_the_ledger(tmp_path):
    """Two data sets in one file: entries of either, and those of answers, are between their charges."""
    prepare(tmp_path)
    for name in ("one", "two"):
        file = tmp_path / f"{name}.toml"
        file.write_text(file.read_text().replace(f"{name}.ledger", "both.ledger"))
    with running(tmp_path, names=("one", "two")) as world:
        owner = world.client("owner")
        for name in ("one", "two", "one", "one"):
            assert owner.post(f"/v1/datasets/{name}/releases?wait=60", json=COUNT).json()["state"] == "done"

        def numbers(path):
            return [entry["number"] for entry in owner.get(f"/v1/datasets/{path}").json()["entries"]]

        assert (numbers("one/history"), numbers("two/history")) == ([3, 2, 1], [1])
        assert (numbers("one/history?limit=2"), numbers("one/history?before=2")) == ([3, 2], [1])


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
            # Progress is a clock: the share of the declared time that is gone.
            return asked + [re.sub(r'"progress":[0-9.e-]+', "", owner.get(f"/v1/{path}").text) for path in paths]

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
