"""Signing in and out, and the page of one's own account."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Callable
from hashlib import sha256
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from discreet.errors import DiscreetError
from discreet.server.accounts import OPERATIONS, SCOPES, Caller, secret
from discreet.server.app import COOKIE, Server, check_origin, client_of, cookie_of
from discreet.server.pages.admin_pages import make_token, shown_tokens
from discreet.server.pages.visit import Visit, made_page, read_form, visited
from discreet.server.problems import Problem, problem_of
from discreet.server.sign_in.people_api import people_of

__all__ = ["sign_in_routes"]

_BEFORE = "discreet_form"  # the cookie of a form that is shown to somebody who is not signed in
_PER_PROCESS = secret()  # what ties such a form to its cookie


def _tied(before: str) -> str:
    return hmac.new(_PER_PROCESS.encode(), before.encode(), sha256).hexdigest()


def _login_page(server: Server, problem: Problem | None = None, *, is_set: bool = False) -> Response:
    before = secret()
    told = None if problem is None else problem.document()
    status = 200 if problem is None else problem.kind.status
    button = None if server.oidc is None else server.oidc.settings.button
    shown: dict[str, Any] = {"problem": told, "button": button, "is_set": is_set}
    made = made_page("login.html", status=status, form_token=_tied(before), **shown)
    _set_cookie(server, made, _BEFORE, before, max_age=3600)
    return made


def _set_cookie(server: Server, made: Response, name: str, value: str, *, max_age: int | None = None) -> None:
    whole, secure = server.cookie_name(name), server.secure
    made.set_cookie(whole, value, httponly=True, samesite="strict", secure=secure, path="/", max_age=max_age)


def _login(server: Server) -> Callable[[Request], Any]:
    async def answered(request: Request) -> Response:
        try:
            if request.method == "GET":
                server.rates.take(client_of(request))
                return _login_page(server, is_set=request.query_params.get("password") == "set")
            return await _signed_in(server, request)
        except BaseException as error:
            if isinstance(error, (asyncio.CancelledError, KeyboardInterrupt, SystemExit)):
                raise
            return _login_page(server, problem_of(error))

    return answered


async def _signed_in(server: Server, request: Request) -> Response:
    server.sign_ins.take(client_of(request))
    check_origin(request)
    form = await read_form(request)
    before = cookie_of(request, server.cookie_name(_BEFORE)) or ""
    if not before or not hmac.compare_digest(form.get("form_token", "").encode(), _tied(before).encode()):
        raise Problem("wrong-form-token", "the page was open for too long: try again")
    invitation = form.get("invitation", "").strip()
    name, password = form.get("name", "").strip()[:100], form.get("password", "")
    begin = (
        (lambda: server.accounts.accept(invitation))
        if invitation
        else (lambda: server.accounts.sign_in(name, password))
    )
    cookie, _ = await server.in_thread(begin)
    made = RedirectResponse("/account" if invitation else "/", status_code=303)
    _set_cookie(server, made, COOKIE, cookie)
    return made


def _logout(visit: Visit) -> Response:
    cookie = cookie_of(visit.request, visit.server.cookie_name(COOKIE))
    if cookie is not None:
        visit.server.accounts.sign_out(cookie, name=visit.caller.name)
    made = RedirectResponse("/login", status_code=303)
    _set_cookie(visit.server, made, COOKIE, "", max_age=0)
    return made


def _account_page(visit: Visit, *, status: int = 200, problem: Any = None, made: Any = None) -> Response:
    accounts, caller = visit.server.accounts, visit.caller
    listed = shown_tokens(people_of(visit.server, caller), only=caller.name)
    own = [one for one in listed if one["kind"] == "token" or not one["is_over"]]
    told: dict[str, Any] = {
        "granted": [one.name for one in visit.datasets],
        "known": accounts.has_password(caller.name) and not caller.invited,
        "tokens": own,
        "linked": accounts.is_linked(caller.name),
        "button": None if visit.server.oidc is None else visit.server.oidc.settings.button,
        "scopes": _useful_scopes(caller),
        "problem": problem,
        "made": made,
    }
    return visit.page("account.html", status=status, **told)


def _account(visit: Visit) -> Response:
    name, invited = visit.caller.name, visit.caller.invited
    if visit.request.method == "GET":
        return _account_page(visit)
    try:
        current = visit.form.get("current", "")
        visit.server.accounts.change_password(name, visit.form.get("password", ""), current=current, invited=invited)
    except Problem as problem:
        return _account_page(visit, status=422, problem=problem.document())
    return RedirectResponse("/login?password=set", status_code=303)


def _own_tokens(visit: Visit) -> Response:
    """Make or revoke a token of one's own. Its secret is in this answer, and nowhere else."""
    name, people = visit.caller.name, people_of(visit.server, visit.caller)
    try:
        if visit.form.get("action") != "revoke":
            return _account_page(visit, made=make_token(visit, name))
        public = visit.form.get("id", "")[:64]
        people.revoke_token(public, of=name)
    except (Problem, DiscreetError) as error:
        problem = problem_of(error)
        return _account_page(visit, status=problem.kind.status, problem=problem.document())
    return RedirectResponse("/account#tokens", status_code=303)


def _useful_scopes(caller: Caller) -> list[str]:
    """Return what a token of this role can be for; `manage` is for those who manage others."""
    useful = {one.scope for one in OPERATIONS.values() if caller.role in one.roles}
    return [one for one in SCOPES if one in useful and (one != "manage" or caller.may("people"))]


def sign_in_routes(server: Server) -> list[Route]:
    """Return the routes of signing in and out."""
    both = ["GET", "POST"]
    return [
        Route("/login", _login(server), methods=both),
        Route("/logout", visited(server, None, _logout), methods=["POST"]),
        Route("/account", visited(server, "me", _account), methods=both),
        Route("/account/tokens", visited(server, "tokens", _own_tokens), methods=["POST"]),
    ]
