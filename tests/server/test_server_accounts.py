"""Who may do what: every role on every endpoint and data set, tokens, visits, forms, lock-out, clocks."""

from __future__ import annotations

import hashlib
import re

import pytest
from server_world import COUNT, DATASETS, SAVE, form_token, prepare, running
from starlette.requests import Request

from discreet.errors import InvalidParameter, Refused
from discreet.server.accounts import OPERATIONS, SCOPES, AccountRole, Accounts
from discreet.server.app import cookie_of
from discreet.server.endpoints import ENDPOINTS
from discreet.server.pages.site import page_routes
from discreet.server.problems import Problem
from discreet.server.state_file import StateFile
from discreet.server.state_store import StateConflict

# Written out once more, by hand: a slip in the table of the server is a difference here.
ALLOWED = {
    "me": {"owner", "custodian", "analyst", "auditor", "agent", "reader"},
    "datasets": {"owner", "custodian", "analyst", "auditor", "agent", "reader"},
    "dataset": {"owner", "custodian", "analyst", "auditor", "agent", "reader"},
    "estimate": {"owner", "custodian", "analyst", "agent"},
    "dummy": {"owner", "custodian", "analyst", "agent"},
    "release": {"owner", "custodian", "analyst", "agent"},
    "releases": {"owner", "custodian", "analyst", "auditor", "agent", "reader"},
    "budget": {"owner", "custodian", "analyst", "auditor", "agent"},
    "history": {"owner", "custodian", "analyst", "auditor", "agent"},
    "ledger": {"owner", "custodian", "auditor"},
    "plans": {"owner", "custodian", "auditor"},
    "plan estimate": {"owner", "custodian"},
    "plan release": {"owner", "custodian"},
    "approvals": {"owner", "custodian", "analyst", "auditor", "agent"},
    "approval": {"owner", "custodian"},
    "approve": {"owner", "custodian"},
    "withdraw": {"owner", "custodian", "analyst", "agent"},
    "exact look": {"owner", "custodian"},
    "data": {"owner", "custodian"},
    "log": {"owner", "auditor"},
    "questions": {"owner", "custodian", "analyst", "auditor", "reader"},
    "save": {"owner", "custodian", "analyst"},
    "health": {"owner", "custodian", "auditor"},
    "metrics": {"owner", "custodian"},
    "people": {"owner", "custodian"},
    "tokens": {"owner", "custodian", "analyst", "auditor", "reader"},
    "device": {"owner", "custodian", "analyst", "auditor", "agent", "reader"},
}
PAGES_ONLY = {"exact look", "data"}  # what a token cannot do
ROLES = sorted(role.value for role in AccountRole)
# Those about a data set.
PAGES = {"/ask": "estimate", "/budget": "budget", "/releases/{id}": "releases", "/questions": "questions"}
# What forms of pages about a data set do: the page, the operation, and the status where it is done.
FORMS = {"/ask/price": ("estimate", "estimate", 200), "/questions": ("questions", "save", 303)}
FORMS |= {"/budget": ("budget", "ledger", 200)}
PAGES |= dict.fromkeys(("/build", "/build/plan.toml", "/build/notebook.ipynb"), "estimate")
PAGES |= {"/releases": "releases", "/releases/new/plan": "plan estimate"}
PAGES |= dict.fromkeys((f"/releases/new/{kind}" for kind in ("profile", "synth", "train")), "estimate")
# Pages about no data set: tests/server/test_server_people.py says what each role finds there.
ADMIN = {"/admin": "health", "/admin/people": "people", "/admin/tokens": "people", "/admin/log": "log"}
ADMIN |= {"/account/tokens": "tokens", "/device": "tokens"}
OPEN = {"/healthz", "/readyz"}  # for anybody, two constant answers each

# What a request of an endpoint says, by path or operation, where it is no question.
BODIES = {
    "approve": {"reason": "looked at"},
    "save": SAVE,
    "/v1/people": {"name": "ana b", "role": "reader", "datasets": ["one"]},
    "/v1/people/{name}": {"grant": []},
    "/v1/tokens": {"scopes": ["manage"], "cap": "-1", "days": 0.001},
    "/v1/device": {"scopes": ["no such scope"]},
    "/v1/device/token": {"device_code": "dsd_0"},
}
# What they answer then to whoever may use them: nothing of it changes an account.
ANSWERS = {
    ("POST", "/v1/people"): 422,
    ("POST", "/v1/tokens"): 422,
    ("DELETE", "/v1/tokens/{id}"): 404,
    ("POST", "/v1/device"): 422,
    ("POST", "/v1/device/token"): 400,
    ("POST", "/v1/people/{name}/invitation"): 404,
}
# The releases of the matrix are answered: nobody decides about them, and they never waited.
NOT_WAITING = {"approval": 404, "approve": 409, "withdraw": 409}


