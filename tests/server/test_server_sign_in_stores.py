"""Accounts, codes and the people of a provider in a file and in PostgreSQL: the same statements, the same answers."""

from __future__ import annotations

import pytest
from state_worlds import both_stores, opener, place_of

from discreet.errors import InvalidParameter
from discreet.server.accounts import SCOPES, AccountRole, Accounts
from discreet.server.sign_in.device_flow import DeviceCodes
from discreet.server.sign_in.identities import Identities
from discreet.server.sign_in.oidc import OidcRefusal
from discreet.server.sign_in.oidc_settings import OidcGroup, OidcSettings
from discreet.server.sign_in.people import ManagedPeople
from discreet.server.watch.decision_log import found_decisions

pytestmark = pytest.mark.long


@both_stores
def test_all_of_it_works_in_both(kind, tmp_path, request):
    state = opener(place_of(kind, tmp_path, request), tmp_path)()
    accounts = Accounts(state)
    accounts.add("olga", AccountRole.OWNER, (), by="test")
    owner = accounts.bearer(accounts.new_token("olga", scopes=SCOPES, datasets=None, cap=None, seconds=600, by="test"))
    people = ManagedPeople(state, accounts, owner)
    people.add("ana", "analyst", ["one"])
    people.grant("ana", ["two"])
    people.change_role("ana", "reader")
    people.disable("ana")
    people.enable("ana")
    with pytest.raises(InvalidParameter, match="last owner"):
        accounts.disable("olga", by="test")
    assert {one["name"] for one in people.tokens()} == {"ana", "olga"}

    codes = DeviceCodes(state, accounts)
    begun = codes.begin("notebook", ["read"])
    codes.decide(owner, begun["user_code"], scopes=["read"], datasets=["one"], cap=None)
    assert accounts.bearer(codes.redeem(begun["device_code"])["token"]).granted == frozenset({"one"})

    group = OidcGroup(name="g", role=AccountRole.READER, datasets=("one",))
    settings = OidcSettings(issuer="https://a.example", client_id="c", client_secret=None, groups=(group,))
    known = Identities(state, accounts, settings)
    claims = {"sub": "s", "preferred_username": "una", "groups": ["g"]}
    assert [known.name_of(claims) for _ in range(2)] == ["una", "una"]
    assert accounts.begin_by_provider("una")
    known.tie("ana", "t")
    for name, subject in (("ana", "u"), ("olga", "t")):
        with pytest.raises(OidcRefusal):
            known.tie(name, subject)
    with pytest.raises(OidcRefusal):
        known.name_of(claims | {"groups": []})
    assert {one["name"]: one["signs_in_by"] for one in people.listed()}["ana"] == "provider"
    people.unlink("ana")

    found = found_decisions(state, only=["one", "two"], filters={"what": "user grant"})
    assert [(one["who"], one["about"]) for one in found] == [("olga", "ana")]
    assert found_decisions(state, only=[]) == []
    assert state.decisions_hold()
    state.close()
