"""`discreet query` and `discreet explain`: one question in SQL."""

from __future__ import annotations

from typing import Annotated

import typer

from discreet.cli.options import AsJson, AtDelta, Delta, Epsilon, MaxEpsilon, PolicyFile, Principal, Project, command
from discreet.cli.output import note, show

__all__ = ["add_to"]

_Sql = Annotated[
    str, typer.Argument(help="One SELECT statement, in quotes; - reads it from standard input.", metavar="SQL")
]
_Rho = Annotated[str | None, typer.Option("--rho", help="The ρ (zCDP) to spend, instead of ε.")]
_Share = Annotated[
    str | None, typer.Option("--share", help="The share of the lifetime budget to spend, between 0 and 1.")
]
_Error = Annotated[
    str | None, typer.Option("--error", help="The largest half width (±) of a confidence interval, instead of a price.")
]
_Relative = Annotated[
    str | None, typer.Option("--relative-error", help="The largest half width (±) relative to --expected.")
]
_Expected = Annotated[
    list[str] | None,
    typer.Option("--expected", help="Expected rows of a typical group, or column=value; never read from the data."),
]
_Keys = Annotated[list[str] | None, typer.Option("--keys", help="Public values of a group key: column=one,two.")]
_KeptShare = Annotated[
    str | None,
    typer.Option(
        "--kept-share",
        help="The part of the price, such as 0.02, for which it is measured first how much contribution limits cut.",
    ),
]
_QuantileIntervals = Annotated[
    bool,
    typer.Option("--quantile-intervals", help="Give quantiles a ±, for three fifths of the ε of each."),
]
_Population = Annotated[
    bool,
    typer.Option(
        "--population", help="Give the ± of means and quantiles for what the rows were drawn from, independently."
    ),
]
_IdempotencyKey = Annotated[
    str | None,
    typer.Option(
        "--idempotency-key", help="Idempotency key: asking again under the same key returns the stored answer, free."
    ),
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
        busy="planning",
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
    kept_share: _KeptShare = None,
    quantile_intervals: _QuantileIntervals = False,
    population: _Population = False,
    idempotency_key: _IdempotencyKey = None,
    max_epsilon: MaxEpsilon = None,
    at_delta: AtDelta = None,
    principal: Principal = None,
    project: Project = "",
    as_json: AsJson = False,
) -> None:
    """Ask one SQL query: its price is shown, confirmed and charged, then it is answered with confidence intervals."""
    from discreet.cli.policies import open_session
    from discreet.cli.query_support import TypedOffer, ask

    price = (epsilon, rho, share, error, relative_error, expected, delta, keys)
    offer = TypedOffer(*price, idempotency_key, kept_share, quantile_intervals, population)
    with open_session(policy, principal=principal, project=project) as session:
        show(ask(session, sql, offer, max_epsilon=max_epsilon, at_delta=at_delta), as_json=as_json)
        note(session.money())


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
    kept_share: _KeptShare = None,
    quantile_intervals: _QuantileIntervals = False,
    population: _Population = False,
    principal: Principal = None,
    project: Project = "",
    as_json: AsJson = False,
) -> None:
    """Explain how a SQL query would be answered: noise, price and expected ±. Free; no row is read."""
    from discreet.cli.policies import open_session
    from discreet.cli.query_support import TypedOffer, explained

    price = (epsilon, rho, share, error, relative_error, expected, delta, keys)
    offer = TypedOffer(*price, None, kept_share, quantile_intervals, population)
    with open_session(policy, principal=principal, project=project) as session:
        show(explained(session, sql, offer), as_json=as_json)