# Other kinds of jobs, by a part of the address: whoever may ask is told that there is no such table, at once.
NO_TABLE = {
    "/plans/": {"toml": "nothing"},
    "/profile/": {"epsilon": 1, "table": "nothing"},
    "/synthetic/": {"epsilon": 1, "delta": 1e-6, "table": "nothing"},
    "/training/": {"model": "linear", "target": "a", "features": ["b"], "epsilon": 1, "delta": 1e-6, "table": "no"},
}
NOT_OF_QUESTIONS = ("/v1/releases/{id}/files/{file}", "/v1/releases/{id}/verify")


def no_table(endpoint):
    return next((said for part, said in NO_TABLE.items() if part in endpoint.path), None)


def ask(client, endpoint, dataset, number="0" * 32, question="0" * 16):
    name = "no-such-name" if endpoint.path.endswith("invitation") else "analyst"
    held = {"dataset": dataset, "id": number, "format": "csv", "file": "report.html", "question": question}
    path = endpoint.path.format(**held, name=name)
    said = BODIES.get(endpoint.path) or BODIES.get(endpoint.operation, no_table(endpoint) or COUNT)
    return client.request(endpoint.method, path, json=None if endpoint.body is None else said)


def saved(world, endpoint, dataset):
    """A question that the owner shares, where an endpoint is about one."""
    if "{question}" not in endpoint.path:
        return ""
    answer = world.client("owner").post(f"/v1/datasets/{dataset}/questions", json=SAVE)
    return answer.json().get("id", "0" * 16)


