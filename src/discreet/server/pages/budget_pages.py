"""The page of the budget: what was spent, what is left, how long it lasts, on what, and whether the record is whole."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from typing import Any

from markupsafe import Markup
from starlette.responses import Response
from starlette.routing import Route

from discreet.errors import DiscreetError
from discreet.ledger.spending import shares_by_day
from discreet.pages.svg import climb
from discreet.server.app import Server
from discreet.server.datasets import ServedDataset
from discreet.server.pages.visit import Visit, visited
from discreet.server.problems import Problem, problem_of

__all__ = ["budget_routes", "daily", "forecast"]

_ON_A_PAGE = 25  # charges
_LEAST, _RECENT = 3, 30  # days of which a pace is taken
_MOST_DAYS, _LONGEST = 366, 36_525  # that are drawn, and that are told


def _budget(visit: Visit) -> Response:
    is_sent = visit.request.method == "POST"
    said = visit.form.get("dataset") if is_sent else visit.request.query_params.get("dataset")
    served = visit.chosen(said)
    if served is None:
        return visit.page("empty.html")
    told: dict[str, Any] = {"checked": None, "problem": None}
    if is_sent:
        visit.caller.check("ledger", served.name)
        told |= _checked(served)
    status = 200 if told["problem"] is None else told["problem"]["status"]
    told |= {"served": served, "datasets": visit.datasets, **_money(visit, served), **_charges(visit, served)}
    return visit.page("budget.html", status=status, **told)


def _checked(served: ServedDataset) -> dict[str, Any]:
    """Verify the record. Charges are told, not entries: one is also made when an answer is known, before it is told."""
    try:
        served.session.ledger.verify()
    except DiscreetError as error:
        return {"problem": problem_of(error).document()}
    return {"checked": served.session.spent.charges}


def _money(visit: Visit, served: ServedDataset) -> dict[str, Any]:
    name, only = visit.caller.name, None if visit.caller.sees_all else visit.caller.name
    today = datetime.fromtimestamp(visit.server.state.now(), UTC).date()
    shares = shares_by_day(served.session.history(), only)
    quotas = [(text, left.share, left.describe()) for text, left in _quotas(served, name)]
    money = served.budget(name)
    told: dict[str, Any] = {"money": money, "quotas": quotas, "only": only, "chart": None, "forecast": None}
    if shares and served.session.spent.budget.kind != "unlimited":
        told["chart"] = _drawn(shares, today, only)
        told["forecast"] = forecast(shares, money["left_share"], today, only)
    return told


def _quotas(served: ServedDataset, name: str) -> Any:
    return served.session.ledger.quotas_left(principal=name)


def daily(shares: dict[str, float], today: date) -> list[tuple[str, float]]:
    """Return the share at the end of every day from the day before the first charge until today, at most a year."""
    first = min(date.fromisoformat(min(shares)), today) - timedelta(days=1)
    days = [first + timedelta(days=place) for place in range((today - first).days + 1)]
    found, last = [], 0.0
    for day in days:
        last = shares.get(day.isoformat(), last)
        found.append((day.isoformat(), last))
    return found[-_MOST_DAYS:]


def _drawn(shares: dict[str, float], today: date, only: str | None) -> Markup:
    course = daily(shares, today)
    whose = "your charges" if only else "all charges"
    told = f"Share of the budget that {whose} used, from {course[0][0]} to {course[-1][0]}: {course[-1][1]:.1%}"
    return Markup(climb([day for day, _ in course], [min(1.0, share) for _, share in course], name="spent", told=told))


def forecast(shares: dict[str, float], left: float, today: date, only: str | None) -> str | None:
    """Say until when the rest lasts at the pace of the last days; None before there are some."""
    course = daily(shares, today)[-_RECENT - 1 :]
    days = len(course) - 1
    if days < _LEAST:
        return None
    pace = (course[-1][1] - course[0][1]) / days
    span, whose = f"the last {days} days", "your own pace" if only else "the pace"
    if pace <= 0:
        return f"Nothing was spent in {span}: at this pace it lasts."
    lasts = math.floor(left / pace)
    if lasts > _LONGEST:
        return f"At {whose} of {span} what is left lasts for more than a hundred years."
    until = (today + timedelta(days=lasts)).isoformat()
    return f"At {whose} of {span} what is left lasts until about {until}."


def _charges(visit: Visit, served: ServedDataset) -> dict[str, Any]:
    only = None if visit.caller.sees_all else visit.caller.name
    before = _before(visit.request.query_params.get("before"))
    found = served.history(only=only, before=before, most=_ON_A_PAGE + 1)
    entries = [entry | {"when": entry["when"][:16].replace("T", " ")} for entry in found[:_ON_A_PAGE]]
    older = entries[-1]["number"] if len(found) > _ON_A_PAGE else None
    jobs = visit.server.jobs.of_dataset(served.name, only=only, most=10)
    return {"entries": entries, "older": older, "before": before, "jobs": jobs}


def _before(said: str | None) -> int | None:
    if said is None:
        return None
    if not (said.isascii() and said.isdigit() and len(said) <= 15):
        raise Problem("invalid", "before must be a number")
    return int(said)


def budget_routes(server: Server) -> list[Route]:
    """Return the routes of the budget."""
    return [Route("/budget", visited(server, "budget", _budget), methods=["GET", "POST"])]
