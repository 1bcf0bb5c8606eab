"""The pages of whoever runs the server: how it is, people, tokens, and the log of decisions.

What they do is what the API does, by the same functions: `ManagedPeople` says who may do what to whom. A new
secret is in the answer to the form that asked for it, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlencode

from starlette.responses import Response
from starlette.routing import Route

from discreet.errors import DiscreetError
from discreet.server.accounts import SCOPES
from discreet.server.app import Server
from discreet.server.pages.visit import Visit, visited
from discreet.server.problems import Problem, problem_of
from discreet.server.sign_in.people import ManagedPeople
from discreet.server.sign_in.people_api import people_of
from discreet.server.watch.decision_log import LOG_FILTERS, found_decisions, log_filters, moment
from discreet.server.watch.operations_api import health_facts

__all__ = ["admin_routes", "make_token", "shown_tokens", "ticked"]

_PAGE = 50
_NUMBER = 32  # letters of the number of a release
_OF_A_RELEASE = ("release", "approve", "decline", "withdraw", "approval expires", "exact look")  # linked in the log


def ticked(form: Mapping[str, str], what: str) -> list[str]:
    """Return which boxes of a kind are ticked: they are called `dataset.one`, `scope.read`."""
    return [name.removeprefix(f"{what}.") for name in form if name.startswith(f"{what}.")]


def _people(visit: Visit) -> ManagedPeople:
    return people_of(visit.server, visit.caller)


def _overview(visit: Visit) -> Response:
    return visit.page("admin.html", at="/admin", health=health_facts(visit.server, visit.caller))


# --- people ---

_DUTIES = {
    "owner": "sees all data sets, manages everybody",
    "custodian": "holds data: asks, approves, declares tables, adds analysts",
    "analyst": "asks, and sees their own releases",
    "auditor": "sees all releases, the budget and the log; asks nothing",
    "agent": "a program that asks by a token with a cap",
    "reader": "sees what was released",
}


def _listed(visit: Visit, *, status: int = 200, **told: Any) -> Response:
    people = _people(visit)
    shown = {
        "people": people.listed(),
        "roles": [one.value for one in type(visit.caller.role) if one in people.roles],
        "duties": _DUTIES,
        "datasets": [one.name for one in visit.datasets],
        "problem": None,
        "made": None,
        "done": None,
        "said": {},
    }
    return visit.page("admin_people.html", status=status, at="/admin/people", **(shown | told))


def _people_page(visit: Visit) -> Response:
    if visit.request.method == "GET":
        return _listed(visit)
    try:
        return _listed(visit, **_done(visit))
    except (Problem, DiscreetError) as error:
        problem = problem_of(error)
        return _listed(visit, status=problem.kind.status, problem=problem.document(), said=visit.form)


def _done(visit: Visit) -> dict[str, Any]:
    """Do what a form asks for, and return what is told of it."""
    form, people = visit.form, _people(visit)
    name, action = form.get("name", "").strip()[:100], form.get("action", "")
    if action in ("add", "invite"):
        made = (
            people.add(name, form.get("role", ""), ticked(form, "dataset")) if action == "add" else people.invite(name)
        )
        link = f"{str(visit.request.base_url).rstrip('/')}/login#{made}"  # A browser keeps what follows # to itself.
        return {"made": {"name": name, "secret": made, "use": "invitation", "link": link}}
    changes: dict[str, Callable[[], None]] = {
        "grants": lambda: _set_grants(visit, people, name),
        "role": lambda: people.change_role(name, form.get("role", "")),
        "disable": lambda: people.disable(name),
        "enable": lambda: people.enable(name),
        "unlink": lambda: people.unlink(name),
    }
    if action not in changes:
        raise Problem("invalid", "choose one of the things that are listed")
    changes[action]()
    return {"done": f"{name}: {_WORDS[action]}"}


_WORDS = {
    "grants": "data sets changed; it counts from their next request on",
    "role": "role changed; visits ended and tokens revoked",
    "disable": "disabled; visits ended and tokens revoked",
    "enable": "enabled; tokens stay revoked",
    "unlink": "no longer tied to the provider; send an invitation",
}


def _set_grants(visit: Visit, people: ManagedPeople, name: str) -> None:
    """Make the data sets of somebody those that are ticked, among those that are shown."""
    had, wanted = set(people.person(name)["datasets"]), set(ticked(visit.form, "dataset"))
    for datasets, revoke in ((wanted - had, False), (had - wanted, True)):
        if datasets:
            people.grant(name, datasets, revoke=revoke)


# --- tokens ---


def shown_tokens(people: ManagedPeople, *, only: str | None = None) -> list[dict[str, Any]]:
    """Return tokens as a page shows them: those that still work first."""
    found = [one for one in people.tokens() if only is None or one["name"] == only]
    rows = [one | {"until": moment(one["until"])} for one in found]
    return sorted(rows, key=lambda one: one["is_over"])


def make_token(visit: Visit, name: str) -> dict[str, Any]:
    """Make a token as a form says, and return the secret."""
    form = visit.form
    try:
        days = float(form.get("days", "")[:10])
    except ValueError:
        raise Problem("invalid", "say for how many days") from None
    only = ticked(form, "dataset") or None
    cap = form.get("cap", "").strip()[:60] or None
    made = _people(visit).new_token(name, scopes=ticked(form, "scope"), datasets=only, cap=cap, days=days)
    return {"name": name, "secret": made, "use": "token", "link": None}


def _tokens_page(visit: Visit) -> Response:
    people, told = _people(visit), dict[str, Any](problem=None, made=None, done=None)
    status = 200
    if visit.request.method == "POST":
        try:
            if visit.form.get("action") == "revoke":
                people.revoke_token(visit.form.get("id", "")[:64])
                told["done"] = "revoked, from now on"
            else:
                told["made"] = make_token(visit, visit.form.get("name", "")[:64])
        except (Problem, DiscreetError) as error:
            problem = problem_of(error)
            told["problem"], status = problem.document(), problem.kind.status
    agents = [one["name"] for one in people.listed() if one["manageable"] and one["role"] == "agent"]
    shown = {"tokens": shown_tokens(people), "agents": agents, "datasets": [one.name for one in visit.datasets]}
    return visit.page("admin_tokens.html", status=status, at="/admin/tokens", scopes=SCOPES, **shown, **told)


# --- the log ---


def _log(visit: Visit) -> Response:
    query, state = visit.request.query_params, visit.server.state
    filters = log_filters(query)
    said = query.get("before", "")
    before = int(said) if said.isdecimal() and len(said) < 16 else None
    found = found_decisions(state, only=visit.caller.granted, before=before, most=_PAGE + 1, filters=filters)
    shown = [one | {"at": moment(one["at"])} for one in found[:_PAGE]]
    older = urlencode(filters | {"before": str(shown[-1]["number"])}) if len(found) > _PAGE else None
    told: dict[str, Any] = {
        "releases": {one["about"] for one in shown if one["what"] in _OF_A_RELEASE and len(one["about"]) == _NUMBER},
        "decisions": shown,
        "older": older,
        "filters": filters,
        "names": LOG_FILTERS,
        "paged": before is not None,
    }
    return visit.page("admin_log.html", at="/admin/log", same=urlencode(filters), holds=state.decisions_hold(), **told)


def admin_routes(server: Server) -> list[Route]:
    """Return the routes of these pages."""
    both = ["GET", "POST"]
    return [
        Route("/admin", visited(server, "health", _overview), methods=["GET"]),
        Route("/admin/people", visited(server, "people", _people_page), methods=both),
        Route("/admin/tokens", visited(server, "people", _tokens_page), methods=both),
        Route("/admin/log", visited(server, "log", _log), methods=["GET"]),
    ]
