"""Exact rounding of an ideal release: the grid point nearest to centre + scale * Z, for a real law of Z.

The centre and the scale may depend on private data. The proof of privacy is about the real number; rounding it
to a public grid is post-processing, if it is exact. So the uniform number behind Z is revealed bit by bit, the
scale is enclosed in a ball, and both are refined until only one grid point is left. No float of the scale or of
the centre can leak, because none decides.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Protocol, TypeAlias

from discreet.balls import ball, precision
from discreet.errors import InvalidParameter
from discreet.noise.lazy_bits import compare, extend, revealed
from discreet.noise.source import read

if TYPE_CHECKING:
    from flint import arb

__all__ = ["RealLaw", "Scale", "round_ideal"]

Scale: TypeAlias = "Callable[[int], arb]"  # Encloses the scale, the more closely the more bits are asked for.
_MOST_BITS = 1 << 16  # A scale that is not settled by then is not a positive number.


class RealLaw(Protocol):
    """A law on the real numbers, symmetric about zero."""

    def survival(self, z: arb) -> arb:
        """Enclose P[|Z| > z] for z >= 0."""

    def guess(self, v: float) -> float:
        """Approximate the z with P[|Z| > z] = v; it decides about speed only."""


def round_ideal(law: RealLaw, *, centre: Fraction, scale: Scale, step: Fraction) -> int:
    """Return the whole number nearest to (centre + scale * Z) / step."""
    sign = 1 - 2 * (read(1)[0] & 1)
    start = sign * centre / step  # By symmetry, sign * |Z| has the law of Z.
    prefix, bits = revealed()
    while bits <= _MOST_BITS:
        with precision(bits + 128):
            found = _IdealDraw(law, start, scale(bits) / ball(step), prefix, bits).nearest()
        if found is not None:
            return sign * found
        prefix, bits = extend(prefix, bits)
    raise InvalidParameter("the scale of the noise cannot be enclosed: it must be zero or clearly positive")


class _IdealDraw:
    """One draw as far as it is revealed: V in [prefix, prefix + 1] / 2^bits, and |Z| its upper quantile."""

    __slots__ = ("_bits", "_law", "_prefix", "_scale", "_start")

    def __init__(self, law: RealLaw, start: Fraction, scale: arb, prefix: int, bits: int) -> None:
        self._law, self._start, self._scale, self._prefix, self._bits = law, start, scale, prefix, bits

    def nearest(self) -> int | None:
        """Return the largest k that start + scale |Z| + 1/2 reaches; None if that is still open."""
        low = math.floor(self._start + Fraction(1, 2))
        if self._scale.is_zero():
            return low
        k = max(low, self._guess())
        reach: int = 1
        while (reached := self._reaches(k + reach)) is True:
            k, reach = k + reach, 2 * reach
        if reached is None:
            return None
        return self._search(low, k, k + reach)

    def _search(self, low: int, k: int, high: int) -> int | None:
        """Return the last k that is reached, given that `low` is and `high` is not."""
        down = 1
        while k > low and not (reached := self._reaches(k)):
            if reached is None:
                return None
            high, k, down = k, max(low, k - down), 2 * down
        while high - k > 1:
            middle = (k + high) // 2
            reached = self._reaches(middle)
            if reached is None:
                return None
            k, high = (middle, high) if reached else (k, middle)
        return k

    def _reaches(self, k: int) -> bool | None:
        """Tell whether the release is at least k - 1/2."""
        distance = k - Fraction(1, 2) - self._start
        if distance <= 0:
            return True
        return compare(self._law.survival(ball(distance) / self._scale), self._prefix, self._bits)

    def _guess(self) -> int:
        v = (self._prefix + 0.5) / 2.0**self._bits if self._bits < 1000 else 0.5
        size = float(self._scale.mid()) * self._law.guess(max(v, 5e-324))
        return math.floor(self._start + Fraction(1, 2) + Fraction(size)) if math.isfinite(size) else 0
