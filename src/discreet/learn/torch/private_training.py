"""DP-SGD and DP-FTRL in three changed lines: a model, its optimiser and its data become a private run."""

from __future__ import annotations

import json
from contextlib import ExitStack, closing
from math import isqrt
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary, ref

from torch import Tensor, nn
from torch.optim import Optimizer

from discreet.errors import LedgerDamaged, Refused
from discreet.exact import Number, positive_integer
from discreet.learn.torch.batches import Collate, TrainingRows, Tree, leaves, mapped, read_rows
from discreet.learn.torch.checkpoints import LedgerClaims, RunFolder
from discreet.learn.torch.clipping.clipped_sums import ClippedSums
from discreet.learn.torch.layers.model_preparation import prepare
from discreet.learn.torch.layers.row_separation_probe import Probed, probe
from discreet.learn.torch.noisy_step import NoisyStep, Projection, Scheduler, WeightAverage
from discreet.learn.torch.progress import TrainingReport
from discreet.learn.torch.row_losses import Augment, Loss, RowLosses, as_pair, count_views
from discreet.learn.torch.run_guard import check_optimizer, check_scheduler
from discreet.learn.torch.training_run import Callback, PrivateTraining
from discreet.learn.training import AdaptiveClip, TrainingPlan, plan_stream, plan_training
from discreet.learn.training.adaptive_clip import FollowedClip
from discreet.learn.training.clip_rules import Clip, read_clip
from discreet.learn.training.prefetched_noise import NoiseAhead
from discreet.learn.training.sampling import PoissonSampler, RunPlan, Stream
from discreet.learn.training.training_plan import grid_for
from discreet.ledger import Ledger
from discreet.privacy.payer import Payer, Price, pay
from discreet.privacy.relation import Relation

__all__ = [
    "MOST_CLAIMS",
    "check_unit",
    "claimed_at_once",
    "end_run",
    "identity_of",
    "make_private",
    "make_private_stream",
    "pay",
    "probed_on",
    "remember_run",
    "slots_for",
    "sums_of",
]


