"""Lazily revealed bits: decide whether a uniform number lies below a real one, without ever rounding.

A uniform number in [0, 1) is known by its first bits: `prefix` / 2^`bits` and up to one unit more. The real number
is known as a ball that shrinks as the precision grows. The two are compared until they separate. That takes two
more bits on average, and the answer is exact: no float decides a probability.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.balls import ball, precision
from discreet.noise.source import read

if TYPE_CHECKING:
    from flint import arb

__all__ = [
    "DOUBT",
    "Coin",
    "Real",
    "below",
    "compare",
    "exponential_coin",
    "extend",
    "rational_coin",
    "revealed",
    "thresholds",
]

Real: TypeAlias = "Callable[[], arb]"  # Encloses one real number at the working precision.

_STEP = 8  # Bytes revealed at a time.
_GUARD = 64  # Bits of precision beyond those revealed.
_WORK = 192  # Bits of precision to begin with for a threshold of 64 bits.
DOUBT = 1  # A draw that is at its threshold or one above is not decided by 64 bits.


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


def thresholds(reals: Callable[[], Sequence[arb]]) -> list[int]:
    """Return T with T <= 2^64 real <= T + 2 for each of some real numbers in [0, 1] that do not fall.

    So a draw of 64 bits is below the real number if it is below T, and not if it is T + 2 or more.
    """
    bits = _WORK
    while True:
        with precision(bits):
            scaled = [real * ball(1 << 64) for real in reals()]
            floors = [_floor(number) for number in scaled]
            if all(number <= floor + 2 for number, floor in zip(scaled, floors, strict=True)):
                # Neighbours that differ by less than the radius of their balls may be out of order.
                return list(accumulate(floors, max))
        bits *= 2


def _floor(number: arb) -> int:
    """Return the floor of the lower end of a ball, as 64 bits; 0, which is not above it, if that is not known."""
    floor = number.lower().floor().unique_fmpz()
    return 0 if floor is None else max(0, min(int(floor), (1 << 64) - 1))


def below(real: Real, prefix: int, bits: int) -> bool:
    """Decide whether the uniform number that starts with these bits is below `real`."""
    while True:
        with precision(bits + _GUARD):
            answer = compare(real(), prefix, bits)
        if answer is not None:
            return answer
        prefix, bits = extend(prefix, bits)


# --- bernoulli: Exact coins: heads with any real probability that can be enclosed. ---


@final
class Coin:
    """Heads with probability `real`."""

    def __init__(self, real: Real) -> None:
        self._real = real
        (self._threshold,) = thresholds(lambda: [real()])

    def one(self) -> int:
        """Flip once."""
        return self._decided(*revealed())

    def _decided(self, prefix: int, bits: int) -> int:
        """Decide by 64 bits, or by more of them where they hit the threshold."""
        if 0 <= prefix - self._threshold <= DOUBT:
            return int(below(self._real, prefix, bits))
        return int(prefix < self._threshold)

    def array(self, count: int) -> NDArray[np.int64]:
        """Flip `count` times."""
        return self.flags(count).astype(np.int64)

    def flags(self, count: int) -> NDArray[np.bool_]:
        """Flip `count` times: 16 bits each, 48 more for the few that they leave open."""
        words = np.frombuffer(read(2 * count), "<u2")
        top = self._threshold >> 48
        heads = words < top
        open_ = np.flatnonzero((words >= top) & (words <= min(top + DOUBT, 0xFFFF)))
        more = np.frombuffer(read(8 * open_.size), "<u8") >> np.uint64(16)
        for index, low in zip(open_, more, strict=True):
            heads[index] = self._decided(int(words[index]) << 48 | int(low), 64)
        return heads


@lru_cache(256)
def rational_coin(probability: Fraction) -> Coin:
    """Heads with a rational probability."""
    return Coin(lambda: ball(probability))


@lru_cache(256)
def exponential_coin(exponent: Fraction) -> Coin:
    """Heads with probability exp(-exponent)."""
    return Coin(lambda: ball(-exponent).exp())
