"""Membership: what was learnt by heart is found, what was trained privately stays below its ceiling."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from small_models import NoisySteps, network, people

from discreet.errors import InvalidParameter
from discreet.lab.attacks import membership, membership_by_scores, membership_of_table
from discreet.lab.attacks.attribute_inference import membership_of_scores
from discreet.lab.attacks.membership import (
    Membership,
    lira_scores,
    logit_scores,
    loss_scores,
    rmia_scores,
    softmax_regressions,
)
from discreet.lab.attacks.success_rates import Success, judge
from discreet.privacy import Gaussian, NotPrivate, PureDP

RATES = (0.001, 0.01, 0.1)
PRIVATE = NoisySteps(steps=20, multiplier=20, pace=4)


@pytest.fixture(scope="module")
def overfitted() -> Membership:
    return membership(softmax_regressions, *people(600, 400), shadows=16, many=True, rates=RATES).value


@pytest.mark.statistical
def test_whoever_was_learnt_by_heart_is_found(overfitted: Membership) -> None:
    for attacker in overfitted.attackers:
        assert attacker.auc_limits[0] > 0.6
    for name in ("LiRA", "RMIA"):
        assert overfitted.attacker(name).at(0.1).members.interval(1e-9)[0] > 0.15


@pytest.mark.statistical
def test_a_network_of_anybody_falls_too() -> None:
    found = membership(network, *people(300, 100), shadows=4, rates=(0.1,)).value
    assert found.best.auc_limits[0] > 0.55


@pytest.mark.statistical
def test_private_training_stays_below_its_ceiling() -> None:
    found = membership(PRIVATE, *people(600, 400), shadows=16, many=True, event=PRIVATE.event, rates=RATES).value
    assert not found.refutes(error=1e-9)
    assert all(one.auc < 0.62 for one in found.attackers)  # The event allows 0.56, and sixteen deviations are 0.06.


@pytest.mark.statistical
def test_training_with_noise_divided_by_the_batch_exceeds_it() -> None:
    broken = NoisySteps(steps=20, multiplier=20, pace=40, wrong="divide")
    found = membership(broken, *people(600, 400), shadows=16, many=True, event=broken.event, rates=RATES).value
    assert found.refutes(error=1e-9)


def test_results_are_marked_drawn_and_written(overfitted: Membership) -> None:
    document = json.loads(overfitted.to_json())
    assert [one["name"] for one in document["attackers"]] == ["loss", "LiRA", "RMIA"]
    assert (document["people"], document["shadows"]) == (480, 16)
    assert "people found" in str(overfitted)
    chart = overfitted.plot().to_dict()
    assert chart["layer"][0]["encoding"]["x"]["scale"]["type"] == "log"
    assert isinstance(membership_by_scores([1.0, 0.0], [True, False]), NotPrivate)


def test_a_perfect_score_finds_everybody_and_refutes_a_claim() -> None:
    inside = np.arange(4000) < 2000
    attacker = judge(inside.astype(float), inside, event=PureDP(1))
    assert attacker.auc == 1.0
    assert attacker.at(0.001).members == Success(2000, 2000)
    assert attacker.at(0.001).alarms == Success(0, 2000)
    assert attacker.at(0.001).refutes(PureDP(1), error=1e-9)
    assert not attacker.at(0.001).refutes(PureDP(20), error=1e-9)


def test_equal_scores_find_nobody() -> None:
    attacker = judge(np.zeros(2000), np.arange(2000) < 1000)
    assert attacker.auc == 0.5
    assert attacker.at(0.01).members.hits == 0


def test_the_threshold_leaves_as_many_alarms_as_allowed() -> None:
    scores = np.concatenate([np.arange(1000) + 0.5, np.arange(1000)])
    attacker = judge(scores, np.arange(2000) < 1000, rates=(0.01,))
    assert attacker.at(0.01).alarms == Success(10, 1000)
    assert attacker.at(0.01).members == Success(11, 1000)
    assert math.isclose(attacker.auc, np.mean([k + 1 for k in range(1000)]) / 1000)


def test_gaussian_scores_meet_the_curve_of_their_law() -> None:
    """The best attacker of Gaussian noise reaches its ceiling, within limits, and exceeds a smaller one."""
    from discreet import noise

    drawn = noise.rounded_gaussian(1000, 40_000) / 1000
    inside = np.arange(40_000) % 2 == 0
    attacker = judge(drawn + inside, inside, rates=(0.1,))
    assert not attacker.at(0.1).refutes(Gaussian(variance=1, squared_sensitivity=1), error=1e-9)
    assert attacker.at(0.1).refutes(Gaussian(variance=2, squared_sensitivity=1), error=1e-9)


def test_logits_keep_their_digits_where_confidences_have_none() -> None:
    sure = np.array([[1.0, 1e-30], [1.0, 1e-20], [0.25, 0.75]])
    logits = logit_scores(sure, np.array([0, 0, 0]))
    assert np.allclose(logits, [30 * math.log(10), 20 * math.log(10), math.log(1 / 3)])
    losses = loss_scores(sure, np.array([0, 0, 0]))
    assert losses[0] > losses[1] > losses[2]
    assert math.isclose(losses[2], math.log(0.25))


def test_lira_is_the_tail_above_models_that_did_not_see_the_example() -> None:
    shadows = np.array([[1.0, 9.0], [3.0, 2.0], [99.0, 4.0]])
    inside = np.array([[False, True], [False, False], [True, False]])
    scores = lira_scores([4.0, 3.0], shadows, inside)
    # Both have deviation 1 around their means, 2 and 3: tails P(Z > 2) and P(Z > 0).
    assert np.allclose(scores, [-math.log(0.02275013194817921), math.log(2)])


def test_lira_has_a_variance_for_each_example_with_many_shadows() -> None:
    signs = np.where(np.arange(64) % 2, 1.0, -1.0)
    shadows = np.stack([signs, 3 * signs], axis=1)
    scores = lira_scores([3.0, 3.0], shadows, np.zeros((64, 2), bool))
    assert np.allclose(scores, [-math.log(0.0013498980316301), -math.log(0.15865525393145707)])


def test_rmia_counts_whom_an_example_beats_after_the_correction() -> None:
    # With a = 0.5 the expected confidence of p = 0.2 is (1.5 * 0.2 + 0.5) / 2 = 0.4; ratios are 2 and 0.5.
    scores = rmia_scores([0.8, 0.2], [0.2, 0.2], [0.4, 0.4, 0.9, 0.1], [0.2, 0.2, 0.2, 0.2], offline=0.5)
    assert np.array_equal(np.floor(scores * 4), [3, 1])


@pytest.mark.parametrize(
    "wrong",
    [
        {"shadows": 3},
        {"targets": 0},
        {"references": 9},
        {"population": 1.0},
        {"rates": (0.0,)},
    ],
)
def test_nonsense_is_refused(wrong: dict[str, object]) -> None:
    rows, labels = people(40, 2)
    with pytest.raises(InvalidParameter):
        membership(softmax_regressions, rows, labels, **({"shadows": 4, "targets": 1, "many": True} | wrong))


def test_scores_without_a_number_or_a_truth_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="NaN"):
        judge([math.nan, 1.0], [True, False])
    with pytest.raises(InvalidParameter, match="people who were not"):
        judge([0.5, 1.0], [True, True])
    with pytest.raises(InvalidParameter, match="left out"):
        lira_scores([1.0], [[1.0]], [[True]])
    with pytest.raises(InvalidParameter, match="numbers of classes"):
        logit_scores([[0.5, 0.5]], np.array([2]))


def test_scores_of_a_table_are_judged_and_odd_marks_refused() -> None:
    import pyarrow as pa

    table = pa.table({"score": [0.1, 0.2, 0.9, 0.8], "member": [False, False, True, True], "name": list("abcd")})
    assert membership_of_scores(table, score="score", member="member").value.attackers[0].auc == 1.0
    for score, member in (("name", "member"), ("score", "name")):
        with pytest.raises(InvalidParameter, match="true and false"):
            membership_of_scores(table, score=score, member=member)


@pytest.mark.statistical
def test_a_table_is_attacked_by_the_model_of_the_lab_or_by_anybodys() -> None:
    import pyarrow as pa

    rows, labels = people(300, 100)
    table = pa.table({**{f"c{i}": column for i, column in enumerate(rows.T)}, "label": labels})
    columns = [f"c{i}" for i in range(100)]
    for train in (None, network):
        found = membership_of_table(table, label="label", columns=columns, people=280, shadows=4, train=train).value
        assert found.people == 224
        assert found.attacker("RMIA").auc_limits[0] > 0.55
    with pytest.raises(InvalidParameter, match="without the label"):
        membership_of_table(table, label="label", columns=["label"])
