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
