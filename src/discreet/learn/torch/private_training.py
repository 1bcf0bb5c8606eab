"""DP-SGD and DP-FTRL in three changed lines: a model, its optimiser and its data become a private run."""

from __future__ import annotations

import json
from contextlib import ExitStack, closing
from dataclasses import dataclass
from math import gcd, isqrt
from pathlib import Path
from typing import Any, final
from weakref import WeakKeyDictionary, ref

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from discreet.adaptive.bounded_memberships import unit_rows
from discreet.errors import InvalidParameter, LedgerDamaged, Refused
from discreet.exact import Number, positive_integer
from discreet.formatting import with_article
from discreet.learn.torch.batches import Collate, PeopleRows, TrainingRows, Tree, leaves, mapped, read_rows
from discreet.learn.torch.checkpoints import LedgerClaims, RunFolder
from discreet.learn.torch.clipping.clipped_sums import ClippedSums
from discreet.learn.torch.layers.made_up_rows import MadeUp
from discreet.learn.torch.layers.made_up_rows import mapped as both_mapped
from discreet.learn.torch.layers.model_preparation import prepare
from discreet.learn.torch.layers.row_separation_probe import Probed, probe
from discreet.learn.torch.layers.secret_draws import SecretFunctions, known_masks
from discreet.learn.torch.noisy_step import NoisyStep, Projection, Scheduler, WeightAverage
from discreet.learn.torch.progress import TrainingReport
from discreet.learn.torch.row_losses import Augment, Loss, RowLosses, as_pair, count_views
from discreet.learn.torch.run_guard import check_optimizer, check_scheduler, earlier_runs
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
    "TrainingRecords",
    "claimed_at_once",
    "end_run",
    "identity_of",
    "make_private",
    "make_private_stream",
    "pay",
    "probed_on",
    "read_records",
    "remember_run",
    "slots_for",
    "sums_of",
    "try_sums",
]


