"""People and tokens over the API and on the pages: nobody makes themselves or others more than they are."""

from __future__ import annotations

import csv
import io
import re

import pytest
from server_world import COUNT, form_token

from discreet.errors import InvalidParameter
from discreet.server.accounts import SCOPES, AccountRole, Accounts
from discreet.server.sign_in.people import ManagedPeople
from discreet.server.state_file import StateFile
from discreet.server.watch.decision_log import decisions_csv


@pytest.fixture
def alone(tmp_path):
    """Accounts without a server: an owner, two custodians, and people of one data set or two."""
    state = StateFile(tmp_path / "state.db")
    accounts = Accounts(state)
    accounts.add("olga", AccountRole.OWNER, (), by="test")
    accounts.add("carl", AccountRole.CUSTODIAN, ["one"], by="test")
    accounts.add("cora", AccountRole.CUSTODIAN, ["one"], by="test")
    accounts.add("ana", AccountRole.ANALYST, ["one"], by="test")
    accounts.add("ann", AccountRole.ANALYST, ["one", "two"], by="test")
    accounts.add("abe", AccountRole.ANALYST, ["two"], by="test")
    accounts.add("agent", AccountRole.AGENT, ["one"], by="test")
    accounts.add("audrey", AccountRole.AUDITOR, ["one"], by="test")
    yield accounts, state
    state.close()


def by(alone, name, **more):
    """Somebody who manages, by a token that has everything, or less."""
    accounts, state = alone
    said = {"scopes": SCOPES, "datasets": None, "cap": None, "seconds": 86_400.0} | more
    return ManagedPeople(state, accounts, accounts.bearer(accounts.new_token(name, by="test", **said)))


def code(work):
    """The code of the problem that some work ends with."""
    from discreet.server.problems import problem_of

    try:
        work()
    except Exception as error:  # noqa: BLE001
        return problem_of(error).kind.code
    return None


class TestPeople:
    def test_a_custodian_knows_of_those_who_share_a_data_set_and_of_nothing_else(self, alone):
        seen = {one["name"]: one for one in by(alone, "carl").listed()}
        assert set(seen) == {"carl", "cora", "ana", "ann", "agent", "audrey"}
        assert seen["ann"]["datasets"] == ["one"]  # That there is another is not told.
        assert {name for name, one in seen.items() if one["manageable"]} == {"ana", "agent"}
        assert {name for name, one in seen.items() if one["grantable"]} == {"ana", "ann", "agent"}
        assert {one["name"] for one in by(alone, "olga").listed()} == set(seen) | {"olga", "abe"}

    @pytest.mark.parametrize("role", ["owner", "custodian", "auditor"])
    def test_a_custodian_makes_nobody_who_is_more_or_who_checks(self, alone, role):
        carl = by(alone, "carl")
        assert code(lambda: carl.add("eve", role, ["one"])) == "forbidden"
        assert code(lambda: carl.change_role("ana", role)) == "forbidden"

    def test_a_custodian_grants_what_they_see_only(self, alone):
        carl = by(alone, "carl")
        for work in (
            lambda: carl.add("eve", "reader", ["two"]),
            lambda: carl.grant("ana", ["two"]),
            lambda: carl.grant("ann", ["two"], revoke=True),
            lambda: carl.grant("abe", ["one"]),
        ):
            assert code(work) == "not-found"
        assert code(lambda: carl.add("eve", "reader", [])) == "invalid"
        carl.grant("ann", ["one"], revoke=True)
        assert carl.add("eve", "reader", ["one"]).startswith("dsc_")

    @pytest.mark.parametrize("name", ["ann", "cora", "audrey", "carl"])
    def test_an_invitation_is_not_a_way_into_an_account_that_sees_more(self, alone, name):
        carl = by(alone, "carl")
        for act in (carl.invite, carl.disable):
            assert code(lambda act=act: act(name)) == "forbidden"
        for name in ("olga", "abe", "nobody"):
            assert code(lambda name=name: carl.invite(name)) == "not-found"

    def test_nobody_resets_their_own_password_or_role_by_this_way(self, alone):
        olga = by(alone, "olga")
        for act in (olga.invite, olga.disable, lambda name: olga.change_role(name, "reader")):
            assert code(lambda act=act: act("olga")) == "forbidden"

    def test_an_invitation_that_was_kept_is_no_way_to_what_was_granted_later(self, alone):
        accounts, _ = alone
        accounts.set_password("ana", "a long enough password")
        kept = by(alone, "carl").invite("ana")
        by(alone, "olga").grant("ana", ["two"])
        assert code(lambda: accounts.accept(kept)) == "not-signed-in"
        fresh = accounts.invite("ana", by="test")
        by(alone, "olga").grant("ana", ["two"], revoke=True)
        assert accounts.visitor(accounts.accept(fresh)[0]).granted == {"one"}

    def test_who_is_new_and_is_granted_more_can_still_come(self, alone):
        accounts, _ = alone
        first = by(alone, "olga").add("nina", "analyst", ["one"])
        by(alone, "olga").grant("nina", ["two"])
        assert accounts.visitor(accounts.accept(first)[0]).granted == {"one", "two"}

    def test_there_is_always_an_owner(self, alone):
        accounts, _ = alone
        for act in (
            lambda: accounts.disable("olga", by="test"),
            lambda: accounts.change_role("olga", AccountRole.READER, by="test"),
        ):
            with pytest.raises(InvalidParameter, match="last owner"):
                act()
        by(alone, "olga").add("otto", "owner", [])
        by(alone, "otto").disable("olga")
        with pytest.raises(InvalidParameter, match="last owner"):
            accounts.disable("otto", by="test")

    def test_another_role_ends_what_was_begun_under_the_old_one(self, alone):
        accounts, _ = alone
        token = accounts.new_token("ana", scopes=SCOPES, datasets=None, cap=None, seconds=60, by="test")
        cookie, _ = accounts.accept(accounts.invite("ana", by="test"))
        by(alone, "olga").change_role("ana", "agent")  # An agent's token that releases has a cap.
        assert accounts.visitor(cookie) is None
        assert code(lambda: accounts.bearer(token)) == "not-signed-in"

    def test_whoever_was_disabled_comes_back_without_tokens(self, alone):
        accounts, _ = alone
        token = accounts.new_token("ana", scopes=["read"], datasets=None, cap=None, seconds=60, by="test")
        olga = by(alone, "olga")
        olga.disable("ana")
        assert code(lambda: olga.invite("ana")) == "invalid"
        olga.enable("ana")
        assert code(lambda: accounts.bearer(token)) == "not-signed-in"
        assert accounts.accept(olga.invite("ana"))


