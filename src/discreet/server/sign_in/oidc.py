"""Signing in by a provider (OpenID Connect): the code flow with PKCE, state and nonce.

All requests go to addresses of the declared issuer, over TLS, follow no redirect, and end after some seconds and some
kilobytes. State, nonce and the proof of PKCE are made from one secret, which is in a cookie of the browser that began:
what another browser brings back is refused. An ID token counts if a key of the issuer signed it, by a listed algorithm,
for this client and for this sign-in, and it has not expired.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable, Mapping
from threading import BoundedSemaphore, Lock
from typing import Any, final
from urllib.parse import quote, urlsplit

from discreet.custodian_debug import show_hidden
from discreet.errors import MissingLibrary
from discreet.server.problems import Problem
from discreet.server.sign_in.oidc_settings import OidcSettings, is_loopback_address

__all__ = ["OidcProvider", "OidcRefusal", "flow_secret"]

_ALGORITHMS = ("RS256", "PS256", "ES256", "ES384", "EdDSA", "Ed25519")  # None by a shared secret, and not "none".
_KEY_KINDS = frozenset({"RSA", "EC", "OKP"})
_LARGEST = 256 << 10  # bytes of an answer of the provider
_SLOWEST = 10.0  # seconds of one
_KEPT, _ASK_AGAIN = 3600.0, 60.0  # seconds that metadata and keys are kept; and at least, if a key is not known
_LEEWAY = 60.0  # seconds that clocks may differ
_OLDEST = 600.0  # seconds since an ID token was made
_SHORTEST_RSA = 2048


@final
class OidcRefusal(Exception):
    """Why a sign-in by the provider is refused: one of a few words, for the log."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


def flow_secret(secret: str, what: str) -> str:
    """Return the state, the nonce or the proof of a sign-in: nobody finds one from another, or the secret from them."""
    return hmac.new(secret.encode(), f"discreet oidc {what}".encode(), hashlib.sha256).hexdigest()


