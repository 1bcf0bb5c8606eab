"""The accuracy results as tables: who is nearer to the exact answer, cell by cell, and where we lose."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any, Final

from benchmarks.datasets import DATASETS
from benchmarks.environments import OURS
from benchmarks.results import Goal, Results
from benchmarks.table import Table, number

__all__ = ["AUTO", "PLAIN", "goals", "losing", "tables"]

AUTO: Final = "auto"
PLAIN: Final = "auto, nothing expected"
WORST: Final = 1.1  # of the best peer's error, by the lower 99 % limit
Row = dict[str, Any]


def judged(results: Results) -> list[Row]:
    """Return the cells in which what was declared about the data is true."""
    return [row for row in results.rows if row["facts_hold"] and AUTO in row["ratios"]]


def losing(row: Row, method: str = AUTO) -> bool:
    """Tell whether our error is surely more than a tenth above the best peer's."""
    return bool(row["ratios"][method][1] > WORST)


def goals(results: Results, method: str = AUTO) -> tuple[Goal, ...]:
    """Judge all cells together."""
    rows = judged(results)
    lost = sum(losing(row, method) for row in rows)
    twice = sum(row["ratios"][method][0] <= 0.5 for row in rows)
    fits = [row for row in rows if row["task"] == "regression" and row["size"] >= 10**4]
    return (
        Goal(f"no cell above {WORST} (there are {lost} of {len(rows)})", not lost),
        Goal(f"≥ 2× better in a third ({twice} of {len(rows)})", 3 * twice >= len(rows)),
        Goal("regression better in every cell with n ≥ 10,000", all(row["ratios"][method][0] < 1 for row in fits)),
        *([_harmless(rows)] if method == AUTO else []),
    )


def _surely_apart(rows: list[Row], one: str, other: str) -> int:
    """Count cells in which one of our methods has a larger error than another, by the 99 % limits of both."""
    return sum(row["errors"][f"{OURS}: {one}"][1] > row["errors"][f"{OURS}: {other}"][2] for row in rows)


def _harmless(rows: list[Row]) -> Goal:
    hurts, helps = _surely_apart(rows, AUTO, PLAIN), _surely_apart(rows, PLAIN, AUTO)
    return Goal(f"what is expected surely hurts in no cell (it does in {hurts}, and helps in {helps})", not hurts)


def tables(results: Results) -> tuple[Table, ...]:
    """Return the summary, the cells of every task, the cells we lose, and those whose declared facts are wrong."""
    asked = dict.fromkeys((row["task"], row["relation"]) for row in results.rows)
    wrong = [row for row in results.rows if not row["facts_hold"]]
    return (
        _summary(results, list(asked), AUTO, "Median relative error, ours over the best peer's"),
        _summary(results, list(asked), PLAIN, "The same where nobody is told what values are likely"),
        _facts(results),
        *(_cells(results, *task) for task in asked),
        _listed("Cells in which a peer is surely more than a tenth better", list(filter(losing, judged(results)))),
        _listed("Apart: cells in which values lie outside of the declared bounds", wrong),
    )


def _summary(results: Results, asked: list[tuple[str, str]], method: str, title: str) -> Table:
    columns = ("asked", "relation", "cells", "≥ 2× better", "better", "alike", "worse", f"surely > {WORST}")
    by_task = {task: [row for row in judged(results) if (row["task"], row["relation"]) == task] for task in asked}
    by_task["all", ""] = judged(results)
    return Table(
        title=title,
        columns=columns,
        rows=tuple(_counted(task, rows, method) for task, rows in by_task.items()),
        remarks=tuple(map(str, goals(results, method))),
    )


def _counted(task: tuple[str, str], rows: list[Row], method: str) -> tuple[str, ...]:
    ratios = [row["ratios"][method] for row in rows]
    counts = (
        len(rows),
        sum(ratio <= 0.5 for ratio, _, _ in ratios),
        sum(high < 1 for _, _, high in ratios),
        sum(low <= 1 <= high for _, low, high in ratios),
        sum(low > 1 for _, low, _ in ratios),
        sum(losing(row, method) for row in rows),
    )
    return (*task, *map(str, counts))


def _facts(results: Results) -> Table:
    """Say what everybody was told about each data set, and how the figures came about."""
    columns = ("data", "numbers; categories; regression", "bounds", "step", "expected")
    seen = {row["dataset"] for row in results.rows}
    absent = [one.name for one in DATASETS if one.name not in seen]
    more = (f"**Not run, for want of a data folder: {', '.join(absent)}.**",) if absent else ()
    return Table(
        title="What everybody is told about the data",
        columns=columns,
        rows=tuple((one.name, one.what, " to ".join(one.bounds), one.step, one.expected) for one in DATASETS),
        remarks=(*_remarks(), _smooth_wins(results), *more, *results.missing()),
    )


