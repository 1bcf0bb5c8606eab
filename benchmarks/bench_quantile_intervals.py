"""Intervals of quantiles on real columns: how often they hold the quantile of the sample, and how wide they are."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any, Final

from benchmarks.environments import OURS
from benchmarks.interval_columns import COLUMNS, EPSILONS, LEAST, QUANTILES, RUNS, SIZES, WAYS
from benchmarks.results import Goal, Results, gather
from benchmarks.table import MISSING, Table, number

__all__ = ["goals", "measure", "tables"]

COVERAGE: Final = 0.95
WIDTH: Final = 2.0  # times an oracle's
Row = dict[str, Any]


def measure(*, quick: bool, data: Path | None = None) -> Results:
    """Ask of every column, if there is a folder that has them."""
    gathering = gather(quick=quick)
    if data is None:
        gathering.failures[OURS] = "not run: all columns are of real data sets, see --data"
    elif (environment := gathering.environment(OURS)) is not None:
        for place in range(len(COLUMNS)):
            gathering.run(environment, "discreet_quantile_intervals", str(place), str(data))
    return gathering.results("quantile_intervals")


def ratio(row: Row, oracle: str = "oracle") -> float:
    """Return how many times as many grid points the mean interval has as the oracle's."""
    return float(row["points"]) / float(row[oracle])


def judged(rows: list[Row]) -> list[Row]:
    """Return the cells with enough rows and epsilon that widths are judged."""
    return [row for row in rows if row["size"] * float(row["epsilon"]) >= LEAST]


def goals(rows: list[Row]) -> tuple[Goal, Goal]:
    """Judge coverage in all cells, and widths where there are enough rows."""
    least = min((row["covered"] / row["runs"] for row in rows), default=None)
    wide = [row for row in judged(rows) if ratio(row) > WIDTH]
    return (
        Goal(f"every cell covers in {100 * COVERAGE:g} %", None if least is None else least >= COVERAGE),
        Goal(f"no cell above {WIDTH:g}× an oracle's (there are {len(wide)} of {len(judged(rows))})", not wide),
    )


def tables(results: Results) -> tuple[Table, ...]:
    """Sum up each way to ask and each column, and list the cells that are too wide."""
    return _by_way(results), _by_column(results), _wide(results)


_COLUMNS: Final = (
    "cells",
    "lowest coverage, %",
    "mean coverage, %",
    f"cells with n ε ≥ {LEAST:,}",
    "width / oracle's, median",
    "largest",
    f"above {WIDTH:g}×",
    "width / that of an oracle with all of ε, median",
)


def _by_way(results: Results) -> Table:
    found = {told: [row for row in results.rows if row["way"] == way] for way, told in WAYS.items()}
    found["all"] = results.rows
    sizes = ", ".join(f"{size:,}" for size in SIZES)
    return Table(
        title="Intervals of quantiles with 95 % confidence, by the way to ask",
        columns=("asked by", *_COLUMNS),
        rows=tuple((told, *_summed(rows)) for told, rows in found.items()),
        remarks=(
            *map(str, goals(results.rows)),
            f"Quantiles {', '.join(QUANTILES)} of six real columns at ε = {' and '.join(EPSILONS)} "
            f"(ρ = ε² / 8 in ledgers that compose), of {sizes} values drawn with replacement; {RUNS} releases of a "
            "cell. An interval covers if it holds the quantile by each usual definition: the value at the rank, the "
            "one above it and what lies between them.",
            "An oracle knows the data and the law of the released point, and states the shortest interval around the "
            "point that covers as often: no release can do without a price what it does. Three fifths of ε pay for "
            "our interval, two fifths for the point, which is the oracle's as well; the last column compares with an "
            "oracle whose point has all of ε. Widths are numbers of grid points: an interval from 5 to 5 has one.",
            *results.missing(),
        ),
    )


def _by_column(results: Results) -> Table:
    return Table(
        title="The same by the column",
        columns=("data", "bounds", "step", *_COLUMNS),
        rows=tuple(
            (
                column.name,
                f"{column.low} to {column.high}",
                column.step,
                *_summed([row for row in results.rows if row["data"] == column.name]),
            )
            for column in COLUMNS
        ),
        remarks=("SQL counts prices in steps of 0.001 and house values in steps of 1.",),
    )


def _summed(rows: list[Row]) -> tuple[str, ...]:
    coverage = [100 * row["covered"] / row["runs"] for row in rows]
    enough = judged(rows)
    if not rows or not enough:
        return (str(len(rows)), *[MISSING] * (len(_COLUMNS) - 1))
    return (
        f"{len(rows):,}",
        f"{min(coverage):.1f}",
        f"{statistics.mean(coverage):.1f}",
        f"{len(enough):,}",
        number(statistics.median(map(ratio, enough))),
        number(max(map(ratio, enough))),
        str(sum(ratio(row) > WIDTH for row in enough)),
        number(statistics.median(ratio(row, "oracle_whole") for row in enough)),
    )


def _wide(results: Results) -> Table:
    rows = sorted((row for row in judged(results.rows) if ratio(row) > WIDTH), key=ratio, reverse=True)
    exact = sum(row["oracle"] == 1 for row in rows)
    said = (
        f"In {exact} of {len(rows)} the oracle's interval is a single grid point: it knows the value. All lie where "
        "the rank q n is within 30 / ε rows of the end of a run of equal values. The point is then almost surely that "
        "value; but an interval that holds for all data, with so many rows in doubt, must reach the next one, and "
        "that is as far off as prices and rounded amounts lie apart, or up to 1.41 times as far, as widths are listed.",
    )
    return Table(
        title=f"Cells with n ε ≥ {LEAST:,} whose intervals are on average more than {WIDTH:g}× as wide as an oracle's",
        columns=("asked by", "data", "n", "quantile", "ε", "covered, %", "ours, points", "oracle's, points", "ratio"),
        rows=tuple(map(_cell, rows)) or (("none", *[""] * 8),),
        remarks=said if rows else (),
    )


def _cell(row: Row) -> tuple[str, ...]:
    return (
        row["way"],
        row["data"],
        f"{row['size']:,}",
        row["quantile"],
        row["epsilon"],
        f"{100 * row['covered'] / row['runs']:.1f}",
        number(row["points"]),
        f"{row['oracle']:,}",
        number(ratio(row)),
    )
