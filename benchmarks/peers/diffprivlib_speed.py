"""diffprivlib: quantiles by the exponential mechanism over the gaps of the sorted values, given as a NumPy array."""

from __future__ import annotations

from functools import partial

from diffprivlib import tools  # type: ignore[import-not-found]

from benchmarks.jobs import SPEED_BOUNDS, SPEED_EPSILON, SPEED_QUANTILES
from benchmarks.peers.protocol import report_values
from benchmarks.peers.values import speed_values


def main() -> None:
    """Report every size."""
    report_values(speed_values, _calls, how="tools.quantile, NumPy array in, exponential mechanism")


def _calls(values: object) -> dict[str, partial[float]]:
    bounds = tuple(map(float, SPEED_BOUNDS))
    call = partial(tools.quantile, values, epsilon=float(SPEED_EPSILON), bounds=bounds)
    return {job: partial(call, quant=float(q)) for job, q in SPEED_QUANTILES.items()}


if __name__ == "__main__":
    main()
