"""`discreet synth`: synthetic data, from the declared domain of a table to synthetic rows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.options import (
    AsJson,
    DateFormat,
    Decimal,
    Delimiter,
    Encoding,
    Lifetime,
    LifetimeDelta,
    MaxEpsilon,
    Principal,
    Quote,
    Thousands,
    command,
    file_as_written,
    group,
)
from discreet.cli.output import show

__all__ = ["add_to"]

synth = group("Synthetic data: fit a differentially private model to a table, sample from it, evaluate it.")
_Source = Annotated[Path, typer.Argument(help="A policy or a plan; or a Parquet or CSV file.", metavar="FILE")]
_Table = Annotated[str | None, typer.Option("--table", help="The name of the table in the policy.")]
_PublicRows = Annotated[
    bool,
    typer.Option("--public", help="FILE is public: propose values and bounds from its rows. Never for private rows."),
]
_DomainOut = Annotated[Path, typer.Option("--out", help="The domain file to write.")]
_FIT_EXAMPLE = """\
discreet synth fit plan.toml --domain domain.toml --rows-per-unit 2 --method mst \\
  --epsilon 1 --delta 1e-6 --max-epsilon 1 --out stays.safetensors"""
_FitSource = Annotated[Path, typer.Argument(help="A Parquet or CSV file; or a policy or a plan.", metavar="FILE")]
_Domain = Annotated[
    Path | None,
    typer.Option("--domain", help="The domain file, with the declared public values; a policy may declare them."),
]
_Method = Annotated[str, typer.Option("--method", help="The method: auto, aim, mst, independent or merf.")]
_Epsilon = Annotated[str, typer.Option("--epsilon", help="The ε to spend.", metavar="NUMBER")]
_Delta = Annotated[str, typer.Option("--delta", help="The δ to spend, such as 1e-6.", metavar="NUMBER")]
_Unit = Annotated[
    str | None,
    typer.Option("--unit", help='The privacy unit, whom to protect: a column, or "row"; a policy declares it.'),
]
_RowsPerUnit = Annotated[
    int | None,
    typer.Option("--rows-per-unit", help="Contribution bound: the largest number of rows of one unit that are used."),
]
_Label = Annotated[
    str | None, typer.Option("--label", help="The label: the column whose correlations matter most, if there is one.")
]
_Ledger = Annotated[Path | None, typer.Option("--ledger", help="The ledger to charge; by default FILE.ledger.")]
_ModelOut = Annotated[Path, typer.Option("--out", help="The model to write: a .safetensors file.")]
_Model = Annotated[Path, typer.Argument(help="A model that `synth fit` wrote.", metavar="MODEL")]
_SampleRows = Annotated[
    int | None, typer.Option("--rows", help="Number of rows; by default about as many as the real table has.")
]
_Where = Annotated[
    list[str] | None,
    typer.Option("--where", help="Rows of these values alone: sex=f, or age=18..30; again for further columns."),
]
_SampleOut = Annotated[
    Path, typer.Option("--out", help="The file to write: .csv or .parquet; for images .safetensors.")
]
_EVALUATE_EXAMPLE = "discreet synth evaluate stays.safetensors stays.parquet"
_Real = Annotated[Path, typer.Argument(help="The real table, or a public one with --public.", metavar="TABLE")]
_Told = Annotated[str | None, typer.Option("--label", help="The column that classifiers learn to predict.")]
_Holdout = Annotated[Path | None, typer.Option("--holdout", help="Real rows that the model never saw.")]
_Refits = Annotated[
    int | None,
    typer.Option(
        "--refits",
        help="Refits to random halves for membership attacks: 4, 6, …, or 0 for none; 4 unless there is a hold-out.",
    ),
]
_Public = Annotated[bool, typer.Option("--public", help="TABLE is public: the report may be published.")]
_PageOut = Annotated[Path | None, typer.Option("--out", help="The HTML page to write.")]


def add_to(app: typer.Typer, panel: str) -> None:
    """Add the group."""
    app.add_typer(synth, name="synth", rich_help_panel=panel)


@command(synth, "domain", example="discreet synth domain plan.toml --out domain.toml", busy="reading")
def domain(
    source: _Source,
    table: _Table = None,
    delimiter: Delimiter = None,
    quote: Quote = None,
    encoding: Encoding = None,
    public: _PublicRows = False,
    out: _DomainOut = Path("domain.toml"),
    as_json: AsJson = False,
) -> None:
    """Write a domain file: what a policy declares of a table, or the names of a file's columns, for you to fill in."""
    from discreet.cli.synth_support import drafted

    file = file_as_written(source, delimiter=delimiter, quote=quote, encoding=encoding)
    show(drafted(source, file, table, out, public=public), as_json=as_json)


