"""Strategies for running totals: the binary tree, one weighted measurement a day, and which errs least."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import Protocol, final

import numpy as np

from discreet.errors import InvalidParameter
from discreet.exact import positive_integer

__all__ = [
    "BITS",
    "MOST_DAYS",
    "ONE",
    "DayTree",
    "Strategy",
    "Triangular",
    "best",
    "dailies",
    "errors_by_day",
    "largest_error",
    "least_error",
    "root_up",
    "scaled_root",
    "square_root",
    "strategies",
    "totals",
]

# --- strategy ---
# What is measured of a stream of daily counts, so that the totals so far follow from it with little noise.
#
# A strategy is a matrix C with one row for each measurement; the measurements are y = C x + z for the daily counts x
# and
# fresh noise z, and every total is a fixed combination of measurements that were made by then. What leaves is y, and
# all
# else is post-processing. The weights in C are whole multiples of a public step, so that measurements are whole.


BITS = 22
ONE = 1 << BITS  # Weights and measurements are whole numbers of this part of one person.
_FINE = 40  # Bits behind the point of a root.


class Strategy(Protocol):
    """Public, and the same whatever the data are. Days count from 0."""

    @property
    def name(self) -> str:
        """What it is called."""

    @property
    def days(self) -> int:
        """For how many days it is made."""

    def weights(self, day: int) -> tuple[tuple[int, ...], ...]:
        """Return what is measured when a day has ended: weights, in steps, of all days up to it."""

    def squared_sensitivity(self, max_days: int) -> int:
        """Return the most, in squared steps, that a unit changes all measurements if it is counted on so many days.

        It is the l2 norm, squared; on each of these days the unit counts as one.
        """

    def variances(self) -> tuple[Fraction, ...]:
        """Return the variance of every total if each measurement, in persons, has noise of variance 1; rounded up."""

    def reaches(self) -> tuple[Fraction, ...]:
        """Return how far every total is off if each measurement is off by up to 1: an l1 norm; rounded up."""

    def totals(self, measured: Sequence[Sequence[int]]) -> tuple[Fraction, ...]:
        """Return the totals of the days that were measured, in persons, from what was measured, in steps."""


def root_up(value: Fraction) -> Fraction:
    """Return a number not below the square root, and above it by less than 2^-19."""
    return Fraction(math.isqrt(math.ceil(value * (1 << _FINE))) + 1, 1 << (_FINE // 2))


# --- tree ---
# A binary tree over the days: count stretches of one, two, four … days, and make every total of a few of them.


@final
@dataclass(frozen=True)
class DayTree:
    """Measure every stretch of 2^l days that begins at a multiple of 2^l, when it has ended. [DNPR10, CSS11]

    Totals use the best estimate of a stretch from its own measurement and those inside it. [Hon15]

    Theorem     On each level a unit counted on k days is in stretches s_1, s_2, … times with sum k at most, each at
                most 2^l times; the sum of squares is largest when as many as possible are full. The first k days do
                that on all levels at once, so this is the exact norm.
                Estimates of two halves, of variance v each, and a measurement of the whole, of variance 1, are
                independent: weighed by their precision they give variance 1 / (1 + 1 / 2v) = 2^l / (2^(l+1) - 1).
    """

    days: int
    name: str = "binary tree"

    @property
    def levels(self) -> int:
        return self.days.bit_length()

    def weights(self, day: int) -> tuple[tuple[int, ...], ...]:
        ended = [1 << level for level in range(self.levels) if (day + 1) % (1 << level) == 0]
        return tuple((0,) * (day + 1 - size) + (ONE,) * size for size in ended)

    def squared_sensitivity(self, max_days: int) -> int:
        most = min(max_days, self.days)
        return ONE**2 * sum(self._on_level(most, 1 << level) for level in range(self.levels))

    def _on_level(self, most: int, size: int) -> int:
        full, rest = divmod(most, size)
        return full * size**2 + (rest**2 if full < self.days // size else 0)

    def variances(self) -> tuple[Fraction, ...]:
        parts = [_variance(level) for level in range(self.levels)]
        return tuple(sum((parts[level] for level in _levels(day + 1)), Fraction(0)) for day in range(self.days))

    def reaches(self) -> tuple[Fraction, ...]:
        parts = [Fraction(1)]
        for level in range(1, self.levels):
            own = _variance(level)
            parts.append(own + (1 - own) * 2 * parts[-1])
        return tuple(sum((parts[level] for level in _levels(day + 1)), Fraction(0)) for day in range(self.days))

    def totals(self, measured: Sequence[Sequence[int]]) -> tuple[Fraction, ...]:
        found: list[Fraction] = []
        stretches: list[Fraction] = []  # Estimates that add up to the total so far: one for each binary digit of it.
        for numbers in measured:
            newest = Fraction(0)
            for level, number in enumerate(numbers):
                below = Fraction(0) if level == 0 else newest + stretches.pop()
                own = _variance(level)
                newest = own * Fraction(number, ONE) + (1 - own) * below
            stretches.append(newest)
            found.append(sum(stretches, Fraction(0)))
        return tuple(found)


def _variance(level: int) -> Fraction:
    """Return the variance of the best estimate of a stretch of 2^level days."""
    return Fraction(1 << level, (2 << level) - 1)


def _levels(days: int) -> list[int]:
    """Return the stretches that make up the first days: the binary digits of their number."""
    return [level for level in range(days.bit_length()) if days >> level & 1]


# --- triangular: One measurement a day: the counts of all days so far, each weighed by how long ago it was. ---
#
# C = T D, where T has the coefficient t[i - j] in row i and column j, and D scales the columns. Four strategies are of
# this form: daily counts, totals, the square root of the matrix of running sums, and that root with its columns scaled.


_UNIT = 1 << 12  # Coefficients are whole multiples of 1 / _UNIT; the first is 1.
_FULL = 1 << 10  # Scales are whole multiples of 1 / _FULL.
_TRIANGULAR_FINE = 96  # Bits behind the point where totals are taken from measurements.
_SLACK = 1 + Fraction(1, 1 << 40)  # More than all those bits that were cut off.


@final
@dataclass(frozen=True)
class Triangular:
    """Weights coefficient[i - j] * scale[j]: none is negative, coefficients never grow, scales never fall.

    Theorem     A unit that is counted on days S changes all measurements by the l2 norm of the sum of the columns S.
                Let G(i, j) be the inner product of columns i and j. For i < j it falls if i goes back, for the scale
                of i falls and the coefficients of column i that meet those of j fall. So G(i, j) <= g(j - i), the
                largest G of two columns that are so many days apart, and with the days of S in order
                sum G(s_a, s_b) <= sum g(|a - b|). Where all scales are one, G(i, j) also falls if both go ahead by
                the same, for fewer rows are left; so then the first days are the worst, and the norm is exact.
    """

    name: str
    coefficients: tuple[int, ...]
    scales: tuple[int, ...]

    @property
    def days(self) -> int:
        return len(self.coefficients)

    def weights(self, day: int) -> tuple[tuple[int, ...], ...]:
        return (tuple(self.coefficients[day - past] * self.scales[past] for past in range(day + 1)),)

    def squared_sensitivity(self, max_days: int) -> int:
        most = min(max_days, self.days)
        if self._is_plain:
            sums = list(accumulate(self.coefficients))
            kept = (total - (sums[row - most] if row >= most else 0) for row, total in enumerate(sums))
            return _FULL**2 * sum(total**2 for total in kept)
        return sum((most - gap) * (1 if gap == 0 else 2) * self._largest_product(gap) for gap in range(most))

    @property
    def _is_plain(self) -> bool:
        return set(self.scales) == {_FULL}

    def _largest_product(self, gap: int) -> int:
        """Return the largest inner product of two columns that are so many days apart."""
        pairs = zip(self.coefficients, self.coefficients[gap:], strict=False)
        sums = list(accumulate(one * other for one, other in pairs))  # over the rows from the later column on
        return max(
            self.scales[later - gap] * self.scales[later] * sums[self.days - 1 - later]
            for later in range(gap, self.days)
        )

    def variances(self) -> tuple[Fraction, ...]:
        squares = (sum(part**2 for part in row) for row in self._combinations())
        return tuple(_SLACK * Fraction(total, 1 << (2 * _TRIANGULAR_FINE)) for total in squares)

    def reaches(self) -> tuple[Fraction, ...]:
        sizes = (sum(map(abs, row)) for row in self._combinations())
        return tuple(_SLACK * Fraction(total, 1 << _TRIANGULAR_FINE) for total in sizes)

    def _combinations(self) -> Iterator[list[int]]:
        """Return how each total is made of the measurements: fixed point numbers, the first measurement first."""
        back = _inverse(self.coefficients)
        row: list[int] = []
        for day, scale in enumerate(self.scales):
            row.append(0)
            row = [part + back[day - place] * _FULL // scale for place, part in enumerate(row)]
            yield row

    def totals(self, measured: Sequence[Sequence[int]]) -> tuple[Fraction, ...]:
        """Take the days out of the measurements one by one, and add them up.

        Each step is rounded by less than 2^-96; together that moves no total by more than its reach times that.
        """
        weighed: list[int] = []  # T^-1 y, in fixed point: the counts with their scales still on
        for (number,) in measured:
            past = sum(c * x for c, x in zip(self.coefficients[1:], reversed(weighed), strict=False))
            weighed.append(((number << _TRIANGULAR_FINE) // ONE) - past // _UNIT)
        daily = (value * _FULL // scale for value, scale in zip(weighed, self.scales, strict=False))
        return tuple(Fraction(total, 1 << _TRIANGULAR_FINE) for total in accumulate(daily))


@lru_cache(16)
def _inverse(coefficients: tuple[int, ...]) -> tuple[int, ...]:
    """Return the coefficients of the inverse of T in fixed point."""
    found = [1 << _TRIANGULAR_FINE]
    for _ in range(1, len(coefficients)):
        found.append(-(sum(c * x for c, x in zip(coefficients[1:], reversed(found), strict=False)) // _UNIT))
    return tuple(found)


def dailies(days: int) -> Triangular:
    """Measure each day by itself: totals are sums of ever more noise."""
    return Triangular("sums of daily counts", (_UNIT, *[0] * (days - 1)), (_FULL,) * days)


def totals(days: int) -> Triangular:
    """Measure each total by itself: a person is in all that come after."""
    return Triangular("independent totals", (_UNIT,) * days, (_FULL,) * days)


def square_root(days: int) -> Triangular:
    """Measure by the square root of the matrix of running sums, rounded. [FHU23, HUU23]

    Theorem     The series 1 / sqrt(1 - x) has the coefficients binom(2k, k) / 4^k; squared it is 1 / (1 - x), the
                running sum. They fall, and so do they when rounded.
    """
    return Triangular("square root", _root(days), (_FULL,) * days)


def scaled_root(days: int) -> Triangular:
    """Measure by the same root with columns scaled up until all are about as long as the longest. [HKU25]

    Later days are in fewer measurements. Weighed more they cost nobody more, and are told more exactly.
    """
    root = _root(days)
    lengths = list(accumulate(c**2 for c in root))[::-1]  # squared, by column
    return Triangular("scaled square root", root, tuple(math.isqrt((_FULL * _UNIT) ** 2 // one) for one in lengths))


def _root(days: int) -> tuple[int, ...]:
    found, exact = [_UNIT], Fraction(1)
    for number in range(1, days):
        exact *= Fraction(2 * number - 1, 2 * number)
        found.append(round(exact * _UNIT))
    return tuple(found)


# --- choosing ---
# Which strategy errs least, and what no strategy could do better. All of it follows from public facts.


MOST_DAYS = 3_660  # Ten years; beyond it begin a new series.
_DOWN = 1 - 1e-12  # What floats may have added.
_QUICK_DAYS = 1_100  # Up to here the scaled root is looked at too: its errors take a number of steps that is squared.


def strategies(days: int) -> tuple[Strategy, ...]:
    """Return every strategy for a number of days."""
    if positive_integer(days, name="days") > MOST_DAYS:
        raise InvalidParameter(f"a series has at most {MOST_DAYS:,} days: begin a new one after that")
    scaled = (scaled_root(days),) if days <= _QUICK_DAYS else ()
    return (*scaled, square_root(days), DayTree(days), dailies(days), totals(days))


def largest_error(strategy: Strategy, max_days: int) -> float:
    """Return the standard deviation of the worst total, at a price of mu = 1."""
    return max(errors_by_day(strategy, max_days))


def errors_by_day(strategy: Strategy, max_days: int) -> tuple[float, ...]:
    """Return the standard deviation of every total, at a price of mu = 1."""
    moved = strategy.squared_sensitivity(max_days) / ONE**2
    return tuple(math.sqrt(moved * one) for one in strategy.variances())


@lru_cache(64)
def best(days: int, max_days: int) -> Strategy:
    """Return the strategy whose worst total errs least."""
    return min(strategies(days), key=lambda one: largest_error(one, max_days))


@lru_cache(64)
def least_error(days: int, max_days: int = 1) -> float:
    """Return what the largest and the mean squared error of all totals cannot go below, at mu = 1; rounded down.

    Theorem     Let A = B C be the running sums by a strategy, and let no k days of one unit change C x by more than 1
                at mu = 1. Let W have a column for each stretch of k days in a row, n - k + 1 of them. Every column of
                C W has length at most 1, so ||A W||_* <= ||B||_F ||C W||_F <= ||B||_F sqrt(n - k + 1), and the root
                of the mean variance of the totals is at least ||A W||_* / sqrt(n (n - k + 1)). The worst is no less.
                For k = 1 the singular values of A are 1 / (2 sin((2i - 1) pi / (4n + 2))). It holds for every
                strategy with Gaussian noise. [LM13, MNT20, HKU25]
    """
    single = _one_day(positive_integer(days, name="days"))
    if max_days == 1 or days > _QUICK_DAYS:
        return single  # More days cost no less.
    return max(single, _stretches(days, min(max_days, days)))


def _one_day(days: int) -> float:
    angles = ((2 * i - 1) * math.pi / (4 * days + 2) for i in range(1, days + 1))
    return math.fsum(1 / (2 * math.sin(angle)) for angle in angles) / days * _DOWN


def _stretches(days: int, length: int) -> float:
    ramps = np.clip(np.subtract.outer(np.arange(1, days + 1), np.arange(days - length + 1)), 0, length)  # A W
    norm = float(np.linalg.svd(ramps.astype(float), compute_uv=False).sum())
    return norm / math.sqrt(days * (days - length + 1)) * _DOWN
