"""`discreet serve`, `user` and `token`: what is refused, with which exit code."""

from __future__ import annotations

import pytest

from discreet.cli.server_support import _first_run, accounts_of
from discreet.server.accounts import AccountRole

WRONG = [
    (("serve",), 2),
    (("serve", "--demo", "--policy", "policy.toml"), 2),
    (("serve", "--policy", "nowhere.toml"), 2),
    (("serve", "--policy", "policy.toml", "--answer-after", "clinics"), 2),
    (("serve", "--policy", "policy.toml", "--answer-after", "others=5"), 2),
    (("serve", "--policy", "policy.toml", "--answer-after", "clinics=0.1"), 2),
    (("serve", "--policy", "policy.toml", "--policy", "policy.toml", "--answer-after", "clinics=5"), 2),
    (("serve", "--policy", "policy.toml", "--host", "0.0.0.0"), 3),
    (("serve", "--policy", "policy.toml", "--tls-key", "key.pem"), 2),
    (("serve", "--policy", "policy.toml", "--workers", "0"), 2),
    (("user", "add", "ana", "--role", "king"), 2),
    (("user", "add", "<b>", "--role", "reader"), 2),
    (("user", "disable", "nobody"), 2),
    (("user", "invite", "nobody"), 2),
    (("user", "grant", "nobody", "--dataset", "clinics"), 2),
    (("user", "grant", "nobody"), 2),
    (("token", "new", "nobody", "--scope", "read"), 2),
    (("token", "revoke", "0123"), 2),
    (
        (
            "token",
            "revoke",
        ),
        2,
    ),
]


@pytest.mark.parametrize(
    ("arguments", "code"), WRONG, ids=lambda value: " ".join(value) if isinstance(value, tuple) else ""
)
def test_what_is_wrong_is_refused(arguments, code, folder, discreet):
    ran = discreet(*arguments)
    assert ran.code == code, ran.err
    assert ran.out == ""


def test_a_state_that_is_not_there_is_said_and_not_made(tmp_path, folder, discreet):
    for said in (("user", "list"), ("token", "new", "ana", "--scope", "read"), ("approve", "list")):
        ran = discreet(*said, "--state", "elsewhere.db")
        assert ran.code == 2
        assert "there is no state of a server at elsewhere.db" in ran.err
    assert not list(tmp_path.rglob("elsewhere*"))


@pytest.mark.long
def test_people_and_tokens(folder, discreet):
    assert discreet("user", "add", "ana", "--role", "analyst", "--dataset", "clinics").code == 0
    assert discreet("user", "add", "Ana", "--role", "reader").code == 2  # Names that differ in case only are one.
    assert discreet("token", "new", "ana", "--scope", "king").code == 2
    assert discreet("token", "new", "ana", "--scope", "read", "--days", "400").code == 2
    for more, granted in (((), ["clinics", "others"]), (("--revoke",), ["clinics"])):
        found = discreet("user", "grant", "ana", "--dataset", "others", *more, "--json").json
        assert found["people"][0]["datasets"] == granted
    made = discreet("token", "new", "ana", "--scope", "read", "--json").json
    listed = discreet("token", "list", "--json")
    assert made["secret"].split("_")[2] not in listed.out
    assert discreet("token", "revoke", made["secret"].split("_")[1]).code == 0
    assert [one["revoked"] for one in discreet("token", "list", "--json").json["tokens"]] == [False, True]
    assert discreet("user", "disable", "ana").code == 0
    assert discreet("user", "list", "--json").json["people"][0]["disabled"]


def test_an_owner_is_made_where_there_is_none(tmp_path):
    def first(name, *people):
        with accounts_of(tmp_path / name, may_begin=True) as accounts:
            for person, role in people:
                accounts.add(person, role, (), by="test")
            made = _first_run(accounts)
            again = _first_run(accounts)
            return made is not None, again is not None, {one["name"] for one in accounts.people()}

    analyst, owner = ("ana", AccountRole.ANALYST), ("olga", AccountRole.OWNER)
    assert first("a.db") == (True, False, {"owner"})
    assert first("b.db", analyst) == (True, False, {"owner", "ana"})
    assert first("c.db", analyst, owner) == (False, False, {"olga", "ana"})
    assert first("d.db", ("Owner", AccountRole.READER)) == (False, False, {"Owner"})


@pytest.mark.long
def test_a_server_is_checked_without_listening(folder, discreet):
    ran = discreet("serve", "--policy", "policy.toml", "--check", "--answer-after", "clinics=5", "--json")
    assert ran.json == {
        "address": "http://127.0.0.1:8000",
        "datasets": [{"name": "clinics", "answer_after": 5.0}],
        "first_run_token": None,
    }
