"""People, what their roles allow, passwords, tokens and visits: who may do what, in one table.

A password is kept as argon2id, a token and the cookie of a visit as SHA-256: each holds 256 bits of the one source of
randomness, so that nothing slower is needed. They are found by a public part and compared in constant time.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from functools import cache
from threading import BoundedSemaphore
from typing import TYPE_CHECKING, Any, final

from discreet.errors import InvalidParameter, MissingLibrary
from discreet.exact import positive
from discreet.names import check_name
from discreet.noise.source import read
from discreet.server.problems import Problem
from discreet.server.state_store import ServerState, StateChange

if TYPE_CHECKING:
    from argon2 import PasswordHasher

__all__ = [
    "OPERATIONS",
    "SCOPES",
    "AccountRole",
    "Accounts",
    "Caller",
    "Operation",
    "end_ways_in",
    "nobodys_password",
    "secret",
]

# --- roles ---


@final
class AccountRole(Enum):
    """What somebody is here."""

    OWNER = "owner"
    CUSTODIAN = "custodian"
    ANALYST = "analyst"
    AUDITOR = "auditor"
    AGENT = "agent"
    READER = "reader"


@final
@dataclass(frozen=True, slots=True)
class Operation:
    """Who may do one thing: the roles, and the scope that a token needs for it."""

    roles: frozenset[AccountRole]
    scope: str


SCOPES = ("read", "ask", "release", "audit", "approve", "manage")
_ALL = frozenset(AccountRole)
_ASKING = frozenset({AccountRole.OWNER, AccountRole.CUSTODIAN, AccountRole.ANALYST, AccountRole.AGENT})
_HOLDING = frozenset({AccountRole.OWNER, AccountRole.CUSTODIAN})
_CHECKING = frozenset({AccountRole.OWNER, AccountRole.CUSTODIAN, AccountRole.AUDITOR})
_MANAGING = frozenset({AccountRole.OWNER, AccountRole.CUSTODIAN})
# The whole of who may do what. An address without an operation here cannot be served; tests try every role on all.
OPERATIONS: Mapping[str, Operation] = {
    "me": Operation(_ALL, "read"),
    "datasets": Operation(_ALL, "read"),
    "dataset": Operation(_ALL, "read"),
    "estimate": Operation(_ASKING, "ask"),
    "dummy": Operation(_ASKING, "ask"),
    "release": Operation(_ASKING, "release"),
    "releases": Operation(_ALL, "read"),
    "plans": Operation(_CHECKING, "read"),
    "plan estimate": Operation(_HOLDING, "ask"),
    "plan release": Operation(_HOLDING, "release"),
    "budget": Operation(_ALL - {AccountRole.READER}, "read"),
    "history": Operation(_ALL - {AccountRole.READER}, "read"),
    "ledger": Operation(_CHECKING, "audit"),
    "approvals": Operation(_ALL - {AccountRole.READER}, "read"),
    "approval": Operation(_HOLDING, "read"),
    "approve": Operation(_HOLDING, "approve"),
    "withdraw": Operation(_ASKING, "release"),
    "data": Operation(_HOLDING, "approve"),  # in a browser only
    "exact look": Operation(_HOLDING, "approve"),  # in a browser only
    "log": Operation(frozenset({AccountRole.OWNER, AccountRole.AUDITOR}), "audit"),
    # What others typed is not for programs that follow texts: agents see no saved questions.
    "questions": Operation(_ALL - {AccountRole.AGENT}, "read"),
    "save": Operation(_ASKING - {AccountRole.AGENT}, "ask"),
    "health": Operation(_CHECKING, "audit"),
    "metrics": Operation(_MANAGING, "audit"),
    "people": Operation(_MANAGING, "manage"),
    "tokens": Operation(_ALL - {AccountRole.AGENT}, "manage"),
    "device": Operation(_ALL, "read"),  # for anybody: a program that has no token yet
}
# Whose releases and charges are shown: those of everybody, or their own.
_SEE_ALL = frozenset({AccountRole.OWNER, AccountRole.CUSTODIAN, AccountRole.AUDITOR, AccountRole.READER})


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who asks: a person, by a visit in a browser or by a token, which may allow less than the person's role."""

    name: str
    role: AccountRole
    granted: frozenset[str] | None  # data sets; None for all
    scopes: frozenset[str] = frozenset(SCOPES)
    token: str | None = None  # its public part
    form_token: str | None = None  # what a form of this visit must send; None for a token
    invited: bool = False  # whether this visit began by an invitation

    def check(self, operation: str, dataset: str | None = None) -> None:
        """Refuse what this caller may not do. A data set that they may not see is one that is not there."""
        if dataset is not None and not self.sees(dataset):
            raise Problem("not-found")
        allowed = OPERATIONS[operation]
        if self.role not in allowed.roles:
            raise Problem("forbidden", f"the role {self.role.value} may not do this")
        if allowed.scope not in self.scopes:
            raise Problem("forbidden", f"this token has no scope {allowed.scope}")

    def may(self, operation: str) -> bool:
        """Tell whether a page should offer something."""
        return self.role in OPERATIONS[operation].roles and OPERATIONS[operation].scope in self.scopes

    def sees(self, dataset: str) -> bool:
        """Tell whether this caller may know of a data set."""
        return self.granted is None or dataset in self.granted

    @property
    def sees_all(self) -> bool:
        """Whether what others asked is shown to this caller, on the data sets that they may see."""
        return self.role in _SEE_ALL


