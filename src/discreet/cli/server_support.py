"""`discreet serve`, `user`, `token` and `approve`: what they do, and what they answer."""

from __future__ import annotations

import getpass
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from discreet.cli.output import Block, Styled, TextTable, note, show
from discreet.cli.policies import is_plan, read_any_policy
from discreet.errors import InvalidParameter, Refused
from discreet.formatting import printable, significant_up

if TYPE_CHECKING:
    from discreet.server.accounts import AccountRole, Accounts
    from discreet.server.approvals import ApprovalBook, ApprovalLimits
    from discreet.server.listener import ServerSettings
    from discreet.server.state_store import ServerState

__all__ = [
    "NewSecret",
    "PeopleList",
    "PersonRow",
    "ServedRow",
    "ServerStarted",
    "TokenList",
    "TokenRow",
    "WaitingList",
    "WaitingRow",
    "accounts_of",
    "answer_times",
    "approval_limits",
    "decide_waiting",
    "revoke_tokens",
    "role_named",
    "run_server",
    "state_of",
    "waiting_in",
    "who_changes",
]


def answer_times(said: Sequence[str]) -> dict[str, float]:
    """Read `visits=5`, or `visits:plan=60`."""
    found = {}
    for part in said:
        name, _, seconds = part.rpartition("=")
        try:
            found[name] = float(seconds)
        except ValueError:
            raise InvalidParameter("--answer-after is DATASET=SECONDS, such as visits=5, or visits:plan=60") from None
    return found


def approval_limits(each: Sequence[str] | None, daily: Sequence[str] | None, days: float) -> ApprovalLimits | None:
    """Read `visits=0.5` and `visits:agent=0.1`; None where no limit was said."""
    if not each and not daily:
        return None
    from discreet.server.approvals import ApprovalLimits

    return ApprovalLimits.read(each or (), daily or (), days)


def _is_released(file: Path) -> bool:
    """Tell whether a policy is a plan that a server can release: series of totals so far are for `discreet release`."""
    from discreet.release import read_release_plan

    return is_plan(file) and not read_release_plan(file).running


def run_server(policies: Sequence[Path], settings: ServerSettings, *, demo: bool, check: bool, as_json: bool) -> None:
    """Open everything, say where it is, and serve until it is stopped; with `check`, end before that."""
    from discreet.server.listener import DEMO_TIMES, demo_folder, listen, opened_server, policy_files

    with ExitStack() as opened:
        if demo:
            if policies:
                raise InvalidParameter("--demo brings data of its own: leave --policy out")
            folder = opened.enter_context(demo_folder())
            policies = [folder / "policy.toml"]
            settings = replace(settings, state=folder / "server.db", answer_after=DEMO_TIMES)
            settings = replace(
                settings, state_anchor=folder / "server.db.anchor", plans=(folder / "plans" / "plan.toml",)
            )
        files = policy_files(policies, _saved_policies(settings.data_folder))
        read = [read_any_policy(file) for file in files]
        settings = replace(settings, plans=(*settings.plans, *filter(_is_released, files)))
        server = opened.enter_context(opened_server(read, settings))
        invitation = None if check else _first_run(server.accounts)
        if check:
            show(ServerStarted.of(settings.address(settings.port), server, None), as_json=as_json)
            return

        def ready(address: str) -> None:
            show(ServerStarted.of(address, server, invitation), as_json=as_json)
            sys.stdout.flush()
            note("stop it with Ctrl-C; releases that are under way end first")

        listen(server, settings, ready)


def _saved_policies(folder: Path | None) -> list[Path]:
    """Return what was saved on the page of data before."""
    from discreet.server.policy_editing import PolicyFolder

    return [] if folder is None else list(PolicyFolder(folder).policies().values())