def make_private(
    model: nn.Module,
    optimizer: Optimizer,
    dataset: Any,
    *,
    loss: Loss,
    delta: Number,
    public_rows: int,
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
    """Prepare a private training run (DP-SGD), pay for it, and return it before any row was read.

    Say `epsilon` or `noise_multiplier`, and `epochs` or `steps`. How often a row takes part, how many steps there are,
    what sums are divided by and what it all costs follow from the public number of rows and `batch_size`, never from
    the data.

    Args:
        model: The model to train.
        optimizer: The optimiser of its parameters.
        dataset: The private rows: tensors (x, y), a TensorDataset, or items with `example`.
        loss: loss(model(x), y) must be one number a row: reduction="none".
        delta: The delta of the guarantee.
        public_rows: About how many rows there are, as everybody may know.
        batch_size: The expected number of rows of a step; each row joins by a secret coin.
        epsilon: What the whole run spends; say this or `noise_multiplier`.
        noise_multiplier: The standard deviation of the noise over the clip.
        epochs: How often each row takes part, on average; say this or `steps`.
        steps: How many noisy steps there are.
        clip: The largest l2 norm of one row's gradient, or `Flat`, `Automatic`, `PerLayer` or `AdaptiveClip`.
        physical_batch: Rows of one forward pass, a multiple of 32; chosen from `batch_size` if not said.
        unit: Who is protected, as the account of `session` calls it.
        session: Who pays; the whole run is charged now.
        name: What this run is called in the ledger, the checkpoints and the exported file; public.
        checkpoint: A folder that is this run: if it was begun there, it goes on where it was.
        checkpoint_every: After how many steps a checkpoint is written.
        scheduler: A scheduler of torch, stepped after every noisy step.
        ema: The decay of averaged weights, such as 0.999; they are what is exported.
        projection: `L2Ball` or `Box`, to which the weights are brought back.
        augment: Takes one row, as a batch of one, and returns K views; their losses are averaged, then clipped.
        watch: Public rows (x, y), whose loss may be shown.
        callback: Called with a `StepDone` after every noisy step.
        collate: How items of a dataset become a batch; as torch does if not said.
        example: A made-up row that shows the shapes of the items of a dataset.

    Returns:
        The run: `fit` trains to the end, or loop over `batches` and `step`.

    Raises:
        Refused: If a layer mixes rows, such as batch normalisation.
        InvalidParameter: If what to spend or how long to train is not said in exactly one way.
        BudgetExceeded: If `session` cannot pay; nothing is read.

    Examples:
        >>> import torch
        >>> model = torch.nn.Linear(2, 2)
        >>> rows = torch.randn(256, 2), torch.randint(2, (256,))
        >>> private = dp.make_private(
        ...     model, torch.optim.SGD(model.parameters(), lr=0.1), rows,
        ...     loss=torch.nn.CrossEntropyLoss(reduction="none"),
        ...     epsilon=8, delta=1e-5, public_rows=256, batch_size=64, steps=2,
        ... )
        >>> private.fit(progress=False).epsilon <= 8
        True
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
            public_rows=public_rows,
            batch_size=batch_size,
            epochs=epochs,
            steps=steps,
            clip=rule,
            parameters=sum(weight.numel() for weight in sums.parameters),
            physical_batch=slots,
            slack=sums.slack,
        )
        parts = _parts(plan, sums, optimizer, scheduler, projection, ema)
        folder = _opened(checkpoint, identity_of(plan, losses, name), undone)
        pay_for_run(session, plan, name, folder)
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
            is_paid=session is not None,
        )
        undone.pop_all()
    return remember_run(private)


def _opened(checkpoint: str | Path | None, identity: dict[str, Any], undone: ExitStack) -> RunFolder | None:
    if checkpoint is None:
        return None
    folder = RunFolder(Path(checkpoint), identity)
    undone.callback(folder.close)
    return folder


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


# --- streaming ---
# DP-FTRL: fixed-order participation with banded, negatively correlated noise; no secret samples are needed.


def make_private_stream(
    model: nn.Module,
    optimizer: Optimizer,
    dataset: Any,
    *,
    loss: Loss,
    delta: Number,
    public_rows: int,
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
    """Prepare a DP-FTRL run: fixed-order participation with correlated noise; pay for it, and return it.

    Arguments are those of `make_private`. Nothing is sampled in secret, so the guarantee also holds against somebody
    who knows in which steps a row took part. `band` is how many steps share noise; see `StreamPlan`. Such a run is not
    interrupted: it has no checkpoints, and a step that is begun must be finished.

    Args:
        model: The model to train.
        optimizer: The optimiser of its parameters.
        dataset: The private rows, as for `make_private`.
        loss: loss(model(x), y) must be one number a row: reduction="none".
        delta: The delta of the guarantee.
        public_rows: About how many rows there are, as everybody may know.
        batch_size: The number of rows of a step.
        epochs: How often each row has its turn.
        epsilon: What the whole run spends; say this or `noise_multiplier`.
        noise_multiplier: The standard deviation of the noise over the clip.
        band: How many steps share noise; chosen from the plan if not said.
        clip: The largest l2 norm of one row's gradient, or `Flat`, `Automatic`, `PerLayer` or `AdaptiveClip`.
        physical_batch: Rows of one forward pass, a multiple of 32; chosen from `batch_size` if not said.
        session: Who pays; the whole run is charged now.
        name: What this run is called in the ledger, the checkpoints and the exported file; public.
        scheduler: A scheduler of torch, stepped after every noisy step.
        ema: The decay of averaged weights, such as 0.999; they are what is exported.
        projection: `L2Ball` or `Box`, to which the weights are brought back.
        watch: Public rows (x, y), whose loss may be shown.
        callback: Called with a `StepDone` after every noisy step.
        collate: How items of a dataset become a batch; as torch does if not said.
        example: A made-up row that shows the shapes of the items of a dataset.

    Returns:
        The run, as `make_private` returns it.

    Raises:
        Refused: If a layer mixes rows.
        BudgetExceeded: If `session` cannot pay; nothing is read.

    Examples:
        >>> import torch
        >>> model = torch.nn.Linear(2, 2)
        >>> rows = torch.randn(256, 2), torch.randint(2, (256,))
        >>> private = dp.learn.torch.make_private_stream(
        ...     model, torch.optim.SGD(model.parameters(), lr=0.1), rows,
        ...     loss=torch.nn.CrossEntropyLoss(reduction="none"),
        ...     epsilon=8, delta=1e-5, public_rows=256, batch_size=64, epochs=1,
        ... )
        >>> private.fit(progress=False).finished
        True
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
            public_rows=public_rows,
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
        pay_for_run(session, plan, name, None)
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
            is_paid=session is not None,
        )
        undone.pop_all()
    return remember_run(private)


# --- assembling: The parts that every private run is put together from, whoever takes part in which step. ---


# A run holds its model, not the other way round.
_RUNS: WeakKeyDictionary[nn.Module, ref[PrivateTraining]] = WeakKeyDictionary()


def remember_run(private: PrivateTraining) -> PrivateTraining:
    """Note which run trains a model, and hand it on."""
    _RUNS[private.model] = ref(private)
    return private


def end_run(model: nn.Module) -> None:
    """Close the run that trains this model now, if there is one: a cell of a notebook is run again."""
    earlier = _RUNS.pop(model, None)
    private = None if earlier is None else earlier()
    if private is not None:
        private.close()


