"""Sort rows by their values, set by set, by one sort of single words.

A word is (set, beginning of the values, number of the row). Where the beginning does not tell rows apart, all their
values are compared, and where those differ, the rows that share it are sorted by the values themselves. So the order
is exact, whatever values somebody chose.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["in_order"]

Integers: TypeAlias = NDArray[np.int64]
Words: TypeAlias = NDArray[np.uint64]
_WORD = 63


def in_order(columns: Sequence[Integers], sets: Integers, many: int) -> Integers:
    """Return the rows by their set, of which there are `many`, and within a set by their values, exactly."""
    set_bits = (many - 1).bit_length()
    beginnings = _beginnings(columns, sets.size, _room(sets.size, set_bits))
    return _sorted(beginnings | (sets.view(np.uint64) << np.uint64(_room(sets.size, set_bits))), columns)


def _room(size: int, set_bits: int) -> int:
    """Return how many bits of a word are left: some, since a set has several rows and there are fewer than 2^31."""
    return _WORD - (size - 1).bit_length() - set_bits


def _beginnings(columns: Sequence[Integers], size: int, room: int) -> Words:
    """Return as many bits as there is room for, of columns counted from their least values, from the top."""
    keys = np.zeros(size, np.uint64)
    for column in columns:
        low = int(column.min())
        bits = (int(column.max()) - low).bit_length()
        taken = min(bits, room)
        keys <<= np.uint64(taken)
        keys |= (column - low).view(np.uint64) >> np.uint64(bits - taken)
        room -= taken
        if not room:
            return keys
    return keys << np.uint64(room)


def _sorted(keys: Words, columns: Sequence[Integers]) -> Integers:
    """Sort by key, and by value where keys are equal."""
    row_bits = np.uint64((keys.size - 1).bit_length())
    words = (keys << row_bits) | np.arange(keys.size, dtype=np.uint64)
    words.sort()
    order = (words & ((np.uint64(1) << row_bits) - np.uint64(1))).view(np.int64)
    words >>= row_bits
    shared = words[1:] == words[:-1]
    clash = np.flatnonzero(_new(order, columns)[1:] & shared)
    return _settled(order, shared, clash, columns) if clash.size else order


def _new(order: Integers, columns: Sequence[Integers]) -> NDArray[np.bool_]:
    """Tell which rows differ from the one before, in this order."""
    new = np.zeros(order.size, np.bool_)
    new[:1] = True
    for column in columns:
        values = column[order]
        new[1:] |= values[1:] != values[:-1]
    return new


def _settled(order: Integers, shared: NDArray[np.bool_], clash: Integers, columns: Sequence[Integers]) -> Integers:
    """Sort by their values the rows that share their key with a row that differs from them."""
    runs = np.cumsum(np.concatenate(([0], ~shared)))
    clashing = np.zeros(int(runs[-1]) + 1, np.bool_)
    clashing[runs[clash]] = True
    places = np.flatnonzero(clashing[runs])
    rows = order[places]
    order[places] = rows[np.lexsort((*(column[rows] for column in reversed(columns)), runs[places]))]
    return order
