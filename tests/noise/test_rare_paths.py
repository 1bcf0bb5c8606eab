"""Bytes chosen by hand lead to what chance shows once in 2^50 draws; the reference decides what is right there."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import reference
import reference_laws
from recorded import Recorded, replayed, words
from series import exp_minus
from test_reference import Case, bernoulli, bernoulli_exp, discrete_gaussian, geometric, laplace, rounded_gaussian

from discreet import noise
from discreet.noise import samplers

ONES = 2**64 - 1
PLAIN = [
    laplace(str(Fraction(1, 2**20))),
    laplace("1/3"),
    laplace("2"),
    geometric("1/1000"),
    geometric("7/3"),
    discrete_gaussian(str(Fraction(1, 2**20))),
    discrete_gaussian("1/3"),
    discrete_gaussian("30"),
    rounded_gaussian(str(Fraction(1, 2**20))),
    rounded_gaussian("1/5"),
    rounded_gaussian("5"),
]
IN_BLOCKS = [laplace("1000"), geometric(str(2**50)), discrete_gaussian("262145"), discrete_gaussian(str(2**80))]
HALVED = [rounded_gaussian("300000"), rounded_gaussian("1e12"), rounded_gaussian("1e14"), rounded_gaussian("1e15")]
COINS = [bernoulli("1/3"), bernoulli("1"), bernoulli("0"), bernoulli("1/2"), bernoulli_exp("1/7"), bernoulli_exp("50")]


def cases(some: list[Case]) -> Any:
    return pytest.mark.parametrize("case", some, ids=[case.name for case in some])


def same_one(case: Case, slow: Any, first: bytes) -> None:
    recording = Recorded("after", first)
    with replayed("after", first) as bytes_read:
        assert case.fast(None) == slow.one(recording.read)
    assert bytes_read.used == recording.used


def same_array(case: Case, slow: Any, count: int, first: bytes) -> None:
    recording = Recorded("after", first)
    with replayed("after", first) as bytes_read:
        assert case.fast(count).tolist() == slow.array(recording.read, count)
    assert bytes_read.used == recording.used


def on_borders(slow: Any) -> list[tuple[int, int]]:
    """List draws of 128 bits on and beside the borders between outcomes: 64 bits, and the 64 that follow."""
    tops = slow._steps(256).tops
    some = [*tops[:12], *tops[len(tops) // 2 :][:4], *tops[-3:]]
    exact = [min(low, 2**256 - 1) >> 128 for low, _ in some]
    beside = [(near >> 64) + step for near in exact for step in (-1, 1, 2)]
    firsts = [(near >> 64, near & ONES) for near in exact]  # These stay open for 128 bits.
    firsts += [(near >> 64, low) for near in exact for low in (0, ONES)]
    firsts += [(first, low) for first in beside for low in (0, ONES)]
    return sorted({(max(0, min(first, ONES)), low) for first, low in firsts})


@cases(PLAIN)
def test_a_draw_on_a_border_is_decided_by_further_bits(case: Case) -> None:
    slow = case.slow()
    for first, then in on_borders(slow):
        same_one(case, slow, words([first, then]))


@cases(PLAIN)
def test_an_array_of_draws_on_borders_is_decided_by_further_bits(case: Case) -> None:
    slow = case.slow()
    draws = [first for first, _ in on_borders(slow)]
    same_array(case, slow, len(draws), words(draws))


@cases(PLAIN)
def test_a_bucket_with_a_border_in_it_is_decided_by_further_bits(case: Case) -> None:
    slow = case.slow()
    draws = [first for first, _ in on_borders(slow)] + [2**60] * reference.FEW
    open_ = [draw for draw in draws if slow.open_after_16_bits(draw >> 48)]
    more = [(draw & (2**48 - 1)) << 16 for draw in open_]
    same_array(case, slow, len(draws), words([draw >> 48 for draw in draws], 2) + words(more))


@cases(PLAIN)
def test_the_deepest_tail_and_the_very_start_are_reached(case: Case) -> None:
    slow = case.slow()
    for length in range(1, 6):
        for bits in (0, ONES):
            same_one(case, slow, words([bits] * length))
    same_array(case, slow, 5, words([ONES] * 8))
    same_array(case, slow, reference.FEW, bytes([255]) * (2 * reference.FEW + 64))


@cases(COINS)
def test_a_coin_on_its_probability_is_decided_by_further_bits(case: Case) -> None:
    slow = case.slow()
    near = min(slow.real(256)[0], 2**256 - 1) >> 128
    firsts = {max(0, min((near >> 64) + step, ONES)) for step in (-2, -1, 0, 1, 2)}
    for first in firsts:
        for then in (0, near & ONES, ONES):
            same_one(case, slow, words([first, then]))
    same_array(
        case, slow, len(firsts), words([first >> 48 for first in firsts], 2) + words(f << 16 & ONES for f in firsts)
    )


@pytest.mark.parametrize("bits", [190, 200, 1000])
@pytest.mark.parametrize("sign", [-1, 1])
def test_a_probability_that_is_all_but_a_half_is_told_from_a_half(bits: int, sign: int) -> None:
    """The ball around its threshold holds a whole number, so the draw above the threshold is open as well."""
    p = Fraction(1, 2) + Fraction(sign, 1 << bits)
    zeros, ones = words([2**63] + [0] * 16), words([2**63 - 1] + [ONES] * 16)
    for first, heads in (
        (zeros, sign > 0),
        (ones, sign > 0),
        (words([2**63, 1]), False),
        (words([2**63 - 1, 0]), True),
    ):
        with replayed("after", first):
            assert noise.bernoulli(p) == heads
        shifted = words([int.from_bytes(first[:8], "little") >> 48], 2) + words(
            [int.from_bytes(first[:8], "little") << 16 & ONES]
        )
        with replayed("after", shifted + first[8:]):
            assert noise.bernoulli(p, 1).tolist() == [heads]


def into_block(slow: Any, place: int) -> int:
    """Return 64 bits that choose the block on this rung."""
    tops = slow.inversion._steps(192).tops
    start = tops[place - 1][1] if place else 0
    return (start + tops[place][0]) // 2 >> 128


def rungs_to_try(slow: Any) -> list[int]:
    """Return rungs near the middle, on both sides of the last that the table decides, and in the tail."""
    floors, outcomes = slow.inversion._floors, slow.inversion._steps(192).outcomes
    wide = [i for i in range(len(floors) - 1) if floors[i] - (floors[i - 1] if i else 0) > 4]
    far = [i for i in wide if slow.inversion._unsure(outcomes[i])]
    return sorted({*wide[:4], *far[:4], *far[-2:], wide[-1]})


def tops_to_try(slow: Any, block: int, value: int) -> list[int]:
    chance, most = exp_minus(slow.exponents(block, value, 0, 0)[1], 80)[0] >> (80 - slow.check), 2**slow.check - 1
    return sorted({max(0, min(top, most)) for top in (0, slow.sure - 1, slow.sure, chance - 1, chance, chance + 1)})


@cases(IN_BLOCKS + HALVED)
def test_single_values_are_accepted_by_their_own_weight_wherever_they_lie(case: Case) -> None:
    slow = case.slow()
    mask = (1 << slow.shift) - 1
    for rung in rungs_to_try(slow):
        block = slow.inversion._steps(192).outcomes[rung]
        for low in (0, 1, mask // 3, mask):
            for top in tops_to_try(slow, block, (block << slow.shift) + low):
                same_one(case, slow, words([into_block(slow, rung), top << (64 - slow.check) | low]))


@cases(IN_BLOCKS + HALVED)
def test_acceptance_on_the_border_is_decided_by_further_bits(case: Case) -> None:
    slow, inside = case.slow(), 2**63 + 12345
    mask, size = (1 << slow.shift) - 1, slow._size
    blocks, bits, more = [], [], []
    for rung in rungs_to_try(slow):
        for low in (1, mask // 3, mask):
            block = slow.inversion._steps(192).outcomes[rung]
            exponent = slow.exponents(block, (block << slow.shift) + low, inside, 64)[0]
            chance = min(exp_minus(exponent, 128)[0] >> 64, ONES)
            for uniform in (chance - 2**20, chance - 1, chance, min(chance + 1, ONES), min(chance + 2**20, ONES)):
                blocks.append(into_block(slow, rung))
                bits.append((uniform >> (64 - slow.check)) << (8 * size - slow.check) | low)
                more.append((uniform << slow.check) & ONES)
    middle = words([inside] * len(blocks)) if slow.fractional else b""
    same_array(case, slow, len(blocks), words(blocks) + words(bits, size) + middle + words(more))


@cases(IN_BLOCKS + HALVED)
def test_what_is_rejected_is_drawn_again_until_it_is_accepted(case: Case) -> None:
    slow = case.slow()
    mask, size, count = (1 << slow.shift) - 1, slow._size, 5
    ones, check = 2**slow.check - 1, slow.check
    again = words([into_block(slow, 40)] * count) + words([ones << (8 * size - check) | mask // 2] * count, size)
    ends = [ONES] * (2 if slow.fractional else 1)
    same_array(case, slow, count, (again + words(ends * count)) * 4)
    same_one(case, slow, words([into_block(slow, 40), ones << (64 - check) | mask // 2, *ends] * 4))


@pytest.mark.parametrize("limit", [3, 2**62 + 1])
def test_uniform_numbers_are_drawn_again_above_the_limit(limit: int) -> None:
    first = bytes([255]) * 100
    with replayed("after", first):
        assert noise.uniform(limit) == reference.integer_below(Recorded("after", first).read, limit)
    with replayed("after", first):
        assert noise.uniform(limit, 7).tolist() == reference.integers_below(Recorded("after", first).read, limit, 7)


def test_an_order_with_equal_keys_is_drawn_again() -> None:
    first = words([7, 3, 7, 1]) + words([4, 3, 2, 1])
    with replayed("after", first) as bytes_read:
        assert noise.permutation(4).tolist() == [3, 2, 1, 0]
    assert bytes_read.used == 64


@pytest.mark.parametrize("count", [0, 1, 2, 1000])
def test_an_order_is_that_of_the_reference(count: int) -> None:
    with replayed("order"):
        assert noise.permutation(count).tolist() == reference.permutation(Recorded("order").read, count)


SMALL = [f"1/{2**n}" for n in (20, 19, 16, 12, 9, 7, 6, 5, 4, 3, 2)] + ["1/3", "1/9", "3/7", "1/1000000"]
LARGE = ["1", "31.4", "129", str(2**50)]
LAWS = {
    "laplace": (samplers.laplace_sampler, reference_laws.laplace, SMALL + LARGE),
    "geometric": (samplers.geometric_sampler, reference_laws.geometric, SMALL + LARGE),
    "discrete Gaussian": (
        samplers.discrete_gaussian_sampler,
        reference_laws.discrete_gaussian,
        [*SMALL, "1", "50", "1e6", str(2**80)],
    ),
    "rounded Gaussian": (
        samplers.rounded_gaussian_sampler,
        lambda v, shift: reference_laws.rounded_gaussian(v),
        [*SMALL, "1", "5"],
    ),
    "rounded Gaussian blocks": (
        samplers.rounded_gaussian_sampler,
        reference_laws.rounded_gaussian_blocks,
        ["262145", "1e12", str(2**80)],
    ),
}
THRESHOLDS = [(name, parameter) for name, law in LAWS.items() for parameter in law[2]]


@pytest.mark.parametrize(("name", "parameter"), THRESHOLDS, ids=[f"{name} {value}" for name, value in THRESHOLDS])
def test_thresholds_are_the_first_64_bits_of_exact_probabilities(name: str, parameter: str) -> None:
    make, steps, _ = LAWS[name]
    sampler: Any = make(Fraction(parameter))
    inversion = getattr(sampler, "_inversion", sampler)
    exact = steps(Fraction(parameter), getattr(sampler, "_shift", 0))(192)
    shared = min(len(exact.outcomes), len(inversion._outcomes))
    assert list(exact.outcomes)[:shared] == inversion._outcomes[:shared]
    assert exact.floors()[:shared] == inversion._thresholds[:shared]
    assert inversion._thresholds[-1] >= 2**64 - 2
    assert inversion._thresholds == sorted(inversion._thresholds)


@pytest.mark.parametrize(
    "sampler",
    [
        samplers.laplace_sampler(Fraction(128)),
        samplers.geometric_sampler(Fraction(128)),
        samplers.laplace_sampler(Fraction(1 << 50)),
        samplers.discrete_gaussian_sampler(Fraction(512**2 - 1)),
        samplers.rounded_gaussian_sampler(Fraction(512**2 - 1)),
        samplers.discrete_gaussian_sampler(Fraction(1 << 80)),
        samplers.rounded_gaussian_sampler(Fraction(1022**2)),
    ],
)
def test_a_table_of_16_bits_cuts_no_outcome_short(sampler: Any) -> None:
    inversion = getattr(sampler, "_inversion", sampler)
    assert max(abs(outcome) for outcome in inversion._outcomes) < 2**15 - 1
    table, thresholds = inversion._buckets.table, inversion._thresholds
    rungs = np.searchsorted(
        np.array(thresholds, np.uint64), np.arange(2**16, dtype=np.uint64) << np.uint64(48), "right"
    )
    decided = np.flatnonzero(table != np.iinfo(np.int16).min)
    assert decided.size > 2**15
    assert table[decided].tolist() == [inversion._outcomes[rung] for rung in rungs[decided]]