# --- secrets ---


_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}", re.ASCII)
_LEAST_PASSWORD, _LONGEST_PASSWORD = 12, 1_000
_MOST_FAILURES, _LOCKED = 5, 900.0  # tries of a password, and seconds of a lock-out after them
_VISIT = 8 * 3600.0  # seconds of a visit in a browser
_INVITED = 7 * 86_400.0
_COUNTED = (
    "INSERT INTO failures VALUES (?, ?, ?, ?) ON CONFLICT (name) DO UPDATE SET count = excluded.count,"
    " last = excluded.last, locked_until = excluded.locked_until"
)
_VOID_KEPT = (
    "UPDATE tokens SET revoked = 1 WHERE name = ? AND kind = 'invitation' AND EXISTS (SELECT 1 FROM people"
    " WHERE people.name = ? AND (password IS NOT NULL OR name IN (SELECT name FROM identities)))"
)
_HASHING = BoundedSemaphore(2)  # each takes 64 MB


def secret(size: int = 32) -> str:
    """Return a new secret, as hexadecimal digits."""
    return read(size).hex()


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _hasher() -> PasswordHasher:
    try:
        from argon2 import PasswordHasher
    except ModuleNotFoundError:
        raise MissingLibrary("the server needs argon2-cffi: pip install 'discreet[server]'") from None
    return PasswordHasher()


def _hashed(password: str) -> str:
    with _HASHING:
        return _hasher().hash(password, salt=read(16))


@cache
def nobodys_password() -> str:
    """Return what the password of nobody is compared with, to take as long; a server makes it when it starts."""
    return _hashed(secret())


def _matches(stored: str, password: str) -> bool:
    from argon2.exceptions import InvalidHashError, VerificationError

    try:
        with _HASHING:
            return _hasher().verify(stored, password)
    except (VerificationError, InvalidHashError):
        return False


# --- accounts ---


def end_ways_in(database: StateChange, name: str) -> None:
    """End the visits of somebody, and what was begun in them: a tie to a provider, a code that was not redeemed yet."""
    database.execute("DELETE FROM visits WHERE name = ?", (name,))
    database.execute("DELETE FROM sign_ins WHERE name = ?", (name,))
    database.execute("UPDATE devices SET state = 'used' WHERE name = ? AND state = 'approved'", (name,))


