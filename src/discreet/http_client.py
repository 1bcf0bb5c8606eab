"""Requests to a server of Discreet: where a token may go, how much of an answer is read, and what is tried again.

A token is a password. It goes to one address, over TLS or to this machine, follows no redirect, and is in no text. What
comes back is not trusted either: it is bounded, read as what the API says it is, and shown without what steers screens.
Requests are tried again where that can cost nothing: they are free, or they have an idempotency key.
"""

from __future__ import annotations

import ipaddress
import json
import re
import ssl
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, final
from urllib.parse import quote, urlsplit

from pydantic import BaseModel, ConfigDict, ValidationError

from discreet.errors import (
    AnswerFailed,
    BudgetExceeded,
    DiscreetError,
    InvalidParameter,
    LedgerUnavailable,
    MissingLibrary,
    NotAuthorised,
    Refused,
)
from discreet.formatting import printable, shortened

if TYPE_CHECKING:
    import httpx

__all__ = [
    "HttpConnection",
    "ProblemAnswer",
    "ServerAnswer",
    "ServerUnavailable",
    "WrongAnswer",
    "checked_token",
    "device_token",
    "plain_text",
    "problem_error",
    "server_address",
    "server_path",
]

_MOST_BYTES = 64 << 20  # of an answer: 100,000 cells without rounding have a quarter of it
_LONGEST_TEXT = 4_000  # characters of a text of the server that are shown
_NOT_NOW = (429, 502, 503, 504)
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0  # seconds before a request is tried again
_HOST = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?", re.ASCII)
_USER_CODE = re.compile(r"[A-Z0-9-]{4,20}", re.ASCII)
_LONGEST_LOGIN = 900.0  # seconds that a person has
_TOKEN = re.compile(r"[\x21-\x7e]{8,300}", re.ASCII)


class ServerUnavailable(LedgerUnavailable):
    """The server cannot be reached, is too busy, or failed. What was asked may or may not have been charged.

    `release` of the same plan again is charged once: the plan has an idempotency key.

    Examples:
        >>> issubclass(dp.client.ServerUnavailable, dp.LedgerUnavailable)
        True
    """


class WrongAnswer(DiscreetError):
    """What came back is no answer of this API: too large, of another kind, or sent from elsewhere.

    Examples:
        >>> issubclass(dp.client.WrongAnswer, dp.DiscreetError)
        True
    """


# --- addresses and tokens ---


