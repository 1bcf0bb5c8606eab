"""Wrong selections, thresholds and tests, each beside the right one."""

from __future__ import annotations

from math import exp, log
from typing import Any

import numpy as np
from planted_tools import LETTERS, REPLACE_ONE, Pairs, Planted, Run, chosen, laplace, letter_counts, uniform

from discreet.privacy.events import ApproxDP, PureDP, RandomizedResponse


def softmax(factor: float) -> Run:
    """Choose a letter by the exponential of its count."""
    return lambda data, runs: chosen(np.exp(factor * np.array(letter_counts(data), float)), runs)


def softmax_of_data(data: Any, runs: int) -> np.ndarray:
    """The same, among those letters that somebody has."""
    counts = np.array(letter_counts(data), float)
    return chosen(np.where(counts > 0, np.exp(0.5 * counts), 0.0), runs)


def two_best(factor: float) -> Run:
    """Choose a letter, then another one among the rest."""

    def run(data: Any, runs: int) -> np.ndarray:
        weights = np.exp(factor * np.array(letter_counts(data), float))
        pairs = [(i, j) for i in range(3) for j in range(3) if i != j]
        chances = [weights[i] / weights.sum() * weights[j] / (weights.sum() - weights[i]) for i, j in pairs]
        return chosen(chances, runs)

    return run


def middle(factor: float) -> Run:
    """Choose a median from 0 to 9 by how unequally it divides the data."""

    def run(data: Any, runs: int) -> np.ndarray:
        rows, grid = np.array(data), np.arange(10)
        unequal = np.abs((rows[:, None] < grid).sum(axis=0) - (rows[:, None] > grid).sum(axis=0))
        return chosen(np.exp(-factor * unequal), runs)

    return run


def noisy_max(scale: Any, *, tells: bool = False) -> Run:
    def run(data: Any, runs: int) -> Any:
        scores = np.column_stack([count + laplace(scale, runs) for count in letter_counts(data)])
        best = scores.argmax(axis=1)
        return np.column_stack([best, scores.max(axis=1)]) if tells else ["abc"[place] for place in best]

    return run


def exact_mode(data: Any, runs: int) -> list[str]:
    return [max("abc", key=data.count)] * runs


def flipped(keep: float) -> Run:
    """Randomized response of one bit."""
    return lambda data, runs: np.where(uniform(runs) < keep, data[0], 1 - data[0])


def threshold(least: int, scale: Any) -> Run:
    """Show the noisy count of a group that has somebody if it is at least a threshold."""

    def run(data: Any, runs: int) -> list[Any]:
        return [int(count) if data and count >= least else None for count in len(data) + laplace(scale, runs)]

    return run


def needed_threshold(scale: float, delta: float) -> int:
    """The smallest threshold that one person reaches with probability `delta` at most."""
    ratio, least = exp(-1 / scale), 1
    while ratio ** (least - 1) / (1 + ratio) > delta:
        least += 1
    return least


