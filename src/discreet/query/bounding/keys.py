"""One word a row: unit, group and what else is counted, side by side in 64 bits, so that a plain sort does it all.

From the top: the code of the unit, with its sign; the code of the group; the payload. The payload is either the
levels of all measures, if they fit, or the number of the row in columns that stay where they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

__all__ = ["KeyBuffer", "KeyLayout"]

Integers: TypeAlias = NDArray[np.int64]
_WORD = 64
_ROOMS = (1 << 17, 1 << 24)  # Keys for which there is room at first, and then.


@final
@dataclass(frozen=True, slots=True)
class KeyLayout:
    """How many bits of a key are the group and the payload; the rest, at the top, is the unit."""

    group_bits: int
    payload_bits: int

    @property
    def unit_shift(self) -> int:
        return self.group_bits + self.payload_bits

    def holds(self, low: int, high: int) -> bool:
        """Whether units with codes from `low` to `high` fit."""
        width = _WORD - self.unit_shift
        return width > 0 and -(1 << width - 1) <= low and high < 1 << width - 1

    def holds_all(self, units: Integers) -> bool:
        """Whether these units fit, of which there is at least one."""
        return self.holds(int(units.min()), int(units.max()))

    def pack(self, units: Integers, groups: Integers, payloads: Iterable[tuple[Integers, int]]) -> Integers:
        """Put fields side by side; `payloads` are arrays with their bits, from the top."""
        keys = units << self.group_bits
        keys |= groups
        for column, bits in payloads:
            keys <<= bits
            keys |= column
        return keys

    def units(self, keys: Integers) -> Integers:
        return keys >> self.unit_shift

    def groups(self, keys: Integers) -> Integers:
        groups = keys >> self.payload_bits
        groups &= (1 << self.group_bits) - 1
        return groups

    def payloads(self, keys: Integers) -> Integers:
        return keys & ((1 << self.payload_bits) - 1)


@final
class KeyBuffer:
    """One array of keys that grows. Room that is not filled is address space only."""

    __slots__ = ("_keys", "size")

    def __init__(self) -> None:
        self._keys = np.empty(0, np.int64)
        self.size = 0

    def more(self, count: int) -> Integers:
        """Return room for `count` more keys, to be filled at once."""
        start, self.size = self.size, self.size + count
        if self.size > self._keys.size:
            room = next((room for room in _ROOMS if room >= self.size), 4 * self.size)
            grown = np.empty(room, np.int64)
            grown[:start] = self._keys[:start]
            self._keys = grown
        return self._keys[start : self.size]

    def take(self) -> Integers:
        """Give all keys away."""
        keys = self._keys[: self.size]
        self._keys, self.size = np.empty(0, np.int64), 0
        return keys
