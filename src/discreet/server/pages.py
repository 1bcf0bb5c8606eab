"""The pages: made here, from templates, and readable without JavaScript. They take the same way as the API does.

Everything that is shown is escaped by the templates or by the page kit; the content security policy forbids any script
that is not our own file.
"""

from __future__ import annotations

import asyncio
import hmac
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any, final
from urllib.parse import parse_qs, quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from discreet.errors import DiscreetError
from discreet.formatting import printable
from discreet.pages import kit
from discreet.pages.svg import scale_for, strip
from discreet.query.answer_columns import AnswerColumn, shown
from discreet.query.release_table import DUMMY_NOTE, ReleaseTable
from discreet.server.accounts import Caller, secret
from discreet.server.app import COOKIE, Server, ask_release, check_origin, cookie_of, seen_job, waited
from discreet.server.datasets import AskedQuestion, ServedDataset, sample_question
from discreet.server.problems import KINDS_OF_PROBLEMS, Problem, problem_of

__all__ = ["page_routes"]

_BEFORE = "discreet_form"  # the cookie of a form that is shown to somebody who is not signed in
_PER_PROCESS = secret()  # what ties such a form to its cookie
_SHOWN_ROWS, _SHOWN_BARS = 500, 40
_STATIC = {"page.js": "text/javascript", "page.css": "text/css", "icon.svg": "image/svg+xml"}


