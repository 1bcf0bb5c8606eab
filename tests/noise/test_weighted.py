"""Candidates are chosen by their exact weights, whatever their scores, and quickly."""

from __future__ import annotations

import sys
import time
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import reference
from recorded import Recorded, replayed, words
from series import exp_minus
from statistical import fits, rejects

from discreet import noise
from discreet.noise import selection

ONES = 2**64 - 1
FLIPS_TOGETHER = 4096
DRAWS = 2500


def weights_of(scores: list[Any], factor: Any, multiplicities: list[int] | None = None) -> Any:
    """Return the probabilities of the exponential mechanism, as floats."""
    exact = [Fraction(score) for score in scores]
    gaps = [float((max(exact) - score) * Fraction(factor)) for score in exact]
    weights = np.exp(-np.array(gaps)) * (multiplicities or [1] * len(scores))
    return weights / weights.sum()


def first_changed(law: Any) -> Any:
    """Take two thirds off the first candidate, for the others to share."""
    return np.append(law[0] / 3, law[1:] * (1 - law[0] / 3) / (1 - law[0]))


def permute_and_flip_of(scores: list[int], factor: float) -> Any:
    """Return the probabilities of permute-and-flip: the sum over all orders, taken over sets by size."""
    heads = np.exp(factor * (np.array(scores) - max(scores)))
    chances = []
    for i, head in enumerate(heads):
        # Of the others, those that came before all showed tails: a polynomial in the product of their 1 - p.
        coefficients = np.poly1d([1.0])
        for j, other in enumerate(heads):
            if j != i:
                coefficients *= np.poly1d([-(other), 1.0])
        # A uniform place u in the order: each other is before with probability u.
        chances.append(head * float(np.polyval(np.polyint(coefficients), 1.0)))
    return np.array(chances)


def test_the_formula_for_permute_and_flip_is_that_of_the_published_vector() -> None:
    """McKenna and Sheldon's two candidates: the worse one is taken with probability exp(-x) / 2."""
    assert permute_and_flip_of([0, -1], 1.0) == pytest.approx([1 - np.exp(-1) / 2, np.exp(-1) / 2])


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("scores", "factor", "multiplicities"),
    [
        ([3, 2, 0], "1/2", None),
        ([0, 0, 0, 0], 7, None),
        ([5, -5], 0, None),
        ([1, 2, 3], "1/3", [4, 0, 1]),
        (["1/3", "0.5", -2], "1.7", [1, 2, 7]),
        ([Fraction(1, 7)] * 3, 1, [2**53 - 1, 2**52, 1]),
    ],
)
def test_a_short_list_follows_the_weights(scores: list[Any], factor: Any, multiplicities: list[int] | None) -> None:
    sample = [noise.categorical(scores, factor=factor, multiplicities=multiplicities) for _ in range(DRAWS)]
    law = weights_of(scores, factor, multiplicities)
    assert fits(sample, law)
    assert rejects(sample, first_changed(law))


@pytest.mark.statistical
@pytest.mark.parametrize("with_multiplicities", [False, True])
def test_an_array_follows_the_weights(with_multiplicities: bool) -> None:
    scores = np.arange(-50, 50) % 17
    many = (np.arange(100) % 5).tolist() if with_multiplicities else None
    law = weights_of(scores.tolist(), "1/4", many)
    sample = [noise.categorical(scores, factor="1/4", multiplicities=many) for _ in range(DRAWS)]
    assert fits(sample, law)
    assert rejects(sample, weights_of(scores.tolist(), "1/2", many))
    assert rejects(sample, law[::-1])


@pytest.mark.statistical
@pytest.mark.parametrize("scores", [[3, 2, 0], [0, 0, 0], [4, 0, 0, -3], [7]])
@pytest.mark.parametrize("as_array", [False, True])
def test_permute_and_flip_follows_its_law(scores: list[int], as_array: bool) -> None:
    given: Any = np.array(scores) if as_array else scores
    sample = [noise.permute_and_flip(given, factor="1/2") for _ in range(DRAWS)]
    assert fits(sample, permute_and_flip_of(scores, 0.5))
    if len(set(scores)) > 1:
        assert rejects(sample, permute_and_flip_of(scores, 0.25))


@pytest.mark.statistical
def test_permute_and_flip_is_not_the_exponential_mechanism() -> None:
    sample = [noise.permute_and_flip([3, 2, 0], factor=1) for _ in range(2 * DRAWS)]
    assert rejects(sample, weights_of([3, 2, 0], 1))