class TestMatrix:
    """C33."""

    def test_every_operation_is_in_both_tables(self):
        assert {name: {role.value for role in one.roles} for name, one in OPERATIONS.items()} == ALLOWED
        assert {endpoint.operation for endpoint in ENDPOINTS} | PAGES_ONLY == set(OPERATIONS)
        assert not {endpoint.operation for endpoint in ENDPOINTS} & PAGES_ONLY

    @pytest.mark.long
    @pytest.mark.parametrize("role", ROLES)
    def test_every_role_on_every_endpoint_and_data_set(self, world, role):
        owner = world.client("owner")
        numbers = {name: owner.post(f"/v1/datasets/{name}/releases", json=COUNT).json()["id"] for name in DATASETS}
        client = world.client(role)
        for endpoint in ENDPOINTS:
            for dataset in (*DATASETS, "nowhere"):
                question = saved(world, endpoint, dataset)
                answer = ask(client, endpoint, dataset, numbers.get(dataset, "0" * 32), question)
                assert answer.status_code == self.expected(role, endpoint, dataset), (role, endpoint.path, dataset)

    @staticmethod
    def expected(role, endpoint, dataset):
        if endpoint.operation in NOT_WAITING and role not in ALLOWED[endpoint.operation]:
            return 403  # Of a release the role is looked at first: its data set is not in the address.
        number = "{id}" in endpoint.path and endpoint.operation != "tokens"
        about = "{dataset}" in endpoint.path or number
        seen = not about or dataset in (DATASETS if role == "owner" else ("one",))
        if role in ("analyst", "agent") and number:
            seen = False  # The owner asked it.
        if not seen:
            return 404
        if endpoint.method == "DELETE" and "{question}" in endpoint.path:
            return 200 if role == "owner" else 403  # The owner saved it.
        if role in ALLOWED[endpoint.operation]:
            if no_table(endpoint) is not None or endpoint.path in NOT_OF_QUESTIONS:
                return 404 if endpoint.path in NOT_OF_QUESTIONS else 422
            other = NOT_WAITING.get(endpoint.operation, 200)
            return ANSWERS.get((endpoint.method, endpoint.path), other)
        return 403

    @pytest.mark.long
    def test_every_role_on_the_page_of_an_approval(self, world):
        """Nothing waits here: whoever may know of the release is told that there is no such approval."""
        number = world.client("owner").post("/v1/datasets/one/releases", json=COUNT).json()["id"]
        for role in ROLES:
            client = world.browser(role)
            assert client.get("/approvals").status_code == {"agent": 303, "reader": 403}.get(role, 200), role
            expected = {"agent": 303, "reader": 403}.get(role, 404)
            assert client.get(f"/approvals/{number}").status_code == expected, role
            said = {"form_token": "" if role == "agent" else form_token(client.get("/account")), "looked": "yes"}
            for action, operation in (("approve", "approve"), ("decline", "approve"), ("withdraw", "withdraw")):
                answer = client.post(f"/approvals/{number}", data={**said, "action": action, "reason": "x"})
                allowed = role in ALLOWED[operation] and role != "analyst"  # who does not see what the owner asked
                wanted = expected if role in ("agent", "reader", "analyst") or allowed else 403
                assert answer.status_code == wanted, (role, action)

    def test_every_page_is_tried(self, world):
        """A page that is added is added here, or to the matrix above if it is one of the API."""
        found = {one.path for one in page_routes(world.server)}
        rest = {"/", "/login", "/logout", "/problems", "/static/{name}", "/account", "/approvals", "/approvals/{id}"}
        rest |= {"/lab", "/lab/attacks", "/help"}  # for everybody who is signed in: tests of the lab and of help
        rest |= {"/releases/{id}/exact"}  # in test_server_exact_looks.py
        rest |= {"/data", "/data/{dataset}"}  # in test_server_data.py
        assert found == rest | {*PAGES, *FORMS, *ADMIN, *OPEN}

    @pytest.mark.long
    @pytest.mark.parametrize("role", ROLES)
    def test_every_role_on_every_page_and_data_set(self, world, role):
        owner, client = world.client("owner"), world.browser(role)
        numbers = {name: owner.post(f"/v1/datasets/{name}/releases", json=COUNT).json()["id"] for name in DATASETS}
        account = client.get("/account")
        assert account.status_code == (303 if role == "agent" else 200)
        said = {"form_token": "" if role == "agent" else form_token(account), "sql": COUNT["sql"], "amount": "0.1"}
        for dataset in (*DATASETS, "nowhere"):
            for path, operation in PAGES.items():
                place = path.format(id=numbers.get(dataset, "0" * 32))
                answer = client.get(place, params={"dataset": dataset})
                assert answer.status_code == self.page(role, path, operation, dataset), (role, path, dataset)
            for action in ("price", "dummy", "release"):
                answer = client.post("/ask", data={**said, "dataset": dataset, "action": action})
                expected = self.page(role, "/ask", "release", dataset)
                done = 303 if action == "release" else 200
                assert answer.status_code == (done if expected == 200 else expected), (role, action, dataset)
            for path, (page, operation, done) in FORMS.items():
                answer = client.post(path, data={**said, "dataset": dataset, "title": "All"})
                expected = self.page(role, path, page, dataset)
                allowed = done if role in ALLOWED[operation] else 403
                assert answer.status_code == (allowed if expected == 200 else expected), (role, path, dataset)
        for path, operation in ADMIN.items():
            answer = client.request("POST" if path == "/account/tokens" else "GET", path, data=said)
            done = 422 if path == "/account/tokens" else 200
            allowed = 303 if role == "agent" else done if role in ALLOWED[operation] else 403
            assert answer.status_code == allowed, (role, path)
        for path in (*PAGES, "/account"):
            assert (client.get(path.format(id="0" * 32)).headers.get("location") == "/login") is (role == "agent")

    @staticmethod
    def page(role, path, operation, dataset):
        if role == "agent":
            return 303  # They have no page.
        if role not in ALLOWED[operation]:
            return 403
        seen = dataset in (DATASETS if role == "owner" else ("one",))
        return 404 if not seen or (role == "analyst" and "{id}" in path) else 200

    def test_nobody_gets_nothing(self, world):
        assert {one.path for one in ENDPOINTS if one.anybody} == {"/v1/device", "/v1/device/token"}
        for endpoint in ENDPOINTS:
            if not endpoint.anybody:
                assert ask(world.client(), endpoint, "one").status_code == 401
        for path in ("/ask", "/budget", "/account", "/releases/" + "0" * 32, *(set(ADMIN) - {"/account/tokens"})):
            assert world.client().get(path).headers["location"] == "/login"

    def test_a_data_set_that_one_may_not_see_looks_like_one_that_is_not_there(self, world):
        client = world.client("analyst")
        there, not_there = (client.get(f"/v1/datasets/{name}") for name in ("two", "nowhere"))
        assert (there.status_code, there.content) == (not_there.status_code, not_there.content)

    @pytest.mark.long
    def test_an_analyst_sees_their_own_questions_only(self, world):
        number = world.client("owner").post("/v1/datasets/one/releases", json=COUNT).json()["id"]
        client = world.client("analyst")
        assert client.get(f"/v1/releases/{number}").status_code == 404
        for path in ("history", "releases"):
            (listed,) = client.get(f"/v1/datasets/one/{path}").json().values()
            assert {one["who"] for one in listed} <= {"analyst"}
        assert len(number) == 32  # 128 bits.


