"""AIM beside the AIM of peers: eight tables, three epsilons, many runs of each, in the same few cells for everybody.

Whole columns of up to twelve values keep them; other numbers are cut into eight bins of equal width between round
numbers that enclose the values. That looks at the data, for all subjects alike, and is no part of what is compared.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.environments import OURS
from benchmarks.results import Goal, Results
from benchmarks.synth_cells import Cell
from benchmarks.synth_sets import Coded, query
from benchmarks.table import MISSING, Table

__all__ = ["DUEL_EPSILONS", "DUEL_RUNS", "DUEL_SETS", "duel_cells", "duel_goal", "duel_table", "has_met"]

DUEL_EPSILONS: Final = ("0.3", "1", "3")
DUEL_RUNS: Final = 20
SUBJECTS: Final = {OURS: "ours", "opendp-mbi": "OpenDP", "smartnoise-synth": "SmartNoise"}
ORDERS: Final = ("tvd2", "tvd3")
BINS: Final = 8
FEW: Final = 12

_FILES: Final = {
    "iris": "select * from '{}/sklearn_small/iris.parquet'",
    "wine": "select * from '{}/sklearn_small/wine_recognition.parquet'",
    "heart": "select * from '{}/heart_disease/cleveland.parquet'",
    "diabetes": "select * from '{}/sklearn_small/diabetes.parquet'",
    "bike days": "select season, yr, mnth, weekday, workingday, weathersit, temp, atemp, hum, windspeed, casual, "
    "registered from '{}/bike_sharing/day.parquet'",
    "white wine": "select * from '{}/wine_quality/white.parquet'",
    "PUMS, California": "select age, educ, income, sex, latino, black, asian, married "
    "from '{}/pums/pums_california_10000.parquet'",
    "housing": "select * from '{}/california_housing/housing.parquet'",
}


def _loader(sql: str) -> Callable[[Path], Coded]:
    def load(folder: Path) -> Coded:
        return _cut(query(sql.format(folder)))

    return load


DUEL_SETS: Final[dict[str, Callable[[Path], Coded]]] = {name: _loader(sql) for name, sql in _FILES.items()}


def _cut(columns: dict[str, Any]) -> Coded:
    """Cut every column into cells, and drop those of one value."""
    made = {name: _cells(values) for name, values in columns.items()}
    made = {name: one for name, one in made.items() if one[1] > 1}
    codes = np.column_stack([codes for codes, _, _ in made.values()]).astype(np.int32)
    ordered = tuple(name for name, (_, _, is_number) in made.items() if is_number)
    return Coded(tuple(made), tuple(size for _, size, _ in made.values()), codes, ordered)


def _cells(values: Any) -> tuple[NDArray[Any], int, bool]:
    """Return codes, how many cells there are, and whether they are bins of a number."""
    filled = np.ma.filled(values, np.nan) if np.ma.isMaskedArray(values) and values.dtype.kind == "f" else values
    held = np.asarray(filled)
    different = np.unique(held.astype(str)) if held.dtype.kind in "OUS" else np.unique(held[~_missing(held)])
    if len(different) <= FEW or held.dtype.kind in "OUS":
        texts = held.astype(str)
        known = np.unique(texts)
        return np.searchsorted(known, texts), len(known), False
    low, high = _round(float(different[0]), np.floor), _round(float(different[-1]), np.ceil)
    numbers = np.where(_missing(held), low, held).astype(float)
    return np.clip(np.floor((numbers - low) / (high - low) * BINS), 0, BINS - 1), BINS, True


def _missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    return np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), np.bool_)


def _round(value: float, towards: Callable[[float], float]) -> float:
    """Return a number of two digits beside a value."""
    step = 10.0 ** (np.floor(np.log10(abs(value))) - 1) if value else 1.0
    return float(towards(value / step) * step)


# --- comparing ---


def duel_cells(subject: str, runs: int) -> Iterator[Cell]:
    """List what a subject is asked for, all cells once before any of them again: what was stopped is still even."""
    for run in range(runs):
        for dataset in DUEL_SETS:
            for epsilon in DUEL_EPSILONS:
                yield Cell(subject, dataset, "aim", epsilon, run)


def has_met(results: Results) -> bool:
    """Tell whether these cells were measured."""
    return any(row.get("dataset") in DUEL_SETS for row in results.rows)


def duel_goal(results: Results) -> Goal:
    """Judge that no peer is surely better anywhere; unknown while some cell of some peer was not run twice."""
    verdicts = [
        _verdict(results, peer, dataset, epsilon, order)
        for peer in SUBJECTS
        if peer != OURS
        for dataset in DUEL_SETS
        for epsilon in DUEL_EPSILONS
        for order in ORDERS
    ]
    worse = [verdict for verdict in verdicts if verdict == "worse"]
    known = all(verdict != "" for verdict in verdicts)
    return Goal(
        "AIM surely worse than no peer in eight tables at three epsilons", not worse if known or worse else None
    )


def duel_table(results: Results) -> Table:
    """Show the mean errors of all runs, and where a peer is surely better or worse."""
    rows = [_row(results, dataset, epsilon) for dataset in DUEL_SETS for epsilon in DUEL_EPSILONS]
    return Table(
        title="AIM beside AIM: mean total-variation distance of marginals of two / three columns (runs)",
        columns=("data", "ε", *SUBJECTS.values(), "beside OpenDP", "beside SmartNoise"),
        rows=tuple(rows),
        remarks=(
            "Means of all runs that ended; better or worse where 99 % intervals of the difference say so, for two and "
            "for three columns. Numbers are cut into eight bins, the same for everybody. OpenDP's AIM is that of pairs "
            "of columns: with triples it takes many minutes a run. A peer's run is kept, and not made again.",
            f"{duel_goal(results)}.",
        ),
    )


def _row(results: Results, dataset: str, epsilon: str) -> tuple[str, ...]:
    told = [_told(results, subject, dataset, epsilon) for subject in SUBJECTS]
    peers = [peer for peer in SUBJECTS if peer != OURS]
    verdicts = [[_verdict(results, peer, dataset, epsilon, order) or MISSING for order in ORDERS] for peer in peers]
    return dataset, epsilon, *told, *(" / ".join(both) for both in verdicts)


def _told(results: Results, subject: str, dataset: str, epsilon: str) -> str:
    found = [_errors(results, subject, dataset, epsilon, order) for order in ORDERS]
    if not found[0]:
        return MISSING
    return " / ".join(f"{mean(errors):.4f}" for errors in found) + f" ({len(found[0])})"


def _errors(results: Results, subject: str, dataset: str, epsilon: str, order: str) -> list[float]:
    wanted = {"subject": subject, "dataset": dataset, "method": "aim", "epsilon": epsilon}
    return [row[order] for row in results.rows if wanted.items() <= row.items() and order in row]


def _verdict(results: Results, peer: str, dataset: str, epsilon: str, order: str) -> str:
    """Say whether ours is surely better or worse than a peer's, alike, or, with fewer than two runs, nothing."""
    ours, theirs = (_errors(results, subject, dataset, epsilon, order) for subject in (OURS, peer))
    if min(len(ours), len(theirs)) < 2:
        return ""
    low, high = difference(ours, theirs)
    return "worse" if low > 0 else "better" if high < 0 else "alike"


def difference(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, float]:
    """Return a 99 % interval of the difference of two means, with the degrees of freedom of the fewer runs."""
    from scipy.stats import t

    apart = mean(ours) - mean(theirs)
    error = math.sqrt(stdev(ours) ** 2 / len(ours) + stdev(theirs) ** 2 / len(theirs))
    reach = float(t.ppf(0.995, min(len(ours), len(theirs)) - 1)) * error
    return apart - reach, apart + reach
