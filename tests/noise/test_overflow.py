"""What does not fit 64 bits is refused in arrays and exact in single draws; it never wraps."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from recorded import replayed

from discreet import noise
from discreet.errors import DiscreetError, NoiseOverflow
from discreet.noise import samplers, source
from discreet.noise.block_sampling import BlockSampler, ExponentialShape
from discreet.noise.inversion import FEW, FLAG

LARGEST_SCALE = Fraction(1 << 50)


@dataclass
class OneBlock:
    """Stands in for the inversion of a sampler: always the same block, however far out."""

    block: int
    flags: bool = True
    largest: int = 0  # block of a table

    def unsure(self, outcome: int) -> bool:
        return False

    def one(self) -> int:
        return self.block

    def many(self, count: int) -> Any:
        return np.full(count, self.block, np.int64)

    def flagged(self, count: int) -> Any:
        return np.full(count, FLAG if self.flags else self.block, np.int16), np.zeros(count, np.uint16)

    def settle(self, words: Any) -> Any:
        return np.full(words.size, self.block, np.int64)


def of_one_block(block: int, *, flags: bool = True) -> Any:
    """Make the Laplace sampler of the largest scale draw one block only."""
    real: Any = samplers.laplace_sampler(LARGEST_SCALE)
    stand_in: Any = OneBlock(block, flags)
    return BlockSampler(stand_in, real._shift, real._shape, Fraction(1 << real._shift) / LARGEST_SCALE)


@pytest.mark.parametrize("block", [1 << 17, -(1 << 17), 1 << 18, -(1 << 18) - 1, 1 << 40, -(1 << 62)])
@pytest.mark.parametrize("count", [1, FEW - 1, FEW, 70_000])
def test_arrays_refuse_what_may_not_fit(block: int, count: int) -> None:
    with pytest.raises(NoiseOverflow):
        of_one_block(block).array(count)


@pytest.mark.parametrize("block", [1 << 17, -(1 << 18) - 1, 1 << 40, -(1 << 62)])
def test_single_draws_are_exact_beyond_64_bits(block: int) -> None:
    sampler = of_one_block(block)
    value = sampler.one()
    assert type(value) is int
    assert value >> sampler._shift == block


@pytest.mark.parametrize("block", [(1 << 17) - 1, 1 - (1 << 17), 0, -1])
@pytest.mark.parametrize("count", [1, FEW - 1, FEW, 70_000])
def test_arrays_hold_all_that_fits(block: int, count: int) -> None:
    sampler = of_one_block(block)
    assert set((sampler.array(count) >> sampler._shift).tolist()) == {block}


@pytest.mark.parametrize("block", [32767, -32767, 0, -1])
def test_blocks_that_the_table_decides_are_widened_before_they_are_shifted(block: int) -> None:
    sampler = of_one_block(block, flags=False)
    drawn = sampler.array(FEW)
    assert drawn.dtype == np.int64
    assert set((drawn >> sampler._shift).tolist()) == {block}


@pytest.mark.parametrize(("block", "kind"), [(1, np.int32), (65535, np.int32), (-65536, np.int32), (65536, np.int64)])
def test_short_numbers_become_long_where_one_does_not_fit(block: int, kind: type) -> None:
    stand_in: Any = OneBlock(block)
    sampler = BlockSampler(stand_in, 15, ExponentialShape(Fraction(1 << 21)), Fraction(1, 64))
    drawn = sampler.narrow(FEW)
    assert drawn.dtype == kind
    assert set((drawn >> 15).tolist()) == {block}


@pytest.mark.parametrize("largest", [1 << 15, 1 << 14])
def test_a_table_whose_blocks_do_not_fit_short_numbers_is_joined_in_long_ones(largest: int) -> None:
    """Shifted by 17, a block of 2^14 is the first that 32 bits cannot hold."""
    stand_in: Any = OneBlock(largest - 1, flags=False, largest=largest - 1)
    sampler = BlockSampler(stand_in, 17, ExponentialShape(Fraction(1 << 23)), Fraction(1, 64))
    drawn = sampler.narrow(FEW)
    assert drawn.dtype == (np.int32 if largest == 1 << 14 else np.int64)
    assert set((drawn >> 17).tolist()) == {largest - 1}


def test_rounded_laplace_refuses_what_its_geometric_part_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(scale: Any, size: Any = None) -> Any:
        raise NoiseOverflow("a noise value does not fit 64 bits; nothing was released")

    monkeypatch.setattr("discreet.noise.samplers.geometric", refuses)
    with pytest.raises(NoiseOverflow):
        noise.rounded_laplace(LARGEST_SCALE, 10)


@pytest.mark.parametrize("size", [1, 5000])
def test_the_widest_laws_fit_64_bits_all_but_surely(size: int) -> None:
    """Half of 64 bits, 2^62, is 4096 scales and 4 million sigmas away."""
    for drawn in (noise.discrete_laplace(LARGEST_SCALE, size), noise.rounded_gaussian(size=size, variance=1 << 80)):
        assert int(np.abs(drawn).max()) < 1 << 62


def test_an_overflow_is_one_of_our_errors_and_names_no_value() -> None:
    with pytest.raises(DiscreetError) as caught:
        of_one_block(1 << 20).array(3)
    assert not any(character.isdigit() for character in str(caught.value).replace("64", ""))


def reveal_much(prefix: int, bits: int) -> tuple[int, int]:
    """Reveal 2048 more bits instead of 64; it is the same number, sooner."""
    return prefix << 2048 | int.from_bytes(source.read(256), "little"), bits + 2048


@pytest.mark.slow
@pytest.mark.parametrize("draw", [noise.geometric, noise.discrete_laplace])
def test_six_thousand_ones_make_an_array_refuse_and_a_single_draw_exact(
    draw: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Through the public functions: 2^62 is 4096 scales, or 5910 bits, away."""
    monkeypatch.setattr("discreet.noise.inversion.extend", reveal_much)
    ones = bytes([255]) * (8 + 3 * 256)
    with replayed("after", ones):
        value = draw(LARGEST_SCALE)
    assert type(value) is int
    assert abs(value) >= 1 << 62
    with replayed("after", ones), pytest.raises(NoiseOverflow):
        draw(LARGEST_SCALE, 1)