class TestTokens:
    @pytest.mark.parametrize("scope", SCOPES)
    def test_a_scope_allows_its_own_operations_only(self, world, scope):
        client = world.client()
        client.headers["authorization"] = f"Bearer {world.token('owner', scopes=[scope])}"
        for endpoint in ENDPOINTS:
            if "{id}" not in endpoint.path and not endpoint.anybody:
                right = OPERATIONS[endpoint.operation].scope == scope
                question = saved(world, endpoint, "one")
                answer = ask(client, endpoint, "one", question=question)
                assert ("this token has no scope" not in answer.text) is right, endpoint.path
                assert answer.status_code in (200, 422, *ANSWERS.values(), 403) if right else answer.status_code == 403

    def test_a_token_may_be_for_one_data_set(self, world):
        client = world.client()
        client.headers["authorization"] = f"Bearer {world.token('owner', datasets=['two'])}"
        assert client.get("/v1/datasets").json() == {"datasets": ["two"]}
        assert client.get("/v1/datasets/one").status_code == 404

    def test_data_sets_are_granted_and_taken_back(self, world):
        accounts = world.server.accounts
        accounts.add("bob", AccountRole.READER, (), by="test")
        client = world.client()
        client.headers["authorization"] = f"Bearer {world.token('bob')}"
        for change, seen in (({}, ["one", "two"]), ({}, ["one", "two"]), ({"revoke": True}, [])):
            accounts.grant("bob", ["two", "one"], by="test", **change)
            assert client.get("/v1/datasets").json() == {"datasets": seen}
        for name, datasets in (("nobody", ["one"]), ("bob", []), ("owner", ["one"])):
            with pytest.raises(InvalidParameter):
                accounts.grant(name, datasets, by="test")

    def test_wrong_tokens_are_refused_alike(self, world):
        good = world.token("analyst")
        world.server.accounts.revoke(good.split("_")[1], by="test")
        old = world.token("analyst", seconds=1e-6)
        invitation = world.server.accounts.invite("analyst", by="test")
        tried = [good, old, invitation, "", "dsc_", "dsc__", good[:-1], good + "0", "x" * 5000, "dsc_ünïcode_ü"]
        answers = set()
        for token in tried:
            client = world.client()
            answer = client.get("/v1/me", headers={"authorization": f"Bearer {token}".encode()})
            answers.add((answer.status_code, answer.content))
        assert len(answers) == 1
        assert answers.pop()[0] == 401

    def test_secrets_are_kept_as_digests(self, world):
        path = world.server.state.path
        stored = path.read_bytes() + path.with_name(path.name + "-wal").read_bytes()
        for token in world.tokens.values():
            assert token.split("_")[2].encode() not in stored
        assert path.stat().st_mode & 0o077 == 0

    @pytest.mark.long
    def test_an_agent_spends_no_more_than_its_cap(self, world):
        with pytest.raises(InvalidParameter, match="cap"):
            world.token("agent")
        client = world.client()
        client.headers["authorization"] = f"Bearer {world.token('agent', cap='0.25')}"
        codes = [client.post("/v1/datasets/one/releases", json=COUNT).json().get("code") for _ in range(4)]
        assert codes == [None, None, "budget-exceeded", "budget-exceeded"]
        for price in ({"share": "0.001"}, {"error": "1000"}):
            asked = {"sql": COUNT["sql"]} | price
            assert client.post("/v1/datasets/one/releases", json=asked).json()["code"] == "invalid"

    def test_a_page_takes_no_token(self, world):
        """Otherwise a token that may only read could set its owner's password."""
        client = world.client("owner")
        answer = client.post("/account", data={"password": "a new long password", "form_token": ""})
        assert answer.headers["location"] == "/login"


