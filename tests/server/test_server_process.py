"""A real process, `discreet serve`: it is killed, its workers are killed, its ledger is put back, clients hang up."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from contextlib import suppress
from functools import partial

import httpx
import pytest
from server_process import ServerProcess
from server_world import COUNT, GROUPED, prepare, running

from discreet.errors import LedgerDamaged, LedgerUnavailable
from discreet.server.accounts import AccountRole, Accounts
from discreet.server.state_file import StateFile

pytestmark = pytest.mark.long
TIME = {"one": 1.0}


def analyst(folder):
    """A token of somebody who may ask."""
    state = StateFile(folder / "server.db")
    accounts = Accounts(state)
    accounts.add("ana", AccountRole.ANALYST, ["one"], by="test")
    said = {"scopes": ["read", "ask", "release"], "datasets": None, "cap": None, "seconds": 86_400.0, "by": "test"}
    token = accounts.new_token("ana", **said)
    state.close()
    return token


def caller(server, token):
    return httpx.Client(base_url=server.address, headers={"authorization": f"Bearer {token}"}, timeout=120)


def release(client, **more):
    answer = client.post("/v1/datasets/one/releases?wait=60", json=COUNT | more)
    return answer.status_code, answer.json()


def again(client, key):
    """Ask under a key, as often as the limit lets one, and return the answer as it came."""
    while True:
        answer = client.post("/v1/datasets/one/releases?wait=60", json=COUNT | {"idempotency_key": key})
        if answer.status_code != 429:
            return answer.text
        time.sleep(0.2)


@pytest.mark.parametrize(
    ("often", "crashes"), [(20, 1), pytest.param(1_000, 2, marks=pytest.mark.slow)], ids=["some", "all"]
)
def test_one_key_is_charged_once_across_crashes(tmp_path, often, crashes):
    """C23. Also the release that was under way when the server was killed."""
    prepare(tmp_path)
    token, seen, charged = analyst(tmp_path), {}, {}
    with ServerProcess(tmp_path, answer_after=TIME) as server:
        for crash in range(crashes + 1):
            client = caller(server, token)
            release(client, idempotency_key=f"told {crash}")
            for number in range(often // (crashes + 1)):
                key = f"told {number % (crash + 1)}"
                seen.setdefault(key, set()).add(again(client, key))
            time.sleep(1)  # The limit lets one ask again.
            charged[crash] = client.get("/v1/datasets/one/budget").json()["charges"]
            client.post("/v1/datasets/one/releases?wait=0", json=COUNT | {"idempotency_key": f"cut {crash}"})
            server.kill()
            server.start()
        client = caller(server, token)
        for crash in range(crashes + 1):
            # One answer, or one failure, whatever was under way. (Three failures are all that an analyst may see.)
            assert len({again(client, f"cut {crash}") for _ in range(5)}) == 1
        entries = client.get("/v1/datasets/one/history?limit=200").json()["entries"]
    assert {len(texts) for texts in seen.values()} == {1}
    assert charged[0] == 1
    assert crashes + 1 <= len(entries) <= 2 * (crashes + 1)


HANDLES_NO_SIGNAL = """
import discreet.query.workers.messages as messages
import discreet.server.listener as listener
messages._NO_SIGNAL = 0
listener._outlive_who_hangs_up = lambda: None
"""


def after_a_kill(server, client):
    """Kill the process that forks workers, ask, and say what was heard."""
    for first in server.descendants()[:1]:
        os.kill(first, signal.SIGKILL)
    time.sleep(0.5)  # Until its workers have seen it.
    try:
        return release(client)[1].get("code", "answered")
    except httpx.HTTPError:
        return "nothing"


@pytest.mark.parametrize("mistake", ["", HANDLES_NO_SIGNAL], ids=["right", "mistake"])
def test_a_server_outlives_its_workers(tmp_path, mistake):
    """Whoever is killed, the one that forks workers too: one release fails constantly, and the next is answered."""
    prepare(tmp_path)
    token = analyst(tmp_path)
    with ServerProcess(tmp_path, answer_after=TIME, mistake=mistake) as server:
        client = caller(server, token)
        assert release(client)[1]["state"] == "done"
        heard = [after_a_kill(server, client) for _ in range(2)]
        if mistake:
            assert "nothing" in heard
            assert server.process.wait(60) == -signal.SIGPIPE
            return
        assert set(heard) <= {"answered", "answer-failed"}
        assert release(client)[1]["state"] == "done"
        assert client.get("/v1/datasets/one/budget").json()["charges"] == 4
        for _ in range(100):
            with socket.create_connection(("127.0.0.1", server.port)) as gone:
                gone.sendall(b"GET /problems HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n" * 20)
        assert client.get("/v1/me").status_code == 200


EDITS = {
    "a price": "UPDATE entries SET body = replace(body, '1/10', '1/99')",
    "an entry": "DELETE FROM entries WHERE idx = 3",
    "the last": "DELETE FROM entries WHERE idx = (SELECT MAX(idx) FROM entries)",
    "an answer": "UPDATE answers SET body = replace(body, '1', '2')",
    "a key": "UPDATE charges SET key = key || 'x'",
}


def edited(folder, change):
    database = sqlite3.connect(folder / "one.ledger", isolation_level=None)
    for trigger in ("entries_stay", "entries_last", "answers_stay", "answers_last"):
        database.execute(f"DROP TRIGGER {trigger}")
    assert database.execute(change).rowcount
    database.close()


def test_a_ledger_that_was_edited_cut_or_put_back_keeps_the_server_from_starting(tmp_path):
    """C22. As it is it starts: otherwise this would say nothing."""
    kept = tmp_path / "kept"
    kept.mkdir()
    prepare(kept)
    for asked in (COUNT, GROUPED):
        with running(kept, names=("one",)) as world:
            world.client("analyst").post("/v1/datasets/one/releases", json=asked)
        if asked is COUNT:
            shutil.copy(kept / "one.ledger", tmp_path / "old")
    changes = {what: partial(edited, change=change) for what, change in EDITS.items()}
    changes |= {f"cut at {size}": lambda f, n=size: os.truncate(f / "one.ledger", n) for size in (0, 100, 8192)}
    changes["gone"] = lambda folder: (folder / "one.ledger").unlink()
    changes["an old copy"] = lambda folder: shutil.copy(tmp_path / "old", folder / "one.ledger")
    started = []
    for what, change in {**changes, "nothing": lambda folder: None}.items():
        folder = tmp_path / what
        shutil.copytree(kept, folder)
        change(folder)
        with suppress(LedgerDamaged, LedgerUnavailable), running(folder, names=("one",)):
            started.append(what)
    assert started == ["nothing"]


def test_the_command_says_why_it_does_not_start(tmp_path):
    prepare(tmp_path)
    with running(tmp_path, names=("one",)) as world:
        world.client("analyst").post("/v1/datasets/one/releases", json=COUNT)
    edited(tmp_path, EDITS["a price"])
    said = ["--policy", "one.toml", "--answer-after", "one=1", "--state", "server.db", "--check"]
    command = [sys.executable, "-m", "discreet", "serve", *said]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode != 0
    assert "missing or was changed" in ended.stderr
    assert "Traceback" not in ended.stderr
