"""Averaging: fresh noise is averaged away, as fast as the law says; an answer that is remembered is not."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from itertools import product

import numpy as np
import pyarrow as pa
import pytest

import discreet as dp
from discreet.errors import InvalidParameter
from discreet.lab.attacks import averaging, averaging_curve
from discreet.mechanisms import Gaussian, Laplace, RandomizedResponse, Respondent
from discreet.noise import DiscreteLaplaceLaw, RoundedGaussianLaw
from discreet.privacy import Relation

FALSE_ALARM = 1e-9
ADD = Relation.ADD_REMOVE
COIN = RandomizedResponse.for_epsilon(1)
LAPLACE = Laplace(sensitivity=1, scale=Fraction(3, 2), relation=ADD)
GAUSSIAN = Gaussian(squared_sensitivity=Fraction(1), variance=Fraction(4), relation=ADD)


def fresh(mechanism):
    """An interface that draws anew for every answer."""
    return lambda secret: lambda: mechanism.respond(secret)


def remembering(secret: int):
    respondent = Respondent(COIN)
    return lambda: respondent.answer("a question", secret)


class TestCurve:
    @pytest.mark.parametrize("times", [1, 2, 3, 4, 7])
    def test_votes_agree_with_brute_force(self, times):
        keep = float(COIN.keep)
        exact = 0.0
        for world in product((0, 1), repeat=times):
            chance = math.prod(keep if true else 1 - keep for true in world)
            exact += chance * (1.0 if 2 * sum(world) > times else 0.5 if 2 * sum(world) == times else 0.0)
        assert averaging_curve(COIN, [times]).chances[0] == pytest.approx(exact, rel=1e-12)

    @pytest.mark.parametrize("times", [1, 2, 3])
    @pytest.mark.parametrize(
        ("mechanism", "law"), [(LAPLACE, DiscreteLaplaceLaw(Fraction(3, 2))), (GAUSSIAN, RoundedGaussianLaw(4))]
    )
    def test_sums_agree_with_the_laws_of_the_samplers(self, mechanism, law, times):
        """By the rigorous pmf of one answer, convolved without any transform."""
        reach = 60
        one = np.array([float(law.pmf(k).mid()) for k in range(-reach, reach + 1)])
        total = one
        for _ in range(times - 1):
            total = np.convolve(total, one)
        twice = 2 * np.arange(-reach * times, reach * times + 1) - times
        exact = total[twice < 0].sum() + total[twice == 0].sum() / 2
        assert averaging_curve(mechanism, [times]).chances[0] == pytest.approx(exact, rel=1e-9)

    @pytest.mark.parametrize("level", ["0.1", "1", "3"])
    def test_a_vote_of_randomized_answers_meets_the_ceiling(self, level):
        curve = averaging_curve(RandomizedResponse.for_epsilon(level), [1, 3, 10, 50])
        for chance, ceiling in zip(curve.chances, curve.ceilings, strict=True):
            assert chance - 1e-12 <= ceiling <= chance + 1e-4

    @pytest.mark.parametrize("mechanism", [LAPLACE, GAUSSIAN])
    def test_averages_of_counts_stay_below_the_ceiling(self, mechanism):
        curve = averaging_curve(mechanism, [1, 2, 5, 20, 100])
        assert all(chance <= ceiling + 1e-12 for chance, ceiling in zip(curve.chances, curve.ceilings, strict=True))
        assert curve.chances[-1] > 0.99 > curve.remembered

    def test_the_ceiling_of_one_answer_is_beaten_by_many(self):
        """Whoever charges one answer and gives fifty lies: the average shows it."""
        curve = averaging_curve(COIN, [1, 50])
        assert curve.chances[1] > curve.ceilings[0] + 0.2

    def test_the_truth_is_known_sooner_with_less_noise(self):
        times = range(1, 400)
        known = [averaging_curve(RandomizedResponse.for_epsilon(e), times).known_after(0.95) for e in (3, 1, "0.3")]
        assert known == sorted(known)
        assert known[0] == 1
        assert averaging_curve(COIN, [1]).known_after(0.99) is None

    def test_the_curve_prints_draws_and_writes(self):
        curve = averaging_curve(COIN, [1, 10, 100])
        assert "remembered" in str(curve)
        assert json.loads(curve.to_json())["times"] == [1, 10, 100]
        assert curve.plot().to_dict()["layer"]

    @pytest.mark.parametrize(
        ("mechanism", "times"),
        [
            (COIN, []),
            (COIN, [0]),
            (RandomizedResponse.for_epsilon(1, categories=3), [1]),
            (Laplace(sensitivity=2, scale=Fraction(1), relation=ADD), [1]),
            (Laplace(sensitivity=1, scale=Fraction(10**6), relation=ADD), [10]),
        ],
    )
    def test_nonsense_is_refused(self, mechanism, times):
        with pytest.raises(InvalidParameter):
            averaging_curve(mechanism, times)


@pytest.mark.statistical
def test_fresh_answers_give_the_secret_away_and_remembered_ones_do_not():
    told = averaging(fresh(COIN), times=25, trials=400, mechanism=COIN)
    kept = averaging(remembering, times=25, trials=400, mechanism=COIN)
    assert told.curve is not None
    low, high = told.right.interval(FALSE_ALARM)
    assert low <= told.curve.chances[-1] <= high
    assert low > told.curve.remembered
    low, high = kept.right.interval(FALSE_ALARM)
    assert low <= told.curve.remembered <= high < told.curve.chances[-1]
    assert kept.ceiling is not None
    assert low <= kept.ceiling
    assert kept.repeated.hits == 400
    assert told.repeated.hits < 10


@pytest.mark.statistical
def test_counts_noised_again_and_again_give_one_person_away():
    """A count of 1,000 or 1,001: is the last person in it?"""

    def interface(secret):
        return lambda: LAPLACE.release(1000 + secret).value

    found = averaging(interface, times=60, trials=200, middle=1000.5, mechanism=LAPLACE)
    assert found.ceiling is not None
    assert found.right.interval(FALSE_ALARM)[0] > found.ceiling


def test_a_session_gives_its_stored_answer_again_and_charges_once():
    """Two tables that differ by one person, asked through sessions: the second answer is the first."""

    def interface(secret):
        rows = pa.table({"id": [str(i) for i in range(100 + secret)]})
        session = dp.Session(
            rows, unit="row", budget=dp.Budget(epsilon=1), columns={}, ledger="memory", dataset="lab",
            principal="ana", version="1",
        )  # fmt: skip
        question = "SELECT COUNT(*) AS n FROM lab"
        return lambda: session.sql(question, epsilon="0.5").release().to_arrow().column("n")[0].as_py()

    found = averaging(interface, times=5, trials=3, middle=100.5)
    assert found.repeated.hits == 3
    assert found.ceiling is None


def test_an_answer_on_the_middle_is_decided_by_a_coin():
    guesses = averaging(lambda secret: lambda: 0.5, times=1, trials=400).right
    assert 0 < guesses.hits < 400


def test_the_result_says_what_was_guessed_and_writes_it():
    found = averaging(fresh(COIN), times=3, trials=10, mechanism=COIN)
    assert "if it is remembered" in str(found)
    assert json.loads(found.to_json())["times"] == 3
    assert found.plot().to_dict()["layer"]
    assert averaging(fresh(COIN), times=3, trials=10).plot().to_dict()["layer"]
    with pytest.raises(InvalidParameter):
        averaging(fresh(COIN), times=0)