class TestVisits:
    def test_forms_need_their_token(self, world):
        """C37: a page elsewhere can make a browser send the cookie, and knows no token."""
        client = world.browser("analyst")
        for sent in ({}, {"form_token": ""}, {"form_token": "0" * 64}):
            for path, said in (("/ask", COUNT), ("/account", {"password": "x" * 20}), ("/logout", {})):
                answer = client.post(path, data={**said, "dataset": "one", "action": "release", **sent})
                assert answer.status_code == 403
        for headers in ({}, {"x-form-token": "0" * 64}):
            answer = client.post("/v1/datasets/one/estimate", json=COUNT, headers=headers)
            assert answer.json()["code"] == "wrong-form-token"
        right = {"x-form-token": form_token(client.get("/account"))}
        assert client.post("/v1/datasets/one/estimate", json=COUNT, headers=right).status_code == 200
        for headers in ({"origin": "http://evil.example"}, {"origin": "null"}, {"sec-fetch-site": "cross-site"}):
            answer = client.post("/v1/datasets/one/estimate", json=COUNT, headers=right | headers)
            assert answer.json()["code"] == "wrong-form-token"

    def test_the_cookie_is_for_this_server_and_no_script(self, world):
        client = world.client()
        page = client.get("/login")
        invitation = world.server.accounts.invite("reader", by="test")
        answer = client.post("/login", data={"form_token": form_token(page), "invitation": invitation})
        said = answer.headers["set-cookie"]
        assert re.search(r"HttpOnly.*Path=/;.*SameSite=strict", said)
        assert "Secure" not in said  # Loopback has no TLS.

    def test_over_tls_no_cookie_is_sent_in_the_clear_or_set_by_a_neighbour(self, tmp_path):
        prepare(tmp_path)
        with running(tmp_path, names=("one",), behind_proxy=True, host="127.0.0.1") as world:
            client = world.client()
            client.base_url = "https://127.0.0.1"
            page = client.get("/login")
            data = {"form_token": form_token(page), "invitation": world.server.accounts.invite("reader", by="test")}
            signed_in = client.post("/login", data=data)
            token = form_token(client.get("/account"))
            cookies = dict(client.cookies)
            out = client.post("/logout", data={"form_token": token})
            for answer, name in ((page, "form"), (signed_in, "visit"), (out, "visit")):
                said = answer.headers["set-cookie"]
                assert said.startswith(f"__Host-discreet_{name}=")
                assert re.search(r"HttpOnly.*Path=/;.*SameSite=strict; Secure", said)
                assert "domain" not in said.casefold()
            assert set(cookies) == {"__Host-discreet_form", "__Host-discreet_visit"}
            assert "__Host-discreet_visit" not in client.cookies
            plain = {"cookie": f"discreet_visit={cookies['__Host-discreet_visit']}"}
            assert world.client().get("/v1/me", headers=plain).status_code == 401

    @pytest.mark.parametrize(
        ("lines", "found"),
        [
            (["visit=a"], "a"),
            (["other=b; visit=a;"], "a"),
            (["visit=a; visit=b"], None),
            (["visit=a;visit=a"], None),
            (["visit=a", "visit=b"], None),
            (["visit=a; visit"], None),
            (["visits=a"], None),
            ([f"visit={'a' * 201}"], None),
            ([], None),
        ],
    )
    def test_two_cookies_of_a_name_are_none(self, lines, found):
        headers = [(b"cookie", line.encode()) for line in lines]
        assert cookie_of(Request({"type": "http", "headers": headers}), "visit") == found

    def test_a_session_that_was_planted_is_never_taken_over(self, world):
        client = world.client()
        client.cookies.set("discreet_visit", "planted", domain="127.0.0.1")
        invitation = world.server.accounts.invite("reader", by="test")
        data = {"form_token": form_token(client.get("/login")), "invitation": invitation}
        cookie = client.post("/login", data=data).cookies["discreet_visit"]
        assert cookie != "planted"
        assert world.server.accounts.visitor("planted") is None
        assert world.server.accounts.visitor(cookie).name == "reader"
        again = world.client()
        data = {"form_token": form_token(again.get("/login")), "invitation": invitation}
        assert again.post("/login", data=data).status_code == 401  # It was used.

    def test_signing_out_ends_the_visit(self, world):
        client = world.browser("reader")
        cookie = client.cookies["discreet_visit"]
        client.post("/logout", data={"form_token": form_token(client.get("/account"))})
        assert world.server.accounts.visitor(cookie) is None

    def test_signing_in_needs_the_form_of_this_browser(self, world):
        invitation = world.server.accounts.invite("reader", by="test")
        token = form_token(world.client().get("/login"))  # of another browser
        client = world.client()
        client.get("/login")
        for sent in (token, "", "0" * 64):
            assert client.post("/login", data={"form_token": sent, "invitation": invitation}).status_code == 403

    def test_an_agent_has_no_page(self, world):
        client = world.browser("agent")
        assert client.get("/account").headers["location"] == "/login"


