"""A server from its parts: state, data sets, jobs, routes; and the process that listens.

It listens on loopback unless it has a certificate, behind a proxy too: passwords and answers go nowhere in the clear.
"""

from __future__ import annotations

import ipaddress
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from discreet.errors import InvalidParameter, MissingLibrary, Refused
from discreet.query.session.policy_file import Policy

if TYPE_CHECKING:
    from discreet.server.approvals import ApprovalLimits

__all__ = [
    "DEMO_TIMES",
    "ServerSettings",
    "demo_folder",
    "listen",
    "opened_server",
    "policy_files",
    "web_app",
    "web_config",
]

_LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
_WORKERS_YIELD = 10  # niceness: an answer that is due does not wait for workers that are busy
_SLOWEST_HEADERS = 16 << 10  # bytes of a request's head


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """How a server is run."""

    state: Path  # or an address, `postgresql://host/database`, as a path
    state_anchor: Path | None = None
    host: str = "127.0.0.1"
    port: int = 8000
    names: tuple[str, ...] = ()  # more names that it goes by, as browsers say them
    workers: int = 2
    answer_after: Mapping[str, float] = field(default_factory=dict)
    certificate: Path | None = None
    key: Path | None = None
    behind_proxy: bool = False
    oidc: Path | None = None  # the file of a provider that people sign in by
    log: str = "off"  # what is said on standard error: json, text or off
    approvals: ApprovalLimits | None = None  # above which ε a release waits for another custodian
    plans: tuple[Path, ...] = ()  # release plans of the data sets
    data_folder: Path | None = None  # whose tables can be declared on a page
    data_connections: tuple[str, ...] = ()  # environment variables with addresses of tables that can be, too
    exact_looks: bool = False  # whether those who hold the data may look at exact results

    def __post_init__(self) -> None:
        if (self.certificate is None) != (self.key is None):
            raise InvalidParameter("TLS needs both: --tls-certificate and --tls-key")
        if not 1 <= self.workers <= 32:
            raise InvalidParameter("--workers is from 1 to 32")
        if not 0 <= self.port <= 65_535:
            raise InvalidParameter("--port is from 0 to 65535")
        if self.certificate is None and not _is_loopback(self.host):
            raise Refused(
                "the server listens on other machines' side without TLS",
                reason="passwords, tokens and answers would travel in the clear",
                way_out="say --tls-certificate and --tls-key; or --behind-proxy on a loopback --host, if a proxy on"
                " this machine has TLS, with --name for the name that it is known by",
            )

    @property
    def is_private(self) -> bool:
        """Whether what travels is encrypted."""
        return self.certificate is not None or self.behind_proxy

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names that it goes by."""
        return (*_LOOPBACK_NAMES, *map(_as_browsers_say, (self.host, *self.names)))

    def address(self, port: int) -> str:
        """Return where people find it."""
        name = _as_browsers_say(self.names[0] if self.names else self.host)
        return f"{'https' if self.certificate is not None else 'http'}://{name}:{port}"


def _as_browsers_say(host: str) -> str:
    """Write an IPv6 address in its shortest form and in brackets; any other name as it is."""
    try:
        found = ipaddress.ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError:
        return host
    return f"[{found}]" if found.version == 6 else host


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def policy_files(places: Sequence[Path], more: Sequence[Path] = ()) -> list[Path]:
    """Return the policy files that are named, all of a folder that is, and of `more` those that are not among them."""
    found: list[Path] = []
    for place in places:
        found += sorted(place.glob("*.toml")) if place.is_dir() else [place]
    known = {file.resolve() for file in found}
    found += [file for file in more if file.resolve() not in known]
    if not found:
        raise InvalidParameter("no policy was named: say --policy FILE, several times or for a folder, or --demo")
    return found


@contextmanager
def opened_server(
    policies: Sequence[Policy], settings: ServerSettings, *, limits: Any = None, **clocks: Any
) -> Iterator[Any]:
    """Open everything that a server needs, and let go of it afterwards; jobs are not begun yet."""
    _check_libraries()
    from discreet.query.workers.worker_engine import get_ready
    from discreet.server.accounts import Accounts, nobodys_password
    from discreet.server.app import Server
    from discreet.server.approvals import ApprovalGate, ApprovalLimits
    from discreet.server.datasets import open_shelf
    from discreet.server.http_limits import HttpLimits
    from discreet.server.jobs import Jobs
    from discreet.server.policy_editing import PolicyFolder
    from discreet.server.state_store import opened_state
    from discreet.server.watch.operations_log import OperationsLog
    from discreet.server.work.kinds import job_runners
    from discreet.server.work.plan_jobs import PlacedPlans

    get_ready(niceness=_WORKERS_YIELD)
    with ExitStack() as opened:
        log = OperationsLog(settings.log)
        opened.callback(log.stop)
        state = opened_state(settings.state, anchor=settings.state_anchor)
        opened.callback(state.close)
        state.take_alone()
        if not state.decisions_hold():
            raise Refused(f"the log of decisions in {state.name} was changed: nothing is served from it")
        state.check_anchored()
        state.heard = log.decided
        shelf = open_shelf(policies, settings.answer_after)
        opened.callback(shelf.close)
        accounts = Accounts(state)
        nobodys_password()
        above = settings.approvals or ApprovalLimits()
        above.check(one.name for one in shelf)
        gate = ApprovalGate(state, shelf, accounts, above)
        plans = PlacedPlans(settings.plans, shelf)
        kinds, workers = job_runners(plans), settings.workers
        jobs = Jobs(state, shelf, accounts, workers=workers, gate=gate, kinds=kinds, **clocks)
        opened.callback(jobs.stop, within=_stop_within(shelf))
        provider = _provider(settings.oidc)
        declared: dict[str, Any] = {"secure": settings.is_private, "plans": plans, "exact_looks": settings.exact_looks}
        folder, connections = settings.data_folder, settings.data_connections
        declared["data"] = None if folder is None else PolicyFolder(folder, connections)
        yield Server(state, accounts, shelf, jobs, limits or HttpLimits(), oidc=provider, log=log, **declared)


def _stop_within(shelf: Any) -> float:
    """Return for how long releases that run may go on when the server stops: two of the longest declared times."""
    return 2 * max(float(one.answer_after) for one in shelf) + 10


def _provider(file: Path | None) -> Any:
    if file is None:
        return None
    from discreet.server.sign_in.oidc import OidcProvider
    from discreet.server.sign_in.oidc_settings import read_oidc_settings

    return OidcProvider(read_oidc_settings(file))


def web_app(server: Any, settings: ServerSettings, limits: Any = None) -> Any:
    """Return the application that is served."""
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.requests import Request
    from starlette.responses import Response

    from discreet.server.app import api_routes
    from discreet.server.endpoints import ENDPOINTS
    from discreet.server.http_limits import HttpLimits, RequestGate
    from discreet.server.pages.help_pages import unknown_answer
    from discreet.server.pages.site import page_routes
    from discreet.server.problems import Problem, problem_of

    async def unknown(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        code = {404: "not-found", 405: "wrong-method"}.get(status)
        told = await unknown_answer(server, request, Problem(code) if code is not None else problem_of(error))
        if isinstance(error, HTTPException) and error.headers is not None:
            told.headers.update(error.headers)  # which methods an address takes
        return told

    app = Starlette(
        routes=[*api_routes(server, ENDPOINTS), *page_routes(server)],
        exception_handlers={HTTPException: unknown, Exception: unknown},
    )
    app.router.redirect_slashes = False
    limits, counts = limits or HttpLimits(), server.responses
    return RequestGate(app, hosts=settings.hosts, limits=limits, tls=settings.is_private, counts=counts)


def listen(server: Any, settings: ServerSettings, ready: Callable[[str], None]) -> None:
    """Serve until somebody stops it; `ready` is told the address. Running releases end first."""
    import socket

    import uvicorn

    _outlive_who_hangs_up()
    _stop_calmly()
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    bound = socket.create_server((settings.host, settings.port), family=family)
    config = web_config(web_app(server, settings), settings)
    server.jobs.start()
    address = settings.address(bound.getsockname()[1])
    ready(address)
    server.log.say("start", address=address, datasets=[one.name for one in server.shelf])
    uvicorn.Server(config).run(sockets=[bound])
    server.log.say("stopping")


def _stop_calmly() -> None:
    """Let SIGTERM stop the server and nothing more: uvicorn raises it again when it is done, before releases end."""
    import signal
    from threading import current_thread, main_thread

    if current_thread() is main_thread():
        signal.signal(signal.SIGTERM, lambda *_: None)


def _outlive_who_hangs_up() -> None:
    """Let a client that is gone be an error: a command of the shell ends by this signal, a server must not."""
    import signal
    from threading import current_thread, main_thread

    if hasattr(signal, "SIGPIPE") and current_thread() is main_thread():
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)


def web_config(app: Any, settings: ServerSettings, limits: Any = None) -> Any:
    """Return how uvicorn serves the application."""
    import uvicorn

    from discreet.server.http_limits import HttpLimits, limited_connections

    limits = limits or HttpLimits()
    return uvicorn.Config(
        app,
        log_config=None,  # Paths and times of requests are in no log: decisions are, in the state.
        access_log=False,
        server_header=False,
        proxy_headers=settings.behind_proxy,
        forwarded_allow_ips=["127.0.0.1", "::1"] if settings.behind_proxy else [],
        timeout_keep_alive=20,
        timeout_graceful_shutdown=10,
        limit_concurrency=limits.connections,
        h11_max_incomplete_event_size=_SLOWEST_HEADERS,
        ws="none",
        http=limited_connections(limits, each_address=not settings.behind_proxy),
        lifespan="off",
        ssl_certfile=None if settings.certificate is None else str(settings.certificate),
        ssl_keyfile=None if settings.key is None else str(settings.key),
    )


def _check_libraries() -> None:
    try:
        import argon2  # noqa: F401
        import jinja2  # noqa: F401
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ModuleNotFoundError as missing:
        raise MissingLibrary(f"the server needs {missing.name}: pip install 'discreet[server]'") from None


# --- the demo ---


_DEMO_POLICY = """\
dataset = "northmere-stays"
ledger = "northmere.ledger"
version = "2025"

