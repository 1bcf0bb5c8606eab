"""Tables as they were published, read back for an attack: from a bundle, or anybody's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from discreet.attacks.counts import CountNoise, CountTable
from discreet.attacks.local import laboratory

__all__ = ["published_counts"]


def published_counts(
    table: Any,
    *,
    by: Sequence[str],
    count: str,
    where: str = "",
    name: str = "table",
    noise: CountNoise = CountNoise.GAUSSIAN,
) -> CountTable:
    """Read a published table of counts: its groups, its counts, and how noisy they are.

    A table of a bundle says the deviation of its noise beside each count, in a column such as `patients_noise_sd` for
    `patients`; one without such a column is taken as exact. A count that is not shown is missing.
    """
    with laboratory({"table": table}) as lab:
        deviation = f"{count}_noise_sd"
        noisy = deviation in lab.columns["table"]
        keys = "".join(f"{lab.column('table', column)} AS key_{i}, " for i, column in enumerate(by))
        said = f"CAST({lab.column('table', deviation)} AS DOUBLE)" if noisy else "0.0"
        counts = f"CAST({lab.column('table', count)} AS DOUBLE)"
        rows = lab.select(
            f"SELECT {keys}{counts} AS count, {said} AS deviation FROM {lab.relations['table']}"
        ).to_pylist()
    most = max((row["deviation"] or 0.0 for row in rows), default=0.0)
    return CountTable(
        name=name,
        by=tuple(by),
        where=where,
        keys=tuple(tuple(row[f"key_{i}"] for i in range(len(by))) for row in rows),
        counts=np.array([math.nan if row["count"] is None else row["count"] for row in rows], dtype=np.float64),
        noise=noise if most > 0 else CountNoise.NONE,
        deviation=most,
    )