class TestTokensOfTokens:
    def test_a_token_makes_none_that_is_more_than_itself(self, alone):
        little = by(alone, "olga", scopes=["read", "manage"], datasets=["one"], seconds=10 * 86_400.0)

        def made(people=little, name="olga", **more):
            said = {"scopes": ["read"], "datasets": None, "cap": None, "days": 1.0} | more
            return lambda: people.new_token(name, **said)

        assert code(made(scopes=["read", "release"])) == "forbidden"
        assert code(made(days=20.0)) == "forbidden"
        assert code(made(datasets=["two"])) == "not-found"
        accounts, _ = alone
        assert accounts.bearer(made()()).granted == frozenset({"one"})  # No data set said is not all of them.
        capped = by(alone, "olga", cap="1")
        assert code(made(capped)) == "forbidden"
        for act in (little, capped):
            assert code(lambda act=act: act.invite("ana")) == "forbidden"
            assert code(lambda act=act: act.add("eve", "reader", ["one"])) == "forbidden"

    def test_a_token_of_an_agent_sees_no_more_than_who_made_it(self, alone):
        accounts, state = alone
        visitor = accounts.visitor(accounts.accept(accounts.invite("carl", by="test"))[0])
        made = ManagedPeople(state, accounts, visitor).new_token(
            "agent", scopes=["read"], datasets=None, cap=None, days=1.0
        )
        accounts.grant("agent", ["two"], by="test")
        assert accounts.bearer(made).granted == {"one"}

    def test_a_token_that_no_longer_fits_into_the_list_can_be_revoked(self, alone, monkeypatch):
        """Else whoever has a stolen token makes so many that the first is safe."""
        from discreet.server.sign_in import people

        monkeypatch.setattr(people, "_SHOWN_TOKENS", 3)
        accounts, _ = alone
        said = {"scopes": ["read"], "datasets": None, "cap": None, "seconds": 3600.0, "by": "test"}
        first = accounts.new_token("ana", **said)
        public = first.split("_")[1]
        others = [accounts.new_token("ana", **said).split("_")[1] for _ in range(4)]
        mine = by(alone, "ana")
        assert public not in {one["id"] for one in mine.tokens()}
        mine.revoke_token(public)
        assert code(lambda: accounts.bearer(first)) == "not-signed-in"
        for one in others[2:]:
            mine.revoke_token(one)
        assert {one["is_over"] for one in mine.tokens()} == {False}  # Those that work are shown first.
        assert code(lambda: mine.revoke_token("0" * 16)) == "not-found"

    def test_people_make_their_own_and_agents_make_none(self, alone):
        said = {"scopes": ["read"], "datasets": None, "days": 0.5}
        olga = by(alone, "olga")
        assert code(lambda: olga.new_token("ana", cap=None, **said)) == "forbidden"
        assert code(lambda: olga.new_token("agent", cap="1", **said)) is None
        agent = by(alone, "agent", cap="1")
        assert code(lambda: agent.new_token("agent", cap="1", **said)) == "forbidden"

    def test_a_token_is_seen_and_revoked_by_its_owner_and_whoever_manages_them(self, alone):
        accounts, _ = alone
        tokens = {
            name: accounts.new_token(name, scopes=["read"], datasets=None, cap=None, seconds=60, by="test")
            for name in ("olga", "ann", "ana", "abe")
        }
        ids = {name: token.split("_")[1] for name, token in tokens.items()}
        carl, ana = by(alone, "carl"), by(alone, "ana")
        assert {one["name"] for one in carl.tokens()} == {"carl", "ana", "agent"}
        assert {one["name"] for one in ana.tokens()} == {"ana"}
        for who, name in ((carl, "ann"), (carl, "olga"), (ana, "abe"), (ana, "olga")):
            assert code(lambda who=who, name=name: who.revoke_token(ids[name])) == "not-found"
        carl.revoke_token(ids["ana"])
        assert code(lambda: accounts.bearer(tokens["ana"])) == "not-signed-in"
        assert "secret" not in str(carl.tokens())
        assert "digest" not in str(carl.tokens())


