"""The pages of releases: plans and what was released, a form for each other kind of job, and what came of one."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from discreet.errors import DiscreetError
from discreet.query.catalogue import CatalogueTable
from discreet.server.accounts import secret
from discreet.server.app import Server
from discreet.server.datasets import ServedDataset
from discreet.server.jobs import Job, operation_of
from discreet.server.pages.visit import Visit, visited
from discreet.server.problems import Problem, problem_of
from discreet.server.work.job_kinds import WorkAnswer
from discreet.server.work.kinds import WORK, ask_work, estimated_work, tried_work
from discreet.server.work.model_jobs import SYNTH_METHODS, trainable
from discreet.server.work.plan_jobs import verified_bundle
from discreet.server.work.work_api import asked_words, shown_file

__all__ = ["release_routes", "work_page"]

_PAGE = 20
_SHOWN_PERIODS = 12
_TITLES = {"plan": "Release a plan", "profile": "Profile", "synth": "Synthetic rows", "train": "Train a model"}
_KIND_NAMES = {
    "question": "question",
    "plan": "plan",
    "profile": "profile",
    "synth": "synthetic rows",
    "train": "model",
}
_PAGES_OF = {"plan": "report.html", "profile": "profile.html"}
_NUMBERS = ("rows_per_unit", "rows", "max_rows")


# --- the list ---


def _releases(visit: Visit) -> Response:
    query = visit.request.query_params
    served = visit.chosen(query.get("dataset"))
    if served is None:
        return visit.page("empty.html")
    only = None if visit.caller.sees_all else visit.caller.name
    jobs = visit.server.jobs.of_dataset(served.name, only=only, most=_PAGE + 1, after=query.get("after"))
    plans = visit.server.plans.standing(served, visit.caller.name) if visit.caller.may("plans") else []
    listed = [_row(visit.server, job) for job in jobs[:_PAGE]]
    return visit.page(
        "releases.html",
        served=served,
        datasets=visit.datasets,
        listed=listed,
        plans=[plan | {"shown": plan["released"][-_SHOWN_PERIODS:]} for plan in plans],
        only=only,
        older=jobs[_PAGE - 1].id if len(jobs) > _PAGE else None,
        newer="after" in query,
        busy=any(not one["job"].is_over for one in listed),
        once=secret(16),
    )


def _row(server: Server, job: Job) -> dict[str, Any]:
    when = datetime.fromtimestamp(job.asked, UTC).strftime("%Y-%m-%d %H:%M")
    return {"job": job, "kind": _KIND_NAMES.get(job.kind, job.kind), "when": when, "progress": server.progress(job)}


# --- a form for each kind ---


def _new(visit: Visit) -> Response:
    kind, form = visit.request.url.path.rpartition("/")[2], visit.form
    asked = visit.request.method == "POST"
    served = visit.chosen(form.get("dataset") if asked else visit.request.query_params.get("dataset"))
    if served is None:
        return visit.page("empty.html")
    told: dict[str, Any] = {"estimate": None, "problem": None, "made_up": None}
    if asked:
        try:
            done = _acted(visit, served, kind)
            if isinstance(done, Response):
                return done
            told |= done
        except (Problem, DiscreetError) as error:
            told["problem"] = problem_of(error).document()
    status = 200 if told["problem"] is None else told["problem"]["status"]
    said = {"epsilon": "0.5", "delta": "1e-6"} | dict(form)
    facts = {"kind": kind, "title": _TITLES[kind], "said": said, "once": secret(16), **_choices(served)}
    listed = {"served": served, "datasets": visit.datasets, "after": served.seconds_of(kind)}
    return visit.page("release_new.html", status=status, **facts, **listed, **told)


def _free(kind: str) -> str:
    """Return who may see the price of a kind."""
    return "plan estimate" if kind == "plan" else "estimate"


def _acted(visit: Visit, served: ServedDataset, kind: str) -> Response | dict[str, Any]:
    """Do what a form asks for: tell the price, try it on made-up rows, or release it."""
    said, action = (
        asked_words(kind, _words(kind, visit.form), visit.server.plans, served.name),
        visit.form.get("action"),
    )
    place = (visit.server, visit.caller, served.name, kind, said)
    if action == "release":
        visit.caller.check(operation_of(kind), served.name)
        job = ask_work(*place, f"page/{visit.form.get('once', '')[:64]}")
        return RedirectResponse(f"/releases/{job.id}", status_code=303)
    visit.caller.check(_free(kind), served.name)
    estimate = estimated_work(*place)
    if action != "dummy":
        return {"estimate": estimate}
    found = tried_work(*place)
    if kind in _PAGES_OF:
        return shown_file(_PAGES_OF[kind], found.files[_PAGES_OF[kind]], "made-up")
    return {"estimate": estimate, "made_up": found.told}


def _words(kind: str, form: Mapping[str, str]) -> dict[str, Any]:
    """Read the fields of a form as the API would get them; empty ones were not said."""
    plain = {
        "plan": ("plan", "toml", "period"),
        "profile": ("epsilon", "delta", "table"),
        "synth": ("epsilon", "delta", "table", "method", "label", *_NUMBERS[:2]),
        "train": ("epsilon", "delta", "table", "model", "target", *_NUMBERS[2:]),
    }[kind]
    said: dict[str, Any] = {name: text for name in plain if (text := form.get(name, "").strip())}
    if "toml" in said:
        said["toml"] = said["toml"].replace("\r\n", "\n") + "\n"  # Browsers send forms so.
    for name in _NUMBERS:
        if name in said:
            said[name] = _whole(name, said[name])
    if kind == "profile":
        said |= {
            name: [one.strip() for one in form.get(name, "").split(",") if one.strip()] for name in ("numbers", "dates")
        }
    if kind == "train":
        said["features"] = [name.removeprefix("feature:") for name in form if name.startswith("feature:")]
    return said


def _whole(name: str, text: str) -> int:
    if not text.isdecimal() or len(text) > 9:
        raise Problem("invalid", f"{name.replace('_', ' ')} must be a whole number")
    return int(text)


def _choices(served: ServedDataset) -> dict[str, Any]:
    """Return what can be chosen in the forms: from declarations alone."""
    catalogue, unit = served.session.catalogue, served.session.unit
    private = [table for table in catalogue.tables.values() if table.private]
    return {
        "tables": [table.name for table in private],
        "columns": {table.name: _columns(table) for table in private},
        "methods": SYNTH_METHODS,
        "unit": None if unit.is_row else unit.noun,
    }


def _columns(table: CatalogueTable) -> dict[str, list[str]]:
    numbers, lines, choices = trainable(table)
    return {"features": numbers, "lines": lines, "choices": choices}


# --- what came of a job ---


def work_page(visit: Visit, job: Job) -> Response:
    """Show a job of another kind than a question: how far it is, or what came of it."""
    answer = None if job.answer is None else WorkAnswer.of(job)
    files = [] if answer is None else _shown_files(answer)
    checked = None
    if answer is not None and "bundle.zip" in answer.files and "verify" in visit.request.query_params:
        checked = verified_bundle(job, visit.server.shelf[job.dataset])
    return visit.page(
        "release_work.html",
        job=job,
        kind=_KIND_NAMES[job.kind],
        told=None if answer is None else answer.told,
        files=files,
        page=_PAGES_OF.get(job.kind),
        checked=checked,
        progress=visit.server.progress(job),
        after=_seconds(visit.server, job),
        problem=None if job.problem is None else job.problem.document(),
    )


def _seconds(server: Server, job: Job) -> float | None:
    try:
        return server.shelf[job.dataset].seconds_of(job.kind)
    except Problem:
        return None  # It is no longer served.


def _shown_files(answer: WorkAnswer) -> list[tuple[str, str]]:
    """Return the files that can be taken away, with their sizes."""
    found = {name: f"{max(1, len(content) // 1000):,} kB" for name, content in answer.files.items()}
    if "synthetic.parquet" in found:
        found = {"synthetic.csv": "", **found}
    return [(name, size) for name, size in found.items() if not name.endswith(".html")]


def release_routes(server: Server) -> list[Route]:
    """Return the routes of releases."""
    return [
        Route("/releases", visited(server, "releases", _releases), methods=["GET"]),
        *(Route(f"/releases/new/{kind}", visited(server, _free(kind), _new), methods=["GET", "POST"]) for kind in WORK),
    ]
