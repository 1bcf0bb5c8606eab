"""`discreet query` and `discreet explain`: one question in SQL."""

from __future__ import annotations

from typing import Annotated

import typer

from discreet.cli.options import AsJson, AtDelta, Delta, Epsilon, MaxEpsilon, PolicyFile, Principal, Project, command
from discreet.cli.output import note, show

__all__ = ["add_to"]

_Sql = Annotated[str, typer.Argument(help="One SELECT, in quotes; - reads it from the input.", metavar="SQL")]
_Rho = Annotated[str | None, typer.Option("--rho", help="How much ρ to spend, instead of ε.")]
_Share = Annotated[str | None, typer.Option("--share", help="Which part of the lifetime budget to spend.")]
_Error = Annotated[str | None, typer.Option("--error", help="The largest ± that you want, instead of a price.")]
_Relative = Annotated[str | None, typer.Option("--relative-error", help="The largest ± as a part of --expected.")]
_Expected = Annotated[
    list[str] | None, typer.Option("--expected", help="Rows of a typical group, or column=value; never read from data.")
]
_Keys = Annotated[list[str] | None, typer.Option("--keys", help="Public values of a group key: column=one,two.")]
_IdempotencyKey = Annotated[
    str | None, typer.Option("--idempotency-key", help="A name for this question: asked again, it is free.")
]


def add_to(app: typer.Typer, panel: str) -> None:
    """Add both commands."""
    command(
        app,
        "query",
        panel=panel,
        example='discreet query "SELECT AVG(cost) AS cost FROM stays" --epsilon 0.1 \\\n'
        "  --policy plan.toml --max-epsilon 0.1",
    )(query)
    command(
        app,
        "explain",
        panel=panel,
        example='discreet explain "SELECT AVG(cost) AS cost FROM stays" --epsilon 0.1 \\\n  --policy plan.toml',
    )(explain)


def query(
    sql: _Sql,
    policy: PolicyFile,
    epsilon: Epsilon = None,
    rho: _Rho = None,
    share: _Share = None,
    error: _Error = None,
    relative_error: _Relative = None,
    expected: _Expected = None,
    delta: Delta = None,
    keys: _Keys = None,
    idempotency_key: _IdempotencyKey = None,
    max_epsilon: MaxEpsilon = None,
    at_delta: AtDelta = None,
    principal: Principal = None,
    project: Project = "",
    as_json: AsJson = False,
) -> None:
    """Ask one question: its price is shown and agreed to, charged, and then the answer comes with its ±."""
    from discreet.cli.policies import open_session
    from discreet.cli.query_support import TypedOffer, ask

    offer = TypedOffer(epsilon, rho, share, error, relative_error, expected, delta, keys, idempotency_key)
    with open_session(policy, principal=principal, project=project) as session:
        show(ask(session, sql, offer, max_epsilon=max_epsilon, at_delta=at_delta), as_json=as_json)
        note(f"left: {session.left}")


def explain(
    sql: _Sql,
    policy: PolicyFile,
    epsilon: Epsilon = None,
    rho: _Rho = None,
    share: _Share = None,
    error: _Error = None,
    relative_error: _Relative = None,
    expected: _Expected = None,
    delta: Delta = None,
    keys: _Keys = None,
    principal: Principal = None,
    project: Project = "",
    as_json: AsJson = False,
) -> None:
    """Say how a question would be answered, for which price and how exactly. Free; no row is read."""
    from discreet.cli.policies import open_session
    from discreet.cli.query_support import TypedOffer, explained

    offer = TypedOffer(epsilon, rho, share, error, relative_error, expected, delta, keys)
    with open_session(policy, principal=principal, project=project) as session:
        show(explained(session, sql, offer), as_json=as_json)
