"""How much the time of a single draw tells about the noise. It is printed for the record and gates nothing."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import spearmanr

from discreet import noise

DRAWS = 20_000


@pytest.mark.soak
@pytest.mark.parametrize(
    ("name", "draw"),
    [
        ("discrete Laplace, scale 10", lambda: noise.discrete_laplace(10)),
        ("discrete Laplace, scale 10^6", lambda: noise.discrete_laplace(10**6)),
        ("discrete Gaussian, sigma 10", lambda: noise.discrete_gaussian(10)),
        ("discrete Gaussian, sigma 10^6", lambda: noise.discrete_gaussian(10**6)),
        ("rounded Gaussian, sigma 10", lambda: noise.rounded_gaussian(10)),
        ("rounded Gaussian, sigma 10^6", lambda: noise.rounded_gaussian(10**6)),
    ],
)
def test_the_time_of_a_draw_is_recorded_beside_the_noise(name: str, draw: Callable[[], int]) -> None:
    sizes, times = np.empty(DRAWS), np.empty(DRAWS)
    for i in range(DRAWS):
        start = time.perf_counter_ns()
        value = draw()
        times[i] = time.perf_counter_ns() - start
        sizes[i] = abs(value)
    rank_correlation = float(spearmanr(times, sizes).statistic)
    median = np.median(times) / 1000
    print(f"{name}: Spearman(time, |noise|) = {rank_correlation:+.4f}, median {median:.1f} µs", file=sys.stderr)
    assert abs(rank_correlation) <= 1
