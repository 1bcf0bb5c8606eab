"""Several servers on one state and one ledger: one budget, one queue, and none of them is needed for the others."""

from __future__ import annotations

import os
import random
import secrets
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from fractions import Fraction
from pathlib import Path
from threading import Event

import psycopg
import pytest
from postgres_cluster import own_cluster
from server_world import COUNT, DATASETS, prepare, running
from system_parts import needs_postgres

from discreet.server import job_queue
from discreet.server.accounts import Accounts
from discreet.server.job_queue import JobQueue
from discreet.server.jobs import Job, run_question
from discreet.server.state_server import PostgresState
from discreet.server.state_store import StateUnavailable, opened_state

pytestmark = [needs_postgres, pytest.mark.long]


class HeldClock:
    """Declared moments come when the test lets go, and answers are known by then."""

    def __init__(self):
        self.reached, self.go = Event(), Event()

    def __call__(self, moment, known):
        assert known.wait(60)
        self.reached.set()
        assert self.go.wait(60)


def eventually(found, wanted=True):
    until = time.monotonic() + 60
    while found() != wanted:
        assert time.monotonic() < until
        time.sleep(0.02)


class Site:
    """A folder with policies whose ledgers are on a database, and servers whose state is there, too."""

    def __init__(self, folder, dsn, **more):
        prepare(folder, **more)
        self.folder, self.dsn, self.name = folder, dsn, secrets.token_hex(4)
        self.state = Path(f"{dsn}?schema=s_{self.name}")
        for name in DATASETS:
            file = folder / f"{name}.toml"
            file.write_text(file.read_text().replace(f"{name}.ledger", f"{dsn}?schema=l_{self.name}_{name}"))

    @contextmanager
    def server(self, machine="a", **more):
        said = {"names": ("one",), "lease": 60.0, "pace": 0.05} | more
        with running(self.folder, state=self.state, state_anchor=self.folder / machine, **said) as world:
            yield world

    @contextmanager
    def queue(self, lease):
        """The queue as a server has it that does nothing by itself, and dies without a word."""
        state = opened_state(self.state, anchor=self.folder / "dead")
        yield JobQueue(state, lambda: DATASETS, lease=lease)
        state.close()


@pytest.fixture(autouse=True)
def anchors(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))


@pytest.fixture
def site(tmp_path, postgres_database):
    return Site(tmp_path, postgres_database)


def ask(world, who="owner", dataset="one", wait=0, **more):
    return world.client(who).post(f"/v1/datasets/{dataset}/releases?wait={wait}", json=COUNT | more)


def charges(world, dataset="one"):
    """Tell how often the data set was charged; what was cut off before may be told to be unavailable for a while."""
    found = []

    def heard():
        found[:] = [world.client("owner").get(f"/v1/datasets/{dataset}/budget")]
        return found[0].status_code

    eventually(heard, 200)
    return found[0].json()["charges"]


def states(world, ids):
    return [world.client("owner").get(f"/v1/releases/{number}?wait=0").json()["state"] for number in ids]


def test_what_is_asked_here_is_run_there_and_whoever_waits_here_is_told(site):
    with site.server("a") as here, site.server("b") as there:
        here.server.jobs._stopping = True  # No slot of this server takes anything.
        here.server.jobs._wake()
        told = ask(here, wait=60)
        assert (told.status_code, told.json()["state"]) == (200, "done")
        assert told.json()["answer"] == there.client("owner").get(told.headers["location"]).json()["answer"]
        assert charges(here) == charges(there) == 1


class TestOneAtATime:
    """Two jobs of one account on one data set never run at once, on whichever servers."""

    def begun(self, site):
        """Ask for two jobs on one data set and one on another, at two servers; tell what runs after a while."""
        both = {"names": ("one", "two"), "until": HeldClock()}
        with site.server("a", **both) as a, site.server("b", **both) as b:
            ids = [ask(a).json()["id"], ask(b).json()["id"], ask(b, dataset="two").json()["id"]]
            eventually(lambda: states(a, ids).count("running") >= 2)
            time.sleep(0.3)  # some looks of either server
            found = states(a, ids)
            both["until"].go.set()
            eventually(lambda: states(b, ids), ["done"] * 3)
            return sorted(found)

    def test_on_two_servers(self, site):
        assert self.begun(site) == ["queued", "running", "running"]

    def test_this_check_can_fail(self, site, monkeypatch):
        monkeypatch.setattr(job_queue, "_FREE", "SELECT * FROM jobs WHERE state = 'queued'")
        assert self.begun(site) == ["running"] * 3


