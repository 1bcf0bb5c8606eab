"""The HTTP API: one table of endpoints, from which routes, authorisation and the OpenAPI document are made.

Every request takes the same way: who is it, how often did they ask, may they do this to this data set, was the form
sent from our own page, can the request be read; then the endpoint answers. Nothing can be routed past it.
"""

from __future__ import annotations

import asyncio
import hmac
import io
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from threading import Lock
from typing import Any, final

from anyio import CapacityLimiter, to_thread
from pydantic import BaseModel, ValidationError
from pydantic.json_schema import models_json_schema
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from discreet.errors import InvalidParameter
from discreet.exact import exact
from discreet.server import api_models as models
from discreet.server.accounts import OPERATIONS, Accounts, Caller
from discreet.server.datasets import AskedQuestion, DatasetShelf
from discreet.server.http_limits import HttpLimits, RateLimit
from discreet.server.jobs import Job, Jobs
from discreet.server.problems import MEDIA_TYPE, Problem, problem_of
from discreet.server.state_file import StateFile

__all__ = [
    "COOKIE",
    "ENDPOINTS",
    "ApiCall",
    "Endpoint",
    "Server",
    "answer_endpoint",
    "api_routes",
    "ask_release",
    "check_origin",
    "cookie_of",
    "openapi",
    "problem_response",
    "seen_job",
    "waited",
]

COOKIE = "discreet_visit"
_MOST_AT_ONCE = 4  # requests of an account that are computed at the same time
_LONGEST_WAIT = 60.0  # seconds that a request waits for a release
_MOST_WAITING = 8  # requests of an account that wait for releases at the same time


@final
class Server:
    """Everything that requests need."""

    def __init__(
        self,
        state: StateFile,
        accounts: Accounts,
        shelf: DatasetShelf,
        jobs: Jobs,
        limits: HttpLimits,
        *,
        secure: bool = False,
    ) -> None:
        self.state, self.accounts, self.shelf, self.jobs = state, accounts, shelf, jobs
        self.secure = secure  # whether cookies go over TLS only
        self.rates = RateLimit(limits.per_second, limits.burst)
        self.sign_ins = RateLimit(limits.sign_ins_per_second, limits.sign_in_burst)
        self._threads, self._busy, self._waiting = CapacityLimiter(12), Counter[str](), Counter[str]()
        self._trying, self._trying_changes = set[str](), Lock()

    async def in_thread(self, work: Callable[[], Any]) -> Any:
        """Run what reads files or computes outside of the loop that serves everybody."""
        return await to_thread.run_sync(work, limiter=self._threads)

    @contextmanager
    def one_of_few(self, caller: Caller) -> Iterator[None]:
        """Let an account have a few requests computed at a time, so that there are threads for the others."""
        if self._busy[caller.name] >= _MOST_AT_ONCE:
            raise Problem("too-many", f"at most {_MOST_AT_ONCE} requests of one account are computed at a time")
        self._busy[caller.name] += 1
        try:
            yield
        finally:
            self._busy[caller.name] -= 1
            self._busy += Counter()  # Forgets who has none.

    async def wait_for(self, caller: Caller, over: Future[None], seconds: float) -> None:
        """Wait for so long, or not at all where an account has many requests that wait: connections are everybody's."""
        if self._waiting[caller.name] >= _MOST_WAITING:
            return
        self._waiting[caller.name] += 1
        try:
            await asyncio.wait({asyncio.wrap_future(over)}, timeout=seconds)
        finally:
            self._waiting[caller.name] -= 1
            self._waiting += Counter()

    def cookie_name(self, name: str) -> str:
        """Return what a cookie is called: over TLS browsers let nobody else set one with this prefix."""
        return f"__Host-{name}" if self.secure else name

    @contextmanager
    def one_trial(self, caller: Caller) -> Iterator[None]:
        """Let an account try one question at a time on made-up rows: that is free, and takes as long as an answer."""
        with self._trying_changes:
            if caller.name in self._trying:
                raise Problem("too-many", "one question of an account is tried on made-up rows at a time")
            self._trying.add(caller.name)
        try:
            yield
        finally:
            with self._trying_changes:
                self._trying.discard(caller.name)

    def caller(self, request: Request) -> Caller:
        """Return who asks, by a token or by the cookie of a visit, and count the request."""
        said = request.headers.get("authorization")
        address = request.client.host if request.client is not None else ""
        if said is not None:
            scheme, _, token = said.partition(" ")
            if scheme.casefold() != "bearer":
                raise Problem("not-signed-in", "send the token as Authorization: Bearer …")
            found: Caller | None = self._bearer(token.strip(), address)
        else:
            cookie = cookie_of(request, self.cookie_name(COOKIE))
            found = None if cookie is None else self.accounts.visitor(cookie)
        if found is None:
            self.rates.take(f"address {address}")
            raise Problem("not-signed-in")
        self.rates.take(f"account {found.name}")
        return found

    def _bearer(self, token: str, address: str) -> Caller:
        try:
            return self.accounts.bearer(token)
        except Problem:
            self.rates.take(f"address {address}")
            raise

    def check_form(self, request: Request, caller: Caller, sent: str | None) -> None:
        """Refuse a change that did not come from our own page: a browser adds the cookie whoever asks it to."""
        check_origin(request)
        if caller.form_token is not None and not hmac.compare_digest((sent or "").encode(), caller.form_token.encode()):
            raise Problem("wrong-form-token")


