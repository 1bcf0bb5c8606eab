"""Endpoints of people, of tokens, and of the log as a file. What a new secret is, is told once."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from discreet.server.accounts import Caller
from discreet.server.app import ApiCall, Endpoint, Server
from discreet.server.sign_in.people import ManagedPeople
from discreet.server.watch.decision_log import LOG_FILTERS, decisions_csv, found_decisions, log_filters

__all__ = ["PEOPLE_ENDPOINTS", "people_of"]

_Name: TypeAlias = Annotated[str, Field(min_length=1, max_length=64)]
_Names: TypeAlias = Annotated[list[Annotated[str, Field(min_length=1, max_length=200)]], Field(max_length=100)]
_LONGEST_LOG = 10_000  # decisions of a file


class _PeopleRequest(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, strict=True)


class NewPersonModel(_PeopleRequest):
    """Somebody to add."""

    name: _Name
    role: Annotated[str, Field(max_length=20)]
    datasets: _Names = []


class PersonChangeModel(_PeopleRequest):
    """What to change of somebody, in this order; what is left out stays."""

    disabled: bool | None = None
    role: Annotated[str, Field(max_length=20)] | None = None
    grant: _Names = []
    revoke: _Names = []


class NewTokenModel(_PeopleRequest):
    """A token to make: of oneself, or of an agent whom one manages."""

    name: _Name | None = None
    scopes: Annotated[list[Annotated[str, Field(max_length=20)]], Field(min_length=1, max_length=10)]
    datasets: _Names | None = None
    cap: Annotated[str, Field(max_length=60)] | None = None
    days: Annotated[float, Field(gt=0, le=366)] = 90.0


class PersonModel(BaseModel):
    """Somebody, with the data sets that the caller sees too, and what the caller may do with the account."""

    name: str
    role: str
    datasets: list[str]
    signs_in_by: str
    disabled: bool
    grantable: bool
    manageable: bool


class PeopleModel(BaseModel):
    """People whom the caller may know of."""

    people: list[PersonModel]


class TokenModel(BaseModel):
    """A token or an invitation, without its secret."""

    id: str
    name: str
    kind: str
    scopes: list[str]
    datasets: list[str] | None
    cap: str | None
    used: str
    until: float
    revoked: bool
    is_over: bool


class TokensModel(BaseModel):
    """Tokens and invitations, the newest first."""

    tokens: list[TokenModel]


class SecretModel(BaseModel):
    """A new secret. It is told this once, and kept as a digest."""

    name: str
    secret: str
    use: str


def people_of(server: Server, caller: Caller) -> ManagedPeople:
    """Return the accounts as somebody manages them."""
    return ManagedPeople(server.state, server.accounts, caller)


def _people(call: ApiCall) -> Any:
    return {"people": people_of(call.server, call.caller).listed()}


def _add(call: ApiCall) -> Any:
    body = call.body
    for name in body.datasets:
        _ = call.server.shelf[name]  # What is not served is granted on the command line.
    made = people_of(call.server, call.caller).add(body.name, body.role, body.datasets)
    return {"name": body.name, "secret": made, "use": "invitation"}


def _person(call: ApiCall) -> Any:
    return people_of(call.server, call.caller).person(call.path["name"])


def _change(call: ApiCall) -> Any:
    name, body, people = call.path["name"], call.body, people_of(call.server, call.caller)
    people.person(name)
    if body.disabled is not None:
        (people.disable if body.disabled else people.enable)(name)
    if body.role is not None:
        people.change_role(name, body.role)
    for datasets, revoke in ((body.grant, False), (body.revoke, True)):
        if datasets:
            people.grant(name, datasets, revoke=revoke)
    return next((one for one in people.listed() if one["name"] == name), None) or _gone(name)


def _gone(name: str) -> dict[str, Any]:
    """Describe somebody with whom the caller shares no data set any more."""
    unknown = {"role": "", "datasets": [], "signs_in_by": "", "disabled": False}
    return {"name": name, **unknown, "grantable": False, "manageable": False}


def _invite(call: ApiCall) -> Any:
    name = call.path["name"]
    return {"name": name, "secret": people_of(call.server, call.caller).invite(name), "use": "invitation"}


def _tokens(call: ApiCall) -> Any:
    return {"tokens": people_of(call.server, call.caller).tokens()}


def _new_token(call: ApiCall) -> Any:
    body, name = call.body, call.body.name or call.caller.name
    people = people_of(call.server, call.caller)
    made = people.new_token(name, scopes=body.scopes, datasets=body.datasets, cap=body.cap, days=body.days)
    return {"name": name, "secret": made, "use": "token"}


def _revoke_token(call: ApiCall) -> Any:
    people_of(call.server, call.caller).revoke_token(call.path["id"])
    return {"tokens": people_of(call.server, call.caller).tokens()}


def _log_file(call: ApiCall) -> Any:
    only, state, filters = call.caller.granted, call.server.state, log_filters(call.query)
    found = found_decisions(state, only=only, before=call.before, most=_LONGEST_LOG, filters=filters)
    headers = {"content-disposition": 'attachment; filename="decisions.csv"'}
    return Response(decisions_csv(found), media_type="text/csv", headers=headers)


_ONE = "/v1/people/{name}"
PEOPLE_ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/v1/people",
        operation="people",
        handler=_people,
        summary="People: everybody for an owner; for a custodian those who share a data set",
        answer=PeopleModel,
    ),
    Endpoint(
        method="POST",
        path="/v1/people",
        operation="people",
        handler=_add,
        summary="Add somebody; answers the invitation, this once",
        body=NewPersonModel,
        answer=SecretModel,
    ),
    Endpoint(
        method="GET", path=_ONE, operation="people", handler=_person, summary="One of these people", answer=PersonModel
    ),
    Endpoint(
        method="PATCH",
        path=_ONE,
        operation="people",
        handler=_change,
        summary="Grant and revoke data sets, change the role, disable or enable",
        body=PersonChangeModel,
        answer=PersonModel,
    ),
    Endpoint(
        method="POST",
        path=f"{_ONE}/invitation",
        operation="people",
        handler=_invite,
        summary="Another invitation, such as for a forgotten password; answered this once",
        answer=SecretModel,
    ),
    Endpoint(
        method="GET",
        path="/v1/tokens",
        operation="tokens",
        handler=_tokens,
        summary="One's own tokens, and those of people whom one manages, without secrets",
        answer=TokensModel,
    ),
    Endpoint(
        method="POST",
        path="/v1/tokens",
        operation="tokens",
        handler=_new_token,
        summary="A new token of one's own, or of an agent whom one manages; answered this once",
        body=NewTokenModel,
        answer=SecretModel,
    ),
    Endpoint(
        method="DELETE",
        path="/v1/tokens/{id}",
        operation="tokens",
        handler=_revoke_token,
        summary="Revoke a token or an invitation from now on",
        answer=TokensModel,
    ),
    Endpoint(
        method="GET",
        path="/v1/log.csv",
        operation="log",
        handler=_log_file,
        summary="The log of decisions as CSV, the newest first, at most 10,000; filters are exact",
        query=("before", *LOG_FILTERS),
        media=("text/csv",),
    ),
)
