"""`discreet init`: draft a release plan for a table."""

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
    Epsilon,
    Quote,
    Thousands,
    command,
    file_as_written,
)
from discreet.cli.output import show

__all__ = ["add_to"]

_Data = Annotated[Path, typer.Argument(help="A Parquet, CSV or DuckDB file.", metavar="DATA")]
_Unit = Annotated[str | None, typer.Option("--unit", help='The privacy unit, whom to protect: a column, or "row".')]
_Lifetime = Annotated[str | None, typer.Option("--lifetime-epsilon", help="The ε of the lifetime budget.")]
_LifetimeDelta = Annotated[str | None, typer.Option("--lifetime-delta", help="The δ of the lifetime budget.")]
_Out = Annotated[Path, typer.Option("--out", help="The plan file to write; an existing file is not overwritten.")]
_Yes = Annotated[bool, typer.Option("--yes", help="Accept all proposals, and confirm that they become public.")]


def add_to(app: typer.Typer, panel: str) -> None:
    """Add the command."""
    example = "discreet init stays.parquet --unit patient --epsilon 1 --out first.toml --yes"
    command(app, "init", panel=panel, example=example)(init)


def init(
    data: _Data,
    unit: _Unit = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    lifetime_epsilon: _Lifetime = None,
    lifetime_delta: _LifetimeDelta = None,
    table: Annotated[str | None, typer.Option("--table", help="The name of the table in a DuckDB file.")] = None,
    delimiter: Delimiter = None,
    quote: Quote = None,
    encoding: Encoding = None,
    decimal: Decimal = None,
    thousands: Thousands = None,
    date_format: DateFormat = None,
    out: _Out = Path("plan.toml"),
    yes: _Yes = False,
    as_json: AsJson = False,
) -> None:
    """Draft a release plan (configuration) for a table of yours, step by step.

    What is seen in the file is shown on your terminal only; what you confirm is written into the plan, and is public.
    """
    from discreet.cli.draft_support import Amounts, drafted

    amounts = Amounts(epsilon, delta, lifetime_epsilon, lifetime_delta)
    file = file_as_written(
        data, delimiter=delimiter, quote=quote, encoding=encoding, decimal=decimal,
        thousands=thousands, date_format=date_format,
    )  # fmt: skip
    show(drafted(data, file, unit=unit, table=table, amounts=amounts, out=out, yes=yes), as_json=as_json)
