"""Wrong accounts of many answers, samples and training steps, each beside the right one."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from planted_tools import ONES, Pairs, Planted, Run, counting, gaussian, laplace, noisy, uniform

from discreet.privacy.events import Gaussian, PoissonSampled, PureDP, Repeated

_FINE = 100


def repeated(scale: Any, times: int) -> Run:
    return lambda data, runs: np.column_stack([len(data) + laplace(scale, runs) for _ in range(times)])


def averaged(scale: Any, times: int) -> Run:
    """The mean of several noisy answers, charged as one."""
    return lambda data, runs: sum(len(data) + laplace(scale, runs) for _ in range(times)) / times


def tries(data: Any, runs: int) -> np.ndarray:
    """Ask again until the answer is above one, and tell how often; each try costs what the whole is charged."""
    found, count = np.zeros(runs, bool), np.zeros(runs, int)
    while not found.all():
        count += ~found
        found |= len(data) + laplace(1, runs) > 1
    return count


def sampled_sum(rate: float, variance: Any, *, sampled: bool) -> Run:
    """A noisy sum of a Poisson sample; or of everybody, charged as if of a sample."""

    def run(data: Any, runs: int) -> np.ndarray:
        taken = uniform(runs, len(data)) < (rate if sampled else 1.0)
        return (taken * np.array(data, int)).sum(axis=1) + gaussian(variance, runs)

    return run


def epoch(steps: int, variance: Any, *, shuffled: bool) -> Run:
    """One epoch on a grid of a hundredth: every record in one step for sure, or in each with a chance of 1/steps."""

    def run(data: Any, runs: int) -> np.ndarray:
        sums = np.zeros((runs, steps), int)
        for value in data:
            once = np.eye(steps, dtype=int)[np.floor(uniform(runs) * steps).astype(int)]
            often = (uniform(runs, steps) < 1 / steps).astype(int)
            sums += _FINE * value * (once if shuffled else often)
        return sums + gaussian(variance, runs * steps).reshape(runs, steps)

    return run


def clipped_gradient(clip: int, variance: Any, *, clipped: bool, divided: bool = False) -> Run:
    """One noisy step; without clipping, or divided by how many records there are."""

    def run(data: Any, runs: int) -> np.ndarray:
        parts = [max(-clip, min(clip, value)) if clipped else value for value in data]
        total = sum(parts) + gaussian(variance, runs)
        return total / max(len(data), 1) if divided else total

    return run


def same_noise_each_step(data: Any, runs: int) -> np.ndarray:
    """Two steps, of which the second sees the record with the opposite sign, and one draw of noise for both."""
    extra = gaussian(4, runs)
    return np.column_stack([sum(data) + extra, extra - sum(data)])


def two_steps(data: Any, runs: int) -> np.ndarray:
    return np.column_stack([sum(data) + gaussian(4, runs), gaussian(4, runs) - sum(data)])


GRADIENTS: Pairs = (((), (9,)), ((1, 1), (1, 1, -9)))
PEOPLE: Pairs = (((1,) * 3, (1,) * 4),)
BATCHES: Pairs = (((9,) * 8, (9,) * 9), ((), (9,)))

STEPS = [
    Planted("ten answers charged as one", repeated(1, 10), repeated(10, 10), PureDP(1), ONES[:1]),
    Planted(
        "an average of ten answers charged as one", averaged(1, 10), averaged(10, 10), PureDP(1), ONES, runs=20_000
    ),
    Planted(
        "two answers charged as the dearer one",
        noisy(lambda data: [len(data)] * 2, 1, 2),
        noisy(lambda data: [len(data)] * 2, 2, 2),
        PureDP(1),
        ONES,
        runs=40_000,
    ),
    Planted(
        "four levels of a tree charged as one",
        noisy(lambda data: [len(data)] * 4, 1),
        noisy(lambda data: [len(data)] * 4, 4),
        PureDP(1),
        ONES,
    ),
    Planted("asked until the answer pleases, charged once", tries, counting(1), PureDP(1), ONES, runs=8_000),
    Planted(
        "everybody charged as a sample",
        sampled_sum(0.1, 1, sampled=False),
        sampled_sum(0.1, 1, sampled=True),
        PoissonSampled(Gaussian(variance=1, squared_sensitivity=1), "0.1"),
        PEOPLE,
        runs=6_000,
    ),
    Planted(
        "a shuffled epoch charged as Poisson samples",
        epoch(4, 900, shuffled=True),
        epoch(4, 900, shuffled=False),
        Repeated(PoissonSampled(Gaussian(variance="0.09", squared_sensitivity=1), "1/4"), 4),
        (((), (1,)),),
        runs=6_000,
    ),
    Planted(
        "gradients that are not clipped",
        clipped_gradient(1, 4, clipped=False),
        clipped_gradient(1, 4, clipped=True),
        Gaussian(variance=4, squared_sensitivity=1),
        GRADIENTS,
    ),
    Planted(
        "a step divided by the exact number of records",
        clipped_gradient(9, 81, clipped=True, divided=True),
        clipped_gradient(9, 81, clipped=True),
        Gaussian(variance=81, squared_sensitivity=81),
        BATCHES,
        runs=8_000,
    ),
    Planted(
        "noise divided by the batch as well",
        clipped_gradient(1, Fraction(1, 25), clipped=True),
        clipped_gradient(1, 4, clipped=True),
        Gaussian(variance=4, squared_sensitivity=1),
        GRADIENTS,
    ),
    Planted(
        "one draw of noise for two steps",
        same_noise_each_step,
        two_steps,
        Repeated(Gaussian(variance=4, squared_sensitivity=1), 2),
        (((), (1,)),),
    ),
]
