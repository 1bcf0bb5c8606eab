"""python-dp (a binding of Google's C++ library) on the cells of the accuracy table.

Claims and why they are admitted: all are for one added or removed row. Under replace-one it is asked with half of
epsilon, since a replaced row is one removed and one added.
median, quantile   a noisy search over counts below and above, which one row changes once; whole calls, as many as
                   there is time for.
mean               noisy sum over noisy count. What was added once is merged into a new algorithm for every answer.
mode, regression   it has none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydp.algorithms.laplacian import BoundedMean, Percentile  # type: ignore[import-not-found]

from benchmarks.cells import QUANTILES, REPLACE_ONE, Part, read_parts
from benchmarks.peers.protocol import answers, within

SECONDS = 0.2  # for a cell


def asked(part: Part) -> dict[str, Any]:
    """Return what every algorithm is told."""
    share = 0.5 if part.relation == REPLACE_ONE else 1.0
    bounds = {"lower_bound": float(part.low), "upper_bound": float(part.high)}
    return {"epsilon": share * float(part.epsilon), "dtype": "float", **bounds}


def quantile(part: Part, values: list[float]) -> Callable[[], float]:
    """Return a whole call."""
    q = float(QUANTILES[part.task])
    return lambda: float(Percentile(percentile=q, **asked(part)).quick_result(values))


def mean(part: Part, values: list[float]) -> Callable[[], float]:
    """Return a call that starts with all values added."""
    full = BoundedMean(**asked(part))
    full.add_entries(values)
    state = full.serialize()

    def answer() -> float:
        algorithm = BoundedMean(**asked(part))
        algorithm.merge(state)
        return float(algorithm.result())

    return answer


METHODS = dict.fromkeys(QUANTILES, (quantile, "Percentile")) | {"mean": (mean, "BoundedMean")}


def main() -> None:
    """Answer every cell."""
    file, values = "", list[float]()
    for part in read_parts(*METHODS):
        if part.file != file:
            file, values = part.file, part.data().tolist()
        make, how = METHODS[part.task]
        answers(part, how, within(SECONDS, part, make(part, values)), subject="python-dp")


if __name__ == "__main__":
    main()
