"""The jobs of the topic `engines`, said once for every subject; the standard library only."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from benchmarks.crowd_names import JOBS, QUERY, folder

__all__ = ["COUNTED", "DISTINCT", "JOB", "MANY", "PLAIN", "PLAIN_COUNT", "SIZES", "SUMMED", "TEXTS", "rows_of"]

JOB: Final = JOBS[0]  # at most 3 groups × 2 rows a user
COUNTED: Final = "count, bounded"
SUMMED: Final = "count, sum, mean, bounded"
DISTINCT: Final = "COUNT(DISTINCT unit)"
PLAIN_COUNT: Final = "COUNT(*)"
PLAIN: Final = "count, sum, mean"
# What plain Spark is asked, and with privacy we are: one text for both where it is the same question.
TEXTS: Final = {
    COUNTED: "SELECT city, COUNT(*) AS n FROM crowd GROUP BY city",
    SUMMED: QUERY,
    DISTINCT: "SELECT city, COUNT(DISTINCT user_id) AS n FROM crowd GROUP BY city",
    PLAIN_COUNT: "SELECT city, COUNT(*) AS n FROM crowd GROUP BY city",
    PLAIN: QUERY,
}
SIZES: Final = (10**6, 10**7, 10**8)
MANY: Final = 10**9


def rows_of(rows: int, scratch: str | None = None) -> Path:
    """Return where the rows lie: up to ten million in one file, more in a folder of files."""
    return folder() / f"{JOB.kind}-{rows}.parquet" if scratch is None else Path(scratch) / f"{JOB.kind}-{rows}"
