"""How a notebook gets a token: codes that a person allows, once, for a while, and nobody guesses."""

from __future__ import annotations

import pytest
from server_world import form_token

from discreet.server.accounts import AccountRole, Accounts
from discreet.server.problems import Problem, problem_of
from discreet.server.sign_in import device_flow
from discreet.server.sign_in.device_flow import DeviceCodes
from discreet.server.state_file import StateFile


@pytest.fixture
def codes(tmp_path):
    """Codes whose clock the test sets, a person, and how to be them."""
    now = [1_000_000.0]
    state = StateFile(tmp_path / "state.db", clock=lambda: now[0])
    accounts = Accounts(state)
    for name in ("ana", "eve"):
        accounts.add(name, AccountRole.ANALYST, ["one"], by="test")
    people = {name: accounts.visitor(accounts.accept(accounts.invite(name, by="test"))[0]) for name in ("ana", "eve")}
    yield DeviceCodes(state, accounts), accounts, people, now
    state.close()


def code(work):
    try:
        work()
    except Exception as error:  # noqa: BLE001
        return problem_of(error).kind.code
    return None


class TestCodes:
    def test_a_code_that_was_allowed_gives_a_token_once(self, codes):
        made, accounts, people, now = codes
        begun = made.begin("notebook", ["read", "ask", "release"])
        device = begun["device_code"]
        assert code(lambda: made.redeem(device)) == "authorization-pending"
        assert code(lambda: made.redeem(device)) == "slow-down"
        typed = begun["user_code"].lower().replace("-", " ")
        made.decide(people["ana"], typed, scopes=["read"], datasets=["one"], cap="0.5")
        now[0] += 5
        token = made.redeem(device)["token"]
        caller = accounts.bearer(token)
        assert (caller.name, caller.scopes, caller.granted) == ("ana", frozenset({"read"}), frozenset({"one"}))
        now[0] += 5
        assert code(lambda: made.redeem(device)) == "expired-code"
        now[0] += 8 * 3600
        assert code(lambda: accounts.bearer(token)) == "not-signed-in"

    def test_a_code_that_was_denied_or_is_too_old_gives_nothing(self, codes):
        made, _, people, now = codes
        denied, old = made.begin("", ["read"]), made.begin("", ["read"])
        made.decide(people["ana"], denied["user_code"], scopes=[], datasets=None, cap=None)
        assert code(lambda: made.redeem(denied["device_code"])) == "access-denied"
        now[0] += 601
        assert code(lambda: made.look(people["ana"], old["user_code"])) == "invalid"
        for device in (old["device_code"], denied["device_code"], "dsd_unknown", ""):
            assert code(lambda device=device: made.redeem(device)) == "expired-code"

    def test_nobody_allows_more_than_was_asked_or_than_they_see(self, codes):
        made, _, people, _ = codes
        user = made.begin("", ["read"])["user_code"]
        ana = people["ana"]
        assert code(lambda: made.decide(ana, user, scopes=["release"], datasets=None, cap=None)) == "invalid"
        assert code(lambda: made.decide(ana, user, scopes=["read"], datasets=["two"], cap=None)) == "not-found"
        assert code(lambda: made.decide(ana, user, scopes=["read"], datasets=None, cap="-1")) == "invalid"
        for scopes in ([], ["manage"], ["approve"], ["read", "x"]):
            assert code(lambda scopes=scopes: made.begin("", scopes)) == "invalid"

    def test_a_code_is_allowed_by_one_person_once(self, codes):
        made, accounts, people, now = codes
        begun = made.begin("", ["read"])
        said = {"scopes": ["read"], "datasets": None, "cap": None}
        made.decide(people["ana"], begun["user_code"], **said)
        assert code(lambda: made.decide(people["eve"], begun["user_code"], **said)) == "invalid"
        now[0] += 5
        assert accounts.bearer(made.redeem(begun["device_code"])["token"]).name == "ana"

    def test_whoever_was_disabled_meanwhile_gets_nothing(self, codes):
        made, accounts, people, _ = codes
        begun = made.begin("", ["read"])
        made.decide(people["ana"], begun["user_code"], scopes=["read"], datasets=None, cap=None)
        accounts.disable("ana", by="test")
        assert code(lambda: made.redeem(begun["device_code"])) == "expired-code"

    @pytest.mark.parametrize(
        "ended",
        [
            lambda accounts: (accounts.disable("ana", by="test"), accounts.enable("ana", by="test")),
            lambda accounts: accounts.change_role("ana", AccountRole.CUSTODIAN, by="test"),
            lambda accounts: accounts.end_all("ana", by="test"),
            lambda accounts: accounts.set_password("ana", "a long enough password"),
        ],
    )
    def test_what_ends_visits_ends_what_was_begun_in_them(self, codes, ended):
        """A code that was allowed, and a tie to a provider that is under way: each would let somebody in again."""
        made, accounts, people, _ = codes
        begun = made.begin("", ["read"])
        made.decide(people["ana"], begun["user_code"], scopes=["read"], datasets=None, cap=None)
        with made._state.changing() as change:
            for name in ("ana", "eve"):
                change.execute("INSERT INTO sign_ins VALUES (?, ?, 2000000)", (name, name))
        ended(accounts)
        assert code(lambda: made.redeem(begun["device_code"])) == "expired-code"
        assert [row["name"] for row in made._state.rows("SELECT name FROM sign_ins")] == ["eve"]

    def test_an_account_has_a_few_wrong_tries_an_hour(self, codes):
        made, _, people, now = codes
        right = made.begin("", ["read"])["user_code"]
        wrong = "BBBB-BBBB" if right != "BBBB-BBBB" else "CCCC-CCCC"
        found = [code(lambda: made.look(people["eve"], wrong)) for _ in range(12)]
        assert found == ["invalid"] * 10 + ["too-many"] * 2
        assert code(lambda: made.look(people["eve"], right)) == "too-many"
        assert code(lambda: made.look(people["ana"], right)) is None
        now[0] += 3601
        assert code(lambda: made.look(people["eve"], wrong)) == "invalid"

    def test_codes_are_kept_as_digests_and_all_letters_are_as_likely(self, codes):
        made, _, _, _ = codes
        begun = made.begin("", ["read"])
        state = made._state
        stored = state.path.read_bytes() + state.path.with_name("state.db-wal").read_bytes()
        for hidden in (begun["device_code"], begun["user_code"].replace("-", "")):
            assert hidden.encode() not in stored
        drawn = [device_flow._LETTERS[byte % 20] for byte in range(256) if byte < 256 - 256 % 20]
        assert len({drawn.count(letter) for letter in device_flow._LETTERS}) == 1

    def test_codes_that_wait_are_not_endless(self, codes, monkeypatch):
        made, _, _, now = codes
        monkeypatch.setattr(device_flow, "_MOST_WAITING", 3)
        for _ in range(3):
            made.begin("", ["read"])
        assert code(lambda: made.begin("", ["read"])) == "too-many"
        now[0] += 1201
        made.begin("", ["read"])


