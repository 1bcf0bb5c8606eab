"""Laws of small worlds written out, and divergences summed term by term: slow, simple, independent of the library."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Law = NDArray[np.float64]


def renyi(p: Law, q: Law, order: float) -> float:
    """The Renyi divergence of two laws on the same outcomes."""
    both = (p > 0) & (q > 0)
    if (p[~both] > 0).any():
        return float("inf")
    terms = order * np.log(p[both]) + (1 - order) * np.log(q[both])
    top = terms.max()
    return float((top + np.log(np.exp(terms - top).sum())) / (order - 1))


def hockey_stick(p: Law, q: Law, epsilon: float) -> float:
    """The least delta of one ordered pair."""
    return float(np.maximum(0.0, p - np.exp(epsilon) * q).sum())


def discrete_laplace(scale: float, centre: int, reach: int = 500) -> Law:
    k = np.arange(-reach, reach + 1)
    ratio = np.exp(-1 / scale)
    return (1 - ratio) / (1 + ratio) * ratio ** np.abs(k - centre)


def discrete_gaussian(sigma: float, centre: int, reach: int = 200) -> Law:
    k = np.arange(-reach, reach + 1)
    weights = np.exp(-((k - centre) ** 2) / (2 * sigma**2))
    return weights / weights.sum()


def rounded_gaussian(sigma: float, centre: int, reach: int = 30) -> Law:
    def upper_tail(x: float) -> float:
        return math.erfc(x / sigma / math.sqrt(2)) / 2

    # By symmetry each cell is a difference of upper tails, which keeps the digits of the far ones.
    distances = [abs(k - centre) for k in range(-reach, reach + 1)]
    return np.array([upper_tail(d - 0.5) - upper_tail(d + 0.5) for d in distances])


def response(epsilon: float, categories: int, answer: int) -> Law:
    weights = np.ones(categories)
    weights[answer] = np.exp(epsilon)
    return weights / weights.sum()


def product(*laws: Law) -> Law:
    joint = np.ones(1)
    for law in laws:
        joint = np.outer(joint, law).ravel()
    return joint


def poisson_mixture(law_of_sum, values: tuple[int, ...], q: float) -> Law:  # type: ignore[no-untyped-def]
    """The law of a mechanism on the sum of a Poisson sample."""
    total = 0.0
    for size in range(len(values) + 1):
        for chosen in combinations(range(len(values)), size):
            weight = q**size * (1 - q) ** (len(values) - size)
            total = total + weight * law_of_sum(sum(values[i] for i in chosen))
    return np.asarray(total)


def fixed_size_mixture(law_of_sum, values: tuple[int, ...], size: int) -> Law:  # type: ignore[no-untyped-def]
    """The law of a mechanism on the sum of a uniform sample of fixed size."""
    samples = list(combinations(range(len(values)), size))
    return np.asarray(sum(law_of_sum(sum(values[i] for i in chosen)) for chosen in samples) / len(samples))
