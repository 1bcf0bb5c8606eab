"""The public grid of a clipped sum, and how far one record can move the sum on it."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import isqrt

from discreet.errors import InvalidParameter
from discreet.exact import Number, nonnegative
from discreet.mechanisms.text import significant_up

__all__ = ["grid_for", "read_slack", "root_up", "rounding_up", "sensitivity_up"]

_LARGEST_SLACK = Fraction(
    1, 2000
)  # Of float errors, as a multiple of the bound: half of the thousandth that is allowed.
_SHARE = Fraction(1, 2000)  # The other half is for rounding to the grid.


@lru_cache(256)
def grid_for(bound: Fraction, parameters: int) -> Fraction:
    """Return the largest power of two on which rounding costs at most bound / 2000 of sensitivity.

    It depends on public numbers only, and is a power of two so that dividing a float by it is exact.
    """
    room = bound * _SHARE / rounding_up(Fraction(1), parameters)
    power = room.numerator.bit_length() - room.denominator.bit_length()
    return Fraction(2) ** (power if Fraction(2) ** power <= room else power - 1)


def rounding_up(grid: Fraction, parameters: int) -> Fraction:
    """Bound what rounding adds: 2 grid sqrt(P).

    One record changes two blocks. Each of the two is rounded before and after, and each of the four roundings moves
    every one of P coordinates by at most half a grid step.
    """
    return 2 * grid * root_up(parameters)


@lru_cache(256)
def sensitivity_up(bound: Fraction, slack: Fraction, grid: Fraction, parameters: int) -> Fraction:
    """Bound the l2 norm by which one record more or less changes the rounded sum: clip, float errors, rounding."""
    return bound * (1 + slack) + rounding_up(grid, parameters)


def root_up(value: int) -> Fraction:
    """Return a fraction at or just above the square root of a whole number."""
    fine = 1 << 32
    root = isqrt(value * fine**2)
    return Fraction(root if root**2 == value * fine**2 else root + 1, fine)


def read_slack(value: Number) -> Fraction:
    """Read a proven float error, as a multiple of the bound; too large a one is refused."""
    slack = nonnegative(value, name="slack")
    if slack > _LARGEST_SLACK:
        raise InvalidParameter(
            f"the float error of these sums may reach {significant_up(slack)} of the clip, and 1/2000 is the most "
            "that is allowed: use smaller blocks of rows"
        )
    return slack
