"""The pages of approvals: what waits for whom, and what an approver should know before they decide."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from discreet.errors import DiscreetError
from discreet.server.app import Server
from discreet.server.approvals_api import approval_document, approve_job, decline_job, seen_approvals, withdraw_job
from discreet.server.pages.visit import Visit, visited
from discreet.server.problems import Problem, problem_of
from discreet.server.question_api import seen_job

__all__ = ["approval_routes"]

_SHOWN = 50


def _approvals(visit: Visit) -> Response:
    before = visit.request.query_params.get("before", "")
    last = int(before) if before.isascii() and before.isdecimal() and len(before) < 16 else None
    found = [_dated(one) for one in seen_approvals(visit.server, visit.caller, before=last, most=_SHOWN)]
    own = [one for one in found if one["state"] == "awaiting"]
    told: dict[str, Any] = {
        "decide": [one for one in own if one["yours_to_decide"]],
        "waiting": [one for one in own if not one["yours_to_decide"]],
        "ended": [one for one in found if one["state"] != "awaiting"],
        "older": found[-1]["number"] if len(found) == _SHOWN else None,
        "limited": bool(visit.server.jobs.gate.limits.each or visit.server.jobs.gate.limits.daily),
    }
    return visit.page("approvals.html", **told)


def _dated(one: dict[str, Any]) -> dict[str, Any]:
    """Write times as people read them; the machine of the server knows no better zone than that of the world."""
    return one | {name: _when(one[name]) for name in ("asked", "until", "decided")}


def _when(moment: float | None) -> str:
    return "" if moment is None else datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _approval(visit: Visit) -> Response:
    """Show a release that waits, or do what its form says."""
    number, problem = visit.request.path_params["id"], None
    job = seen_job(visit.server, visit.caller, number)
    if visit.request.method == "POST":
        try:
            _decide(visit, job.id)
            return RedirectResponse(f"/approvals/{job.id}", status_code=303)
        except (Problem, DiscreetError) as error:
            problem = problem_of(error)
            if problem.kind.code == "forbidden":
                raise
    told = approval_document(visit.server, visit.caller, job)
    own = job.name == visit.caller.name
    status = 200 if problem is None else problem.kind.status
    written = None if problem is None else problem.document()
    shown = {**told, "approval": _dated(told["approval"])}
    said = visit.form.get("reason", "")  # What was typed stays where the form is refused.
    return visit.page("approval.html", status=status, job=job, own=own, problem=written, reason=said, **shown)


def _decide(visit: Visit, number: str) -> None:
    reason, action = visit.form.get("reason", "")[:1000], visit.form.get("action")
    server, caller = visit.server, visit.caller
    match action:
        case "approve":
            caller.check("approve")
            if visit.form.get("looked") != "yes":
                raise Problem("invalid", "say that you looked at it: tick the box above the buttons")
            approve_job(server, caller, number, reason)
        case "decline":
            caller.check("approve")
            decline_job(server, caller, number, reason)
        case "withdraw":
            caller.check("withdraw")
            withdraw_job(server, caller, number)
        case _:
            raise Problem("invalid", "approve it, decline it, or withdraw it")


def approval_routes(server: Server) -> list[Route]:
    """Return the routes of approvals."""
    return [
        Route("/approvals", visited(server, "approvals", _approvals), methods=["GET"]),
        Route("/approvals/{id}", visited(server, "approvals", _approval), methods=["GET", "POST"]),
    ]
