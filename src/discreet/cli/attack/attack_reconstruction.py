"""`discreet attack reconstruction` and `subset-counts`: rows and secrets, rebuilt from published numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.options import AsJson, command
from discreet.cli.output import show

__all__ = ["add_to"]

_ROWS = """\
discreet attack reconstruction stays.parquet --columns sex,age_group,diagnosis,nights \\
  --where "zip = '37247' AND admitted < DATE '2025-02-01'" --ways 2"""
_SECRETS = "discreet attack subset-counts --people 200 --queries 2000 --noise 4"
_Table = Annotated[Path, typer.Argument(help="A table, one row for each person: a Parquet, CSV or DuckDB file.")]
_Columns = Annotated[
    list[str], typer.Option("--columns", help="The columns of the published marginals, such as sex,age.")
]
_Where = Annotated[str, typer.Option("--where", help="A SQL condition that selects the rows of the block.")]
_Ways = Annotated[int, typer.Option("--ways", help="Publish all marginals of up to this many columns.", min=1)]
_Trials = Annotated[int | None, typer.Option("--trials", help="Number of people to attack; all, if left out.", min=1)]
_People = Annotated[int, typer.Option("--people", help="Number of made-up people.", min=2)]
_Queries = Annotated[int, typer.Option("--queries", help="Number of random subsets that are counted.", min=1)]
_Noise = Annotated[str | None, typer.Option("--noise", help="The standard deviation of the noise on each count.")]
_Epsilon = Annotated[str | None, typer.Option("--epsilon", help="Publish private counts instead, with this total ε.")]
_Delta = Annotated[str, typer.Option("--delta", help="The δ of the private counts.")]
_Plot = Annotated[Path | None, typer.Option("--plot", help="Plot the result to this file: .png, .svg or .html.")]


def add_to(attack: typer.Typer) -> None:
    """Add both commands."""
    command(attack, "reconstruction", example=_ROWS, busy="attacking")(reconstruction)
    command(attack, "subset-counts", example=_SECRETS, busy="attacking")(subset_counts)


def reconstruction(
    table: _Table,
    columns: _Columns,
    where: _Where = "",
    ways: _Ways = 2,
    trials: _Trials = None,
    epsilon: _Epsilon = None,
    delta: _Delta = "1e-6",
    plot: _Plot = None,
    as_json: AsJson = False,
) -> None:
    """Reconstruction: rebuild the rows of a small block of people from its published marginals."""
    from discreet.cli.attack.attack_support import draw
    from discreet.cli.attack.count_attacks import RowsAnswer, rebuilt_rows

    found = rebuilt_rows(table, columns, where=where, ways=ways, trials=trials, epsilon=epsilon, delta=delta)
    draw(found, plot)
    show(RowsAnswer.of(found), as_json=as_json)


def subset_counts(
    people: _People = 1000,
    queries: _Queries = 20_000,
    noise: _Noise = None,
    epsilon: _Epsilon = None,
    delta: _Delta = "1e-6",
    plot: _Plot = None,
    as_json: AsJson = False,
) -> None:
    """Reconstruction: rebuild everybody's secret (made up here) from counts of random subsets."""
    from discreet.cli.attack.attack_support import draw
    from discreet.cli.attack.count_attacks import SecretsAnswer, rebuilt_secrets

    found = rebuilt_secrets(people, queries, noise=noise, epsilon=epsilon, delta=delta)
    draw(found.value, plot)
    show(SecretsAnswer.of(found), as_json=as_json)
