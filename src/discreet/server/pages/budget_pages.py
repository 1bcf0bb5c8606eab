"""The page of the budget: what was spent, what is left, and on what."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response
from starlette.routing import Route

from discreet.server.app import Server
from discreet.server.pages.visit import Visit, visited

__all__ = ["budget_routes"]


def _budget(visit: Visit) -> Response:
    served = visit.chosen(visit.request.query_params.get("dataset"))
    if served is None:
        return visit.page("empty.html")
    only = None if visit.caller.sees_all else visit.caller.name
    entries = served.history(only=only, before=None, most=50)
    jobs = visit.server.jobs.of_dataset(served.name, only=only, most=20)
    told: dict[str, Any] = {"money": served.budget(visit.caller.name), "entries": entries, "jobs": jobs, "only": only}
    return visit.page("budget.html", served=served, datasets=visit.datasets, **told)


def budget_routes(server: Server) -> list[Route]:
    """Return the routes of the budget."""
    return [Route("/budget", visited(server, "budget", _budget), methods=["GET"])]