@pytest.fixture
def alone(tmp_path):
    """Accounts whose clock the test sets."""
    now = [1_000_000.0]
    state = StateFile(tmp_path / "state.db", clock=lambda: now[0])
    accounts = Accounts(state)
    accounts.add("ana", AccountRole.ANALYST, ["one"], by="test")
    accounts.set_password("ana", "correct horse battery")
    yield accounts, state, now
    state.close()


class TestPasswords:
    @pytest.mark.long
    def test_five_wrong_ones_lock_the_account_for_a_while_and_look_like_a_wrong_name(self, alone):
        accounts, _, now = alone
        told = set()
        for name in ["ana"] * 5 + ["nobody"]:
            with pytest.raises(Problem) as refused:
                accounts.sign_in(name, "wrong")
            told.add(str(refused.value.document()))
        with pytest.raises(Problem) as refused:
            accounts.sign_in("ana", "correct horse battery")
        told.add(str(refused.value.document()))
        assert len(told) == 1
        now[0] += 901
        assert accounts.visitor(accounts.sign_in("ana", "correct horse battery")[0]).name == "ana"

    @pytest.mark.long
    def test_a_lock_ends_whatever_is_tried_during_it(self, alone):
        accounts, _, now = alone
        right, began = "correct horse battery", now[0]

        def may(password):
            try:
                return bool(accounts.sign_in("ana", password))
            except Problem:
                return False

        assert not any(may("wrong") for _ in range(5))
        for later in (1, 450, 899):
            now[0] = began + later
            assert not may(right)
            assert not may("wrong")
            with pytest.raises(Problem):
                accounts.change_password("ana", "another long password", current=right)
        now[0] = began + 901
        assert not any(may("wrong") for _ in range(4))  # Counting began anew.
        assert may(right)
        assert not any(may("wrong") for _ in range(4))
        assert may(right)  # It was counted anew after signing in, too.

    @pytest.mark.long
    def test_what_is_typed_as_a_name_is_not_kept(self, alone):
        """It may be a password."""
        accounts, state, _ = alone
        for name in ("my secret passw0rd", "ANA", "ana"):
            for _ in range(6):
                with pytest.raises(Problem):
                    accounts.sign_in(name, "wrong")
        said = [one for one in state.decisions() if one["what"] == "sign in"]
        assert {(one["about"], one["outcome"]) for one in said} == {
            ("", "refused"),
            ("ana", "refused"),
            ("ana", "locked"),
        }
        stored = state.path.read_bytes() + state.path.with_name("state.db-wal").read_bytes()
        for hidden in ("my secret passw0rd", hashlib.sha256(b"my secret passw0rd").hexdigest()[:16], "ANA"):
            assert hidden.encode() not in stored

    @pytest.mark.long
    def test_an_invitation_replaces_a_forgotten_password_and_voids_the_others(self, world):
        accounts = world.server.accounts
        accounts.set_password("reader", "the forgotten password")
        older = accounts.invite("reader", by="test")
        client = world.browser("reader")
        page = client.get("/account")
        assert 'name="current"' not in page.text
        data = {"form_token": form_token(page), "password": "a new long password"}
        assert client.post("/account", data=data).headers["location"] == "/login?password=set"
        with pytest.raises(Problem):
            accounts.accept(older)
        client = world.client()
        data = {"form_token": form_token(client.get("/login")), "name": "reader", "password": "a new long password"}
        assert client.post("/login", data=data).status_code == 303
        page = client.get("/account")  # This visit began by a password.
        assert 'name="current"' in page.text
        data = {"form_token": form_token(page), "password": "yet another password"}
        assert client.post("/account", data=data).status_code == 422

    def test_a_clock_that_jumps_back_revives_nothing(self, alone):
        accounts, state, now = alone
        cookie, _ = accounts.sign_in("ana", "correct horse battery")
        token = accounts.new_token("ana", scopes=["read"], datasets=None, cap=None, seconds=60, by="test")
        now[0] += 9 * 3600
        assert accounts.visitor(cookie) is None
        now[0] -= 9 * 3600
        assert accounts.visitor(cookie) is None
        with pytest.raises(Problem):
            accounts.bearer(token)
        assert state.now() == 1_000_000 + 9 * 3600

    def test_whoever_is_disabled_is_out_at_once(self, alone):
        accounts, _, _ = alone
        cookie, _ = accounts.sign_in("ana", "correct horse battery")
        token = accounts.new_token("ana", scopes=["read"], datasets=None, cap=None, seconds=60, by="test")
        accounts.disable("ana", by="test")
        assert accounts.visitor(cookie) is None
        with pytest.raises(Problem):
            accounts.bearer(token)

    def test_a_password_is_changed_by_whoever_knows_it(self, alone):
        accounts, _, _ = alone
        for _ in range(2):
            with pytest.raises(Problem, match="invalid"):
                accounts.change_password("ana", "another long password", current="wrong")
        accounts.change_password("ana", "another long password", current="correct horse battery")
        assert accounts.sign_in("ana", "another long password")

    def test_short_passwords_and_odd_names_are_refused(self, alone):
        accounts, _, _ = alone
        with pytest.raises(Problem, match="invalid"):
            accounts.set_password("ana", "short")
        for name in ("", "a b", "<b>", "-a", "a" * 65, "a\n", "Ana"):
            with pytest.raises(InvalidParameter):
                accounts.add(name, AccountRole.READER, (), by="test")


