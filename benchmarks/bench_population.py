"""Intervals for a population: how often they hold its mean from 50 to a million rows, and how wide they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from benchmarks.environments import OURS
from benchmarks.results import Goal, Results, gather
from benchmarks.table import MISSING, Table, number

__all__ = ["goals", "measure", "tables"]

COVERAGE: Final = 0.95
MANY: Final = 10**6  # rows, from which on widths are judged
WIDTH: Final = 1.25  # times the oracle's
Row = dict[str, Any]


def measure(*, quick: bool, data: Path | None = None) -> Results:
    """Ask of made-up laws, and of six real columns if there is a folder that has them."""
    gathering = gather(quick=quick)
    if (environment := gathering.environment(OURS)) is not None:
        gathering.run(environment, "discreet_population", *([] if data is None else [str(data)]))
        if data is not None:
            gathering.run(environment, "discreet_sql_intervals", str(data))
    return gathering.results("population")


def goals(rows: list[Row]) -> tuple[Goal, Goal]:
    """Judge coverage in all cells, and widths where there are many rows."""
    least = min((row["covered"] / row["runs"] for row in rows), default=None)
    ratios = [row["half"] / row["oracle"] for row in rows if row["size"] >= MANY and row["what"] in ("mean", "share")]
    wide = [ratio for ratio in ratios if ratio > WIDTH]
    return (
        Goal(f"every cell covers in {100 * COVERAGE:g} %", None if least is None else least >= COVERAGE),
        Goal(
            f"no mean or share of {MANY:,} rows above {WIDTH:g}× an oracle's (there are {len(wide)} of {len(ratios)})",
            not wide if ratios else None,
        ),
    )


def tables(results: Results) -> tuple[Table, ...]:
    """Show what was asked most by law and size, and sum up the rest."""
    sql = [row for row in results.rows if row["what"].startswith("SQL")]
    called = [row for row in results.rows if not row["what"].startswith("SQL")]
    usual = [row for row in called if _is_usual(row)]
    return _by_law(usual, results), *([_in_sql(sql)] if sql else []), _others(called, results.rows)


def _is_usual(row: Row) -> bool:
    return (row["epsilon"], row["relation"]) == ("1", "add-remove") and row["what"] != "difference"


def _by_law(rows: list[Row], results: Results) -> Table:
    sizes, names = sorted({row["size"] for row in rows}), list(dict.fromkeys(row["data"] for row in rows))
    found = {(row["data"], row["size"]): row for row in rows}
    columns = [title for size in sizes for title in (f"{size:,} rows: covered, %", f"{size:,}: width / oracle's")]
    return Table(
        title="Intervals of 95 % for the mean of a population, ε = 1, add-remove",
        columns=("law", *columns),
        rows=(
            *((name, *(text for size in sizes for text in _cell(found.get((name, size))))) for name in names),
            ("lowest, largest", *(text for size in sizes for text in _worst(rows, size))),
        ),
        remarks=(
            "2,000 samples with noise of their own in every cell. The last six laws are real columns, of which samples "
            "are drawn with replacement; bounds as for intervals of quantiles. Made-up laws lie on 0, 1, …, 1,000.",
            "The oracle knows the standard deviation, the number of rows and the law of the noise, with all of ε on "
            "the sum. It is normal, and so covers too rarely where laws are skewed and rows few; nobody has it.",
            "Ours is wider for few rows because nothing but the bounds is assumed of the law, so that the variance is "
            "bounded from a noisy sum of squares, which takes a fifth of ε, and because the count is private.",
            *results.missing(),
        ),
    )


def _cell(row: Row | None) -> tuple[str, str]:
    if row is None:
        return MISSING, MISSING
    return f"{100 * row['covered'] / row['runs']:.1f}", number(row["half"] / row["oracle"])


def _worst(rows: list[Row], size: int) -> tuple[str, str]:
    here = [row for row in rows if row["size"] == size]
    lowest = min(100 * row["covered"] / row["runs"] for row in here)
    return f"{lowest:.1f}", number(max(row["half"] / row["oracle"] for row in here))


def _in_sql(rows: list[Row]) -> Table:
    names, kinds = (list(dict.fromkeys(row[key] for row in rows)) for key in ("data", "what"))
    lowest = {
        (name, kind): min(row["covered"] / row["runs"] for row in rows if (row["data"], row["what"]) == (name, kind))
        for name in names
        for kind in kinds
    }
    return Table(
        title="Intervals of 95 % in grouped SQL, six real columns: lowest coverage, %",
        columns=("column", *kinds),
        rows=tuple((name, *(f"{100 * lowest[name, kind]:.1f}" for kind in kinds)) for name in names),
        remarks=(
            "2,000 samples of 50 and of 500 rows, one a group, at ε = 1, ε = 20 and ρ = 1/2; the lowest of the six. A "
            "mean is that of the population, correlation and covariance are those of the rows.",
        ),
    )


def _others(rows: list[Row], judged: list[Row]) -> Table:
    kinds = {
        "ε = 0.1, add-remove": [row for row in rows if row["epsilon"] == "0.1"],
        "ε = 1, replace-one": [row for row in rows if row["relation"] == "replace-one"],
        "difference of two samples of one law, ε = 1 each": [row for row in rows if row["what"] == "difference"],
        "all cells": rows,
    }
    return Table(
        title="The others, and all",
        columns=("asked", "cells", "lowest coverage, %", "median width / oracle's", "largest"),
        rows=tuple((told, *_summed(some)) for told, some in kinds.items()),
        remarks=tuple(map(str, goals(judged))),
    )


def _summed(rows: list[Row]) -> tuple[str, ...]:
    if not rows:
        return ("0", MISSING, MISSING, MISSING)
    ratios = sorted(row["half"] / row["oracle"] for row in rows)
    lowest = min(100 * row["covered"] / row["runs"] for row in rows)
    return f"{len(rows)}", f"{lowest:.1f}", number(ratios[len(ratios) // 2]), number(ratios[-1])
