"""Signing in by a provider: the whole way, and every way in which what comes back could be somebody else's."""

from __future__ import annotations

import time
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from oidc_provider import CLIENT, SECRET, Provider, provided
from server_world import form_token, prepare, running

from discreet.errors import InvalidParameter, Refused
from discreet.server.accounts import AccountRole
from discreet.server.problems import Problem
from discreet.server.sign_in import oidc
from discreet.server.sign_in.oidc import OidcProvider, OidcRefusal, flow_secret
from discreet.server.sign_in.oidc_settings import OidcSettings, read_oidc_settings

FILE = """\
issuer = "{issuer}"
client_id = "discreet"
client_secret_file = "secret.txt"
button = "Sign in with <Example>"
{more}
[groups.readers]
role = "reader"
datasets = ["one"]
[groups.more-readers]
role = "reader"
datasets = ["two"]
[groups.askers]
role = "analyst"
datasets = ["three"]
"""


def written(folder, issuer, more=""):
    (folder / "secret.txt").write_text(SECRET + "\n")
    (folder / "secret.txt").chmod(0o600)
    (folder / "oidc.toml").write_text(FILE.format(issuer=issuer, more=more))
    return folder / "oidc.toml"


@pytest.fixture(scope="module")
def provider():
    with provided() as found:
        yield found


@pytest.fixture(scope="module")
def home(tmp_path_factory, provider):
    folder = tmp_path_factory.mktemp("oidc")
    prepare(folder)
    with running(folder, oidc=written(folder, provider.issuer)) as found:
        yield found


@pytest.fixture(autouse=True)
def honest(provider, home):
    """Every test begins with an honest provider that was not asked yet."""
    fresh = Provider(issuer=provider.issuer, key=provider.key, other=provider.other)
    for name in ("person", "claims", "metadata", "header", "lie", "codes", "asked"):
        setattr(provider, name, getattr(fresh, name))
    home.server.oidc._metadata = home.server.oidc._keys = None


def to_provider(client):
    """Begin in a browser, sign in there, and return the address to which the provider sends back."""
    answer = client.get("/login/oidc")
    assert answer.status_code == 303, answer.text
    back = httpx.get(answer.headers["location"], follow_redirects=False).headers["location"]
    return back.removeprefix("http://127.0.0.1")


def signed_in(home, groups=("readers",), **person):
    client = home.client()
    back = to_provider(client)
    return client, client.get(back)


def person(provider, sub, name, groups=("readers",), **more):
    provider.person = {"sub": sub, "preferred_username": name, "groups": list(groups), **more}


def reasons(home):
    return [one["about"] for one in home.server.state.decisions(most=3) if one["what"] == "sign in"]


class TestWay:
    def test_somebody_in_a_group_is_let_in_made_and_known_again(self, home, provider):
        person(provider, "s-1", "una", ("readers", "more-readers", "askers"))
        client, page = signed_in(home)
        assert page.status_code == 200
        assert 'content="0;url=/account"' in page.text
        told = client.get("/v1/me").json()
        assert (told["name"], told["role"], told["datasets"]) == ("una", "reader", ["one", "two"])
        person(provider, "s-1", "another name", ("askers",))
        client, _ = signed_in(home)
        told = client.get("/v1/me").json()
        assert (told["name"], told["role"], told["datasets"]) == ("una", "analyst", ["three"])
        assert "have no password here" in client.get("/account").text

    def test_whoever_is_in_no_group_any_more_is_out_with_all_they_had(self, home, provider):
        person(provider, "s-2", "ugo")
        client, _ = signed_in(home)
        token = home.token("ugo")
        person(provider, "s-2", "ugo", ())
        assert signed_in(home)[1].status_code == 401
        assert client.get("/v1/me").status_code == 401
        with pytest.raises(Problem):
            home.server.accounts.bearer(token)

    def test_the_login_page_has_the_button_escaped(self, home):
        page = home.client().get("/login").text
        assert "Sign in with &lt;Example&gt;" in page
        assert 'name="password"' in page  # The other ways stay.

    def test_the_cookie_of_the_way_is_for_the_way_only(self, home):
        answer = home.client().get("/login/oidc")
        said = answer.headers["set-cookie"]
        assert "HttpOnly" in said
        assert "SameSite=lax" in said
        query = parse_qs(urlsplit(answer.headers["location"]).query)
        held = said.split("=")[1].split(";")[0]
        assert held not in answer.headers["location"]
        assert query["code_challenge_method"] == ["S256"]
        assert query["redirect_uri"] == ["http://127.0.0.1/login/oidc/return"]
        assert len({query["state"][0], query["nonce"][0], query["code_challenge"][0], held}) == 4

    def test_unknown_people_are_refused_unless_it_is_declared(self, home, provider):
        person(provider, "s-9", "nobody", ("strangers",))
        client, page = signed_in(home)
        assert page.status_code == 401
        assert "discreet_visit" not in client.cookies
        assert reasons(home)[0] == "provider: nobody here"

    def test_an_account_is_never_found_by_a_name_or_mail(self, home, provider):
        """Otherwise whoever may choose a name at the provider would choose `owner`."""
        for name in ("owner", "OWNER", "analyst"):
            person(provider, f"s-{name}", name, email="owner@example.org", email_verified=True)
            assert signed_in(home)[1].status_code == 401
            assert reasons(home)[0] == "provider: name is taken or cannot be used"
        person(provider, "s-x", "<b>x</b>")
        assert signed_in(home)[1].status_code == 401

    def test_whoever_is_disabled_stays_out(self, home, provider):
        person(provider, "s-3", "uwe")
        signed_in(home)
        home.server.accounts.disable("uwe", by="test")
        client, page = signed_in(home)
        assert page.status_code == 401
        assert "discreet_visit" not in client.cookies


