"""The page on which one asks, and the page of an answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlencode

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from discreet.errors import DiscreetError
from discreet.pages import kit
from discreet.pages.svg import scale_for, strip
from discreet.query.answer_columns import AnswerColumn, shown
from discreet.query.release_table import DUMMY_NOTE, ReleaseTable
from discreet.server.accounts import secret
from discreet.server.app import Server, waited
from discreet.server.datasets import AskedQuestion, ServedDataset, sample_question
from discreet.server.pages.visit import Visit, visited
from discreet.server.problems import Problem, problem_of
from discreet.server.question_api import ask_release, seen_job

__all__ = ["ask_routes", "shown_table"]

_SHOWN_ROWS, _SHOWN_BARS = 500, 40


_WAYS = ("epsilon", "error", "rho", "share")


def _question(form: Mapping[str, str]) -> AskedQuestion:
    way = form.get("way", "epsilon")
    if way not in _WAYS:
        raise Problem("invalid", "say the price in one of the ways that are listed")
    said = {way: form.get("amount", "").strip()[:60], "delta": form.get("delta", "").strip()[:60]}
    sql = form.get("sql", "").replace("\r\n", "\n")  # Browsers send forms so.
    if not 0 < len(sql) <= 20_000:
        raise Problem("invalid", "write a question of at most 20,000 letters")
    return AskedQuestion(sql=sql, offer={name: value for name, value in said.items() if value})


def _ask(visit: Visit) -> Response:
    form, asked = visit.form, visit.request.method == "POST"
    query = visit.request.query_params
    served = visit.chosen(form.get("dataset") if asked else query.get("dataset"))
    if served is None:
        return visit.page("empty.html")
    told: dict[str, Any] = {"estimate": None, "dummy": None, "problem": None}
    if asked:
        try:
            if form.get("action") == "release":
                visit.caller.check("release", served.name)
                question, key = _question(form), f"page/{form.get('once', '')[:64]}"
                job = ask_release(visit.server, visit.caller, served.name, question, key)
                return RedirectResponse(f"/releases/{job.id}", status_code=303)
            told = told | _looked(visit, served)
        except (Problem, DiscreetError) as error:
            told["problem"] = problem_of(error).document()
    said = {"way": "epsilon", "amount": "0.1", "delta": "", "sql": sample_question(served.session.catalogue)}
    said |= {name: query[name] for name in ("sql", "way", "amount", "delta") if name in query}
    said |= {name: form[name] for name in said if name in form}
    status = 200 if told["problem"] is None else told["problem"]["status"]
    listed = {"datasets": visit.datasets, "served": served, "facts": served.public_facts(), "once": secret(16)}
    return visit.page("ask.html", status=status, said=said, ways=_WAYS, **listed, **told)


def _looked(visit: Visit, served: ServedDataset) -> dict[str, Any]:
    """Price a question, and try it on made-up rows if that was asked for."""
    visit.caller.check("estimate", served.name)
    plan = _question(visit.form).plan(served.asked_by(visit.caller.name))
    told: dict[str, Any] = {"estimate": served.estimate(plan, visit.caller.name)}
    if visit.form.get("action") == "dummy":
        with visit.server.one_trial(visit.caller):
            told["dummy"] = shown_table(plan.dummy())
    return told


# --- answers ---


def shown_table(table: ReleaseTable) -> dict[str, Any]:
    """Return what a page shows of an answer: heads, rows as text, a chart, and the notes."""
    rows = [[shown(column, row) for column in table.columns] for row in range(min(len(table), _SHOWN_ROWS))]
    return {
        "heads": [(column.name, column.measured) for column in table.columns],
        "rows": rows,
        "hidden": max(0, len(table) - _SHOWN_ROWS),
        "chart": _chart(table),
        "notes": [note for note in table.notes if note != DUMMY_NOTE],
        "is_dummy": DUMMY_NOTE in table.notes,
        "cost": table.cost,
        "confidence": f"{float(table.confidence):.0%}",
    }


def _chart(table: ReleaseTable) -> Markup | None:
    """Draw the first column that has numbers, with its error bars; nothing where there is none."""
    keys = [column for column in table.columns if not column.measured]
    drawn = next((column for column in table.columns if column.measured and _numbers(column)), None)
    if drawn is None or not 1 < len(table) <= _SHOWN_BARS:
        return None
    bars = [(_name(keys, row), *_bar(drawn, row)) for row in range(len(table)) if _bar(drawn, row)]
    scale = scale_for(number for _, *numbers in bars for number in numbers)
    lines = [(name, strip(scale, value, low=low, high=high), f"{value:,.4g}") for name, value, low, high in bars]
    return Markup(kit.bar_table(drawn.name, lines, scale))


def _name(keys: list[AnswerColumn], row: int) -> str:
    return " · ".join(shown(key, row) for key in keys) or str(row + 1)


def _numbers(column: AnswerColumn) -> bool:
    return any(_bar(column, row) for row in range(min(len(column), _SHOWN_BARS)))


def _bar(column: AnswerColumn, row: int) -> tuple[float, float, float] | tuple[()]:
    cell = column[row]
    if cell.value is None or isinstance(cell.value, (str, bool)) or cell.low is None or cell.high is None:
        return ()
    try:
        numbers = float(cell.value), float(cell.low), float(cell.high)
    except (TypeError, OverflowError):
        return ()
    return numbers if all(map(math.isfinite, numbers)) else ()


def _release_page(server: Server) -> Callable[[Request], Any]:
    async def waiting(request: Request) -> Response:
        """Wait a little for the answer, so that most pages need not be asked for twice."""
        try:
            caller = await server.in_thread(lambda: server.caller(request))
            job = await server.in_thread(lambda: seen_job(server, caller, request.path_params["id"]))
            await waited(server, caller, job, 5.0)
        except Problem:
            pass  # The page says it.
        made: Response = await visited(server, "releases", _one_release)(request)
        return made

    return waiting


def _one_release(visit: Visit) -> Response:
    job = seen_job(visit.server, visit.caller, visit.request.path_params["id"])
    table = shown_table(job.table()) if job.answer is not None else None
    way = next((name for name in _WAYS if name in job.offer), "epsilon")
    said = {"dataset": job.dataset, "sql": job.sql, "way": way, "amount": str(job.offer.get(way, "")), "delta": ""}
    said["delta"] = str(job.offer.get("delta", ""))
    problem = None if job.problem is None else job.problem.document()
    again = "/ask?" + urlencode(said)
    return visit.page("release.html", job=job, table=table, problem=problem, again=again)


def ask_routes(server: Server) -> list[Route]:
    """Return the routes of asking and of answers."""
    return [
        Route("/ask", visited(server, "estimate", _ask), methods=["GET", "POST"]),
        Route("/releases/{id}", _release_page(server), methods=["GET"]),
    ]
