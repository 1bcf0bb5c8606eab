"""What an active analyst tries over HTTP: escapes, canaries, neighbours, floods, sizes, paths, names of the server."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from importlib.resources import files
from pathlib import Path
from threading import Event, Thread

import pytest
import uvicorn
from server_world import CLINICS, COUNT, HOST, form_token, prepare, running
from starlette.testclient import TestClient

from discreet.errors import LedgerDamaged
from discreet.query.plan.planner import PricedQuery
from discreet.query.session.plans import Plan
from discreet.query.workers.worker_engine import WorkerEngine
from discreet.server.app import waited
from discreet.server.datasets import ServedDataset
from discreet.server.endpoints import ENDPOINTS
from discreet.server.http_limits import HttpLimits, RateLimit, network_of
from discreet.server.listener import ServerSettings, web_config
from discreet.server.problems import Problem

ESCAPES = Path(__file__).parents[1] / "query" / "parse" / "escapes.txt"
STATEMENTS = [line for line in ESCAPES.read_text().splitlines() if line and not line.startswith("#")]
VISITS = (files("discreet") / "data" / "visits.csv").read_text(encoding="utf-8").rstrip("\n")
CANARY = "canary-7d31f0"


@pytest.mark.long
def test_no_statement_escapes(world, monkeypatch):
    """C30: as a price, a try and a release; no engine is asked and nothing is charged."""

    def never(*_, **__):
        raise AssertionError("an engine was asked")

    monkeypatch.setattr(WorkerEngine, "run", never)
    monkeypatch.setattr(WorkerEngine, "run_all", never)
    client = world.client("analyst")
    before = client.get("/v1/datasets/one/budget").json()
    wrong = []
    for statement in STATEMENTS:
        for path in ("estimate", "dummy", "releases"):
            answer = client.post(f"/v1/datasets/one/{path}", json={"sql": statement, "epsilon": "0.1"})
            wrong += [] if answer.json()["code"] in ("refused", "invalid") else [(statement, path, answer.text)]
    assert wrong == []
    assert len(STATEMENTS) >= 120
    assert client.get("/v1/datasets/one/budget").json() == before


TRIGGERS = [
    f"{value} {compared}"
    for value in (
        "CAST(satisfied AS INTEGER)", "1 / age", "age / (age - age)", "LN(age)", "SQRT(age - 60)", "age % 7",
        "LENGTH(CONCAT(satisfied, satisfied))", "EXP(age)", "CAST(clinic AS INTEGER)", "POWER(age, 40)",
        "CAST(satisfied AS DOUBLE)", "ABS(age)",
    )
    for compared in ("> 0", "= 1", "< -1", "IS NULL", "BETWEEN 0 AND 3")
]  # fmt: skip
_NUMBERS = re.compile(r"-?\d[\d,.e+]*")


_CHANGES = re.compile(
    r"\d{4}-\d\d-\d\d[T ][\d:.+Z]*( UTC)?|\d\d:\d\d|[0-9a-f]{16,64}|\b\d{10}\.\d+|(?<=_seconds )[\d.e+]+"
)


def masked(text: str) -> str:
    """A text without moments, ids, hashes and secrets, which are others in every run."""
    return _CHANGES.sub("#", text)


def everything(folder: Path, rows: str, triggers: list[str], caplog) -> list[object]:
    """All that anybody sees on a table with these rows more: answers without their noise, facts, headers, the log."""
    folder.mkdir()
    prepare(folder, rows=VISITS + rows)
    seen: list[object] = []
    with running(folder, names=("one",)) as world:
        client = world.client("custodian")
        for trigger in triggers:
            asked = {"sql": f"SELECT COUNT(*) AS n FROM visits WHERE {trigger}", "epsilon": "0.1"}
            answer = client.post("/v1/datasets/one/releases", json=asked)
            hidden = _NUMBERS.sub("#", re.sub("[0-9a-f]{32}", "id", answer.text))
            headers = {
                name: value for name, value in answer.headers.items() if name not in ("location", "content-length")
            }
            seen.append((trigger, answer.status_code, hidden, headers))
        owner, paths = world.client("owner"), [one.path for one in ENDPOINTS if one.method == "GET"]
        paths += ["/healthz", "/readyz", "/budget", "/admin", "/admin/log", "/releases", "/ask"]
        page = world.browser("owner")
        for path in (one.replace("{dataset}", "one") for one in paths):
            if "{" not in path:
                told = (owner if path.startswith(("/v1", "/metrics")) else page).get(path, params={"limit": "200"})
                seen.append((path, told.status_code, masked(told.text)))
        log = world.client("auditor").get("/v1/log?limit=200").json()["decisions"]
        seen.append([(one["who"], one["what"], one["dataset"], one["outcome"]) for one in log])
    seen.append([record.getMessage() for record in caplog.records])
    return seen


@pytest.mark.parametrize(
    "triggers",
    [pytest.param(TRIGGERS[::7], marks=pytest.mark.long), pytest.param(TRIGGERS, marks=pytest.mark.slow)],
    ids=["some", "all"],
)
def test_neighbours_and_canaries_change_no_word_no_code_and_no_log(tmp_path, triggers, caplog, capfd):
    """C29, C38: sixty triggers on two tables that differ by rows which trip a careless engine."""
    odd = f"\n{CANARY},0,{CANARY},nan,inf,{CANARY}\n9,-1e999,x,{CANARY},0,%_'\";--"
    caplog.set_level("DEBUG")
    with_it, without = (everything(tmp_path / name, rows, triggers, caplog) for name, rows in (("a", odd), ("b", "")))
    assert len(TRIGGERS) == 60
    assert with_it[:-1] == without[:-1]
    out, err = capfd.readouterr()
    assert CANARY not in f"{with_it}{without}{out}{err}{caplog.text}"
    assert "done" in str(without)


@pytest.mark.long
def test_a_fact_that_follows_the_rows_is_found(tmp_path, monkeypatch, caplog):
    facts = ServedDataset.public_facts

    def careless(served):
        return facts(served) | {"version": str(len((next(tmp_path.glob("*/visits.csv"))).read_bytes()))}

    found = []
    for rows in ("", "\n9,30,Harbour,1,1,yes"):
        monkeypatch.setattr(ServedDataset, "public_facts", careless)
        found.append(everything(tmp_path / "x", rows, TRIGGERS[:1], caplog)[:-1])
        shutil.rmtree(tmp_path / "x")
    assert found[0] != found[1]


@pytest.mark.long
def test_what_fails_after_the_charge_is_one_constant_answer(tmp_path, monkeypatch):
    """Whatever it is that fails, and with whatever words."""
    prepare(tmp_path)
    raised = [ValueError(CANARY), MemoryError(CANARY), KeyError(CANARY)]

    def failing(*_, **__):
        raise raised.pop()

    monkeypatch.setattr(WorkerEngine, "run_all", failing)
    with running(tmp_path, names=("one",)) as world:
        client, told = world.client("analyst"), set()
        for price in ("0.1", "0.2", "0.3"):
            answer = client.post("/v1/datasets/one/releases", json=COUNT | {"epsilon": price})
            told.add((answer.status_code, answer.content, str(sorted(answer.headers.items()))))
        assert len(told) == 1
        assert answer.json()["code"] == "answer-failed"
        assert client.get("/v1/datasets/one/budget").json()["charges"] == 3
        fourth = client.post("/v1/datasets/one/releases", json=COUNT)
        assert fourth.json()["code"] == "refused"  # Three failures are all that anybody sees.
        assert CANARY not in str(told) + str(world.client("auditor").get("/v1/log").json())


def test_what_nobody_foresaw_is_constant_too(world, monkeypatch):
    def failing(*_, **__):
        raise RuntimeError(CANARY)

    monkeypatch.setattr(type(world.server.shelf["one"]), "public_facts", failing)
    answer = world.client("analyst").get("/v1/datasets/one")
    assert (answer.status_code, answer.json()["code"]) == (500, "internal")
    assert CANARY not in answer.text


class TestSizes:
    """C34."""

    @pytest.mark.parametrize(
        "body",
        [b"x" * (10 << 20), b"[" * 10_000, b'{"sql":' * 9_000, b"[" * 60_000, b"{}" * 40_000, b"\xff\xfe", b""],
        ids=["10 MB", "deep list", "deep object", "deeper", "long", "no text", "empty"],
    )
    def test_large_and_deep_requests_are_refused(self, world, body):
        answer = world.client("analyst").post(
            "/v1/datasets/one/estimate", content=body, headers={"content-type": "application/json"}
        )
        assert answer.status_code in (413, 422)
        assert answer.headers["content-type"] == "application/problem+json"

    def test_a_body_without_a_length_is_cut_off(self, world):
        def endless():
            for _ in range(100):
                yield b" " * 10_000

        answer = world.client("analyst").post(
            "/v1/datasets/one/estimate", content=endless(), headers={"content-type": "application/json"}
        )
        assert answer.status_code == 413

    def test_other_kinds_of_content_are_refused(self, world):
        for kind in ("text/plain", "application/x-python-pickle", "multipart/form-data; boundary=x", ""):
            answer = world.client("analyst").post(
                "/v1/datasets/one/estimate", content=json.dumps(COUNT).encode(), headers={"content-type": kind}
            )
            assert answer.json()["code"] == "bad-request"


class TestCells:
    """Noise is drawn for each cell, in the server's own process; on made-up rows for free."""

    @staticmethod
    def asked(columns, texts):
        sums = ", ".join(f"SUM(age + {number}) AS s{number}" for number in range(columns - 2))
        keys = {"satisfied": [f"a{number}" for number in range(texts)], "age": list(range(100))}
        sql = f"SELECT age, satisfied, {sums} FROM visits GROUP BY age, satisfied"
        return {"sql": sql, "epsilon": "0.1", "keys": keys}

    @pytest.mark.parametrize("path", ["estimate", "dummy", "releases"])
    def test_answers_of_too_many_cells_are_refused_before_anything_is_drawn(self, world, monkeypatch, path):
        def never(*_):
            raise AssertionError("noise was drawn")

        monkeypatch.setattr(PricedQuery, "draw", never)
        client = world.client("analyst")
        told = client.post(f"/v1/datasets/one/{path}", json=self.asked(10, 101)).json()
        assert (told["code"], told["way_out"][:3]) == ("refused", "ask")
        assert "100,000 cells" in told["detail"]
        assert "10,100 groups of 10 columns" in told["detail"]
        assert client.post("/v1/datasets/one/estimate", json=self.asked(10, 100)).status_code == 200

    def test_groups_that_are_not_listed_count_as_many(self, tmp_path):
        prepare(tmp_path, epsilon="20\ndelta = 1e-4")
        with running(tmp_path, names=("one",)) as world:
            client = world.client("analyst")
            for columns, status in ((100, 200), (101, 422)):
                counts = ", ".join(f"COUNT(*) AS n{number}" for number in range(columns - 1))
                asked = {"sql": f"SELECT satisfied, {counts} FROM visits GROUP BY satisfied", "epsilon": "1"}
                answer = client.post("/v1/datasets/one/estimate", json=asked | {"delta": "1e-6"})
                assert answer.status_code == status, answer.text

    def test_an_account_tries_one_question_at_a_time(self, world, monkeypatch):
        trying, ended, dummy = Event(), Event(), Plan.dummy

        def slow(plan):
            if not trying.is_set():
                trying.set()
                assert ended.wait(240)
            return dummy(plan)

        monkeypatch.setattr(Plan, "dummy", slow)
        client, path = world.client("analyst"), "/v1/datasets/one/dummy"
        page = world.browser("analyst")
        said = {"form_token": form_token(page.get("/ask")), "action": "dummy", "way": "epsilon", "amount": "0.1"}
        said |= {"dataset": "one", "sql": COUNT["sql"]}
        with ThreadPoolExecutor(1) as pool:
            first = pool.submit(client.post, path, json=COUNT)
            try:
                assert trying.wait(240)
                assert client.post(path, json=COUNT).json()["code"] == "too-many"
                assert page.post("/ask", data=said).status_code == 429
                assert world.client("owner").post(path, json=COUNT).status_code == 200
            finally:
                ended.set()
            assert first.result(timeout=60).status_code == 200
        assert client.post(path, json=COUNT).status_code == 200
        assert page.post("/ask", data=said).status_code == 200

    def test_lists_of_releases_are_read_without_their_answers(self, world):
        client = world.client("analyst")
        assert client.post("/v1/datasets/one/releases", json=COUNT).json()["state"] == "done"
        (job, *_) = world.server.jobs.of_dataset("one", only="analyst", most=1)
        assert (job.state, job.answer) == ("done", None)


