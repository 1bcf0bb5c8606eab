"""Exact sums by group: 64-bit integers that provably do not overflow, put together as integers of any size."""

from __future__ import annotations

from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

__all__ = ["Exact", "GroupSums", "SquareSums"]

Integers: TypeAlias = NDArray[np.int64]
Exact: TypeAlias = NDArray[np.object_]  # Python integers
_LIMB = 27  # A limb is below 2^27; 2^35 rows of it stay below 2^62.
_MASK = (1 << _LIMB) - 1


@final
class GroupSums:
    """Sums of integers from 0 to below 2^54, by group, as two sums of limbs.

    Each limb is below 2^27 and a data set has fewer than 2^35 rows, so no sum reaches 2^62.
    """

    __slots__ = ("_bits", "_high", "_low")

    def __init__(self, groups: int, bits: int) -> None:
        assert bits <= 2 * _LIMB
        self._bits = bits
        self._low = np.zeros(groups, np.int64)
        self._high = np.zeros(groups if bits > _LIMB else 0, np.int64)

    def add(self, groups: Integers, values: Integers) -> None:
        """Add each value to its group."""
        if self._bits <= _LIMB:
            np.add.at(self._low, groups, values)
            return
        np.add.at(self._low, groups, values & _MASK)
        np.add.at(self._high, groups, values >> _LIMB)

    def merge(self, other: GroupSums) -> None:
        """Add what another thread or partition has summed."""
        self._low += other._low
        self._high += other._high

    def total(self) -> Exact:
        low = self._low.astype(object)
        return low if self._bits <= _LIMB else low + self._high.astype(object) * (1 << _LIMB)


@final
class SquareSums:
    """Sums of squares of integers from 0 to below 2^54, by group: (a 2^27 + b)^2 = a^2 2^54 + 2 a b 2^27 + b^2."""

    __slots__ = ("_bits", "_parts")

    def __init__(self, groups: int, bits: int) -> None:
        self._bits = bits
        if bits <= _LIMB:
            self._parts = [GroupSums(groups, 2 * bits)]
        else:
            self._parts = [GroupSums(groups, 2 * _LIMB) for _ in range(3)]

    def add(self, groups: Integers, values: Integers) -> None:
        """Add the square of each value to its group."""
        if self._bits <= _LIMB:
            self._parts[0].add(groups, values * values)
            return
        high, low = values >> _LIMB, values & _MASK
        for part, product in zip(self._parts, (low * low, high * low, high * high), strict=True):
            part.add(groups, product)

    def merge(self, other: SquareSums) -> None:
        """Add what another thread or partition has summed."""
        for mine, theirs in zip(self._parts, other._parts, strict=True):
            mine.merge(theirs)

    def total(self) -> Exact:
        totals = [part.total() for part in self._parts]
        if len(totals) == 1:
            return totals[0]
        low, mixed, high = totals
        total: Exact = low + mixed * (2 << _LIMB) + high * (1 << 2 * _LIMB)
        return total
