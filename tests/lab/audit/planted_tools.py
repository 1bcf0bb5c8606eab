"""What planted mechanisms are made of. Each takes a data set and a number of runs, and returns as many outputs."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import exp
from typing import Any

import numpy as np

from discreet import noise
from discreet.privacy.events import Event
from discreet.privacy.relation import Relation

ADD_REMOVE, REPLACE_ONE = Relation.ADD_REMOVE, Relation.REPLACE_ONE
Run = Callable[[Any, int], Sequence[Any]]
Pairs = tuple[tuple[Any, Any], ...]


@dataclass(frozen=True)
class Planted:
    """A bug, what its author claims, neighbours on which it shows, and runs that surely show it."""

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


def uniform(*shape: int) -> np.ndarray:
    words = np.frombuffer(os.urandom(8 * int(np.prod(shape))), np.uint64)
    return ((words >> np.uint64(11)) * 2.0**-53).reshape(shape)


def chosen(weights: Sequence[float], runs: int) -> np.ndarray:
    """Draw places with the given weights."""
    edges = np.cumsum(np.asarray(weights, float) / np.sum(weights))
    return np.minimum(np.searchsorted(edges, uniform(runs), side="right"), len(edges) - 1)


def counting(scale: Any, of: Callable[[Any], float] = len) -> Run:
    return lambda data, runs: int(of(data)) + laplace(scale, runs)


def gaussian_count(variance: Any, of: Callable[[Any], float] = len) -> Run:
    return lambda data, runs: int(of(data)) + gaussian(variance, runs)


def noisy(of: Callable[[Any], Sequence[int]], *scales: Any) -> Run:
    """Add Laplace noise to each number of a vector: of one scale, or of one each."""

    def run(data: Any, runs: int) -> np.ndarray:
        values = of(data)
        each = scales if len(scales) > 1 else scales * len(values)
        return np.column_stack([value + laplace(scale, runs) for value, scale in zip(values, each, strict=True)])

    return run


def analytic(epsilon: float, delta: float) -> float:
    """The variance of the analytic Gaussian mechanism, a millionth above it."""
    from scipy.optimize import brentq
    from scipy.stats import norm

    def excess(mu: float) -> float:
        return float(norm.cdf(mu / 2 - epsilon / mu) - exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu) - delta)

    return 1.000001 / brentq(excess, 1e-3, 50) ** 2


def letter_counts(data: Any) -> list[int]:
    return [data.count(letter) for letter in "abc"]


ONES: Pairs = tuple(((1,) * k, (1,) * (k + 1)) for k in range(3))
LETTERS: Pairs = ((("a", "a"), ("a", "b")), (("a", "b", "c"), ("a", "b", "b")), (("a",) * 4, ("a",) * 3 + ("c",)))
NUMBERS: Pairs = (((5, 5), (5, 5, 9)), ((), (9,)))
