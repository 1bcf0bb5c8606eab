"""How a notebook gets a token without a password in it: it shows a code, and a person allows it on a page (RFC 8628).

The program asks for two codes. The long one is its own secret; the short one a person who is signed in types on
`/device`, where they see what is asked for and allow some of it. Only then the program gets a token, once, that ends
after some hours. Whoever guesses short codes has a few tries an hour, for one of 2.6 · 10¹⁰.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, final

from discreet.noise.source import read
from discreet.server.accounts import Accounts, Caller, secret
from discreet.server.problems import Problem
from discreet.server.state_store import ServerState

__all__ = ["DEVICE_SCOPES", "DeviceCodes", "DeviceRequest"]

DEVICE_SCOPES = (
    "read",
    "ask",
    "release",
    "audit",
)  # Who approves and manages does it on a page, or makes a token there.
_LETTERS = "BCDFGHJKLMNPQRSTVWXZ"  # no vowels, so no words; none that looks like a digit
_LENGTH = 8
_LASTS, _INTERVAL = 600.0, 5.0  # seconds of a code, and between two times that a program asks
_TOKEN_LASTS = 8 * 3600.0
_MOST_WAITING = 10_000
_MOST_TRIES, _TRIES_IN = 10, 3600.0  # wrong codes of an account
_LONGEST_LABEL = 60


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRequest:
    """What a program asks for, as the person sees it who may allow it."""

    code: str
    label: str  # what the program calls itself: anybody can call themselves anything
    scopes: tuple[str, ...]
    asked: float


@final
class DeviceCodes:
    """The codes of a server."""

    def __init__(self, state: ServerState, accounts: Accounts) -> None:
        self._state, self._accounts = state, accounts

    # --- the program ---

    def begin(self, label: str, scopes: Iterable[str]) -> dict[str, Any]:
        """Return two new codes, which nobody has allowed yet."""
        asked = tuple(dict.fromkeys(scopes))
        if not asked or not set(asked) <= set(DEVICE_SCOPES):
            raise Problem("invalid", f"scopes are among {', '.join(DEVICE_SCOPES)}")
        device, user, now = f"dsd_{secret()}", _short_code(), self._state.now()
        shown = "".join(letter if letter.isprintable() else " " for letter in label)[:_LONGEST_LABEL]
        with self._state.changing() as database:
            database.execute("DELETE FROM devices WHERE until < ?", (now - _LASTS,))  # They stay known as expired.
            waiting = database.execute("SELECT COUNT(*) AS n FROM devices").fetchone()["n"]
            if waiting >= _MOST_WAITING:
                raise Problem("too-many", "too many codes wait at the moment")
            database.execute(
                "INSERT INTO devices VALUES (?, ?, 'waiting', ?, ?, '', '', ?, 0, ?)",
                (_digest(device), _digest(user), shown, " ".join(asked), now, now + _LASTS),
            )
        return {
            "device_code": device,
            "user_code": f"{user[:4]}-{user[4:]}",
            "expires_in": int(_LASTS),
            "interval": int(_INTERVAL),
        }

    def redeem(self, device: str) -> dict[str, Any]:
        """Return the token, once, if a person allowed it; else say how it stands."""
        now, digest = self._state.now(), _digest(device)
        with self._state.changing() as database:
            row = database.execute("SELECT * FROM devices WHERE digest = ?", (digest,)).fetchone()
            if row is None or row["until"] <= now or row["state"] == "used":
                raise Problem("expired-code")
            too_soon = now - row["polled"] < _INTERVAL
            if not too_soon:
                database.execute("UPDATE devices SET polled = ? WHERE digest = ?", (now, digest))
            if not too_soon and row["state"] in ("approved", "denied"):
                database.execute("UPDATE devices SET state = 'used' WHERE digest = ?", (digest,))
        if too_soon:
            raise Problem("slow-down")
        if row["state"] == "waiting":
            raise Problem("authorization-pending")
        if row["state"] == "denied":
            raise Problem("access-denied")
        given = json.loads(row["granted"])
        made = self._accounts.new_token(row["name"], **given, seconds=_TOKEN_LASTS, by=row["name"])
        return {"token": made, "scopes": given["scopes"], "expires_in": int(_TOKEN_LASTS)}

    # --- the person ---

    def look(self, caller: Caller, typed: str) -> DeviceRequest:
        """Return what a short code stands for. A wrong one counts: there are a few tries an hour."""
        now, code = self._state.now(), _normal(typed)
        with self._state.changing() as database:
            database.execute("DELETE FROM device_tries WHERE at < ?", (now - _TRIES_IN,))
            tried = database.execute("SELECT COUNT(*) AS n FROM device_tries WHERE name = ?", (caller.name,))
            if tried.fetchone()["n"] >= _MOST_TRIES:
                raise Problem("too-many", "too many wrong codes: try again in an hour")
            query = "SELECT * FROM devices WHERE user_digest = ? AND state = 'waiting' AND until > ?"
            row = database.execute(query, (_digest(code), now)).fetchone()
            if row is None:
                database.execute("INSERT INTO device_tries VALUES (?, ?)", (caller.name, now))
        if row is None:
            raise Problem("invalid", "this code is not known, was used, or has expired: begin anew in the notebook")
        return DeviceRequest(code=code, label=row["label"], scopes=tuple(row["scopes"].split()), asked=row["asked"])

    def decide(
        self, caller: Caller, typed: str, *, scopes: Iterable[str], datasets: Iterable[str] | None, cap: str | None
    ) -> None:
        """Allow a code, in the name of the caller: no more than was asked for. No scope at all denies it."""
        asked, chosen = self.look(caller, typed), tuple(scopes)
        if not set(chosen) <= set(asked.scopes):
            raise Problem("invalid", "the program did not ask for this")
        only = None if datasets is None else sorted(datasets)
        if only is not None and not all(map(caller.sees, only)):
            raise Problem("not-found")
        if chosen:
            self._accounts.check_token(caller.name, scopes=chosen, cap=cap, seconds=_TOKEN_LASTS)
        granted = json.dumps({"scopes": list(chosen), "datasets": only, "cap": cap})
        state = "approved" if chosen else "denied"
        with self._state.changing() as database:
            change = "UPDATE devices SET state = ?, name = ?, granted = ? WHERE user_digest = ? AND state = 'waiting'"
            found = database.execute(change, (state, caller.name, granted, _digest(asked.code))).rowcount
        if not found:
            raise Problem("invalid", "somebody decided about this code at the same time")
        self._state.decide(caller.name, "device", outcome=state, about=" ".join(chosen))


def _short_code() -> str:
    """Return letters that are all equally likely."""
    found = ""
    while len(found) < _LENGTH:
        (byte,) = read(1)
        if byte < 256 - 256 % len(_LETTERS):
            found += _LETTERS[byte % len(_LETTERS)]
    return found


def _normal(typed: str) -> str:
    return "".join(letter for letter in typed[:40].upper() if letter in _LETTERS)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