def _first_run(accounts: Accounts) -> str | None:
    """Add an owner where there is none yet, and return how they sign in first."""
    from discreet.server.accounts import AccountRole

    people = accounts.people()
    if any(one["role"] == AccountRole.OWNER.value for one in people):
        return None
    if any(one["name"].casefold() == "owner" for one in people):
        note("nobody is an owner: add one with `discreet user add NAME --role owner`")
        return None
    return accounts.add("owner", AccountRole.OWNER, (), by="first run")


@contextmanager
def accounts_of(state: Path, *, may_begin: bool = False) -> Iterator[Accounts]:
    """Open the accounts of a server, which may be running; whoever adds somebody may begin a new state."""
    from discreet.server.accounts import Accounts

    with state_of(state, may_begin=may_begin) as opened:
        yield Accounts(opened)


@contextmanager
def state_of(state: Path, *, may_begin: bool = False) -> Iterator[ServerState]:
    """Open the state of a server, which may be running; one that is not there is not made, unless it may begin."""
    from discreet.server.state_store import opened_state, state_place

    place = state_place(state)
    if isinstance(place, Path) and not place.exists() and not may_begin:
        said = f"there is no state of a server at {printable(str(place))}: say --state, or be in the folder where it is"
        raise InvalidParameter(said)
    opened = opened_state(state)
    try:
        opened.check_anchored()
        yield opened
    finally:
        opened.close()


def who_changes() -> str:
    """Return who changes accounts on the command line, for the log of decisions."""
    return f"command line ({getpass.getuser()})"


def role_named(role: str) -> AccountRole:
    """Return a role by its name."""
    from discreet.server.accounts import AccountRole

    if role not in {one.value for one in AccountRole}:
        raise InvalidParameter(f"--role is one of {', '.join(one.value for one in AccountRole)}")
    return AccountRole(role)


def revoke_tokens(accounts: Accounts, number: str | None, all_of: str | None) -> None:
    """Revoke one token, or all of an account."""
    if (number is None) == (all_of is None):
        raise InvalidParameter("say the id of a token, or --all-of NAME")
    named = [number] if number is not None else [one["id"] for one in accounts.tokens() if one["name"] == all_of]
    for each in named:
        accounts.revoke(each, by=who_changes())


# --- answers ---


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ServedRow:
    """A data set that is served, and after how many seconds its answers leave."""

    name: str
    answer_after: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ServerStarted:
    """Where a server is, what it serves, and on its first run how the owner signs in."""

    address: str
    datasets: list[ServedRow]
    first_run_token: str | None

    @classmethod
    def of(cls, address: str, server: Any, invitation: str | None) -> ServerStarted:
        """Describe a server that is about to serve."""
        rows = [ServedRow(name=one.name, answer_after=one.answer_after) for one in server.shelf]
        return cls(address=address, datasets=rows, first_run_token=invitation)

    def blocks(self) -> Iterator[Block]:
        for one in self.datasets:
            yield f"{one.name}: answers leave after {one.answer_after:g} s"
        if self.first_run_token is not None:
            yield Styled(f"open {self.address}/login#{self.first_run_token}", "bold")
            yield f"first-run token, for one sign-in of `owner`: {self.first_run_token}"
        else:
            yield Styled(f"address {self.address}", "bold")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NewSecret:
    """What was made for somebody. It is shown this once."""

    name: str
    secret: str
    use: str

    def blocks(self) -> Iterator[Block]:
        yield f"{self.use} of {self.name}, shown this once:"
        yield Styled(self.secret, "bold")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PersonRow:
    """Somebody who has an account."""

    name: str
    role: str
    datasets: list[str]
    has_password: bool
    disabled: bool


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PeopleList:
    """Everybody who has an account."""

    people: list[PersonRow]

    @classmethod
    def of(cls, accounts: Accounts) -> PeopleList:
        """Read all accounts."""
        rows = [
            PersonRow(
                name=one["name"],
                role=one["role"],
                datasets=one["datasets"],
                has_password=bool(one["known"]),
                disabled=bool(one["disabled"]),
            )
            for one in accounts.people()
        ]
        return cls(people=rows)

    def blocks(self) -> Iterator[Block]:
        rows = [
            (one.name, one.role, "all" if one.role == "owner" else ", ".join(one.datasets), _state(one))
            for one in self.people
        ]
        yield TextTable(head=("name", "role", "data sets", ""), rows=rows)


