"""Selections: ties, monotone scores, extreme scores and epsilons."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import pytest
from statistical import fits, rejects
from subjects import ADD_REMOVE, REPLACE_ONE

from discreet.balls import ball, precision
from discreet.errors import InvalidParameter
from discreet.lab.verify import check, worlds
from discreet.mechanisms import Exponential, PermuteAndFlip, ReportNoisyMax, TopK
from discreet.mechanisms.exponential import worst_case_shortfall
from discreet.privacy.events import BoundedRange, PureDP, Repeated

KINDS = (Exponential, PermuteAndFlip, ReportNoisyMax)
EXTREME = (0, 1, 1e3, 1e6, -1e308, 1e308, -math.inf, math.inf, math.nan, None, "x", 5e-324, -0.0, 2**80)


def made(kind: Any, **fields: Any) -> Any:
    return kind(**{"epsilon": 1, "sensitivity": 1, "candidates": 3, "relation": ADD_REMOVE} | fields)


@pytest.mark.parametrize("kind", [*KINDS, TopK])
def test_monotone_scores_do_not_exist_under_replace_one(kind: Any) -> None:
    extra = {"count": 2} if kind is TopK else {}
    with pytest.raises(InvalidParameter, match="monotone"):
        made(kind, relation=REPLACE_ONE, monotone=True, **extra)


def test_only_the_exponential_mechanism_is_of_bounded_range() -> None:
    assert made(Exponential).event == BoundedRange(1)
    assert made(PermuteAndFlip).event == made(ReportNoisyMax).event == PureDP(1)
    assert made(TopK, count=2).event == Repeated(BoundedRange("1/2"), 2)


@pytest.mark.parametrize("epsilon", [6])
@pytest.mark.parametrize("monotone", [False, True])
def test_ties_of_noisy_max_cost_nothing(epsilon: int, monotone: bool) -> None:
    """All scores of three candidates from 0 to 2, and all ways in which one unit may move them by one."""
    mechanism = made(ReportNoisyMax, epsilon=epsilon, monotone=monotone)
    moves = list(product((0, 1) if monotone else (-1, 0, 1), repeat=3))
    largest = Fraction(0)
    with precision(128):
        laws = {u: mechanism.distribution(list(u)).masses for u in product(range(-1, 4), repeat=3)}
        limit = ball(epsilon).exp()
        for u in product(range(3), repeat=3):
            for move in moves:
                other = laws[tuple(a + b for a, b in zip(u, move, strict=True))]
                for place in range(3):
                    assert laws[u][place] <= limit * other[place] * (1 + ball(Fraction(1, 2**90)))
                    assert other[place] <= limit * laws[u][place] * (1 + ball(Fraction(1, 2**90)))
                    largest = max(largest, Fraction(float(laws[u][place] / other[place])))
    assert math.log(largest) > 0.8 * epsilon  # the test could have failed


def test_ties_are_not_broken_by_order() -> None:
    for kind in KINDS:
        with precision(128):
            masses = made(kind).distribution([5, 5, 0]).masses
            assert abs(masses[0] - masses[1]) < ball(Fraction(1, 2**80))


def test_noisy_max_without_the_factor_two_is_refuted() -> None:
    """The mutant: scale sensitivity / epsilon for scores that move both ways."""
    wrong = made(ReportNoisyMax, monotone=True)
    report = check(
        wrong,
        worlds("abc", (4,)),
        relation=REPLACE_ONE,
        claim=PureDP(1),
        query=lambda data: [data.count(letter) for letter in "abc"],
    )
    assert any(finding.violated for finding in report.findings)


@pytest.mark.parametrize("kind", [Exponential, PermuteAndFlip])
def test_extreme_scores_raise_nothing_and_leave_each_candidate_a_chance(kind: Any) -> None:
    """C15: the same path for all; a chance too small for any ball still does not sink below zero."""
    mechanism = made(kind, candidates=len(EXTREME))
    assert 0 <= mechanism.release(EXTREME).value < len(EXTREME)
    with precision(128):
        masses = mechanism.distribution(EXTREME).masses.values()
        assert not any(mass < 0 or mass.is_zero() for mass in masses)
        assert abs(sum(masses, ball(0)) - 1) < ball(Fraction(1, 2**60))


@pytest.mark.parametrize("kind", [Exponential, PermuteAndFlip])
@pytest.mark.parametrize("epsilon", ["1e-9", "0.1", 1, 10, 60])
@pytest.mark.parametrize("base", [0, 10**6, 10**308, -(10**308)])
def test_ratios_stay_within_epsilon_at_extreme_scores(kind: Any, epsilon: Any, base: int) -> None:
    """C15: one unit moves each score by one, whatever its size; ratios are compared in exact arithmetic."""
    mechanism = made(kind, epsilon=epsilon)
    with precision(1200):
        limit = ball(Fraction(epsilon)).exp() * (1 + ball(Fraction(1, 2**900)))
        first = mechanism.distribution([base, base + 1, base - 2]).masses
        second = mechanism.distribution([base + 1, base, base - 1]).masses
        for place in range(3):
            assert first[place] <= limit * second[place]
            assert second[place] <= limit * first[place]
            assert first[place] > 0


def test_scores_of_any_exact_kind_give_the_same_law() -> None:
    mechanism = made(Exponential)
    with precision(128):
        laws = [
            {place: float(mass) for place, mass in mechanism.distribution(scores).masses.items()}
            for scores in ([1, 2, 0], [1.0, 2.0, -0.0], ["1", "2", "0"], [Fraction(1), Fraction(2), Fraction(0)])
        ]
    assert all(law == laws[0] for law in laws)


def test_whole_scores_are_asked_of_noisy_max() -> None:
    for scores in ([0.5, 1, 2], ["1", 2, 3], [None, 1, 2]):
        with pytest.raises(InvalidParameter):
            made(ReportNoisyMax).release(scores)


@pytest.mark.parametrize("kind", KINDS)
def test_the_number_of_candidates_is_public_and_fixed(kind: Any) -> None:
    for scores in ([], [1, 2], [1, 2, 3, 4]):
        with pytest.raises(InvalidParameter):
            made(kind).release(scores)
        with pytest.raises(InvalidParameter):
            made(kind).distribution(scores)


@pytest.mark.parametrize(
    "bad",
    [{"epsilon": 0}, {"epsilon": -1}, {"sensitivity": 0}, {"candidates": 0}, {"candidates": 1.5}, {"relation": None}],
)
@pytest.mark.parametrize("kind", KINDS)
def test_a_bad_selection_is_refused(kind: Any, bad: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        made(kind, **bad)


def test_top_k_chooses_no_more_than_there_are() -> None:
    with pytest.raises(InvalidParameter):
        made(TopK, count=4)
    assert sorted(made(TopK, count=3).release([1, 2, 3]).value) == [0, 1, 2]


def test_shortfall_dominates_brute_force() -> None:
    """The chance to lose more than the public bound is at most what was asked for."""
    mechanism = made(Exponential, candidates=5)
    for confidence in (Fraction(1, 2), Fraction(9, 10), Fraction(99, 100)):
        bound = mechanism.shortfall(confidence)
        assert bound == worst_case_shortfall(factor=Fraction(1, 2), candidates=5, confidence=confidence)
        for gap in range(1, 30):
            with precision(128):
                masses = mechanism.distribution([0, *[-gap] * 4]).masses
                lost = sum((masses[place] for place in range(1, 5)), ball(0))
                assert gap <= bound or lost <= ball(1 - confidence)


@pytest.mark.statistical
def test_choice_among_many_follows_the_exponential_law() -> None:
    """More candidates than are listed one by one: the fast path of the sampler."""
    scores = [place % 7 for place in range(40)]
    mechanism = made(Exponential, candidates=40, epsilon=2)
    with precision(128):
        law = [float(mass) for mass in mechanism.distribution(scores).masses.values()]
        wrong = [
            float(mass) for mass in made(Exponential, candidates=40, epsilon="1/2").distribution(scores).masses.values()
        ]
    import numpy as np

    sample = [mechanism.release(np.array(scores)).value for _ in range(900)]
    assert fits(sample, law)
    assert rejects(sample, wrong)
