"""The three-line change: a model, its optimiser and its data become a private training run."""

from __future__ import annotations

from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

from torch import nn
from torch.optim import Optimizer

from discreet.exact import Number
from discreet.learn.torch.assembling import (
    claimed_at_once,
    end_run,
    identity_of,
    probed_on,
    remember_run,
    slots_for,
    sums_of,
)
from discreet.learn.torch.averaging import WeightAverage
from discreet.learn.torch.checkpoints import RunFolder
from discreet.learn.torch.clipping import ClippedSums
from discreet.learn.torch.guarding import check_optimizer, check_scheduler
from discreet.learn.torch.layers.preparing import prepare
from discreet.learn.torch.losses import Augment, Loss, RowLosses, count_views
from discreet.learn.torch.noisy import NoisyStep, Scheduler
from discreet.learn.torch.paying import check_unit, pay
from discreet.learn.torch.projections import Projection
from discreet.learn.torch.report import TrainingReport
from discreet.learn.torch.rows import Collate, read_rows
from discreet.learn.torch.training import Callback, PrivateTraining
from discreet.learn.torch.trees import Tree
from discreet.learn.training import (
    AdaptiveClip,
    Clip,
    FollowedClip,
    NoiseAhead,
    PoissonSampler,
    TrainingPlan,
    plan_training,
    read_clip,
)
from discreet.privacy.payer import Payer

__all__ = ["make_private"]


def make_private(
    model: nn.Module,
    optimizer: Optimizer,
    dataset: Any,
    *,
    loss: Loss,
    delta: Number,
    public_size: int,
    batch_size: int,
    epsilon: Number | None = None,
    noise_multiplier: Number | None = None,
    epochs: Number | None = None,
    steps: int | None = None,
    clip: Clip | Number = 1,
    physical_batch: int | None = None,
    unit: str = "row",
    session: Payer | None = None,
    name: str = "training",
    checkpoint: str | Path | None = None,
    checkpoint_every: int | None = None,
    scheduler: Scheduler | None = None,
    ema: float | None = None,
    projection: Projection | None = None,
    augment: Augment | None = None,
    watch: Tree | None = None,
    callback: Callback | None = None,
    collate: Collate | None = None,
    example: Any = None,
) -> PrivateTraining:
    """Prepare a private training run, pay for it, and return it before any row was read.

    Say `epsilon` or `noise_multiplier`, and `epochs` or `steps`. How often a row takes part, how many steps there are,
    what sums are divided by and what it all costs follow from `public_size` and `batch_size`, never from the data.

    dataset           tensors (x, y), a TensorDataset, or items with `example`, a made-up row that shows their shapes
    loss              loss(model(x), y) is one number a row: reduction="none"
    public_size       about how many rows there are, as everybody may know
    clip              the largest l2 norm of one row's gradient, or Flat, Automatic, PerLayer, AdaptiveClip
    physical_batch    rows of one forward pass, a multiple of 32; chosen from `batch_size` if not given
    session           whoever pays: the whole run is charged now
    name              what this run is called in the ledger, the checkpoints and the exported file; public
    checkpoint        a folder that is this run: if it was begun there, it goes on where it was
    scheduler         of torch, stepped after every noisy step
    ema               decay of averaged weights, such as 0.999; they are what is exported
    projection        L2Ball or Box, to which the weights are brought back
    augment           takes one row, as a batch of one, and returns K views; their losses are averaged, then clipped
    watch             public rows (x, y), whose loss may be shown
    callback          called with a StepDone after every noisy step
    """
    check_unit(unit)
    check_optimizer(model, optimizer)
    check_scheduler(scheduler, optimizer)
    rows = read_rows(dataset, collate=collate, example=example)
    rule, slots = read_clip(clip), slots_for(physical_batch, batch_size)
    end_run(model)
    prepared = prepare(model)
    losses = RowLosses(model, loss, augment, count_views(augment, rows.blank(slots)))
    probed = probed_on(losses, rows, slots, watch)
    with ExitStack() as undone:
        sums = undone.enter_context(closing(sums_of(losses, rule, slots)))
        plan = plan_training(
            epsilon=epsilon,
            noise_multiplier=noise_multiplier,
            delta=delta,
            public_size=public_size,
            batch_size=batch_size,
            epochs=epochs,
            steps=steps,
            clip=rule,
            parameters=sum(weight.numel() for weight in sums.parameters),
            physical_batch=slots,
            slack=sums.slack,
        )
        parts = _parts(plan, sums, optimizer, scheduler, projection, ema)
        folder = None if checkpoint is None else RunFolder(Path(checkpoint), identity_of(plan, losses, name))
        if folder is not None:
            undone.callback(folder.close)
        pay(session, plan, name, folder)
        private = PrivateTraining(
            report=TrainingReport(plan, prepared),
            rows=rows,
            parts=parts,
            sampler=PoissonSampler(plan),
            losses=losses,
            probed=probed,
            name=name,
            folder=folder,
            every=claimed_at_once(plan, checkpoint_every),
            watch=watch,
            callback=callback,
        )
        undone.pop_all()
    return remember_run(private)


def _parts(
    plan: TrainingPlan,
    sums: ClippedSums,
    optimizer: Optimizer,
    scheduler: Scheduler | None,
    projection: Projection | None,
    ema: float | None,
) -> NoisyStep:
    followed = FollowedClip(plan) if isinstance(plan.clip, AdaptiveClip) else None
    if followed is not None:
        sums.threshold = followed.current
    average = None if ema is None else WeightAverage(sums.parameters, ema)
    return NoisyStep(plan, sums, NoiseAhead(plan), optimizer, scheduler, projection, average, followed)
