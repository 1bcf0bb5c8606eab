"""Canaries that are people, with 1, 5 and 50 rows: real runs show no more than is claimed, and planted mistakes do.

A person's rows are all one coordinate that nobody else uses, far above the clip: so is the mean of any choice of them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from audited_runs import AlwaysIn, Scaled, canaries, first_column, noisy_sums
from torch import nn

from discreet import noise
from discreet.lab.audit import audit_one_run, audit_steps
from discreet.lab.audit.training_audit import TrainingAudit
from discreet.learn.torch import batches, make_private
from discreet.learn.torch.clipping.clipped_sums import ClippedSums

torch.set_num_threads(1)
ROWS = [1, 5, 50]
SEVERAL = ROWS[1:]  # of one row clipping, sampling and noise for rows are right
WRONG = ["clips rows", "samples rows", "noise for a row", "two groups"]
SLOW = (50, "samples rows")  # Each row is a record of fifty slots.
MISTAKES = [
    pytest.param(each, wrong, marks=pytest.mark.slow if (each, wrong) == SLOW else ())
    for each in SEVERAL
    for wrong in WRONG
]
UNIT_CODES = batches.unit_codes


def run_on_people(rows: torch.Tensor, each: int, wrong: str, patch: pytest.MonkeyPatch, **chosen: Any) -> Any:
    """A run on people who have `each` times the same row; `wrong` breaks it in one way."""
    model = nn.Linear(rows.shape[1], 1, bias=False)
    nn.init.zeros_(model.weight)
    data = (rows.repeat_interleave(each, 0), torch.zeros(each * len(rows)))
    private = make_private(
        model, torch.optim.SGD(model.parameters(), lr=1.0), data, loss=first_column, delta="1e-6", clip=1,
        unit=np.repeat(np.arange(len(rows)), each), max_rows=each, **chosen,
    )  # fmt: skip
    patch.setattr(batches, "unit_codes", _CODES.get(wrong, UNIT_CODES))
    parts = private._parts
    if wrong == "clips rows":
        private._parts = replace(parts, sums=_row_by_row(parts.sums, model))
    if wrong == "noise for a row":
        private._parts = replace(parts, noise=Scaled(parts.noise, 1 / each))
    return private


_CODES: dict[str, Any] = {
    "samples rows": lambda column: np.arange(len(column)),
    "two groups": lambda column: np.unique(
        2 * UNIT_CODES(column) + np.arange(len(column)) % 2, return_inverse=True
    )[1],
}  # fmt: skip


def _row_by_row(sums: ClippedSums, model: nn.Module) -> ClippedSums:
    """The sum of rows that are each clipped by themselves."""
    sums.close()
    return ClippedSums(model, clip=sums.clip, grid=sums.grid, physical_batch=sums.physical_batch * sums.each)


def white_box(each: int, wrong: str = "", *, count: int = 200, error: float = 1e-9) -> TrainingAudit:
    """The noisy sums of steps in which `count` canaries always are, beside as many coordinates that have none."""
    with pytest.MonkeyPatch.context() as patch:
        private = run_on_people(
            canaries(count, 2 * count), each, wrong, patch, noise_multiplier="1.181", public_units=20 * count,
            batch_size=count, steps=10,
        )  # fmt: skip
        private._sampler = AlwaysIn(private._sampler, private._rows.size)
        sums = noisy_sums(private)
    outs, ins = sums[:, count:].ravel(), sums[:, :count].ravel()
    step = private.plan.step_event
    return audit_steps(outs, ins, step=step, steps=200, sampling_rate="1/20", delta="1e-6", error=error)


@pytest.mark.long
@pytest.mark.statistical
@pytest.mark.parametrize("each", ROWS)
def test_steps_show_part_of_what_is_claimed_and_not_more_however_many_rows_a_person_has(each: int) -> None:
    found = white_box(each)
    assert not found.refuted, str(found)
    assert 0.1 * found.epsilon_claimed < found.epsilon <= found.epsilon_claimed, str(found)


@pytest.mark.long
@pytest.mark.statistical
@pytest.mark.parametrize(("each", "wrong"), MISTAKES)
def test_steps_with_a_mistake_about_people_are_refuted(each: int, wrong: str) -> None:
    found = white_box(each, wrong, count=100, error=1e-3)
    assert found.refuted, str(found)


def one_run(each: int, wrong: str = "", *, rate: int = 1, error: float = 1e-9) -> TrainingAudit:
    """Train once on 300 people, each in or out by a fair coin, and guess from the weights who was in."""
    included = noise.uniform(2, 300) == 1
    with pytest.MonkeyPatch.context() as patch:
        private = run_on_people(
            canaries(300, 300)[included], each, wrong, patch, epsilon=2, public_units=150 * rate, batch_size=150,
            steps=4 * rate,
        )  # fmt: skip
        sums = noisy_sums(private)
    claim = private.plan.event
    return audit_one_run(sums.sum(axis=0), included, claim=claim, high=120, low=120, delta="1e-6", error=error)


@pytest.mark.long
@pytest.mark.statistical
@pytest.mark.parametrize("rate", [1, pytest.param(10, marks=pytest.mark.slow)])
@pytest.mark.parametrize("each", ROWS)
def test_one_run_with_people_as_canaries_stays_below_the_claim(each: int, rate: int) -> None:
    found = one_run(each, rate=rate)
    assert not found.refuted, str(found)
    assert found.epsilon <= found.epsilon_claimed <= 2


@pytest.mark.long
@pytest.mark.statistical
@pytest.mark.parametrize("wrong", WRONG[:3])  # Twice the shift is too little for so few canaries; steps show it.
@pytest.mark.parametrize("each", SEVERAL[:1])
def test_one_run_with_a_mistake_about_people_is_refuted(each: int, wrong: str) -> None:
    found = one_run(each, wrong, error=1e-3)
    assert found.refuted, str(found)