def _remarks() -> tuple[str, ...]:
    return (
        'Ours is what the function does with `method="auto"`. A cell is better or worse if the 99 % bootstrap interval '
        "of the ratio lies below or above 1. The errors of every method in every cell, with limits and numbers of "
        "runs, are in `benchmarks/results/accuracy.json`.",
        "Everybody is told the same: bounds, grid, epsilon, delta (10⁻⁶; 10⁻⁷ for a million rows), the relation, the "
        "number of rows (under add-remove: about how many), and a rough guess of the law of the numbers, made without "
        "a look at them. Only OpenDP, whose candidates the user lists, and we have a use for the guess; the second "
        "table is without it. Data and answers are on the declared grid.",
        "Error: relative, |answer − exact| / |exact| (over the step where the exact answer is 0), the median over "
        "5,000 runs on 20, 10, 5 or 2 data sets of 10³, "
        "10⁴, 10⁵ or 10⁶ rows, drawn with a fixed seed from the data set, with replacement where it is smaller. Mode: "
        "the mean of 1 − count / largest count, as its median is 0 nearly everywhere. Regression: root mean square "
        "distance from the predictions of least squares, over the deviation of the response; features and response "
        "are scaled to [−1, 1] by declared bounds.",
        "Runs draw from the law of each call on data read once; `benchmarks/peers/*_accuracy.py` say how, and why each "
        "peer's claim is admitted. Whole calls, as many as fit into a second or so, are python-dp's quantiles and "
        "every regression but AdaSSP as published: their limits are wider.",
        "OpenDP lists as candidates the grid, or 10,001 even places where it has more than 25,000 points, or 1,001 "
        "quantiles of the guess; the better one counts. diffprivlib's regression is asked without an intercept, with a "
        "constant column and bounds −1 to 1: otherwise it spends more than it says. python-dp's claims are for "
        "add-remove; under replace-one it gets half of epsilon. OpenDP has simple regression only, and python-dp none.",
        "Where a peer is surely better in a quantile it is OpenDP, mostly by luck of places: of 66 cells that were "
        "asked with the law of its choice, it was surely better than ours among [round "
        "points](../mechanisms/quantile.md#round-points) in 20 (by more than a tenth in 14), and in 6 (1) if its "
        "places are moved by a random part of their gap in each run. Limits are those of runs; that a cell has few "
        "data sets is not in them. Where what is expected surely hurts, it is the 0.9-quantile of 1,000 log-normal "
        "rows at ε = 0.1: without it points are far apart, and 100,000 happens to be 3 % from the exact one, where "
        "noise is 5 %.",
    )


def _smooth_wins(results: Results) -> str:
    """Say where smooth sensitivity is the most accurate of our methods and better than every peer."""
    wins: Counter[str] = Counter()
    for row in judged(results):
        ours = {name: found for name, found in row["ratios"].items() if name not in (AUTO, PLAIN)}
        best = min(ours, key=lambda name: ours[name][0])
        if ("smooth" in best or "trimmed" in best) and ours[best][2] < 1:
            wins[f"{row['task']} of {row['dataset']} ({row['relation']})"] += 1
    listed = ", ".join(f"{where}: {count}" for where, count in sorted(wins.items()))
    return (
        f"Where smooth sensitivity is the best of our methods, and surely better than every peer, in cells: {listed}."
    )


def _cells(results: Results, task: str, relation: str) -> Table:
    rows = [row for row in judged(results) if (row["task"], row["relation"]) == (task, relation)]
    epsilons = dict.fromkeys(row["epsilon"] for row in rows)
    found = {(row["dataset"], row["size"], row["epsilon"]): row for row in rows}
    lines = dict.fromkeys((row["dataset"], row["size"], row["exact"]) for row in rows)
    asked = [(dataset, size) for dataset, size, _ in lines]
    return Table(
        title=f"{task.capitalize()}, {relation}: our error, and over the best peer's [99 %]",
        columns=("data", "rows", *(f"ε = {epsilon}" for epsilon in epsilons)),
        rows=tuple(
            (dataset, f"{size:,}", *(_told(found.get((dataset, size, epsilon))) for epsilon in epsilons))
            for dataset, size in dict.fromkeys(asked)
        ),
    )


def _told(row: Row | None) -> str:
    if row is None:
        return ""
    ours = row["errors"][f"{OURS}: {AUTO}"][0]
    ratio, low, high = row["ratios"][AUTO]
    peer = row["best_peer"].partition(":")[0]
    mark = " **loses**" if losing(row) else ""
    return f"{_error(ours)}; {_ratio(ratio)} [{_ratio(low)}, {_ratio(high)}] {peer}{mark}"


def _listed(title: str, rows: list[Row]) -> Table:
    columns = ("asked", "relation", "data", "rows", "ε", "ours", "best of ours", "best peer", "ratio [99 %]")
    return Table(title=title, columns=columns, rows=tuple(map(_line, rows)) or (("none", *[""] * 8),))


def _line(row: Row) -> tuple[str, ...]:
    ratio, low, high = row["ratios"][AUTO]
    errors = row["errors"]
    best = min(
        (name for name in row["ratios"] if name not in (AUTO, PLAIN)), key=lambda name: errors[f"{OURS}: {name}"][0]
    )
    return (
        row["task"],
        row["relation"],
        row["dataset"],
        f"{row['size']:,}",
        row["epsilon"],
        _error(errors[f"{OURS}: {AUTO}"][0]),
        f"{_error(errors[f'{OURS}: {best}'][0])} ({best})",
        f"{_error(errors[row['best_peer']][0])} ({row['best_peer']}, {errors[row['best_peer']][3]:,} runs)",
        f"{_ratio(ratio)} [{_ratio(low)}, {_ratio(high)}]",
    )


def _error(value: float) -> str:
    return "∞" if math.isinf(value) else f"{value:.2g}"


def _ratio(value: float) -> str:
    return "∞" if math.isinf(value) else number(value, 2)
