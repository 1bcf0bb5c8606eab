"""`discreet profile`: a private summary of every column of a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.options import (
    AsJson,
    DateFormat,
    Decimal,
    Delimiter,
    Delta,
    Encoding,
    Lifetime,
    LifetimeDelta,
    MaxEpsilon,
    Principal,
    Quote,
    Thousands,
    command,
    file_as_written,
)
from discreet.cli.output import show

__all__ = ["add_to"]

_Source = Annotated[Path, typer.Argument(help="A Parquet, CSV or DuckDB file; or a policy or a plan.", metavar="FILE")]
_Unit = Annotated[
    str | None,
    typer.Option("--unit", help='The privacy unit, whom to protect: a column, or "row"; a policy declares it.'),
]
_Ledger = Annotated[Path | None, typer.Option("--ledger", help="The ledger to charge; by default FILE.ledger.")]
_Numbers = Annotated[list[str] | None, typer.Option("--number", help="A column of text to be read as numbers.")]
_Dates = Annotated[list[str] | None, typer.Option("--date", help="A column of text to be read as dates.")]


def add_to(app: typer.Typer, panel: str) -> None:
    """Add the command."""
    example = (
        "discreet profile stays.parquet --unit patient --epsilon 1 --delta 1e-6 \\\n"
        "  --lifetime-epsilon 4 --max-epsilon 1"
    )
    command(app, "profile", panel=panel, example=example)(profile)


def profile(
    source: _Source,
    epsilon: Annotated[str, typer.Option("--epsilon", help="The ε to spend on all columns together.")],
    unit: _Unit = None,
    delta: Delta = None,
    table: Annotated[str | None, typer.Option("--table", help="The name of the table in the policy.")] = None,
    ledger: _Ledger = None,
    lifetime_epsilon: Lifetime = None,
    lifetime_delta: LifetimeDelta = None,
    numbers: _Numbers = None,
    dates: _Dates = None,
    delimiter: Delimiter = None,
    quote: Quote = None,
    encoding: Encoding = None,
    decimal: Decimal = None,
    thousands: Thousands = None,
    date_format: DateFormat = None,
    idempotency_key: Annotated[
        str, typer.Option("--idempotency-key", help="Idempotency key: a profile under the same key is paid once.")
    ] = "profile",
    out: Annotated[Path, typer.Option("--out", help="The HTML page to write.")] = Path("profile.html"),
    max_epsilon: MaxEpsilon = None,
    principal: Principal = None,
    as_json: AsJson = False,
) -> None:
    """Profile every column of a table privately: counts, missing values, frequent values, quantiles, bounds.

    It is charged to the lifetime budget of the data set: that of its ledger, of a plan beside it that names this
    ledger, or --lifetime-epsilon.
    """
    from discreet.cli.policies import FilePlace
    from discreet.cli.profile_support import ProfileRequest, profiled

    wanted = ProfileRequest(
        epsilon=epsilon, delta=delta, table=table, numbers=numbers or [], dates=dates or [],
        idempotency_key=idempotency_key,
    )  # fmt: skip
    file = file_as_written(
        source, dates, delimiter=delimiter, quote=quote, encoding=encoding, decimal=decimal,
        thousands=thousands, date_format=date_format,
    )  # fmt: skip
    place = FilePlace(source, unit, ledger, lifetime_epsilon, lifetime_delta, file)
    show(profiled(place, wanted, principal=principal, max_epsilon=max_epsilon, out=out), as_json=as_json)
