"""Canaries in real runs: they show nearly all of what is claimed, never more, and every planted mistake.

White box: the auditor sees the noisy sum of every step. One run: each of a thousand canaries is in the data by a fair
coin, and the auditor guesses which from the final weights. [NHSB23, SNJ23]
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from audited_runs import AlwaysIn, canaries, noisy_sums, run_on, without_clip
from scipy import stats

from discreet import noise
from discreet.lab.audit import audit_one_run, audit_steps
from discreet.lab.audit.training_audit import TrainingAudit, errors_of, mu_from_errors
from discreet.privacy import gdp_mu

# The plan whose claim is audited: a rate of 1/20 and 200 steps at noise 1.181, which is epsilon 4 at delta 1e-6.
PLAN: dict[str, Any] = {"noise_multiplier": "1.181", "physical_batch": 256}
RATE, STEPS = "1/20", 200


def steps_with_canaries(count: int, steps: int, wrong: str = "") -> tuple[Any, Any]:
    """Return the noisy sums of steps in which `count` canaries always are, with as many coordinates that have none."""
    private = run_on(
        canaries(count, 2 * count), wrong=wrong, public_rows=20 * count, batch_size=count, steps=steps, **PLAN
    )
    private._sampler = AlwaysIn(private._sampler, count)
    return noisy_sums(private), private.plan


def white_box(count: int, steps: int, wrong: str = "", *, error: float = 1e-3) -> TrainingAudit:
    sums, plan = steps_with_canaries(count, steps, wrong)
    return audit_steps(
        sums[:, count:].ravel(),
        sums[:, :count].ravel(),
        step=plan.step_event,
        steps=STEPS,
        sampling_rate=RATE,
        delta="1e-6",
        error=error,
    )


@pytest.mark.long
@pytest.mark.statistical
def test_ten_steps_show_part_of_what_is_claimed_and_not_more_than_all() -> None:
    found = white_box(400, 10, error=1e-9)
    assert not found.refuted
    assert 3.99 < found.epsilon_claimed < 4
    assert 0.15 * found.epsilon_claimed < found.epsilon <= found.epsilon_claimed, str(found)


@pytest.mark.soak
@pytest.mark.statistical
def test_a_hundred_steps_show_four_fifths_of_what_is_claimed_at_99_9_per_cent() -> None:
    found = white_box(2000, 100)
    assert 0.8 * found.epsilon_claimed < found.epsilon <= found.epsilon_claimed, str(found)


@pytest.mark.statistical
@pytest.mark.parametrize("wrong", ["half noise", "noise / B", "no clip"])
def test_steps_with_a_planted_mistake_are_refuted(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if wrong == "no clip":
        without_clip(monkeypatch)
    assert white_box(400, 6, wrong).refuted


def refuted_steps(sums: Any, plan: Any) -> int:
    """Audit every step by itself, and count in how many more is shown than is claimed: epsilon grows with µ."""
    half, claimed = sums.shape[1] // 2, gdp_mu(plan.step_event)
    shown = [mu_from_errors(errors_of(row[half:], row[:half]), error=1e-3) for row in sums]
    return int(np.count_nonzero(np.array(shown) > claimed))


def may_be_one_in_a_thousand(refuted: int, audits: int) -> bool:
    return bool(stats.binom.sf(refuted - 1, audits, 1e-3) > 1e-9)


@pytest.mark.statistical
@pytest.mark.parametrize("audits", [40, pytest.param(5000, marks=pytest.mark.slow)])
def test_audits_exceed_the_claim_less_than_once_in_a_thousand_runs(audits: int) -> None:
    refuted = refuted_steps(*steps_with_canaries(100, audits))
    assert may_be_one_in_a_thousand(refuted, audits)
    assert not may_be_one_in_a_thousand(refuted_steps(*steps_with_canaries(100, 40, "noise / B")), 40)


def one_run(target: int, wrong: str = "", *, sampled: bool = False, error: float = 1e-9) -> TrainingAudit:
    """Train once on a thousand canaries, each in or out by a fair coin, and guess from the weights."""
    included = noise.uniform(2, 1000) == 1
    size, steps = (5000, 100) if sampled else (500, 4)
    private = run_on(
        canaries(1000, 1000)[included],
        wrong=wrong,
        epsilon=target,
        public_rows=size,
        batch_size=500,
        steps=steps,
        physical_batch=256,
    )
    sums = noisy_sums(private)
    return audit_one_run(
        sums.sum(axis=0), included, claim=private.plan.event, high=400, low=400, delta="1e-6", error=error
    )


@pytest.mark.statistical
@pytest.mark.parametrize("target", [1, 4])
@pytest.mark.parametrize("sampled", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_one_run_with_a_thousand_canaries_stays_below_the_claim(target: int, sampled: bool) -> None:
    found = one_run(target, sampled=sampled)
    assert not found.refuted, str(found)
    assert found.epsilon <= found.epsilon_claimed <= target


@pytest.mark.statistical
@pytest.mark.parametrize("target", [1, 4])
@pytest.mark.parametrize("wrong", ["noise / B", "no clip"])
@pytest.mark.parametrize("sampled", [False, pytest.param(True, marks=pytest.mark.soak)])
def test_one_run_with_a_planted_mistake_is_refuted(
    target: int, wrong: str, sampled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if wrong == "no clip":
        without_clip(monkeypatch)
    found = one_run(target, wrong, sampled=sampled, error=1e-3)
    assert found.refuted, str(found)