def cookie_of(request: Request, name: str) -> str | None:
    """Return the cookie of a name; two of them are none, wherever they stand: one of them could be planted."""
    said = [part.partition("=") for line in request.headers.getlist("cookie") for part in line.split(";")]
    found = [value.strip() for key, _, value in said if key.strip() == name]
    return found[0] if len(found) == 1 and len(found[0]) <= 200 else None


def check_origin(request: Request) -> None:
    """Refuse what a page of another origin sends, as far as the browser tells; programs tell nothing."""
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    if site not in (None, "same-origin", "none"):
        raise Problem("wrong-form-token")
    if origin is not None and origin.partition("://")[2] != request.headers.get("host"):
        raise Problem("wrong-form-token")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ApiCall:
    """A request that was let in."""

    server: Server
    caller: Caller
    path: Mapping[str, str]
    query: Mapping[str, str]
    body: Any = None

    def number(self, name: str, usual: float, *, least: float, most: float) -> float:
        """Read a number of the query."""
        said = self.query.get(name)
        try:
            value = usual if said is None else float(said[:20])
        except ValueError:
            raise Problem("invalid", f"{name} must be a number") from None
        if not least <= value <= most:
            raise Problem("invalid", f"{name} must be from {least:g} to {most:g}")
        return value

    @property
    def before(self) -> int | None:
        """Where a page of a list begins."""
        return int(self.number("before", 0, least=1, most=1e15)) if "before" in self.query else None

    @property
    def most(self) -> int:
        """How many entries a page has."""
        return int(self.number("limit", 50, least=1, most=200))

    @property
    def only(self) -> str | None:
        """Whose entries are shown: the caller's, or None for everybody's."""
        return None if self.caller.sees_all else self.caller.name


# --- endpoints ---


def _me(call: ApiCall) -> Any:
    caller = call.caller
    seen = [one.name for one in call.server.shelf if caller.sees(one.name)]
    return {"name": caller.name, "role": caller.role.value, "datasets": seen, "scopes": sorted(caller.scopes)}


def _datasets(call: ApiCall) -> Any:
    return {"datasets": [one.name for one in call.server.shelf if call.caller.sees(one.name)]}


def _dataset(call: ApiCall) -> Any:
    return call.server.shelf[call.path["dataset"]].public_facts()


def _estimate(call: ApiCall) -> Any:
    served = call.server.shelf[call.path["dataset"]]
    plan = call.body.question().plan(served.asked_by(call.caller.name))
    return served.estimate(plan, call.caller.name)


def _dummy(call: ApiCall) -> Any:
    served = call.server.shelf[call.path["dataset"]]
    plan = call.body.question().plan(served.asked_by(call.caller.name))
    with call.server.one_trial(call.caller):
        return models.table_document(plan.dummy())


def ask_release(server: Server, caller: Caller, dataset: str, question: AskedQuestion, key: str | None) -> Job:
    """Price a question, refuse what cannot be answered or paid, and queue its release."""
    served = server.shelf[dataset]
    plan = question.plan(served.asked_by(caller.name))
    token, said = caller.token, question.offer.get("epsilon")

    def pay() -> None:
        if not served.session.ledger.times_left(plan.event, principal=caller.name, nested=plan.nested):
            raise Problem("budget-exceeded", f"the price {plan.cost} does not fit into what is left")
        if token is not None:
            server.accounts.pay_by(token, None if said is None else exact(said, name="epsilon"))

    return server.jobs.ask(caller, dataset, question, plan.cost, key, pay)