def slots_for(physical_batch: int | None, batch_size: int) -> int:
    """Choose how many rows go through the model at once, from public facts.

    Batches of at most 320 rows, as few as hold the expected sample and two standard deviations more; all are of one
    size, a multiple of 32, and what is empty in the last one is computed for nothing.
    """
    if physical_batch is not None:
        return positive_integer(physical_batch, name="physical_batch")
    expected = positive_integer(batch_size, name="batch_size")
    likely = expected + 2 * isqrt(expected)
    batches = -(-likely // 320)
    return 32 * -(-likely // (32 * batches))


def claimed_at_once(plan: RunPlan, steps: int | None) -> int:
    """How many steps are claimed at once: what a crash may lose, a hundredth of the run unless said otherwise."""
    chosen = -(-plan.steps // 100) if steps is None else positive_integer(steps, name="checkpoint_every")
    return max(chosen, -(-plan.steps // MOST_CLAIMS))


def probed_on(losses: RowLosses, rows: TrainingRows, slots: int, watch: Tree | None) -> Probed:
    """Try the model on made-up rows, or on public ones where there are at least two."""
    example = as_pair(mapped(lambda part: part[0], losses.view(rows.blank(slots))))
    several = watch is not None and all(len(part) > 1 for part in leaves(watch) if isinstance(part, Tensor))
    return probe(losses.model, losses.loss, example, slots, public=as_pair(watch) if several else None)


def sums_of(losses: RowLosses, rule: Clip, slots: int) -> ClippedSums:
    """Hook the model, with the grid that its size and the clip ask for."""
    parameters = sum(weight.numel() for weight in losses.model.parameters() if weight.requires_grad)
    return ClippedSums(losses.model, clip=rule, grid=float(grid_for(rule.bound, parameters)), physical_batch=slots)


def identity_of(plan: RunPlan, losses: RowLosses, name: str) -> dict[str, Any]:
    """What must be the same for a run to go on: all of it is public."""
    shapes = [[key, list(value.shape), str(value.dtype)] for key, value in losses.model.state_dict().items()]
    return {"plan": json.loads(plan.to_json()), "model": shapes, "name": name, "views": losses.views}


# --- paying: The whole run is paid for before its first row is read, and never a second time. ---


MOST_CLAIMS = 1_000_000  # as many answers as a charge of the ledger pays for


def check_unit(unit: str) -> None:
    """Refuse to promise more than clipping row by row can keep."""
    if unit != "row":
        raise Refused(
            f"training protects one row, not everybody who shares a {unit}",
            reason="each row is clipped by itself, so a person with many rows moves the weights by all of them",
            way_out='make one row of each person before training and say unit="row"',
        )


def pay_for_run(session: Payer | None, plan: RunPlan, name: str, folder: RunFolder | None) -> None:
    """Charge the run, unless it was charged before, and refuse a folder that would draw its steps again.

    A payer knows a run with a folder by its key, and is asked each time: it charges the key once, also if the run was
    killed between the charge and its note in the folder, and a payer that was never charged does not take the word of
    a folder for it. A ledger keeps the claims of the run as well; with another payer they are in the folder alone.
    """
    ledger = _ledger_of(session)
    if folder is None:
        pay(session, _price(plan), purpose=_purpose(name))
        return
    if session is not None and ledger is not None:
        folder.use_ledger(_charged(session, ledger, plan, name, folder))
    else:
        folder.check_place(plan.steps)
        if session is None:
            return
        pay(session, _price(plan), purpose=_purpose(name), idempotency_key=folder.key)
    if not folder.charged:
        folder.mark_charged()


def _price(plan: RunPlan) -> Price:
    return Price(plan.event, Relation.ADD_REMOVE)


def _purpose(name: str) -> str:
    return f"training: {name}"


def _ledger_of(session: Payer | None) -> Ledger | None:
    """Find the ledger behind a payer: itself, or that of a session."""
    found = session if isinstance(session, Ledger) else getattr(session, "ledger", None)
    return found if isinstance(found, Ledger) else None


def _charged(session: Payer, ledger: Ledger, plan: RunPlan, name: str, folder: RunFolder) -> LedgerClaims:
    """Charge a run with room for its claims; return what the ledger knows of them."""
    before = ledger.charged(folder.key)
    # A charge that an earlier release made has no room for several claims, and stays as it is.
    parts = None if before is not None and "parts" not in before.content else min(plan.steps, MOST_CLAIMS)
    room: dict[str, Any] = {"idempotency_key": folder.key, "parts": parts}
    session.charge(plan.event, relation=Relation.ADD_REMOVE, purpose=_purpose(name), **room)
    charge = ledger.charged(folder.key)
    if charge is None:
        raise LedgerDamaged("the charge of this run is not found under its key: verify the ledger")
    return LedgerClaims(ledger, charge, plan.steps)
