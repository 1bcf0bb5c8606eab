"""Ball arithmetic: real numbers enclosed in intervals whose ends are proven (python-flint's `arb`).

A ball is right at any working precision; a higher one only makes it smaller. So a decision taken on balls that
do not overlap is exact, and the rest is asked again with more bits.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flint import arb

__all__ = ["ball", "ball_down", "ball_up", "bounds", "digits", "normal_cdf", "precision"]

_lock = threading.RLock()  # The working precision is one global of the library underneath.
_FINEST = 1 << 20  # Bits; exp(-10^12) written out as a ratio would fill the memory.


def _unlock() -> None:
    """Give a forked child a lock of its own: a thread that it does not have may have held the parent's."""
    global _lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):  # Windows does not fork.
    os.register_at_fork(after_in_child=_unlock)


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Work with `bits` bits; other threads wait."""
    from flint import ctx

    with _lock:
        before = ctx.prec
        ctx.prec = bits
        try:
            yield
        finally:
            ctx.prec = before


def digits() -> int:
    """Return the working precision, in bits: what was enclosed with fewer is wider than it needs to be."""
    from flint import ctx

    return int(ctx.prec)


def ball(value: Fraction | int) -> arb:
    """Enclose an exact number at the working precision."""
    from flint import arb, fmpq

    fraction = Fraction(value)
    return arb(fmpq(fraction.numerator, fraction.denominator))


def _dyadic_up(end: Any) -> Fraction:
    """Return an exact ball as a ratio; one that is too close to zero to be written out is rounded up."""
    mantissa, exponent = (int(part) for part in end.man_exp())
    if exponent < -_FINEST:
        mantissa, exponent = -(-mantissa >> min(-_FINEST - exponent, mantissa.bit_length())), -_FINEST
    return Fraction(mantissa * 2**exponent) if exponent >= 0 else Fraction(mantissa, 2**-exponent)


def bounds(enclosure: arb) -> tuple[Fraction, Fraction]:
    """Return the two ends of a finite ball as exact numbers, moved outward if they are below 2^-1000000."""
    return -_dyadic_up(-enclosure.lower()), _dyadic_up(enclosure.upper())


def ball_up(enclosure: arb) -> float:
    """Return a float not below the enclosed number; infinity if the ball is not finite."""
    if not enclosure.is_finite():
        return math.inf
    # A conversion rounds to nearest, so the next float is safe whatever happened.
    return math.nextafter(float(enclosure.upper()), math.inf)


def ball_down(enclosure: arb) -> float:
    """Return a float not above the enclosed number; minus infinity if the ball is not finite."""
    return -ball_up(-enclosure)


def normal_cdf(z: arb) -> arb:
    """Enclose the standard normal distribution function, accurate in both tails."""
    from flint import arb

    return (-z / arb(2).sqrt()).erfc() / 2
