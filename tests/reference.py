"""Slow samplers in whole numbers only. They read bytes as the fast ones do and must return the same values.

What a draw means is decided here from the formulas of the laws, by `series` alone: a uniform number is revealed
64 bits at a time until it lies within one outcome. Only *which bytes are read* follows the fast samplers: how many
bits come first, and which draws those leave open.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

from series import Enclosed, Enclosure, exp_minus, narrowed, over, rational

Read: TypeAlias = Callable[[int], bytes]

FEW, CHUNK = 2048, 1 << 16  # Draws below which 64 bits come first; draws whose first bits are read together.
_GUARD = 128  # Bits by which an enclosure is finer than what it is compared with.


def split(data: bytes, size: int) -> list[int]:
    """Cut bytes into whole numbers of `size` bytes."""
    return [int.from_bytes(data[i : i + size], "little") for i in range(0, len(data), size)]


def word(read: Read) -> int:
    return split(read(8), 8)[0]


def is_below(real: Enclosure, fine: int, prefix: int, bits: int) -> bool | None:
    """Tell whether a uniform number that starts with `prefix` is below a real number; None if more bits must."""
    if (prefix + 1) << fine <= real[0] << bits:
        return True
    return False if prefix << fine >= real[1] << bits else None


def below(real: Enclosed, prefix: int, bits: int, read: Read) -> bool:
    while (answer := is_below(real(bits + _GUARD), bits + _GUARD, prefix, bits)) is None:
        prefix, bits = prefix << 64 | word(read), bits + 64
    return answer


@dataclass(frozen=True)
class Coin:
    """Heads with a probability."""

    real: Enclosed

    def one(self, read: Read) -> int:
        return int(below(self.real, word(read), 64, read))

    def array(self, read: Read, count: int) -> list[int]:
        first = split(read(2 * count), 2)
        top = min(self.real(192)[0] >> 128, 2**64 - 1) >> 48
        open_ = [i for i, bits in enumerate(first) if bits in (top, top + 1)]
        more = dict(zip(open_, split(read(8 * len(open_)), 8), strict=True))
        return [int(below(self.real, *_prefix(first[i], more.get(i)), read)) for i in range(count)]


def _prefix(first: int, more: int | None, bits: int = 16) -> tuple[int, int]:
    return (first, bits) if more is None else (first << (64 - bits) | more >> bits, 64)


def rational_coin(p: Fraction) -> Coin:
    return Coin(lambda bits: rational(p, bits))


def exponential_coin(x: Fraction) -> Coin:
    return Coin(lambda bits: exp_minus(x, bits))


@dataclass(frozen=True)
class Steps:
    """Outcomes in order and enclosures, to `bits` bits, of the probability of all up to each of them."""

    outcomes: Sequence[int]
    tops: Sequence[Enclosure]
    bits: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "lows", [top[0] for top in self.tops])
        object.__setattr__(self, "highs", [top[1] for top in self.tops])

    def landing(self, prefix: int, bits: int) -> int | None:
        """Return the place of the outcome that a uniform number with these first bits falls on, if it is known."""
        place = bisect_right(self.highs, prefix << (self.bits - bits))  # type: ignore[attr-defined]
        if place < len(self.tops) and self.tops[place][0] >= (prefix + 1) << (self.bits - bits):
            return place
        return None

    def floors(self) -> list[int]:
        """Return the first 64 bits of each probability, all of which are below 1."""
        floors = [(low >> (self.bits - 64), min(high >> (self.bits - 64), 2**64 - 1)) for low, high in self.tops]
        assert all(low == high for low, high in floors)
        return [low for low, _ in floors]


class Inversion:
    """Draws outcomes from a listed law. `unsure` outcomes are looked at again after 16 bits."""

    def __init__(self, steps: Callable[[int], Steps], unsure: Callable[[int], bool] = lambda outcome: False) -> None:
        self._steps = lru_cache(8)(steps)
        self._unsure = unsure
        self._floors = self._steps(64 + _GUARD).floors()

    def finish(self, prefix: int, bits: int, read: Read) -> int:
        while (place := self._steps(max(bits, 64) + _GUARD).landing(prefix, bits)) is None:
            prefix, bits = prefix << 64 | word(read), bits + 64
        return self._steps(max(bits, 64) + _GUARD).outcomes[place]

    def one(self, read: Read) -> int:
        return self.finish(word(read), 64, read)

    def many(self, read: Read, count: int) -> list[int]:
        return [self.finish(prefix, 64, read) for prefix in split(read(8 * count), 8)]

    def open_after_16_bits(self, first: int) -> bool:
        """Tell whether a floor lies in the bucket or just below it, or the outcome is to be looked at again."""
        start = bisect_left(self._floors, (first << 48) - 1)
        if start == len(self._floors) or self._floors[start] < (first + 1) << 48:
            return True
        return self._unsure(self._steps(64 + _GUARD).outcomes[start])

    def settle(self, read: Read, first: Sequence[int]) -> list[int]:
        more = split(read(8 * len(first)), 8)
        return [self.finish(*_prefix(*both), read) for both in zip(first, more, strict=True)]

    def array(self, read: Read, count: int) -> list[int]:
        if count < FEW:
            return self.many(read, count)
        first = split(read(2 * count), 2)
        open_ = [i for i in range(count) if self.open_after_16_bits(first[i])]
        settled = dict(zip(open_, self.settle(read, [first[i] for i in open_]), strict=True))
        return [settled[i] if i in settled else self.finish(first[i], 16, read) for i in range(count)]


@dataclass(frozen=True)
class Blocks:
    """Draws a block of 2^shift values, a place in it, and accepts them or draws again.

    `exponents` gives the least and the largest x of the acceptance probability exp(-x) of a value in a block, when
    the first bits are known of where it lies in [value - 1/2, value + 1/2) for laws that need to know.
    """

    inversion: Inversion
    shift: int
    check: int  # Bits that are compared first.
    sure: int  # Of 2^check: a place that is accepted below this needs no second look, unless its block is unsure.
    sure_of: Callable[[int], int]  # The same for one block, where many are drawn at once.
    fractional: bool
    exponents: Callable[[int, int, int, int], tuple[Fraction, Fraction]]

    def one(self, read: Read) -> int:
        while True:
            block = self.inversion.one(read)
            bits = word(read)
            value = (block << self.shift) + (bits & ((1 << self.shift) - 1))
            if self._accepts(read, block, value, bits >> (64 - self.check), self.check, 0, 0):
                return value

    def _accepts(self, read: Read, block: int, value: int, prefix: int, bits: int, inside: int, fine: int) -> bool:
        while (answer := self._known(block, value, prefix, bits, inside, fine)) is None:
            prefix, bits = prefix << 64 | word(read), bits + 64
            if self.fractional:
                inside, fine = inside << 64 | word(read), fine + 64
        return answer

    def _known(self, block: int, value: int, prefix: int, bits: int, inside: int, fine: int) -> bool | None:
        least, largest = self.exponents(block, value, inside, fine)
        chance = exp_minus(largest, bits + 64)[0], exp_minus(least, bits + 64)[1]
        return is_below(chance, bits + 64, prefix, bits)

    @property
    def _size(self) -> int:
        return 4 if self.shift <= 18 else 8

    def array(self, read: Read, count: int) -> list[int]:
        if count < FEW:
            blocks = self.inversion.many(read, count)
            return self._until_accepted(read, blocks, split(read(self._size * count), self._size))
        chunks = [self._chunk(read, min(CHUNK, count - start)) for start in range(0, count, CHUNK)]
        pairs = [pair for chunk in chunks for pair in chunk]
        return self._settle(read, [first for first, _ in pairs], [bits for _, bits in pairs])

    def _chunk(self, read: Read, count: int) -> list[tuple[int, int]]:
        first = split(read(2 * count), 2)
        return list(zip(first, split(read(self._size * count), self._size), strict=True))

    def _settle(self, read: Read, first: list[int], bits: list[int]) -> list[int]:
        flagged = [i for i, start in enumerate(first) if self.inversion.open_after_16_bits(start)]
        known = dict(zip(flagged, self.inversion.settle(read, [first[i] for i in flagged]), strict=True))
        blocks = [known[i] if i in known else self.inversion.finish(first[i], 16, read) for i in range(len(first))]
        open_ = [i for i in range(len(first)) if i in known or self._top(bits[i]) >= self.sure_of(blocks[i])]
        settled = self._until_accepted(read, [blocks[i] for i in open_], [bits[i] for i in open_])
        found = dict(zip(open_, settled, strict=True))
        return [found[i] if i in found else self._surely(blocks[i], bits[i]) for i in range(len(first))]

    def _surely(self, block: int, bits: int) -> int:
        value = self._value(block, bits)
        assert self._known(block, value, self._top(bits), self.check, 0, 0), "accepted too soon"
        return value

    def _top(self, bits: int) -> int:
        return bits >> (8 * self._size - self.check)

    def _value(self, block: int, bits: int) -> int:
        return (block << self.shift) + (bits & ((1 << self.shift) - 1))

    def _until_accepted(self, read: Read, blocks: list[int], bits: list[int]) -> list[int]:
        values = [self._value(block, some) for block, some in zip(blocks, bits, strict=True)]
        inside = split(read(8 * len(values)), 8) if self.fractional else [0] * len(values)
        more, fine = split(read(8 * len(values)), 8), 64 if self.fractional else 0
        accepted = [
            self._accepts(read, blocks[i], value, *_prefix(self._top(bits[i]), more[i], self.check), inside[i], fine)
            for i, value in enumerate(values)
        ]
        rejected = [i for i, kept in enumerate(accepted) if not kept]
        if rejected:
            again = self.inversion.many(read, len(rejected))
            words = split(read(self._size * len(rejected)), self._size)
            values_again = dict(zip(rejected, self._until_accepted(read, again, words), strict=True))
            return [values_again.get(i, value) for i, value in enumerate(values)]
        return values


def integer_below(read: Read, limit: int) -> int:
    bits = (limit - 1).bit_length()
    while (drawn := int.from_bytes(read(-(-bits // 8)), "little") % 2**bits) >= limit:
        pass
    return drawn


def integers_below(read: Read, limit: int, count: int) -> list[int]:
    drawn = [value % 2 ** (limit - 1).bit_length() for value in split(read(8 * count), 8)]
    again = [i for i, value in enumerate(drawn) if value >= limit]
    if again:
        for i, value in zip(again, integers_below(read, limit, len(again)), strict=True):
            drawn[i] = value
    return drawn


def permutation(read: Read, count: int) -> list[int]:
    keys = split(read(8 * count), 8)
    if len(set(keys)) < count:
        return permutation(read, count)
    return sorted(range(count), key=keys.__getitem__)


def choice(read: Read, gaps: Sequence[Fraction], multiplicities: Sequence[int], factor: Fraction) -> int:
    """Draw i with P[i] ~ multiplicities[i] * exp(-factor * gaps[i])."""

    def steps(bits: int) -> Steps:
        work, sums = bits + 64, [(0, 0)]
        for gap, many in zip(gaps, multiplicities, strict=True):
            low, high = exp_minus(factor * gap, work)
            sums.append((sums[-1][0] + many * low, sums[-1][1] + many * high))
        tops = [narrowed(over(top, sums[-1], work), 64) for top in sums[1:-1]]
        return Steps(range(len(gaps)), [*tops, (1 << bits, 1 << bits)], bits)

    prefix, bits = word(read), 64
    while (place := steps(bits + _GUARD).landing(prefix, bits)) is None:
        prefix, bits = prefix << 64 | word(read), bits + 64
    return place


def permute_and_flip(read: Read, gaps: Sequence[Fraction], factor: Fraction, together: int) -> int:
    """Take the first candidate, in random order, whose coin is heads; `together` coins are read at a time."""
    order = permutation(read, len(gaps))
    for start in range(0, len(order), together):
        some = order[start : start + together]
        for index, prefix in zip(some, split(read(8 * len(some)), 8), strict=True):
            exponent = factor * gaps[index]
            if below(lambda bits, x=exponent: exp_minus(x, bits), prefix, 64, read):  # type: ignore[misc]
                return index
    raise AssertionError("the best candidate is always taken")
