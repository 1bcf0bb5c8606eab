"""python-dp (a binding of Google's C++ library): a noisy search, given a list of floats, made before."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from pydp.algorithms.laplacian import Percentile  # type: ignore[import-not-found]

from benchmarks.jobs import SPEED_BOUNDS, SPEED_EPSILON, SPEED_QUANTILES
from benchmarks.peers.protocol import report_values
from benchmarks.peers.values import speed_list


def release(values: list[float], q: float) -> float:
    """Make the algorithm and give it all values; an algorithm answers once."""
    low, high = map(float, SPEED_BOUNDS)
    made = Percentile(epsilon=float(SPEED_EPSILON), percentile=q, lower_bound=low, upper_bound=high, dtype="float")
    return float(made.quick_result(values))


def _calls(values: list[float]) -> dict[str, Callable[[], float]]:
    return {job: partial(release, values, float(q)) for job, q in SPEED_QUANTILES.items()}


def main() -> None:
    """Report every size."""
    report_values(speed_list, _calls, how="Percentile.quick_result, list of floats in")


if __name__ == "__main__":
    main()
