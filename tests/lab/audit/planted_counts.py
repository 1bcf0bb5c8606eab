"""Wrong counts, sums, means and histograms, each beside the right one."""

from __future__ import annotations

import random
from collections import Counter
from fractions import Fraction
from math import sqrt
from typing import Any

import numpy as np
from planted_tools import (
    LETTERS,
    NUMBERS,
    ONES,
    REPLACE_ONE,
    Pairs,
    Planted,
    Run,
    analytic,
    counting,
    gaussian_count,
    laplace,
    letter_counts,
    noisy,
    uniform,
)

from discreet import noise
from discreet.privacy.events import ApproxDP, PureDP

_FINE = 100


def clamped_sum(bound: int, scale: Any, *, after: bool = False) -> Run:
    def run(data: Any, runs: int) -> np.ndarray:
        total = sum(data) if after else sum(min(value, bound) for value in data)
        out = total + laplace(scale, runs)
        return np.clip(out, -10 * bound, 10 * bound) if after else out

    return run


def clamped_to_data(data: Any, runs: int) -> np.ndarray:
    """Noise first, then the bounds of the data: the largest value stands in the output."""
    return np.clip(sum(min(value, 9) for value in data) + laplace(9, runs), 0, max(data, default=0))


def snapped_to_data(data: Any, runs: int) -> np.ndarray:
    """A noisy middle, moved to the nearest value that somebody has."""
    values = np.array(sorted([0, *data]))
    out = int(np.median(values)) + laplace(9, runs)
    return values[np.abs(out[:, None] - values).argmin(axis=1)]


def mean_by_exact_size(data: Any, runs: int) -> np.ndarray:
    """A noisy sum over the exact number of rows."""
    return (sum(data) + laplace(9, runs)) / max(len(data), 1)


def with_published_scale(data: Any, runs: int) -> np.ndarray:
    """Noise by the spread of these data, and the spread printed beside it."""
    scale = Fraction(1 + max(data, default=0) - min(data, default=0))
    return np.column_stack([sum(data) + laplace(scale, runs), np.full(runs, int(scale))])


def scale_by_local_sensitivity(data: Any, runs: int) -> np.ndarray:
    """Noise by what one change could do to the median of these data, the printed recipe."""
    ordered = sorted([0, *data, 100])
    middle = len(ordered) // 2
    local = max(ordered[min(middle + 1, len(ordered) - 1)] - ordered[middle], ordered[middle] - ordered[middle - 1])
    return ordered[middle] + laplace(Fraction(local) if local else Fraction(1, 16), runs)


def median(scale: Any) -> Run:
    return lambda data, runs: int(np.median(data)) + laplace(scale, runs)


def seeded(data: Any, runs: int) -> list[int]:
    """The same generator for every call."""
    return [len(data) + round(random.Random(7).expovariate(1.0)) for _ in range(runs)]


def seeded_by_data(data: Any, runs: int) -> list[int]:
    """Sticky noise: the data choose it."""
    return [len(data) + round(random.Random(repr(data)).gauss(0, 3)) for _ in range(runs)]


def same_noise_twice(data: Any, runs: int) -> np.ndarray:
    """One draw for two counts: their difference is exact."""
    extra = laplace(2, runs)
    return np.column_stack([data.count("a") + extra, data.count("b") + extra])


def one_sided(data: Any, runs: int) -> np.ndarray:
    """Noise that only adds: an answer below the exact count never comes."""
    return len(data) + np.abs(laplace(1, runs))


def redrawn(data: Any, runs: int) -> np.ndarray:
    """Drawn again until the answer is not negative."""
    out = len(data) + laplace(1, runs)
    while (out < 0).any():
        out = np.where(out < 0, len(data) + laplace(1, runs), out)
    return out


def bounded_noise(data: Any, runs: int) -> np.ndarray:
    return len(data) + np.floor(uniform(runs) * 11).astype(int) - 5


def rounded_after(step: int, scale: Any) -> Run:
    """Round the exact count to a step, then add noise for a change of one."""
    return lambda data, runs: step * round(len(data) / step) + laplace(scale, runs)


def empty_is_silent(data: Any, runs: int) -> list[Any]:
    """No noise for nobody."""
    return [None] * runs if not data else (len(data) + laplace(1, runs)).tolist()


def refuses_when_small(data: Any, runs: int) -> list[Any]:
    """An exact test before the noise."""
    return ["too few"] * runs if len(data) < 2 else (len(data) + laplace(1, runs)).tolist()


def found_bins(least: float) -> Run:
    """A histogram of whatever values there are, as a dictionary; of noisy counts above `least` only."""

    def run(data: Any, runs: int) -> list[dict[str, int]]:
        drawn = {key: count + laplace(1, runs) for key, count in Counter(data).items()}
        return [{key: int(noisy[i]) for key, noisy in drawn.items() if noisy[i] > least} for i in range(runs)]

    return run


def rows_of_units(most: int) -> Run:
    """Count rows, `most` of each unit at most; a record is the list of a unit's rows."""
    return lambda data, runs: sum(min(len(rows), most) for rows in data) + laplace(1, runs)


def discrete_gaussian(variance: float) -> Run:
    return lambda data, runs: len(data) + np.asarray(noise.discrete_gaussian(variance=Fraction(variance), size=runs))


def four_counts(data: Any) -> list[int]:
    """One record moves all of them."""
    return [len(data)] * 4