class TestTying:
    def test_a_person_ties_their_own_account_and_keeps_no_password(self, home, provider):
        accounts = home.server.accounts
        accounts.add("tia", AccountRole.ANALYST, ["one"], by="test")
        accounts.set_password("tia", "a long enough password")
        older = accounts.invite("tia", by="test")
        client = home.browser("tia")
        client.cookies.delete("discreet_form")
        page = client.get("/account")
        assert client.post("/account/link", data={}).status_code == 403
        onward = client.post("/account/link", data={"form_token": form_token(page)})
        where = onward.text.split('content="0;url=')[1].split('"')[0].replace("&amp;", "&")
        person(provider, "t-1", "whatever", ())
        back = httpx.get(where, follow_redirects=False).headers["location"].removeprefix("http://127.0.0.1")
        assert client.get(back).status_code == 200
        assert client.get("/v1/me").json()["name"] == "tia"
        assert signed_in(home)[0].get("/v1/me").json()["name"] == "tia"
        for work in (
            lambda: accounts.sign_in("tia", "a long enough password"),
            lambda: accounts.accept(older),
            lambda: accounts.set_password("tia", "another long password"),
        ):
            with pytest.raises(Problem):
                work()
        accounts.unlink("tia", by="test")
        accounts.set_password("tia", "another long password")

    def test_a_browser_that_was_left_open_ties_nothing(self, home, provider):
        """Whoever sits down there would sign in at the provider as themselves, and have the account for good."""
        accounts, password = home.server.accounts, "a long enough password"
        accounts.add("lea", AccountRole.ANALYST, ["one"], by="test")
        accounts.set_password("lea", password)
        client = home.client()
        said = {"form_token": form_token(client.get("/login")), "name": "lea", "password": password}
        assert client.post("/login", data=said).status_code == 303
        token = form_token(client.get("/account"))
        for current in ({}, {"current": "wrong"}):
            assert client.post("/account/link", data={"form_token": token} | current).status_code == 422
        onward = client.post("/account/link", data={"form_token": token, "current": password})
        where = onward.text.split('content="0;url=')[1].split('"')[0].replace("&amp;", "&")
        person(provider, "l-1", "whatever", ())
        back = httpx.get(where, follow_redirects=False).headers["location"].removeprefix("http://127.0.0.1")
        accounts.set_password("lea", "another long password")  # Somebody noticed: all visits end, and so does this.
        assert client.get(back).status_code == 401
        assert not accounts.is_linked("lea")
        accounts.sign_in("lea", "another long password")

    def test_a_subject_is_tied_to_one_account(self, home, provider):
        person(provider, "t-2", "tom")
        signed_in(home)
        client = home.browser("reader")
        onward = client.post("/account/link", data={"form_token": form_token(client.get("/account"))})
        where = onward.text.split('content="0;url=')[1].split('"')[0].replace("&amp;", "&")
        back = httpx.get(where, follow_redirects=False).headers["location"].removeprefix("http://127.0.0.1")
        assert client.get(back).status_code == 401
        assert not home.server.accounts.is_linked("reader")


LIES = {
    "issuer": {"iss": "https://evil.example"},
    "audience": {"aud": "another client"},
    "audience of nobody": {"aud": None},
    "party": {"azp": "another client"},
    "party of several": {"aud": [CLIENT, "another client"]},
    "nonce": {"nonce": "0" * 64},
    "no nonce": {"nonce": None},
    "expired": {"exp": 1_000_000},
    "no end": {"exp": None},
    "end as text": {"exp": "9999999999"},
    "made long ago": {"iat": 1_000_000},
    "made in the future": {"iat": 4_000_000_000},
    "not yet": {"nbf": 4_000_000_000},
    "subject": {"sub": ""},
    "no subject": {"sub": None},
    "number as subject": {"sub": 7},
}


