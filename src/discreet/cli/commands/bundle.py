"""`discreet bundle`: verify what was published."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, final

import typer

from discreet.cli.exits import Code
from discreet.cli.options import AsJson, command, group
from discreet.cli.output import Block, Styled, TextTable, show

if TYPE_CHECKING:
    from discreet.release.bundle.verification import Verified

__all__ = ["BundleCheck", "VerifiedBundle", "add_to"]

bundle = group("Bundles, the published releases: verify their hashes, signature and ledger entry.")


def add_to(app: typer.Typer, panel: str) -> None:
    """Add the group."""
    app.add_typer(bundle, name="bundle", rich_help_panel=panel)


@command(
    bundle, "verify", example="discreet bundle verify published/stays-2025 --ledger northmere.ledger", busy="verifying"
)
def verify(
    path: Annotated[Path, typer.Argument(help="The folder or the .zip file.", metavar="BUNDLE")],
    ledger: Annotated[
        Path | None, typer.Option("--ledger", help="Also compare with this ledger: what was charged and stored.")
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(
            "--key",
            help="The public key that must have signed it: a key file or a fingerprint.",
            metavar="FILE|FINGERPRINT",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check a bundle: its files, with --key who signed it, with --ledger that it is what was paid for and stored.

    Exit code 0 if it is verified, or signed by the key that you name; 3 if anything is wrong; 6 if nothing is wrong but
    not everything was checked: without --key and --ledger, files can only be found to agree with each other.
    """
    from discreet.release import verify_bundle

    found = VerifiedBundle.of(verify_bundle(path, ledger=ledger, key=key))
    show(found, as_json=as_json)
    if not found.ok:
        raise typer.Exit(Code.REFUSED if found.outcome == "NOT VERIFIED" else Code.NOT_CHECKED)


# --- bundles: What came of checking a bundle. ---


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
        status = "BAD" if self.outcome == "NOT VERIFIED" else "ok" if self.ok else "not checked"
        yield Styled(f"{self.name}: {self.known}", _STYLES[status])
        rows = [(check.status, check.what) for check in self.checks]
        yield TextTable(head=("", "what was checked"), rows=rows, marks=_STYLES)
        yield from (problem for check in self.checks for problem in check.problems)
        yield from (check.not_checked for check in self.checks if check.not_checked)