def _release(call: ApiCall) -> Any:
    call.number("wait", 30, least=0, most=_LONGEST_WAIT)
    key, dataset = call.body.idempotency_key, call.path["dataset"]
    return ask_release(call.server, call.caller, dataset, call.body.question(), key)


def seen_job(server: Server, caller: Caller, number: str) -> Job:
    """Return a release that this caller may see; any other is one that is not there."""
    job = server.jobs.get(number)
    if not caller.sees(job.dataset) or not (caller.sees_all or job.name == caller.name):
        raise Problem("not-found")
    return job


def _one_release(call: ApiCall) -> Any:
    return seen_job(call.server, call.caller, call.path["id"])


def _releases(call: ApiCall) -> Any:
    jobs = call.server.jobs.of_dataset(call.path["dataset"], only=call.only, most=call.most)
    return {"releases": [models.release_document(job, with_answer=False) for job in jobs]}


def _answer(call: ApiCall) -> Any:
    table = seen_job(call.server, call.caller, call.path["id"]).table()
    form = call.path["format"]
    if form not in _FORMS:
        raise Problem("not-found")
    media, write = _FORMS[form]
    name = f"release-{call.path['id'][:8]}.{form}"
    headers = {"content-disposition": f'attachment; filename="{name}"'}
    return Response(write(table), media_type=media, headers=headers)


def _parquet(table: Any) -> bytes:
    import pyarrow.parquet as parquet

    sink = io.BytesIO()
    parquet.write_table(table.to_arrow(), sink)
    return sink.getvalue()


def _arrow(table: Any) -> bytes:
    import pyarrow as pa

    sink, found = io.BytesIO(), table.to_arrow()
    with pa.ipc.new_stream(sink, found.schema) as stream:
        stream.write_table(found)
    return sink.getvalue()


_FORMS: Mapping[str, tuple[str, Callable[[Any], bytes]]] = {
    "csv": ("text/csv", lambda table: table.to_csv().encode()),
    "json": ("application/json", lambda table: json.dumps(models.table_document(table)).encode()),
    "parquet": ("application/vnd.apache.parquet", _parquet),
    "arrow": ("application/vnd.apache.arrow.stream", _arrow),
}


def _budget(call: ApiCall) -> Any:
    return call.server.shelf[call.path["dataset"]].budget(call.caller.name)


def _history(call: ApiCall) -> Any:
    served = call.server.shelf[call.path["dataset"]]
    return {"entries": served.history(only=call.only, before=call.before, most=call.most)}


def _ledger(call: ApiCall) -> Any:
    session = call.server.shelf[call.path["dataset"]].session
    session.ledger.verify()
    # Charges, not entries: an entry is also made when an answer is known, before it may be told.
    return {"dataset": call.path["dataset"], "verified": True, "charges": session.spent.charges}


def _log(call: ApiCall) -> Any:
    state = call.server.state
    found = state.decisions(before=call.before, most=call.most, only=call.caller.granted)
    return {"holds": state.decisions_hold(), "decisions": found}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """An address: what may be done there, by whom (by its operation), and what goes in and out."""

    method: str
    path: str
    operation: str
    handler: Callable[[ApiCall], Any]
    summary: str
    body: type[BaseModel] | None = None
    answer: type[BaseModel] | None = None
    query: tuple[str, ...] = ()


