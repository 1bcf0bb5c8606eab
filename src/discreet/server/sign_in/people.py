"""What somebody may do with the accounts of others, and with their own tokens: nobody gives more than they have.

- An owner manages everybody. A custodian manages analysts, agents and readers of data sets that the custodian sees:
  nobody who checks custodians, and no other custodian, or four eyes would be two.
- Whoever gives a new secret away could use it themselves. So who gives an invitation or a role sees all that the
  account sees; and what a token makes has no more scopes, data sets or time than the token.
- There is always an owner, and nobody takes their own account away or up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, final

from discreet.errors import InvalidParameter
from discreet.server.accounts import SCOPES, AccountRole, Accounts, Caller
from discreet.server.problems import Problem
from discreet.server.state_store import ServerState

__all__ = ["ManagedPeople"]

_MANAGES: Mapping[AccountRole, frozenset[AccountRole]] = {
    AccountRole.OWNER: frozenset(AccountRole),
    AccountRole.CUSTODIAN: frozenset({AccountRole.ANALYST, AccountRole.AGENT, AccountRole.READER}),
}
_SHOWN_TOKENS = 200


@final
class ManagedPeople:
    """The accounts of a server, as somebody who is signed in manages them."""

    def __init__(self, state: ServerState, accounts: Accounts, caller: Caller) -> None:
        self._state, self._accounts, self._caller = state, accounts, caller

    # --- who is seen ---

    def listed(self) -> list[dict[str, Any]]:
        """Return whom this caller may know of, with the data sets that both see."""
        return [shown for one in self._accounts.people() if (shown := self._shown(one)) is not None]

    def person(self, name: str) -> dict[str, Any]:
        """Return somebody; whom one may not know of is not there."""
        found = next((one for one in self.listed() if one["name"] == name), None)
        if found is None:
            raise Problem("not-found")
        return found

    def _shown(self, one: Mapping[str, Any]) -> dict[str, Any] | None:
        reach, mine = self._reach(one), self._caller.granted
        shared = sorted(one["datasets"] if mine is None else mine & set(one["datasets"]))
        own = one["name"] == self._caller.name
        if mine is not None and not shared and not own:
            return None
        managed = AccountRole(one["role"]) in self.roles and not own
        return {
            "name": one["name"],
            "role": one["role"],
            "datasets": shared,
            "signs_in_by": one["signs_in_by"],
            "disabled": bool(one["disabled"]),
            "grantable": managed and one["role"] != AccountRole.OWNER.value and not one["disabled"],
            "manageable": managed and (mine is None or (reach is not None and reach <= mine)),
        }

    @staticmethod
    def _reach(one: Mapping[str, Any]) -> frozenset[str] | None:
        """Return the data sets that somebody sees; None for all."""
        return None if one["role"] == AccountRole.OWNER.value else frozenset(one["datasets"])

    @property
    def roles(self) -> frozenset[AccountRole]:
        """The roles that this caller gives and manages; a token for some data sets makes nobody who sees all."""
        found = _MANAGES.get(self._caller.role, frozenset())
        return found if self._caller.granted is None else found - {AccountRole.OWNER}

    # --- changes ---

    def add(self, name: str, role: str, datasets: Iterable[str]) -> str:
        """Add somebody, and return their invitation."""
        self._check_whole()
        given = self._role(role)
        named = self._seen(datasets)
        if self._caller.granted is not None and not named:
            raise Problem("invalid", "name a data set that is granted to them")
        if given is AccountRole.OWNER and named:
            raise Problem("invalid", "an owner sees every data set: grant them none")
        return self._accounts.add(name, given, named, by=self._caller.name)

    def invite(self, name: str) -> str:
        """Return another invitation of somebody: whoever has it signs in as them."""
        self._check_whole()
        self._managed(name)
        return self._accounts.invite(name, by=self._caller.name)

    def grant(self, name: str, datasets: Iterable[str], *, revoke: bool = False) -> None:
        """Grant data sets that this caller sees, or take them back."""
        named = self._seen(datasets)
        if not self.person(name)["grantable"]:
            raise Problem("forbidden", "this account is not yours to grant data sets to")
        self._accounts.grant(name, named, revoke=revoke, by=self._caller.name)

    def change_role(self, name: str, role: str) -> None:
        """Give somebody another role; an owner does, who sees all."""
        self._check_whole()
        if self._caller.role is not AccountRole.OWNER:
            raise Problem("forbidden", "an owner changes roles")
        self._managed(name)
        self._accounts.change_role(name, self._role(role), by=self._caller.name)

    def disable(self, name: str) -> None:
        """Let somebody do nothing any more."""
        self._managed(name)
        self._accounts.disable(name, by=self._caller.name)

    def enable(self, name: str) -> None:
        """Let somebody sign in again who was disabled; their tokens stay revoked."""
        self._check_whole()
        self._managed(name, disabled=True)
        self._accounts.enable(name, by=self._caller.name)

    def unlink(self, name: str) -> None:
        """Untie somebody from the provider by which they signed in; an owner does, and may do it to themselves."""
        self._check_whole()
        if self._caller.role is not AccountRole.OWNER or self._caller.granted is not None:
            raise Problem("forbidden", "an owner unties accounts")
        self.person(name)
        self._accounts.unlink(name, by=self._caller.name)

    def _managed(self, name: str, *, disabled: bool = False) -> None:
        found = self.person(name)
        if name == self._caller.name:
            raise Problem("forbidden", "nobody does this to their own account: another owner does, or the command line")
        if not found["manageable"]:
            raise Problem("forbidden", "this account is not yours to manage")
        if found["disabled"] is not disabled:
            raise Problem("invalid", f"{name} is {'not disabled' if disabled else 'disabled'}")

    def _role(self, role: str) -> AccountRole:
        given = next((one for one in AccountRole if one.value == role), None)
        if given is None:
            raise Problem("invalid", f"a role is one of {', '.join(one.value for one in AccountRole)}")
        if given not in self.roles:
            raise Problem("forbidden", f"the role {self._caller.role.value} makes nobody {given.value}")
        return given

    def _seen(self, datasets: Iterable[str]) -> list[str]:
        named = sorted(set(datasets))
        if not all(map(self._caller.sees, named)):
            raise Problem("not-found")
        return named

    def _check_whole(self) -> None:
        """Refuse a token that has less than its account: whoever is invited comes with all of theirs."""
        caller = self._caller
        if caller.token is not None and (caller.scopes != frozenset(SCOPES) or self._row(caller.token)["cap"]):
            raise Problem("forbidden", "this takes a visit, or a token with every scope and no cap")

    # --- tokens ---

    def tokens(self) -> list[dict[str, Any]]:
        """Return one's own tokens and those of whom one manages, without secrets; the newest first."""
        return [self._token(one) for one in reversed(self._token_rows())][:_SHOWN_TOKENS]

    def _token_rows(self) -> list[dict[str, Any]]:
        """Return all of them: what no longer fits into the list can still be revoked."""
        known = {one["name"] for one in self.listed() if one["manageable"]} if self.roles else set()
        known.add(self._caller.name)
        found = [one for one in self._accounts.tokens() if one["name"] in known]
        return sorted(found, key=lambda one: self._is_over(one), reverse=True)  # Those that work are shown first.

    def _token(self, row: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "id": row["id"],
            "name": row["name"],
            "kind": row["kind"],
            "scopes": row["scopes"].split(),
            "datasets": None if row["datasets"] is None else row["datasets"].split("\n"),
            "cap": row["cap"],
            "used": row["used"],
            "until": row["until"],
            "revoked": bool(row["revoked"]),
            "is_over": self._is_over(row),
        }

    def _is_over(self, row: Mapping[str, Any]) -> bool:
        return bool(row["revoked"]) or row["until"] <= self._state.now()

    def new_token(
        self, name: str, *, scopes: Iterable[str], datasets: Iterable[str] | None, cap: str | None, days: float
    ) -> str:
        """Return a token of one's own, or of an agent whom one manages: people make their own."""
        asked, seconds = tuple(scopes), days * 86_400.0
        if name != self._caller.name:
            self._managed(name)
            if self.person(name)["role"] != AccountRole.AGENT.value:
                raise Problem("forbidden", "people make their own tokens; an agent's are made by whoever manages it")
        elif self._caller.role is AccountRole.AGENT:
            raise Problem("forbidden", "an agent makes no tokens")
        only = self._token_datasets(datasets, own=name == self._caller.name)
        self._check_no_more(asked, seconds)
        return self._accounts.new_token(
            name, scopes=asked, datasets=only, cap=cap, seconds=seconds, by=self._caller.name
        )

    def _token_datasets(self, datasets: Iterable[str] | None, *, own: bool) -> list[str] | None:
        """Return what a token is for: none that its maker does not see, also if its account is granted more later."""
        if datasets is not None:
            return self._seen(datasets)
        limited = (self._caller.token is not None or not own) and self._caller.granted is not None
        return sorted(self._caller.granted or ()) if limited else None

    def _check_no_more(self, scopes: Iterable[str], seconds: float) -> None:
        if self._caller.token is None:
            return
        row = self._row(self._caller.token)
        if row["cap"] is not None or not set(scopes) <= self._caller.scopes:
            raise Problem("forbidden", "a token makes none with more scopes than it has, and none if it has a cap")
        if self._state.now() + seconds > row["until"]:
            raise Problem("forbidden", "a token makes none that lasts longer than itself")

    def revoke_token(self, public: str, *, of: str | None = None) -> None:
        """Take a token or an invitation back: one's own, or of somebody whom one manages."""
        if public not in {one["id"] for one in self._token_rows() if of is None or one["name"] == of}:
            raise Problem("not-found")
        self._accounts.revoke(public, by=self._caller.name)

    def _row(self, public: str) -> Any:
        row = self._state.row("SELECT cap, until FROM tokens WHERE id = ?", public)
        if row is None:
            raise InvalidParameter("there is no such token")
        return row
