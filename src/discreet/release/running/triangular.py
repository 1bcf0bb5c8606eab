"""One measurement a day: the counts of all days so far, each weighed by how long ago it was.

C = T D, where T has the coefficient t[i - j] in row i and column j, and D scales the columns. Four strategies are of
this form: daily counts, totals, the square root of the matrix of running sums, and that root with its columns scaled.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import final

from discreet.release.running.strategy import ONE

__all__ = ["Triangular", "dailies", "scaled_root", "square_root", "totals"]

_UNIT = 1 << 12  # Coefficients are whole multiples of 1 / _UNIT; the first is 1.
_FULL = 1 << 10  # Scales are whole multiples of 1 / _FULL.
_FINE = 96  # Bits behind the point where totals are taken from measurements.
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
        return tuple(_SLACK * Fraction(total, 1 << (2 * _FINE)) for total in squares)

    def reaches(self) -> tuple[Fraction, ...]:
        sizes = (sum(map(abs, row)) for row in self._combinations())
        return tuple(_SLACK * Fraction(total, 1 << _FINE) for total in sizes)

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
            weighed.append(((number << _FINE) // ONE) - past // _UNIT)
        daily = (value * _FULL // scale for value, scale in zip(weighed, self.scales, strict=False))
        return tuple(Fraction(total, 1 << _FINE) for total in accumulate(daily))


@lru_cache(16)
def _inverse(coefficients: tuple[int, ...]) -> tuple[int, ...]:
    """Return the coefficients of the inverse of T in fixed point."""
    found = [1 << _FINE]
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
