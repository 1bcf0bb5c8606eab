"""From a file that says whom to protect to what it protects: its policy, its ledger, a session on its tables."""

from __future__ import annotations

import getpass
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.cli.output import show_limit, working
from discreet.errors import InvalidParameter, NotAuthorised

if TYPE_CHECKING:
    from discreet.ledger import Ledger
    from discreet.query import Policy, Session

__all__ = ["asker", "needed", "open_ledger", "open_session", "read_any_policy", "with_progress"]

_OF_PLANS = ("publish", "release", "running", "schedule", "output", "levels", "invariants")


def read_any_policy(path: Path) -> Policy:
    """Read a policy file, or the policy that a release plan begins with."""
    if _is_plan(path):
        from discreet.release import read_release_plan

        return read_release_plan(path).policy
    from discreet.query import read_policy

    return read_policy(path)


def _is_plan(path: Path) -> bool:
    try:
        return any(word in tomllib.loads(path.read_text(encoding="utf-8")) for word in _OF_PLANS)
    except PermissionError:
        raise NotAuthorised(f"this user may not read {path.name}: ask whoever holds the data") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return False  # Whoever reads it next says what is wrong with it, and where.


def needed(path: Path | None) -> Path:
    """Return the file that was named, or refuse."""
    if path is None:
        raise InvalidParameter("say --policy FILE: a policy file, or a release plan")
    return path


@contextmanager
def open_ledger(path: Path, *, must_exist: bool = False) -> Iterator[Ledger]:
    """Open the ledger of a policy without its data. One that is not there yet is not made: nothing is spent."""
    from discreet.ledger import Account, Ledger
    from discreet.privacy import Relation

    policy = read_any_policy(path)
    account = Account(policy.dataset, policy.unit.account, Relation.ADD_REMOVE, policy.budget)
    if must_exist and not policy.ledger.exists():
        raise InvalidParameter(f"there is no ledger {policy.ledger.name} yet: the first release or query makes it")
    place = policy.ledger if policy.ledger.exists() else "memory"
    with Ledger.open(place, account, anchor=policy.anchor, quotas=policy.quotas) as ledger:
        yield ledger


@contextmanager
def open_session(path: Path, *, principal: str | None, project: str = "") -> Iterator[Session]:
    """Open a session as a policy or a plan says; progress is time, and goes to the terminal."""
    from discreet.query import Session

    with working("opening"):
        policy = with_progress(read_any_policy(path))
        opened = Session.from_policy(policy, principal=asker(principal), project=project)
    with opened as session:
        yield session


def with_progress(policy: Policy) -> Policy:
    """Let a policy tell a terminal how the time goes."""
    if not sys.stderr.isatty():
        return policy
    return replace(policy, resources=replace(policy.resources, on_progress=_show_limit))


def asker(principal: str | None) -> str:
    """Return who asks: as they said, or by their login."""
    try:
        return principal or getpass.getuser()
    except (KeyError, OSError):  # A container may have no name for its user.
        raise InvalidParameter("say who asks: --principal NAME") from None


def _show_limit(gone: float, allowed: float) -> None:
    """Say how long it may take, beside the time that is gone; how much is done would tell about the data."""
    show_limit(allowed)
