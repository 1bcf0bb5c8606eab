"""The way of a request: from endpoints, which chapters beside this one list, to routes, authorisation and OpenAPI.

Every request takes the same way: who is it, how often did they ask, may they do this to this data set, was the form
sent from our own page, can the request be read; then the endpoint answers. Nothing can be routed past it.
"""

from __future__ import annotations

import asyncio
import hmac
import re
import time
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
from discreet.server import api_models as models
from discreet.server.accounts import OPERATIONS, AccountRole, Accounts, Caller
from discreet.server.datasets import DatasetShelf
from discreet.server.http_limits import HttpLimits, RateLimit, network_of
from discreet.server.jobs import Job, Jobs
from discreet.server.policy_editing import PolicyFolder
from discreet.server.problems import KINDS_OF_PROBLEMS, MEDIA_TYPE, Problem, problem_of
from discreet.server.sign_in.oidc import OidcProvider
from discreet.server.state_store import ServerState
from discreet.server.watch.health import Readiness
from discreet.server.watch.operations_log import OperationsLog

__all__ = [
    "COOKIE",
    "LONGEST_WAIT",
    "ApiCall",
    "Endpoint",
    "Server",
    "answer_endpoint",
    "api_routes",
    "check_origin",
    "client_of",
    "cookie_of",
    "openapi",
    "problem_response",
    "waited",
]

COOKIE = "discreet_visit"
_MOST_AT_ONCE = 4  # requests of an account that are computed at the same time
LONGEST_WAIT = 60.0  # seconds that a request waits for a release
_MOST_WAITING = 8  # requests of an account that wait for releases at the same time
_USUAL_PAGE, _LONGEST_PAGE, _LARGEST_NUMBER = 50, 200, 10**15
_NUMBER = re.compile(r"-?[0-9]{1,20}(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?", re.ASCII)


@final
class Server:
    """Everything that requests need."""

    def __init__(
        self,
        state: ServerState,
        accounts: Accounts,
        shelf: DatasetShelf,
        jobs: Jobs,
        limits: HttpLimits,
        *,
        secure: bool = False,
        plans: Any = None,
        oidc: OidcProvider | None = None,
        log: OperationsLog | None = None,
        exact_looks: bool = False,
        data: PolicyFolder | None = None,
    ) -> None:
        self.data = data  # the folder whose tables can be declared on a page
        self.exact_looks = exact_looks  # whether those who hold the data may look at exact results
        self.plans = plans  # those that whoever runs the server named, as `PlacedPlans`
        self.state, self.accounts, self.shelf, self.jobs = state, accounts, shelf, jobs
        self.log = log or OperationsLog("off")
        self.oidc = oidc  # the provider that people sign in by, if there is one
        self.secure = secure  # whether cookies go over TLS only
        self.readiness = Readiness(state, shelf)
        self.started, self.responses = time.monotonic(), Counter[int]()  # for metrics: by status
        self.rates = RateLimit(limits.per_second, limits.burst)
        self.sign_ins = RateLimit(limits.sign_ins_per_second, limits.sign_in_burst)
        self._threads, self._busy, self._waiting = CapacityLimiter(12), Counter[str](), Counter[str]()
        self._trying, self._trying_changes = set[str](), Lock()

    def progress(self, job: Job) -> float | None:
        """Tell how much of its declared time a job that runs has had: a clock, and nothing of what was done."""
        if job.state != "running" or job.started is None:
            return 1.0 if job.is_over else None
        try:
            seconds = self.shelf[job.dataset].seconds_of(job.kind)
        except Problem:
            return None
        return min(1.0, max(0.0, self.state.now() - job.started) / seconds)

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
        address = client_of(request)
        if said is not None:
            scheme, _, token = said.partition(" ")
            if scheme.casefold() != "bearer":
                raise Problem("not-signed-in", "send the token as Authorization: Bearer …")
            found: Caller | None = self._bearer(token.strip(), address)
        else:
            cookie = cookie_of(request, self.cookie_name(COOKIE))
            found = None if cookie is None else self.accounts.visitor(cookie)
        if found is None:
            self.rates.take(address)
            raise Problem("not-signed-in")
        self.rates.take(f"account {found.name}")
        return found

    def nobody(self, request: Request, counted: str) -> Caller:
        """Return a caller who has no account and may do nothing, and count the request for its address."""
        address = client_of(request)
        (self.sign_ins if counted == "sign in" else self.rates).take(address)
        return Caller(name=address, role=AccountRole.READER, granted=frozenset(), scopes=frozenset())

    def _bearer(self, token: str, address: str) -> Caller:
        try:
            return self.accounts.bearer(token)
        except Problem:
            self.rates.take(address)
            raise

    def check_form(self, request: Request, caller: Caller, sent: str | None) -> None:
        """Refuse a change that did not come from our own page: a browser adds the cookie whoever asks it to."""
        check_origin(request)
        if caller.form_token is not None and not hmac.compare_digest((sent or "").encode(), caller.form_token.encode()):
            raise Problem("wrong-form-token")


