"""Discreet on the synthetic tables, by dp.synthesize with nothing set but the method."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import discreet as dp
from benchmarks.synth_jobs import DELTA, Sampler, asked, report
from benchmarks.synth_sets import Coded


def domain(table: Coded) -> dp.synth.Domain:
    """Declare every column: bins of a number, or cells without an order."""
    columns: dict[str, Any] = {}
    for name, size in zip(table.names, table.sizes, strict=True):
        is_number = name in table.ordered
        columns[name] = (
            dp.synth.Numeric(0, size - 1, whole=True, bins=size) if is_number else dp.synth.Category(list(range(size)))
        )
    return dp.synth.Domain(columns)


def fit(table: Coded, method: str, epsilon: str) -> Sampler:
    """Fit, and return what draws."""
    columns = {name: table.codes[:, place] for place, name in enumerate(table.names)}
    model = dp.synthesize(columns, method, domain=domain(table), epsilon=epsilon, delta=DELTA, progress=False)

    def sample(_: str) -> NDArray[Any]:
        drawn = model.sample(len(table.codes))
        return np.column_stack([np.asarray(drawn[name], dtype=np.int32) for name in table.names])

    return sample


def main() -> None:
    """Make one table."""
    table, method, epsilon, out = asked()
    report(lambda: fit(table, method, epsilon), ("as it comes",), out)


if __name__ == "__main__":
    main()