def make_private(
    model: nn.Module,
    optimizer: Optimizer,
    dataset: Any,
    *,
    loss: Loss,
    delta: Number,
    batch_size: int,
    public_rows: int | None = None,
    public_units: int | None = None,
    epsilon: Number | None = None,
    noise_multiplier: Number | None = None,
    epochs: Number | None = None,
    steps: int | None = None,
    clip: Clip | Number = 1,
    physical_batch: int | None = None,
    unit: Any = "row",
    max_rows: int | None = None,
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

    With `unit`, the ids of the people whose rows these are, people are protected with all their rows (user-level
    DP-SGD): people are sampled, a person's loss is the mean over at most `max_rows` of their rows, drawn anew in every
    step, and its gradient is clipped as a whole. Then `public_units`, `batch_size`, `epochs` and `physical_batch`
    count people.

    Args:
        model: The model to train.
        optimizer: The optimiser of its parameters.
        dataset: The private rows: tensors (x, y), a TensorDataset, or items with `example`.
        loss: loss(model(x), y) must be one number a row: reduction="none".
        delta: The delta of the guarantee.
        batch_size: The expected number of rows, or people, of a step; each joins by a secret coin.
        public_rows: About how many rows there are, as everybody may know; where rows are protected.
        public_units: About how many people there are, as everybody may know; where `unit` are ids.
        epsilon: What the whole run spends; say this or `noise_multiplier`.
        noise_multiplier: The standard deviation of the noise over the clip.
        epochs: How often each row takes part, on average; say this or `steps`.
        steps: How many noisy steps there are.
        clip: The largest l2 norm of one row's gradient, or `Flat`, `Automatic`, `PerLayer` or `AdaptiveClip`.
        physical_batch: Rows of one forward pass, a multiple of 32; chosen from `batch_size` if not said.
        unit: Who is protected: "row", or ids, one a row, that tell people apart: a column, or a table or dictionary of
            several, as {"patient": ids}. Ids are private, their names are public. Rows without one are left out.
        max_rows: With how many of their rows a person takes part in a step at most; where `unit` are ids.
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
    check_optimizer(model, optimizer)
    check_scheduler(scheduler, optimizer)
    rows = read_rows(dataset, collate=collate, example=example)
    records = read_records(rows, unit, max_rows, public_rows, public_units, session)
    rule, slots = read_clip(clip), slots_for(physical_batch, batch_size, records.rows.each)
    end_run(model)
    prepared = prepare(model)
    losses = RowLosses(model, loss, augment, count_views(augment, rows.blank(slots)))
    probed, made_up = probed_on(losses, records.rows, slots, watch)
    with ExitStack() as undone:
        sums = undone.enter_context(closing(sums_of(losses, rule, slots, records.rows.each)))
        try_sums(sums, losses, records.rows, made_up)
        plan = plan_training(
            epsilon=epsilon,
            noise_multiplier=noise_multiplier,
            delta=delta,
            **records.facts,
            batch_size=batch_size,
            epochs=epochs,
            steps=steps,
            clip=rule,
            **_facts(sums),
        )
        parts = _parts(plan, sums, optimizer, scheduler, projection, ema)
        folder = _opened(checkpoint, identity_of(plan, losses, name), undone)
        pay_for_run(session, records.account, plan, name, folder, model)
        private = PrivateTraining(
            report=TrainingReport(plan, prepared),
            rows=records.rows,
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
    batch_size: int,
    epochs: int,
    public_rows: int | None = None,
    public_units: int | None = None,
    epsilon: Number | None = None,
    noise_multiplier: Number | None = None,
    band: int | None = None,
    clip: Clip | Number = 1,
    physical_batch: int | None = None,
    unit: Any = "row",
    max_rows: int | None = None,
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
        batch_size: The number of rows, or people, of a step.
        epochs: How often each of them has its turn.
        public_rows: About how many rows there are, as everybody may know; where rows are protected.
        public_units: About how many people there are, as everybody may know; where `unit` are ids.
        epsilon: What the whole run spends; say this or `noise_multiplier`.
        noise_multiplier: The standard deviation of the noise over the clip.
        band: How many steps share noise; chosen from the plan if not said.
        clip: The largest l2 norm of one row's gradient, or `Flat`, `Automatic`, `PerLayer` or `AdaptiveClip`.
        physical_batch: Rows of one forward pass, a multiple of 32; chosen from `batch_size` if not said.
        unit: Who is protected: "row", or ids, one a row, as for `make_private`.
        max_rows: With how many of their rows a person has a turn at most; where `unit` are ids.
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
    records = read_records(rows, unit, max_rows, public_rows, public_units, session)
    rule, slots = read_clip(clip), slots_for(physical_batch, batch_size, records.rows.each)
    end_run(model)
    prepared = prepare(model)
    losses = RowLosses(model, loss, None, 1)
    probed, made_up = probed_on(losses, records.rows, slots, watch)
    with ExitStack() as undone:
        sums = undone.enter_context(closing(sums_of(losses, rule, slots, records.rows.each)))
        try_sums(sums, losses, records.rows, made_up)
        plan = plan_stream(
            epsilon=epsilon,
            noise_multiplier=noise_multiplier,
            delta=delta,
            **records.facts,
            batch_size=batch_size,
            epochs=epochs,
            band=band,
            clip=rule,
            **_facts(sums),
        )
        stream = Stream(plan)
        average = None if ema is None else WeightAverage(sums.parameters, ema)
        pay_for_run(session, records.account, plan, name, None, model)
        private = PrivateTraining(
            report=TrainingReport(plan, prepared),
            rows=records.rows,
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


@final
@dataclass(frozen=True, slots=True)
class TrainingRecords:
    """Who is protected: rows, or people as records of several rows, and about how many there are."""

    rows: TrainingRows
    public: int
    unit: str | None  # what one of them is called; None for rows
    account: str = "row"  # what the ledger calls them

    @property
    def facts(self) -> dict[str, Any]:
        """What a plan says of them."""
        return {
            "public_rows": self.public,
            "unit": self.unit,
            "max_rows": None if self.unit is None else self.rows.each,
        }


def read_records(
    rows: TrainingRows,
    unit: Any,
    max_rows: int | None,
    public_rows: int | None,
    public_units: int | None,
    session: Payer | None,
) -> TrainingRecords:
    """Read who is protected; of ids nothing but their type and number is looked at."""
    if unit is not None and not isinstance(unit, str):
        whom = unit_rows(_as_columns(unit), _needed(max_rows, "max_rows", "unit=ids"), Relation.ADD_REMOVE)
        assert whom is not None
        _unneeded(public_rows, "public_rows", "public_units=…, about how many people there are, with unit=ids")
        size = positive_integer(_needed(public_units, "public_units", "unit=ids"), name="public_units")
        account = "row" if session is None else whom.account  # Where nobody pays, nobody asks for a name.
        return TrainingRecords(PeopleRows(rows, whom), size, whom.noun if whom.names else "person", account)
    if unit not in (None, "row"):
        raise Refused(
            f"the rows of everybody who shares {with_article(unit)} are not known here",
            reason="each row is clipped by itself, so a person with many rows moves the weights by all of them",
            way_out=f'say unit={{"{unit}": ids}}, a column with the {unit} of each row, and max_rows=…',
        )
    for value, said in ((max_rows, "max_rows"), (public_units, "public_units")):
        _unneeded(value, said, "unit=ids, a column that tells people apart, or leave it out: here rows are protected")
    size = positive_integer(_needed(public_rows, "public_rows", 'unit="row"'), name="public_rows")
    return TrainingRecords(rows, size, None)


def _needed(value: int | None, name: str, where: str) -> int:
    if value is None:
        raise InvalidParameter(f"with {where} say {name}=…: what a run does and costs must not follow from the data")
    return value


def _unneeded(value: object, name: str, instead: str) -> None:
    if value is not None:
        raise InvalidParameter(f"instead of {name} say {instead}")


def _as_columns(unit: Any) -> Any:
    """Hand tensors over as arrays, which columns of ids are read from."""
    if isinstance(unit, dict):
        return {name: _as_columns(ids) for name, ids in unit.items()}
    return unit.detach().numpy() if isinstance(unit, Tensor) else unit


def slots_for(physical_batch: int | None, batch_size: int, each: int = 1) -> int:
    """Choose how many records go through the model at once, from public facts.

    Batches of about 320 rows at most, as few as hold the expected sample and two standard deviations more; all are of
    one size, a multiple of 32 rows, and what is empty in the last one is computed for nothing.
    """
    if physical_batch is not None:
        return positive_integer(physical_batch, name="physical_batch")
    expected = positive_integer(batch_size, name="batch_size")
    likely, least = expected + 2 * isqrt(expected), 32 // gcd(32, each)
    batches = -(-likely // max(least, 320 // each // least * least))
    return least * -(-likely // (least * batches))


def claimed_at_once(plan: RunPlan, steps: int | None) -> int:
    """How many steps are claimed at once: what a crash may lose, a hundredth of the run unless said otherwise."""
    chosen = -(-plan.steps // 100) if steps is None else positive_integer(steps, name="checkpoint_every")
    return max(chosen, -(-plan.steps // MOST_CLAIMS))


def probed_on(losses: RowLosses, rows: TrainingRows, slots: int, watch: Tree | None) -> tuple[Probed, MadeUp]:
    """Try the model on made-up rows, or on public ones where there are at least two; return these, too."""
    example = as_pair(mapped(lambda part: part[0], losses.view(rows.blank(slots))))
    several = watch is not None and all(len(part) > 1 for part in leaves(watch) if isinstance(part, Tensor))
    public = as_pair(watch) if several else None
    return probe(losses.model, losses.loss, example, slots * rows.each, public=public), MadeUp(example, public)


def sums_of(losses: RowLosses, rule: Clip, slots: int, each: int = 1) -> ClippedSums:
    """Hook the model, with the grid that its size and the clip ask for."""
    parameters = sum(weight.numel() for weight in losses.model.parameters() if weight.requires_grad)
    grid = float(grid_for(rule.bound, parameters))
    return ClippedSums(losses.model, clip=rule, grid=grid, physical_batch=slots, each=each)


def try_sums(sums: ClippedSums, losses: RowLosses, rows: TrainingRows, made_up: MadeUp) -> None:
    """Clip a batch of blank rows, and forget it: what cannot be told row by row is refused before it is paid for."""
    number = sums.physical_batch * rows.each
    with (
        closing(SecretFunctions(losses.model)),
        known_masks(torch.ones(number)),
        torch.random.fork_rng(devices=[]),
        torch.enable_grad(),
    ):
        sums.add(losses.of(rows.blank(number)), torch.ones(number, dtype=torch.bool))
        _try_companions(sums, losses, made_up)
    sums.reset()
    sums.seal()


def _try_companions(sums: ClippedSums, losses: RowLosses, made_up: MadeUp) -> None:
    """Refuse gradients that are not formed of a record's own numbers alone, whatever its companions and its slot are.

    A layer without a rule is run again, row by row. Whatever it finds elsewhere than in its arguments is of all rows.
    """
    records, each = torch.arange(sums.physical_batch), sums.each
    base, others = (made_up.rows(len(records) * each) for _ in range(2))
    plain = sums.formed(losses.of_view(base))
    for kept in (records % 2 == 0, records % 2 == 1):
        rows = kept.repeat_interleave(each)
        mixed = both_mapped(lambda row, other, rows=rows: torch.where(_beside(rows, row), row, other), base, others)
        _require_same(plain, sums.formed(losses.of_view(mixed)), kept, kept)
    order = torch.arange(len(records) * each).reshape(-1, each).flip(0).flatten()
    turned = sums.formed(losses.of_view(mapped(lambda row: row[order], base)))
    _require_same(plain, turned, records.flip(0), records)


def _beside(rows: Tensor, row: Tensor) -> Tensor:
    return rows.reshape(-1, *(1,) * (row.dim() - 1))


def _require_same(plain: dict[str, Tensor], other: dict[str, Tensor], old: Tensor, new: Tensor) -> None:
    for name, before in plain.items():
        if not torch.equal(before[old], other[name][new]):
            raise Refused(
                f"the gradient of {name} for one row depends on other rows, or on its slot",
                reason="its layer is run again for each row, and finds there what belongs to the whole batch",
                way_out="hand a layer all that it needs as arguments: self.scale(x, given), not self.scale.given = …",
            )


def _facts(sums: ClippedSums) -> dict[str, Any]:
    """What a plan says of the sums."""
    parameters = sum(weight.numel() for weight in sums.parameters)
    return {"parameters": parameters, "physical_batch": sums.physical_batch, "slack": sums.slack}


def identity_of(plan: RunPlan, losses: RowLosses, name: str) -> dict[str, Any]:
    """What must be the same for a run to go on: all of it is public."""
    shapes = [[key, list(value.shape), str(value.dtype)] for key, value in losses.model.state_dict().items()]
    return {"plan": json.loads(plan.to_json()), "model": shapes, "name": name, "views": losses.views}


# --- paying: The whole run is paid for before its first row is read, and never a second time. ---


MOST_CLAIMS = 1_000_000  # as many answers as a charge of the ledger pays for


def pay_for_run(
    session: Payer | None, unit: str, plan: RunPlan, name: str, folder: RunFolder | None, model: nn.Module
) -> None:
    """Charge the run, unless it was charged before, and refuse a folder that would draw its steps again.

    A payer knows a run with a folder by its key, and is asked each time: it charges the key once, also if the run was
    killed between the charge and its note in the folder, and a payer that was never charged does not take the word of
    a folder for it. A ledger keeps the claims of the run as well; with another payer they are in the folder alone.
    """
    earlier_runs(model, object() if folder is None else folder.run, plan.unit)  # Refuses weights of another unit.
    ledger = _ledger_of(session)
    if folder is None:
        pay(session, _price(plan), purpose=_purpose(name), unit=unit)
        return
    if session is not None and ledger is not None:
        folder.use_ledger(_charged(session, unit, ledger, plan, name, folder))
    else:
        folder.check_place(plan.steps)
        if session is None:
            return
        pay(session, _price(plan), purpose=_purpose(name), unit=unit, idempotency_key=folder.key)
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


def _charged(session: Payer, unit: str, ledger: Ledger, plan: RunPlan, name: str, folder: RunFolder) -> LedgerClaims:
    """Charge a run with room for its claims; return what the ledger knows of them."""
    before = ledger.charged(folder.key)
    # A charge that an earlier release made has no room for several claims, and stays as it is.
    parts = None if before is not None and "parts" not in before.content else min(plan.steps, MOST_CLAIMS)
    room: dict[str, Any] = {"idempotency_key": folder.key, "parts": parts, "unit": unit}
    session.charge(plan.event, relation=Relation.ADD_REMOVE, purpose=_purpose(name), **room)
    charge = ledger.charged(folder.key)
    if charge is None:
        raise LedgerDamaged("the charge of this run is not found under its key: verify the ledger")
    return LedgerClaims(ledger, charge, plan.steps)
