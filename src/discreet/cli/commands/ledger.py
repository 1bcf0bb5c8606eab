"""`discreet ledger`: verify, list and export the ledger; release failed reads."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.options import AsJson, PolicyFile, Principal, command, group
from discreet.cli.output import show

__all__ = ["add_to"]

ledger = group("The record of everything that was spent: verify it, read it, export it; and release failed reads.")
Reason = Annotated[str, typer.Option("--reason", help="The reason; it is recorded in the ledger.")]


def add_to(app: typer.Typer, panel: str) -> None:
    """Add the group."""
    app.add_typer(ledger, name="ledger", rich_help_panel=panel)


@command(ledger, "verify", example="discreet ledger verify --policy plan.toml", busy="verifying")
def verify(policy: PolicyFile, as_json: AsJson = False) -> None:
    """Verify the whole ledger: hash chain, order, sums, declarations and answers; exit code 3 if anything is wrong."""
    from discreet.cli.ledger_support import VerifiedLedger
    from discreet.cli.policies import open_ledger

    with open_ledger(policy, must_exist=True) as record:
        record.verify()
        show(VerifiedLedger.of(record), as_json=as_json)


@command(ledger, "history", example="discreet ledger history --policy plan.toml", busy="reading the ledger")
def history(
    policy: PolicyFile,
    details: Annotated[bool, typer.Option("--details", help="Show entries about reads and answers too.")] = False,
    as_json: AsJson = False,
) -> None:
    """List what was charged, with its price, who and what for; raised budgets, quotas and failed reads."""
    from discreet.cli.ledger_support import DetailedHistory, History
    from discreet.cli.policies import open_ledger, release_delta, unit_names

    at, called = release_delta(policy), unit_names(policy)
    with open_ledger(policy) as record:
        found = History.of(record, at, called)
        show(DetailedHistory(history=found) if details and not as_json else found, as_json=as_json)


@command(ledger, "export", example="discreet ledger export record.jsonl --policy plan.toml", busy="exporting")
def export(
    to: Annotated[Path, typer.Argument(help="The file to write, as JSON lines; it must not exist.", metavar="FILE")],
    policy: PolicyFile,
    as_json: AsJson = False,
) -> None:
    """Export the whole ledger as JSON lines, whose hashes can be checked without this program."""
    from discreet.cli.ledger_support import Exported
    from discreet.cli.policies import open_ledger

    with open_ledger(policy, must_exist=True) as record:
        record.export(to)
        show(Exported.of(record, to), as_json=as_json)


@command(
    ledger, "move", example='discreet ledger move northmere.ledger moved.ledger --reason "a new disk"', busy="moving"
)
def move(
    place: Annotated[Path, typer.Argument(help="The ledger: a file, or postgresql://host/database.", metavar="FROM")],
    to: Annotated[
        Path, typer.Argument(help="Where it will be: a file, or an address. None must be there.", metavar="TO")
    ],
    reason: Reason,
    principal: Principal = None,
    as_json: AsJson = False,
) -> None:
    """Move a ledger to another place, such as a PostgreSQL server, with every hash; the old one is closed for ever.

    If it breaks in between, the same command goes on. A second copy is never made: it would spend the budget twice.
    """
    from discreet.cli.ledger_support import MovedLedger
    from discreet.cli.policies import asker
    from discreet.ledger import move as move_ledger

    found = move_ledger(place, to, reason=reason, principal=asker(principal))
    show(MovedLedger.of(found, to), as_json=as_json)


@command(ledger, "claims", example="discreet ledger claims --policy plan.toml", busy="reading the ledger")
def claims(policy: PolicyFile, as_json: AsJson = False) -> None:
    """List the reads that were begun and have no answer, and whether an answer may still come. It shows no data.

    A read that failed is not repeated, since that it fails can depend on one person; after three of them nothing more
    is read for that principal. Look at the machine, its files and its limits; then release a read, or reopen.
    """
    from discreet.cli.ledger_support import Claims, claims_of

    show(Claims.of(claims_of(policy)), as_json=as_json)


@command(ledger, "release", example='discreet ledger release 40 --policy plan.toml --reason "more memory"')
def release(
    charge: Annotated[int, typer.Argument(help="The number of the charge whose read failed; see claims.")],
    policy: PolicyFile,
    reason: Reason,
    principal: Principal = None,
    as_json: AsJson = False,
) -> None:
    """Allow one more read for a charge whose read failed: recorded in the ledger with who and why.

    Each release may tell whoever asks one more fact about one person: whether it fails again.
    """
    from discreet.cli.ledger_support import Claims, released
    from discreet.cli.policies import asker

    show(Claims.of(released(policy, charge, reason=reason, principal=asker(principal))), as_json=as_json)


@command(ledger, "reopen", example='discreet ledger reopen ana --policy plan.toml --reason "a full disk"')
def reopen(
    analyst: Annotated[str, typer.Argument(help="The principal whose failures no longer count.")],
    policy: PolicyFile,
    reason: Reason,
    principal: Principal = None,
    as_json: AsJson = False,
) -> None:
    """Let a principal ask again after three failed reads: recorded in the ledger with who and why.

    What failed stays unread; see release for that.
    """
    from discreet.cli.ledger_support import Claims, reopened
    from discreet.cli.policies import asker

    show(Claims.of(reopened(policy, analyst, reason=reason, principal=asker(principal))), as_json=as_json)
