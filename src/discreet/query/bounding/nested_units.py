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

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.query.bounding.packed_columns import PackedShape, lengths, spread
from discreet.query.bounding.rows import RowChunk
from discreet.query.bounding.secret import Blocks, Secret
from discreet.query.bounding.unit_codes import NumberUnits, Reader, joined, numbered

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["OuterLimit", "kept_pairs", "pair_numbers"]

Integers: TypeAlias = NDArray[np.int64]
Truths: TypeAlias = NDArray[np.bool_]
_OF_TAGS = np.uint64((1 << 32) - 2)  # The stream of tags: no group has it, for there are at most 2^31.
_WIDEST = 1 << 62
_BYTES = 3  # An inner unit has that many bits at least: the places of an outer one in a table are whole words.
_SMALL = 16  # Outer units with so many inner ones at most are ranked side by side, by comparing all with all.
_SPARSE = 8  # Places of a table of all pairs for each row; more are numbered first.


@final
@dataclass(frozen=True, slots=True)
class OuterLimit:
    """How many inner units of an outer one are kept, where units are pairs whose lowest `bits` are the inner one."""

    most: int
    bits: int

    def keep(self, keys: Integers, unit_shift: int, secret: Secret) -> Integers:
        """Leave out the rows of the other inner units, of sorted keys that hold all rows of their outer units."""
        units = keys >> unit_shift
        starts = np.flatnonzero(np.concatenate(([True], units[1:] != units[:-1])))
        pairs = units[starts]
        where, sizes = _crowded_of_list(pairs >> self.bits, self.most)
        if not where.size:
            return keys
        gone = where[_ranks(_tags(pairs[where], secret), sizes) >= self.most]
        stays = np.ones(keys.size, np.bool_)
        stays[spread(starts[gone], lengths(starts, keys.size)[gone])] = False
        return keys[stays]


def pair_numbers(
    chunks: Iterable[RowChunk], most: int, shape: PackedShape, memory: int, secret: Secret
) -> tuple[Iterator[RowChunk], OuterLimit | None]:
    """Number units that are pairs (o, i), so that at most `most` inner units of an outer one are kept.

    Where a row fits one word, rows are sorted by these numbers anyway, and who is kept is found then: the limit is
    returned. Else the rows of the others are left out here. Who counts nowhere takes nobody's place.
    """
    held = [_counted(chunk, shape.groups) for chunk in chunks]
    if not held:
        return iter(()), None
    pairs, bits = _packed(*(_side([chunk.units.field(side) for chunk in held]) for side in (0, 1)))
    if shape.layout.holds(0, int(pairs.max(initial=0))) and 2 * pairs.nbytes <= memory:
        return _handed_on(held, pairs, None), OuterLimit(most, bits)
    return _handed_on(held, pairs, kept_pairs(pairs, bits, most, secret)), None


def _handed_on(held: list[RowChunk], pairs: Integers, stays: Truths | None) -> Iterator[RowChunk]:
    """Give chunks away, one after the other, with the numbers of their pairs."""
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
    outer = (int(pairs.max()) >> bits) + 1
    values, places = (None, pairs) if outer << bits <= _SPARSE * pairs.size else _in_order(pairs)
    seen = np.zeros(outer << bits if values is None else values.size, np.bool_)
    seen[places] = True
    where, sizes = _crowded_of_table(seen, bits, most) if values is None else _crowded_of_list(values >> bits, most)
    if not where.size:
        return None
    tags = _tags(where if values is None else values[where], secret)
    seen[where[_ranks(tags, sizes) >= most]] = False
    stays: Truths = seen[places]
    return stays


def _crowded_of_table(seen: Truths, bits: int, most: int) -> tuple[Integers, Integers]:
    """Find the pairs of outer units with more than `most` inner ones in a table of all pairs, and how many each has."""
    sizes = np.bitwise_count(seen.view(np.uint64)).reshape(-1, 1 << bits - _BYTES).sum(1, np.int64)
    crowded = np.flatnonzero(sizes > most)
    rows, inner = np.nonzero(seen.reshape(-1, 1 << bits)[crowded])
    return (crowded[rows] << bits) | inner, sizes[crowded]


def _crowded_of_list(outer: Integers, most: int) -> tuple[Integers, Integers]:
    """Find the places of crowded outer units in a list that is in order, and how many pairs each has."""
    starts = np.flatnonzero(np.concatenate(([True], outer[1:] != outer[:-1])))
    sizes = lengths(starts, outer.size)
    crowded = np.flatnonzero(sizes > most)
    return spread(starts[crowded], sizes[crowded]), sizes[crowded]