_DATASET, _RELEASE = "/v1/datasets/{dataset}", "/v1/releases/{id}"
_PAGED = ("before", "limit")
ENDPOINTS = (
    Endpoint(method="GET", path="/v1/me", operation="me", handler=_me, summary="Who this is", answer=models.MeModel),
    Endpoint(
        method="GET",
        path="/v1/datasets",
        operation="datasets",
        handler=_datasets,
        summary="The data sets that this account may know of",
        answer=models.DatasetsModel,
    ),
    Endpoint(
        method="GET",
        path=_DATASET,
        operation="dataset",
        handler=_dataset,
        summary="Public facts: tables, columns, bounds, whom it protects",
        answer=models.DatasetModel,
    ),
    Endpoint(
        method="POST",
        path=f"{_DATASET}/estimate",
        operation="estimate",
        handler=_estimate,
        summary="The price of a question and the expected ±. Free; no row is read",
        body=models.AskModel,
        answer=models.EstimateModel,
    ),
    Endpoint(
        method="POST",
        path=f"{_DATASET}/dummy",
        operation="dummy",
        handler=_dummy,
        summary="The answer from made-up rows of the declared columns. Free; no row is read",
        body=models.AskModel,
        answer=models.AnswerTableModel,
    ),
    Endpoint(
        method="POST",
        path=f"{_DATASET}/releases",
        operation="release",
        handler=_release,
        summary="Pay and release; waits up to `wait` seconds for the answer",
        body=models.ReleaseAskModel,
        answer=models.ReleaseAnswerModel,
        query=("wait",),
    ),
    Endpoint(
        method="GET",
        path=f"{_DATASET}/releases",
        operation="releases",
        handler=_releases,
        summary="The last releases, without their answers",
        answer=models.ReleasesModel,
        query=("limit",),
    ),
    Endpoint(
        method="GET",
        path=_RELEASE,
        operation="releases",
        handler=_one_release,
        summary="A release; waits up to `wait` seconds for its answer",
        answer=models.ReleaseAnswerModel,
        query=("wait",),
    ),
    Endpoint(
        method="GET",
        path=_RELEASE + "/answer.{format}",
        operation="releases",
        handler=_answer,
        summary="The answer as csv, json, parquet or arrow",
    ),
    Endpoint(
        method="GET",
        path=f"{_DATASET}/budget",
        operation="budget",
        handler=_budget,
        summary="What was spent and what is left",
        answer=models.BudgetAnswerModel,
    ),
    Endpoint(
        method="GET",
        path=f"{_DATASET}/history",
        operation="history",
        handler=_history,
        summary="Charges, the newest first: one's own, or everybody's for whoever checks",
        answer=models.HistoryModel,
        query=_PAGED,
    ),
    Endpoint(
        method="GET",
        path=f"{_DATASET}/ledger",
        operation="ledger",
        handler=_ledger,
        summary="Verify the record of the data set",
        answer=models.LedgerModel,
    ),
    Endpoint(
        method="GET",
        path="/v1/log",
        operation="log",
        handler=_log,
        summary="Decisions about the data sets that this account sees, the newest first; an owner's are all",
        answer=models.LogModel,
        query=_PAGED,
    ),
)


# --- the way of a request ---


def problem_response(problem: Problem) -> Response:
    """Return a problem as an answer."""
    headers = {"retry-after": "5"} if problem.kind.status in (429, 503) else {}
    if problem.kind.status == 401:
        headers["www-authenticate"] = "Bearer"
    document = problem.document()
    return JSONResponse(document, status_code=problem.kind.status, headers=headers, media_type=MEDIA_TYPE)


async def answer_endpoint(server: Server, endpoint: Endpoint, request: Request) -> Response:
    """Answer a request at an endpoint, or say what the problem is."""
    name, about = "", ""
    try:
        caller = await server.in_thread(lambda: server.caller(request))
        name = caller.name
        dataset = request.path_params.get("dataset")
        about = "" if dataset is None else server.shelf[dataset].name
        caller.check(endpoint.operation, about or None)
        if endpoint.method != "GET":
            server.check_form(request, caller, request.headers.get("x-form-token"))
        body = None if endpoint.body is None else await _read_body(endpoint.body, request)
        call = ApiCall(server=server, caller=caller, path=request.path_params, query=request.query_params, body=body)
        with server.one_of_few(caller):
            found = await server.in_thread(lambda: endpoint.handler(call))
        return await _finished(server, found, call)
    except BaseException as error:
        if isinstance(error, (asyncio.CancelledError, KeyboardInterrupt, SystemExit)):
            raise
        problem = problem_of(error)
        if problem.kind.code in ("forbidden", "wrong-form-token"):
            outcome = problem.kind.code
            await server.in_thread(
                lambda: server.state.decide(name, endpoint.operation, dataset=about, outcome=outcome)
            )
        return problem_response(problem)


