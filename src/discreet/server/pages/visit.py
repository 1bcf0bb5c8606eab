"""What every page has: the visit, the templates, forms, and the way of a request, which is that of the API.

Everything that is shown is escaped by the templates or by the page kit; the content security policy forbids any script
that is not our own file. Pages are readable without JavaScript.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, final
from urllib.parse import parse_qs, quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from discreet.formatting import printable
from discreet.pages import kit
from discreet.server.accounts import Caller
from discreet.server.app import Server
from discreet.server.datasets import ServedDataset
from discreet.server.problems import Problem, problem_of

__all__ = ["NAVIGATION", "Visit", "made_page", "navigation", "problem_page", "read_form", "visited", "visitor"]

# What stands on top of every page, in this order: of several addresses the first that is served. A page that is not
# served, or that would not let the visitor in, has no link.
NAVIGATION: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Ask", ("/ask",)),
    ("Build", ("/build",)),
    ("Releases", ("/releases",)),
    ("Budget", ("/budget",)),
    ("Data", ("/data",)),
    ("Lab", ("/lab",)),
    ("Approvals", ("/approvals",)),
    ("Admin", ("/admin",)),
    ("Help", ("/help", "/problems")),
)


@cache
def _templates() -> Environment:
    loaded = PackageLoader("discreet.server", "templates")
    made = Environment(loader=loaded, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    made.filters["plain"] = lambda text: printable(str(text))
    made.filters["prose"] = lambda text: Markup(kit.prose(str(text)))  # Escaped by the kit.
    made.filters["lines"] = lambda text: "\n".join(map(printable, str(text).splitlines()))
    made.filters["one_line"] = lambda text: printable(" ".join(str(text).split()))
    made.filters["address"] = lambda text: quote(str(text), safe="")
    return made


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
        links = navigation(self.request, self.caller)
        return made_page(name, status=status, caller=self.caller, links=links, **told)

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


def made_page(
    name: str,
    *,
    status: int = 200,
    caller: Caller | None = None,
    links: Sequence[tuple[str, str, bool]] = (),
    **told: Any,
) -> Response:
    text = _templates().get_template(name).render(caller=caller, links=links, **told)
    return Response(text, status_code=status, media_type="text/html")


def navigation(request: Request, caller: Caller | None) -> list[tuple[str, str, bool]]:
    """Return the links on top of a page: address, name, and whether it leads to where one is."""
    app = request.scope.get("app")
    served = {route.path: route for route in getattr(app, "routes", ()) if isinstance(route, Route)}
    links = []
    for name, paths in NAVIGATION:
        path = next((one for one in paths if one in served and _lets_in(served[one], caller)), None)
        if path is not None:
            here = request.url.path == path or request.url.path.startswith(path + "/")
            links.append((path, name, here))
    return links


def visitor(server: Server, request: Request) -> Caller | None:
    """Return who visits, for pages that are also for nobody; a token is nobody here."""
    try:
        caller = server.caller(request)
    except Problem as problem:
        if problem.kind.code == "not-signed-in":
            return None
        raise
    return None if caller.form_token is None else caller


def _lets_in(route: Route, caller: Caller | None) -> bool:
    """Tell whether a page would let somebody in: pages that are not `visited` are for everybody."""
    if not hasattr(route.endpoint, "operation"):
        return True
    operation: str | None = route.endpoint.operation
    return caller is not None and (operation is None or caller.may(operation))


async def read_form(request: Request) -> dict[str, str]:
    if request.method != "POST":
        return {}
    try:
        read = parse_qs((await request.body()).decode(), keep_blank_values=True, max_num_fields=50)
    except ValueError:
        raise Problem("bad-request") from None
    return {name: values[0] for name, values in read.items()}


# --- the way of a page ---


def problem_page(problem: Problem, caller: Caller | None, request: Request | None = None) -> Response:
    links = [] if request is None else navigation(request, caller)
    document, status = problem.document(), problem.kind.status
    return made_page("problem.html", status=status, caller=caller, links=links, problem=document)


def visited(server: Server, operation: str | None, work: Callable[[Visit], Response]) -> Callable[[Request], Any]:
    """Let in who is signed in and may do this; everybody else is sent to sign in, or told that they may not."""

    async def answered(request: Request) -> Response:
        caller: Caller | None = None
        try:
            caller = await server.in_thread(lambda: server.caller(request))
            if caller.form_token is None:  # Pages are for people: a token could else set its owner's password.
                caller = None
                raise Problem("not-signed-in")
            form = await read_form(request)
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
            return problem_page(problem, caller, request)

    answered.operation = operation  # type: ignore[attr-defined] # for the links on top of pages
    return answered
