"""Divergences of compositions by other ways: outcomes enumerated in ball arithmetic, and an inversion integral."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from discreet.balls import ball, ball_down, ball_up, precision
from discreet.privacy.events import (
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Gaussian,
    Laplace,
    PoissonSampled,
    PureDP,
    RandomizedResponse,
)

Outcomes = Sequence[tuple[Any, Any]]  # the probabilities of one outcome under P and under Q, as balls


def randomized_response(epsilon: Fraction, categories: int) -> Outcomes:
    odds = ball(epsilon).exp()
    total = odds + categories - 1
    return [(odds / total, 1 / total), (1 / total, odds / total)] + [(1 / total, 1 / total)] * (categories - 2)


def discrete_laplace(scale: Fraction, shift: int) -> Outcomes:
    """Outputs 0 … shift, the ends standing for all that lies beyond them."""
    ratio = (-1 / ball(scale)).exp()
    inner = [(ratio**k, ratio ** (shift - k)) for k in range(1, shift)]
    weight = (1 - ratio) / (1 + ratio)
    ends = [(1 / (1 + ratio), ratio**shift / (1 + ratio)), (ratio**shift / (1 + ratio), 1 / (1 + ratio))]
    return ends + [(weight * p, weight * q) for p, q in inner]


def discrete_gaussian(variance: Fraction, shift: int, reach: int) -> Outcomes:
    """Outputs -reach … shift + reach; the weights beyond are below the working precision."""
    weights = {k: (-ball(Fraction(k * k)) / (2 * ball(variance))).exp() for k in range(-2 * reach, 2 * reach + 1)}
    total = sum(weights.values(), ball(0))
    return [(weights[k - shift] / total, weights[k] / total) for k in range(-reach + shift, reach + 1)]


def poisson(outcomes: Outcomes, rate: Fraction) -> Outcomes:
    return [(ball(rate) * p + (1 - ball(rate)) * q, q) for p, q in outcomes]


def reverse(outcomes: Outcomes) -> Outcomes:
    return [(q, p) for p, q in outcomes]


def compose(outcomes: Outcomes, times: int) -> Outcomes:
    """All multisets of outcomes, with how often each occurs."""
    found = []
    for chosen in combinations_with_replacement(range(len(outcomes)), times):
        counts = Counter(chosen)
        ways = math.factorial(times)
        for count in counts.values():
            ways //= math.factorial(count)
        p = q = ball(ways)
        for index, count in counts.items():
            p, q = p * outcomes[index][0] ** count, q * outcomes[index][1] ** count
        found.append((p, q))
    return found


def product(left: Outcomes, right: Outcomes) -> Outcomes:
    return [(p * r, q * s) for p, q in left for r, s in right]


def delta(outcomes: Outcomes, epsilon: Fraction) -> tuple[float, float]:
    """Enclose the hockey-stick divergence. Call it inside `precision`."""
    factor = ball(epsilon).exp()
    total = ball(0)
    for p, q in outcomes:
        gain = p - factor * q
        if not gain < 0:
            total += gain if gain > 0 else ball(0).union(gain)
    return ball_down(total), ball_up(total)


def sampled_gaussian_delta(sigma: float, rate: float, times: int, epsilon: float, *, absent: bool = False) -> float:
    """delta(eps) = integral of e^(K(s) - s eps) / (s (s + 1)) ds / 2 pi i along c + i R, by the trapezoid rule.

    K is the cumulant of the loss, itself a trapezoid sum over outputs. Both sums converge faster than any power.
    """
    mu, width = 1 / sigma, 0.005
    z = np.arange(-13, 13 + mu, width)
    shifted = mu * (z - mu / 2)
    loss = np.log1p(rate * np.expm1(np.minimum(shifted, 1)))
    loss = np.where(shifted < 1, loss, shifted + np.log(rate + (1 - rate) * np.exp(-np.maximum(shifted, 1))))
    without = np.exp(-z * z / 2) * width / math.sqrt(2 * math.pi)
    with_unit = (1 - rate) * without + rate * np.exp(-((z - mu) ** 2) / 2) * width / math.sqrt(2 * math.pi)
    mass, loss = (without, -loss) if absent else (with_unit, loss)

    def cumulant(s: complex) -> Any:
        return times * np.log((mass * np.exp(s * loss)).sum())

    with np.errstate(over="ignore"):
        candidates = np.geomspace(1e-2, 1e4, 200)
        heights = [float(cumulant(c).real) - c * epsilon - math.log(c * (c + 1)) for c in candidates]
    c = float(candidates[int(np.nanargmin(heights))])
    curvature = (cumulant(c * 1.001) - 2 * cumulant(c) + cumulant(c * 0.999)).real / (c * 0.001) ** 2
    step, base, total = 1 / math.sqrt(curvature) / 25, cumulant(c).real - c * epsilon, 0.0
    for k in range(200_000):
        s = complex(c, k * step)
        term = np.exp(cumulant(s) - s * epsilon - base) / (s * (s + 1))
        total += float(term.real) * (0.5 if k == 0 else 1.0)
        if k > 100 and abs(term) < 1e-11 * abs(total):
            break
    return math.exp(base) * total * step / math.pi


def event(described: dict[str, Any]) -> Counter[Event]:
    """Read an event of vectors/pld.json."""
    times = described["times"]
    match described["kind"]:
        case "poisson_gaussian":
            return Counter({PoissonSampled(Gaussian(described["sigma"]), described["probability"]): times})
        case "poisson_laplace":
            return Counter({PoissonSampled(Laplace(described["scale"]), described["probability"]): times})
        case "gaussian":
            return Counter({Gaussian(described["sigma"]): times})
        case "pure":
            return Counter({PureDP(described["epsilon"]): times})
        case "discrete_laplace":
            return Counter({DiscreteLaplace(described["scale"], described["sensitivity"]): times})
        case "discrete_gaussian":
            return Counter({DiscreteGaussian(described["sigma"], described["sensitivity"]): times})
        case "randomized_response":
            return Counter({RandomizedResponse(described["epsilon"], described["categories"]): times})
        case kind:
            raise AssertionError(kind)


__all__ = [
    "compose",
    "delta",
    "discrete_gaussian",
    "discrete_laplace",
    "event",
    "poisson",
    "precision",
    "product",
    "randomized_response",
    "reverse",
    "sampled_gaussian_delta",
]
