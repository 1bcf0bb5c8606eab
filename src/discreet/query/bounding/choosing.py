"""Choose some of many, for many sets at once: every subset of the size asked for is equally likely.

Few are chosen by Floyd's rule, which needs one uniform number for each that is chosen, however large the set [BF87].
Many are chosen by random tags: each element gets one, and the smallest win.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.query.bounding.secret import Blocks, Secret, Words

__all__ = ["choose"]

Integers: TypeAlias = NDArray[np.int64]
_FEW = 16  # Floyd's rule compares each choice with the earlier ones: it pays up to here.


def choose(sizes: Integers, some: int, names: Blocks, streams: Integers, secret: Secret) -> Integers:
    """Choose `some` of the places 0, …, size - 1 for each size, all of which are above `some`; one row a set.

    Theorem     Given uniform words each subset has the same chance; it depends on (name, stream) and size only.
    """
    rule = _few if some <= _FEW else _many
    return rule(sizes, some, names, streams.astype(np.uint64), secret)


def _few(sizes: Integers, some: int, names: Blocks, streams: Words, secret: Secret) -> Integers:
    """Floyd's rule: draw one of 0, …, j for the last `some` values of j; if it is taken already, take j itself."""
    chosen = np.empty((sizes.size, some), np.int64)
    for turn in range(some):
        last = sizes - some + turn
        drawn = _below(last + 1, names, streams, turn, secret)
        taken = (chosen[:, :turn] == drawn[:, None]).any(axis=1)
        chosen[:, turn] = np.where(taken, last, drawn)
    return chosen


def _below(limits: Integers, names: Blocks, streams: Words, turn: int, secret: Secret) -> Integers:
    """Draw one of 0, …, limit - 1, each alike: the remainder of a word, again if the word is in the last, short run."""
    limit = limits.astype(np.uint64)
    drawn = np.zeros(limits.size, np.uint64)
    left = np.arange(limits.size)
    attempt = 0
    while left.size:
        number = np.uint64((attempt << 32) + turn)
        word = secret.blocks(names[left], streams[left], number)[:, 0]
        rest = word % limit[left]
        drawn[left] = rest
        # A run of `limit` words starts at word - rest; it is whole if it ends at 2^64 or before.
        whole = word - rest <= np.uint64(0) - limit[left]
        left = left[~whole]
        attempt += 1
    return drawn.astype(np.int64)


def _many(sizes: Integers, some: int, names: Blocks, streams: Words, secret: Secret) -> Integers:
    """Give a tag of 128 bits to each element and take the smallest. Tags of a set are distinct: AES is a bijection."""
    sets = np.repeat(np.arange(sizes.size), sizes)
    starts = np.cumsum(sizes) - sizes
    places = np.arange(sets.size) - starts[sets]
    tags = secret.blocks(names[sets], streams[sets], places.astype(np.uint64))
    order = np.lexsort((tags[:, 1], tags[:, 0], sets))
    chosen: Integers = places[order[starts[:, None] + np.arange(some)]]
    return chosen