SPREAD: Pairs = (((0, 0, 100), (0, 100, 100)), ((0, 50, 100), (0, 0, 100)))
ROWS: Pairs = (((), (("x",) * 3,)), ((("x",),), (("x",), ("y",) * 3)))

COUNTS = [
    Planted("noise of half the scale", counting("0.5"), counting(1), PureDP(1), ONES),
    Planted("noise 10 % too small", counting("0.9"), counting(1), PureDP(1), ONES, runs=120_000),
    Planted("scale ε instead of 1/ε", counting("0.5"), counting(2), PureDP("0.5"), ONES),
    Planted(
        "wrong relation: a replaced record moves two bins",
        noisy(letter_counts, 1),
        noisy(letter_counts, 2),
        PureDP(1),
        LETTERS,
        REPLACE_ONE,
        runs=20_000,
    ),
    Planted(
        "wrong relation: a replaced value moves a sum by the width of its bounds",
        counting(9, sum),
        counting(18, sum),
        PureDP(1),
        (((9, 0), (-9, 0)), ((0, 0), (9, 0))),
        REPLACE_ONE,
        runs=20_000,
    ),
    Planted("sensitivity of a sum taken as 1", clamped_sum(9, 1), clamped_sum(9, 9), PureDP(1), NUMBERS),
    Planted(
        "a sum clamped after the noise instead of before",
        clamped_sum(3, 3, after=True),
        clamped_sum(3, 3),
        PureDP(1),
        NUMBERS,
    ),
    Planted("clamped to the bounds of the data", clamped_to_data, clamped_sum(9, 9), PureDP(1), NUMBERS),
    Planted("snapped to a value of the data", snapped_to_data, clamped_sum(9, 9), PureDP(1), NUMBERS),
    Planted(
        "a mean over the exact size",
        mean_by_exact_size,
        noisy(lambda data: (sum(data), len(data)), 18, 2),
        PureDP(1),
        NUMBERS,
    ),
    Planted("a scale by the data, published", with_published_scale, clamped_sum(9, 9), PureDP(1), NUMBERS),
    Planted(
        "noise by local sensitivity",
        scale_by_local_sensitivity,
        counting(1),
        PureDP(1),
        (((0, 0), (0, 0, 0)), ((0, 0, 0, 0), (0, 0, 0, 0, 0))),
    ),
    Planted(
        "a median with the sensitivity of a mean",
        median(Fraction(100, 3)),
        median(100),
        PureDP(1),
        SPREAD,
        REPLACE_ONE,
    ),
    Planted("a fixed seed", seeded, counting(1), PureDP(1), ONES),
    Planted("noise that the data choose", seeded_by_data, counting(1), PureDP(1), ONES),
    Planted(
        "one draw used for two counts",
        same_noise_twice,
        noisy(lambda data: letter_counts(data)[:2], 2),
        PureDP(1),
        LETTERS[:1],
        REPLACE_ONE,
    ),
    Planted("noise that only adds", one_sided, counting(1), PureDP(1), ONES),
    Planted("drawn again until not negative", redrawn, counting(1), PureDP(1), ONES, runs=60_000),
    Planted("uniform noise", bounded_noise, counting(1), PureDP(1), ONES, runs=12_000),
    Planted("rounding to tens, noise for ones", rounded_after(10, 1), counting(1), PureDP(1), (((1,) * 5, (1,) * 6),)),
    Planted("no noise for nobody", empty_is_silent, counting(1), PureDP(1), ONES),
    Planted("an exact test before the noise", refuses_when_small, counting(1), PureDP(1), ONES),
    Planted(
        "bins found in the data without a threshold",
        found_bins(-1_000),
        found_bins(8),
        ApproxDP(1, "1e-3"),
        ((("a", "a"), ("a", "a", "b")),),
    ),
    Planted("a person counted as one row", rows_of_units(99), rows_of_units(1), PureDP(1), ROWS),
    Planted(
        "Laplace noise by the Euclidean sensitivity",
        noisy(four_counts, "2/3"),
        noisy(four_counts, "4/3"),
        PureDP(3),
        ONES[:1],
        runs=8_000,
    ),
    Planted(
        "Gaussian noise with the variance as deviation",
        gaussian_count(_FINE**2 * sqrt(analytic(1, 1e-3)) / 3, lambda data: _FINE * len(data)),
        gaussian_count(_FINE**2 * analytic(1, 1e-3), lambda data: _FINE * len(data)),
        ApproxDP(1, "1e-3"),
        ONES,
        runs=20_000,
    ),
    Planted("Gaussian noise charged as pure", gaussian_count(Fraction(1, 4)), counting(1), PureDP(1), ONES),
    Planted(
        "δ left out of the noise",
        gaussian_count(int(_FINE**2 / 2), lambda data: _FINE * len(data)),
        gaussian_count(int(_FINE**2 * analytic(1, 1e-3)) + 1, lambda data: _FINE * len(data)),
        ApproxDP(1, "1e-3"),
        ONES,
        runs=20_000,
    ),
    Planted(
        "discrete Gaussian noise with the analytic variance",
        discrete_gaussian(analytic(2, 0.1)),
        gaussian_count(analytic(2, 0.1)),
        ApproxDP(2, "0.1"),
        ONES[:1],
        runs=600_000,
    ),
]
