"""The page of saved questions: open one, delete one, and save what was just asked."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from discreet.server.app import Server
from discreet.server.datasets import ServedDataset
from discreet.server.pages.ask_pages import asked_question
from discreet.server.pages.visit import Visit, visited
from discreet.server.problems import Problem
from discreet.server.saved_questions import LONGEST_TITLE, MOST_SAVED, SavedQuestions, may_delete

__all__ = ["saved_routes"]


def _questions(visit: Visit) -> Response:
    is_sent = visit.request.method == "POST"
    served = visit.chosen(visit.form.get("dataset") if is_sent else visit.request.query_params.get("dataset"))
    if served is None:
        return visit.page("empty.html")
    problem: Problem | None = None
    if is_sent:
        visit.caller.check("save", served.name)
        try:
            _change(visit, served)
            return RedirectResponse("/questions?" + urlencode({"dataset": served.name}), status_code=303)
        except Problem as found:
            problem = found
    return _listed(visit, served, problem)


def _change(visit: Visit, served: ServedDataset) -> None:
    saved, form = SavedQuestions(visit.server.state), visit.form
    if form.get("action") == "delete":
        saved.delete(visit.caller, served.name, form.get("question", "")[:64])
    else:
        title, shared = form.get("title", "")[: LONGEST_TITLE * 4], form.get("shared") == "yes"
        saved.save(visit.caller, served.name, title, asked_question(form), shared=shared)


def _listed(visit: Visit, served: ServedDataset, problem: Problem | None) -> Response:
    found = SavedQuestions(visit.server.state).of_dataset(visit.caller, served.name)
    listed = [(one, _day(one.at), may_delete(visit.caller, one)) for one in found]
    told: dict[str, Any] = {"listed": listed, "most": MOST_SAVED, "served": served, "datasets": visit.datasets}
    status = 200 if problem is None else problem.kind.status
    document = None if problem is None else problem.document()
    return visit.page("questions.html", status=status, problem=document, **told)


def _day(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).date().isoformat()


def saved_routes(server: Server) -> list[Route]:
    """Return the routes of saved questions."""
    return [Route("/questions", visited(server, "questions", _questions), methods=["GET", "POST"])]
