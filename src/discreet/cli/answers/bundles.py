"""What came of checking a bundle."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from discreet.cli.output import Block, Table

if TYPE_CHECKING:
    from discreet.release import Verified

__all__ = ["BundleCheck", "VerifiedBundle"]

_STYLES = {"ok": "green", "not checked": "yellow", "BAD": "bold red"}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BundleCheck:
    """One thing that was checked, and every way in which it failed; or why it was not checked here."""

    what: str
    problems: list[str]
    not_checked: str

    @property
    def word(self) -> str:
        return "BAD" if self.problems else "not checked" if self.not_checked else "ok"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedBundle:
    """A bundle, and whether all of it holds."""

    name: str
    kind: str  # "release", or "DUMMY"
    ok: bool
    checks: list[BundleCheck]

    @classmethod
    def of(cls, verified: Verified) -> VerifiedBundle:
        """Read what was found."""
        checks = [
            BundleCheck(what=check.what, problems=list(check.problems), not_checked=check.skipped)
            for check in verified.checks
        ]
        return cls(name=verified.name, kind=verified.kind, ok=verified.ok, checks=checks)

    def blocks(self) -> Iterator[Block]:
        yield f"{self.name}: {'verified' if self.ok else 'NOT VERIFIED'}"
        rows = [(check.word, check.what) for check in self.checks]
        styles = [_STYLES[check.word] for check in self.checks]
        yield Table(head=("", "what was checked"), rows=rows, styles=styles)
        yield from (problem for check in self.checks for problem in check.problems)
        yield from (check.not_checked for check in self.checks if check.not_checked)
