"""`discreet mcp`: a data set for language models and other agents, over the Model Context Protocol."""

from __future__ import annotations

from typing import Annotated

import typer

from discreet.cli.options import PolicyFile, Principal, command

__all__ = ["add_to"]


def add_to(app: typer.Typer, panel: str) -> None:
    """Add the command."""
    command(app, "mcp", panel=panel, example="discreet mcp --policy plan.toml --cap-epsilon 0.5")(mcp)


def mcp(
    policy: PolicyFile,
    cap_epsilon: Annotated[
        str, typer.Option("--cap-epsilon", help="The ε that the agent may spend in all, ever; recorded in the ledger.")
    ],
    cap_delta: Annotated[
        str | None, typer.Option("--cap-delta", help="The δ of the cap, for group keys that are not declared.")
    ] = None,
    agent: Annotated[
        str, typer.Option("--agent", help="The name of the agent: each name has a cap of its own.")
    ] = "assistant",
    principal: Principal = None,
) -> None:
    """Let an AI agent ask, over the Model Context Protocol on standard input and output, within a cap that you grant.

    It may list, explain and try on made-up rows for free. The same name and cap go on where they were after a restart.
    """
    from discreet.cli.agent_server import granted, serve
    from discreet.cli.policies import asker, open_session

    with open_session(policy, principal=f"agent:{agent}") as session:
        serve(granted(session, epsilon=cap_epsilon, delta=cap_delta, by=asker(principal)))
