"""Health, metrics, the lines on standard error, and how a server stops."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request

import pytest
from server_world import COUNT, prepare, running

from discreet.errors import InvalidParameter
from discreet.query.workers import worker_engine
from discreet.server.accounts import AccountRole, Accounts
from discreet.server.state_file import StateFile
from discreet.server.watch.health import Readiness
from discreet.server.watch.operations_log import OperationsLog


def lines(log, sink):
    log.stop()
    return sink.getvalue().splitlines()


class TestHealth:
    def test_anybody_is_told_one_of_two_constant_texts(self, world):
        client = world.client()
        assert client.get("/healthz").json() == {"alive": True}
        answer = client.get("/readyz")
        assert (answer.status_code, answer.json()) == (200, {"ready": True})
        assert client.post("/healthz").status_code == 405

    def test_a_ledger_or_a_state_that_cannot_be_reached_is_found_beside_the_requests(self, world, monkeypatch):
        now = [0.0]
        found = Readiness(world.server.state, world.server.shelf, clock=lambda: now[0])
        assert found.ready()
        monkeypatch.setattr(found, "look", lambda: False)
        assert found.ready()  # It was looked at a moment ago.
        now[0] += 6
        assert found.ready()  # It answers at once, and looks again beside it.
        for _ in range(100):
            time.sleep(0.02)
            if not found.ready():
                break
        assert not found.ready()

    def test_a_look_that_does_not_end_says_no(self, world, monkeypatch):
        now = [0.0]
        found = Readiness(world.server.state, world.server.shelf, clock=lambda: now[0])
        monkeypatch.setattr(found, "_look_again", lambda: None)
        now[0] += 6
        assert found.ready()
        now[0] += 61
        assert not found.ready()

    def test_health_has_the_data_sets_that_one_sees(self, world):
        told = world.client("custodian").get("/v1/health").json()
        assert told["ready"]
        assert told["log_holds"]
        assert [(one["name"], one["verified"]) for one in told["datasets"]] == [("one", True)]


class TestMetrics:
    @pytest.mark.long
    def test_they_are_marked_and_about_data_sets_that_one_sees(self, world):
        for name in ("one", "two"):
            world.client("owner").post(f"/v1/datasets/{name}/releases", json=COUNT)
        owner, custodian = (world.client(role).get("/metrics").text for role in ("owner", "custodian"))
        assert 'discreet_releases{dataset="two",state="done"} 1.0' in owner
        assert 'dataset="one"' in custodian
        assert 'dataset="two"' not in custodian
        helped = [line for line in owner.splitlines() if line.startswith("# HELP")]
        assert helped
        assert all("NOT PRIVATE" in line for line in helped)
        assert "SELECT" not in owner

    def test_they_are_for_a_token_of_whoever_holds_the_data(self, world):
        for role in ("analyst", "auditor", "agent", "reader"):
            assert world.client(role).get("/metrics").status_code == 403
        assert world.browser("owner").get("/metrics").status_code == 403
        client = world.client()
        assert client.get("/metrics").status_code == 401
        client.headers["authorization"] = f"Bearer {world.token('owner', scopes=['read', 'ask', 'release', 'manage'])}"
        assert client.get("/metrics").status_code == 403

    def test_an_analyst_finds_no_duration_or_queue_anywhere(self, world):
        client = world.client("analyst")
        for path in ("/healthz", "/readyz", "/v1/me"):
            answer = client.get(path)
            assert not {"server-timing", "x-process-time", "x-queue"} & set(answer.headers)


class TestLines:
    def test_a_text_forges_no_line(self):
        for form in ("json", "text"):
            sink = io.StringIO()
            log = OperationsLog(form, sink)
            log.decided((1, 0.0, 'eve\n2026 start "', "release\r", "one", "done", "\x1b[31m\u2028x"))
            first, last = lines(log, sink)
            assert first.isascii()
            assert first.isprintable()
            assert "stop" in last
        assert "eve\\n2026" in first

    def test_json_lines_say_what_was_decided_and_no_more(self):
        sink = io.StringIO()
        log = OperationsLog("json", sink)
        log.decided((7, 1_000_000.4, "ana", "release", "one", "answered", "id"))
        said = json.loads(lines(log, sink)[0])
        assert set(said) == {"at", "event", "number", "who", "what", "dataset", "outcome", "about"}
        assert said["at"] == "1970-01-12T13:46:40Z"

    def test_what_is_rolled_back_is_not_said(self, tmp_path):
        state, heard = StateFile(tmp_path / "state.db"), []
        state.heard = heard.append

        def undone():
            with state.changing():
                state.decide("ana", "release")
                raise RuntimeError

        with pytest.raises(RuntimeError):
            undone()
        assert heard == []
        with state.changing():
            state.decide("ana", "release")
            assert heard == []  # It is not on record yet.
        assert [one[2] for one in heard] == ["ana"]
        state.close()

    def test_a_reader_that_is_slow_or_gone_holds_nobody_up(self):
        class Gone(io.StringIO):
            def write(self, text):
                raise BrokenPipeError

        log = OperationsLog("text", Gone())
        began = time.monotonic()
        for _ in range(20_000):
            log.say("x")
        log.stop()
        assert time.monotonic() - began < 30

    def test_other_forms_are_refused_and_off_says_nothing(self):
        with pytest.raises(InvalidParameter):
            OperationsLog("xml")
        sink = io.StringIO()
        log = OperationsLog("off", sink)
        log.say("start")
        assert lines(log, sink) == []

    @pytest.mark.long
    def test_lines_of_neighbouring_data_are_equal(self, tmp_path, capfd):
        """Like the log of decisions: whoever reads them learns nothing of a row."""
        told = []
        for name, rows in (("a", "age,clinic,satisfied\n30,Harbour,yes\n"), ("b", "age,clinic,satisfied\n")):
            folder = tmp_path / name
            folder.mkdir()
            prepare(folder, rows=rows)
            with running(folder, names=("one",), log="json") as world:
                world.client("analyst").post("/v1/datasets/one/releases", json=COUNT)
                world.client("analyst").post("/v1/datasets/one/releases", json=COUNT | {"sql": "SELECT secret"})
            said = [json.loads(line) for line in capfd.readouterr().err.splitlines() if line.startswith("{")]
            told.append([{**one, "at": "", "about": ""} for one in said])
        assert told[0] == told[1]
        assert {one["outcome"] for one in told[0] if one.get("what") == "release"} == {"queued", "answered"}
        assert "SELECT" not in str(told)


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_workers_leave_the_processor_to_the_server(world):
    """Otherwise how busy they are, which follows the rows, moves the moment at which answers leave."""
    assert world.client("analyst").post("/v1/datasets/one/releases?wait=60", json=COUNT).status_code == 200
    zygote = worker_engine._zygote
    assert os.getpriority(os.PRIO_PROCESS, zygote._process.pid) >= min(19, os.getpriority(os.PRIO_PROCESS, 0) + 10)


def test_sigterm_lets_a_release_end_at_its_time(tmp_path):
    """What is running is answered and on record; without the handler of our own the process would end at once."""
    prepare(tmp_path)
    state = StateFile(tmp_path / "server.db")
    accounts = Accounts(state)
    accounts.add("ana", AccountRole.ANALYST, ["one"], by="test")
    token = accounts.new_token("ana", scopes=["ask", "release"], datasets=None, cap=None, seconds=600, by="test")
    state.close()
    words = ["serve", "--policy", "one.toml", "--state", "server.db", "--port", "0", "--answer-after", "one=4"]
    command = [sys.executable, "-m", "discreet", *words, "--log", "json", "--json"]
    environment = os.environ | {"NO_COLOR": "1"}
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as server:
        address = json.loads(read_document(server.stdout))["address"]
        headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
        body = json.dumps(COUNT).encode()
        asked = urllib.request.Request(f"{address}/v1/datasets/one/releases?wait=0", body, headers)
        number = json.load(urllib.request.urlopen(asked, timeout=30))["id"]
        deadline = time.monotonic() + 30
        while job_state(tmp_path, number) == "queued" and time.monotonic() < deadline:
            time.sleep(0.05)
        server.send_signal(signal.SIGTERM)
        _, errors = server.communicate(timeout=60)
    events = [json.loads(line)["event"] for line in errors.splitlines() if line.startswith("{")]
    assert (events[0], events[-1]) == ("decision", "stop") or (events[0], events[-1]) == ("start", "stop")
    assert "stopping" in events
    assert job_state(tmp_path, number) == "done"
    assert server.returncode == 0


def read_document(stream):
    """The first JSON document of a stream, which may have several lines."""
    text = ""
    for line in stream:
        text += line
        try:
            json.loads(text)
        except ValueError:
            continue
        return text
    raise AssertionError("the server did not start")


def job_state(folder, number):
    import sqlite3

    with sqlite3.connect(folder / "server.db") as database:
        return database.execute("SELECT state FROM jobs WHERE id = ?", (number,)).fetchone()[0]