@final
class OidcProvider:
    """The provider that is declared; it is asked for its addresses and keys when somebody signs in."""

    def __init__(self, settings: OidcSettings, *, clock: Callable[[], float] = time.time) -> None:
        try:
            import authlib  # type: ignore[import-untyped]  # noqa: F401
            import httpx  # noqa: F401
            import joserfc  # noqa: F401
        except ModuleNotFoundError as missing:
            raise MissingLibrary(f"--oidc needs {missing.name}: pip install 'discreet[server]'") from None
        self.settings, self._clock = settings, clock
        self._lock, self._few = Lock(), BoundedSemaphore(2)
        self._metadata: tuple[float, Mapping[str, Any]] | None = None
        self._keys: tuple[float, Any] | None = None

    # --- the way of a sign-in ---

    def address(self, secret: str, redirect: str) -> str:
        """Return where a browser is sent to."""
        from authlib.oauth2.rfc6749.parameters import prepare_grant_uri  # type: ignore[import-untyped]
        from authlib.oauth2.rfc7636 import create_s256_code_challenge  # type: ignore[import-untyped]

        with self._one_of_few():
            where = self._endpoint("authorization_endpoint")
        found: str = prepare_grant_uri(
            where,
            self.settings.client_id,
            "code",
            redirect_uri=redirect,
            scope=self.settings.scope,
            state=flow_secret(secret, "state"),
            nonce=flow_secret(secret, "nonce"),
            code_challenge=create_s256_code_challenge(flow_secret(secret, "proof")),
            code_challenge_method="S256",
        )
        return found

    def check_sender(self, said: str | None) -> None:
        """Refuse what another provider sent back (RFC 9207), as far as it says who it is."""
        with self._one_of_few():
            must_say = self.metadata().get("authorization_response_iss_parameter_supported") is True
        if said != self.settings.issuer and (said is not None or must_say):
            raise OidcRefusal("sender")

    def claims(self, code: str, secret: str, redirect: str) -> dict[str, Any]:
        """Change a code for an ID token, and return what it says of the person, once everything was checked."""
        with self._one_of_few():
            answer = self._token(code, flow_secret(secret, "proof"), redirect)
            token = answer.get("id_token")
            if not isinstance(token, str) or len(token) > 50_000:
                raise OidcRefusal("no id token")
            return self._checked(self._signed(token), flow_secret(secret, "nonce"))

    def _one_of_few(self) -> _Few:
        return _Few(self._few)

    # --- what the provider says of itself ---

    def metadata(self) -> Mapping[str, Any]:
        """Return where the provider's addresses are, as it says itself."""
        with self._lock:
            if self._metadata is not None and self._clock() - self._metadata[0] < _KEPT:
                return self._metadata[1]
        found = self._asked("GET", self.settings.issuer.rstrip("/") + "/.well-known/openid-configuration")
        if found.get("issuer") != self.settings.issuer:
            raise OidcRefusal("issuer of the metadata")
        methods = found.get("code_challenge_methods_supported")
        if isinstance(methods, list) and "S256" not in methods:
            raise OidcRefusal("no PKCE")
        with self._lock:
            self._metadata = self._clock(), found
        return found

    def _endpoint(self, name: str) -> str:
        said = self.metadata().get(name)
        if not isinstance(said, str):
            raise OidcRefusal(f"no {name}")
        self._check_address(said)
        return said

    def _check_address(self, address: str) -> None:
        """Refuse an address that is not the issuer's: whoever writes the metadata sends this server nowhere else."""
        issuer, said = urlsplit(self.settings.issuer), urlsplit(address)
        same = (said.hostname, said.port) == (issuer.hostname, issuer.port)
        declared = said.hostname in self.settings.endpoint_hosts and said.port in (None, 443)
        local = issuer.scheme == "http" and is_loopback_address(said.hostname)
        if said.username or said.password or not (same or declared) or not (said.scheme == "https" or (local and same)):
            raise OidcRefusal("address outside of the issuer")

    def _keys_with(self, kid: Any) -> Any:
        """Return the issuer's keys; where one is not among them they are asked for again, once a minute at most."""
        from joserfc.jwk import KeySet

        now = self._clock()
        with self._lock:
            kept = self._keys
        age = _KEPT if kept is None else now - kept[0]
        known = kept is not None and (kid is None or any(key.kid == kid for key in kept[1].keys))
        if kept is not None and (age < _ASK_AGAIN or (known and age < _KEPT)):
            return kept[1]
        listed = self._asked("GET", self._endpoint("jwks_uri")).get("keys")
        usable = [one for one in listed if _is_usable(one)] if isinstance(listed, list) else []
        if not 0 < len(usable) <= 50:
            raise OidcRefusal("no keys")
        found = KeySet.import_key_set({"keys": usable})
        with self._lock:
            self._keys = now, found
        return found

    # --- the token ---

    def _token(self, code: str, proof: str, redirect: str) -> dict[str, Any]:
        from authlib.oauth2.rfc6749.parameters import prepare_token_request

        settings, headers = self.settings, {"content-type": "application/x-www-form-urlencoded"}
        said = {"code": code, "redirect_uri": redirect, "code_verifier": proof}
        ways = self.metadata().get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
        if settings.client_secret is None:
            said["client_id"] = settings.client_id
        elif "client_secret_basic" in ways:
            pair = f"{quote(settings.client_id, safe='')}:{quote(settings.client_secret, safe='')}"
            headers["authorization"] = "Basic " + base64.b64encode(pair.encode()).decode()
        else:
            said |= {"client_id": settings.client_id, "client_secret": settings.client_secret}
        body = prepare_token_request("authorization_code", "", **said)
        return self._asked("POST", self._endpoint("token_endpoint"), content=body, headers=headers)

    def _signed(self, token: str) -> dict[str, Any]:
        """Return what an ID token says, if a key of the issuer signed it by a listed algorithm."""
        from joserfc import jwt
        from joserfc.errors import JoseError

        try:
            head = json.loads(base64.urlsafe_b64decode(token.partition(".")[0] + "=="))
            if not isinstance(head, dict) or head.get("alg") not in _ALGORITHMS:
                raise OidcRefusal("algorithm")
            return jwt.decode(token, self._keys_with(head.get("kid")), algorithms=list(_ALGORITHMS)).claims
        except (JoseError, ValueError, TypeError, KeyError):
            raise OidcRefusal("signature") from None

    def _checked(self, claims: Mapping[str, Any], nonce: str) -> dict[str, Any]:
        """Refuse a token that was made by another issuer, for another client or sign-in, or at another time."""
        client, now = self.settings.client_id, self._clock()
        heard, party = claims.get("aud"), claims.get("azp")
        audience = [heard] if isinstance(heard, str) else heard if isinstance(heard, list) else []
        ends, made = _time(claims, "exp"), _time(claims, "iat")
        said, subject = claims.get("nonce"), claims.get("sub")
        wrong = {
            "issuer": claims.get("iss") != self.settings.issuer,
            "audience": client not in audience,
            "party": (len(audience) > 1 or party is not None) and party != client,
            "expired": ends <= now - _LEEWAY,
            "made": not now - _OLDEST - _LEEWAY <= made <= now + _LEEWAY,
            "not yet": "nbf" in claims and not _time(claims, "nbf") <= now + _LEEWAY,
            "nonce": not isinstance(said, str) or not hmac.compare_digest(said.encode(), nonce.encode()),
            "subject": not isinstance(subject, str) or not 0 < len(subject) <= 255,
        }
        found = next((name for name, is_wrong in wrong.items() if is_wrong), None)
        if found is not None:
            raise OidcRefusal(found)
        return dict(claims)

    # --- the network ---

    def _asked(self, method: str, address: str, **more: Any) -> dict[str, Any]:
        """Ask an address of the issuer: no redirect, no proxy of the environment, so much time and so many bytes."""
        import httpx

        self._check_address(address)
        until, parts, size = time.monotonic() + _SLOWEST, [], 0
        try:
            with (
                httpx.Client(follow_redirects=False, timeout=_SLOWEST / 2, trust_env=False) as client,
                client.stream(method, address, **more) as answer,
            ):
                if answer.status_code != 200:
                    raise OidcRefusal("status of the provider")
                for part in answer.iter_bytes(16_384):
                    size += len(part)
                    parts.append(part)
                    if size > _LARGEST or time.monotonic() > until:
                        raise OidcRefusal("size or time of the provider")
            found = json.loads(b"".join(parts))
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, ValueError, RecursionError) as error:
            show_hidden(error)
            raise OidcRefusal("provider cannot be reached") from None
        if not isinstance(found, dict):
            raise OidcRefusal("answer of the provider")
        return found


@final
class _Few:
    """Two sign-ins ask the provider at a time: if it is slow, threads are left for everybody else."""

    def __init__(self, few: BoundedSemaphore) -> None:
        self._few = few

    def __enter__(self) -> None:
        if not self._few.acquire(timeout=2.0):
            raise Problem("unavailable", "many people sign in at the moment: try again")

    def __exit__(self, *error: object) -> None:
        self._few.release()


def _time(claims: Mapping[str, Any], name: str) -> float:
    value = claims.get(name)
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not abs(value) < 1e12:
        raise OidcRefusal(name)
    return float(value)


def _is_usable(key: Any) -> bool:
    """Tell whether a key is a public one for signatures, and long enough."""
    if not isinstance(key, dict) or key.get("kty") not in _KEY_KINDS or key.get("use") == "enc":
        return False
    return key["kty"] != "RSA" or len(str(key.get("n", ""))) * 6 >= _SHORTEST_RSA
