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
_LANES = 4  # Words of 32 bits in a block.
_HALF = np.uint64(32)
_LOW = np.uint64((1 << 32) - 1)
_AGAIN = 1 << 16  # The numbers of later attempts; those of the first are below.


def choose(sizes: Integers, some: int, names: Blocks, streams: Integers, secret: Secret) -> Integers:
    """Choose `some` of the places 0, …, size - 1 for each size, all of which are above `some`; one column a set.

    Theorem     Given uniform words each subset has the same chance; it depends on (name, stream) and size only.
    """
    rule = _few if some <= _FEW else _many
    return rule(sizes, some, names, streams.astype(np.uint64), secret)


def _few(sizes: Integers, some: int, names: Blocks, streams: Words, secret: Secret) -> Integers:
    """Floyd's rule: draw one of 0, …, j for the last `some` values of j; if it is taken already, take j itself."""
    last = sizes - np.arange(some, 0, -1)[:, None]
    chosen = _below(last + 1, names, streams, secret)
    for turn in range(1, some):
        for earlier in chosen[:turn]:
            # Once it is j it stays so: no earlier choice reaches j.
            np.copyto(chosen[turn], last[turn], where=earlier == chosen[turn])
    return chosen


def _below(limits: Integers, names: Blocks, streams: Words, secret: Secret) -> Integers:
    """Draw one of 0, …, limit - 1, each alike, for each limit below 2^32: the high half of word times limit.

    Of the 2^32 products, those with a given high half are floor(2^32 / limit) or one more; refusing the products
    whose low half is below 2^32 mod limit leaves exactly floor(2^32 / limit) for each. [Lem19]
    """
    limit = limits.view(np.uint64)
    product = _words(len(limits), names, streams, secret) * limit
    drawn = (product >> _HALF).view(np.int64)
    product &= _LOW
    unsure = product < limit  # What is refused is among them, and few are left to divide.
    if unsure.any():
        turns, sets = np.nonzero(unsure)
        refused = product[turns, sets] < (1 << 32) % limit[turns, sets]
        for turn, one in zip(turns[refused], sets[refused], strict=True):
            drawn[turn, one] = _again(int(limits[turn, one]), turn, names[[one]], streams[[one]], secret)
    return drawn


def _words(count: int, names: Blocks, streams: Words, secret: Secret) -> NDArray[np.uint32]:
    """Return `count` words of 32 bits for each name, one row for each of them."""
    blocks = [secret.blocks(names, streams, np.uint64(number)) for number in range(-(-count // _LANES))]
    return np.concatenate([block.view(np.uint32).T for block in blocks])[:count]


def _again(limit: int, turn: int, name: Blocks, stream: Words, secret: Secret) -> int:
    """Draw in place of a word that was refused."""
    attempt = 1
    while True:
        block = secret.blocks(name, stream, np.uint64(attempt * _AGAIN + turn))
        product = int(block.view(np.uint32)[0, 0]) * limit
        if product % (1 << 32) >= (1 << 32) % limit:
            return product >> 32
        attempt += 1


def _many(sizes: Integers, some: int, names: Blocks, streams: Words, secret: Secret) -> Integers:
    """Give a tag of 128 bits to each element and take the smallest. Tags of a set are distinct: AES is a bijection."""
    sets = np.repeat(np.arange(sizes.size), sizes)
    starts = np.cumsum(sizes) - sizes
    places = np.arange(sets.size) - starts[sets]
    tags = secret.blocks(names[sets], streams[sets], places.astype(np.uint64))
    order = np.lexsort((tags[:, 1], tags[:, 0], sets))
    chosen: Integers = places[order[np.arange(some)[:, None] + starts]]
    return chosen
