"""Rejection sampling by blocks, for large scales: draw a block by inversion, a place in it, and accept or not.

Within a block of width a small part of the scale the weight hardly falls, so most pairs are accepted by the first
bits of a uniform number, 16 or a few less, whatever the place: by a bound for all blocks, or by that of their own. The
others compare 64 bits with a float whose error is far below the margin, and the one in 2^40 that falls inside the
margin is decided exactly (see `lazy_bits`). Rejection sampling is exact: an accepted pair has the weight of its value.
[vN51, Dev86]
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.balls import ball, bounds, precision
from discreet.errors import NoiseOverflow
from discreet.noise.inversion import CHUNK, FEW, FLAG, Inversion
from discreet.noise.lazy_bits import compare, extend
from discreet.noise.source import read

if TYPE_CHECKING:
    from flint import arb

__all__ = ["BlockSampler", "BlockShape", "ExponentialShape", "GaussianShape", "RoundedGaussianShape"]

_MARGIN = 2.0**20  # Of 2^64: the floats below are right to 2^-48, with room to spare.
_Open: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int16], NDArray[np.uint16], NDArray[Any]]
_CHECK = 16  # Bits of a word that decide about acceptance; the rest give the place.
_LEAST_CHECK = 14  # So few will do if place and check then fit into 32 bits.
_SURE_MARGIN = 1 - 2.0**-40  # Far more than floats below are wrong, and far less than one of 2^16.


class BlockShape(Protocol):
    """How the weight falls within a block: exp(-exponent), which is 1 at the likeliest place."""

    @property
    def fractional(self) -> bool:
        """Whether a place is a real number, of which only the whole part is kept."""

    def exponent(self, block: int, place: arb) -> arb:
        """Enclose the exponent at `place` >= 0 steps from the end of the block that is nearer to zero."""

    def exponents(self, blocks: NDArray[np.float64], places: NDArray[np.float64]) -> NDArray[np.float64]:
        """Approximate exponents below 8 to an absolute error of 2^-48; blocks are numbered from zero outward."""


@final
class BlockSampler:
    """An exact sampler of 64-bit integers.

    `largest_exponent` is taken over all places of the blocks that the table of the inversion does not flag.
    """

    def __init__(self, inversion: Inversion, shift: int, shape: BlockShape, largest_exponent: Fraction) -> None:
        self._inversion = inversion
        self._shift = shift
        self._shape = shape
        self._mask = (1 << shift) - 1
        self._word = np.uint32 if shift <= 32 - _LEAST_CHECK else np.uint64
        self._bytes = np.dtype(self._word).itemsize
        self._check = min(_CHECK, 8 * self._bytes - shift)
        fits = self._bytes == 4 and (inversion.largest + 1) << shift <= 1 << 31
        self._joint: type[np.int32 | np.int64] = np.int32 if fits else np.int64  # What a table decides fits into this.
        with precision(96):
            self._sure = int(bounds(ball(-largest_exponent).exp() * (1 << self._check))[0])
        self._kept: NDArray[np.uint16] | None = None

    def one(self) -> int:
        """Draw one value."""
        while True:
            block = self._inversion.one()
            word = int.from_bytes(read(8), "little")
            low, top = word & self._mask, word >> (64 - self._check)
            # Places count from the value nearest to zero, which is the last one of a negative block.
            place = self._mask - low if block < 0 else low
            sure = top < self._sure and not self._inversion.unsure(block)
            if sure or self._accepts(block, place, top, self._check):
                return (block << self._shift) + low

    def array(self, count: int) -> NDArray[np.int64]:
        """Draw `count` values."""
        drawn: NDArray[np.int64] = self._array(count, np.int64)
        return drawn

    def narrow(self, count: int) -> NDArray[np.int32] | NDArray[np.int64]:
        """Draw the same values, in 32 bits each if all of them fit."""
        drawn: NDArray[np.int32] | NDArray[np.int64] = self._array(count, self._joint)
        return drawn

    def _array(self, count: int, kind: type[np.int32 | np.int64]) -> NDArray[Any]:
        if count < FEW:
            return self._until_accepted(self._inversion.many(count), self._words(count))
        drawn: NDArray[Any] = np.empty(count, kind)
        open_ = [self._fill(drawn[start : start + CHUNK], start) for start in range(0, count, CHUNK)]
        where, blocks, prefixes, words = (np.concatenate(parts) for parts in zip(*open_, strict=True))
        settled = self._settle(blocks, prefixes, words)
        if settled.size and max(settled.max(), ~settled.min()) > np.iinfo(kind).max:
            drawn = drawn.astype(np.int64)
        drawn[where] = settled
        return drawn

    def _words(self, count: int) -> NDArray[Any]:
        return np.frombuffer(read(self._bytes * count), f"<u{self._bytes}")

    def _fill(self, drawn: NDArray[Any], start: int) -> _Open:
        """Draw into `drawn` what the first bits decide; return the rest, with its place counted from `start`."""
        blocks, prefixes = self._inversion.flagged(drawn.size)
        words = self._words(drawn.size)
        joined: NDArray[Any] = blocks.astype(self._joint)
        joined <<= self._shift
        joined += (words & self._word(self._mask)).view(f"i{self._bytes}")
        drawn[:] = joined
        first_unsure = self._word(self._sure << (8 * self._bytes - self._check))
        maybe = np.flatnonzero((blocks == FLAG) | (words >= first_unsure))
        some, bits = blocks[maybe], words[maybe]
        left = np.flatnonzero(self._top(bits) >= self._sure_of[some.view(np.uint16)])
        open_ = maybe[left]
        return open_ + start, some[left], prefixes[open_], bits[left]

    def _top(self, words: NDArray[Any]) -> NDArray[Any]:
        """Return the bits of words that decide about acceptance."""
        found: NDArray[Any] = words >> self._word(8 * self._bytes - self._check)
        return found

    @property
    def _sure_of(self) -> NDArray[np.uint16]:
        """Below which first bits every place of a block is accepted: at 16 bits of its number, 0 for FLAG.

        `_sure` holds for the worst of the blocks that a table names. The weight of another one may fall less, and its
        own bound, at its far end, spares most draws that `_sure` leaves open a second look.
        """
        # Not a cached_property, for the reason that `Inversion` has.
        if self._kept is None:
            blocks = np.arange(1 << 16, dtype=np.uint16).view(np.int16).astype(np.float64)
            far = self._shape.exponents(blocks, np.full(blocks.size, float(self._mask + 1)))
            own = np.floor(np.exp(-far) * (_SURE_MARGIN * (1 << self._check)))
            kept = np.maximum(own, self._sure).astype(np.uint16)
            kept[FLAG & 0xFFFF] = 0
            self._kept = kept
        return self._kept

    def _settle(self, small: NDArray[np.int16], prefixes: NDArray[np.uint16], words: NDArray[Any]) -> NDArray[np.int64]:
        """Finish the draws that 16 bits left open: first which block, then whether it is accepted."""
        blocks = small.astype(np.int64)
        flagged = np.flatnonzero(small == FLAG)
        blocks[flagged] = self._inversion.settle(prefixes[flagged])
        return self._until_accepted(blocks, words)

    def _until_accepted(self, blocks: NDArray[np.int64], words: NDArray[Any]) -> NDArray[np.int64]:
        lows = (words & self._word(self._mask)).astype(np.int64)
        drawn = self._joined(blocks, lows)
        rejected = np.flatnonzero(~self._accepted(blocks, lows, words))
        if rejected.size:
            again = self._inversion.many(rejected.size)
            drawn[rejected] = self._until_accepted(again, self._words(rejected.size))
        return drawn

    def _joined(self, blocks: NDArray[np.int64], lows: NDArray[np.int64]) -> NDArray[np.int64]:
        if blocks.size and int(np.abs(blocks).max()) >= 1 << (62 - self._shift):
            raise NoiseOverflow("a noise value does not fit 64 bits; nothing was released")
        return (blocks << self._shift) + lows

    def _accepted(self, blocks: NDArray[np.int64], lows: NDArray[np.int64], words: NDArray[Any]) -> NDArray[np.bool_]:
        """Decide with 64 bits, the first of which are the top of the word."""
        places = np.where(blocks < 0, self._mask - lows, lows)
        inside = np.frombuffer(read(8 * lows.size), "<u8") if self._shape.fractional else np.zeros(lows.size, "<u8")
        more = np.frombuffer(read(8 * lows.size), "<u8")
        top = self._top(words).astype(np.uint64)
        uniform = (top << np.uint64(64 - self._check)) | (more >> np.uint64(self._check))
        exponents = self._shape.exponents(blocks.astype(np.float64), places + inside * 2.0**-64)
        gap = np.exp(-exponents) * 2.0**64 - uniform
        accepted = gap > 0
        for index in np.flatnonzero(np.abs(gap) <= _MARGIN):
            start = int(blocks[index]), int(places[index]), int(uniform[index]), 64
            accepted[index] = self._accepts(*start, int(inside[index]), 64)
        return accepted

    def _accepts(self, block: int, place: int, prefix: int, bits: int, inside: int = 0, inside_bits: int = 0) -> bool:
        """Decide exactly whether a uniform number that starts with `prefix` accepts this place."""
        while True:
            with precision(bits + 128):
                exact_place = self._enclosed(place, inside, inside_bits)
                answer = compare((-self._shape.exponent(block, exact_place)).exp(), prefix, bits)
            if answer is not None:
                return answer
            prefix, bits = extend(prefix, bits)
            if self._shape.fractional:
                inside, inside_bits = extend(inside, inside_bits)

    def _enclosed(self, place: int, inside: int, bits: int) -> arb:
        if not self._shape.fractional:
            return ball(place)
        unit = Fraction(1, 1 << bits)
        return ball(place + inside * unit).union(ball(place + (inside + 1) * unit))


# --- shapes: How the weight of each law falls within a block. ---


def _start(block: int, width: int) -> int:
    """Return the distance from zero of the nearest value of a block: -1 - k is one farther than k."""
    return block * width if block >= 0 else ~block * width + 1


def _starts(blocks: NDArray[np.float64], width: int) -> NDArray[np.float64]:
    return np.where(blocks >= 0, blocks * width, (-1 - blocks) * width + 1).astype(np.float64)


@final
@dataclass(frozen=True, slots=True)
class ExponentialShape:
    """exp(-place / scale), the same in every block."""

    scale: Fraction
    fractional: bool = False

    def exponent(self, block: int, place: arb) -> arb:
        return place / ball(self.scale)

    def exponents(self, blocks: NDArray[np.float64], places: NDArray[np.float64]) -> NDArray[np.float64]:
        return places / float(self.scale)


@final
@dataclass(frozen=True, slots=True)
class GaussianShape:
    """exp(-((start + place)^2 - start^2) / (2 variance)), start being the value nearest to zero."""

    variance: Fraction
    width: int
    fractional: bool = False

    def exponent(self, block: int, place: arb) -> arb:
        return place * (place + 2 * _start(block, self.width)) / ball(2 * self.variance)

    def exponents(self, blocks: NDArray[np.float64], places: NDArray[np.float64]) -> NDArray[np.float64]:
        starts = _starts(blocks, self.width)
        return places * (places + 2 * starts) / float(2 * self.variance)


@final
@dataclass(frozen=True, slots=True)
class RoundedGaussianShape:
    """The same for the real numbers that round into the block; the first of them is half a step lower.

    The first block holds zero, its likeliest real number, half a step inside: y (y - 1) + 1/4 = (y - 1/2)^2.
    """

    variance: Fraction
    width: int
    fractional: bool = True

    def exponent(self, block: int, place: arb) -> arb:
        first = _start(block, self.width) - Fraction(1, 2)
        distance = place + ball(first)
        # As a difference of squares, the enclosure of a place within [0, 1] in the first block is tight as well.
        return (distance * distance - ball(max(first, Fraction(0)) ** 2)) / ball(2 * self.variance)

    def exponents(self, blocks: NDArray[np.float64], places: NDArray[np.float64]) -> NDArray[np.float64]:
        starts = _starts(blocks, self.width)
        squares: NDArray[np.float64] = places * (places + (2 * starts - 1)) + 0.25 * (blocks == 0)
        return squares / float(2 * self.variance)
