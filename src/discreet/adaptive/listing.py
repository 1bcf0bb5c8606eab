"""The law of a rounded ideal release, listed over a public window point by point and in growing ranges beyond.

Noise that falls like a power has too many points to list. What lies outside the window is listed in ranges whose
borders are public, so that the laws of two data sets can be compared; only inside a range nothing is seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

from discreet.adaptive.real_laws import AdmissibleLaw
from discreet.balls import ball, bounds
from discreet.errors import InvalidParameter
from discreet.privacy.outcomes import Outcomes, negligible

if TYPE_CHECKING:
    from flint import arb

__all__ = ["Outcome", "rounded_outcomes"]

Outcome = int | tuple[int, int]  # one grid point, or the first and the last of a range

_PARTS = 4  # A range is this part of its distance from the other end of the window.
_LONGEST = 1 << 16  # Points; a longer window does not fit a verification of small worlds.


def rounded_outcomes(law: AdmissibleLaw, *, centre: Fraction, scale: arb, window: tuple[int, int]) -> Outcomes:
    """List the whole number nearest to centre + scale * Z."""
    from flint import ctx

    low, high = window
    if high - low > _LONGEST:
        raise InvalidParameter(f"a window of {high - low} points is too long to list: verify on a coarser grid")
    if scale.is_zero():
        return _nearest(centre)
    return _listed(law, centre, bounds(scale), window, ctx.prec)


@lru_cache(maxsize=512)
def _listed(
    law: AdmissibleLaw, centre: Fraction, scale: tuple[Fraction, Fraction], window: tuple[int, int], bits: int
) -> Outcomes:
    """List one law once: many data sets of a small world share it. `bits` is the working precision."""
    low, high = window
    places = _BorderPlaces(law, centre, ball(scale[0]).union(ball(scale[1])))
    left = list(places.beyond(low, -1, high - low))
    right = list(places.beyond(high, 1, high - low))
    starts = [*reversed(left), *range(low, high + 1), *right]
    masses = {_named(one, other): places.mass(one, other) for one, other in pairwise(starts)}
    return Outcomes(masses, places.outside(starts[0], starts[-1]))


def _named(start: int, end: int) -> Outcome:
    """Name the points from `start` to just before `end`."""
    return start if end == start + 1 else (start, end - 1)


def _nearest(centre: Fraction) -> Outcomes:
    """List the rounding of a number without noise: a half goes either way, as the sign of the draw says."""
    up, down = (centre + Fraction(1, 2)).__floor__(), -(Fraction(1, 2) - centre).__floor__()
    half = ball(Fraction(1, 2))
    return Outcomes({up: ball(1)} if up == down else {up: half, down: half})


class _BorderPlaces:
    """Where the borders of grid points lie in a law."""

    __slots__ = ("_centre", "_law", "_scale")

    def __init__(self, law: AdmissibleLaw, centre: Fraction, scale: arb) -> None:
        self._law, self._centre, self._scale = law, centre, scale

    def beyond(self, edge: int, side: int, width: int) -> Iterator[int]:
        """Name the starts of ranges away from an edge, until next to nothing is left beyond them."""
        first = start = edge if side < 0 else edge + 1
        if side > 0:
            yield start
        while not self._tail(side * self._distance(start)) <= ball(negligible() / 2):
            start += side * max(1, (width + abs(start - first)) // _PARTS)
            yield start

    def mass(self, start: int, end: int) -> arb:
        """Enclose the probability of the points from `start` to just before `end`."""
        low, high = self._distance(start), self._distance(end)
        # Subtract the two smaller tails, those of the side on which the points lie.
        return self._tail(-high) - self._tail(-low) if low + high < 0 else self._tail(low) - self._tail(high)

    def outside(self, start: int, end: int) -> Fraction:
        """Bound the probability of what is not listed."""
        rest = self._tail(-self._distance(start)) + self._tail(self._distance(end))
        return min(Fraction(1), bounds(rest)[1])

    def _distance(self, start: int) -> Fraction:
        return start - Fraction(1, 2) - self._centre

    def _tail(self, distance: Fraction) -> arb:
        """Enclose P[scale * Z > distance]."""
        if distance < 0:
            return 1 - self._tail(-distance)
        return self._law.survival(ball(distance) / self._scale) / 2
