"""Products of linear polynomials with ball coefficients, and their integrals over [0, 1]."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.balls import ball

if TYPE_CHECKING:
    from flint import arb

__all__ = ["integral", "times_linear"]


def times_linear(polynomial: list[arb], constant: arb, slope: arb) -> list[arb]:
    """Multiply by constant + slope * s; coefficients are listed from the constant on."""
    zero = ball(0)
    shifted = [zero, *polynomial]
    return [
        constant * (polynomial[power] if power < len(polynomial) else zero) + slope * shifted[power]
        for power in range(len(shifted))
    ]


def integral(polynomial: list[arb]) -> arb:
    """Integrate over s from 0 to 1."""
    return sum((part / (power + 1) for power, part in enumerate(polynomial)), ball(0))
