"""Private training by the book is not refuted; without clipping, or with too little noise, it is."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from small_models import NoisySteps, people, watched

from discreet import noise
from discreet.errors import InvalidParameter
from discreet.lab.audit import audit_one_run, audit_steps
from discreet.lab.audit.training_audit import TrainingAudit
from discreet.privacy import ZCDP, Gaussian, Relation, epsilon, gdp_mu

NOBODY = np.zeros((0, 1))
STEP = Gaussian(variance=1, squared_sensitivity=1)


def stepwise(wrong: str) -> TrainingAudit:
    """Two runs of 2,000 steps on a sample of people; the canary's raw gradient is five times what clipping leaves."""
    training = NoisySteps(steps=2000, multiplier=1.0, rate=0.25, pace=0.1, wrong=wrong)
    rows, labels = people(40, 4)
    without, with_it = (watched(training, rows, labels, canary)[:, -1] for canary in (NOBODY, np.array([[5.0]])))
    return audit_steps(without, with_it, step=STEP, steps=2000, sampling_rate=training.rate, delta="1e-5", error=1e-9)


def at_once(wrong: str) -> TrainingAudit:
    """One run with 2,000 canaries, each a coordinate of its own."""
    training = NoisySteps(steps=4, multiplier=20.0, pace=0.1, wrong=wrong)
    rows, labels = people(60, 4)
    included = noise.uniform(2, 2000) == 1
    sums = watched(training, rows, labels, 20 * np.eye(2000)[included])
    scores = sums[:, 4:].sum(axis=0)
    return audit_one_run(scores, included, claim=training.event, high=200, low=200, delta="1e-14", error=1e-9)


@pytest.mark.statistical
def test_the_steps_of_the_reference_are_not_refuted_and_show_something() -> None:
    found = stepwise("")
    assert not found.refuted
    assert 0.1 < found.mu <= 1 == found.mu_claimed
    assert 0 < found.epsilon <= found.epsilon_claimed


@pytest.mark.statistical
@pytest.mark.parametrize("wrong", ["clip", "divide", "half"])
def test_the_steps_of_broken_training_are_refuted(wrong: str) -> None:
    found = stepwise(wrong)
    assert found.refuted
    assert found.epsilon > found.epsilon_claimed


@pytest.mark.statistical
def test_one_run_of_the_reference_is_not_refuted() -> None:
    found = at_once("")
    assert not found.refuted
    assert found.mu_claimed == pytest.approx(0.1)


@pytest.mark.statistical
@pytest.mark.parametrize("wrong", ["clip", "divide"])
def test_one_run_of_broken_training_is_refuted(wrong: str) -> None:
    found = at_once(wrong)
    assert found.refuted
    assert found.epsilon > found.epsilon_claimed  # By (epsilon, delta) alone, without a word about Gaussian curves.
    assert found.mu > found.mu_claimed


def test_mu_goes_through_the_accountant_with_sampling_and_steps() -> None:
    perfect = audit_steps([0.0] * 400, [1.0] * 400, step=STEP, steps=50, sampling_rate="0.1", delta="1e-5", error=0.05)
    assert perfect.epsilon_claimed == epsilon(
        NoisySteps(steps=50, multiplier=1.0, rate=0.1).event, "1e-5", relation=Relation.ADD_REMOVE
    )
    whole = audit_steps([0.0] * 400, [1.0] * 400, step=STEP, steps=50, delta="1e-5", error=0.05)
    assert 0 < perfect.epsilon < whole.epsilon
    blind = audit_steps([0.0] * 400, [0.0] * 400, step=STEP, steps=50, delta="1e-5", error=0.05)
    assert (blind.mu, blind.epsilon, blind.refuted) == (0.0, 0.0, False)


def test_a_claim_without_a_gaussian_curve_is_tested_at_its_epsilon_only() -> None:
    claim = ZCDP("0.0025")
    assert gdp_mu(claim, relation=Relation.ADD_REMOVE) == math.inf
    included = np.arange(1000) % 2 == 0
    found = audit_one_run(included.astype(float), included, claim=claim, high=300, low=300, delta=1e-9, error=1e-3)
    assert found.refuted
    assert json.loads(found.to_json())["mu_claimed"] is None
    assert str(found).startswith("REFUTED: ε ≥ ")


def test_impossible_runs_are_refused() -> None:
    for wrong in ({"steps": 0}, {"sampling_rate": 0}, {"sampling_rate": 2}):
        with pytest.raises(InvalidParameter, match="sampling rate"):
            audit_steps([0.0] * 9, [1.0] * 9, **({"step": STEP, "steps": 1, "delta": "1e-5"} | wrong))