SCORES = [
    ([3, 2, 0], "1/2", None),
    ([2**63 - 1, -(2**63), 0] * 20, "1e-19", None),
    ([2**63 - 1, -(2**63), 0] * 20, "1e-17", None),
    (list(range(200)), "1/10", None),
    (list(range(200)), "1/10", [i % 3 for i in range(200)]),
    ([i % 7 for i in range(700)], "1/2", None),
    ([-(i**2) for i in range(500)], "1/3", [2**53 - 1 - i for i in range(500)]),
    ([0] * 300, "3", None),
    ([5] * 4095 + [6] + [5] * 10, "20", None),
    ([0, -1000, -2000] * 30, "1", None),
]
each = pytest.mark.parametrize(("scores", "factor", "many"), SCORES)


def exact_steps(scores: list[int], factor: str, many: list[int] | None) -> list[tuple[int, int]]:
    """Enclose the cumulated probabilities to 256 bits."""
    sums, best = [(0, 0)], max(score for score, m in zip(scores, many or scores, strict=True) if many is None or m)
    for score, m in zip(scores, many or [1] * len(scores), strict=True):
        low, high = exp_minus(Fraction(factor) * max(best - score, 0), 320) if m else (0, 0)
        sums.append((sums[-1][0] + m * low, sums[-1][1] + m * high))
    return [((low << 256) // sums[-1][1], -(-(high << 256) // sums[-1][0])) for low, high in sums[1:-1]]


def listed(scores: list[int], many: list[int] | None) -> tuple[list[int], list[Fraction], list[int]]:
    """Return the candidates that can be chosen, the gaps and the multiplicities."""
    possible = [i for i in range(len(scores)) if many is None or many[i]]
    best = max(scores[i] for i in possible)
    return possible, [Fraction(best - scores[i]) for i in possible], [many[i] if many else 1 for i in possible]


def same(scores: Any, factor: str, many: Any, first: bytes, label: str = "after") -> None:
    possible, gaps, counts = listed([int(score) for score in scores], many)
    recording = Recorded(label, first)
    with replayed(label, first) as bytes_read:
        chosen = noise.categorical(scores, factor=factor, multiplicities=many)
    assert chosen == possible[reference.choice(recording.read, gaps, counts, Fraction(factor))]
    assert bytes_read.used == recording.used


@each
def test_a_choice_is_that_of_the_reference(scores: list[int], factor: str, many: list[int] | None) -> None:
    for draw in range(2):
        same(scores, factor, many, b"", f"draw {draw}")
        same(np.array(scores), factor, many, b"", f"draw {draw}")


@each
def test_a_choice_on_a_border_is_decided_by_further_bits(
    scores: list[int], factor: str, many: list[int] | None
) -> None:
    tops = exact_steps(scores, factor, many)
    some = {4095} if len(tops) > 4096 else {0, len(tops) // 2, len(tops) - 1}
    for place in sorted(some):
        near = min(tops[place][0], 2**256 - 1) >> 128
        for first, then in ((near >> 64, near & ONES), (near >> 64, 0), (near >> 64, ONES)):
            same(np.array(scores), factor, many, words([first, then]))
        for first in ((near >> 64) - 1, (near >> 64) + 1):
            same(np.array(scores), factor, many, words([max(0, min(first, ONES))]))


def test_a_long_run_of_candidates_of_no_weight_does_not_hold_up_the_choice() -> None:
    scores = np.full(200_000, -10_000)
    scores[0] = 0
    start = time.process_time()
    with replayed("after", words([ONES, ONES])):
        assert noise.categorical(scores, factor=1) == 0
    assert time.process_time() - start < 20


@pytest.mark.parametrize("scores", [[0, 1, 10**3, 10**6, "-1e308", "1e308"], ["1e308", "-1e308", "1e308"]])
@pytest.mark.parametrize("factor", ["0", "1e-308", "1", "1e308"])
def test_scores_as_large_as_floats_go_are_chosen_among(scores: list[Any], factor: str) -> None:
    assert 0 <= noise.categorical(scores, factor=factor) < len(scores)
    assert 0 <= noise.permute_and_flip(scores, factor=factor) < len(scores)


@pytest.mark.parametrize("factor", ["0", "1e-400", "1e-30", "1", "1e250", "1e300", "1e2000"])
def test_no_factor_overflows_or_warns(factor: str) -> None:
    """A warning that depends on the gaps between scores would tell about them."""
    extremes = np.array([2**63 - 1, -(2**63)] * 40)
    best = {0, *range(2, 80, 2)}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(20):
            chosen = noise.categorical(extremes, factor=factor), noise.permute_and_flip(extremes, factor=factor)
            assert Fraction(factor) < Fraction("1e-17") or set(chosen) <= best


def test_one_candidate_is_always_chosen() -> None:
    for scores in ([5], np.array([-3]), ["1e300"]):
        assert noise.categorical(scores, factor=3) == 0
        assert noise.permute_and_flip(scores, factor=3) == 0
    assert noise.categorical([1, 2, 3], factor=1, multiplicities=[0, 1, 0]) == 1


def test_a_candidate_of_multiplicity_zero_does_not_set_the_best_score() -> None:
    scores, many = np.arange(100), np.ones(100, np.int64)
    many[-1] = 0
    assert {noise.categorical(scores, factor=50, multiplicities=many) for _ in range(50)} == {98}


@pytest.mark.parametrize("label", range(2))
@pytest.mark.parametrize(
    ("scores", "factor"), [([3, 2, 0], "1/2"), (list(range(4200)), "1/50"), ([0] * 5000 + [40], "1")]
)
def test_permute_and_flip_is_that_of_the_reference(scores: list[int], factor: str, label: int) -> None:
    gaps = [Fraction(max(scores) - score) for score in scores]
    recording = Recorded(f"flip {label}")
    with replayed(f"flip {label}") as bytes_read:
        chosen = noise.permute_and_flip(np.array(scores), factor=factor)
    assert chosen == reference.permute_and_flip(recording.read, gaps, Fraction(factor), FLIPS_TOGETHER)
    assert bytes_read.used == recording.used


def test_permute_and_flip_of_a_short_list_is_that_of_the_reference() -> None:
    scores, factor = ["1/3", "5/2", "-7", "2.499"], Fraction(3, 7)
    gaps = [Fraction(5, 2) - Fraction(score) for score in scores]
    recording = Recorded("listed")
    with replayed("listed") as bytes_read:
        for _ in range(300):
            chosen = noise.permute_and_flip(scores, factor=factor)
            assert chosen == reference.permute_and_flip(recording.read, gaps, factor, 1)
            assert bytes_read.used == recording.used


@pytest.mark.parametrize("step", [-(2**20), -1, 0, 1, 2**20])
@pytest.mark.parametrize("gap", [1, 3, 30, 60])
def test_a_coin_of_permute_and_flip_on_its_border_is_decided_by_further_bits(gap: int, step: int) -> None:
    near = exp_minus(Fraction(gap, 2), 128)[0]
    uniform = max(0, (near >> 64) + step)
    order, scores = words([0, 1]), np.array([-gap, 0])
    for then in (0, near & ONES, ONES):
        first = order + words([uniform, 0]) + words([then])
        with replayed("after", first):
            chosen = noise.permute_and_flip(scores, factor="1/2")
        expected = reference.permute_and_flip(
            Recorded("after", first).read, [Fraction(gap), Fraction(0)], Fraction(1, 2), FLIPS_TOGETHER
        )
        assert chosen == expected


@pytest.mark.parametrize("count", [33, 4097, 1_000_000])
@pytest.mark.parametrize("factor", ["1/1000000", "1/1000", "1", "7"])
def test_floats_are_less_wrong_than_they_are_taken_to_be(count: int, factor: str) -> None:
    """The cumulated weights in floats differ from exact ones by a small part of the doubt they are given."""
    gaps = (np.arange(count, dtype=np.uint64) * np.uint64(7919)) % np.uint64(997)
    many = np.ones(count)
    weights = many * np.exp(np.maximum(gaps * -selection._rate(Fraction(factor)), selection._LOWEST))
    sums = np.add.reduceat(weights, np.arange(0, count, selection._BLOCK))
    tops = np.cumsum(sums)
    terms = {int(gap): exp_minus(Fraction(factor) * int(gap), 160)[0] for gap in np.unique(gaps)}
    for block in {0, len(sums) // 2, len(sums) - 1}:
        end = min((block + 1) * selection._BLOCK, count)
        which, times = np.unique(gaps[:end], return_counts=True)
        exact = Fraction(sum(int(n) * terms[int(gap)] for gap, n in zip(which, times, strict=True)), 2**160)
        error = abs(Fraction(float(tops[block])) - exact) / Fraction(float(tops[-1]))
        assert error < Fraction(selection._relative_error(count)) / 8


@pytest.mark.parametrize("factor", ["1/1000000", "1"])
def test_a_million_candidates_take_a_fraction_of_a_second(factor: str) -> None:
    scores = np.arange(1_000_000) % 1009
    many = np.arange(1_000_000) % 3
    start = time.process_time()
    noise.categorical(scores, factor=factor)
    noise.categorical(scores, factor=factor, multiplicities=many)
    noise.permute_and_flip(scores, factor=factor)
    spent = time.process_time() - start
    print(f"three choices among a million: {spent:.3f} s", file=sys.stderr)
    assert spent < 10  # Tenfold, for a slow machine.
