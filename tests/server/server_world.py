"""A server in a folder: three data sets, an account for each role, and a clock that waits for answers, not for time."""

from __future__ import annotations

import hashlib
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from threading import Event, Thread
from typing import Any

from postgres_cluster import shared_cluster
from starlette.testclient import TestClient

from discreet.query import read_policy
from discreet.server.accounts import SCOPES, AccountRole
from discreet.server.http_limits import HttpLimits
from discreet.server.listener import ServerSettings, opened_server, web_app

DATASETS = ("one", "two", "three")
HOST = "http://127.0.0.1"
COUNT = {"sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": "0.1"}
GROUPED = {"sql": "SELECT clinic, COUNT(*) AS n FROM visits GROUP BY clinic", "epsilon": "0.1"}
SAVE = {"title": "All", "shared": True, "question": COUNT}
POLICY = """\
dataset = "{name}"
ledger = "{name}.ledger"

[unit]
column = "row"

[budget]
epsilon = {epsilon}

[tables.visits]
source = "visits.csv"

[tables.visits.columns]
age = {{ low = 0, high = 120, whole = true }}
clinic = {{ categories = {clinics} }}
satisfied = {{ kind = "text" }}
"""
CLINICS = '["Harbour", "Hillside", "Market", "Old Mill", "Station"]'
MANY = HttpLimits(per_second=1e6, burst=10**6, sign_ins_per_second=1e6, sign_in_burst=10**6)


def once_known(moment: float, known: Event) -> None:
    """Tell an answer as soon as it is known: what is tested does not depend on how busy the machine is."""
    if not known.wait(240):
        raise AssertionError("no answer came")


def prepare(folder: Path, *, clinics: str = CLINICS, epsilon: str = "20", rows: str | None = None) -> None:
    """Write the table and its three policies."""
    table = (files("discreet") / "data" / "visits.csv").read_text(encoding="utf-8") if rows is None else rows
    (folder / "visits.csv").write_text(table, encoding="utf-8")
    for name in DATASETS:
        (folder / f"{name}.toml").write_text(POLICY.format(name=name, clinics=clinics, epsilon=epsilon))


@dataclass
class World:
    """A server that runs, and how to be somebody on it."""

    server: Any
    app: Any
    tokens: dict[str, str] = field(default_factory=dict)
    passwords: dict[str, str] = field(default_factory=dict)

    def client(self, role: str | None = None) -> TestClient:
        """Somebody by their token, or nobody."""
        headers = {} if role is None else {"authorization": f"Bearer {self.tokens[role]}"}
        return TestClient(self.app, base_url=HOST, headers=headers, follow_redirects=False)

    def token(self, name: str, **more: Any) -> str:
        said = {"scopes": SCOPES, "datasets": None, "cap": None, "seconds": 3600.0} | more
        made: str = self.server.accounts.new_token(name, by="test", **said)
        return made

    def browser(self, role: str) -> TestClient:
        """Somebody who signed in on the page, by an invitation."""
        client = self.client()
        invitation = self.server.accounts.invite(role, by="test")
        answer = client.post("/login", data={"form_token": form_token(client.get("/login")), "invitation": invitation})
        assert answer.status_code == 303, answer.text
        return client


def form_token(page: Any) -> str:
    """The token of the forms on a page."""
    found: str = page.text.split('name="form_token" value="')[1].split('"')[0]
    return found


def _usual_state(folder: Path) -> dict[str, Path]:
    """The state of a folder: a file, or a schema of a database for whoever runs the same tests on that."""
    if os.environ.get("DISCREET_TEST_STATE") != "postgres":
        return {"state": folder / "server.db"}
    schema = f"w_{hashlib.sha256(str(folder).encode()).hexdigest()[:12]}"
    return {"state": Path(f"{shared_cluster().dsn()}?schema={schema}"), "state_anchor": folder / "state.anchor"}


@contextmanager
def running(
    folder: Path, *, limits: HttpLimits = MANY, names: tuple[str, ...] = DATASETS, **more: Any
) -> Iterator[World]:
    """Run a server on a folder, with one account for each role, named like it; all but the owner on data set one."""
    clocks = {name: more.pop(name) for name in ("lease", "pace") if name in more} | {
        "until": more.pop("until", once_known)
    }
    policies = [read_policy(folder / f"{name}.toml") for name in names]
    times = more.pop("answer_after", dict.fromkeys(names, 300.0))
    settings = ServerSettings(**_usual_state(folder) | {"answer_after": times} | more)
    with opened_server(policies, settings, limits=limits, **clocks) as server:
        world = World(server, web_app(server, settings, limits))
        known = {one["name"] for one in server.accounts.people()}
        for role in AccountRole:
            if role.value not in known:
                server.accounts.add(role.value, role, () if role is AccountRole.OWNER else ("one",), by="test")
            cap = "5" if role is AccountRole.AGENT else None
            world.tokens[role.value] = world.token(role.value, cap=cap)
        server.jobs.start()
        yield world


@contextmanager
def listening(world: World) -> Iterator[str]:
    """Let the server of a world listen on loopback, in a thread, and tell where."""
    import uvicorn

    bound = socket.create_server(("127.0.0.1", 0))
    web = uvicorn.Server(uvicorn.Config(world.app, log_config=None, access_log=False, lifespan="off", ws="none"))
    thread = Thread(target=web.run, kwargs={"sockets": [bound]}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"
    finally:
        web.should_exit = True
        thread.join(30)
