"""Forms, cookies and templates of every page, now and later; and planted mistakes that the tests of the server find."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
import test_server_accounts as accounts_tests
import test_server_attacks as attacks_tests
from server_world import COUNT, form_token, prepare, running
from test_server_jobs import SlowClock

from discreet.server import jobs
from discreet.server.accounts import Caller
from discreet.server.app import Server
from discreet.server.endpoints import ENDPOINTS
from discreet.server.jobs import Jobs
from discreet.server.pages.site import page_routes
from discreet.server.problems import Problem

SERVER = Path(__file__).parents[2] / "src" / "discreet" / "server"
# Where nobody is signed in yet, and programs that have no cookie: forms that have another proof, or need none.
OTHERWISE = {"/login", "/v1/device", "/v1/device/token"}


def filled(path):
    return re.sub(r"\{\w+\}", "one", path)


def changing(server):
    """Every address that changes something, with its method: of pages and of the API."""
    pages = [("POST", one.path) for one in page_routes(server) if "POST" in one.methods]
    return pages + [(one.method, one.path) for one in ENDPOINTS if one.method != "GET"]


def unguarded(world):
    """Addresses that take a change from a page elsewhere: without the form's token, or from another origin."""
    client = world.browser("owner")
    token = form_token(client.get("/account"))
    right = {"x-form-token": token}
    tries = [({}, {}), ({"x-form-token": "0" * 64}, {"form_token": "0" * 64})]
    tries += [(right | {"origin": "http://evil.example"}, {"form_token": token})]
    tries += [(right | {"sec-fetch-site": "cross-site"}, {"form_token": token}), (right | {"origin": "null"}, {})]
    found = []
    for method, path in changing(world.server):
        for headers, form in () if path in OTHERWISE else tries:
            said = {"json": COUNT} if path.startswith("/v1") else {"data": {**form, "dataset": "one"}}
            answer = client.request(method, filled(path), headers=headers, **said)
            if answer.status_code not in (403, 404):  # not there, or refused: nothing was done
                found.append((method, path, headers, answer.status_code))
    return found


@pytest.mark.long
def test_no_form_of_any_page_is_taken_from_elsewhere(world):
    """C37: with the cookie that a browser adds by itself."""
    assert len(changing(world.server)) > 10
    assert unguarded(world) == []


@pytest.mark.long
def test_a_form_that_is_taken_from_elsewhere_is_found(world, monkeypatch):
    monkeypatch.setattr(Server, "check_form", lambda *_: None)
    assert unguarded(world)


@pytest.mark.long
def test_every_cookie_of_every_page_is_for_this_site_and_no_script(world):
    client, said = world.browser("owner"), []
    for route in page_routes(world.server):
        for method in sorted(route.methods - {"HEAD"}):
            said += client.request(method, filled(route.path)).headers.get_list("set-cookie")
    assert said
    assert [one for one in said if not re.search("HttpOnly.*SameSite=strict", one)] == []


def careless(source):
    """Cookies that scripts could read, or that go with what another site asks for."""
    found = []
    for call in (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)):
        said = {word.arg: ast.unparse(word.value) for word in call.keywords}
        if isinstance(call.func, ast.Attribute) and call.func.attr == "set_cookie":
            right = said.get("httponly") == "True" and said.get("samesite") in ("'strict'", "site") and "secure" in said
            found += [] if right else [ast.unparse(call)]
        # The way back from a provider begins on its page: that cookie alone is lax, and signs nobody in.
        if said.get("lax") == "True" and ast.unparse(call.args[2]) != "_BEGAN":
            found.append(ast.unparse(call))
    return found


def test_no_cookie_is_for_scripts_or_other_sites():
    assert {file.name: hits for file in SERVER.rglob("*.py") if (hits := careless(file.read_text()))} == {}


@pytest.mark.parametrize(
    "mistake",
    ["made.set_cookie(n, v, httponly=True, secure=s)", "made.set_cookie(n, v, samesite='strict', secure=s)",
     "made.set_cookie(n, v, httponly=True, samesite='lax', secure=s)", "_cookie(server, made, COOKIE, v, lax=True)"],
)  # fmt: skip
def test_a_cookie_that_is_is_found(mistake):
    assert careless(mistake)


UNSAFE = re.compile(
    r"\|\s*safe\b|autoescape\s+false|<script(?![^>]*\ssrc=)|\son\w+\s*=|\sstyle\s*=|javascript:|https?://(?!www\.w3\.org)",
    re.IGNORECASE,
)


def test_no_template_trusts_a_text_runs_inline_code_or_asks_elsewhere():
    """C37: the policy forbids it, too; a template that relied on either alone would be one slip from harm."""
    found = {file.name: UNSAFE.findall(file.read_text()) for file in (SERVER / "templates").glob("*.html")}
    assert {name: hits for name, hits in found.items() if hits} == {}
    scripts = "".join(file.read_text() for file in (SERVER / "static").glob("*.js"))
    assert re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", scripts) == []


@pytest.mark.parametrize(
    "mistake",
    ["{{ name | safe }}", "{{name|safe}}", "{% autoescape false %}", "<script>x</script>", '<a onclick="x">',
     '<p style="x">', '<a href="javascript:x">', '<img src="http://evil.example/x">'],
)  # fmt: skip
def test_a_template_that_does_is_found(mistake):
    assert UNSAFE.search(mistake)


class TestPlanted:
    """Mistakes of the server that tests elsewhere find."""

    @pytest.mark.long
    def test_an_endpoint_without_a_check_of_its_operation(self, world, monkeypatch):
        monkeypatch.setattr(Caller, "check", lambda *_: None)
        with pytest.raises(AssertionError):
            accounts_tests.TestMatrix().test_every_role_on_every_endpoint_and_data_set(world, "reader")

    @pytest.mark.long
    def test_an_error_that_carries_a_value_of_a_row(self, tmp_path, monkeypatch):
        monkeypatch.setattr(jobs, "problem_of", lambda error: Problem("answer-failed", str(error)))
        with pytest.raises(AssertionError):
            attacks_tests.test_what_fails_after_the_charge_is_one_constant_answer(tmp_path, monkeypatch)

    @staticmethod
    def told_early(folder):
        """Whether an answer that is known is told before its declared moment."""
        prepare(folder)
        clock = SlowClock()
        with running(folder, names=("one",), until=clock, workers=1) as world:
            client = world.client("analyst")
            number = client.post("/v1/datasets/one/releases?wait=0", json=COUNT).json()["id"]
            assert clock.reached.get(timeout=240)[1].wait(240)
            state = client.get(f"/v1/releases/{number}?wait=1").json()["state"]
            clock.go.put(None)
        return state != "running"

    @pytest.mark.long
    def test_a_job_that_is_told_as_soon_as_it_is_known(self, tmp_path, monkeypatch):
        compute = Jobs._compute

        def told(self, job, found, known, patience):
            compute(self, job, found, known, patience)
            self._tell(job, found.answer, found.problem, frees=False)

        for folder, early in (("right", False), ("mistake", True)):
            (tmp_path / folder).mkdir()
            assert self.told_early(tmp_path / folder) is early
            monkeypatch.setattr(Jobs, "_compute", told)