class TestApi:
    def test_somebody_is_added_granted_and_disabled(self, world):
        owner = world.client("owner")
        made = owner.post("/v1/people", json={"name": "pia", "role": "analyst", "datasets": ["one"]}).json()
        assert made["use"] == "invitation"
        assert world.server.accounts.accept(made["secret"])
        changed = owner.patch("/v1/people/pia", json={"grant": ["two"], "revoke": ["one"], "role": "reader"}).json()
        assert (changed["role"], changed["datasets"]) == ("reader", ["two"])
        assert owner.patch("/v1/people/pia", json={"disabled": True}).json()["disabled"]
        assert owner.post("/v1/people", json={"name": "pia", "role": "reader"}).status_code == 422
        assert owner.patch("/v1/people/owner", json={"disabled": True}).status_code == 403
        assert owner.post("/v1/people", json={"name": "x", "role": "reader", "datasets": ["x"]}).status_code == 404
        assert "secret" not in owner.get("/v1/people").text

    def test_a_token_is_made_told_once_and_revoked(self, world):
        analyst = world.client("analyst")
        made = analyst.post("/v1/tokens", json={"scopes": ["read"], "days": 0.01}).json()["secret"]
        client = world.client()
        client.headers["authorization"] = f"Bearer {made}"
        assert client.get("/v1/me").json()["scopes"] == ["read"]
        listed = analyst.get("/v1/tokens").text
        assert made.split("_")[1] in listed
        assert made.split("_")[2] not in listed
        assert analyst.delete(f"/v1/tokens/{made.split('_')[1]}").status_code == 200
        assert client.get("/v1/me").status_code == 401

    @pytest.mark.long
    def test_the_log_is_filtered_and_downloaded(self, world):
        world.client("analyst").post("/v1/datasets/one/releases", json=COUNT)
        auditor = world.client("auditor")
        said = {"who": "analyst", "what": "release", "about_dataset": "one", "outcome": "answered"}
        found = auditor.get("/v1/log", params=said).json()["decisions"]
        assert found
        assert {(one["who"], one["outcome"]) for one in found} == {("analyst", "answered")}
        answer = auditor.get("/v1/log.csv", params=said)
        rows = list(csv.DictReader(io.StringIO(answer.text)))
        assert [int(row["number"]) for row in rows] == [one["number"] for one in found]
        assert auditor.get("/v1/log", params={"who": "' OR 1=1 --"}).json()["decisions"] == []
        owners = list(csv.DictReader(io.StringIO(world.client("owner").get("/v1/log.csv").text)))
        assert {row["dataset"] for row in csv.DictReader(io.StringIO(auditor.get("/v1/log.csv").text))} == {"one"}
        assert "" in {row["dataset"] for row in owners}

    def test_no_cell_of_the_file_is_a_formula(self):
        row = {"number": 1, "at": 0.0, "who": "=1+1", "what": "@x", "dataset": "-a", "outcome": "+1", "about": "a,\n"}
        written = decisions_csv([row | {"hash": "h"}])
        (read,) = csv.DictReader(io.StringIO(written))
        assert [read[name] for name in ("who", "what", "dataset", "outcome")] == ["'=1+1", "'@x", "'-a", "'+1"]