class TestRates:
    def test_who_asks_too_often_waits_and_others_do_not(self, tmp_path):
        prepare(tmp_path)
        with running(tmp_path, names=("one",), limits=HttpLimits(per_second=0.001, burst=20)) as world:
            codes = [world.client("analyst").get("/v1/me").status_code for _ in range(200)]
            assert codes == [200] * 20 + [429] * 180
            assert world.client("owner").get("/v1/me").status_code == 200
            strangers = [TestClient(world.app, base_url=HOST).get("/v1/me").status_code for _ in range(30)]
            assert strangers == [401] * 20 + [429] * 10

    def test_signing_in_is_slower_still(self, tmp_path):
        prepare(tmp_path)
        limits = HttpLimits(per_second=1e6, burst=10**6, sign_ins_per_second=0.001, sign_in_burst=3)
        with running(tmp_path, names=("one",), limits=limits) as world:
            client = world.client()
            data = {"form_token": form_token(client.get("/login")), "invitation": "dsc_no_no"}
            codes = [client.post("/login", data=data).status_code for _ in range(5)]
            assert codes[3:] == [429, 429]

    def test_a_bucket_fills_again_and_forgets(self):
        now = [0.0]
        limit = RateLimit(2, 4, clock=lambda: now[0])
        for _ in range(4):
            limit.take("a")
        with pytest.raises(Problem):
            limit.take("a")
        now[0] = 0.5
        limit.take("a")
        now[0] = 100
        limit.take("b")
        assert list(limit._buckets) == ["b"]

    @pytest.mark.long
    def test_one_account_queues_a_few_releases_only(self, tmp_path):
        prepare(tmp_path)
        with running(tmp_path, names=("one",)) as world:
            world.server.jobs._stopping = True
            client = world.client("analyst")
            codes = [client.post("/v1/datasets/one/releases?wait=0", json=COUNT).status_code for _ in range(12)]
            assert codes == [202] * 8 + [429] * 4


