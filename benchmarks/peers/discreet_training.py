"""Training steps of Discreet: the clipped sum alone, and with exact noise that a thread draws ahead."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch.nn import functional

from benchmarks.peers.training_models import CLIP, NOISE, POOL, RATE, Job, asked, pool, report
from discreet.learn.torch import make_private
from discreet.learn.torch.clipping.clipped_sums import ClippedSums
from discreet.learn.torch.clipping.float_error import slack_of
from discreet.learn.torch.noisy_step import NoisyStep
from discreet.learn.training import TrainingPlan, plan_training
from discreet.learn.training.prefetched_noise import NoiseAhead


def plan_of(job: Job, slots: int) -> TrainingPlan:
    """Return a plan with the given noise for batches of this length."""
    size = sum(value.numel() for value in job.network.parameters())
    return plan_training(
        noise_multiplier=NOISE,
        delta="1e-5",
        public_rows=60_000,
        batch_size=len(job.rows),
        steps=1000,
        clip=CLIP,
        parameters=size,
        physical_batch=slots,
        slack=slack_of(slots),
    )


def steps(job: Job, slots: int) -> dict[str, Callable[[], object]]:
    """Return steps with and without noise; both end with the optimiser's."""
    plan = plan_of(job, slots)
    sums = ClippedSums(job.network, clip=plan.clip, grid=plan.grid, physical_batch=slots)
    optimizer = torch.optim.SGD(job.network.parameters(), RATE)
    noisy = NoisyStep(plan, sums, NoiseAhead(plan), optimizer, None, None, None, None)
    unit, inside = float(plan.grid / plan.divisor), torch.ones(slots, dtype=torch.bool)
    nothing = np.zeros(plan.parameters, np.int32)  # as short as noise is

    def add() -> None:
        for rows, labels in zip(torch.split(job.rows, slots), torch.split(job.labels, slots), strict=True):
            sums.add(functional.cross_entropy(job.network(rows), labels, reduction="none"), inside)

    def clipped() -> None:
        add()
        noisy._set_gradients(torch.from_numpy(sums.take().noisy(nothing, unit)))
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    def with_noise() -> None:
        add()
        noisy.run()

    return {"clipped": clipped, "noisy": with_noise}


def fit(job: Job) -> dict[str, Callable[[], object]]:
    """Return a step of a whole private run: coins, order, rows, checks, clipped sum, noise and optimiser."""
    private = make_private(
        job.network,
        torch.optim.SGD(job.network.parameters(), RATE),
        pool(job),
        loss=torch.nn.CrossEntropyLoss(reduction="none"),
        noise_multiplier=NOISE,
        delta="1e-5",
        public_rows=POOL,
        batch_size=len(job.rows),
        clip=CLIP,
        steps=100_000,
    )
    batches = private.batches()

    def step() -> None:
        taken = private.steps_taken
        while private.steps_taken == taken:
            private.step(private.losses(next(batches)))

    return {"loop": step}


def main() -> None:
    """Time what the command line names."""
    job = asked()
    if job.mode == "fit":
        return report(fit(job))
    slots = min(len(job.rows), int(job.mode))
    report(steps(job, slots), slots=slots)


if __name__ == "__main__":
    main()