class TestPages:
    @pytest.mark.parametrize("role", ["owner", "custodian", "analyst", "auditor", "reader"])
    def test_the_start_is_a_page_that_lets_the_visitor_in(self, world, role):
        client = world.browser(role)
        first = client.get("/").headers["location"]
        assert first == ("/releases" if role in ("auditor", "reader") else "/ask")
        assert client.get(first).status_code == 200

    def test_people_are_managed_on_the_page(self, world):
        client = world.browser("owner")
        token = form_token(client.get("/admin/people"))

        def sent(**said):
            return client.post("/admin/people", data={"form_token": token, **said})

        added = sent(action="add", name="mia", role="analyst", **{"dataset.one": "on"})
        assert added.status_code == 200
        link = re.search(r">(http://.*/login#(dsc_\w+))</pre>", added.text)
        assert link is not None
        invitation = link[2]
        assert invitation not in client.get("/admin/people").text  # It was shown once.
        assert world.server.accounts.accept(invitation)
        assert sent(action="grants", name="mia", **{"dataset.two": "on"}).status_code == 200
        assert world.server.accounts._grants("mia") == ["two"]
        assert sent(action="role", name="mia", role="reader").status_code == 200
        assert sent(action="disable", name="mia").status_code == 200
        assert sent(action="enable", name="mia").status_code == 200
        assert sent(action="disable", name="owner").status_code == 403
        assert sent(action="unlink", name="mia").status_code == 422
        assert sent(action="drop table", name="mia").status_code == 422
        assert client.post("/admin/people", data={"action": "disable", "name": "mia"}).status_code == 403

    def test_tokens_are_made_and_revoked_on_the_account(self, world):
        client = world.browser("reader")
        token = form_token(client.get("/account"))
        said = {"form_token": token, "days": "1", "scope.read": "on"}
        made = client.post("/account/tokens", data=said)
        secret = re.findall(r">(dsc_\w+)</pre>", made.text)[0]
        assert world.server.accounts.bearer(secret).scopes == frozenset({"read"})
        public = secret.split("_")[1]
        others = world.tokens["owner"].split("_")[1]
        data = {"form_token": token, "action": "revoke"}
        assert client.post("/account/tokens", data=data | {"id": others}).status_code == 404
        assert client.post("/account/tokens", data=data | {"id": public}).status_code == 303
        assert code(lambda: world.server.accounts.bearer(secret)) == "not-signed-in"

    def test_a_custodian_finds_no_owner_and_no_other_data_set_on_the_pages(self, world):
        client = world.browser("custodian")
        page = client.get("/admin/people").text
        assert "<b>owner</b>" not in page
        for name in ("two", "three"):
            assert f"dataset.{name}" not in page
            assert f">{name}<" not in client.get("/admin").text
        for public in {world.tokens[role].split("_")[1] for role in ("owner", "auditor")}:
            assert public not in client.get("/admin/tokens").text

    @pytest.mark.long
    def test_the_log_has_pages(self, world):
        for _ in range(60):
            world.server.state.decide("reader", "budget", dataset="one", outcome="forbidden")
        client = world.browser("auditor")
        first = client.get("/admin/log", params={"who": "reader"})
        older = first.text.split('href="/admin/log?')[1].split('"')[0].replace("&amp;", "&")
        assert "before=" in older
        assert client.get(f"/admin/log?{older}").status_code == 200
        for before in ("x", "-1", "9" * 30, "0"):
            assert client.get("/admin/log", params={"before": before}).status_code == 200


@pytest.mark.parametrize(
    ("role", "offered"),
    [
        ("reader", {"read"}),
        ("auditor", {"read", "audit"}),
        ("analyst", {"read", "ask", "release"}),
        ("owner", {"read", "ask", "release", "audit", "approve", "manage"}),
    ],
)
def test_a_form_for_a_token_offers_what_the_role_can_use(world, role, offered):
    page = world.browser(role).get("/account").text
    assert set(re.findall(r'name="scope\.(\w+)"', page)) == offered
