"""What an epsilon means is exact where it can be, never too kind, and told without rounding down."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import pytest

from discreet import plots
from discreet.errors import InvalidParameter
from discreet.formatting import chance_up
from discreet.privacy import (
    GDP,
    ApproxDP,
    Laplace,
    PureDP,
    RandomizedResponse,
    best_guess,
    deployments,
    explain,
    explain_epsilon,
)
from discreet.privacy.meaning import chance, compared_rows


@pytest.mark.parametrize("epsilon", ["0.01", "0.15", "1", "3", "14"])
@pytest.mark.parametrize("delta", ["0", "1e-6", "0.05"])
def test_success_is_that_of_the_worst_mechanism(epsilon, delta):
    """Reveal everything with chance delta; otherwise tell the truth with odds e^epsilon. Guess what is told. [KOV15]"""
    e, d = math.exp(float(Fraction(epsilon))), float(Fraction(delta))
    reached = d + (1 - d) * e / (1 + e)
    found = explain_epsilon(epsilon, delta=delta)
    assert reached <= found.success * (1 + 1e-12)
    assert found.success == pytest.approx(reached, rel=1e-9)


@pytest.mark.parametrize("rate", [Fraction(1, 1000), Fraction(1, 100), Fraction(1, 20)])
def test_people_found_are_those_of_the_worst_mechanism(rate):
    (found,) = [one for one in explain_epsilon(1, delta="1e-3").found if one.false_alarms == rate]
    assert found.found == pytest.approx(1e-3 + math.e * float(rate), rel=1e-9)


def test_a_belief_is_the_posterior_after_the_most_telling_answer_of_randomized_response():
    truth = math.exp(2) / (1 + math.exp(2))
    for belief in explain(RandomizedResponse(2, 2)).beliefs:
        p = float(belief.before)
        assert belief.after == pytest.approx(p * truth / (p * truth + (1 - p) * (1 - truth)), rel=1e-9)


def test_gaussian_success_is_the_normal_distribution_at_half_mu():
    found = explain_epsilon(mu=1, delta="1e-6")
    assert found.success == pytest.approx(0.5 * (1 + math.erf(0.5 / math.sqrt(2))), rel=1e-9)
    assert found.epsilon == pytest.approx(4.8865, abs=1e-3)
    assert found.success < explain_epsilon(found.epsilon, delta="1e-6").success  # Its own curve is better.


def test_laplace_noise_promises_more_than_its_epsilon():
    assert best_guess(Laplace(1)) == pytest.approx(1 - math.exp(-0.5) / 2, rel=1e-9)
    assert best_guess(Laplace(1)) < best_guess(PureDP(1))


def test_rho_without_delta_has_no_epsilon_and_says_so():
    found = explain_epsilon(rho="0.5")
    assert found.epsilon is None
    assert found.odds is None
    assert found.beliefs == ()
    assert "say a δ above 0" in str(found)
    assert explain_epsilon(rho="0.5", delta="1e-6").epsilon is not None


@pytest.mark.parametrize(
    "wrong",
    [{}, {"epsilon": 1, "rho": 1}, {"epsilon": 0}, {"epsilon": -1}, {"epsilon": math.nan}, {"epsilon": 1, "delta": 2}],
)
def test_nonsense_is_refused(wrong):
    with pytest.raises(InvalidParameter):
        explain_epsilon(**wrong)


def test_every_meaning_is_told_drawn_and_written(tmp_path):
    found = explain_epsilon(1, delta="1e-6")
    text = str(found)
    assert "at most 73.2 %" in text
    assert "1 in 368" in text
    assert json.loads(json.dumps(found.to_json()))["success"] == found.success
    plots.save(found.plot(), tmp_path / "meaning.json")
    assert "US Census Bureau" in (tmp_path / "meaning.json").read_text()


def test_the_list_of_deployments_has_sources_and_is_in_order():
    listed = deployments()
    assert [line.epsilon for line in listed] == sorted(line.epsilon for line in listed)
    assert all(line.source.startswith("https://") for line in listed)
    assert {line.who for line in listed} == {
        "Apple", "Facebook", "Google", "LinkedIn", "Microsoft", "US Census Bureau"
    }  # fmt: skip
    assert isinstance(listed[0].event, ApproxDP)


def test_this_one_stands_among_others_by_how_far_an_attacker_gets():
    names = [row[0] for row in compared_rows(explain_epsilon(1, delta="1e-6"))]
    assert names[:3] == ["LinkedIn", "this one", "Facebook"]
    assert [row[0] for row in compared_rows(explain(GDP(20)))][-1] == "this one"


def test_public_deployments_are_compared_by_epsilon_and_delta_alone():
    """The own noise of one line would rank it before smaller ε of which only ε is known."""
    meaning = explain(GDP(Fraction(1, 2)), delta=Fraction(1, 10**6))
    rows = {row[0]: row for row in compared_rows(meaning)}
    pair = explain_epsilon(meaning.epsilon, delta=Fraction(1, 10**6)).success
    assert meaning.success < 0.7 < pair
    assert rows["this one"][-1] == chance_up(pair)
    assert float(rows["Facebook"][2]) < meaning.epsilon
    assert [*rows].index("Facebook") < [*rows].index("this one")


@pytest.mark.parametrize(
    ("share", "told"),
    [(0.0, "0 %"), (1.0, "100 %"), (0.5, "50 %"), (0.73101, "73.2 %"), (0.9999881, "99.9989 %"), (0.0027182, "0.28 %")],
)
def test_shares_are_told_rounded_up(share, told):
    assert chance_up(share) == told
    assert float(told.split()[0]) >= 100 * share * (1 - 1e-12)


def test_small_chances_are_told_as_one_in_so_many():
    assert chance(0.001) == "1 in 1,000"
    assert chance(0.0027) == "1 in 370"
    assert chance(0.25) == "25 %"


def test_the_chance_that_odds_rise_further_covers_the_loss_of_gaussian_noise():
    """Its loss is normal with mean mu^2/2 and deviation mu: it exceeds 1 twenty times as often as the delta there."""
    found = explain_epsilon(mu="0.2367", delta="1e-6")
    factor, rest = found.beyond
    exceeds = math.erfc((found.epsilon / 0.2367 - 0.2367 / 2) / math.sqrt(2)) / 2
    assert factor == found.odds
    assert 20 * found.delta < exceeds * 1.02
    assert exceeds < rest < 3 * exceeds
    text = str(found)
    assert "apart from a chance" not in text
    assert "Odds rise more than 2.72-fold, and beliefs above these bounds, with a chance of at most 5.3e-05." in text


def test_epsilon_and_delta_alone_bound_twice_the_factor():
    """Merge what reveals all with as much of the rest: odds are 2 e^epsilon then, with a chance of nearly 2 delta."""
    found = explain_epsilon(1, delta="1e-6")
    factor, rest = found.beyond
    assert factor == 2 * found.odds
    assert rest == pytest.approx(2e-6, rel=1e-12)
    truth = math.e / (1 + math.e) * (1 - 1e-6)  # Of a coin that is not revealing; the lie is 1 in e of it.
    merged = 1e-6 / (math.e * truth / math.e)  # So much of what tells the truth has odds e, and as much again reveals.
    in_data, outside = 1e-6 + merged * truth, merged * truth / math.e
    assert in_data / outside >= factor * (1 - 1e-9)
    assert 1.99e-6 <= in_data <= rest
    assert "odds rise more than 5.44-fold with a chance of at most 2e-06" in str(found)
    assert "plus 1e-06." in str(found)


def test_without_a_delta_nothing_exceeds():
    assert explain_epsilon(1).beyond == (explain_epsilon(1).odds, 0.0)
    assert "Odds change at most 2.72-fold." in str(explain_epsilon(1))
    assert explain_epsilon(rho="0.5").beyond is None


def test_this_one_is_compared_by_the_same_kind_of_number_as_others():
    found = explain_epsilon(mu="0.2367", delta="1e-6")
    (own,) = [row for row in compared_rows(found) if row[0] == "this one"]
    assert own[-1] == "73.2 %"
    assert "at most 54.8 %" in str(found)