class TestConnections:
    """One client cannot take the places of everybody."""

    @staticmethod
    @contextmanager
    def listening(folder, limits, **more):
        prepare(folder)
        with running(folder, names=("one",), **more) as world:
            settings = ServerSettings(state=folder / "server.db", **more)
            bound = socket.create_server(("127.0.0.1", 0))
            web = uvicorn.Server(web_config(world.app, settings, limits))
            thread = Thread(target=web.run, kwargs={"sockets": [bound]}, daemon=True)
            thread.start()
            try:
                yield lambda: socket.create_connection(bound.getsockname(), timeout=60)
            finally:
                web.should_exit = True
                thread.join(60)

    @staticmethod
    def is_closed(connection):
        try:
            return connection.recv(1) == b""
        except ConnectionError:
            return True

    @staticmethod
    def is_answered(connection):
        connection.sendall(b"GET /problems HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
        return connection.recv(15) == b"HTTP/1.1 200 OK"

    def answered(self, connect):
        """A connection that was answered, as soon as the server takes one."""
        for _ in range(600):
            connection = connect()
            with suppress(ConnectionError):
                if self.is_answered(connection):
                    return connection
        raise AssertionError("nothing was answered")

    def test_whoever_does_not_say_what_they_ask_is_cut_off(self, tmp_path):
        with self.listening(tmp_path, HttpLimits(head_seconds=0.3)) as connect:
            silent, slow = connect(), connect()
            with suppress(ConnectionError):
                slow.sendall(b"GET /problems HTTP/1.1\r\nhost:")
            assert self.is_closed(silent)
            assert self.is_closed(slow)

    @pytest.mark.long
    def test_nor_after_a_first_request(self, tmp_path):
        with self.listening(tmp_path, HttpLimits(head_seconds=1.0)) as connect:
            connection, page = self.answered(connect), b""
            while b"</html>" not in page:
                page += (more := connection.recv(1 << 16))
                assert more
            connection.sendall(b"GET /pro")  # After it uvicorn itself would wait for ever.
            assert self.is_closed(connection)

    def test_an_address_has_a_few_places_and_gets_them_back(self, tmp_path):
        limits = HttpLimits(head_seconds=600.0, connections_of_address=2)
        with self.listening(tmp_path, limits) as connect:
            first, second, third = connect(), connect(), connect()
            assert self.is_closed(third)
            assert self.is_answered(second)
            first.close()
            second.close()
            assert self.answered(connect)  # Once the server has seen it.

    def test_a_proxy_has_as_many_as_it_wants(self, tmp_path):
        limits = HttpLimits(head_seconds=600.0, connections_of_address=2)
        with self.listening(tmp_path, limits, behind_proxy=True) as connect:
            held = [connect() for _ in range(5)]
            assert all(map(self.is_answered, held))

    def test_a_network_of_ipv6_is_one_address(self):
        assert (
            network_of(("2001:db8::1", 1)) == network_of(("2001:db8::ffff:1", 2)) != network_of(("2001:db8:0:1::1", 1))
        )
        assert network_of(("192.0.2.1", 1)) != network_of(("192.0.2.2", 1))
        assert (
            network_of(("::ffff:192.0.2.1", 1)) == network_of(("192.0.2.1", 1)) != network_of(("::ffff:192.0.2.2", 1))
        )
        assert network_of(("2001:db8::1:zz", 1)) == "2001:db8::1:zz"  # A proxy may call it anything.

    def test_a_machine_with_a_network_of_ipv6_has_one_limit(self, tmp_path):
        """Else one machine fills the lists of codes and sign-ins, and lets the server hash passwords without end."""
        prepare(tmp_path)
        slow = HttpLimits(per_second=0.001, burst=3, sign_ins_per_second=0.001, sign_in_burst=3)
        with running(tmp_path, names=("one",), limits=slow) as world:

            def asked(place, work):
                return work(TestClient(world.app, base_url=HOST, client=(f"2001:db8::{place:x}", 1)))

            for work in (lambda one: one.post("/v1/device", json={}), lambda one: one.get("/v1/me")):
                found = [asked(place, work).status_code for place in range(1, 6)]
                assert found[0] in (200, 401)
                assert found[3:] == [429, 429]

    @pytest.mark.long
    def test_an_account_has_a_few_requests_that_wait(self, tmp_path):
        prepare(tmp_path)
        with running(tmp_path, names=("one",)) as world:
            world.server.jobs._stopping = True  # Nobody takes it.
            number = world.client("analyst").post("/v1/datasets/one/releases?wait=0", json=COUNT).json()["id"]
            caller, job = world.server.accounts.bearer(world.tokens["analyst"]), world.server.jobs.get(number)

            async def tried():
                wait = partial(waited, world.server, job=job, seconds=600.0)
                held = [asyncio.create_task(wait(caller)) for _ in range(8)]
                _, still = await asyncio.wait(held, timeout=1)
                assert len(still) == 8
                async with asyncio.timeout(60):
                    assert not (await wait(caller)).is_over  # At once, and without the answer.
                other = asyncio.create_task(wait(replace(caller, name="owner")))
                _, still = await asyncio.wait([other], timeout=1)
                assert still == {other}
                world.server.jobs.over(job).set_result(None)
                await asyncio.gather(*held, other)
                assert not world.server._waiting

            asyncio.run(tried())


class TestPlaces:
    @pytest.mark.parametrize(
        "host", ["evil.example", "127.0.0.1.evil.example", "", "127.0.0.1:x", "[::1", "localhost:80:80"]
    )
    def test_other_names_are_refused(self, world, host):
        """A page whose name is made to point to loopback gets nothing, not even the page on which one signs in."""
        assert world.client("analyst").get("/login", headers={"host": host}).status_code == 421

    @pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:8000", "LOCALHOST:9", "[::1]:8000"])
    def test_its_own_names_are_not(self, world, host):
        assert world.client("analyst").get("/v1/me", headers={"host": host}).status_code == 200

    @pytest.mark.parametrize(
        "path",
        ["../app.py", "..%2fapp.py", "%2e%2e/app.py", "page.css/../../app.py", "/etc/passwd", "page.css%00", "",
         "PAGE.CSS", "file:///etc/passwd", "..\\app.py", "//evil.example/x"],
    )  # fmt: skip
    def test_files_are_those_of_a_list(self, world, path):
        answer = world.client().get(f"/static/{path}")
        assert answer.status_code in (404, 400)
        assert "import" not in answer.text
        assert "root:" not in answer.text

    @pytest.mark.parametrize(
        "name", ["../one", "..%2fone", "one%00", "one/../two", "%6fne%2f..", "file:one", "\\\\host\\one"]
    )
    def test_a_data_set_is_one_of_a_list(self, world, name):
        assert world.client("analyst").get(f"/v1/datasets/{name}/budget").status_code == 404

    def test_nothing_is_for_other_origins(self, world):
        for path in ("/v1/me", "/login", "/static/page.js", "/nowhere"):
            answer = world.client("analyst").get(path, headers={"origin": "http://evil.example"})
            assert not [name for name in answer.headers if name.startswith("access-control")]
            policy = answer.headers["content-security-policy"]
            assert "unsafe" not in policy
            assert "default-src 'none'" in policy

    def test_methods_and_addresses_that_are_not_there_have_the_same_shape(self, world):
        client = world.client("analyst")
        assert client.delete("/v1/datasets/one/history").json()["code"] == "wrong-method"
        assert client.get("/v1/nowhere").json()["code"] == "not-found"
        assert client.get("/v1/datasets/").json()["code"] == "not-found"


def test_a_ledger_that_was_changed_keeps_the_server_from_starting(tmp_path):
    """C22."""
    prepare(tmp_path)
    with running(tmp_path, names=("one",)) as world:
        world.client("analyst").post("/v1/datasets/one/releases", json=COUNT)
    ledger = tmp_path / "one.ledger"
    kept = ledger.read_bytes()
    ledger.write_bytes(kept.replace(b"SELECT COUNT", b"SELECT C0UNT"))
    assert ledger.read_bytes() != kept
    with pytest.raises(LedgerDamaged), running(tmp_path, names=("one",)):
        pass


def test_the_canary_is_really_read(tmp_path):
    """Otherwise the tests above would say nothing: a listed value of the same table comes out."""
    listed = CLINICS.replace('"Station"', f'"{CANARY}"')
    prepare(tmp_path, rows=VISITS + f"\n1,30,{CANARY},1,1,yes\n", clinics=listed)
    with running(tmp_path, names=("one",)) as world:
        asked = {"sql": "SELECT clinic, COUNT(*) AS n FROM visits GROUP BY clinic", "epsilon": "1"}
        assert CANARY in world.client("analyst").post("/v1/datasets/one/releases", json=asked).text