def server_address(url: str) -> str:
    """Return scheme, name and port of a server, made anew from what was read; a token is sent nowhere else."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise InvalidParameter("the address of a server is such as https://discreet.example:8000") from None
    host = (parts.hostname or "").lower()
    if parts.scheme not in ("http", "https") or not (_is_ip(host) or _HOST.fullmatch(host)):
        raise InvalidParameter("the address of a server begins with https://, or with http:// on this machine")
    if "@" in parts.netloc or parts.path not in ("", "/") or parts.query or parts.fragment:
        raise InvalidParameter("the address of a server is a name and a port: no path, no user, no token")
    if parts.scheme == "http" and not _is_loopback(host):
        raise Refused(
            "this server is asked without TLS",
            reason="token, questions and answers would travel in the clear",
            way_out="say https://; http:// is for this machine: 127.0.0.1, [::1] or localhost",
        )
    shown = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{shown}" + ("" if port is None else f":{port}")


def _is_ip(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return "%" not in host  # A zone is part of a machine, not of an address.


def _is_loopback(host: str) -> bool:
    return host == "localhost" or (_is_ip(host) and ipaddress.ip_address(host).is_loopback)


def checked_token(token: str) -> str:
    """Return a token that can stand in a header; no message repeats it."""
    if not isinstance(token, str) or not _TOKEN.fullmatch(token):
        raise InvalidParameter("this is no token: `discreet token new` prints one, such as dsc_…")
    return token


def server_path(*parts: str) -> str:
    """Write an address below /v1; a part is one part, whatever letters it has."""
    if any(part in ("", ".", "..") for part in parts):
        raise InvalidParameter("a name of a data set or release is a text that is not empty")
    return "/v1/" + "/".join(quote(part, safe="") for part in parts)


# --- answers ---


def plain_text(text: str) -> str:
    """Return a text of the server without what steers a screen, and not without end."""
    return "\n".join(map(printable, shortened(text, _LONGEST_TEXT).split("\n")))


class ServerAnswer(BaseModel):
    """An answer of the API: fields that are not known here are left out, any other kind of value is refused."""

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True, allow_inf_nan=False)


A = TypeVar("A", bound=ServerAnswer)


@final
class ProblemAnswer(ServerAnswer):
    """What is told instead of an answer (RFC 9457)."""

    status: int = 500
    code: str
    detail: str
    line: int | None = None
    column: int | None = None
    excerpt: str | None = None
    caret: int | None = None
    reason: str | None = None
    way_out: str | None = None


def _read_as(kind: type[A], body: bytes) -> A:
    try:
        return kind.model_validate_json(body)
    except (ValidationError, RecursionError):
        raise WrongAnswer("the server answered something else than this API: is it a server of Discreet?") from None


def _error_of(status: int, body: bytes, asked: str) -> DiscreetError:
    """Return what was answered instead of an answer, as an exception."""
    try:
        return problem_error(_read_as(ProblemAnswer, body), status, asked)
    except WrongAnswer as wrong:
        # A proxy that finds no server behind it has words of its own.
        return ServerUnavailable(f"there is no answer now ({status})") if status in _NOT_NOW else wrong


def problem_error(problem: ProblemAnswer, status: int, asked: str) -> DiscreetError:
    """Return a problem as the exception that a session would have raised."""
    detail = plain_text(problem.detail)
    reason, way_out = plain_text(problem.reason or ""), plain_text(problem.way_out or "")
    match problem.code, status:
        case "refused", _:
            place = {"line": problem.line, "column": problem.column}
            excerpt, caret = plain_text(problem.excerpt or ""), min(max(problem.caret or 0, 0), 1_000)
            return Refused(detail, reason=reason, way_out=way_out, excerpt=excerpt, caret=caret, **place)
        case "budget-exceeded", _:
            exceeded = BudgetExceeded(asked=asked, left="what the server has left", way_out=way_out)
            exceeded.args = (detail,)
            return exceeded
        case "answer-failed", _:
            return AnswerFailed()
        case "unavailable", _:
            return LedgerUnavailable(detail)
        case _, 401 | 403:
            return NotAuthorised(detail)
        case _, 409:
            return Refused(detail, reason=reason, way_out=way_out)
    if status in _NOT_NOW or status >= 500:
        return ServerUnavailable(detail)
    return InvalidParameter(detail)


# --- requests ---


@final
class HttpConnection:
    """Requests to one address, under one token."""

    __slots__ = ("__weakref__", "_http", "_patience", "_timeout", "address")

    def __init__(
        self, address: str, *, token: str | None, timeout: float, patience: float, certificates: str | Path | None
    ) -> None:
        library = _library()
        self.address, self._timeout, self._patience = address, timeout, patience
        headers = {"accept-encoding": "identity", "user-agent": "discreet"}
        if token is not None:
            headers["authorization"] = f"Bearer {token}"
        # Nothing of the environment: a proxy or a .netrc file that is named there would get, or replace, the token.
        self._http: httpx.Client = library.Client(
            base_url=address, headers=headers, follow_redirects=False, trust_env=False, verify=_trusted(certificates)
        )
        weakref.finalize(self, self._http.close)  # A notebook forgets to.

    def get(self, kind: type[A], path: str, *, wait: float | None = None, **query: Any) -> A:
        """Ask for something that is there."""
        return _read_as(kind, self.body("GET", path, wait=wait, query=query))

    def post(
        self, kind: type[A], path: str, said: Mapping[str, Any], *, asked: str = "", wait: float | None = None
    ) -> A:
        """Send a question: a free one, or one that has an idempotency key, since it may be sent again."""
        return _read_as(kind, self.body("POST", path, said=said, asked=asked, wait=wait))

    def body(
        self,
        method: str,
        path: str,
        *,
        said: Mapping[str, Any] | None = None,
        query: Mapping[str, Any] | None = None,
        asked: str = "",
        wait: float | None = None,
    ) -> bytes:
        """Return what is answered, or raise what the problem is. Whoever cannot answer now is asked again."""
        parameters = {name: value for name, value in (query or {}).items() if value is not None}
        if wait is not None:
            parameters["wait"] = wait
        written = None if said is None else json.dumps(dict(said), allow_nan=False).encode()
        began, pause = time.monotonic(), _FIRST_PAUSE
        while True:
            error, body, later = self._tried(method, path, written, parameters, asked, wait or 0.0)
            if error is None:
                return body
            gone = time.monotonic() - began
            if later is None or gone + max(later, pause) > self._patience:
                raise error
            time.sleep(max(later, pause))
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _tried(
        self, method: str, path: str, written: bytes | None, parameters: Mapping[str, Any], asked: str, wait: float
    ) -> tuple[DiscreetError | None, bytes, float | None]:
        """Ask once: an error or an answer, and after how many seconds it is worth trying again."""
        try:
            with self._lost_is_unavailable():
                status, headers, body = self._exchanged(method, path, written, parameters, wait)
        except ServerUnavailable as lost:
            return lost, b"", 0.0
        if status in _NOT_NOW:
            return _error_of(status, body, asked), b"", _seconds(headers.get("retry-after"))
        if not 200 <= status < 300:
            return _error_of(status, body, asked), b"", None
        return None, body, None

    def _exchanged(
        self, method: str, path: str, written: bytes | None, parameters: Mapping[str, Any], wait: float
    ) -> tuple[int, Mapping[str, str], bytes]:
        until = time.monotonic() + self._timeout + wait
        timeout = _library().Timeout(self._timeout, read=self._timeout + wait)
        headers = {} if written is None else {"content-type": "application/json"}
        request: dict[str, Any] = {"content": written, "params": parameters, "headers": headers, "timeout": timeout}
        with self._http.stream(method, path, **request) as answer:
            if 300 <= answer.status_code < 400:
                raise WrongAnswer("the server sends to another address, and a token follows nobody")
            if "content-encoding" in answer.headers:
                raise WrongAnswer("the server packed its answer, and nobody asked it to")
            found = bytearray()
            for part in answer.iter_raw():
                found += part
                if len(found) > _MOST_BYTES:
                    raise WrongAnswer(f"the answer is larger than {_MOST_BYTES >> 20} MB")
                if time.monotonic() > until:
                    raise ServerUnavailable("the server takes too long to answer")
            return answer.status_code, answer.headers, bytes(found)

    @contextmanager
    def _lost_is_unavailable(self) -> Iterator[None]:
        """Name the address, and nothing else of a failed request."""
        library = _library()
        try:
            yield
        except library.TransportError as error:
            if _is_untrusted(error):
                raise NotAuthorised(
                    f"the certificate of {self.address} is not one that is trusted here; certificates= names a file"
                ) from None
            raise ServerUnavailable(f"no whole answer came from {self.address} ({type(error).__name__})") from None
        except (library.InvalidURL, library.HTTPError):
            raise WrongAnswer(f"{self.address} does not speak HTTP as it should") from None

    def stands(self, path: str, said: Mapping[str, Any]) -> ProblemAnswer | bytes:
        """Send once what is asked again in a while: an answer, or the problem by whose code it is asked again."""
        with self._lost_is_unavailable():
            status, _, body = self._exchanged("POST", path, json.dumps(dict(said)).encode(), {}, 0.0)
        return body if 200 <= status < 300 else _read_as(ProblemAnswer, body)

    def close(self) -> None:
        """Close all connections."""
        self._http.close()


# --- a token for a program that has none ---


@final
class _DeviceAnswer(ServerAnswer):
    device_code: str
    user_code: str
    expires_in: int
    interval: int


@final
class _TokenAnswer(ServerAnswer):
    token: str


def device_token(link: HttpConnection, scopes: Iterable[str], label: str, show: Callable[[str], None]) -> str:
    """Show a code that a person types on a page of the server, and return the token that they allow.

    Where the page is follows from the address that was said, never from what the server answers.
    """
    begun = link.post(_DeviceAnswer, "/v1/device", {"scopes": list(scopes), "label": label})
    if not _USER_CODE.fullmatch(begun.user_code):
        raise WrongAnswer("the server sent a code that nobody can type")
    show(f"To let this program in, open {link.address}/device and type {begun.user_code}")
    until = time.monotonic() + min(begun.expires_in, _LONGEST_LOGIN)
    while time.monotonic() < until:
        time.sleep(min(max(begun.interval, 1), 60))
        with suppress(ServerUnavailable):  # It is asked again anyway.
            found = link.stands("/v1/device/token", {"device_code": begun.device_code})
            if isinstance(found, bytes):
                return checked_token(_read_as(_TokenAnswer, found).token)
            if found.code not in ("authorization-pending", "slow-down", "too-many", "unavailable"):
                raise NotAuthorised(plain_text(found.detail))
    raise NotAuthorised("nobody allowed this program in time: connect again for another code")


def _library() -> Any:
    try:
        import httpx
    except ModuleNotFoundError:
        raise MissingLibrary("the client needs httpx: pip install 'discreet[client]'") from None
    return httpx


def _trusted(certificates: str | Path | None) -> ssl.SSLContext:
    """Return what certificates are checked with: those of the system, or those of a file alone."""
    try:
        return ssl.create_default_context(cafile=None if certificates is None else str(certificates))
    except (OSError, ssl.SSLError):
        raise InvalidParameter("certificates= names no file of certificates (PEM)") from None


def _is_untrusted(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return True
        error = error.__cause__ or error.__context__
    return False


def _seconds(said: str | None) -> float:
    """Read for how long a busy server wants to be left alone; nobody waits for long by its word."""
    return min(float(said), _LONGEST_PAUSE) if said is not None and re.fullmatch(r"\d{1,6}", said, re.ASCII) else 0.0