def test_releases_that_wait_are_counted_over_all_servers(site):
    with site.server("a") as a, site.server("b") as b:
        for world in (a, b):
            world.server.jobs._stopping = True
            world.server.jobs._wake()
        codes = [ask(world, "analyst").status_code for world in (a, b) * 5]
        assert codes == [202] * 8 + [429] * 2


def test_one_key_at_two_servers_at_once_is_one_release(site):
    with site.server("a") as a, site.server("b") as b, ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(ask, world, wait=60, idempotency_key="k") for world in (a, b) * 4]
        assert len({one.result().json()["id"] for one in asked}) == 1
        assert charges(a) == 1


def test_two_servers_never_overspend(tmp_path, postgres_database):
    site = Site(tmp_path, postgres_database, epsilon="0.5")
    with site.server("a") as a, site.server("b") as b, ThreadPoolExecutor(8) as pool:
        who = [(world, name) for world in (a, b) for name in ("owner", "custodian", "analyst", "owner")]
        asked = [pool.submit(ask, world, name, wait=60) for world, name in who]
        told = [one.result().json().get("state", "refused") for one in asked]
        assert sorted(told) == ["done"] * 5 + ["refused"] * 3
        assert charges(a) == 5


class TestDeath:
    def test_what_a_dead_server_had_is_run_by_another_when_its_lease_is_over(self, site):
        with site.server("a") as a:
            a.server.jobs._stopping = True
            a.server.jobs._wake()
            number = ask(a).json()["id"]
        with site.queue(lease=1.0) as dead:
            assert dead.claim()["id"] == number
            with site.server("b", lease=1.0) as b:
                assert states(b, [number]) == ["running"]  # It may still live.
                assert b.client("owner").get(f"/v1/releases/{number}?wait=60").json()["state"] == "done"
                assert not dead.tell(number, "a late answer", None, frees=True)
                assert b.server.jobs.get(number).answer != "a late answer"
                assert charges(b) == 1
                said = [(one["what"], one["outcome"]) for one in b.server.state.decisions() if one["about"] == number]
                assert said == [
                    ("release", "answered"),
                    ("job taken over", "queued"),
                    ("release", "queued"),
                ]

    def test_what_it_had_charged_and_stored_is_told_and_not_charged_again(self, site):
        with site.server("a") as a, site.queue(lease=0.5) as dead:
            a.server.jobs._stopping = True
            a.server.jobs._wake()
            job = Job.of(dead.claim() if ask(a) else None)
            served = a.server.shelf["one"]
            answer = run_question(job, served, served.asked_by(job.name))
            with site.server("b", lease=0.5) as b:
                assert b.client("owner").get(f"/v1/releases/{job.id}?wait=60").json()["state"] == "done"
                assert b.server.jobs.get(job.id).answer == answer
                assert charges(b) == 1

    def test_a_server_that_stood_still_tells_nothing_of_what_was_taken_over(self, site):
        clock = HeldClock()
        with site.server("a", until=clock) as a:
            number = ask(a).json()["id"]
            assert clock.reached.wait(60)
            with a.server.state.changing() as change:  # As if its lease had run out unnoticed.
                change.execute("UPDATE servers SET until = 0")
                a.server.jobs._stopping = True
            with site.server("b") as b:
                assert b.client("owner").get(f"/v1/releases/{number}?wait=60").json()["state"] == "done"
                before = b.server.state.decisions(most=1)
                clock.go.set()
                a.server.jobs._wake()
                for slot in a.server.jobs._threads[:-1]:
                    slot.join()
                assert b.server.state.decisions(most=1) == before
                assert charges(b) == 1

    def test_what_only_another_server_serves_is_left_to_it(self, site):
        with site.server("a", names=("two",)) as a, site.queue(lease=60.0) as other:
            other.beat()
            number = ask(a, dataset="two").json()["id"]
            with a.server.state.changing() as change:
                change.execute(
                    "UPDATE jobs SET dataset = 'one', state = 'queued', server = NULL WHERE id = ?", (number,)
                )
            time.sleep(0.3)
            assert states(a, [number]) == ["queued"]
            assert other.claim()["id"] == number