class TestDecisions:
    def test_they_only_grow_and_every_change_of_one_is_found(self, alone):
        _, state, _ = alone
        assert state.decisions_hold()
        for change in ("UPDATE decisions SET who = 'x'", "DELETE FROM decisions"):
            with pytest.raises(StateConflict), state.changing() as database:
                database.execute(change)
        with state.changing() as database:
            database.execute("DROP TRIGGER decisions_stay")
            database.execute("UPDATE decisions SET outcome = 'refused' WHERE number = 2")
        assert not state.decisions_hold()

    @pytest.mark.long
    def test_what_was_refused_and_released_is_in_the_log(self, world):
        world.client("reader").get("/v1/datasets/one/budget")
        number = world.client("analyst").post("/v1/datasets/one/releases", json=COUNT).json()["id"]
        log = world.client("auditor").get("/v1/log").json()
        assert log["holds"]
        said = [(one["who"], one["what"], one["outcome"], one["about"]) for one in log["decisions"]]
        assert ("reader", "budget", "forbidden", "") in said
        assert ("analyst", "release", "queued", number) in said
        assert ("analyst", "release", "answered", number) in said
        assert "SELECT" not in str(log)

    @pytest.mark.long
    def test_the_log_has_the_data_sets_that_one_sees(self, world):
        for name in DATASETS:
            world.client("owner").post(f"/v1/datasets/{name}/releases", json=COUNT)
        some = {"two": ["two"], "two, three": ["two", "three"], "none": []}
        seen = {
            "auditor": {"one"},
            "owner": {"", *DATASETS},
            "two": {"two"},
            "two, three": {"two", "three"},
            "none": set(),
        }
        for who, expected in seen.items():
            client = world.client(None if who in some else who)
            if who in some:
                client.headers["authorization"] = f"Bearer {world.token('owner', datasets=some[who])}"
            log = client.get("/v1/log?limit=200").json()
            assert {one["dataset"] for one in log["decisions"]} == expected, who
            assert log["holds"]

    def test_a_changed_log_or_a_second_server_keeps_the_server_from_starting(self, tmp_path):
        prepare(tmp_path)
        with (
            running(tmp_path, names=("one",)) as world,
            pytest.raises(Refused, match="another server"),
            running(tmp_path, names=("two",)),
        ):
            pass
        with StateFile(tmp_path / "server.db").changing() as database:
            database.execute("DROP TRIGGER decisions_stay")
            database.execute("UPDATE decisions SET who = 'mallory' WHERE number = 1")
        with pytest.raises(Refused, match="log of decisions"), running(tmp_path, names=("one",)):
            pass
        assert world.server is not None
