"""Units within units: of every outer unit at most so many inner ones are kept, those with the least secret tags.

Theorem     Given the tags, one inner unit more or less changes what is kept by that unit and at most one other of the
            same outer unit; one outer unit more or less changes nobody else's, and at most `most` inner units. Over the
            secret, the kept inner units of an outer one are a uniform subset.
Proof       The `most` least tags of a set without one of its members are the others among the least, and the next one
            if there is one: priority sampling. Under a fresh key, tags are distinct and in uniform order for any
            numbering of the inner units, since AES is a bijection; so the law does not depend on the numbering, and
            neighbours can be compared tag by tag.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.query.bounding.packed_columns import lengths
from discreet.query.bounding.rows import RowChunk
from discreet.query.bounding.secret import Blocks, Secret
from discreet.query.bounding.unit_codes import NumberUnits, Reader, joined, numbered

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["kept_pairs", "within_outer"]

Integers: TypeAlias = NDArray[np.int64]
Truths: TypeAlias = NDArray[np.bool_]
_OF_TAGS = np.uint64((1 << 32) - 2)  # The stream of tags: no group has it, for there are at most 2^31.
_WIDEST = 1 << 62
_SPARSE = 8  # Places of a table of all pairs for each row; more are numbered first.


def within_outer(chunks: Iterable[RowChunk], groups: int, most: int, secret: Secret) -> Iterator[RowChunk]:
    """Keep the rows of at most `most` inner units of each outer unit; who counts nowhere takes nobody's place.

    The units of a chunk are pairs (o, i). They are handed on as whole numbers, one for each pair.
    """
    held = [_counted(chunk, groups) for chunk in chunks]
    if not held:
        return
    outer, inner = (_codes([chunk.units.field(side) for chunk in held]) for side in (0, 1))
    pairs, bits = _packed(outer, inner)
    stays = kept_pairs(pairs, bits, most, secret)
    start = 0
    while held:
        chunk = held.pop(0)
        end = start + len(chunk.units)
        yield _rows(chunk, None if stays is None else stays[start:end], pairs[start:end])
        start = end


def kept_pairs(pairs: Integers, bits: int, most: int, secret: Secret) -> Truths | None:
    """Tell which rows stay, by the pair of each, whose lowest `bits` are the inner unit; None if all do."""
    if not pairs.size:
        return None
    highest = int(pairs.max()) + 1
    places, values = (pairs, None) if highest <= _SPARSE * pairs.size else _listed(pairs)
    seen = np.zeros(highest if values is None else values.size, np.bool_)
    seen[places] = True
    present = np.flatnonzero(seen) if values is None else np.sort(values)
    gone = _dropped(present, bits, most, secret)
    if not gone.size:
        return None
    seen[gone if values is None else np.flatnonzero(np.isin(values, gone))] = False
    stays: Truths = seen[places]
    return stays


def _dropped(present: Integers, bits: int, most: int, secret: Secret) -> Integers:
    """Return the pairs that are not kept, of distinct ones in order."""
    outer = present >> bits
    starts = np.flatnonzero(np.concatenate(([True], outer[1:] != outer[:-1])))
    sizes = lengths(starts, present.size)
    crowded = sizes > most
    some, many = present[np.repeat(crowded, sizes)], sizes[crowded]
    if not many.size:
        return some
    tags = secret.blocks(secret.names_of_integers(some), _OF_TAGS, np.uint64(0))
    rank = np.arange(some.size) - np.repeat(np.cumsum(many) - many, many)
    return some[_by_tag(np.repeat(np.arange(many.size), many), tags)[rank >= most]]


def _by_tag(whose: Integers, tags: Blocks) -> Integers:
    """Order by outer unit, then by tag; one word with most of a tag is enough unless two are equal in it."""
    bits = int(whose[-1]).bit_length()
    words = tags[:, 0] >> np.uint64(bits)
    if bits:
        words |= whose.astype(np.uint64) << np.uint64(64 - bits)
    order = np.argsort(words)
    ordered = words[order]
    if (ordered[1:] == ordered[:-1]).any():
        order = np.lexsort((tags[:, 1], tags[:, 0], whose))
    return order


def _counted(chunk: RowChunk, groups: int) -> RowChunk:
    """Leave out rows that are in no group, before anybody is chosen."""
    codes = chunk.groups
    if codes is None or not codes.size or (codes.min() >= 0 and codes.max() < groups):
        return chunk
    return _rows(chunk, (codes >= 0) & (codes < groups), None)


def _rows(chunk: RowChunk, stays: Truths | None, pairs: Integers | None) -> RowChunk:
    import pyarrow as pa

    def some(array: NDArray[np.generic] | None) -> NDArray[np.generic] | None:
        return array if array is None or stays is None else array[stays]

    if pairs is None:
        units = chunk.units if stays is None else chunk.units.filter(pa.array(stays))
    else:
        units = pa.array(pairs if stays is None else pairs[stays])
    return RowChunk(
        units=units,
        groups=some(chunk.groups),  # type: ignore[arg-type]
        measures=tuple(some(values) for values in chunk.measures),  # type: ignore[misc]
        valid=tuple(some(valid) for valid in chunk.valid),  # type: ignore[misc]
    )


def _codes(parts: list[pa.Array]) -> Integers:
    """Number values: whole numbers from the least on, others by their places in a list of distinct ones."""
    reader = Reader()
    units = joined([reader.read(part)[0] for part in parts])
    codes = units.codes
    least, greatest = (int(codes.min()), int(codes.max())) if codes.size else (0, 0)
    if isinstance(units, NumberUnits) and greatest - least < _WIDEST:
        codes -= least  # It was put together from all chunks, and is nobody else's.
        return codes
    return numbered(units).codes


def _packed(outer: Integers, inner: Integers) -> tuple[Integers, int]:
    """Write a pair as one number; where that is too wide, distinct values are numbered first, and there are few."""
    for _ in range(2):
        bits = int(inner.max()).bit_length() if inner.size else 0
        if not outer.size or (int(outer.max()) + 1) << bits < _WIDEST:
            outer <<= bits
            outer |= inner
            return outer, bits
        outer, inner = _listed(outer)[0], _listed(inner)[0]
    raise OverflowError("too many units for one number")


def _listed(values: Integers) -> tuple[Integers, Integers]:
    """Number distinct values in the order in which they appear."""
    import pyarrow as pa

    encoded = pa.array(values).dictionary_encode()
    return np.asarray(encoded.indices).astype(np.int64), np.asarray(encoded.dictionary)