@final
class Accounts:
    """The people of a server. Every change is a decision on record."""

    def __init__(self, state: ServerState) -> None:
        self._state = state

    def add(self, name: str, role: AccountRole, datasets: Iterable[str], *, by: str) -> str:
        """Add somebody, and return the invitation with which they sign in first, once, within a week."""
        if not _NAME.fullmatch(name):
            raise InvalidParameter(
                "a name has letters, digits and . _ @ -, at most 64, and begins with one of the first"
            )
        granted = sorted({check_name(dataset, name="dataset") for dataset in datasets})
        if self._state.row("SELECT 1 FROM people WHERE LOWER(name) = LOWER(?)", name) is not None:
            raise InvalidParameter(f"there is somebody of the name {name} already")
        with self._state.changing() as database:
            since = self._state.now()
            database.execute("INSERT INTO people (name, role, since) VALUES (?, ?, ?)", (name, role.value, since))
            database.executemany("INSERT INTO grants VALUES (?, ?)", [(name, dataset) for dataset in granted])
        self._state.decide(by, "user add", about=f"{name} {role.value}")
        return self.invite(name, by=by)

    def invite(self, name: str, *, by: str) -> str:
        """Return a new invitation, which is used once."""
        return self._new_token(name, "invitation", (), None, None, _INVITED, by=by)

    def new_token(
        self,
        name: str,
        *,
        scopes: Iterable[str],
        datasets: Iterable[str] | None,
        cap: str | None,
        seconds: float,
        by: str,
    ) -> str:
        """Return a new token of somebody, for programs; it is shown once and kept as a digest."""
        asked = tuple(dict.fromkeys(scopes))
        self.check_token(name, scopes=asked, cap=cap, seconds=seconds)
        return self._new_token(name, "token", asked, datasets, cap, seconds, by=by)

    def check_token(self, name: str, *, scopes: Iterable[str], cap: str | None, seconds: float) -> None:
        """Refuse a token that cannot be made."""
        asked = set(scopes)
        if not asked or not asked <= set(SCOPES):
            raise InvalidParameter(f"scopes are among {', '.join(SCOPES)}")
        person = self._person(name)
        if cap is not None:
            positive(cap, name="cap")
        if person["role"] == AccountRole.AGENT.value and "release" in asked and cap is None:
            raise InvalidParameter("a token of an agent that releases needs a cap: the ε that it may spend in all")
        if not 0 < seconds <= 366 * 86_400:
            raise InvalidParameter("a token lasts at most 366 days")

    def _new_token(
        self,
        name: str,
        kind: str,
        scopes: Iterable[str],
        datasets: Iterable[str] | None,
        cap: str | None,
        seconds: float,
        *,
        by: str,
    ) -> str:
        self._person(name)
        public, hidden, now = secret(8), secret(), self._state.now()
        only = None if datasets is None else "\n".join(sorted(datasets))
        with self._state.changing() as database:
            database.execute(
                "INSERT INTO tokens VALUES (?, ?, ?, ?, ?, ?, ?, '0', ?, ?, 0)",
                (public, _digest(hidden), name, kind, " ".join(scopes), only, cap, now, now + seconds),
            )
        self._state.decide(by, f"{kind} new", about=f"{name} {public}")
        return f"dsc_{public}_{hidden}"

    def revoke(self, public: str, *, by: str) -> None:
        """Take a token back, from now on."""
        with self._state.changing() as database:
            found = database.execute("UPDATE tokens SET revoked = 1 WHERE id = ?", (public,)).rowcount
        if not found:
            raise InvalidParameter("there is no such token: see `discreet token list`")
        self._state.decide(by, "token revoke", about=public)

    def grant(self, name: str, datasets: Iterable[str], *, revoke: bool = False, by: str) -> None:
        """Grant somebody data sets, or take them back; what was asked before stays on record."""
        if self._person(name)["role"] == AccountRole.OWNER.value:
            raise InvalidParameter("an owner sees every data set: nothing is granted to them or taken back")
        named = sorted({check_name(dataset, name="dataset") for dataset in datasets})
        if not named:
            raise InvalidParameter("no data set was named: say --dataset, once or several times")
        change = (
            "DELETE FROM grants WHERE name = ? AND dataset = ?"
            if revoke
            else "INSERT INTO grants VALUES (?, ?) ON CONFLICT DO NOTHING"
        )
        with self._state.changing() as database:
            database.executemany(change, [(name, dataset) for dataset in named])
            if not revoke:  # Whoever kept an invitation to an account that is in use would come to see more by it.
                database.execute(_VOID_KEPT, (name, name))
        for dataset in named:
            self._state.decide(by, "user revoke" if revoke else "user grant", dataset=dataset, about=name)

    def disable(self, name: str, *, by: str) -> None:
        """Let somebody do nothing any more; what they asked stays on record."""
        self._person(name)
        with self._state.changing() as database:
            self._check_owner_stays(name)
            database.execute("UPDATE people SET disabled = 1 WHERE name = ?", (name,))
            database.execute("UPDATE tokens SET revoked = 1 WHERE name = ?", (name,))
            end_ways_in(database, name)
        self._state.decide(by, "user disable", about=name)

    def enable(self, name: str, *, by: str) -> None:
        """Let somebody sign in again who was disabled; their tokens stay revoked."""
        with self._state.changing() as database:
            found = database.execute("UPDATE people SET disabled = 0 WHERE name = ? AND disabled = 1", (name,)).rowcount
        if not found:
            raise InvalidParameter(f"nobody of the name {name!r} is disabled: see `discreet user list`")
        self._state.decide(by, "user enable", about=name)

    def change_role(self, name: str, role: AccountRole, *, by: str) -> None:
        """Give somebody another role. Visits end and tokens are revoked: they were made for the old one."""
        if self._person(name)["role"] == role.value:
            return
        with self._state.changing() as database:
            self._check_owner_stays(name)
            database.execute("UPDATE people SET role = ? WHERE name = ?", (role.value, name))
            database.execute("UPDATE tokens SET revoked = 1 WHERE name = ?", (name,))
            end_ways_in(database, name)
            if role is AccountRole.OWNER:
                database.execute("DELETE FROM grants WHERE name = ?", (name,))
        self._state.decide(by, "user role", about=f"{name} {role.value}")

    def end_all(self, name: str, *, by: str) -> None:
        """End all visits of somebody, and revoke all tokens."""
        with self._state.changing() as database:
            database.execute("UPDATE tokens SET revoked = 1 WHERE name = ?", (name,))
            end_ways_in(database, name)
        self._state.decide(by, "user end", about=name)

    def is_linked(self, name: str) -> bool:
        """Tell whether somebody signs in by a provider: they keep no password."""
        return self._state.row("SELECT 1 AS one FROM identities WHERE name = ?", name) is not None

    def unlink(self, name: str, *, by: str) -> None:
        """Untie somebody from the provider by which they signed in: an invitation lets them in again."""
        with self._state.changing() as database:
            found = database.execute("DELETE FROM identities WHERE name = ?", (name,)).rowcount
        if not found:
            raise InvalidParameter(f"{name} does not sign in by a provider")
        self._state.decide(by, "user unlink", about=name)

    def _check_owner_stays(self, name: str) -> None:
        """Refuse to take the last owner away: nobody could make another but by the command line."""
        owners = self._state.rows("SELECT name FROM people WHERE role = 'owner' AND disabled = 0")
        if [row["name"] for row in owners] == [name]:
            raise InvalidParameter(f"{name} is the last owner: make another one first")

    def people(self) -> list[dict[str, Any]]:
        """Return everybody: name, role, data sets."""
        found = self._state.rows("SELECT name, role, disabled, password IS NOT NULL AS known FROM people ORDER BY name")
        linked = {row["name"] for row in self._state.rows("SELECT name FROM identities")}
        return [
            dict(row)
            | {
                "datasets": self._grants(row["name"]),
                "signs_in_by": "provider" if row["name"] in linked else "password" if row["known"] else "invitation",
            }
            for row in found
        ]

    def tokens(self) -> list[dict[str, Any]]:
        """Return all tokens without their secrets."""
        wanted = "id, name, kind, scopes, datasets, cap, used, until, revoked"
        return [dict(row) for row in self._state.rows(f"SELECT {wanted} FROM tokens ORDER BY since, id")]

    def has_password(self, name: str) -> bool:
        """Tell whether somebody set a password."""
        return self._person(name)["password"] is not None

    def change_password(self, name: str, password: str, *, current: str, invited: bool = False) -> None:
        """Set a password; whoever has one says it first, so that a browser that is left open gives no account away.

        Whoever came by an invitation does not: it is how a forgotten password is replaced.
        """
        self.confirm(name, current, invited=invited)
        self.set_password(name, password)

    def confirm(self, name: str, current: str, *, invited: bool = False) -> None:
        """Refuse to change how somebody signs in unless they say their password, if they have one."""
        stored = None if invited else self._person(name)["password"]
        if stored is not None and (not _matches(stored, current[:_LONGEST_PASSWORD]) or self._is_locked(name)):
            self._failed(name)
            raise Problem("invalid", "the current password is wrong, or signing in is locked for a while")

    def _is_locked(self, name: str) -> bool:
        row = self._state.row("SELECT locked_until FROM failures WHERE name = ?", name)
        return row is not None and row["locked_until"] > self._state.now()

    def set_password(self, name: str, password: str) -> None:
        """Set a password; all visits of this person end, and invitations that were not used are void."""
        if self.is_linked(name):
            raise Problem("invalid", "this account signs in by the provider, and keeps no password")
        if not _LEAST_PASSWORD <= len(password) <= _LONGEST_PASSWORD:
            raise Problem("invalid", f"a password has at least {_LEAST_PASSWORD} letters")
        hashed = _hashed(password)
        with self._state.changing() as database:
            database.execute("UPDATE people SET password = ? WHERE name = ?", (hashed, name))
            end_ways_in(database, name)
            database.execute("UPDATE tokens SET revoked = 1 WHERE name = ? AND kind = 'invitation'", (name,))
        self._state.decide(name, "password set")

    # --- signing in ---

    def sign_in(self, name: str, password: str) -> tuple[str, str]:
        """Begin a visit with a password: the secret of its cookie, and that of its forms.

        A wrong name, a wrong password and a lock-out look the same, and take as long.
        """
        person = self._state.row("SELECT * FROM people WHERE name = ? AND disabled = 0", name)
        stored = None if person is None else person["password"]
        right = _matches(stored or nobodys_password(), password[:_LONGEST_PASSWORD]) and stored is not None
        if not right or person is None or self._is_locked(name):
            self._failed("" if person is None else name)
            raise Problem("not-signed-in", "name or password is wrong, or signing in is locked for a while")
        return self._begin(name, "password")

    def accept(self, invitation: str) -> tuple[str, str]:
        """Begin a visit with an invitation, which is used up."""
        row = self._token_row(invitation, "invitation")
        with self._state.changing() as database:
            used = database.execute("UPDATE tokens SET revoked = 1 WHERE id = ? AND revoked = 0", (row["id"],)).rowcount
        if not used:
            raise Problem("not-signed-in", "this invitation is not known, was used, or has expired")
        return self._begin(row["name"], "invitation")

    def begin_by_provider(self, name: str) -> tuple[str, str]:
        """Begin a visit of somebody whom the provider vouches for."""
        person = self._state.row("SELECT role FROM people WHERE name = ? AND disabled = 0", name)
        if person is None or person["role"] == AccountRole.AGENT.value:
            raise Problem("not-signed-in", "this account is disabled, or is one of a program")
        return self._begin(name, "provider")

    def _begin(self, name: str, by: str) -> tuple[str, str]:
        """Begin a visit under a new secret: what a browser brought with it is never taken over."""
        cookie, form_token, now = secret(), secret(), self._state.now()
        with self._state.changing() as database:
            database.execute("DELETE FROM visits WHERE until < ?", (now,))
            database.execute("DELETE FROM failures WHERE name = ?", (name,))
            database.execute(
                "INSERT INTO visits VALUES (?, ?, ?, ?, ?)", (_digest(cookie), name, form_token, by, now + _VISIT)
            )
        self._state.decide(name, "sign in", about=by)
        return cookie, form_token

    def _failed(self, name: str) -> None:
        """Count a failure of an account. Whatever else was typed, maybe a password, is nobody's: the empty name.

        Tries during a lock do not prolong it, and after it counting begins anew. The same is written in every case,
        so that it takes as long.
        """
        now = self._state.now()
        with self._state.changing() as database:
            database.execute("DELETE FROM failures WHERE last < ?", (now - 86_400,))
            row = database.execute("SELECT * FROM failures WHERE name = ?", (name,)).fetchone()
            count, last, until = (0, now, 0.0) if row is None else (row["count"], row["last"], row["locked_until"])
            if until <= now:
                count, last = 1 if until else count + 1, now
                until = now + _LOCKED if count >= _MOST_FAILURES else 0.0
            database.execute(_COUNTED, (name, count, last, until))
        self._state.decide("", "sign in", outcome="locked" if until and name else "refused", about=name)

    def sign_out(self, cookie: str, *, name: str) -> None:
        """End a visit."""
        with self._state.changing() as database:
            database.execute("DELETE FROM visits WHERE digest = ?", (_digest(cookie),))
            database.execute("DELETE FROM sign_ins WHERE name = ?", (name,))
        self._state.decide(name, "sign out")

    def visitor(self, cookie: str) -> Caller | None:
        """Return who visits under a cookie; None if nobody does."""
        row = self._state.row("SELECT * FROM visits WHERE digest = ? AND until > ?", _digest(cookie), self._state.now())
        if row is None:
            return None
        caller = self._caller(row["name"])
        # Agents are programs, and come with tokens that have a cap.
        if caller is None or caller.role is AccountRole.AGENT:
            return None
        return replace(caller, form_token=row["form_token"], invited=row["began_by"] == "invitation")

    def bearer(self, token: str) -> Caller:
        """Return who sends a token."""
        row = self._token_row(token, "token")
        caller = self._caller(row["name"])
        if caller is None:
            raise Problem("not-signed-in", "this token is not known, was revoked, or has expired")
        only = None if row["datasets"] is None else frozenset(row["datasets"].split("\n"))
        granted = only if caller.granted is None else caller.granted if only is None else caller.granted & only
        scopes = frozenset(row["scopes"].split())
        return Caller(name=caller.name, role=caller.role, granted=granted, scopes=scopes, token=row["id"])

    def pay_by(self, token: str, epsilon: Fraction | None) -> None:
        """Take a price off the cap of a token, if it has one, or refuse; what is refused later is not given back."""
        with self._state.changing() as database:
            row = database.execute("SELECT cap, used FROM tokens WHERE id = ?", (token,)).fetchone()
            if row is None or row["cap"] is None:
                return
            if epsilon is None:
                raise Problem("invalid", "this token has a cap of ε: say the price as epsilon")
            used = Fraction(row["used"]) + epsilon
            if used > Fraction(row["cap"]):
                raise Problem("budget-exceeded", "the price does not fit into the cap of this token")
            database.execute("UPDATE tokens SET used = ? WHERE id = ?", (str(used), token))

    def may_still(self, name: str, dataset: str, token: str | None = None, operation: str = "release") -> bool:
        """Tell whether somebody may still ask of a data set, by the token that they used: it may be taken back."""
        if token is not None and self._state.row("SELECT 1 FROM tokens WHERE id = ? AND revoked = 0", token) is None:
            return False
        caller = self._caller(name)
        return caller is not None and caller.may(operation) and caller.sees(dataset)

    def gave_token(self, name: str, holder: str, token: str | None) -> bool:
        """Tell whether somebody made a token for another account, an agent: they have it, too."""
        query = "SELECT 1 AS one FROM decisions WHERE who = ? AND what = 'token new' AND about = ?"
        return token is not None and self._state.row(query, name, f"{holder} {token}") is not None

    def is_same_person(self, one: str, other: str) -> bool:
        """Tell whether two names are one person: a token and a visit of an account have its name."""
        return one.casefold() == other.casefold()

    def _token_row(self, token: str, kind: str) -> Any:
        _, _, rest = token.partition("dsc_")
        public, _, hidden = rest.partition("_")
        row = self._state.row("SELECT * FROM tokens WHERE id = ? AND kind = ?", public, kind)
        right = hmac.compare_digest(_digest(hidden), _digest("") if row is None else row["digest"])
        if row is None or not right or row["revoked"] or row["until"] <= self._state.now():
            known = "token" if kind == "token" else "invitation"
            raise Problem("not-signed-in", f"this {known} is not known, was revoked or used, or has expired")
        return row

    def _caller(self, name: str) -> Caller | None:
        row = self._state.row("SELECT * FROM people WHERE name = ? AND disabled = 0", name)
        if row is None:
            return None
        role = AccountRole(row["role"])
        return Caller(
            name=name, role=role, granted=None if role is AccountRole.OWNER else frozenset(self._grants(name))
        )

    def _grants(self, name: str) -> list[str]:
        return [
            row["dataset"] for row in self._state.rows("SELECT dataset FROM grants WHERE name = ? ORDER BY 1", name)
        ]

    def _person(self, name: str) -> Any:
        row = self._state.row("SELECT * FROM people WHERE name = ? AND disabled = 0", name)
        if row is None:
            raise InvalidParameter(f"there is nobody of the name {name!r}: see `discreet user list`")
        return row
