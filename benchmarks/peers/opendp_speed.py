"""OpenDP: quantiles by noisy scores of listed candidates; the measurement is built before, as a mechanism is.

Its time grows with the number of candidates only beyond some thousands; a thousand is the fastest useful choice.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import opendp.prelude as dp  # type: ignore[import-not-found]

from benchmarks.jobs import SPEED_BOUNDS, SPEED_CANDIDATES, SPEED_EPSILON, SPEED_QUANTILES
from benchmarks.peers.protocol import report_values
from benchmarks.peers.values import speed_values


def measurement(alpha: float, epsilon: float) -> Any:
    """Build the quantile whose map says epsilon for one added or removed row."""
    low, high = map(float, SPEED_BOUNDS)
    candidates = np.linspace(low, high, SPEED_CANDIDATES).tolist()
    space = dp.vector_domain(dp.atom_domain(T="f64", nan=False)), dp.symmetric_distance()

    def build(scale: float) -> Any:
        return dp.m.make_private_quantile(*space, dp.max_divergence(), candidates=candidates, alpha=alpha, scale=scale)

    # Epsilon falls as one over the scale; the last digits stay on the private side.
    return build(build(1.0).map(1) / epsilon * (1 + 1e-9))


def main() -> None:
    """Report every size."""
    dp.enable_features("contrib")
    built = {job: measurement(float(q), float(SPEED_EPSILON)) for job, q in SPEED_QUANTILES.items()}
    how = f"make_private_quantile, NumPy array in, {SPEED_CANDIDATES:,} candidates"
    report_values(speed_values, lambda values: {job: partial(call, values) for job, call in built.items()}, how=how)


if __name__ == "__main__":
    main()
