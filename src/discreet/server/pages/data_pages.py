"""The page of data: what is served, and, for who holds the data, policies that are drafted, changed and saved.

A change is shown as a difference before it is saved, and what is saved is a change of what was shown. From then on the
data set is served as the policy says, without another start.
"""

from __future__ import annotations

import hmac
from typing import Any
from urllib.parse import quote

from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from discreet.errors import DiscreetError
from discreet.privacy.not_private import HEADING
from discreet.query.session.policy_file import Policy
from discreet.server.accounts import AccountRole
from discreet.server.app import Server
from discreet.server.datasets import ServedDataset, open_dataset
from discreet.server.pages.visit import Visit, visited
from discreet.server.policy_editing import (
    PolicyFolder,
    check_change,
    check_new_name,
    check_undeclared,
    difference,
    digest_of,
)
from discreet.server.problems import Problem, problem_of

__all__ = ["data_routes"]


def _data(visit: Visit) -> Response:
    """List what is served and what could be, or draft a policy of a table."""
    problem = None
    if visit.request.method == "POST":
        try:
            return _drafted(visit)
        except (Problem, DiscreetError) as error:
            problem = problem_of(error).document()
    folder = visit.server.data
    told: dict[str, Any] = {"facts": [one.public_facts() for one in visit.datasets], "problem": problem}
    told |= {"tables": None if folder is None else folder.tables(), "said": visit.form}
    return visit.page("data.html", status=200 if problem is None else problem["status"], **told)


def _folder(visit: Visit) -> PolicyFolder:
    if visit.server.data is None:
        raise Problem("not-found", "whoever runs the server named no folder of data: --data-folder")
    return visit.server.data


def _drafted(visit: Visit) -> Response:
    form, folder = visit.form, _folder(visit)
    said = {name: form.get(name, "").strip()[:200] for name in ("table", "dataset", "unit", "epsilon", "delta")}
    _check_unused(visit, said["dataset"])
    check_undeclared(folder, said["table"], _others(visit, said["dataset"]))
    if not said["epsilon"]:
        raise Problem("invalid", "say how much may ever be spent on these data, as ε: there is no default")
    visit.server.state.decide(visit.caller.name, "policy draft", about=said["table"] if said["table"] else "")
    with visit.server.one_trial(visit.caller):
        unit, delta = said["unit"] or None, said["delta"] or None
        text = folder.draft(said["table"], said["dataset"], unit, said["epsilon"], delta)
    return _editor(visit, said["dataset"], text=text, before=None, heading=HEADING)


def _check_unused(visit: Visit, dataset: str) -> None:
    check_new_name(dataset)
    if any(one.name == dataset for one in visit.server.shelf) or _folder(visit).text(dataset) is not None:
        raise Problem("invalid", _NO_NAME)
    _check_new_to_all(visit, dataset)


def _check_new_to_all(visit: Visit, dataset: str) -> None:
    """Refuse a name under which others asked or were let in before: who adds a data set is granted its name."""
    if visit.caller.sees(dataset):
        return
    for table in ("jobs", "saved_questions", "grants"):
        if visit.server.state.row(f"SELECT 1 AS one FROM {table} WHERE dataset = ?", dataset) is not None:
            raise Problem("invalid", _NO_NAME)


_NO_NAME = "this name cannot be used for a new data set"


def _others(visit: Visit, name: str) -> list[Policy]:
    """Return the policies of all other data sets: those that are served, and those in the folder."""
    folder = _folder(visit)
    found = [one.policy for one in visit.server.shelf if one.name != name]
    files = [file for own, file in folder.policies().items() if own != name]
    return found + [folder.read(file.read_text(encoding="utf-8")) for file in files]


def _one(visit: Visit) -> Response:
    """Show the policy of a data set, check a change of it, or save one."""
    name = visit.request.path_params["dataset"]
    served = next((one for one in visit.server.shelf if one.name == name), None)
    if not visit.caller.sees(name) and (served is not None or visit.request.method == "GET"):
        raise Problem("not-found")
    before = None if visit.server.data is None else visit.server.data.text(name)
    if visit.request.method == "GET":
        if served is None:
            raise Problem("not-found")
        return _editor(visit, name, text=before, before=before)
    text = visit.form.get("text", "").replace("\r\n", "\n")
    try:
        with _folder(visit).alone():
            new = _checked(visit, name, text, before, served)
            if visit.form.get("action") == "save":
                _save(visit, new, text, before, served)
                return RedirectResponse(f"/data/{quote(name, safe='')}?saved=yes", status_code=303)
        return _editor(visit, name, text=text, before=before, changed=difference(before, text))
    except (Problem, DiscreetError) as error:
        return _editor(visit, name, text=text, before=before, problem=problem_of(error).document())


def _editor(visit: Visit, name: str, *, text: str | None, before: str | None, **more: Any) -> Response:
    found = next((one for one in visit.datasets if one.name == name), None)
    told: dict[str, Any] = {"problem": None, "changed": None, "heading": None} | more
    told["saved"] = visit.request.method == "GET" and "saved" in visit.request.query_params
    status = 200 if told["problem"] is None else told["problem"]["status"]
    facts = None if found is None else found.public_facts()
    lines = None if told["changed"] is None else [(_kind(line), line) for line in told.pop("changed").splitlines()]
    told["changed"] = lines
    return visit.page(
        "policy.html", status=status, dataset=name, text=text, base=digest_of(before), facts=facts, **told
    )


def _kind(line: str) -> str:
    return "added" if line.startswith("+") else "gone" if line.startswith("-") else "same"


def _checked(visit: Visit, name: str, text: str, before: str | None, served: ServedDataset | None) -> Policy:
    """Read a changed policy, and refuse what cannot be changed here."""
    folder = _folder(visit)
    if served is not None and before is None:
        raise Problem("invalid", "the policy of this data set is not in the server's folder: change it where it is")
    new = folder.read(text)
    if new.dataset != name:
        raise Problem("invalid", "a data set keeps its name")
    if served is None:
        _check_new_to_all(visit, name)
    check_change(folder, new, None if served is None else served.policy, _others(visit, name))
    return new


def _save(visit: Visit, new: Policy, text: str, before: str | None, served: ServedDataset | None) -> None:
    """Open the data set as it will be, write its policy, and serve it; each of them fails before the next begins."""
    if not hmac.compare_digest(visit.form.get("base", "").encode(), digest_of(before).encode()):
        raise Problem("decided", "somebody else saved this policy meanwhile: look at it again")
    folder, name = _folder(visit), new.dataset
    opened = open_dataset(new, served)
    try:
        folder.write(name, text, before)
        visit.server.shelf.put(opened)
    except BaseException:
        opened.session.close()
        raise
    visit.server.state.decide(visit.caller.name, "policy save", dataset=name, about=digest_of(text)[:16])
    if served is None and visit.caller.role is not AccountRole.OWNER:
        visit.server.accounts.grant(visit.caller.name, [name], by=visit.caller.name)


def data_routes(server: Server) -> list[Route]:
    """Return the routes of data and policies."""
    both = ["GET", "POST"]
    return [
        Route("/data", visited(server, "data", _data), methods=both),
        Route("/data/{dataset}", visited(server, "data", _one), methods=both),
    ]