def client_of(request: Request) -> str:
    """Name who asks without an account, for limits: one machine has one name, however many addresses of IPv6."""
    return f"address {network_of(request.client)}"


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
        if said is not None and not _NUMBER.fullmatch(said):
            raise Problem("invalid", f"{name} must be a number")
        value = float(usual if said is None else said)
        if not least <= value <= most:
            raise Problem("invalid", f"{name} must be from {least:g} to {most:g}")
        return value

    def whole(self, name: str, usual: int, *, least: int, most: int) -> int:
        """Read a whole number of the query."""
        value = self.number(name, usual, least=least, most=most)
        if not value.is_integer():
            raise Problem("invalid", f"{name} must be a whole number")
        return int(value)

    @property
    def before(self) -> int | None:
        """Where a page of a list begins."""
        return self.whole("before", 1, least=1, most=_LARGEST_NUMBER) if "before" in self.query else None

    @property
    def most(self) -> int:
        """How many entries a page has."""
        return self.whole("limit", _USUAL_PAGE, least=1, most=_LONGEST_PAGE)

    @property
    def only(self) -> str | None:
        """Whose entries are shown: the caller's, or None for everybody's."""
        return None if self.caller.sees_all else self.caller.name


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
    media: tuple[str, ...] = ()  # where the answer is a file
    anybody: str = ""  # for those without an account: which limit of an address counts it, "sign in" or "ask"
    formats: tuple[str, ...] = ()  # what {format} of the path may be


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
        if endpoint.anybody:
            caller = server.nobody(request, endpoint.anybody)
        else:
            caller = await server.in_thread(lambda: server.caller(request))
            name = caller.name
        dataset = request.path_params.get("dataset")
        about = "" if dataset is None else server.shelf[dataset].name
        if not endpoint.anybody:
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
    job = await waited(server, call.caller, found, call.number("wait", 30, least=0, most=LONGEST_WAIT))
    if job.problem is not None and call.body is not None:
        return problem_response(job.problem)
    document = await server.in_thread(lambda: models.release_document(job, progress=server.progress(job)))
    headers = {"location": f"/v1/releases/{job.id}"}
    return JSONResponse(document, status_code=200 if job.is_over else 202, headers=headers)


async def waited(server: Server, caller: Caller, job: Job, seconds: float) -> Job:
    """Wait until a release is over, or for so long; nobody else waits with it."""
    over = server.jobs.over(job)
    if over is not None and seconds > 0:
        await server.wait_for(caller, over, seconds)
    found: Job = await server.in_thread(lambda: server.jobs.get(job.id))
    return found


def api_routes(server: Server, endpoints: tuple[Endpoint, ...]) -> list[Route]:
    """Return the routes of endpoints, and of the document that describes them."""
    missing = [endpoint.path for endpoint in endpoints if endpoint.operation not in OPERATIONS]
    if missing:
        raise InvalidParameter(f"nobody said who may use {', '.join(missing)}")

    def route(endpoint: Endpoint) -> Route:
        async def answered(request: Request) -> Response:
            return await answer_endpoint(server, endpoint, request)

        return Route(endpoint.path, answered, methods=[endpoint.method])

    async def described(request: Request) -> Response:
        return JSONResponse(openapi(endpoints))

    return [*map(route, endpoints), Route("/v1/openapi.json", described, methods=["GET"])]


