"""Private training without secret samples: rows take turns, and the noise of a step takes back that of earlier ones."""

from __future__ import annotations

from contextlib import ExitStack, closing
from typing import Any

from torch import nn
from torch.optim import Optimizer

from discreet.exact import Number
from discreet.learn.torch.assembling import end_run, probed_on, remember_run, slots_for, sums_of
from discreet.learn.torch.averaging import WeightAverage
from discreet.learn.torch.guarding import check_optimizer, check_scheduler
from discreet.learn.torch.layers.preparing import prepare
from discreet.learn.torch.losses import Loss, RowLosses
from discreet.learn.torch.noisy import NoisyStep, Scheduler
from discreet.learn.torch.paying import pay
from discreet.learn.torch.projections import Projection
from discreet.learn.torch.report import TrainingReport
from discreet.learn.torch.rows import Collate, read_rows
from discreet.learn.torch.training import Callback, PrivateTraining
from discreet.learn.torch.trees import Tree
from discreet.learn.training import Clip, Stream, plan_stream, read_clip
from discreet.privacy.payer import Payer

__all__ = ["make_private_stream"]


def make_private_stream(
    model: nn.Module,
    optimizer: Optimizer,
    dataset: Any,
    *,
    loss: Loss,
    delta: Number,
    public_size: int,
    batch_size: int,
    epochs: int,
    epsilon: Number | None = None,
    noise_multiplier: Number | None = None,
    band: int | None = None,
    clip: Clip | Number = 1,
    physical_batch: int | None = None,
    session: Payer | None = None,
    name: str = "training",
    scheduler: Scheduler | None = None,
    ema: float | None = None,
    projection: Projection | None = None,
    watch: Tree | None = None,
    callback: Callback | None = None,
    collate: Collate | None = None,
    example: Any = None,
) -> PrivateTraining:
    """Prepare a private run in which every row has its turn once an epoch, pay for it, and return it.

    Arguments are those of `make_private`. Nothing is sampled in secret, so the guarantee also holds against somebody
    who knows in which steps a row took part. `band` is how many steps share noise; see `StreamPlan`. Such a run is not
    interrupted: it has no checkpoints, and a step that is begun must be finished.
    """
    check_optimizer(model, optimizer)
    check_scheduler(scheduler, optimizer)
    rows = read_rows(dataset, collate=collate, example=example)
    rule, slots = read_clip(clip), slots_for(physical_batch, batch_size)
    end_run(model)
    prepared = prepare(model)
    losses = RowLosses(model, loss, None, 1)
    probed = probed_on(losses, rows, slots, watch)
    with ExitStack() as undone:
        sums = undone.enter_context(closing(sums_of(losses, rule, slots)))
        plan = plan_stream(
            epsilon=epsilon,
            noise_multiplier=noise_multiplier,
            delta=delta,
            public_size=public_size,
            batch_size=batch_size,
            epochs=epochs,
            band=band,
            clip=rule,
            parameters=sum(weight.numel() for weight in sums.parameters),
            physical_batch=slots,
            slack=sums.slack,
        )
        stream = Stream(plan)
        average = None if ema is None else WeightAverage(sums.parameters, ema)
        pay(session, plan, name, None)
        private = PrivateTraining(
            report=TrainingReport(plan, prepared),
            rows=rows,
            parts=NoisyStep(plan, sums, stream, optimizer, scheduler, projection, average, None),
            sampler=stream,
            losses=losses,
            probed=probed,
            name=name,
            folder=None,
            every=plan.steps,
            watch=watch,
            callback=callback,
        )
        undone.pop_all()
    return remember_run(private)
