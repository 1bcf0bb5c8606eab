"""`discreet shell`: the interactive SQL shell."""

from __future__ import annotations

import typer

from discreet.cli.options import AtDelta, Delta, Epsilon, MaxEpsilon, PolicyFile, Principal, Project, command

__all__ = ["add_to"]


def add_to(app: typer.Typer, panel: str) -> None:
    """Add the command."""
    command(app, "shell", panel=panel, example="discreet shell --policy plan.toml --epsilon 0.1")(shell)


def shell(
    policy: PolicyFile,
    epsilon: Epsilon = None,
    delta: Delta = None,
    max_epsilon: MaxEpsilon = None,
    at_delta: AtDelta = None,
    principal: Principal = None,
    project: Project = "",
) -> None:
    r"""Interactive SQL shell; \help lists its other commands. --max-epsilon is for the whole session."""
    from discreet.cli.policies import asker, open_session
    from discreet.cli.repl import sit

    with open_session(policy, principal=principal, project=project) as session:
        code = sit(session, epsilon, delta, principal=asker(principal), max_epsilon=max_epsilon, at_delta=at_delta)
    if code:
        raise typer.Exit(code)
