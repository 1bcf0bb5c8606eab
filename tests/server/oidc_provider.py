"""A small provider of OpenID Connect on loopback, for tests: honest, unless it is told to lie in one way."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwk, jwt

CLIENT, SECRET = "discreet", "a client secret & more"


@dataclass
class Provider:
    """What it says, what it was asked, and which lie it tells."""

    issuer: str = ""
    person: dict[str, Any] = field(default_factory=lambda: {"sub": "s-1", "preferred_username": "una"})
    claims: dict[str, Any] = field(default_factory=dict)  # over what is honest; None leaves one out
    metadata: dict[str, Any] = field(default_factory=dict)
    header: dict[str, Any] = field(default_factory=dict)
    lie: str = ""  # one of the words that `token` and the handler know
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    numbers: Any = field(default_factory=count)
    key: Any = field(default_factory=lambda: jwk.RSAKey.generate_key(2048, {"kid": "k1", "use": "sig"}))
    other: Any = field(default_factory=lambda: jwk.RSAKey.generate_key(2048, {"kid": "k1"}))

    def document(self) -> dict[str, Any]:
        said = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
        }
        return said | self.metadata

    def keys(self) -> dict[str, Any]:
        public = [self.key.as_dict(private=False)]
        if self.lie == "shared key":
            public.append({"kty": "oct", "kid": "k2", "k": _encoded(b"k" * 32)})
        return {"keys": public}

    def authorize(self, query: dict[str, str]) -> str:
        """Sign the person in, and return where the browser goes back to."""
        code = f"code-{next(self.numbers)}"
        self.codes[code] = query
        return query["redirect_uri"] + "?" + urlencode({"code": code, "state": query["state"]})

    def token(self, form: dict[str, str], authorization: str) -> tuple[int, dict[str, Any]]:
        begun = self.codes.pop(form.get("code", ""), None)
        pair = base64.b64decode(authorization.removeprefix("Basic ")).decode()
        if begun is None or pair != f"{CLIENT}:a%20client%20secret%20%26%20more":
            return 400, {"error": "invalid_grant"}
        proof = hashlib.sha256(form["code_verifier"].encode()).digest()
        right = _encoded(proof) == begun["code_challenge"]
        if not right or form["redirect_uri"] != begun["redirect_uri"]:
            return 400, {"error": "invalid_grant"}
        return 200, {"token_type": "Bearer", "access_token": "x", "id_token": self.id_token(begun["nonce"])}

    def id_token(self, nonce: str) -> str:
        now = int(time.time())
        said = {"iss": self.issuer, "aud": CLIENT, "exp": now + 300, "iat": now, "nonce": nonce} | self.person
        said = {name: value for name, value in (said | self.claims).items() if value is not None}
        if self.lie == "none":
            return ".".join(_encoded(json.dumps(part).encode()) for part in ({"alg": "none"}, said)) + "."
        if self.lie in ("HS256", "shared key"):
            public = self.lie == "HS256"  # The old confusion: the public key, as if it were a shared secret.
            secret = self.key.as_pem(private=False) if public else b"k" * 32
            head = {"alg": "HS256", "kid": "k1" if public else "k2"}
            text = ".".join(_encoded(json.dumps(part).encode()) for part in (head, said))
            return f"{text}.{_encoded(hmac.digest(secret, text.encode(), 'sha256'))}"
        key = self.other if self.lie == "key" else self.key
        return jwt.encode({"alg": "RS256", "kid": "k1"} | self.header, said, key)


def _encoded(part: bytes) -> str:
    return base64.urlsafe_b64encode(part).decode().rstrip("=")


@contextmanager
def provided() -> Iterator[Provider]:
    """Run a provider on loopback."""
    provider = Provider()

    class _Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            where = urlsplit(self.path)
            provider.asked.append(where.path)
            if provider.lie == "redirect":
                return self._sent(302, {}, {"location": f"{provider.issuer}/elsewhere"})
            if provider.lie == "large":
                return self._sent(200, {"x": "y" * (300 << 10)})
            if where.path == "/authorize":
                query = {name: values[0] for name, values in parse_qs(where.query).items()}
                return self._sent(302, {}, {"location": provider.authorize(query)})
            found = {"/.well-known/openid-configuration": provider.document, "/keys": provider.keys}.get(where.path)
            return self._sent(404, {}) if found is None else self._sent(200, found())

        def do_POST(self) -> None:
            provider.asked.append(self.path)
            body = self.rfile.read(int(self.headers["content-length"])).decode()
            form = {name: values[0] for name, values in parse_qs(body).items()}
            self._sent(*provider.token(form, self.headers.get("authorization", "")))

        def _sent(self, status: int, document: dict[str, Any], headers: dict[str, str] | None = None) -> None:
            text = json.dumps(document).encode()
            self.send_response(status)
            for name, value in ({"content-length": str(len(text))} | (headers or {})).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *said: Any) -> None:
            pass

    serving = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    provider.issuer = f"http://127.0.0.1:{serving.server_port}"
    thread = Thread(target=serving.serve_forever, daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        serving.shutdown()
        serving.server_close()
        thread.join()