class TestPage:
    def test_the_whole_way_of_a_notebook(self, world):
        notebook = world.client()
        begun = notebook.post("/v1/device", json={"label": "<b>note</b>\x1b[31m", "scopes": ["read", "ask"]}).json()
        client = world.browser("analyst")
        page = client.get(begun["verification_uri"], params={"code": begun["user_code"]})
        assert begun["user_code"] in page.text
        assert "It calls itself" not in page.text  # An address alone shows and decides nothing.
        token = form_token(page)
        shown = client.post("/device", data={"form_token": token, "code": begun["user_code"], "action": "look"})
        assert "&lt;b&gt;note&lt;/b&gt;" in shown.text
        assert "\x1b" not in shown.text
        said = {"code": begun["user_code"], "action": "allow", "scope.read": "on"}
        assert client.post("/device", data=said).status_code == 403  # no token of the form
        assert client.post("/device", data=said | {"form_token": token}).status_code == 200
        made = notebook.post("/v1/device/token", json={"device_code": begun["device_code"]}).json()
        assert made["scopes"] == ["read"]
        notebook.headers["authorization"] = f"Bearer {made['token']}"
        assert notebook.get("/v1/me").json()["name"] == "analyst"

    def test_asking_for_codes_is_limited_by_address(self, tmp_path):
        from server_world import prepare, running

        from discreet.server.http_limits import HttpLimits

        prepare(tmp_path)
        with running(tmp_path, names=("one",), limits=HttpLimits()) as world:
            found = [world.client().post("/v1/device", json={}).status_code for _ in range(12)]
        assert found == [200] * 10 + [429] * 2

    def test_a_page_elsewhere_cannot_begin_or_redeem(self, world):
        for path, body in (("/v1/device", {}), ("/v1/device/token", {"device_code": "dsd_0"})):
            answer = world.client().post(path, json=body, headers={"origin": "http://evil.example"})
            assert answer.json()["code"] == "wrong-form-token"


def test_a_problem_of_a_code_is_on_the_list():
    for name in ("authorization-pending", "slow-down", "access-denied", "expired-code"):
        assert Problem(name).kind.status == 400
