"""Help: every problem with its cause and a way out, refusals as they are worded, SQL in short, and the words of a page.

Refusals are not copied here: they are what the library says of sample questions about a table that does not exist, so
that they cannot drift from what people meet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from discreet.errors import DiscreetError, Refused
from discreet.server.app import Server, problem_response
from discreet.server.pages.visit import Visit, made_page, navigation, problem_page, visited, visitor
from discreet.server.problems import KINDS_OF_PROBLEMS, Problem

__all__ = ["PROBLEM_HELP", "help_routes", "met_refusals", "unknown_answer"]

# What causes a problem, and what to do about it. Codes are those of `KINDS_OF_PROBLEMS`; a test holds them together.
PROBLEM_HELP: Mapping[str, tuple[str, str]] = {
    "bad-request": (
        "The request has no form that the server reads: other JSON than described, or none.",
        "Send application/json as /v1/openapi.json describes it.",
    ),
    "authorization-pending": (
        "A program asks whether its code was allowed, and nobody has done so yet.",
        "Open the page that the program names, sign in, and allow the code; the program asks again by itself.",
    ),
    "slow-down": (
        "A program asked for its token again before the interval was over.",
        "Wait for the interval that was told with the code.",
    ),
    "access-denied": ("Somebody denied the code of a program.", "Start again, if it was your own program."),
    "expired-code": ("A code is used once, and only for some minutes.", "Let the program ask for a new code."),
    "not-signed-in": (
        "There is no visit and no token, or it has ended: visits last eight hours, and tokens as long as was said.",
        "Sign in again, or send a token as Authorization: Bearer …",
    ),
    "forbidden": (
        "The role of this account, or the scope of this token, does not include it.",
        "Ask whoever runs the server for another role or token.",
    ),
    "wrong-form-token": (
        "A form came from elsewhere, or from a page that was opened before the last sign-in.",
        "Load the page again, and send the form from there.",
    ),
    "not-found": (
        "The address is mistyped; or it is about a data set or a release that this account may not see, which looks "
        "the same.",
        "Check the address, or ask whoever runs the server for the data set.",
    ),
    "wrong-method": ("The address is there, and takes another method.", "See /v1/openapi.json."),
    "budget-exceeded": (
        "The price does not fit into what is left of the budget, of a quota, or of the cap of a token.",
        "Offer less ε, or accept a larger ±; the page of the budget says how much is left. Nothing was charged.",
    ),
    "key-used": (
        "The idempotency key was sent before, with another question or price.",
        "Take another key for another question.",
    ),
    "decided": ("It was approved, declined, withdrawn or answered in the meantime.", "Look at the release."),
    "not-approved": (
        "A release above the limit waits for somebody else, and was declined, withdrawn or not looked at in time.",
        "Talk to a custodian, or ask for less. Nothing was charged.",
    ),
    "too-large": ("A request has at most 64 KB.", "Ask a shorter question, or several."),
    "wrong-host": (
        "The server was called by a name that it does not know, so that no page elsewhere can point its own name here.",
        "Use the address that it printed, or have it started with --name.",
    ),
    "invalid": (
        "A value is out of range, has another type, or does not go together with another.",
        "The message names the value and says what it may be. Nothing was charged.",
    ),
    "refused": (
        "No private answer to this question is known here: it asks for single rows, has no bounds, or more groups than "
        "anybody listed.",
        "The message has the place in the SQL, the reason and a way out; below are those that people meet most.",
    ),
    "too-many": (
        "An account has 60 requests at once and 10 a second, 8 releases that wait, and one trial at a time.",
        "Wait a little, and send it again.",
    ),
    "answer-failed": (
        "After the charge something took too long or failed. What it was is told to nobody: it may depend on rows of "
        "somebody.",
        "Ask for less at once; whoever runs the server can declare a longer answer time. The charge, if any, stands.",
    ),
    "internal": (
        "The server has a fault.",
        "Tell whoever runs it at what time this was; the log of the server has more.",
    ),
    "unavailable": (
        "Too many connections, or the ledger cannot be written now.",
        "Wait a little. If it stays so, whoever runs the server has to look.",
    ),
}

# --- refusals ---

# Questions that people ask first, about a table that does not exist, and what they are about.
_SAMPLES: tuple[tuple[str, str, Mapping[str, Any]], ...] = (
    ("Single rows", "SELECT * FROM visits", {}),
    ("A column as it is", "SELECT age FROM visits", {}),
    ("A group for each person", "SELECT patient, COUNT(*) AS n FROM visits GROUP BY patient", {}),
    ("Groups that nobody listed", "SELECT note, COUNT(*) AS n FROM visits GROUP BY note", {}),
    ("A sum without bounds", "SELECT SUM(LENGTH(note) * minutes) AS n FROM visits", {}),
    ("A table that is not there", "SELECT COUNT(*) AS n FROM visit", {}),
    ("A column that is not there", "SELECT AVG(ages) AS n FROM visits", {}),
    ("Something else than SELECT", "DELETE FROM visits", {}),
    ("Two questions at once", "SELECT COUNT(*) AS n FROM visits; SELECT COUNT(*) AS n FROM visits", {}),
    ("Window functions", "SELECT SUM(age) OVER () AS n FROM visits", {}),
    ("Chance and time", "SELECT COUNT(*) AS n FROM visits WHERE RANDOM() < 0.5", {}),
    ("A function that is not known", "SELECT AVG(HASH(age)) AS n FROM visits", {}),
    ("Less than the least price", "SELECT COUNT(*) AS n FROM visits", {"epsilon": "1e-9"}),
    ("± of a mean", "SELECT clinic, AVG(age) AS n FROM visits GROUP BY clinic", {"error": 1}),
)


@cache
def met_refusals() -> tuple[dict[str, Any], ...]:
    """Return what the library says of sample questions, in its own words."""
    return tuple(_asked())


def _asked() -> Iterator[dict[str, Any]]:
    import pyarrow as pa

    from discreet.ledger.budget import Budget
    from discreet.query.policy import Unit
    from discreet.query.session.session import Session
    from discreet.schema.columns import between, categories

    rows = {"patient": [1], "age": [1], "clinic": ["Harbour"], "minutes": [1.5], "note": ["none"]}
    columns = {"age": between(0, 120, whole=True), "clinic": categories(["Harbour", "Market"])}
    with Session(
        pa.table(rows),
        unit=Unit("patient"),
        budget=Budget(epsilon=1),
        columns=columns,
        ledger="memory",
        dataset="visits",
        principal="help",
    ) as session:
        for about, sql, offer in _SAMPLES:
            try:
                session.sql(sql, **(offer or {"epsilon": "0.1"})).release()
            except Refused as refused:
                told = {"problem": refused.problem, "reason": refused.reason, "way_out": refused.way_out}
            except DiscreetError as error:
                told = {"problem": str(error), "reason": "", "way_out": ""}
            else:
                continue
            yield {"about": about, "sql": sql, "id": about.lower().replace(" ", "-"), **told}


# --- pages ---


def _index() -> list[dict[str, Any]]:
    """List every problem; one without help of its own has its meaning."""
    found = []
    for kind in KINDS_OF_PROBLEMS.values():
        cause, way_out = PROBLEM_HELP.get(kind.code, ("", ""))
        found.append(
            {"code": kind.code, "status": kind.status, "title": kind.title, "cause": cause, "way_out": way_out}
        )
    return found


def _matching(entries: list[dict[str, Any]], words: str) -> list[dict[str, Any]]:
    """Keep the entries that have every word."""
    wanted = words.casefold().split()[:10]
    return [one for one in entries if all(word in " ".join(map(str, one.values())).casefold() for word in wanted)]


def _help(visit: Visit) -> Response:
    words = visit.request.query_params.get("q", "")[:100]
    problems, refusals = _matching(_index(), words), _matching(list(met_refusals()), words)
    return visit.page("help.html", words=words, problems=problems, refusals=refusals)


def _problems(server: Server) -> Callable[[Request], Any]:
    """The list of problems is for everybody; whoever is signed in keeps the links of the pages."""

    async def answered(request: Request) -> Response:
        caller = await server.in_thread(lambda: visitor(server, request))
        words = request.query_params.get("q", "")[:100]
        links, found = navigation(request, caller), _matching(_index(), words)
        return made_page("problems.html", caller=caller, links=links, words=words, problems=found)

    return answered


async def unknown_answer(server: Server, request: Request, problem: Problem) -> Response:
    """Answer an address that is not there: a page for a browser, and the problem for a program."""
    accepted = request.headers.get("accept", "")
    if "text/html" not in accepted or request.url.path.startswith("/v1/"):
        return problem_response(problem)
    try:
        caller = await server.in_thread(lambda: visitor(server, request))
    except Problem as other:  # Too many of them.
        caller, problem = None, other
    return problem_page(problem, caller, request)


def help_routes(server: Server) -> list[Route]:
    """Return the routes of help, and of the list of problems to which every problem points."""
    return [
        Route("/help", visited(server, "me", _help), methods=["GET"]),
        Route("/problems", _problems(server), methods=["GET"]),
    ]