class TestLosses:
    """C24: connections are cut, backends ended, and the database goes away and comes back."""

    def test_backends_that_are_ended_cost_nothing_that_was_told(self, site, postgres_cluster):
        name = site.dsn.rpartition("/")[2]
        ended = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
        with site.server("a") as a, site.server("b") as b:
            ids = set()

            def accepted(turn):
                told = ask((a, b)[turn % 2], ("owner", "analyst")[turn % 2], idempotency_key=str(turn))
                ids.update([told.json()["id"]] if told.status_code in (200, 202) else ())
                assert told.status_code in (200, 202) or told.json()["code"] == "unavailable"
                return told.status_code in (200, 202)

            for turn in range(6):
                postgres_cluster.execute(ended)
                eventually(lambda turn=turn: accepted(turn))
            postgres_cluster.execute(ended)
            eventually(lambda: set(states_or_lost(a, ids)) <= {"done", "failed"})
            assert len(ids) == 6
            assert charges(b) <= 6
            assert a.server.state.decisions_hold()

    @pytest.mark.slow
    def test_a_database_that_is_gone_is_unavailable_and_work_goes_on_when_it_is_back(self, tmp_path):
        with own_cluster() as cluster, cluster.database() as dsn:
            site, clock = Site(tmp_path, dsn), HeldClock()
            with site.server("a", until=clock) as a, site.server("b", until=clock) as b:
                number = ask(a).json()["id"]
                assert clock.reached.wait(60)  # It is charged and known, and not told.
                cluster.stop("immediate")
                for world in (a, b):
                    told = [ask(world), world.client("owner").get("/v1/me"), world.client().get("/login")]
                    assert [one.status_code for one in told] == [503, 503, 200]
                    assert told[0].json()["code"] == "unavailable"
                clock.go.set()
                cluster.start()
                eventually(lambda: states_or_lost(b, [number]), ["done"])
                eventually(lambda: ask(b, "analyst", wait=60).status_code, 200)
                assert charges(a) == 2

    @pytest.mark.slow
    def test_a_database_that_is_lost_again_and_again_costs_no_budget_and_no_job(self, tmp_path):
        """Backends are ended and the server loses its power while six accounts ask at two servers."""
        chance, names = random.Random(19), ("owner", "custodian", "analyst")
        with own_cluster() as cluster, cluster.database() as dsn:
            site = Site(tmp_path, dsn, epsilon="2")
            with site.server("a", lease=5.0) as a, site.server("b", lease=5.0) as b, ThreadPoolExecutor(6) as pool:
                ended, told = Event(), {}

                def asks(world, name):
                    number = 0
                    while not ended.is_set():
                        heard = ask(world, name, wait=20, idempotency_key=f"{number % 12}").json()
                        if "id" in heard:
                            told.setdefault(heard["id"], set()).add(heard["state"])
                            number += 1

                asking = [pool.submit(asks, world, name) for world in (a, b) for name in names]
                try:
                    for turn in range(40):
                        time.sleep(chance.uniform(0.1, 0.6))
                        if turn in (13, 27):
                            cluster.restart("immediate")
                        else:
                            lost = "datname <> 'postgres' AND random() < 0.7"
                            cluster.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {lost}")
                finally:
                    ended.set()
                for one in asking:
                    one.result()
                eventually(lambda: set(states_or_lost(a, told)) <= {"done", "failed"})
                assert len(told) > 12
                assert charges(b) <= 20
                keys = a.server.state.rows("SELECT name, key, COUNT(*) AS n FROM jobs GROUP BY name, key")
                assert {row["n"] for row in keys} == {1}
                assert a.server.state.decisions_hold()
                a.server.shelf["one"].session.ledger.verify()


def cut(state):
    """Neither side hears from the other again."""
    with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(state._connection.fileno())) as wire:
        wire.shutdown(socket.SHUT_RDWR)


