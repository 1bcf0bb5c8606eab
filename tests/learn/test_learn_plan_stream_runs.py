"""Streams in the real trainer: rows take turns, the noise is as planned, and a small model learns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from audited_runs import first_column, noisy_sums
from torch import nn

from discreet import noise
from discreet.errors import BudgetExceeded, Refused
from discreet.learn.torch import make_private_stream
from discreet.learn.training.stream_plan import whole_weights
from discreet.ledger import Account, Budget, Ledger
from discreet.privacy import Relation


def stream_on(rows: Any, **changes: Any) -> Any:
    model = nn.Linear(rows.shape[1], 1, bias=False)
    nn.init.zeros_(model.weight)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    chosen: dict[str, Any] = {"noise_multiplier": 1, "delta": "1e-6", "public_rows": 64, "batch_size": 16, "epochs": 2}
    return make_private_stream(
        model, optimizer, (rows, torch.zeros(len(rows))), loss=first_column, **(chosen | changes)
    )


def test_every_row_has_its_turn_once_an_epoch() -> None:
    private, seen = stream_on(torch.eye(24)), np.zeros((8, 24), np.int64)
    for batch in private.batches():
        seen[private._standing.begun - 1] += batch[0].sum(0).long().numpy()
        private.step(private.losses(batch))
    assert (seen[:4].sum(axis=0) == 1).all()
    assert np.array_equal(seen[:4], seen[4:])
    assert private.finished
    assert private.epsilon == private.plan.epsilon("1e-6")


@pytest.mark.statistical
def test_the_noise_of_a_run_solves_the_band_and_has_the_planned_deviation() -> None:
    private = stream_on(torch.zeros(0, 20_000), batch_size=8, epochs=1, clip="0.5", physical_batch=32)
    plan = private.plan
    sums = noisy_sums(private)
    weights = np.array(whole_weights(plan.band)) / 1024
    fresh = np.array([sum(weights[j] * sums[t - j] for j in range(min(t + 1, plan.band))) for t in range(len(sums))])
    claimed = float(plan.noise_multiplier * plan.sensitivity) * np.linalg.norm(weights)
    assert abs(fresh.std() / claimed - 1) < 0.011  # 160,000 numbers: six deviations are 1.06 %.
    assert (abs(np.corrcoef(fresh)[np.triu_indices(8, 1)]) < 0.05).all()
    assert np.corrcoef(sums)[0, 1] < -0.2  # What is released takes itself back.


def test_a_step_that_is_left_ends_the_run() -> None:
    private = stream_on(torch.eye(24) / 2)
    next(iter(private.batches()))
    with pytest.raises(Refused, match="left"):
        next(iter(private.batches()))


def test_the_whole_run_is_charged_before_a_row_is_read() -> None:
    account = Account(dataset="rows", unit="row", relation=Relation.ADD_REMOVE, budget=Budget(1, "1e-6"))
    with Ledger.open("memory", account) as ledger:
        with pytest.raises(BudgetExceeded):
            stream_on(torch.eye(24), noise_multiplier="0.1", session=ledger)
        stream_on(torch.eye(24), epsilon="0.5", noise_multiplier=None, session=ledger)
        with pytest.raises(BudgetExceeded):
            stream_on(torch.eye(24), epsilon="0.9", noise_multiplier=None, session=ledger)


def test_a_small_model_learns_from_a_stream() -> None:
    rows = torch.from_numpy(noise.rounded_gaussian(1 << 16, (1024, 4)) / 2**16).float()
    labels = (rows @ torch.tensor([2.0, -1.0, 0.5, 0.0]) > 0).long()
    model = nn.Linear(4, 2)
    private = make_private_stream(
        model,
        torch.optim.SGD(model.parameters(), lr=2.0),
        (rows, labels),
        loss=nn.CrossEntropyLoss(reduction="none"),
        epsilon=4,
        delta="1e-5",
        public_rows=1024,
        batch_size=128,
        epochs=3,
    )
    private.fit(progress=False)
    assert float((model(rows).argmax(1) == labels).float().mean()) > 0.8
    assert 3.99 < private.epsilon <= 4
