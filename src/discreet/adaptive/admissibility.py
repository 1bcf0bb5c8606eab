"""The largest privacy loss of a stretched and shifted law, enclosed over all shifts and dilations that can occur.

The release on one data set is S Z / alpha around its value. Counted in that scale, a neighbour's is D + e^lam Z,
with |lam| <= beta and |D| <= alpha min(1, e^lam): the two values differ by no more than either smooth bound. The law
falls away from zero, so at a point z >= 0 the loss is largest for the shift that leads away from it:

    lam + log h(z) - log h((z + alpha min(1, e^lam)) e^-lam),   z >= 0, |lam| <= beta.

Boxes of (z, lam) are bounded by the mean value theorem in balls, and cut in two where that is not close enough.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, final

from discreet.adaptive.real_laws import TailedLaw
from discreet.balls import ball, ball_down, ball_up, precision
from discreet.errors import InvalidParameter
from discreet.exact import Number, nonnegative, positive

if TYPE_CHECKING:
    from flint import arb

__all__ = ["Enclosed", "largest_loss"]

_BITS = 96
_TOLERANCE = Fraction(1, 1000)
_FARTHEST = 40  # Powers of two above alpha or 1; beyond them only the tail matters.
_MOST_BOXES = 100_000

_Sides: TypeAlias = tuple[float, float, float, float]  # z from, to; lam / beta from, to


class Enclosed(NamedTuple):
    """A number lies between these two floats, surely."""

    lower: float
    upper: float


def largest_loss(law: TailedLaw, *, alpha: Number, beta: Number, tolerance: Number = _TOLERANCE) -> Enclosed:
    """Enclose the pure epsilon that noise S Z / alpha delivers with beta-smooth S, to a relative tolerance."""
    shift, dilation = positive(alpha, name="alpha"), nonnegative(beta, name="beta")
    if not isinstance(law, TailedLaw):
        raise InvalidParameter("only a law that falls like a power has a largest loss")
    with precision(_BITS):
        return _LossSearch(law, shift, dilation).run(float(positive(tolerance, name="tolerance")))


@final
@dataclass(order=True, slots=True)
class _Box:
    """A box of (z, lam / beta), first in the queue if its bound is highest."""

    minus_upper: float
    sides: _Sides = field(compare=False)
    wide: bool = field(compare=False)  # rather than high

    def halves(self) -> list[_Sides]:
        low, high, least, most = self.sides
        if self.wide:
            middle = (low + high) / 2
            return [(low, middle, least, most), (middle, high, least, most)]
        middle = (least + most) / 2
        return [(low, high, least, middle), (low, high, middle, most)]


def _narrowed(low: float, high: float, slope: arb) -> tuple[float, float]:
    """Keep the one end that counts where a function surely rises or falls all the way."""
    if slope > 0:
        return high, high
    return (low, low) if slope < 0 else (low, high)


@final
class _LossSearch:
    """Branch and bound."""

    __slots__ = ("_alpha", "_beta", "_first_power", "_law", "_lower")

    def __init__(self, law: TailedLaw, alpha: Fraction, beta: Fraction) -> None:
        self._law, self._lower = law, 0.0
        self._alpha, self._beta = ball(alpha), ball(beta)
        self._first_power = max(alpha.__ceil__(), 1).bit_length()

    def run(self, tolerance: float) -> Enclosed:
        end = 2.0 ** (self._first_power + _FARTHEST)
        far = self._beyond(end)
        queue = [self._box(sides) for sides in self._partition(end)]
        heapq.heapify(queue)
        for _ in range(_MOST_BOXES):
            if -queue[0].minus_upper <= max(self._lower * (1 + tolerance), far):
                break
            for sides in heapq.heappop(queue).halves():
                heapq.heappush(queue, self._box(sides))
        return Enclosed(self._lower, max(-queue[0].minus_upper, far))

    def _partition(self, end: float) -> list[_Sides]:
        """Cut the half line at powers of two, and the dilations at zero, where the shift has its corner."""
        marks = [0.0]
        while marks[-1] < end:
            marks.append(max(2 * marks[-1], 2.0**-8))
        return [(low, high, *span) for low, high in pairwise(marks) for span in ((-1.0, 0.0), (0.0, 1.0))]

    def _box(self, sides: _Sides) -> _Box:
        from flint import arb

        low, high, least, most = sides
        narrower = most <= 0  # whether the neighbour's noise is, all over the box
        along, across = self._slopes(arb(low).union(arb(high)), self._beta * arb(least).union(arb(most)), narrower)
        low, high = _narrowed(low, high, along)
        least, most = _narrowed(least, most, across)
        here = self._loss(arb((low + high) / 2), self._beta * arb((least + most) / 2), narrower)
        self._lower = max(self._lower, ball_down(here))
        rise = abs(along) * arb((high - low) / 2) + abs(across) * self._beta * arb((most - least) / 2)
        wide = high - low > (1 + low) * float(self._beta) * (most - least)
        return _Box(-ball_up(here + rise), (low, high, least, most), wide)

    def _loss(self, z: arb, lam: arb, narrower: bool) -> arb:
        return lam + self._law.log_shape(z) - self._law.log_shape(self._moved(z, lam, narrower))

    def _moved(self, z: arb, lam: arb, narrower: bool) -> arb:
        """Enclose (z + alpha min(1, e^lam)) e^-lam."""
        shrink = (-lam).exp()
        return z * shrink + self._alpha if narrower else (z + self._alpha) * shrink

    def _slopes(self, z: arb, lam: arb, narrower: bool) -> tuple[arb, arb]:
        """Enclose the derivatives of the loss by z and by lam."""
        moved = self._moved(z, lam, narrower)
        slope, shrink = self._law.slope(moved), (-lam).exp()
        # By lam, z e^-lam moves and, where the neighbour's noise is wider, so does the shift.
        travel = z * shrink if narrower else moved
        return slope * shrink - self._law.slope(z), 1 - slope * travel

    def _beyond(self, end: float) -> float:
        """Bound the loss for z >= end: the density falls by at most a power of y / z = (1 + D / z) e^-lam."""
        from flint import arb

        index = ball(self._law.tail_index)
        grown = (self._alpha / arb(end)).log1p()
        return max(ball_up(index * (grown + self._beta) - self._beta), ball_up(self._beta + index * grown))
