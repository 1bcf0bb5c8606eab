"""All commands, put together."""

from __future__ import annotations

from typing import Any, final

import typer
from typer.core import TyperGroup

from discreet.cli.attack import attack_group
from discreet.cli.commands import (
    account,
    approve,
    audit,
    budget,
    bundle,
    data,
    demo,
    doctor,
    explain_epsilon,
    init,
    key,
    ledger,
    limits,
    mcp,
    plan,
    profile,
    query,
    release,
    serve,
    shell,
    source,
    synth,
    token,
    user,
    version,
)
from discreet.cli.exits import MEANINGS
from discreet.cli.serving import backup

__all__ = ["app"]

_CODES = "\n".join(f"  {int(code):>3}  {meaning}" for code, meaning in MEANINGS.items())
_PANELS = {
    "Publish": (init, plan, release, bundle, key, profile, synth, demo),
    "Ask": (query, limits, shell, mcp),
    "Serve": (serve, user, token, approve, backup),
    "Account": (budget, ledger, account, explain_epsilon),
    "Attack": (attack_group, audit),
    "More": (data, source, doctor, version),
}
_ORDER: list[str | None] = []  # the names of all commands, in the order of the panels


@final
class _InOrder(TyperGroup):
    """Lists commands in the order in which people meet them, not groups last."""

    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(super().list_commands(ctx), key=_ORDER.index)


app = typer.Typer(
    cls=_InOrder,
    help="Differential privacy: publish tables and answer queries with a proven bound on what anyone learns about one.",
    epilog=f"\b\nExit codes:\n{_CODES}",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)
for panel, modules in _PANELS.items():
    for module in modules:
        module.add_to(app, panel)
        named = [each.name for each in app.registered_commands] + [each.name for each in app.registered_groups]
        _ORDER.extend(name for name in named if name not in _ORDER)
