"""Sort rows by their values, or just put equal ones together, by one sort of single words.

A word is (set, key, number of the row). The key is the beginning of the values, or a hash of them where any order
will do. It is only a quick way to sort: where it does not tell rows apart, all their values are compared, and where
those differ, the rows that share the key are sorted by the values themselves. So the result is exact, whatever values
somebody chose.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["grouped", "in_order"]

Integers: TypeAlias = NDArray[np.int64]
Words: TypeAlias = NDArray[np.uint64]
_WORD = 63
_MIX = np.uint64(0x9E3779B97F4A7C15)  # An odd number whose bits look random: the golden ratio.
_HALF = np.uint64(32)


def in_order(columns: Sequence[Integers], sets: Integers, many: int) -> Integers:
    """Return the rows by their set, of which there are `many`, and within a set by their values, exactly."""
    set_bits = (many - 1).bit_length()
    beginnings = _beginnings(columns, sets.size, _room(sets.size, set_bits))
    return _sorted(beginnings | (sets.view(np.uint64) << np.uint64(_room(sets.size, set_bits))), columns)


def grouped(values: Integers) -> tuple[Integers, NDArray[np.bool_]]:
    """Return the rows so that equal values are together, and which of them differ from the one before."""
    order = _sorted(_hashes(values) >> np.uint64(64 - _room(values.size, 0)), [values])
    return order, _new(order, [values])


def _room(size: int, set_bits: int) -> int:
    """Return how many bits of a word are left for the key."""
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


def _hashes(values: Integers) -> Words:
    mixed = values.view(np.uint64) * _MIX
    mixed ^= mixed >> _HALF
    mixed *= _MIX
    return mixed


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