class TestLies:
    @pytest.mark.parametrize("lie", LIES)
    def test_a_token_for_somebody_else_lets_nobody_in(self, home, provider, lie):
        person(provider, "s-1", "una")
        provider.claims = LIES[lie]
        client, page = signed_in(home)
        assert page.status_code == 401
        assert "discreet_visit" not in client.cookies
        assert "beginn" not in page.text

    @pytest.mark.parametrize("lie", ["none", "HS256", "shared key", "key"])
    def test_a_token_that_no_key_of_the_issuer_signed_lets_nobody_in(self, home, provider, lie):
        person(provider, "s-1", "una")
        provider.lie = lie
        assert signed_in(home)[1].status_code == 401
        assert reasons(home)[0] in ("provider: algorithm", "provider: signature")

    def test_without_its_checks_each_lie_would_let_somebody_in(self, home, provider, monkeypatch):
        """The planted mistake: claims that are not checked."""
        monkeypatch.setattr(OidcProvider, "_checked", lambda self, claims, nonce: dict(claims))
        person(provider, "s-1", "una")
        for lie in ("issuer", "audience", "party", "nonce", "expired"):
            provider.claims = LIES[lie]
            assert signed_in(home)[1].status_code == 200, lie

    def test_a_header_brings_no_key_of_its_own(self, home, provider):
        person(provider, "s-1", "una")
        provider.lie, provider.header = "key", {"jwk": provider.other.as_dict(private=False)}
        assert signed_in(home)[1].status_code == 401

    def test_a_new_key_is_asked_for_once_a_minute(self, home, provider, monkeypatch):
        from joserfc import jwk

        person(provider, "s-1", "una")
        assert signed_in(home)[1].status_code == 200
        old = provider.key
        provider.key = jwk.RSAKey.generate_key(2048, {"kid": "k9", "use": "sig"})
        provider.header = {"kid": "k9"}
        try:
            assert signed_in(home)[1].status_code == 401  # It was asked a moment ago.
            assert provider.asked.count("/keys") == 1
            monkeypatch.setattr(oidc, "_ASK_AGAIN", 0.0)
            assert signed_in(home)[1].status_code == 200
        finally:
            provider.key = old


class TestBrowsers:
    def test_what_another_browser_began_lets_nobody_in(self, home, provider):
        """Login CSRF: somebody else's code would sign a victim in as the attacker."""
        person(provider, "s-1", "una")
        back = to_provider(home.client())
        victim = home.client()
        assert victim.get(back).status_code == 401
        victim.get("/login/oidc")
        assert victim.get(back).status_code == 401
        assert "discreet_visit" not in victim.cookies

    def test_an_address_of_the_way_back_works_once(self, home, provider):
        person(provider, "s-1", "una")
        client = home.client()
        back = to_provider(client)
        held = client.cookies["discreet_oidc"]
        assert client.get(back).status_code == 200
        again = home.client()
        again.cookies.set("discreet_oidc", held, domain="127.0.0.1")
        assert again.get(back).status_code == 401
        assert reasons(home)[0] == "provider: used or expired"

    def test_a_code_that_was_used_is_refused_by_the_provider(self, home, provider):
        person(provider, "s-1", "una")
        first = to_provider(home.client())
        code = parse_qs(urlsplit(first).query)["code"][0]
        provider.codes.pop(code)
        client = home.client()
        state = parse_qs(urlsplit(to_provider(client)).query)["state"][0]
        assert client.get("/login/oidc/return", params={"code": code, "state": state}).status_code == 401

    def test_a_code_of_another_sign_in_is_refused(self, home, provider):
        """Its proof of PKCE and its nonce are those of the browser that began it."""
        person(provider, "s-1", "una")
        stolen = parse_qs(urlsplit(to_provider(home.client())).query)["code"][0]
        client = home.client()
        state = parse_qs(urlsplit(to_provider(client)).query)["state"][0]
        assert client.get("/login/oidc/return", params={"code": stolen, "state": state}).status_code == 401

    @pytest.mark.parametrize("changed", [{"state": ""}, {"state": "0" * 64}, {"code": ""}, {"error": "access_denied"}])
    def test_a_changed_way_back_is_refused(self, home, provider, changed):
        person(provider, "s-1", "una")
        client = home.client()
        query = {name: values[0] for name, values in parse_qs(urlsplit(to_provider(client)).query).items()}
        assert client.get("/login/oidc/return", params=query | changed).status_code == 401

    def test_another_provider_is_not_taken_for_this_one(self, home, provider):
        person(provider, "s-1", "una")
        client = home.client()
        back = to_provider(client)
        assert client.get(back + "&iss=https%3A%2F%2Fevil.example").status_code == 401
        provider.metadata = {"authorization_response_iss_parameter_supported": True}
        home.server.oidc._metadata = None
        client = home.client()
        assert client.get(to_provider(client)).status_code == 401  # It says that it says so, and did not.
        client = home.client()
        assert client.get(to_provider(client) + "&iss=" + provider.issuer).status_code == 200

    def test_a_visit_that_was_planted_is_not_taken_over_and_nothing_says_where_to_go(self, home, provider):
        person(provider, "s-1", "una")
        client = home.client()
        client.cookies.set("discreet_visit", "planted", domain="127.0.0.1")
        back = to_provider(client)
        page = client.get(back + "&next=https%3A%2F%2Fevil.example&redirect_uri=https%3A%2F%2Fevil.example")
        assert page.cookies["discreet_visit"] != "planted"
        assert home.server.accounts.visitor("planted") is None
        assert "evil.example" not in page.text

    def test_an_expired_way_is_refused(self, home, provider):
        person(provider, "s-1", "una")
        client = home.client()
        back = to_provider(client)
        with home.server.state.changing() as database:
            database.execute("UPDATE sign_ins SET until = 1")
        assert client.get(back).status_code == 401


