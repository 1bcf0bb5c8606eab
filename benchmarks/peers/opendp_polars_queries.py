"""OpenDP: a Polars context on the Parquet file; count and sum with public keys, and their quotient as the mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import opendp.prelude as dp  # type: ignore[import-not-found]
import polars as pl

from benchmarks.crowd_names import CITIES, DELTA, EPSILON, HIGH, Job
from benchmarks.peers.crowd_timing import ROWS, report
from benchmarks.peers.protocol import is_quick


def context(job: Job, path: Path, rows: int) -> Any:
    """Say whom to protect, and how many rows there are at most."""
    limit = 1 if job.by_row else job.max_groups * job.max_rows
    unit = {} if job.by_row else {"identifier": pl.col("user_id")}
    return dp.Context.compositor(
        data=pl.scan_parquet(path),
        privacy_unit=dp.unit_of(contributions=limit, **unit),
        privacy_loss=dp.loss_of(epsilon=float(EPSILON), delta=DELTA),
        split_evenly_over=1,
        margins=[dp.polars.Margin(max_length=rows), dp.polars.Margin(by=["city"], max_length=rows)],
    )


def ask(job: Job, path: Path, rows: int) -> Any:
    """Bound, group, add noise."""
    query = context(job, path, rows).query()
    if not job.by_row:
        query = query.truncate_per_group(job.max_rows, by=["city"])
        query = query.truncate_num_groups(job.max_groups, by=["city"], keep="first")  # its default breaks here
    keys = pl.LazyFrame({"city": list(range(CITIES))}, schema={"city": pl.Int32})
    income: Any = pl.col("income").fill_nan(0.0).fill_null(0.0)
    found = query.group_by("city").agg(dp.len(), income.dp.sum((0.0, float(HIGH)))).with_keys(keys).release().collect()
    return found.with_columns((pl.col("income") / pl.col("len")).alias("mean"))


def prepare(job: Job, path: Path) -> Mapping[str, Callable[[], object]]:
    """Name the call."""
    rows = 1_000_000 if is_quick() else ROWS
    return {"": lambda: ask(job, path, rows)}


if __name__ == "__main__":
    dp.enable_features("contrib")
    report(prepare, rows=ROWS, how="Polars, Parquet")
