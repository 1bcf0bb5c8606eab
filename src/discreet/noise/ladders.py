"""The ladders of the laws: what can come out, likeliest first, with its mass.

A scale that is too large for one table is split: a *block* of 2^m neighbouring values is drawn from a ladder, the
place within it uniformly, and the pair is accepted with the ratio of the weight to the largest one in its block
(see `blocks`). Block j >= 0 holds j 2^m, …, (j + 1) 2^m - 1; block ~j = -1 - j holds their mirror images -1 - k.
Either way the values of block b are b 2^m, …, b 2^m + 2^m - 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from discreet.balls import ball, normal_cdf
from discreet.noise.ladder import Ladder, Rungs

__all__ = ["discrete_gaussian", "geometric", "laplace", "rounded_gaussian", "rounded_gaussian_blocks"]


def _bits_to_nats(depth: int) -> float:
    return (depth + 8) * math.log(2)


def geometric(scale: Fraction, shift: int) -> Ladder:
    """Blocks of 2^shift values of P[k] ~ exp(-k / scale), k >= 0; the digits of k are independent."""

    def rungs(depth: int) -> Rungs:
        count = int(_bits_to_nats(depth) * scale / 2**shift) + 2
        step = ball(-Fraction(2**shift) / scale).exp()
        masses = _powers(step, count)
        return Rungs(range(count), masses, masses[-1] * step / (1 - step))

    return rungs


def laplace(scale: Fraction, shift: int) -> Ladder:
    """Blocks of the discrete Laplace law: k >= 0 with weight a^k, and -1 - k with a^(k + 1)."""

    def rungs(depth: int) -> Rungs:
        half = geometric(scale, shift)(depth)
        ratio = ball(-1 / scale).exp()
        outcomes = [block for j in half.outcomes for block in (j, ~j)]
        masses = [mass for base in half.masses for mass in (base, base * ratio)]
        return Rungs(outcomes, masses, half.rest * (1 + ratio))

    return rungs


def _powers(step: Any, count: int) -> list[Any]:
    powers = [ball(1)]
    for _ in range(count - 1):
        powers.append(powers[-1] * step)
    return powers


def discrete_gaussian(variance: Fraction, shift: int) -> Ladder:
    """Blocks of P[k] ~ exp(-k^2 / (2 variance)), each with the weight of its likeliest member."""
    return _gaussian_blocks(variance, shift, lambda start: 2 * start, lambda start: 2 * start + 2)


def rounded_gaussian_blocks(variance: Fraction, shift: int) -> Ladder:
    """Blocks of the rounded Gaussian, each with the largest density of the real numbers that round into it."""
    return _gaussian_blocks(variance, shift, lambda start: max(2 * start - 1, 0), lambda start: 2 * start + 1)


def _gaussian_blocks(
    variance: Fraction, shift: int, nearest: Callable[[int], int], nearest_negative: Callable[[int], int]
) -> Ladder:
    """List blocks; `nearest` gives twice the distance from zero of the likeliest place."""

    def rungs(depth: int) -> Rungs:
        exponent = ball(-1 / (8 * variance))
        count = _reach(depth, variance) // 2**shift + 2
        doubles = [twice(j << shift) for j in range(count) for twice in (nearest, nearest_negative)]
        masses = [(exponent * double**2).exp() for double in doubles]
        outcomes = [block for j in range(count) for block in (j, ~j)]
        # From one block to the next the weight falls at least as much as it does here.
        place = nearest(count << shift)
        ratio = (exponent * 2 * place * 2 ** (shift + 1)).exp()
        return Rungs(outcomes, masses, ball(0).union(2 * (exponent * place**2).exp() / (1 - ratio)))

    return rungs


def _reach(depth: int, variance: Fraction) -> int:
    """Return where the tail of a Gaussian surely weighs less than 2^-depth of the whole."""
    return int(math.sqrt(2 * _bits_to_nats(depth) * variance)) + 1


def rounded_gaussian(variance: Fraction) -> Ladder:
    """Single values of the rounded Gaussian with their own masses."""

    def rungs(depth: int) -> Rungs:
        step = ball(Fraction(-1, 2)) / ball(variance).sqrt()
        count = _reach(depth, variance) + 1
        above = [normal_cdf(step * (2 * k + 1)) for k in range(count)]
        outer = [above[k - 1] - above[k] for k in range(1, count)]
        outcomes = [0, *(value for k in range(1, count) for value in (-k, k))]
        return Rungs(outcomes, [1 - 2 * above[0], *(m for mass in outer for m in (mass, mass))], 2 * above[-1])

    return rungs