[unit]
column = "patient"
max_groups = 1
max_rows_per_group = 1

[budget]
epsilon = 10
delta = 1e-5

[tables.stays]
source = "stays.parquet"

[tables.stays.columns]
sex = { categories = ["f", "m"] }
age_group = { categories = ["0-17", "18-39", "40-59", "60-74", "75-94", "95+"] }
nights = { low = 0, high = 365 }
admitted = { low = 2025-01-01, high = 2030-12-31 }
cost = { low = 0, high = 30000 }

[tables.stays.columns.diagnosis]
categories = [
  "heart disease", "stroke", "cancer", "pneumonia", "fracture", "diabetes",
  "appendicitis", "birth", "depression", "alcohol dependence", "HIV", "dementia",
]
"""


DEMO_TIMES: Mapping[str, float] = {
    "northmere-stays": 2.0,
    "northmere-stays:plan": 5.0,
    "northmere-stays:profile": 8.0,
    "northmere-stays:synth": 60.0,
    "northmere-stays:train": 30.0,
}
_DEMO_PLAN = """
[release]
epsilon = 0.5
split = "even"

[[publish]]
name = "stays_by_diagnosis"
title = "Stays by diagnosis"
sql = "SELECT diagnosis, COUNT(*) AS stays FROM stays GROUP BY diagnosis"

[[publish]]
name = "nights_by_age"
title = "Nights by age"
sql = "SELECT age_group, AVG(nights) AS nights FROM stays GROUP BY age_group"
"""


@contextmanager
def demo_folder() -> Iterator[Path]:
    """Make a folder with bundled data of people who do not exist; it is gone afterwards."""
    from discreet.data.sets import copy

    folder = Path(tempfile.mkdtemp(prefix="discreet-demo-"))
    try:
        copy("hospital", folder)
        for file in folder.rglob("*.toml"):
            file.unlink()
        source = next(folder.rglob("stays.parquet"))
        (source.parent / "policy.toml").write_text(_DEMO_POLICY, encoding="utf-8")
        (source.parent / "plans").mkdir()
        named = 'name = "northmere"\ntitle = "Hospital stays in Northmere"\n'
        (source.parent / "plans" / "plan.toml").write_text(named + _DEMO_POLICY + _DEMO_PLAN, encoding="utf-8")
        yield source.parent
    finally:
        shutil.rmtree(folder, ignore_errors=True)
