"""The page on which a person allows a notebook to ask in their name."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response
from starlette.routing import Route

from discreet.errors import DiscreetError
from discreet.server.app import Server
from discreet.server.pages.admin_pages import ticked
from discreet.server.pages.visit import Visit, visited
from discreet.server.problems import Problem, problem_of
from discreet.server.sign_in.device_flow import DeviceCodes
from discreet.server.watch.decision_log import moment

__all__ = ["device_routes"]


def _device(visit: Visit) -> Response:
    told: dict[str, Any] = {"asked": None, "decided": None, "problem": None, "status": 200}
    told["code"] = visit.request.query_params.get("code", "")[:20]
    if visit.request.method == "POST":
        try:
            told |= _decided(visit)
        except (Problem, DiscreetError) as error:
            problem = problem_of(error)
            told |= {"problem": problem.document(), "status": problem.kind.status}
    return visit.page("device.html", datasets=[one.name for one in visit.datasets], **told)


def _decided(visit: Visit) -> dict[str, Any]:
    """Show what a code stands for, or decide about it: a code in an address decides nothing by itself."""
    codes = DeviceCodes(visit.server.state, visit.server.accounts)
    form, typed = visit.form, visit.form.get("code", "")
    action = form.get("action")
    if action not in ("allow", "deny"):
        asked = codes.look(visit.caller, typed)
        return {"asked": asked, "when": moment(asked.asked)}
    scopes = ticked(form, "scope") if action == "allow" else []
    if action == "allow" and not scopes:
        raise Problem("invalid", "tick what it may do, or deny it")
    cap, only = form.get("cap", "").strip()[:60] or None, ticked(form, "dataset") or None
    codes.decide(visit.caller, typed, scopes=scopes, datasets=only, cap=cap)
    return {"decided": "allowed" if scopes else "denied"}


def device_routes(server: Server) -> list[Route]:
    """Return the route of this page."""
    return [Route("/device", visited(server, "tokens", _device), methods=["GET", "POST"])]
