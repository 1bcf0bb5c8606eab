"""The laws in whole numbers only: cumulated probabilities of their outcomes, and of blocks of outcomes.

A block of 2^shift values has the weight of its likeliest place; `exponents` gives the least and the largest x of
the probability exp(-x) with which a value in it is accepted.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import TypeAlias

from reference import Steps
from series import Enclosure, erf_of_root, exp_minus, gaussian_weights, narrowed, over, powers, times

Exponents: TypeAlias = Callable[[int, int, int, int], tuple[Fraction, Fraction]]


def geometric(scale: Fraction, shift: int = 0) -> Callable[[int], Steps]:
    """Up to block j lies 1 - q^(j + 1), with q = exp(-2^shift / scale)."""

    def steps(bits: int) -> Steps:
        falling = _powers(scale, shift, bits)
        return Steps(range(len(falling) - 1), [_complement(power, bits) for power in falling[1:]], bits)

    return steps


def laplace(scale: Fraction, shift: int = 0) -> Callable[[int], Steps]:
    """Up to block j lies 1 - q^j + q^j (1 - q) / (1 + a), with a = exp(-1 / scale), and up to ~j 1 - q^(j + 1)."""

    def steps(bits: int) -> Steps:
        falling, one = _powers(scale, shift, bits), 1 << bits
        ratio = exp_minus(1 / scale, bits)
        # 1 - (1 - q) / (1 + a) = (a + q) / (1 + a) is the part of q^j that lies beyond block j.
        part = over((ratio[0] + falling[1][0], ratio[1] + falling[1][1]), (one + ratio[0], one + ratio[1]), bits)
        tops = [
            _complement(beyond, bits)
            for j in range(len(falling) - 1)
            for beyond in (times(falling[j], part, bits), falling[j + 1])
        ]
        return Steps([block for j in range(len(falling) - 1) for block in (j, ~j)], tops, bits)

    return steps


def _powers(scale: Fraction, shift: int, bits: int) -> list[Enclosure]:
    """Enclose 1, q, q^2, … down to what `bits` bits do not show."""
    count = int(bits * scale / 2**shift) + 3
    fine = powers(exp_minus(Fraction(2**shift) / scale, bits + 64), count, bits + 64)
    return [narrowed(power, 64) for power in fine]


def _complement(x: Enclosure, bits: int) -> Enclosure:
    return (1 << bits) - x[1], (1 << bits) - x[0]


def discrete_gaussian(variance: Fraction, shift: int = 0) -> Callable[[int], Steps]:
    """Blocks with the weight of the value that is nearest to zero."""
    return _gaussian(variance, shift, Fraction(0))


def rounded_gaussian_blocks(variance: Fraction, shift: int) -> Callable[[int], Steps]:
    """Blocks with the largest density of the real numbers that round to a value in them."""
    return _gaussian(variance, shift, Fraction(1, 2))


def _gaussian(variance: Fraction, shift: int, half: Fraction) -> Callable[[int], Steps]:
    def steps(bits: int) -> Steps:
        fine, width = bits + 64, Fraction(1 << shift)
        right = [(1 << fine, 1 << fine), *gaussian_weights(width - half, width, variance, fine)]
        left = gaussian_weights(1 - half, width, variance, fine)
        blocks = [block for j in range(len(left)) for block in (j, ~j)]
        sums = list(accumulate((right[j] if j >= 0 else left[~j] for j in blocks), _plus))
        # What is not listed weighs exp(-fine) at most, and then falls by exp(-2^-12) or more from block to block.
        assert width * len(left) * width / variance > Fraction(1, 1 << 12)
        whole = sums[-1][0], sums[-1][1] + (1 << 20)
        return Steps(blocks, [narrowed(over(top, whole, fine), 64) for top in sums], bits)

    return steps


def _plus(first: Enclosure, second: Enclosure) -> Enclosure:
    return first[0] + second[0], first[1] + second[1]


def nearest(block: int, shift: int, half: Fraction) -> Fraction:
    """Return how far the nearest place of a block is from zero, its ends being `half` beyond its values."""
    values = block << shift, (block + 1 << shift) - 1
    return max(Fraction(0), min(abs(values[0]), abs(values[1])) - half)


def rounded_gaussian(variance: Fraction) -> Callable[[int], Steps]:
    """Single values: |X| <= k has the probability erf((k + 1/2) / sqrt(2 variance))."""

    def steps(bits: int) -> Steps:
        inner = [erf_of_root(Fraction(1) / (8 * variance), bits + 1)]
        while inner[-1][0] + 2 < 1 << (bits + 1):
            inner.append(erf_of_root(Fraction(2 * len(inner) + 1) ** 2 / (8 * variance), bits + 1))
        tops = [narrowed(inner[0], 1)]
        for before, after in pairwise(inner):
            tops += [narrowed((before[0] + after[0], before[1] + after[1]), 2), narrowed(after, 1)]
        outcomes = [0, *(value for k in range(1, len(inner)) for value in (-k, k))]
        return Steps(outcomes, tops, bits)

    return steps


def exponential_exponents(scale: Fraction, shift: int) -> Exponents:
    """The weight of a value relative to the nearest one in its block, exp(-(|value| - |nearest|) / scale)."""

    def exponents(block: int, value: int, inside: int, fine: int) -> tuple[Fraction, Fraction]:
        exponent = (abs(value) - nearest(block, shift, Fraction(0))) / scale
        return exponent, exponent

    return exponents


def gaussian_exponents(variance: Fraction, shift: int) -> Exponents:
    """The same for exp(-value^2 / (2 variance))."""

    def exponents(block: int, value: int, inside: int, fine: int) -> tuple[Fraction, Fraction]:
        exponent = (value**2 - nearest(block, shift, Fraction(0)) ** 2) / (2 * variance)
        return exponent, exponent

    return exponents


def rounded_exponents(variance: Fraction, shift: int) -> Exponents:
    """The same for the real numbers that round to the value, from the end that is nearer to zero outward.

    Before it has seen where a number lies within its step, the fast sampler takes the least of |x|^2 for 1/2 less than
    it is, and so asks for more bits than it needs once in a while.
    """

    def exponents(block: int, value: int, inside: int, fine: int) -> tuple[Fraction, Fraction]:
        start = abs(value) - Fraction(1, 2) + Fraction(inside, 1 << fine)
        ends = sorted((abs(start), abs(start + Fraction(1, 1 << fine))))
        least = Fraction(0) if start < 0 < start + Fraction(1, 1 << fine) else ends[0]
        best = nearest(block, shift, Fraction(1, 2)) ** 2
        spare = Fraction(0 if fine else 1, 2)
        return max(Fraction(0), least**2 - best - spare) / (2 * variance), (ends[1] ** 2 - best) / (2 * variance)

    return exponents
