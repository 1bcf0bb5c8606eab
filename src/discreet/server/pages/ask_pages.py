"""The page on which one asks, and the page of an answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlencode

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from discreet.errors import DiscreetError
from discreet.pages import kit
from discreet.pages.svg import scale_for, strip
from discreet.query.answer_columns import AnswerColumn, shown
from discreet.query.release_table import DUMMY_NOTE, ReleaseTable
from discreet.server.accounts import secret
from discreet.server.app import Server, waited
from discreet.server.datasets import AskedQuestion, ServedDataset, sample_question
from discreet.server.jobs import Job
from discreet.server.pages.release_pages import work_page
from discreet.server.pages.schema_tree import SQL_FUNCTIONS, SQL_WORDS, schema_tree, unit_words
from discreet.server.pages.visit import Visit, visited
from discreet.server.problems import Problem, problem_of
from discreet.server.question_api import ask_release, seen_job
from discreet.server.saved_questions import SavedQuestions

__all__ = ["ask_routes", "asked_question", "offer_words", "python_snippet", "shown_table"]

_SHOWN_ROWS, _SHOWN_BARS, _SHOWN_CHARTS = 500, 40, 4

_WAYS = ("epsilon", "error", "rho", "share")


def asked_question(form: Mapping[str, str]) -> AskedQuestion:
    """Read a question from the fields of the form."""
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
                question, key = asked_question(form), f"page/{form.get('once', '')[:64]}"
                job = ask_release(visit.server, visit.caller, served.name, question, key)
                return RedirectResponse(f"/releases/{job.id}", status_code=303)
            told = told | _looked(visit, served)
        except (Problem, DiscreetError) as error:
            told["problem"] = problem_of(error).document()
    status = 200 if told["problem"] is None else told["problem"]["status"]
    return visit.page("ask.html", status=status, said=_said(visit, served), **_around(visit, served), **told)


def _said(visit: Visit, served: ServedDataset) -> dict[str, str]:
    """Return what the form holds: what was sent, what a link or a saved question says, or a sample."""
    form, query = visit.form, visit.request.query_params
    said = {"way": "epsilon", "amount": "0.1", "delta": "", "sql": sample_question(served.session.catalogue)}
    if "question" in query and visit.caller.may("questions"):
        found = SavedQuestions(visit.server.state).get(visit.caller, served.name, query["question"][:64])
        said |= offer_words(found.question)
    said |= {name: query[name][:20_000] for name in ("sql", "way", "amount", "delta") if name in query}
    return said | {name: form[name] for name in said if name in form}


def _around(visit: Visit, served: ServedDataset) -> dict[str, Any]:
    """Return what the page shows around the form."""
    may_save = visit.caller.may("save")
    saved = SavedQuestions(visit.server.state).of_dataset(visit.caller, served.name, most=8) if may_save else []
    return {
        "datasets": visit.datasets,
        "served": served,
        "facts": served.public_facts(),
        "tables": schema_tree(served),
        "unit": unit_words(served.policy.unit),
        "words": SQL_WORDS,
        "functions": SQL_FUNCTIONS,
        "saved": saved,
        "once": secret(16),
    }


def offer_words(question: AskedQuestion) -> dict[str, str]:
    """Return a question as the fields of the form have it; other ways to offer are those of the API only."""
    way = next((name for name in _WAYS if name in question.offer), "epsilon")
    amount, delta = str(question.offer.get(way, "")), str(question.offer.get("delta", ""))
    return {"sql": question.sql, "way": way, "amount": amount, "delta": delta}


def _price(visit: Visit) -> Response:
    """Price what is being typed. What cannot be read is an answer here, too: a half-written question is no error."""
    told: dict[str, Any] = {"estimate": None, "problem": None}
    served = visit.chosen(visit.form.get("dataset"))
    if served is None:
        raise Problem("not-found")
    try:
        told |= _looked(visit, served)
    except (Problem, DiscreetError) as error:
        told["problem"] = problem_of(error).document()
    return JSONResponse(told)


def _looked(visit: Visit, served: ServedDataset) -> dict[str, Any]:
    """Price a question, and try it on made-up rows if that was asked for."""
    visit.caller.check("estimate", served.name)
    plan = asked_question(visit.form).plan(served.asked_by(visit.caller.name))
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
        "charts": _charts(table),
        "notes": [note for note in table.notes if note != DUMMY_NOTE and not _tells_hidden(note)],
        "left_out": [*_empty_cells(table), *filter(_tells_hidden, table.notes)],
        "is_dummy": DUMMY_NOTE in table.notes,
        "cost": table.cost,
        "confidence": f"{float(table.confidence):.0%}",
    }


def _tells_hidden(note: str) -> bool:
    """Tell whether a note says what an answer leaves out; notes are texts of the planner, which has these words."""
    return any(words in note for words in ("left out", "the others out", "hidden", "of them only", "are shown if"))


def _empty_cells(table: ReleaseTable) -> list[str]:
    """Say how many numbers are empty, and why: it is seen in the table."""
    cells = [column[row].value for column in table.columns if column.measured for row in range(len(column))]
    empty = sum(value is None for value in cells)
    if not empty:
        return []
    return [
        f"{empty:,} of {len(cells):,} numbers are empty: at this price they could be anything that the bounds allow, "
        "and whatever was shown would look like an answer"
    ]


def _charts(table: ReleaseTable) -> list[Markup]:
    """Draw the first columns that have numbers, with their error bars; nothing where there are none."""
    if not 1 < len(table) <= _SHOWN_BARS:
        return []
    keys = [column for column in table.columns if not column.measured]
    drawn = [column for column in table.columns if column.measured and _numbers(column)]
    return [_chart(keys, column) for column in drawn[:_SHOWN_CHARTS]]


def _chart(keys: list[AnswerColumn], drawn: AnswerColumn) -> Markup:
    bars = [(_name(keys, row), *_bar(drawn, row)) for row in range(len(drawn)) if _bar(drawn, row)]
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
    if job.kind != "question":
        return work_page(visit, job)
    table = shown_table(job.table()) if job.answer is not None else None
    problem = None if job.problem is None else job.problem.document()
    said = {"dataset": job.dataset, **offer_words(job.question)}
    told: dict[str, Any] = {"again": "/ask?" + urlencode(said), "said": said, "link": _link(visit, job.id)}
    told |= {"snippet": python_snippet(_link(visit), job.dataset, job.question), "after": _after(visit, job)}
    told["exact"] = visit.server.exact_looks and visit.caller.may("exact look") and job.kind == "question"
    return visit.page("release.html", job=job, table=table, problem=problem, **told)


def _link(visit: Visit, number: str | None = None) -> str:
    """Return the address of the server, or of a release, under the name by which it was asked for."""
    base = str(visit.request.base_url).rstrip("/")
    return base if number is None else f"{base}/releases/{number}"


def _after(visit: Visit, job: Job) -> float | None:
    """Return after how many seconds an answer leaves, as far as the data set is still served."""
    return next((one.answer_after for one in visit.datasets if one.name == job.dataset), None)


def python_snippet(address: str, dataset: str, question: AskedQuestion) -> str:
    """Return a program that asks the same; every text in it is a string of Python, whatever it holds."""
    offer = "".join(f"    {name}={value!r},\n" for name, value in sorted(question.offer.items()))
    return (
        "from discreet.client import connect\n\n"
        f"server = connect({address!r})  # The token is in the variable DISCREET_TOKEN.\n"
        f"plan = server.dataset({dataset!r}).sql(\n    {_python_text(question.sql)},\n{offer})\n"
        "print(plan.release())  # This is charged.\n"
    )


def _python_text(text: str) -> str:
    """Write a text of several lines as people do, where nothing in it has a meaning of its own; else as repr."""
    is_plain = "\n" in text and text.replace("\n", "").isprintable() and not any(sign in text for sign in ("\\", '"'))
    return f'"""{text}"""' if is_plain else repr(text)


def ask_routes(server: Server) -> list[Route]:
    """Return the routes of asking and of answers."""
    return [
        Route("/ask", visited(server, "estimate", _ask), methods=["GET", "POST"]),
        Route("/ask/price", visited(server, "estimate", _price), methods=["POST"]),
        Route("/releases/{id}", _release_page(server), methods=["GET"]),
    ]
