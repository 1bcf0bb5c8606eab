"""Randomized response: exact odds at any epsilon, unbiased shares, intervals that cover, one charge an answer."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statistical import fits, rejects
from subjects import ADD_REMOVE, REPLACE_ONE

from discreet import privacy
from discreet.balls import ball, precision
from discreet.errors import BudgetExceeded, InvalidParameter, Refused, UnsupportedEvent
from discreet.mechanisms import RandomizedResponse, Respondent, estimate
from discreet.mechanisms.local_protocol import SharesAccuracy, rate_interval

EPSILONS = ("1e-9", "1e-6", "0.001", "0.1", "1", "ln3", "4", "10", "30", "60")


@pytest.mark.parametrize("epsilon", [e for e in EPSILONS if e != "ln3"])
@pytest.mark.parametrize("categories", [2, 3, 10, 1000])
def test_odds_stay_within_epsilon_and_every_answer_is_possible(epsilon: str, categories: int) -> None:
    """C15: rounded towards a guess, by less than one part in 2^100 of what is allowed."""
    mechanism = RandomizedResponse.for_epsilon(epsilon, categories=categories)
    assert 0 < mechanism.lie < mechanism.keep < 1
    assert mechanism.keep + (categories - 1) * mechanism.lie == 1
    with precision(600):
        odds = ball(mechanism.keep / mechanism.lie).log()
        assert odds < ball(Fraction(epsilon))
        assert odds > ball(Fraction(epsilon) * (1 - Fraction(1, 2**100)))


def test_odds_beyond_epsilon_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="e\\^epsilon"):
        RandomizedResponse(epsilon=Fraction("1.0986122886681096"), keep=Fraction(3, 4))
    assert RandomizedResponse(epsilon=Fraction("1.0986122886681099"), keep=Fraction(3, 4)).lie == Fraction(1, 4)


def test_swapped_probabilities_are_refused() -> None:
    mechanism = RandomizedResponse.for_epsilon(1)
    with pytest.raises(InvalidParameter):
        RandomizedResponse(epsilon=Fraction(1), keep=mechanism.lie)


def test_warners_coin_is_three_quarters_and_costs_the_logarithm_of_three() -> None:
    coin = RandomizedResponse.warner()
    assert (coin.keep, coin.lie) == (Fraction(3, 4), Fraction(1, 4))
    with precision(128):
        assert ball(coin.epsilon) > ball(3).log()
        assert ball(coin.epsilon) < ball(3).log() + ball(Fraction(1, 10**17))


def test_it_has_no_guarantee_under_add_remove() -> None:
    mechanism = RandomizedResponse.for_epsilon(1)
    assert mechanism.relation is REPLACE_ONE
    with pytest.raises(UnsupportedEvent):
        privacy.epsilon(mechanism.event, 0, relation=ADD_REMOVE)


@pytest.mark.parametrize(
    "bad",
    [{"categories": 1}, {"categories": 0}, {"categories": 2.0}, {"epsilon": 0}, {"epsilon": -1}, {"epsilon": 5000}],
)
def test_a_bad_response_is_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        RandomizedResponse.for_epsilon(**{"epsilon": 1, "categories": 3} | bad)


@pytest.mark.statistical
def test_answers_follow_their_law() -> None:
    mechanism = RandomizedResponse.for_epsilon(1, categories=4)
    kept, other = float(mechanism.keep), float(mechanism.lie)
    law = [other, other, kept, other]
    assert fits(mechanism.respond_all([2] * 20_000), law)
    assert rejects(mechanism.respond_all([2] * 20_000), [kept, other, other, other])
    assert rejects(mechanism.respond_all([2] * 20_000), [0.25] * 4)
    assert fits([mechanism.respond(2) for _ in range(3000)], law)
    assert fits(mechanism.respond_all(np.full(3000, 2)), law)  # type: ignore[arg-type]


@pytest.mark.parametrize("people", [50_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_answers_at_an_epsilon_of_sixty_are_almost_always_true(people: int) -> None:
    """Coins of chance 1 - 8.8e-27; the exact chance is checked above."""
    assert sum(RandomizedResponse.for_epsilon(60).respond_all([1] * people)) == people


def test_what_is_no_category_is_taken_for_the_first() -> None:
    mechanism = RandomizedResponse.for_epsilon(60, categories=3)
    assert mechanism.respond_all([None, "x", 7, -1, 2.0, True, 2]) == [0, 0, 0, 0, 0, 1, 2]  # type: ignore[list-item]


@given(st.lists(st.integers(0, 3), min_size=1, max_size=50), st.sampled_from(["0.5", "2"]))
def test_estimates_are_unbiased_for_all_data(data: list[int], epsilon: str) -> None:
    """The mean over all coins, computed exactly, is the share itself."""
    mechanism = RandomizedResponse.for_epsilon(epsilon, categories=4)
    accuracy = SharesAccuracy(mechanism=mechanism, counts=(1,) * 4)
    for category in range(4):
        share = Fraction(data.count(category), len(data))
        rate = share * mechanism.keep + (1 - share) * mechanism.lie
        assert accuracy.share(rate) == share


def test_variance_is_that_of_the_coins() -> None:
    mechanism = RandomizedResponse.for_epsilon(1, categories=3)
    truth = [0, 0, 1]
    accuracy = SharesAccuracy(mechanism=mechanism, counts=(3, 0, 0))
    with precision(128):
        law = {row: float(mass) for row, mass in mechanism.distribution(truth).masses.items()}
    shares = [(float(accuracy.share(Fraction(row.count(0), 3))), mass) for row, mass in law.items()]
    mean = sum(share * mass for share, mass in shares)
    spread = sum((share - mean) ** 2 * mass for share, mass in shares)
    assert mean == pytest.approx(2 / 3)
    assert spread == pytest.approx(float(accuracy.variance(Fraction(2, 3))))


@pytest.mark.parametrize("truth", [(0,) * 6, (0, 0, 1, 1, 2, 2), (0, 1, 1, 1, 1, 1)])
@pytest.mark.parametrize("confidence", ["0.5", "0.8", "0.95"])
def test_intervals_cover_for_every_truth(truth: tuple[int, ...], confidence: str) -> None:
    """Exactly, by listing what six people may answer: no share is missed more often than allowed."""
    mechanism = RandomizedResponse.for_epsilon(2, categories=3)
    with precision(64):
        law = {row: float(mass) for row, mass in mechanism.distribution(truth).masses.items()}
    for category in range(3):
        share, covered = Fraction(truth.count(category), 6), 0.0
        ends = {count: rate_interval(count, 6, Fraction(confidence)) for count in range(7)}
        accuracy = SharesAccuracy(mechanism=mechanism, counts=(6, 0, 0))
        for row, mass in law.items():
            low, high = map(accuracy.share, ends[row.count(category)])
            covered += mass * (low <= share <= high)
        assert covered >= float(confidence) - 1e-12


@given(st.integers(2, 5000), st.data())
@settings(max_examples=20, deadline=None)
def test_rates_agree_with_clopper_and_pearson(trials: int, data: Any) -> None:
    from scipy.stats import beta

    successes = data.draw(st.integers(0, trials))
    low, high = map(float, rate_interval(successes, trials, Fraction(19, 20)))
    lower = beta.ppf(0.025, successes, trials - successes + 1) if successes > 1 else 0.0
    upper = beta.ppf(0.975, successes + 1, trials - successes) if successes < trials - 1 else 1.0
    assert low <= lower * (1 + 1e-9)
    assert high >= upper * (1 - 1e-9)
    assert high - low <= (upper - lower) * 1.003


def test_shares_come_with_intervals_and_names() -> None:
    mechanism = RandomizedResponse.for_epsilon(2, categories=3)
    release = estimate(mechanism.respond_all([0] * 600 + [1] * 300 + [2] * 100), mechanism)
    assert sum(release.value) == 1
    assert release.event == mechanism.event
    assert all(low <= part <= high for part, (low, high) in zip(release.tidy, release.interval(), strict=True))
    assert all(0 < reach < Fraction(1, 5) for reach in release.plus_minus())
    for bad in ([], [3], [-1], [0, "x"]):
        with pytest.raises(InvalidParameter):
            estimate(bad, mechanism)


class Purse:
    """A budget of so many answers."""

    def __init__(self, answers: int) -> None:
        self.left, self.seen = answers, []

    def charge(
        self, event: Any, *, relation: Any, purpose: str, unit: str = "row", idempotency_key: str | None = None
    ) -> None:
        if self.left == 0:
            raise BudgetExceeded(asked=event, left=0)
        self.left -= 1
        self.seen.append((event, relation, purpose))


def test_one_fresh_answer_is_one_charge_and_repeating_is_free() -> None:
    purse = Purse(3)
    mechanism = RandomizedResponse.for_epsilon("0.1")
    person = Respondent(mechanism, session=purse)
    answers = [person.answer("smokes", 1) for _ in range(200)]
    assert len(set(answers)) == 1
    assert len(purse.seen) == 1
    assert purse.seen[0][:2] == (mechanism.event, REPLACE_ONE)
    person.answer("drinks", 1)
    person.answer("smokes", 0)  # The truth changed: a new answer is drawn and charged.
    assert len(purse.seen) == 3
    with pytest.raises(BudgetExceeded):
        person.answer("smokes", 1)
    assert person.answer("smokes", 0) in (0, 1)


def test_nothing_is_answered_without_budget() -> None:
    with pytest.raises(BudgetExceeded):
        Respondent(RandomizedResponse.warner(), session=Purse(0)).answer("smokes", 1)


def test_a_single_answer_has_no_interval() -> None:
    with pytest.raises(Refused, match="estimate"):
        RandomizedResponse.warner().release([1, 0]).interval()
