"""Signing in by a provider: to it, and back. A browser that did not begin is not let in by what it brings.

The answer to the way back is a page, not a redirect: a cookie for this site only goes with what our own page asks for.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from discreet.server.accounts import secret
from discreet.server.app import COOKIE, Server, client_of, cookie_of
from discreet.server.pages.visit import Visit, made_page, problem_page, visited
from discreet.server.problems import Problem, problem_of
from discreet.server.sign_in.identities import Identities
from discreet.server.sign_in.oidc import OidcProvider, OidcRefusal, flow_secret

__all__ = ["oidc_routes"]

_BEGAN = "discreet_oidc"  # the cookie of the browser that began
_RETURN = "/login/oidc/return"
_LASTS, _MOST_WAITING = 600, 10_000


def _provider(server: Server) -> OidcProvider:
    if server.oidc is None:
        raise Problem("not-found")
    return server.oidc


def _redirect(server: Server, request: Request) -> str:
    """Return our own address as this browser knows it: the name was checked at the gate."""
    return f"{'https' if server.secure else 'http'}://{request.headers['host']}{_RETURN}"


def _began(server: Server, request: Request, name: str) -> tuple[str, str]:
    """Begin: return the secret for the cookie, and where the browser goes. A name is who ties their account."""
    held, now = secret(), server.state.now()
    where = _provider(server).address(held, _redirect(server, request))
    with server.state.changing() as database:
        database.execute("DELETE FROM sign_ins WHERE until < ?", (now,))
        if database.execute("SELECT COUNT(*) AS n FROM sign_ins").fetchone()["n"] >= _MOST_WAITING:
            raise Problem("too-many")
        digest = _digest(flow_secret(held, "state"))
        database.execute("INSERT INTO sign_ins VALUES (?, ?, ?)", (digest, name, now + _LASTS))
    return held, where


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _cookie(
    server: Server, made: Response, name: str, value: str, *, lax: bool = False, age: int | None = None
) -> None:
    """Set a cookie; the one of the way back is lax, since the provider's page leads here."""
    site: Any = "lax" if lax else "strict"
    made.set_cookie(
        server.cookie_name(name), value, httponly=True, samesite=site, secure=server.secure, path="/", max_age=age
    )


def _to_provider(server: Server) -> Callable[[Request], Any]:
    async def answered(request: Request) -> Response:
        try:
            server.sign_ins.take(client_of(request))
            held, where = await server.in_thread(lambda: _began(server, request, ""))
        except Exception as error:  # noqa: BLE001 - whatever it was, one of a few texts is told
            return await _told(server, error)
        made = RedirectResponse(where, status_code=303)
        _cookie(server, made, _BEGAN, held, lax=True, age=_LASTS)
        return made

    return answered


def _tie(visit: Visit) -> Response:
    """Begin to tie one's account. A form may not lead to another site, so that a page does.

    Whoever has a password says it: it would be void, and a browser that was left open tied to somebody else's subject.
    """
    caller = visit.caller
    visit.server.accounts.confirm(caller.name, visit.form.get("current", ""), invited=caller.invited)
    try:
        held, where = _began(visit.server, visit.request, visit.caller.name)
    except OidcRefusal:
        raise Problem("unavailable", "the provider cannot be asked now") from None
    made = visit.page("onward.html", to=where, words="To the provider")
    _cookie(visit.server, made, _BEGAN, held, lax=True, age=_LASTS)
    return made


def _back(server: Server) -> Callable[[Request], Any]:
    async def answered(request: Request) -> Response:
        try:
            server.sign_ins.take(client_of(request))
            cookie = await server.in_thread(lambda: _signed_in(server, request))
        except Exception as error:  # noqa: BLE001 - whatever it was, one of a few texts is told
            return await _told(server, error)
        made = made_page("onward.html", to="/account", words="You are signed in")
        _cookie(server, made, COOKIE, cookie)
        _cookie(server, made, _BEGAN, "", lax=True, age=0)
        return made

    return answered


def _signed_in(server: Server, request: Request) -> str:
    """Check that this browser began, once; change the code for an ID token; begin a visit of whom it names."""
    provider, query = _provider(server), request.query_params
    held, state = cookie_of(request, server.cookie_name(_BEGAN)), query.get("state", "")[:200]
    if held is None or not hmac.compare_digest(state.encode(), flow_secret(held, "state").encode()):
        raise OidcRefusal("another browser")
    name = _used_once(server, state)
    provider.check_sender(query.get("iss"))
    code = query.get("code", "")
    if "error" in query or not 0 < len(code) <= 2_000:
        raise OidcRefusal("no code")
    claims = provider.claims(code, held, _redirect(server, request))
    identities = Identities(server.state, server.accounts, provider.settings)
    if name:
        identities.tie(name, claims["sub"])
    cookie, _ = server.accounts.begin_by_provider(name or identities.name_of(claims))
    return cookie


def _used_once(server: Server, state: str) -> str:
    with server.state.changing() as database:
        query = "SELECT name FROM sign_ins WHERE digest = ? AND until > ?"
        row = database.execute(query, (_digest(state), server.state.now())).fetchone()
        database.execute("DELETE FROM sign_ins WHERE digest = ?", (_digest(state),))
    if row is None:
        raise OidcRefusal("used or expired")
    return str(row["name"])


async def _told(server: Server, error: Exception) -> Response:
    """Say that it failed, in the same words whatever it was; the log has one of a few words more."""
    if not isinstance(error, OidcRefusal):
        return problem_page(problem_of(error), None)
    why = f"provider: {error.why}"
    await server.in_thread(lambda: server.state.decide("", "sign in", outcome="refused", about=why))
    words = "signing in by the provider failed, or you have no account here: begin anew, or ask whoever runs the server"
    return problem_page(Problem("not-signed-in", words), None)


def oidc_routes(server: Server) -> list[Route]:
    """Return the routes of a provider; without one there is none."""
    if server.oidc is None:
        return []
    return [
        Route("/login/oidc", _to_provider(server), methods=["GET"]),
        Route(_RETURN, _back(server), methods=["GET"]),
        Route("/account/link", visited(server, "me", _tie), methods=["POST"]),
    ]