def stable_mode(least: float, scale: Any) -> Run:
    """Tell the exact mode if the noisy number of changes that it survives is above a threshold."""

    def run(data: Any, runs: int) -> list[Any]:
        counts = sorted(letter_counts(data))
        distance = max(0, (counts[2] - counts[1] - 1) // 2)
        noisy = distance + (laplace(scale, runs) if scale else np.zeros(runs))
        return [max("abc", key=data.count) if one > least else None for one in noisy]

    return run


def sparse(threshold_scale: Any, query_scale: Any, *, tells: bool = False, most: int = 1) -> Run:
    """Say of each of four counts whether it is above a noisy threshold, until `most` were; -1 stands for silence."""

    def run(data: Any, runs: int) -> np.ndarray:
        queries = np.array([data.count("a"), data.count("b")] * 2)
        extra = [laplace(query_scale, runs) if query_scale else np.zeros(runs, int) for _ in queries]
        seen = queries + np.column_stack(extra)
        above = seen >= (1 + laplace(threshold_scale, runs))[:, None]
        asked = np.cumsum(above, axis=1) - above < most
        return np.where(asked, np.where(above, 1_000 + seen if tells else 1, 0), -1)

    return run


BITS: Pairs = (((0,), (1,)),)
CLOSE: Pairs = ((("a", "a", "b", "c"), ("a", "b", "b", "c")), (("a",) * 4, ("b",) + ("a",) * 3))
MIDDLES: Pairs = (((0, 0, 0), (0, 0, 9)),)
MODES: Pairs = ((("a",) * 3 + ("b",) * 3, ("a",) * 2 + ("b",) * 4), (("a",) * 3 + ("b",), ("a", "a", "b", "b")))
TRUE = exp(1) / (1 + exp(1))

CHOICES = [
    Planted(
        "exponential mechanism without the 2", softmax(1.0), softmax(0.5), PureDP(1), LETTERS, REPLACE_ONE, runs=60_000
    ),
    Planted("candidates taken from the data", softmax_of_data, softmax(0.5), PureDP(1), LETTERS, REPLACE_ONE),
    Planted("two choices charged as one", two_best(0.5), two_best(0.25), PureDP("0.5"), LETTERS, REPLACE_ONE, 60_000),
    Planted(
        "a median with half of its sensitivity", middle(0.5), middle(0.25), PureDP(1), MIDDLES, REPLACE_ONE, 240_000
    ),
    Planted("noisy max of half the scale", noisy_max("0.5"), noisy_max(2), PureDP(1), LETTERS, REPLACE_ONE, 8_000),
    Planted(
        "noisy max that tells the winning score",
        noisy_max(1, tells=True),
        noisy_max(2),
        PureDP(1),
        CLOSE,
        REPLACE_ONE,
        runs=20_000,
    ),
    Planted("the exact mode", exact_mode, softmax(0.5), PureDP(1), LETTERS, REPLACE_ONE),
    Planted(
        "randomized response that keeps too often",
        flipped(0.8),
        flipped(TRUE),
        RandomizedResponse(1),
        BITS,
        REPLACE_ONE,
        runs=20_000,
    ),
    Planted(
        "randomized response that never lies", flipped(1.0), flipped(TRUE), RandomizedResponse(1), BITS, REPLACE_ONE
    ),
    Planted(
        "a threshold one too low",
        threshold(needed_threshold(1, 0.02) - 1, 1),
        threshold(needed_threshold(1, 0.02), 1),
        ApproxDP(1, "0.02"),
        (((), (1,)),),
        runs=100_000,
    ),
    Planted("a threshold of zero", threshold(0, 1), threshold(9, 1), ApproxDP(1, "1e-3"), (((), (1,)),)),
    Planted(
        "a stability test without noise",
        stable_mode(0, None),
        stable_mode(log(1000), 1),
        ApproxDP(1, "1e-3"),
        ((("a",) * 4 + ("b",), ("a",) * 3 + ("b", "b")),),
        REPLACE_ONE,
    ),
    Planted(
        "propose-test-release without a threshold for δ",
        stable_mode(0, 1),
        stable_mode(log(1000), 1),
        ApproxDP(1, "1e-3"),
        MODES,
        REPLACE_ONE,
    ),
    Planted(
        "sparse vector without noise on the queries",
        sparse(1, None),
        sparse(2, 4),
        PureDP(1),
        LETTERS,
        REPLACE_ONE,
        8_000,
    ),
    Planted(
        "sparse vector that never stops",
        sparse(1, 1, most=4),
        sparse(2, 4),
        PureDP(1),
        ((("a", "a"), ("a", "b")), (("b", "b"), ("a", "b"))),
        REPLACE_ONE,
        runs=20_000,
    ),
    Planted(
        "sparse vector whose noise does not grow with what it finds",
        sparse(2, "0.8", most=2),
        sparse(2, 8, most=2),
        PureDP(1),
        ((("a", "a"), ("a", "b")), (("b", "b"), ("a", "b"))),
        REPLACE_ONE,
        runs=40_000,
    ),
    Planted(
        "sparse vector that tells what it compared",
        sparse(1, 1, tells=True),
        sparse(2, 4),
        PureDP(1),
        ((("a", "a", "a"), ("a", "a", "b")),),
        REPLACE_ONE,
        runs=50_000,
    ),
]