def _in_order(pairs: Integers) -> tuple[Integers, Integers]:
    """List distinct pairs in order, and tell the place of each row's among them."""
    import pyarrow as pa

    encoded = pa.array(pairs).dictionary_encode()
    values = np.asarray(encoded.dictionary)
    order = np.argsort(values)
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    return values[order], place[np.asarray(encoded.indices)]


def _tags(pairs: Integers, secret: Secret) -> Blocks:
    """Return a secret tag for each pair."""
    return secret.blocks(secret.names_of_integers(pairs), _OF_TAGS, np.uint64(0))


def _ranks(tags: Blocks, sizes: Integers) -> Integers:
    """Rank each tag among those of its outer unit, which come one after the other, as many as `sizes` says."""
    starts = np.cumsum(sizes) - sizes
    ranks = np.empty(len(tags), np.int64)
    for size in np.flatnonzero(np.bincount(sizes[sizes <= _SMALL])):
        places = starts[sizes == size] + np.arange(size)[:, None]
        words = tags[places, 0]
        below = np.zeros(places.shape, np.int8)
        for one in words:
            below += one < words
        ranks[places] = below
        # Who shares its first word with another of them is one rank too low, and their sum with it.
        if (below.sum(0, np.int64) != size * (size - 1) // 2).any():
            return _ranked(tags, sizes)
    large = sizes > _SMALL
    if large.any():
        places = spread(starts[large], sizes[large])
        ranks[places] = _ranked(tags[places], sizes[large])
    return ranks


def _ranked(tags: Blocks, sizes: Integers) -> Integers:
    """Rank by both words of a tag."""
    order = np.lexsort((tags[:, 1], tags[:, 0], np.repeat(np.arange(sizes.size), sizes)))
    ranks = np.empty(len(tags), np.int64)
    ranks[order] = spread(np.zeros_like(sizes), sizes)
    return ranks


def _counted(chunk: RowChunk, groups: int) -> RowChunk:
    """Leave out rows that are nobody's or in no group, before anybody is chosen."""
    codes, known = chunk.groups, None
    if chunk.units.null_count:
        known = np.asarray(chunk.units.is_valid())
    if codes is not None and codes.size and not (codes.min() >= 0 and codes.max() < groups):
        inside = (codes >= 0) & (codes < groups)
        known = inside if known is None else known & inside
    return chunk if known is None else _rows(chunk, known, None)


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


@final
@dataclass(frozen=True, slots=True, eq=False)
class _PairSide:
    """The codes of outer or inner units, of all rows one part after the other."""

    parts: Sequence[Integers]
    least: int
    span: int  # from the least to the greatest

    @classmethod
    def of(cls, parts: Sequence[Integers]) -> _PairSide:
        some = [part for part in parts if part.size]
        least = min((int(part.min()) for part in some), default=0)
        return cls(some, least, max((int(part.max()) for part in some), default=0) - least)

    def add_to(self, pairs: Integers, bits: int) -> None:
        """Move what is there up by so many bits, and add the codes, counted from the least, part by part."""
        start = 0
        for part in self.parts:
            pair = pairs[start : start + part.size]
            pair <<= bits
            pair += part
            pair -= self.least
            start += part.size

    def listed(self) -> _PairSide:
        """Number distinct values from 0 on."""
        return _PairSide.of([numbered(NumberUnits(np.concatenate(self.parts))).codes])


def _side(parts: list[pa.Array]) -> _PairSide:
    """Take whole numbers as they are, others by their places in a list of distinct ones."""
    reader = Reader()
    read = [reader.read(part)[0] for part in parts]
    codes = [part.codes for part in read if isinstance(part, NumberUnits)]
    return _PairSide.of(codes if len(codes) == len(read) else [numbered(joined(read)).codes])


def _packed(outer: _PairSide, inner: _PairSide) -> tuple[Integers, int]:
    """Write a pair as one number; where that is too wide, distinct values are numbered first, and there are few."""
    if (outer.span + 1) << max(inner.span.bit_length(), _BYTES) >= _WIDEST:
        outer, inner = outer.listed(), inner.listed()
    bits = max(inner.span.bit_length(), _BYTES)
    pairs = np.zeros(sum(part.size for part in outer.parts), np.int64)
    outer.add_to(pairs, 0)
    inner.add_to(pairs, bits)
    return pairs, bits
