"""A look at the exact result of a question, for who holds the data: an act of its own, logged before it is done.

Nothing of it is stored, cached or sent elsewhere, and no token can do it. It is there only where whoever runs the
server declared it.
"""

from __future__ import annotations

import hmac
from fractions import Fraction
from typing import Any

from starlette.responses import Response
from starlette.routing import Route

from discreet.errors import DiscreetError
from discreet.formatting import plain
from discreet.privacy.not_private import HEADING
from discreet.query.release_table import ReleaseTable
from discreet.server.app import Server
from discreet.server.jobs import Job
from discreet.server.pages.visit import Visit, visited
from discreet.server.problems import Problem, problem_of
from discreet.server.question_api import seen_job

__all__ = ["NOT_COVERED", "exact_routes"]

NOT_COVERED = (
    "What you decide after this look is not covered by the guarantee: a release that is asked, changed or held back "
    "because of what you see here may tell about people what no budget counts."
)
_SHOWN = 500


def _exact(visit: Visit) -> Response:
    if not visit.server.exact_looks:
        raise Problem("not-found")
    job = seen_job(visit.server, visit.caller, visit.request.path_params["id"])
    visit.caller.check("exact look", job.dataset)
    if job.kind != "question":
        raise Problem("not-found")
    told: dict[str, Any] = {"table": None, "problem": None}
    if visit.request.method == "POST":
        try:
            told["table"] = _looked(visit, job)
        except (Problem, DiscreetError) as error:
            told["problem"] = problem_of(error).document()
    status = 200 if told["problem"] is None else told["problem"]["status"]
    return visit.page("exact.html", status=status, job=job, heading=HEADING, sentence=NOT_COVERED, **told)


def _looked(visit: Visit, job: Job) -> dict[str, Any]:
    """Log the look, then look: what cannot be logged is not shown."""
    said = visit.form.get("dataset", "").strip()
    if not hmac.compare_digest(said.encode(), job.dataset.encode()):
        raise Problem("invalid", "write the name of the data set, to say that you mean it; nothing was read")
    visit.server.state.decide(visit.caller.name, "exact look", dataset=job.dataset, outcome="shown", about=job.id)
    with visit.server.one_trial(visit.caller):
        plan = job.question.plan(visit.server.shelf[job.dataset].asked_by(visit.caller.name))
        return _shown(plan.exact_look().value)


def _shown(table: ReleaseTable) -> dict[str, Any]:
    """Return what the page shows: values alone, for the ± of an answer is not theirs."""
    rows = [[_text(column[row].value) for column in table.columns] for row in range(min(len(table), _SHOWN))]
    heads = [(column.name, column.measured) for column in table.columns]
    return {"heads": heads, "rows": rows, "hidden": max(0, len(table) - _SHOWN)}


def _text(value: Any) -> str:
    if value is None:
        return "none"
    return plain(value) if isinstance(value, Fraction) else str(value)


def exact_routes(server: Server) -> list[Route]:
    """Return the route of exact looks."""
    return [Route("/releases/{id}/exact", visited(server, "exact look", _exact), methods=["GET", "POST"])]