async def _read_body(model: type[BaseModel], request: Request) -> BaseModel:
    if request.headers.get("content-type", "").partition(";")[0].strip().casefold() != "application/json":
        raise Problem("bad-request", "send application/json")
    try:
        return model.model_validate_json(await request.body())
    except ValidationError as wrong:
        first = wrong.errors(include_url=False, include_input=False, include_context=False)[0]
        place = ".".join(str(part) for part in first["loc"])[:200]
        raise Problem("invalid", f"{place or 'the request'}: {first['msg'][:200]}") from None


async def _finished(server: Server, found: Any, call: ApiCall) -> Response:
    if isinstance(found, Response):
        return found
    if not isinstance(found, Job):
        return JSONResponse(found)
    job = await waited(server, call.caller, found, call.number("wait", 30, least=0, most=_LONGEST_WAIT))
    if job.problem is not None and call.body is not None:
        return problem_response(job.problem)
    document = await server.in_thread(lambda: models.release_document(job))
    headers = {"location": f"/v1/releases/{job.id}"}
    return JSONResponse(document, status_code=200 if job.is_over else 202, headers=headers)


async def waited(server: Server, caller: Caller, job: Job, seconds: float) -> Job:
    """Wait until a release is over, or for so long; nobody else waits with it."""
    over = server.jobs.over(job.id)
    if over is not None and seconds > 0:
        await server.wait_for(caller, over, seconds)
    found: Job = await server.in_thread(lambda: server.jobs.get(job.id))
    return found


def api_routes(server: Server) -> list[Route]:
    """Return the routes of all endpoints."""
    missing = [endpoint.path for endpoint in ENDPOINTS if endpoint.operation not in OPERATIONS]
    if missing:
        raise InvalidParameter(f"nobody said who may use {', '.join(missing)}")

    def route(endpoint: Endpoint) -> Route:
        async def answered(request: Request) -> Response:
            return await answer_endpoint(server, endpoint, request)

        return Route(endpoint.path, answered, methods=[endpoint.method])

    async def described(request: Request) -> Response:
        return JSONResponse(openapi())

    return [*map(route, ENDPOINTS), Route("/v1/openapi.json", described, methods=["GET"])]


# --- OpenAPI ---


@cache
def openapi() -> dict[str, Any]:
    """Return the OpenAPI document of all endpoints."""
    used: set[type[BaseModel]] = {
        one for endpoint in ENDPOINTS for one in (endpoint.body, endpoint.answer) if one is not None
    }
    named = sorted(((one.__name__, one) for one in used | {models.ProblemModel}), key=lambda pair: pair[0])
    listed = [(one, "validation") for _, one in named]
    _, schemas = models_json_schema(listed, ref_template="#/components/schemas/{model}")  # type: ignore[arg-type]
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in ENDPOINTS:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Discreet", "version": "1", "description": "Answers with a proven bound on what they tell."},
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": schemas["$defs"],
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _reference(model: type[BaseModel]) -> dict[str, Any]:
    return {"schema": {"$ref": f"#/components/schemas/{model.__name__}"}}


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    held = [part[1:-1] for part in endpoint.path.replace("answer.", "").split("/") if part.startswith("{")]
    parameters = [{"name": one, "in": "path", "required": True, "schema": {"type": "string"}} for one in held]
    parameters += [{"name": one, "in": "query", "schema": {"type": "number"}} for one in endpoint.query]
    plain = {"application/json": _reference(endpoint.answer)} if endpoint.answer is not None else {}
    content = plain or {media: {} for media, _ in _FORMS.values()}
    responses: dict[str, Any] = {"200": {"description": endpoint.summary, "content": content}}
    if "wait" in endpoint.query:
        responses["202"] = {"description": "Not answered yet", "content": content}
    responses["default"] = {"description": "A problem", "content": {MEDIA_TYPE: _reference(models.ProblemModel)}}
    roles = ", ".join(sorted(role.value for role in OPERATIONS[endpoint.operation].roles))
    described = f"Roles: {roles}. Scope of a token: {OPERATIONS[endpoint.operation].scope}."
    told: dict[str, Any] = {"summary": endpoint.summary, "description": described, "responses": responses}
    if parameters:
        told["parameters"] = parameters
    if endpoint.body is not None:
        told["requestBody"] = {"required": True, "content": {"application/json": _reference(endpoint.body)}}
    return told