# --- OpenAPI ---


@cache
def openapi(endpoints: tuple[Endpoint, ...]) -> dict[str, Any]:
    """Return the OpenAPI document of endpoints."""
    used: set[type[BaseModel]] = {
        one for endpoint in endpoints for one in (endpoint.body, endpoint.answer) if one is not None
    }
    named = sorted(((one.__name__, one) for one in used | {models.ProblemModel}), key=lambda pair: pair[0])
    listed = [(one, "validation") for _, one in named]
    _, schemas = models_json_schema(listed, ref_template="#/components/schemas/{model}")  # type: ignore[arg-type]
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
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


# Statuses of problems that any request can meet: at the gate, at the door, or where the server itself fails.
_ANYWHERE = frozenset({400, 401, 403, 413, 421, 429, 500, 503})
_QUERY_SCHEMAS: Mapping[str, Mapping[str, Any]] = {
    "wait": {"type": "number", "minimum": 0, "maximum": LONGEST_WAIT, "default": 30},
    "before": {"type": "integer", "minimum": 1, "maximum": _LARGEST_NUMBER},
    "limit": {"type": "integer", "minimum": 1, "maximum": _LONGEST_PAGE, "default": _USUAL_PAGE},
    "after": {"type": "string"},
}


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    roles = ", ".join(sorted(role.value for role in OPERATIONS[endpoint.operation].roles))
    described = f"Roles: {roles}. Scope of a token: {OPERATIONS[endpoint.operation].scope}."
    named = "_".join(re.findall(r"\w+", f"{endpoint.method.lower()} {endpoint.path.removeprefix('/v1')}"))
    told: dict[str, Any] = {"operationId": named, "summary": endpoint.summary, "description": described}
    told["responses"] = _responses(endpoint)
    if endpoint.anybody:
        told |= {"description": "For anybody, within the limits of an address.", "security": []}
    if parameters := _parameters(endpoint):
        told["parameters"] = parameters
    if endpoint.body is not None:
        told["requestBody"] = {"required": True, "content": {"application/json": _reference(endpoint.body)}}
    return told


def _parameters(endpoint: Endpoint) -> list[dict[str, Any]]:
    held = re.findall(r"\{(\w+)\}", endpoint.path)
    schemas = {one: {"type": "string", "minLength": 1} for one in held}
    if endpoint.formats:
        schemas["format"] = {"type": "string", "enum": list(endpoint.formats)}
    found = [{"name": one, "in": "path", "required": True, "schema": schemas[one]} for one in held]
    asked = [
        {"name": one, "in": "query", "schema": _QUERY_SCHEMAS.get(one, {"type": "string"})} for one in endpoint.query
    ]
    return found + asked


def _responses(endpoint: Endpoint) -> dict[str, Any]:
    """Return every status that an endpoint can answer with: there is no other."""
    plain = {"application/json": _reference(endpoint.answer)} if endpoint.answer is not None else {}
    content = plain or {media: {} for media in endpoint.media}
    found: dict[str, Any] = {"200": {"description": endpoint.summary, "content": content}}
    if "wait" in endpoint.query:
        found["202"] = {"description": "Not answered yet", "content": content}
    problem = {MEDIA_TYPE: _reference(models.ProblemModel)}
    for status in sorted(_problem_statuses(endpoint)):
        said = "; ".join(kind.title for kind in KINDS_OF_PROBLEMS.values() if kind.status == status)
        found[str(status)] = {"description": said, "content": problem}
    return found


def _problem_statuses(endpoint: Endpoint) -> frozenset[int]:
    named = {404} if "{" in endpoint.path or endpoint.body is not None else set()  # A body can name things, too.
    read = {422} if endpoint.query or endpoint.body is not None else set()
    changed = {409} if endpoint.method != "GET" else set()
    return _ANYWHERE | named | read | changed
