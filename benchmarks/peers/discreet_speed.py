"""Discreet's quantile and smooth-sensitivity median, whole calls on floats, in turns with NumPy's sort.

The floats are clamped and put on the public grid inside of the call. The recipe of the noise depends on epsilon only
and is made before, as a mechanism is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

import discreet as dp
from benchmarks.jobs import SPEED_BOUNDS, SPEED_EPSILON, SPEED_QUANTILES, SPEED_SIZES
from benchmarks.peers.protocol import emit, is_quick
from benchmarks.peers.values import speed_values
from benchmarks.timing import alternate
from discreet.adaptive import SmoothSensitivityMechanism, best_recipe, median_query, polynomial
from discreet.mechanisms.grid import Grid

RELATIONS = {"add-remove": dp.Relation.ADD_REMOVE, "replace-one": dp.Relation.REPLACE_ONE}


def smooth_median(relation: dp.Relation, size: int) -> SmoothSensitivityMechanism:
    """Build the mechanism: pure epsilon, on the grid that the quantile uses too."""
    known = size if relation is dp.Relation.REPLACE_ONE else None
    query = median_query(grid=Grid.between(*SPEED_BOUNDS), relation=relation, public_rows=known)
    return SmoothSensitivityMechanism(
        query=query, recipe=best_recipe(lambda beta: polynomial(SPEED_EPSILON, beta=beta))
    )


def calls(values: Any) -> Iterator[tuple[tuple[str, str, str], Callable[[], object]]]:
    """Name every call: the mechanism, the job, the relation."""
    yield ("np.sort", "", ""), partial(np.sort, values)
    for name, relation in RELATIONS.items():
        ask = partial(dp.quantile, values, epsilon=SPEED_EPSILON, bounds=SPEED_BOUNDS, relation=relation)
        for job, q in SPEED_QUANTILES.items():
            yield ("exponential mechanism", job, name), partial(ask, q=q)
        yield ("smooth sensitivity", "median", name), partial(smooth_median(relation, len(values)).release, values)


def compare(size: int) -> None:
    """Report every job at one size."""
    jobs = dict(calls(speed_values(size)))
    repetitions = 3 if is_quick() else 15
    for (how, job, relation_name), timing in alternate(jobs, repetitions=repetitions, seconds=60).items():
        subject = "numpy" if how == "np.sort" else "discreet"
        row = {"how": how, "job": job, "relation": relation_name, "size": size, "subject": subject}
        emit(**row, cpu_ns=timing.per(size).cpu * 1e9, wall_ns=timing.per(size).wall * 1e9)


def main() -> None:
    """Report every size."""
    for size in SPEED_SIZES[:1] if is_quick() else SPEED_SIZES:
        compare(size)


if __name__ == "__main__":
    main()