class TestNetwork:
    @pytest.mark.parametrize(
        "metadata",
        [
            {"token_endpoint": "http://127.0.0.1:9/token"},
            {"token_endpoint": "http://169.254.169.254/latest"},
            {"token_endpoint": "file:///etc/passwd"},
            {"token_endpoint": "https://evil.example/token"},
            {"jwks_uri": "http://localhost:1/keys"},
            {"jwks_uri": None},
            {"issuer": "https://evil.example"},
            {"code_challenge_methods_supported": ["plain"]},
        ],
    )
    def test_metadata_sends_the_server_nowhere_else(self, home, provider, metadata):
        person(provider, "s-1", "una")
        provider.metadata = metadata
        client = home.client()
        answer = client.get("/login/oidc")
        if answer.status_code == 303:
            back = httpx.get(answer.headers["location"], follow_redirects=False).headers["location"]
            answer = client.get(back.removeprefix("http://127.0.0.1"))
        assert answer.status_code == 401

    def test_an_authorisation_address_elsewhere_is_no_open_redirect(self, home, provider):
        provider.metadata = {"authorization_endpoint": "https://evil.example/authorize"}
        assert home.client().get("/login/oidc").status_code == 401

    @pytest.mark.parametrize("lie", ["redirect", "large"])
    def test_redirects_are_not_followed_and_answers_are_limited(self, home, provider, lie):
        provider.lie = lie
        assert home.client().get("/login/oidc").status_code == 401
        assert "/elsewhere" not in provider.asked

    def test_a_slow_provider_is_given_up(self, provider, monkeypatch):
        monkeypatch.setattr(oidc, "_SLOWEST", -1.0)
        settings = OidcSettings(issuer=provider.issuer, client_id=CLIENT, client_secret=SECRET)
        with pytest.raises(OidcRefusal):
            OidcProvider(settings).metadata()


class TestSettings:
    @pytest.mark.parametrize(
        "issuer",
        [
            "http://example.org",
            "http://localhost:1",
            "ftp://x",
            "https://",
            "https://a@b",
            "https://a?b",
            "https://a#b",
        ],
    )
    def test_an_issuer_is_over_tls(self, tmp_path, issuer):
        with pytest.raises(InvalidParameter):
            read_oidc_settings(written(tmp_path, issuer))

    @pytest.mark.parametrize(
        "more", ['create = "owner"', 'create = "agent"', 'secret = "x"', "scope = 1", 'scope = "a"']
    )
    def test_no_provider_makes_owners_and_slips_are_told(self, tmp_path, more):
        with pytest.raises(InvalidParameter):
            read_oidc_settings(written(tmp_path, "https://a.example", more))

    def test_a_secret_that_others_may_read_is_refused(self, tmp_path):
        file = written(tmp_path, "https://a.example")
        assert read_oidc_settings(file).client_secret == SECRET
        (tmp_path / "secret.txt").chmod(0o644)
        with pytest.raises(Refused):
            read_oidc_settings(file)

    def test_without_a_provider_there_is_no_way(self, world):
        for path in ("/login/oidc", "/login/oidc/return"):
            assert world.client().get(path).status_code == 404

    def test_parts_of_a_way_tell_nothing_of_each_other(self):
        made = {flow_secret("a", what) for what in ("state", "nonce", "proof")}
        assert len(made | {flow_secret("b", "state")}) == 4
        assert all(len(one) == 64 for one in made)
        assert time.time() > 0