@command(synth, "fit", example=_FIT_EXAMPLE)
def fit(
    source: _FitSource,
    epsilon: _Epsilon,
    delta: _Delta,
    domain: _Domain = None,
    method: _Method = "auto",
    unit: _Unit = None,
    rows_per_unit: _RowsPerUnit = None,
    label: _Label = None,
    table: _Table = None,
    ledger: _Ledger = None,
    lifetime_epsilon: Lifetime = None,
    lifetime_delta: LifetimeDelta = None,
    delimiter: Delimiter = None,
    quote: Quote = None,
    encoding: Encoding = None,
    decimal: Decimal = None,
    thousands: Thousands = None,
    date_format: DateFormat = None,
    out: _ModelOut = Path("model.safetensors"),
    max_epsilon: MaxEpsilon = None,
    principal: Principal = None,
    as_json: AsJson = False,
) -> None:
    """Fit a differentially private generative model to a table. The model and rows drawn from it may be published."""
    from discreet.cli.policies import FilePlace
    from discreet.cli.synth_support import FitRequest, fitted

    wanted = FitRequest(
        domain=domain, method=method, epsilon=epsilon, delta=delta, rows_per_unit=rows_per_unit, label=label,
        table=table,
    )  # fmt: skip
    file = file_as_written(
        source, delimiter=delimiter, quote=quote, encoding=encoding, decimal=decimal,
        thousands=thousands, date_format=date_format,
    )  # fmt: skip
    place = FilePlace(source, unit, ledger, lifetime_epsilon, lifetime_delta, file)
    show(fitted(place, wanted, principal=principal, max_epsilon=max_epsilon, out=out), as_json=as_json)


@command(synth, "sample", example="discreet synth sample stays.safetensors --out synthetic.csv", busy="sampling")
def sample(
    model: _Model,
    rows: _SampleRows = None,
    where: _Where = None,
    out: _SampleOut = Path("synthetic.csv"),
    as_json: AsJson = False,
) -> None:
    """Sample synthetic rows from a model: post-processing, so it is free, however often and however many."""
    from discreet.cli.synth_support import sampled

    show(sampled(model, rows, where or [], out), as_json=as_json)


@command(synth, "evaluate", example=_EVALUATE_EXAMPLE, busy="evaluating")
def evaluate(
    model: _Model,
    table: _Real,
    label: _Told = None,
    holdout: _Holdout = None,
    refits: _Refits = None,
    public: _Public = False,
    delimiter: Delimiter = None,
    quote: Quote = None,
    encoding: Encoding = None,
    decimal: Decimal = None,
    thousands: Thousands = None,
    date_format: DateFormat = None,
    out: _PageOut = None,
    as_json: AsJson = False,
) -> None:
    """Evaluate synthetic rows against the real table, and attack them. The report is not private: for you only."""
    from discreet.cli.synth_support import evaluated, evaluated_publicly
    from discreet.errors import InvalidParameter

    if public and (holdout is not None or refits):
        raise InvalidParameter("attacks need the real table: leave --holdout and --refits out, or --public")
    said = {
        "delimiter": delimiter, "quote": quote, "encoding": encoding, "decimal": decimal, "thousands": thousands,
        "date_format": date_format,
    }  # fmt: skip
    real, kept = file_as_written(table, **said), None if holdout is None else file_as_written(holdout, **said)
    if public:
        found = evaluated_publicly(model, real, label, out)
    else:
        found = evaluated(model, real, label, holdout=kept, refits=refits, out=out)
    show(found, as_json=as_json)
