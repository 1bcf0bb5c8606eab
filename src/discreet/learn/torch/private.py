"""The three-line change: a model, its optimiser and its data become a private training run."""

from __future__ import annotations

import json
from contextlib import ExitStack, closing
from math import isqrt
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary, ref

from torch import Tensor, nn
from torch.optim import Optimizer

from discreet.exact import Number, positive_integer
from discreet.learn.torch.averaging import WeightAverage
from discreet.learn.torch.checkpoints import RunFolder
from discreet.learn.torch.clipping import ClippedSums
from discreet.learn.torch.guarding import check_optimizer
from discreet.learn.torch.layers.preparing import prepare
from discreet.learn.torch.layers.probe import Probed, probe
from discreet.learn.torch.losses import Augment, Loss, RowLosses, as_pair, count_views
from discreet.learn.torch.noisy import NoisyStep, Scheduler
from discreet.learn.torch.paying import check_unit, pay
from discreet.learn.torch.projections import Projection
from discreet.learn.torch.report import TrainingReport
from discreet.learn.torch.rows import Collate, Rows, read_rows
from discreet.learn.torch.training import Callback, PrivateTraining
from discreet.learn.torch.trees import Tree, leaves, mapped
from discreet.learn.training import (
    AdaptiveClip,
    Clip,
    FollowedClip,
    NoiseAhead,
    TrainingPlan,
    grid_for,
    plan_training,
    read_clip,
)
from discreet.privacy.payer import Payer

__all__ = ["end_run", "make_private"]

_RUNS: WeakKeyDictionary[nn.Module, ref[PrivateTraining]] = (
    WeakKeyDictionary()
)  # A run holds its model, not vice versa.


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
    rows = read_rows(dataset, collate=collate, example=example)
    rule, slots = read_clip(clip), _slots(physical_batch, batch_size)
    end_run(model)
    prepared = prepare(model)
    losses = RowLosses(model, loss, augment, count_views(augment, rows.blank(slots)))
    probed = _probed(losses, rows, slots, watch)
    with ExitStack() as undone:
        sums = undone.enter_context(closing(_sums(losses, rows, rule, slots)))
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
        folder = None if checkpoint is None else RunFolder(Path(checkpoint), _identity(plan, losses, name))
        if folder is not None:
            undone.callback(folder.close)
        pay(session, plan, name, folder)
        private = PrivateTraining(
            report=TrainingReport(plan, prepared),
            rows=rows,
            parts=parts,
            losses=losses,
            probed=probed,
            name=name,
            folder=folder,
            every=_every(plan, checkpoint_every),
            watch=watch,
            callback=callback,
        )
        undone.pop_all()
    _RUNS[model] = ref(private)
    return private


def end_run(model: nn.Module) -> None:
    """Close the run that trains this model now, if there is one: a cell of a notebook is run again."""
    earlier = _RUNS.pop(model, None)
    private = None if earlier is None else earlier()
    if private is not None:
        private.close()


def _slots(physical_batch: int | None, batch_size: int) -> int:
    """Choose how many rows go through the model at once, from public facts.

    Batches of at most 256 rows, as few as hold the expected sample and two standard deviations more; all are of one
    size, a multiple of 32, and what is empty in the last one is computed for nothing.
    """
    if physical_batch is not None:
        return positive_integer(physical_batch, name="physical_batch")
    expected = positive_integer(batch_size, name="batch_size")
    likely = expected + 2 * isqrt(expected)
    batches = -(-likely // 256)
    return 32 * -(-likely // (32 * batches))


def _every(plan: TrainingPlan, steps: int | None) -> int:
    """How many steps are claimed at once: what a crash may lose, a hundredth of the run unless said otherwise."""
    return -(-plan.steps // 100) if steps is None else positive_integer(steps, name="checkpoint_every")


def _probed(losses: RowLosses, rows: Rows, slots: int, watch: Tree | None) -> Probed:
    """Try the model on made-up rows, or on public ones where there are at least two."""
    example = as_pair(mapped(lambda part: part[0], losses.view(rows.blank(slots))))
    several = watch is not None and all(len(part) > 1 for part in leaves(watch) if isinstance(part, Tensor))
    return probe(losses.model, losses.loss, example, slots, public=as_pair(watch) if several else None)


def _sums(losses: RowLosses, rows: Rows, rule: Clip, slots: int) -> ClippedSums:
    parameters = sum(weight.numel() for weight in losses.model.parameters() if weight.requires_grad)
    return ClippedSums(losses.model, clip=rule, grid=float(grid_for(rule.bound, parameters)), physical_batch=slots)


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


def _identity(plan: TrainingPlan, losses: RowLosses, name: str) -> dict[str, Any]:
    """What must be the same for a run to go on: all of it is public."""
    shapes = [[key, list(value.shape), str(value.dtype)] for key, value in losses.model.state_dict().items()]
    return {"plan": json.loads(plan.to_json()), "model": shapes, "name": name, "views": losses.views}
