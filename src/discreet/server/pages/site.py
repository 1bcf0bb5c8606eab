"""All pages: the chapters beside this one, and the files of style and script."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from discreet.pages import kit
from discreet.server.app import Server
from discreet.server.pages.admin_pages import admin_routes
from discreet.server.pages.approval_pages import approval_routes
from discreet.server.pages.ask_pages import ask_routes
from discreet.server.pages.budget_pages import budget_routes
from discreet.server.pages.build_pages import build_routes
from discreet.server.pages.data_pages import data_routes
from discreet.server.pages.device_pages import device_routes
from discreet.server.pages.exact_pages import exact_routes
from discreet.server.pages.help_pages import help_routes
from discreet.server.pages.lab_pages import lab_routes
from discreet.server.pages.oidc_pages import oidc_routes
from discreet.server.pages.release_pages import release_routes
from discreet.server.pages.saved_pages import saved_routes
from discreet.server.pages.sign_in_pages import sign_in_routes
from discreet.server.pages.visit import Visit, navigation, problem_page, visited
from discreet.server.problems import Problem
from discreet.server.watch.operations_api import watch_routes

__all__ = ["page_routes"]

_MEDIA = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
_CHAPTERS = (
    approval_routes,
    ask_routes,
    build_routes,
    budget_routes,
    release_routes,
    lab_routes,
    help_routes,
    saved_routes,
    data_routes,
    exact_routes,
    sign_in_routes,
    admin_routes,
    device_routes,
    oidc_routes,
    watch_routes,
)


@cache
def _static_files() -> dict[str, tuple[str, bytes]]:
    """Return the files of the package by name: what is asked for is looked up here, and never on a disk."""
    found = {}
    for one in (files("discreet.server") / "static").iterdir():
        ending = "." + one.name.rpartition(".")[2]
        if ending in _MEDIA:
            text = one.read_text(encoding="utf-8")
            found[one.name] = _MEDIA[ending], (kit.PAGE_STYLE + text if one.name == "page.css" else text).encode()
    return found


async def _file(request: Request) -> Response:
    found = _static_files().get(request.path_params["name"])
    if found is None:
        return problem_page(Problem("not-found"), None)
    media, content = found
    return Response(content, media_type=media, headers={"cache-control": "max-age=300"})


def _start(visit: Visit) -> Response:
    """Lead to the first page that lets the visitor in: not everybody may ask."""
    path, _, _ = navigation(visit.request, visit.caller)[0]
    return RedirectResponse(path, status_code=303)


def page_routes(server: Server) -> list[Route]:
    """Return the routes of all pages."""
    return [
        Route("/", visited(server, None, _start), methods=["GET"]),
        *(route for chapter in _CHAPTERS for route in chapter(server)),
        Route("/static/{name}", _file, methods=["GET"]),
    ]
