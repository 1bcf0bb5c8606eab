"""Discreet: how often the intervals of grouped SQL hold what they are about, on six real columns.

A group is one sample, so that one query draws thousands of samples with noise of their own. The partner of a value, for
correlations, is the value itself or that of another row, by a coin: its correlation with the column is about 1/2.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import discreet as dp
from benchmarks.datasets import SEED
from benchmarks.interval_columns import COLUMNS, RealColumn
from benchmarks.peers.protocol import emit, is_quick

SAMPLES = 2_000
SIZES = (50, 500)
SPENT: tuple[dict[str, Any], ...] = ({"epsilon": 1}, {"epsilon": 20}, {"rho": "0.5"})
PAIRS = "SELECT s, CORR(x, y) AS corr, COVAR_SAMP(x, y) AS covar FROM t GROUP BY s"
MEANS = "SELECT s, AVG(x) AS mean FROM t GROUP BY s"
Floats = NDArray[np.float64]


def opened(folder: str, column: RealColumn, x: Floats, y: Floats) -> dp.Session:
    """Open a session on the samples, one a line of `x`."""
    samples, size = x.shape
    kind = dp.between(column.low, column.high, whole=column.whole)
    return dp.Session(
        {"t": pa.table({"s": np.repeat(np.arange(samples), size), "x": x.ravel(), "y": y.ravel()})},
        unit="row",
        budget=dp.Budget(epsilon=1000, delta="1e-9"),
        columns={"s": dp.between(0, samples - 1, whole=True), "x": kind, "y": kind},
        ledger=Path(folder) / "t.ledger",
        dataset="t",
        principal="bench",
    )


def show(column: RealColumn, folder: Path, size: int) -> None:
    """Report what one column's samples of this size say, at each price."""
    samples = SAMPLES // 10 if is_quick() else SAMPLES
    values = np.asarray(column.load(folder), dtype=float).clip(float(column.low), float(column.high))
    chance = np.random.default_rng((SEED, size))
    x, other = (values[chance.integers(len(values), size=(samples, size))] for _ in range(2))
    y = np.where(chance.random((samples, size)) < 0.5, x, other)
    truths = {"mean": np.full(samples, values.mean()), **_pair_truths(x, y)}
    with tempfile.TemporaryDirectory() as made, opened(made, column, x, y) as session:
        for spend in SPENT:
            for text in (MEANS, PAIRS):
                answer = session.sql(text, **spend, population=text == MEANS).release()
                _report(answer, truths, column, size, spend)


def _pair_truths(x: Floats, y: Floats) -> dict[str, Floats]:
    centred_x, centred_y = x - x.mean(1, keepdims=True), y - y.mean(1, keepdims=True)
    covar = (centred_x * centred_y).sum(1)
    with np.errstate(invalid="ignore"):
        corr = covar / np.sqrt((centred_x**2).sum(1) * (centred_y**2).sum(1))
    return {"corr": corr, "covar": covar / (x.shape[1] - 1)}


def _report(table: Any, truths: dict[str, Floats], column: RealColumn, size: int, spend: dict[str, Any]) -> None:
    rows = list(table)
    for what in [name for name in truths if name in rows[0]]:
        covered = told = 0
        for row in rows:
            truth, cell = truths[what][row["s"]], row[what]
            if cell is not None and cell.low is not None and not np.isnan(truth):
                told += 1
                covered += bool(float(cell.low) <= truth <= float(cell.high))
        emit(
            what=f"SQL {what}",
            data=column.name,
            real=True,
            size=size,
            epsilon=" = ".join(map(str, *spend.items())),
            relation="add-remove",
            runs=told,
            covered=covered,
        )


def main() -> None:
    """Report every column of the folder that is said."""
    for column in COLUMNS:
        for size in SIZES:
            show(column, Path(sys.argv[1]), size)


if __name__ == "__main__":
    main()
