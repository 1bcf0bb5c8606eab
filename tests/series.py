"""Reals between two whole numbers over a power of two, by their series: exp, erf and pi in whole numbers only.

Nothing here knows about the library or about floats. An enclosure (low, high) of x to `bits` bits has
low <= 2^bits x <= high.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

Enclosure: TypeAlias = tuple[int, int]
Enclosed: TypeAlias = Callable[[int], Enclosure]  # From a number of bits.

_SPARE = 64  # Bits that rounding may use up.


def rational(x: Fraction, bits: int) -> Enclosure:
    """Enclose a rational number."""
    scaled = x.numerator << bits
    return scaled // x.denominator, -(-scaled // x.denominator)


def times(first: Enclosure, second: Enclosure, bits: int) -> Enclosure:
    """Enclose the product of two numbers that are not negative."""
    return first[0] * second[0] >> bits, -(-first[1] * second[1] >> bits)


def over(first: Enclosure, second: Enclosure, bits: int) -> Enclosure:
    """Enclose the ratio of two positive numbers."""
    return (first[0] << bits) // second[1], -(-(first[1] << bits) // second[0])


def narrowed(wide: Enclosure, bits: int) -> Enclosure:
    """Drop some of the bits."""
    return wide[0] >> bits, -(-wide[1] >> bits)


@lru_cache(1 << 14)
def exp_minus(x: Fraction, bits: int) -> Enclosure:
    """Enclose exp(-x) for x >= 0: halve the argument until it is small, sum the series, square it back."""
    if x == 0 or x > bits:
        return (1 << bits, 1 << bits) if x == 0 else (0, 1)
    work, halvings = bits + _SPARE, math.ceil(x).bit_length() + 8
    assert 4 * work << halvings < 1 << (_SPARE - 8), "the error would eat up the spare bits"
    small = rational(x / 2**halvings, work)
    # Every term is at most three units too small, there are fewer than `work` of them, and the rest is below one.
    result = max(0, _alternating(small[1], work) - 4 * work), _alternating(small[0], work) + 4 * work
    for _ in range(halvings):
        result = times(result, result, work)
    return narrowed(result, _SPARE)


def powers(x: Enclosure, count: int, bits: int) -> list[Enclosure]:
    """Enclose 1, x, x^2, … for an x that is at most 1."""
    found = [(1 << bits, 1 << bits)]
    for _ in range(count - 1):
        found.append(times(found[-1], x, bits))
    return found


def gaussian_weights(start: Fraction, step: Fraction, variance: Fraction, bits: int) -> list[Enclosure]:
    """Enclose exp(-(start + j step)^2 / (2 variance)) for j = 0, 1, … until the exponent is beyond `bits`."""
    count = math.isqrt(math.ceil(2 * bits * variance / step**2)) + 2
    # The ratio of neighbours falls by a constant factor.
    ratio = exp_minus((2 * start * step + step**2) / (2 * variance), bits)
    found, fall = [exp_minus(start**2 / (2 * variance), bits)], exp_minus(step**2 / variance, bits)
    for _ in range(count - 1):
        found.append(times(found[-1], ratio, bits))
        ratio = times(ratio, fall, bits)
    return found


def _alternating(x: int, bits: int) -> int:
    """Sum 1 - x + x^2 / 2 - … in whole numbers, each term rounded down."""
    total = term = 1 << bits
    order = 0
    while term:
        order += 1
        term = (term * x >> bits) // order
        total += term if order % 2 == 0 else -term
    return total


@lru_cache(256)
def root(x: Fraction, bits: int) -> Enclosure:
    """Enclose a square root."""
    low = math.isqrt((x.numerator << 2 * bits) // x.denominator)
    return low, low + 1


@lru_cache(64)
def pi(bits: int) -> Enclosure:
    """Enclose pi by Machin's formula, 16 arctan(1/5) - 4 arctan(1/239)."""
    work = bits + _SPARE
    value, doubt = 16 * _arctan(5, work) - 4 * _arctan(239, work), 20 * work
    return narrowed((value - doubt, value + doubt), _SPARE)


def _arctan(inverse: int, bits: int) -> int:
    """Sum the series of arctan(1 / inverse); each of fewer than `bits` terms is less than one unit off."""
    power, total, order = (1 << bits) // inverse, 0, 0
    while power:
        total += (-1) ** order * (power // (2 * order + 1))
        power //= inverse**2
        order += 1
    return total


@lru_cache(1 << 14)
def erf_of_root(square: Fraction, bits: int) -> Enclosure:
    """Enclose erf(x) for x = sqrt(square): 2 x exp(-x^2) / sqrt(pi) times the sum of (2 x^2)^n / (2n + 1)!!"""
    if square > bits:
        return (1 << bits) - 1, 1 << bits  # 1 - erf(x) is below exp(-x^2).
    work = bits + 3 * math.ceil(square) + _SPARE
    front = times(root(4 * square, work), exp_minus(square, work), work)
    half_pi_root = math.isqrt(pi(work)[0] << work), math.isqrt(pi(work)[1] << work) + 1
    return narrowed(over(times(front, _double_factorials(2 * square, work), work), half_pi_root, work), work - bits)


def _double_factorials(x: Fraction, bits: int) -> Enclosure:
    """Enclose the sum of x^n / (2n + 1)!!, all of whose terms are positive."""
    low = high = total_low = total_high = 1 << bits
    order = 0
    while high > 1 or 4 * x > 2 * order + 1:
        order += 1
        low = low * x.numerator // (x.denominator * (2 * order + 1))
        high = -(-high * x.numerator // (x.denominator * (2 * order + 1)))
        total_low, total_high = total_low + low, total_high + high
    return total_low, total_high + high  # From here on the terms halve at least.
