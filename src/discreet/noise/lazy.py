"""Decide whether a uniform number lies below a real one, by revealing bits until there is no doubt.

A uniform number in [0, 1) is known by its first bits: `prefix` / 2^`bits` and up to one unit more. The real number
is known as a ball that shrinks as the precision grows. The two are compared until they separate. That takes two
more bits on average, and the answer is exact: no float decides a probability.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from discreet.balls import ball, precision
from discreet.noise.source import read

if TYPE_CHECKING:
    from flint import arb

__all__ = ["Real", "below", "compare", "extend", "revealed"]

Real: TypeAlias = "Callable[[], arb]"  # Encloses one real number at the working precision.

_STEP = 8  # Bytes revealed at a time.
_GUARD = 64  # Bits of precision beyond those revealed.


def revealed() -> tuple[int, int]:
    """Start a uniform number: its first 64 bits, and that there are 64."""
    return int.from_bytes(read(_STEP), "little"), 8 * _STEP


def extend(prefix: int, bits: int) -> tuple[int, int]:
    """Reveal 64 more bits."""
    return prefix << (8 * _STEP) | int.from_bytes(read(_STEP), "little"), bits + 8 * _STEP


def compare(real: arb, prefix: int, bits: int) -> bool | None:
    """Tell whether the uniform number is below `real`; None while the revealed bits leave it open."""
    scaled = real * ball(1 << bits)
    if scaled >= prefix + 1:
        return True
    if scaled <= prefix:
        return False
    return None


def below(real: Real, prefix: int, bits: int) -> bool:
    """Decide whether the uniform number that starts with these bits is below `real`."""
    while True:
        with precision(bits + _GUARD):
            answer = compare(real(), prefix, bits)
        if answer is not None:
            return answer
        prefix, bits = extend(prefix, bits)
