"""What came of checking a bundle."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, final

from discreet.cli.output import Block, TextTable

if TYPE_CHECKING:
    from discreet.release import Verified

__all__ = ["BundleCheck", "VerifiedBundle"]

_STYLES = {"ok": "green", "not checked": "yellow", "BAD": "bold red"}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BundleCheck:
    """One thing that was checked, and every way in which it failed; or why it was not checked here."""

    what: str
    status: Literal["ok", "not checked", "BAD"]
    problems: list[str]
    not_checked: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedBundle:
    """A bundle, and what may be said of it. `ok`: its origin is known, and nothing that was asked for was left out."""

    name: str
    kind: str  # "release", or "DUMMY"
    ok: bool
    outcome: Literal["NOT VERIFIED", "consistent", "signed", "matches the ledger", "verified"]
    known: str  # the same in a sentence
    signed_by: str  # the fingerprint of the key that it is signed with; empty if there is none
    checks: list[BundleCheck]

    @classmethod
    def of(cls, verified: Verified) -> VerifiedBundle:
        """Read what was found."""
        checks = [
            BundleCheck(what=check.what, status=check.status, problems=list(check.problems), not_checked=check.skipped)
            for check in verified.checks
        ]
        return cls(
            name=verified.name,
            kind=verified.kind,
            ok=verified.ok,
            outcome=verified.outcome,
            known=verified.describe(),
            signed_by=verified.signed_by,
            checks=checks,
        )

    def blocks(self) -> Iterator[Block]:
        yield f"{self.name}: {self.known}"
        rows = [(check.status, check.what) for check in self.checks]
        styles = [_STYLES[check.status] for check in self.checks]
        yield TextTable(head=("", "what was checked"), rows=rows, styles=styles)
        yield from (problem for check in self.checks for problem in check.problems)
        yield from (check.not_checked for check in self.checks if check.not_checked)