@cache
def _templates() -> Environment:
    loaded = PackageLoader("discreet.server", "templates")
    made = Environment(loader=loaded, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    made.filters["plain"] = lambda text: printable(str(text))
    made.filters["lines"] = lambda text: "\n".join(map(printable, str(text).splitlines()))
    made.filters["one_line"] = lambda text: printable(" ".join(str(text).split()))
    made.filters["address"] = lambda text: quote(str(text), safe="")
    return made


@cache
def _static(name: str) -> bytes:
    text = (files("discreet.server") / "static" / name).read_text(encoding="utf-8")
    return (kit.PAGE_STYLE + text if name.endswith(".css") else text).encode()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """A request of a page by somebody who is signed in."""

    server: Server
    caller: Caller
    request: Request
    form: Mapping[str, str]

    def page(self, name: str, *, status: int = 200, **told: Any) -> Response:
        """Write a page."""
        return _page(name, status=status, caller=self.caller, **told)

    @property
    def datasets(self) -> list[ServedDataset]:
        """The data sets that this visitor may know of."""
        return [one for one in self.server.shelf if self.caller.sees(one.name)]

    def chosen(self, name: str | None) -> ServedDataset | None:
        """Return the data set that is named, or the first."""
        if name:
            if not self.caller.sees(name):
                raise Problem("not-found")
            return self.server.shelf[name]
        return next(iter(self.datasets), None)


def _page(name: str, *, status: int = 200, caller: Caller | None = None, **told: Any) -> Response:
    text = _templates().get_template(name).render(caller=caller, **told)
    return Response(text, status_code=status, media_type="text/html")


async def _form(request: Request) -> dict[str, str]:
    if request.method != "POST":
        return {}
    try:
        read = parse_qs((await request.body()).decode(), keep_blank_values=True, max_num_fields=50)
    except ValueError:
        raise Problem("bad-request") from None
    return {name: values[0] for name, values in read.items()}


# --- the way of a page ---


def _problem_page(problem: Problem, caller: Caller | None) -> Response:
    return _page("problem.html", status=problem.kind.status, caller=caller, problem=problem.document())


def _visited(server: Server, operation: str | None, work: Callable[[Visit], Response]) -> Callable[[Request], Any]:
    """Let in who is signed in and may do this; everybody else is sent to sign in, or told that they may not."""

    async def answered(request: Request) -> Response:
        caller: Caller | None = None
        try:
            caller = await server.in_thread(lambda: server.caller(request))
            if caller.form_token is None:  # Pages are for people: a token could else set its owner's password.
                caller = None
                raise Problem("not-signed-in")
            form = await _form(request)
            if request.method == "POST":
                server.check_form(request, caller, form.get("form_token"))
            if operation is not None:
                caller.check(operation)
            visit = Visit(server=server, caller=caller, request=request, form=form)
            with server.one_of_few(caller):
                made: Response = await server.in_thread(lambda: work(visit))
            return made
        except BaseException as error:
            if isinstance(error, (asyncio.CancelledError, KeyboardInterrupt, SystemExit)):
                raise
            problem = problem_of(error)
            if problem.kind.code == "not-signed-in":
                return RedirectResponse("/login", status_code=303)
            if problem.kind.code in ("forbidden", "wrong-form-token") and caller is not None:
                who, what = caller.name, f"page {operation or request.url.path}"
                await server.in_thread(lambda: server.state.decide(who, what, outcome=problem.kind.code))
            return _problem_page(problem, caller)

    return answered


# --- signing in ---


def _tied(before: str) -> str:
    return hmac.new(_PER_PROCESS.encode(), before.encode(), sha256).hexdigest()


def _login_page(server: Server, problem: Problem | None = None) -> Response:
    before = secret()
    told = None if problem is None else problem.document()
    status = 200 if problem is None else problem.kind.status
    made = _page("login.html", status=status, form_token=_tied(before), problem=told)
    _set_cookie(server, made, _BEFORE, before, max_age=3600)
    return made


def _set_cookie(server: Server, made: Response, name: str, value: str, *, max_age: int | None = None) -> None:
    whole, secure = server.cookie_name(name), server.secure
    made.set_cookie(whole, value, httponly=True, samesite="strict", secure=secure, path="/", max_age=max_age)


def _login(server: Server) -> Callable[[Request], Any]:
    async def answered(request: Request) -> Response:
        try:
            if request.method == "GET":
                server.rates.take(f"address {request.client.host if request.client else ''}")
                return _login_page(server)
            return await _signed_in(server, request)
        except BaseException as error:
            if isinstance(error, (asyncio.CancelledError, KeyboardInterrupt, SystemExit)):
                raise
            return _login_page(server, problem_of(error))

    return answered


async def _signed_in(server: Server, request: Request) -> Response:
    server.sign_ins.take(f"address {request.client.host if request.client else ''}")
    check_origin(request)
    form = await _form(request)
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
    made = RedirectResponse("/account" if invitation else "/ask", status_code=303)
    _set_cookie(server, made, COOKIE, cookie)
    return made


def _logout(visit: Visit) -> Response:
    cookie = cookie_of(visit.request, visit.server.cookie_name(COOKIE))
    if cookie is not None:
        visit.server.accounts.sign_out(cookie, name=visit.caller.name)
    made = RedirectResponse("/login", status_code=303)
    _set_cookie(visit.server, made, COOKIE, "", max_age=0)
    return made


def _account(visit: Visit) -> Response:
    accounts, name, invited = visit.server.accounts, visit.caller.name, visit.caller.invited
    known = accounts.has_password(name) and not invited
    told: dict[str, Any] = {"granted": [one.name for one in visit.datasets], "known": known}
    if visit.request.method == "GET":
        return visit.page("account.html", problem=None, **told)
    try:
        current = visit.form.get("current", "")
        accounts.change_password(name, visit.form.get("password", ""), current=current, invited=invited)
    except Problem as problem:
        return visit.page("account.html", status=422, problem=problem.document(), **told)
    return RedirectResponse("/login", status_code=303)


# --- asking ---


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
            told["dummy"] = _shown_table(plan.dummy())
    return told


# --- answers ---


def _shown_table(table: ReleaseTable) -> dict[str, Any]:
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
        made: Response = await _visited(server, "releases", _one_release)(request)
        return made

    return waiting


def _one_release(visit: Visit) -> Response:
    job = seen_job(visit.server, visit.caller, visit.request.path_params["id"])
    table = _shown_table(job.table()) if job.answer is not None else None
    way = next((name for name in _WAYS if name in job.offer), "epsilon")
    said = {"dataset": job.dataset, "sql": job.sql, "way": way, "amount": str(job.offer.get(way, "")), "delta": ""}
    said["delta"] = str(job.offer.get("delta", ""))
    problem = None if job.problem is None else job.problem.document()
    again = "/ask?" + urlencode(said)
    return visit.page("release.html", job=job, table=table, problem=problem, again=again)


def _budget(visit: Visit) -> Response:
    served = visit.chosen(visit.request.query_params.get("dataset"))
    if served is None:
        return visit.page("empty.html")
    only = None if visit.caller.sees_all else visit.caller.name
    entries = served.history(only=only, before=None, most=50)
    jobs = visit.server.jobs.of_dataset(served.name, only=only, most=20)
    told: dict[str, Any] = {"money": served.budget(visit.caller.name), "entries": entries, "jobs": jobs, "only": only}
    return visit.page("budget.html", served=served, datasets=visit.datasets, **told)


# --- routes ---


async def _problems(request: Request) -> Response:
    return _page("problems.html", kinds=list(KINDS_OF_PROBLEMS.values()))


async def _file(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in _STATIC:
        return _problem_page(Problem("not-found"), None)
    return Response(_static(name), media_type=_STATIC[name], headers={"cache-control": "max-age=300"})


async def _start(request: Request) -> Response:
    return RedirectResponse("/ask", status_code=303)


def page_routes(server: Server) -> list[Route]:
    """Return the routes of all pages."""
    both = ["GET", "POST"]
    return [
        Route("/", _start, methods=["GET"]),
        Route("/login", _login(server), methods=both),
        Route("/logout", _visited(server, None, _logout), methods=["POST"]),
        Route("/account", _visited(server, "me", _account), methods=both),
        Route("/ask", _visited(server, "estimate", _ask), methods=both),
        Route("/budget", _visited(server, "budget", _budget), methods=["GET"]),
        Route("/releases/{id}", _release_page(server), methods=["GET"]),
        Route("/problems", _problems, methods=["GET"]),
        Route("/static/{name}", _file, methods=["GET"]),
    ]
