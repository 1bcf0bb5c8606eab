"""All commands, put together."""

from __future__ import annotations

import typer

from discreet.cli.commands import account, budget, bundle, data, doctor, ledger, query, shell, version
from discreet.cli.exits import MEANINGS

__all__ = ["app"]

_CODES = "\n".join(f"  {int(code):>3}  {meaning}" for code, meaning in MEANINGS.items())

app = typer.Typer(
    help="Publish tables about people, and answer questions, with a proven bound on what anyone learns about one.",
    epilog=f"\b\nExit codes:\n{_CODES}",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)
for module in (data, bundle, query, shell, budget, ledger, account, doctor, version):
    module.add_to(app)
