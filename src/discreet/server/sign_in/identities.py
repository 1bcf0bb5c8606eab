"""Who of a provider is who here: by issuer and subject, never by an address of mail or a name that people can change.

An account is tied to a subject by its own person, who is signed in; or it is made for the subject, where whoever runs
the server declared that. An account that is tied has no password. What members of a group are is set anew at every
sign-in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

from discreet.errors import DiscreetError
from discreet.server.accounts import AccountRole, Accounts, end_ways_in
from discreet.server.sign_in.oidc import OidcRefusal
from discreet.server.sign_in.oidc_settings import OidcSettings
from discreet.server.state_store import ServerState

__all__ = ["Identities"]


@final
class Identities:
    """The people of a provider."""

    def __init__(self, state: ServerState, accounts: Accounts, settings: OidcSettings) -> None:
        self._state, self._accounts, self._settings = state, accounts, settings

    def name_of(self, claims: Mapping[str, Any]) -> str:
        """Return the account of somebody whom the provider vouches for, made where that is declared; or refuse."""
        query = "SELECT name, made FROM identities WHERE issuer = ? AND subject = ?"
        row = self._state.row(query, self._settings.issuer, claims["sub"])
        role, datasets = self._belongs(claims)
        if row is None:
            if role is None:
                raise OidcRefusal("nobody here")
            return self._make(claims, role, datasets)
        name = str(row["name"])
        if row["made"]:
            self._update(name, role, datasets)
        return name

    def tie(self, name: str, subject: str) -> None:
        """Tie an account to a subject: its password and invitations are void, and its visits end."""
        issuer, now = self._settings.issuer, self._state.now()
        with self._state.changing() as database:
            query = "SELECT 1 AS one FROM identities WHERE (issuer = ? AND subject = ?) OR name = ?"
            if database.execute(query, (issuer, subject, name)).fetchone() is not None:
                raise OidcRefusal("tied already")
            self._insert(database, subject, name, made=0, now=now)
            end_ways_in(database, name)
        self._state.decide(name, "user link", about=name)

    def _insert(self, database: Any, subject: str, name: str, *, made: int, now: float) -> None:
        row = (self._settings.issuer, subject, name, made, now)
        database.execute("INSERT INTO identities VALUES (?, ?, ?, ?, ?)", row)
        database.execute("UPDATE people SET password = NULL WHERE name = ?", (name,))
        database.execute("UPDATE tokens SET revoked = 1 WHERE name = ? AND kind = 'invitation'", (name,))

    def _belongs(self, claims: Mapping[str, Any]) -> tuple[AccountRole | None, tuple[str, ...]]:
        """Return the role and the data sets of somebody: of the first group of the file that they are in.

        Other groups of the same role add their data sets; those of another role do not, or the role would go further.
        """
        said = claims.get(self._settings.groups_claim)
        members = {one for one in said if isinstance(one, str)} if isinstance(said, list) else set()
        found = [group for group in self._settings.groups if group.name in members]
        if not found:
            return self._settings.create, ()
        same = [group for group in found if group.role is found[0].role]
        return found[0].role, tuple(sorted({one for group in same for one in group.datasets}))

    def _make(self, claims: Mapping[str, Any], role: AccountRole, datasets: tuple[str, ...]) -> str:
        name = claims.get(self._settings.name_claim)
        if not isinstance(name, str):
            raise OidcRefusal("no name")
        try:
            self._accounts.add(name, role, datasets, by="provider")
        except DiscreetError:
            raise OidcRefusal("name is taken or cannot be used") from None
        with self._state.changing() as database:
            self._insert(database, claims["sub"], name, made=1, now=self._state.now())
        return name

    def _update(self, name: str, role: AccountRole | None, datasets: tuple[str, ...]) -> None:
        """Set what the groups say now; whoever is in none any more keeps no data set, no token and no visit."""
        if not self._settings.groups:
            return
        had = {row["dataset"] for row in self._state.rows("SELECT dataset FROM grants WHERE name = ?", name)}
        try:
            if role is not None:
                self._accounts.change_role(name, role, by="provider")
            for changed, revoke in ((set(datasets) - had, False), (had - set(datasets), True)):
                if changed:
                    self._accounts.grant(name, changed, revoke=revoke, by="provider")
        except DiscreetError:
            raise OidcRefusal("account cannot be changed") from None
        if role is None:
            self._accounts.end_all(name, by="provider")
            raise OidcRefusal("in no group any more")
