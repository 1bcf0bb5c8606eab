"""The wizard: a question without SQL, step by step. What was chosen so far is in the address, and nowhere else."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from discreet.errors import DiscreetError
from discreet.privacy.relation import Relation
from discreet.query.session.plans import Plan
from discreet.server.accounts import secret
from discreet.server.app import Server
from discreet.server.datasets import AskedQuestion, ServedDataset
from discreet.server.jobs import Job
from discreet.server.pages.ask_pages import shown_table
from discreet.server.pages.question_builder import MOST_KEYS, BuiltQuestion, private_table, read_choice, table_choices
from discreet.server.pages.take_away import notebook, plan_file
from discreet.server.pages.visit import Visit, visited
from discreet.server.problems import Problem, problem_of
from discreet.server.question_api import ask_release, seen_job

__all__ = ["build_routes"]

_STEPS = ("data", "protected", "columns", "accuracy", "preview", "take away")
_WAYS = {"error": "largest ±", "epsilon": "ε", "share": "share of the budget"}
_LADDER = ("0.01", "0.03", "0.1", "0.3", "1", "3")  # what is priced beside what somebody types
_LONGEST = 60


def _step(said: Mapping[str, str], first: int) -> int:
    step = said.get("step", str(first))
    return int(step) if step in {str(number) for number in range(1, len(_STEPS) + 1)} else first


def _offer(said: Mapping[str, str], built: BuiltQuestion) -> dict[str, Any]:
    way, amount = said.get("way") or "epsilon", (said.get("amount") or "0.1").strip()
    if way not in _WAYS:
        raise Problem("invalid", "say the accuracy in one of the ways that are listed")
    if len(amount) > _LONGEST:
        raise Problem("invalid", f"write a number of at most {_LONGEST} characters")
    return {way: amount} | _more(said, built)


def _more(said: Mapping[str, str], built: BuiltQuestion) -> dict[str, Any]:
    """Return what an offer says beside its price: that a median has a ±, and how many rows a mean is expected of."""
    if built.measure.is_median:
        return {"quantile_intervals": True}
    expected = said.get("expected", "").strip()
    if not expected or not built.measure.is_mean:
        return {}
    if not re.fullmatch("[1-9][0-9]{0,11}", expected, re.ASCII):
        raise Problem("invalid", "rows of a typical group are a whole number")
    return {"expected": int(expected)}


def _asked(served: ServedDataset, said: Mapping[str, str]) -> tuple[BuiltQuestion, AskedQuestion]:
    built = read_choice(served.session.catalogue, said)
    return built, AskedQuestion(sql=built.sql(), offer=_offer(said, built))


# --- steps ---


def _build(visit: Visit) -> Response:
    said = visit.form if visit.request.method == "POST" else dict(visit.request.query_params)
    served = visit.chosen(said.get("dataset"))
    if served is None:
        return visit.page("empty.html")
    if visit.request.method == "POST":
        return _released(visit, served, said)
    first = 1 if len(visit.datasets) > 1 else 2  # Where there is one data set, there is nothing to choose.
    return _step_page(visit, served, said, _step(said, first), None)


def _released(visit: Visit, served: ServedDataset, said: Mapping[str, str]) -> Response:
    """Queue the release as any other: the same price, the same caps, the same queue."""
    visit.caller.check("release", served.name)
    try:
        built, question = _asked(served, said)
        key = f"build/{said.get('once', '')[:64]}"
        job = ask_release(visit.server, visit.caller, served.name, question, key)
    except (Problem, DiscreetError) as error:
        return _step_page(visit, served, said, 5, problem_of(error))
    state = _state(served, built, said) | {"step": "6", "release": job.id}
    return RedirectResponse(f"/build?{urlencode(state)}", status_code=303)


def _step_page(
    visit: Visit, served: ServedDataset, said: Mapping[str, str], step: int, problem: Problem | None
) -> Response:
    """Show a step; one whose choices cannot be used is shown again with what is wrong."""
    if problem is None:
        try:
            told = _told(visit, served, said, step)
        except (Problem, DiscreetError) as error:
            problem = problem_of(error)
            if problem.kind.code == "not-found":
                raise
    if problem is not None:
        told, step = _told_anyway(visit, served, said, step)
    document = None if problem is None else problem.document()
    listed = {"datasets": visit.datasets, "served": served, "facts": served.public_facts()}
    page = {"step": step, "steps": _STEPS, "ways": _WAYS, "once": secret(16), "most_keys": MOST_KEYS}
    status = 200 if problem is None else problem.kind.status
    return visit.page("build.html", status=status, problem=document, **listed, **page, **told)


def _told_anyway(visit: Visit, served: ServedDataset, said: Mapping[str, str], step: int) -> tuple[dict[str, Any], int]:
    """Go back to the step where something else can be chosen: to the price, or to the columns."""
    if step < 3:
        return _bare(served, {"dataset": served.name}), step
    try:
        built = read_choice(served.session.catalogue, said)
    except Problem:
        return _bare(served, {"dataset": served.name}), 3
    told = _bare(served, _state(served, built, said)) | {"built": built}
    return (told, 3) if step == 3 else (told | {"ladder": _ladder(visit, served, built, said)}, 4)


def _bare(served: ServedDataset, state: Mapping[str, str]) -> dict[str, Any]:
    catalogue = served.session.catalogue
    table = private_table(catalogue, state.get("table"))
    return {
        "state": dict(state),
        "choices": table_choices(table),
        "tables": [one.name for one in catalogue.tables.values() if one.private],
        "built": None,
        "estimate": None,
        "ladder": [],
        "dummy": None,
        "sql": None,
        "job": None,
        "released": None,
        "as_sql": "",
        "job_problem": None,
        "protected": _protected(served),
        "addresses": _addresses(state),
    }


def _told(visit: Visit, served: ServedDataset, said: Mapping[str, str], step: int) -> dict[str, Any]:
    if step < 3:
        table = private_table(served.session.catalogue, said.get("table"))
        return _bare(served, {"dataset": served.name, "table": table.name})
    built = read_choice(served.session.catalogue, said)
    state = _state(served, built, said)
    told = _bare(served, state) | {"built": built}
    if step == 3:
        return told
    _, question = _asked(served, said)
    plan = question.plan(served.asked_by(visit.caller.name))
    told |= {"estimate": served.estimate(plan, visit.caller.name), "sql": question.sql}
    told["as_sql"] = urlencode({"dataset": served.name, "sql": question.sql} | _price(said))
    if step == 4:
        return told | {"ladder": _ladder(visit, served, built, said)}
    if step == 5:
        return told | {"dummy": _tried(visit, plan)}
    taken = _taken(visit, said)
    return told | taken | {"addresses": _addresses(state, taken.get("job"))}


def _state(served: ServedDataset, built: BuiltQuestion, said: Mapping[str, str]) -> dict[str, str]:
    """Return all that was chosen, as the address and the forms of the page have it."""
    return {"dataset": served.name, **built.said(), **_price(said)}


def _price(said: Mapping[str, str]) -> dict[str, str]:
    way, expected = said.get("way") or "epsilon", said.get("expected", "").strip()[:_LONGEST]
    told = {"way": way if way in _WAYS else "epsilon", "amount": (said.get("amount") or "0.1").strip()[:_LONGEST]}
    return told | ({"expected": expected} if expected else {})


def _addresses(state: Mapping[str, str], job: Job | None = None) -> dict[str, str]:
    """Return where the steps are, and what can be taken away, for what was chosen and released."""
    released = {} if job is None else {"release": job.id}
    steps = {str(number): f"/build?{urlencode(dict(state) | {'step': str(number)})}" for number in range(1, 7)}
    files = {name: f"/build/{name}?{urlencode(dict(state) | released)}" for name in ("plan.toml", "notebook.ipynb")}
    return steps | files


def _protected(served: ServedDataset) -> dict[str, Any]:
    """Say in words whom the data set protects, and from what."""
    unit = served.policy.counted
    hidden = (
        f"Nobody can tell from answers whether any one {unit.noun} is in the data at all"
        if unit.relation is Relation.ADD_REMOVE
        else f"Nobody can tell from answers what the rows of any one {unit.noun} say; that they took part is known"
    )
    counted = (
        "Each row counts once."
        if unit.is_row
        else f"One {unit.noun} counts in at most {unit.max_groups} group{'s' * (unit.max_groups > 1)} of an answer, "
        f"with at most {unit.max_rows_per_group} row{'s' * (unit.max_rows_per_group > 1)} in each; further rows are "
        "left out at random."
    )
    return {"unit": unit.noun, "hidden": hidden, "counted": counted, "column": ", ".join(unit.columns)}


def _ladder(visit: Visit, served: ServedDataset, built: BuiltQuestion, said: Mapping[str, str]) -> list[dict[str, Any]]:
    """Price the question at a few ε, so that one sees what a smaller ± costs before one types anything."""
    rungs = []
    session = served.asked_by(visit.caller.name)
    for epsilon in _LADDER:
        try:
            offer = {"epsilon": epsilon} | _more(said, built)
            plan = AskedQuestion(sql=built.sql(), offer=offer).plan(session)
            told = served.estimate(plan, visit.caller.name)
        except (Problem, DiscreetError):
            continue
        error = next(iter(told["errors"].values()), "").partition(";")[0]
        rungs.append({"epsilon": epsilon, "error": error, "more": told["more_like_this"]})
    return rungs


def _tried(visit: Visit, plan: Plan) -> dict[str, Any]:
    with visit.server.one_trial(visit.caller):
        return shown_table(plan.dummy())


def _taken(visit: Visit, said: Mapping[str, str]) -> dict[str, Any]:
    if "release" not in said:
        return {}
    job = seen_job(visit.server, visit.caller, said["release"])
    answer = shown_table(job.table()) if job.answer is not None else None
    problem = None if job.problem is None else job.problem.document()
    return {"job": job, "released": answer, "job_problem": problem}


# --- files ---


def _chosen(visit: Visit) -> tuple[ServedDataset, BuiltQuestion, AskedQuestion]:
    said = dict(visit.request.query_params)
    served = visit.chosen(said.get("dataset"))
    if served is None:
        raise Problem("not-found")
    return served, *_asked(served, said)


def _plan_file(visit: Visit) -> Response:
    served, built, question = _chosen(visit)
    plan = question.plan(served.asked_by(visit.caller.name))
    return _download(plan_file(served.policy, question, plan, built.words()), "plan.toml", "application/toml")


def _notebook(visit: Visit) -> Response:
    served, built, question = _chosen(visit)
    release = visit.request.query_params.get("release")
    if release is not None:
        seen_job(visit.server, visit.caller, release)  # One that is not there, or not theirs, is not written.
    address = f"{visit.request.url.scheme}://{visit.request.url.netloc}"
    text = notebook(address, served.name, question, built.words(), release=release)
    return _download(text, "question.ipynb", "application/x-ipynb+json")


def _download(text: str, name: str, media: str) -> Response:
    headers = {"content-disposition": f'attachment; filename="{name}"'}
    return Response(text.encode(), media_type=media, headers=headers)


def build_routes(server: Server) -> list[Route]:
    """Return the routes of the wizard."""
    return [
        Route("/build", visited(server, "estimate", _build), methods=["GET", "POST"]),
        Route("/build/plan.toml", visited(server, "estimate", _plan_file), methods=["GET"]),
        Route("/build/notebook.ipynb", visited(server, "estimate", _notebook), methods=["GET"]),
    ]
