"""Mechanisms as their wrong authors run them, each beside the right one: the auditor sees outputs only.

Every mechanism takes a data set and a number of runs, and returns as many outputs.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import exp, log, sqrt
from typing import Any

import numpy as np

from discreet import noise
from discreet.privacy.events import ApproxDP, Event, Gaussian, PoissonSampled, PureDP, RandomizedResponse, Repeated
from discreet.privacy.relation import Relation

ADD_REMOVE, REPLACE_ONE = Relation.ADD_REMOVE, Relation.REPLACE_ONE
Run = Callable[[Any, int], Sequence[Any]]
Pairs = tuple[tuple[Any, Any], ...]


@dataclass(frozen=True)
class Planted:
    """A bug, what its author claims, and neighbours on which it shows."""

    name: str
    wrong: Run
    right: Run
    claim: Event
    pairs: Pairs
    relation: Relation = ADD_REMOVE
    runs: int = 4_000


def laplace(scale: Any, runs: int) -> np.ndarray:
    return np.asarray(noise.discrete_laplace(Fraction(scale), size=runs))


def gaussian(variance: Any, runs: int) -> np.ndarray:
    return np.asarray(noise.rounded_gaussian(variance=Fraction(variance), size=runs))


def uniform(runs: int) -> np.ndarray:
    return np.array([random.SystemRandom().random() for _ in range(runs)])


def counting(scale: Any, of: Callable[[Any], float] = len) -> Run:
    return lambda data, runs: int(of(data)) + laplace(scale, runs)


def noisy(of: Callable[[Any], Sequence[int]], scale: Any) -> Run:
    """Add Laplace noise of one scale to each number of a vector."""

    def run(data: Any, runs: int) -> np.ndarray:
        return np.column_stack([value + laplace(scale, runs) for value in of(data)])

    return run


def gaussian_count(variance: Any, of: Callable[[Any], float] = len) -> Run:
    return lambda data, runs: int(of(data)) + gaussian(variance, runs)


ONES: Pairs = tuple(((1,) * k, (1,) * (k + 1)) for k in range(3))
LETTERS: Pairs = ((("a", "a"), ("a", "b")), (("a", "b", "c"), ("a", "b", "b")), (("a",) * 4, ("a",) * 3 + ("c",)))
NUMBERS: Pairs = (((0, 0, 0), (0, 0, 9)), ((5, 5), (5, 5, 9)), ((), (9,)))


def letter_counts(data: Any) -> list[int]:
    return [data.count(letter) for letter in "abc"]


_FINE = 100

# Counts and sums.


def clamped_sum(bound: int, scale: Any, *, after: bool = False) -> Run:
    def run(data: Any, runs: int) -> np.ndarray:
        total = sum(data) if after else sum(min(value, bound) for value in data)
        out = total + laplace(scale, runs)
        return np.clip(out, -10 * bound, 10 * bound) if after else out

    return run


def clamped_to_data(data: Any, runs: int) -> np.ndarray:
    """Noise first, then the bounds of the data: the largest value stands in the output."""
    return np.clip(sum(min(value, 9) for value in data) + laplace(9, runs), 0, max(data, default=0))


def mean_by_exact_size(data: Any, runs: int) -> np.ndarray:
    """A noisy sum over the exact number of rows."""
    return (sum(data) + laplace(9, runs)) / max(len(data), 1)


def mean_by_noisy_size(data: Any, runs: int) -> list[tuple[int, int]]:
    return list(zip((sum(data) + laplace(18, runs)).tolist(), (len(data) + laplace(2, runs)).tolist(), strict=True))


def with_published_scale(data: Any, runs: int) -> list[tuple[int, float]]:
    """Noise by the spread of these data, and the spread printed beside it."""
    scale = Fraction(1 + max(data, default=0) - min(data, default=0))
    return [(int(value), float(scale)) for value in sum(data) + laplace(scale, runs)]


def scale_by_local_sensitivity(data: Any, runs: int) -> np.ndarray:
    """Noise by what one change could do to the median of these data, the printed recipe."""
    ordered = sorted([0, *data, 100])
    middle = len(ordered) // 2
    local = max(ordered[min(middle + 1, len(ordered) - 1)] - ordered[middle], ordered[middle] - ordered[middle - 1])
    return ordered[middle] + laplace(Fraction(local) if local else Fraction(1, 16), runs)


def seeded(scale: float) -> Run:
    """The same generator for every call."""

    def run(data: Any, runs: int) -> list[int]:
        return [len(data) + round(random.Random(7).expovariate(1 / scale)) for _ in range(runs)]

    return run


def seeded_by_data(data: Any, runs: int) -> list[int]:
    """Sticky noise: the data choose it."""
    return [len(data) + round(random.Random(repr(data)).gauss(0, 3)) for _ in range(runs)]


def one_sided(scale: Any) -> Run:
    """Noise that only adds: an answer below the exact count never comes."""
    return lambda data, runs: len(data) + np.abs(laplace(scale, runs))


def bounded_noise(reach: int) -> Run:
    return lambda data, runs: len(data) + np.floor(uniform(runs) * (2 * reach + 1)).astype(int) - reach


def rounded_after(step: int, scale: Any) -> Run:
    """Round the exact count to a step, then add noise for a change of one."""
    return lambda data, runs: step * round(len(data) / step) + laplace(scale, runs)


def empty_is_silent(data: Any, runs: int) -> list[Any]:
    """No noise for nobody."""
    return [None] * runs if not data else (len(data) + laplace(1, runs)).tolist()


def refuses_when_small(data: Any, runs: int) -> list[Any]:
    """An exact test before the noise."""
    return ["too few"] * runs if len(data) < 2 else (len(data) + laplace(1, runs)).tolist()


# Choices.


def softmax(factor: float) -> Run:
    def run(data: Any, runs: int) -> list[str]:
        weights = np.exp(factor * np.array(letter_counts(data), float))
        edges = np.cumsum(weights / weights.sum())
        return ["abc"[min(int(np.searchsorted(edges, u)), 2)] for u in uniform(runs)]

    return run


def noisy_max(scale: Any, *, tells: bool = False) -> Run:
    def run(data: Any, runs: int) -> list[Any]:
        scores = np.column_stack([count + laplace(scale, runs) for count in letter_counts(data)])
        best = scores.argmax(axis=1)
        names = ["abc"[place] for place in best]
        return list(zip(names, scores.max(axis=1).tolist(), strict=True)) if tells else names

    return run


def exact_mode(data: Any, runs: int) -> list[str]:
    return [max("abc", key=data.count)] * runs


def flipped(keep: float) -> Run:
    """Randomized response of one bit."""

    def run(data: Any, runs: int) -> list[int]:
        return [bit if u < keep else 1 - bit for bit, u in ((data[0], u) for u in uniform(runs))]

    return run


def threshold(at: float, scale: Any) -> Run:
    """Show a group if its noisy count is above a threshold; the count it shows is the noisy one."""

    def run(data: Any, runs: int) -> list[Any]:
        counts = len(data) + laplace(scale, runs)
        return [int(count) if data and count > at else None for count in counts]

    return run


def sparse(threshold_scale: Any, query_scale: Any, *, tells: bool = False, stops: bool = True) -> Run:
    """Say of each of four counts whether it is above a noisy threshold."""

    def run(data: Any, runs: int) -> list[Any]:
        queries = [data.count("a"), data.count("b")] * 2
        limits = 1 + laplace(threshold_scale, runs)
        noises = [laplace(query_scale, runs) if query_scale else np.zeros(runs, int) for _ in queries]
        return [_sparse(queries, int(limits[i]), [int(one[i]) for one in noises], tells, stops) for i in range(runs)]

    return run


def _sparse(queries: list[int], limit: int, noises: list[int], tells: bool, stops: bool) -> tuple[Any, ...]:
    said: list[Any] = []
    for query, extra in zip(queries, noises, strict=True):
        above = query + extra >= limit
        said.append(query + extra if above and tells else above)
        if above and stops:
            break
    return tuple(said)


# Many answers, samples, training steps.


def repeated(scale: Any, times: int) -> Run:
    return lambda data, runs: np.column_stack([len(data) + laplace(scale, runs) for _ in range(times)])


def averaged(scale: Any, times: int) -> Run:
    """The mean of several noisy answers, charged as one."""
    return lambda data, runs: sum(len(data) + laplace(scale, runs) for _ in range(times)) / times


def sampled_sum(rate: float, variance: Any, *, sampled: bool) -> Run:
    """A noisy sum of a Poisson sample; or of everybody, charged as if of a sample."""

    def run(data: Any, runs: int) -> np.ndarray:
        chosen = np.array([[u < rate or not sampled for u in uniform(len(data))] for _ in range(runs)]).reshape(
            runs, -1
        )
        return (chosen * np.array(data, int)).sum(axis=1) + gaussian(variance, runs)

    return run


def epoch(steps: int, variance: Any, *, shuffled: bool) -> Run:
    """One epoch on a grid of a hundredth: every record in one step for sure, or in each with a chance of 1/steps."""

    def run(data: Any, runs: int) -> np.ndarray:
        sums = np.zeros((runs, steps), int)
        for value in data:
            once = np.eye(steps, dtype=int)[np.floor(uniform(runs) * steps).astype(int)]
            often = np.column_stack([uniform(runs) < 1 / steps for _ in range(steps)]).astype(int)
            sums += _FINE * value * (once if shuffled else often)
        return sums + np.column_stack([gaussian(variance, runs) for _ in range(steps)])

    return run


def clipped_gradient(clip: int, variance: Any, *, clipped: bool, divided: bool = False) -> Run:
    """One noisy step; without clipping, or divided by how many records there are."""

    def run(data: Any, runs: int) -> np.ndarray:
        parts = [max(-clip, min(clip, value)) if clipped else value for value in data]
        total = sum(parts) + gaussian(variance, runs)
        return total / max(len(data), 1) if divided else total

    return run


def analytic(epsilon: float, delta: float) -> float:
    """The variance of the analytic Gaussian mechanism, a millionth above it."""
    from scipy.optimize import brentq
    from scipy.stats import norm

    def excess(mu: float) -> float:
        return float(norm.cdf(mu / 2 - epsilon / mu) - exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu) - delta)

    return 1.000001 / brentq(excess, 1e-3, 50) ** 2


_SMALL = ApproxDP(1, "1e-3")
GRADIENTS: Pairs = (((), (9,)), ((1, 1), (1, 1, -9)))
PEOPLE: Pairs = (((1,) * 3, (1,) * 4),)

PLANTED = [
    Planted("noise of half the scale", counting("0.5"), counting(1), PureDP(1), ONES),
    Planted("noise 10 % too small", counting("0.9"), counting(1), PureDP(1), ONES, runs=40_000),
    Planted("scale ε instead of 1/ε", counting("0.5"), counting(2), PureDP("0.5"), ONES),
    Planted(
        "wrong relation: a replaced record moves two bins",
        noisy(letter_counts, 1),
        noisy(letter_counts, 2),
        PureDP(1),
        LETTERS,
        REPLACE_ONE,
    ),
    Planted("sensitivity of a sum taken as 1", clamped_sum(9, 1), clamped_sum(9, 9), PureDP(1), NUMBERS[1:]),
    Planted(
        "a sum clamped after the noise instead of before",
        clamped_sum(3, 3, after=True),
        clamped_sum(3, 3),
        PureDP(1),
        NUMBERS[1:],
    ),
    Planted("clamped to the bounds of the data", clamped_to_data, clamped_sum(9, 9), PureDP(1), NUMBERS[1:]),
    Planted("a mean over the exact size", mean_by_exact_size, mean_by_noisy_size, PureDP(1), NUMBERS[1:]),
    Planted("a scale by the data, published", with_published_scale, clamped_sum(9, 9), PureDP(1), NUMBERS[1:]),
    Planted(
        "noise by local sensitivity",
        scale_by_local_sensitivity,
        counting(1),
        PureDP(1),
        (((0, 0), (0, 0, 0)), ((0, 0, 0, 0), (0, 0, 0, 0, 0))),
    ),
    Planted("a fixed seed", seeded(1.0), counting(1), PureDP(1), ONES),
    Planted("noise that the data choose", seeded_by_data, counting(1), PureDP(1), ONES),
    Planted("noise that only adds", one_sided(1), counting(1), PureDP(1), ONES),
    Planted("uniform noise", bounded_noise(5), counting(1), PureDP(1), ONES),
    Planted("rounding to tens, noise for ones", rounded_after(10, 1), counting(1), PureDP(1), (((1,) * 5, (1,) * 6),)),
    Planted("no noise for nobody", empty_is_silent, counting(1), PureDP(1), ONES),
    Planted("an exact test before the noise", refuses_when_small, counting(1), PureDP(1), ONES),
    Planted(
        "exponential mechanism without the 2", softmax(1.0), softmax(0.5), PureDP(1), LETTERS, REPLACE_ONE, runs=20_000
    ),
    Planted("noisy max of half the scale", noisy_max("0.5"), noisy_max(2), PureDP(1), LETTERS, REPLACE_ONE),
    Planted(
        "noisy max that tells the winning score",
        noisy_max(1, tells=True),
        noisy_max(2),
        PureDP(1),
        ((("a", "a", "b", "c"), ("a", "b", "b", "c")), (("a",) * 4, ("b",) + ("a",) * 3)),
        REPLACE_ONE,
        runs=40_000,
    ),
    Planted("the exact mode", exact_mode, softmax(0.5), PureDP(1), LETTERS, REPLACE_ONE),
    Planted(
        "randomized response that keeps too often",
        flipped(0.8),
        flipped(exp(1) / (1 + exp(1))),
        RandomizedResponse(1),
        (((0,), (1,)),),
        REPLACE_ONE,
    ),
    Planted(
        "randomized response that never lies",
        flipped(1.0),
        flipped(exp(1) / (1 + exp(1))),
        RandomizedResponse(1),
        (((0,), (1,)),),
        REPLACE_ONE,
    ),
    Planted(
        "a threshold one too low",
        threshold(2.0 * log(1 / 0.04) - 1, 2),
        threshold(1 + 2.0 * log(1 / 0.04), 2),
        ApproxDP("0.5", "0.02"),
        (((), (1,)),),
        runs=20_000,
    ),
    Planted("a threshold of zero", threshold(0, 1), threshold(1 + log(500), 1), ApproxDP(1, "1e-3"), (((), (1,)),)),
    Planted(
        "sparse vector without noise on the queries",
        sparse(1, None),
        sparse(2, 4),
        PureDP(1),
        LETTERS,
        REPLACE_ONE,
    ),
    Planted(
        "sparse vector that never stops",
        sparse(1, 1, stops=False),
        sparse(2, 4),
        PureDP(1),
        ((("a", "a"), ("a", "b")), (("b", "b"), ("a", "b"))),
        REPLACE_ONE,
        runs=20_000,
    ),
    Planted(
        "sparse vector that tells what it compared",
        sparse(1, 1, tells=True),
        sparse(2, 4),
        PureDP(1),
        ((("a", "a", "a"), ("a", "a", "b")),),
        REPLACE_ONE,
        runs=40_000,
    ),
    Planted("ten answers charged as one", repeated(1, 10), repeated(10, 10), PureDP(1), ONES),
    Planted(
        "an average of ten answers charged as one", averaged(1, 10), averaged(10, 10), PureDP(1), ONES, runs=20_000
    ),
    Planted(
        "Gaussian noise with the variance as deviation",
        gaussian_count(_FINE**2 * sqrt(analytic(1, 1e-3)) / 3, lambda data: _FINE * len(data)),
        gaussian_count(_FINE**2 * analytic(1, 1e-3), lambda data: _FINE * len(data)),
        _SMALL,
        ONES,
        runs=20_000,
    ),
    Planted(
        "Gaussian noise charged as pure",
        gaussian_count(Fraction(1, 4)),
        counting(1),
        PureDP(1),
        ONES,
    ),
    Planted(
        "δ left out of the noise",
        gaussian_count(int(_FINE**2 / 2), lambda data: _FINE * len(data)),
        gaussian_count(int(_FINE**2 * analytic(1, 1e-3)) + 1, lambda data: _FINE * len(data)),
        _SMALL,
        ONES,
    ),
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
        ((tuple([9] * 8), tuple([9] * 9)), ((), (9,))),
        runs=20_000,
    ),
    Planted(
        "noise divided by the batch as well",
        clipped_gradient(1, Fraction(1, 25), clipped=True),
        clipped_gradient(1, 4, clipped=True),
        Gaussian(variance=4, squared_sensitivity=1),
        GRADIENTS,
    ),
]