class TestEveryStatement:
    """C24: each statement of a short life is lost before it is sent, or after it was done and before that is heard."""

    def life(self, state, number, lost):
        """Take a price off a cap and ask, until that is told to be done; then the ways of the queue."""
        accounts, queue = Accounts(state), JobQueue(state, lambda: ("one",), lease=60.0)

        def ask_once():
            with state.changing() as change:
                if state.row("SELECT 1 FROM jobs WHERE id = ?", number) is None:
                    accounts.pay_by("t", Fraction(1))
                    change.execute(JOB, (number, number))
                    state.decide("bot", "release", about=number)

        def claimed():
            found = queue.claim() or state.row("SELECT * FROM jobs WHERE server = ?", queue.server)
            assert found["id"] == number

        steps = (ask_once, claimed, queue.beat, lambda: queue.tell(number, "42", None, frees=True), queue.leave)
        for step in steps:
            self.tried(step, lost)

    @staticmethod
    def tried(step, lost):
        for _ in range(3):
            try:
                return step()
            except StateUnavailable:
                lost.append(step)
        raise AssertionError("it is lost for good")

    @pytest.mark.parametrize("when", [pytest.param("before", marks=pytest.mark.slow), "after"])
    def test_is_done_once_or_not_at_all(self, site, monkeypatch, when):
        real, lost, point, count = PostgresState._execute, [], 0, [0]
        state = opened_state(site.state, anchor=site.folder / "anchor")
        with state.changing() as change:
            change.execute("INSERT INTO people VALUES ('bot', 'agent', NULL, 0, 0)")
            change.execute("INSERT INTO tokens VALUES ('t', '', 'bot', 'token', '', NULL, '999', '0', 0, 9e9, 0)")

        def execute(self, *given):
            count[0] += 1
            if count[0] == point and when == "before":
                cut(self)
            found = real(self, *given)
            if count[0] == point and when == "after":
                cut(self)
                raise psycopg.OperationalError("the connection was lost")
            return found

        while count[0] >= point:
            point, count[0] = point + 1, 0
            with monkeypatch.context() as patch:
                patch.setattr(PostgresState, "_execute", execute)
                self.life(state, f"j{point}", lost)
            job = state.row("SELECT * FROM jobs WHERE id = ?", f"j{point}")
            assert (job["state"], job["answer"], job["server"]) == ("done", "42", None)
            assert state.row("SELECT used FROM tokens")["used"] == str(point)
            assert len(state.decisions(most=999)) == point
            state.check_anchored()
        assert state.decisions_hold()
        state.close()
        assert point > 20
        assert lost  # Somebody was told that it was unavailable, and tried again.


JOB = (
    "INSERT INTO jobs (id, dataset, name, key, request, cost, state, asked)"
    " VALUES (?, 'one', 'bot', ?, '{}', 'e', 'queued', 0)"
)


def states_or_lost(world, ids):
    told = [world.client("owner").get(f"/v1/releases/{number}?wait=0") for number in ids]
    return [one.json().get("state", one.json().get("code")) for one in told]


@pytest.mark.slow
def test_what_holds_for_a_state_in_a_file_holds_for_one_in_a_database():
    """The same tests again, but for those about the file itself and the one that refuses a second server."""
    parts = ("api", "approvals", "accounts", "saved", "device", "people", "jobs")
    files = [str(Path(__file__).parent / f"test_server_{part}.py") for part in parts]
    left_out = "not second_server and not others_may_read and not kept_as_digests"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-m", "not slow and not soak", "-k", left_out, *files],
        env=os.environ | {"DISCREET_TEST_STATE": "postgres"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-3000:]


def test_a_server_that_waited_too_long_for_another_goes_on_when_that_one_is_done(tmp_path, postgres_database):
    """Who did not get the lock in time is in a transaction that failed: nothing else would ever work in it."""
    site = Site(tmp_path, postgres_database)
    one, two = (opened_state(site.state, anchor=tmp_path / name) for name in ("a", "b"))
    two._execute("SET lock_timeout = '100ms'")
    with one.changing(), pytest.raises(StateUnavailable):
        two.decide("two", "waits")
    assert two.rows("SELECT * FROM people") == []
    two.decide("two", "goes on")
    assert [row["what"] for row in one.rows("SELECT what FROM decisions")] == ["goes on"]
    one.close()
    two.close()


def test_the_rest_of_a_change_is_not_done_on_another_connection(tmp_path, postgres_database):
    site = Site(tmp_path, postgres_database)
    state = opened_state(site.state, anchor=tmp_path / "a")
    insert = "INSERT INTO people (name, role, since) VALUES (?, 'reader', 0)"

    def cut():
        with state.changing() as change:
            change.execute(insert, ("first",))
            with suppress(StateUnavailable), state.changing():
                change.execute("SELECT pg_terminate_backend(pg_backend_pid())")
            change.execute(insert, ("second",))

    with pytest.raises(StateUnavailable):
        cut()
    assert state.rows("SELECT name FROM people") == []
    state.close()
