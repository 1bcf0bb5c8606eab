"""`discreet ledger`: the record itself."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.output import show
from discreet.cli.words import AsJson, PolicyFile, command, group

__all__ = ["add_to"]

ledger = group("The record of everything that was spent: verify it, read it, export it.")


def add_to(app: typer.Typer, panel: str) -> None:
    """Add the group."""
    app.add_typer(ledger, name="ledger", rich_help_panel=panel)


@command(ledger, "verify", example="discreet ledger verify --policy plan.toml")
def verify(policy: PolicyFile, as_json: AsJson = False) -> None:
    """Read the whole record again: hashes, order, sums, declarations and answers; exit code 3 if anything is wrong."""
    from discreet.cli.answers.records import VerifiedLedger
    from discreet.cli.policies import open_ledger

    with open_ledger(policy, must_exist=True) as record:
        record.verify()
        show(VerifiedLedger.of(record), as_json=as_json)


@command(ledger, "history", example="discreet ledger history --policy plan.toml")
def history(policy: PolicyFile, as_json: AsJson = False) -> None:
    """List every entry: charges with who and what for, answers, raised budgets."""
    from discreet.cli.answers.records import History
    from discreet.cli.policies import open_ledger

    with open_ledger(policy) as record:
        show(History.of(record), as_json=as_json)


@command(ledger, "export", example="discreet ledger export record.jsonl --policy plan.toml")
def export(
    to: Annotated[Path, typer.Argument(help="A new file, for JSON lines.", metavar="FILE")],
    policy: PolicyFile,
    as_json: AsJson = False,
) -> None:
    """Write the whole record as JSON lines, whose hashes can be checked without this program."""
    from discreet.cli.answers.records import Exported
    from discreet.cli.policies import open_ledger

    with open_ledger(policy, must_exist=True) as record:
        record.export(to)
        show(Exported.of(record, to), as_json=as_json)
