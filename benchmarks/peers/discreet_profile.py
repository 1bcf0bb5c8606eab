"""Discreet: a profile of 200 columns: its time, and how often its intervals hold the exact numbers."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.peers.protocol import emit, is_quick
from benchmarks.timing import cpu_seconds
from discreet.release import profile
from discreet.release.profiling.profile_results import ColumnProfile, Profile

ROWS, EPSILON, DELTA = 100_000, 1, 1e-6
VALUES = np.array([f"value {place}" for place in range(300)], object)


def wide(rows: int, columns: int) -> pa.Table:
    """People with one to a few rows, and columns of all kinds in equal parts: none is declared."""
    draw = np.random.default_rng(5)
    made: dict[str, Any] = {"person": draw.integers(0, rows * 6 // 10, rows)}
    for place in range(columns - 1):
        made[f"column {place:03d}"] = KINDS[place % len(KINDS)](draw, rows, place)
    return pa.table(made)


def normal(draw: np.random.Generator, rows: int, place: int) -> pa.Array:
    return pa.array(draw.normal(20 * place, 2 + place, rows))


def skewed(draw: np.random.Generator, rows: int, place: int) -> pa.Array:
    return pa.array(draw.lognormal(place / 25, 1.5, rows), mask=draw.random(rows) < place / 1000)


def whole(draw: np.random.Generator, rows: int, place: int) -> pa.Array:
    return pa.array(draw.integers(1930 + place // 4, 2025, rows) if place % 2 else draw.poisson(1 + place, rows))


def day(draw: np.random.Generator, rows: int, place: int) -> pa.Array:
    days = np.datetime64("2018-01-01") + draw.integers(0, 30 * (1 + place), rows)
    return pa.array(days.astype("datetime64[D]"))


def word(draw: np.random.Generator, rows: int, place: int) -> pa.Array:
    weights = 1 / np.arange(1, 301) ** (0.5 + place / 150)
    return pa.array(VALUES[draw.choice(300, rows, p=weights / weights.sum())], mask=draw.random(rows) < place / 1000)


def name(draw: np.random.Generator, rows: int, place: int) -> pa.Array:
    return pa.array([f"Person {number}" for number in draw.integers(0, 10**12, rows)])


KINDS = (normal, skewed, whole, day, word, normal, whole, skewed, word, name)


def covered(found: Profile, table: pa.Table) -> tuple[int, int, int]:
    """Count the cells, those whose interval holds the exact count, and those with a count that is not just noise."""
    cells = [pair for column in found.columns for pair in _exact(column, table.column(column.name))]
    held = sum(cell.count.value - cell.count.plus_minus <= exact <= cell.count.high for cell, exact in cells)
    return len(cells), held, sum(cell.count.value > 2 * cell.count.plus_minus for cell, _ in cells)


def _exact(column: ColumnProfile, values: pa.ChunkedArray) -> list[tuple[Any, int]]:
    present = values.drop_null().to_pylist()
    if column.ordered:
        edges = np.array([_number(cell.low) for cell in column.cells[1:]])
        counts = np.bincount(
            np.searchsorted(edges, [_number(one) for one in present], "right"), minlength=len(edges) + 1
        )
        return list(zip(column.cells, counts.tolist(), strict=True))
    listed = {value: int(count) for value, count in zip(*np.unique(present, return_counts=True), strict=True)}
    named = [(cell, listed.pop(cell.value, 0)) for cell in column.cells if not cell.rest]
    return [*named, *((cell, sum(listed.values())) for cell in column.cells if cell.rest)]


def _number(value: Any) -> float:
    return float(value.toordinal()) if hasattr(value, "toordinal") else float(value)


def main() -> None:
    rows, columns = (10_000, 20) if is_quick() else (ROWS, 200)
    with tempfile.TemporaryDirectory() as folder:
        table = wide(rows, columns)
        pq.write_table(table, Path(folder) / "wide.parquet")
        for unit in ("row", "person"):
            wall, busy = time.perf_counter(), cpu_seconds()
            found = profile(
                Path(folder) / "wide.parquet",
                unit=unit,
                epsilon=EPSILON,
                delta=DELTA,
                ledger=Path(folder) / f"{unit}.ledger",
                dataset="wide",
                principal="bench",
            )
            seconds, busy = time.perf_counter() - wall, cpu_seconds() - busy
            page = found.write(Path(folder) / "page.html").stat().st_size
            extra = dict(zip(("cells", "held", "clear"), covered(found, table), strict=True)) if unit == "row" else {}
            emit(
                unit=unit,
                rows=rows,
                columns=columns,
                seconds=seconds,
                cpu=busy,
                page=page,
                plus_minus=_typical(found),
                **extra,
            )


def _typical(found: Profile) -> int:
    """Return the ± of the counts of a column whose bounds were searched for."""
    return max(column.missing.plus_minus for column in found.columns)


if __name__ == "__main__":
    main()
