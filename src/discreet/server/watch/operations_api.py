"""What watches a server: alive and ready for anybody, health for whoever checks, metrics for whoever holds the data."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from discreet.custodian_debug import show_hidden
from discreet.server.accounts import Caller
from discreet.server.app import ApiCall, Endpoint, Server
from discreet.server.problems import Problem
from discreet.server.watch.metrics import METRICS_MEDIA, metrics_text

__all__ = ["OPERATIONS_ENDPOINTS", "health_facts", "watch_routes"]


class LedgerHealthModel(BaseModel):
    """A data set: after how many seconds its answers leave, and whether its record verifies."""

    name: str
    answer_after: float
    verified: bool


class HealthModel(BaseModel):
    """How the server is: the state and ledgers can be reached, the log holds, and each record verifies."""

    ready: bool
    log_holds: bool
    datasets: list[LedgerHealthModel]


def health_facts(server: Server, caller: Caller) -> dict[str, Any]:
    """Say how the server is, about the data sets that a caller sees."""
    seen = [one for one in server.shelf if caller.sees(one.name)]
    return {
        "ready": server.readiness.ready(),
        "log_holds": server.state.decisions_hold(),
        "datasets": [{"name": one.name, "answer_after": one.answer_after, "verified": _verifies(one)} for one in seen],
    }


def _verifies(served: Any) -> bool:
    try:
        served.session.ledger.verify()
    except Exception as error:  # noqa: BLE001 - which one it is, whoever runs the server finds out
        show_hidden(error)
        return False
    return True


def _health(call: ApiCall) -> Any:
    return health_facts(call.server, call.caller)


def _metrics(call: ApiCall) -> Any:
    if call.caller.token is None:
        raise Problem("forbidden", "metrics are read with a token of scope audit, not by a visit")
    return Response(metrics_text(call.server, call.caller), media_type=METRICS_MEDIA)


OPERATIONS_ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/v1/health",
        operation="health",
        handler=_health,
        summary="Whether state, log and ledgers are as they should be",
        answer=HealthModel,
    ),
    Endpoint(
        method="GET",
        path="/metrics",
        operation="metrics",
        handler=_metrics,
        summary="Metrics for Prometheus. NOT PRIVATE: for whoever holds the data, by a token",
        media=("text/plain",),
    ),
)


def watch_routes(server: Server) -> list[Route]:
    """Return the routes that programs watch, without an account: two constant answers each."""

    async def alive(request: Request) -> Response:
        return JSONResponse({"alive": True})

    async def ready(request: Request) -> Response:
        found = server.readiness.ready()
        return JSONResponse({"ready": found}, status_code=200 if found else 503)

    return [Route("/healthz", alive, methods=["GET"]), Route("/readyz", ready, methods=["GET"])]
