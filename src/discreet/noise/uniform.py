"""Uniform whole numbers and permutations."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from discreet.noise.source import read

__all__ = ["integer_below", "integers_below", "permutation_of"]


def integer_below(limit: int) -> int:
    """Draw one of 0, …, limit - 1: enough bits, again if they exceed the limit."""
    bits = (limit - 1).bit_length()
    size = (bits + 7) // 8
    while True:
        drawn = int.from_bytes(read(size), "little") & ((1 << bits) - 1)
        if drawn < limit:
            return drawn


def integers_below(limit: int, count: int) -> NDArray[np.int64]:
    """Draw `count` of them, for a limit of at most 2^63."""
    mask = np.uint64((1 << (limit - 1).bit_length()) - 1)
    drawn = np.frombuffer(read(8 * count), "<u8") & mask
    again = np.flatnonzero(drawn >= limit)
    while again.size:
        drawn[again] = np.frombuffer(read(8 * again.size), "<u8") & mask
        again = again[drawn[again] >= limit]
    return drawn.astype(np.int64)


def permutation_of(count: int) -> NDArray[np.int64]:
    """Draw an order of 0, …, count - 1: sort random keys, all of them again if two are equal."""
    while True:
        keys = np.frombuffer(read(8 * count), "<u8")
        order = np.argsort(keys, kind="stable")
        ranked = keys[order]
        if not (ranked[1:] == ranked[:-1]).any():
            return order.astype(np.int64)
