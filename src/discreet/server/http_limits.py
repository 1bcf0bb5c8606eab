"""What every request passes first: names of the server, sizes, rates; and the headers that every answer has."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from threading import Lock
from typing import final

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from discreet.server.problems import MEDIA_TYPE, Problem

__all__ = ["HttpLimits", "RateLimit", "RequestGate", "limited_connections", "network_of"]

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",  # `no-referrer` would hide from which page a form was sent.
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HttpLimits:
    """How much one account and one address may ask of the server."""

    body: int = 64 << 10  # bytes
    body_seconds: float = 10.0
    per_second: float = 10.0
    burst: int = 60
    sign_ins_per_second: float = 0.5
    sign_in_burst: int = 10
    connections: int = 500
    connections_of_address: int = 64  # Behind a proxy all have its address, and it limits them.
    head_seconds: float = 10.0  # until a request has said what it asks for


@final
class RateLimit:
    """A bucket for each name: so many requests at once, and so many a second after them."""

    def __init__(self, per_second: float, burst: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_second, self._burst, self._clock = per_second, burst, clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = Lock()

    def take(self, name: str) -> None:
        """Take one, or refuse. Names that were not heard of for long are forgotten, when they would be full again."""
        with self._lock:
            now = self._clock()
            left, last = self._buckets.pop(name, (float(self._burst), now))
            left = min(float(self._burst), left + (now - last) * self._per_second)
            self._buckets[name] = (left - 1 if left >= 1 else left, now)
            self._forget(now)
            if left < 1:
                raise Problem("too-many")

    def _forget(self, now: float) -> None:
        full = self._burst / self._per_second
        while self._buckets and now - next(iter(self._buckets.values()))[1] > full:
            self._buckets.popitem(last=False)


def limited_connections(limits: HttpLimits, *, each_address: bool) -> type[asyncio.Protocol]:
    """Return uvicorn's protocol, with a limit for each address and one of time for the head of a request.

    Without them idle connections of one client would take the places of everybody. A network of IPv6, of 2⁶⁴ addresses,
    is one address: a single machine has them all.
    """
    import h11
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class LimitedConnection(H11Protocol):
        _late: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            own = network_of(self.client)
            same = sum(network_of(getattr(one, "client", None)) == own for one in self.connections)
            if each_address and same > limits.connections_of_address:
                transport.abort()
            else:
                self._late = self.loop.call_later(limits.head_seconds, transport.abort)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            # A head that comes in parts has no more time. Between requests uvicorn waits, until some of one came.
            if self.conn.their_state is not h11.IDLE:
                self._in_time()
            elif self._late is None:
                self._late = self.loop.call_later(limits.head_seconds, self.transport.abort)

        def connection_lost(self, exc: Exception | None) -> None:
            self._in_time()
            super().connection_lost(exc)

        def _in_time(self) -> None:
            if self._late is not None:
                self._late.cancel()
                self._late = None

    return LimitedConnection


def network_of(client: tuple[str, int] | None) -> str:
    """Return what counts as one client: an address of IPv4, or a network of IPv6, whose addresses one machine has."""
    host = client[0] if client is not None else ""
    try:
        found = ipaddress.ip_address(host)
    except ValueError:
        return host[:100]  # What a proxy calls it.
    if isinstance(found, ipaddress.IPv4Address):
        return host
    mapped = found.ipv4_mapped
    return ":".join(found.exploded.split(":")[:4]) if mapped is None else str(mapped)


@final
class RequestGate:
    """Refuses what is not for this server or too large, before anything reads it, and adds headers to every answer."""

    def __init__(
        self, app: ASGIApp, *, hosts: Iterable[str], limits: HttpLimits, tls: bool, counts: Counter[int] | None = None
    ) -> None:
        self._app, self._limits = app, limits
        self._counts = Counter[int]() if counts is None else counts  # answers by status, for metrics
        self._hosts = frozenset(name.casefold() for name in hosts)
        self._added = _HEADERS | ({"strict-transport-security": "max-age=31536000"} if tls else {})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await self._guarded(scope, receive, send)

    async def _guarded(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._counts[message["status"]] += 1
                headers = MutableHeaders(raw=message["headers"])
                for name, value in self._added.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            self._check_host(Headers(scope=scope))
            body = await self._body(Headers(scope=scope), receive)
        except Problem as problem:
            await _send_problem(problem, sending)
            return
        sent = False

        async def replayed() -> Message:
            nonlocal sent
            if sent:
                return await receive()
            sent = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self._app(scope, replayed, sending)

    def _check_host(self, headers: Headers) -> None:
        """Refuse other names: a page elsewhere whose name is made to point here could read what is on loopback."""
        names = headers.getlist("host")
        host = names[0].casefold() if len(names) == 1 else ""
        name, _, port = host.rpartition(":") if not host.endswith("]") else (host, "", "0")
        if (name if name and port.isdecimal() else host) not in self._hosts:
            raise Problem("wrong-host")

    async def _body(self, headers: Headers, receive: Receive) -> bytes:
        said = headers.get("content-length", "0")
        if not said.isdecimal() or len(said) > 12 or int(said) > self._limits.body:
            raise Problem("too-large" if said.isdecimal() else "bad-request")
        parts, size = [], 0
        try:
            async with asyncio.timeout(self._limits.body_seconds):
                while True:
                    message = await receive()
                    if message["type"] != "http.request":
                        raise Problem("bad-request")
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    if size > self._limits.body:
                        raise Problem("too-large")
                    if not message.get("more_body", False):
                        return b"".join(parts)
        except TimeoutError:
            raise Problem("bad-request", "the request did not arrive in time") from None


async def _send_problem(problem: Problem, send: Send) -> None:
    body = json.dumps(problem.document()).encode()
    headers = [(b"content-type", MEDIA_TYPE.encode()), (b"content-length", str(len(body)).encode())]
    headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": problem.kind.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