def _state(person: PersonRow) -> str:
    return "disabled" if person.disabled else "" if person.has_password else "no password yet"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRow:
    """A token without its secret."""

    id: str
    name: str
    kind: str
    scopes: list[str]
    cap: str | None
    used: str
    until: str
    revoked: bool


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TokenList:
    """All tokens and invitations."""

    tokens: list[TokenRow]

    @classmethod
    def of(cls, accounts: Accounts) -> TokenList:
        """Read all tokens."""
        rows = [
            TokenRow(
                id=one["id"],
                name=one["name"],
                kind=one["kind"],
                scopes=one["scopes"].split(),
                cap=one["cap"],
                used=one["used"],
                until=datetime.fromtimestamp(one["until"], UTC).isoformat(timespec="seconds"),
                revoked=bool(one["revoked"]),
            )
            for one in accounts.tokens()
        ]
        return cls(tokens=rows)

    def blocks(self) -> Iterator[Block]:
        rows = [
            (one.id, one.name, one.kind, " ".join(one.scopes), _cap(one), "revoked" if one.revoked else one.until)
            for one in self.tokens
        ]
        yield TextTable(head=("id", "name", "kind", "scopes", "cap", "until"), rows=rows)


def _cap(token: TokenRow) -> str:
    return "" if token.cap is None else f"{token.used} of {token.cap}"


# --- approvals ---


_MOST_LISTED = 1000


@contextmanager
def waiting_in(state: Path) -> Iterator[ApprovalBook]:
    """Open what waits on a server, which may be running."""
    from discreet.server.approvals import ApprovalBook

    with state_of(state) as opened:
        yield ApprovalBook(opened)


def decide_waiting(book: ApprovalBook, number: str, reason: str, *, accept: bool) -> None:
    """Approve or decline for whoever is at the keyboard: not for an account of the same name that asked."""
    from discreet.server.problems import Problem

    book.expire()
    record = book.found(number)
    if record.name.casefold() == getpass.getuser().casefold():
        raise Refused(
            f"{record.name} asked for this release and is at this keyboard",
            reason="another person than who asked looks at it",
            way_out="let another custodian decide, on the page or here",
        )
    try:
        if accept:
            book.accept(record.job, by=who_changes(), reason=reason)
        else:
            book.decline(record.job, by=who_changes(), reason=reason)
    except Problem as problem:
        raise InvalidParameter(problem.detail or problem.kind.title) from None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingRow:
    """A release that waits."""

    id: str
    dataset: str
    who: str
    epsilon: str | None
    why: str
    sql: str
    until: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingList:
    """All releases that wait for another custodian, the newest first."""

    waiting: list[WaitingRow]

    @classmethod
    def of(cls, book: ApprovalBook) -> WaitingList:
        """Read what waits."""
        found = book.listed(only=None, datasets=None, before=None, most=_MOST_LISTED)
        rows = [
            WaitingRow(
                id=one.job,
                dataset=one.dataset,
                who=one.name,
                epsilon=None if one.epsilon is None else significant_up(Fraction(one.epsilon)),
                why=one.why,
                sql=book.sql_of(one.job),
                until=datetime.fromtimestamp(one.until, UTC).isoformat(timespec="seconds"),
            )
            for one in found
            if one.is_open
        ]
        return cls(waiting=rows)

    def blocks(self) -> Iterator[Block]:
        """Show each with what it asks for."""
        if not self.waiting:
            yield "nothing waits"
            return
        rows = [
            (one.id[:8], one.dataset, one.who, one.epsilon or "?", one.until, " ".join(one.sql.split()))
            for one in self.waiting
        ]
        yield TextTable(head=("id", "data set", "who", "ε", "until", "question"), rows=rows)
