"""A private training run: batches go out, losses come back, and noise is added when a logical batch is complete."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, Self, final

import torch
from torch import Tensor, nn

from discreet.custodian_debug import ConstantFailure
from discreet.errors import DiscreetError, Refused
from discreet.exact import up
from discreet.learn.secret_chance import renew_torch_generator
from discreet.learn.torch.batches import TrainingRows, Tree, leaves
from discreet.learn.torch.checkpoints import RunFolder
from discreet.learn.torch.clipping.tape import RunHook
from discreet.learn.torch.export import WeightsPromise, export_weights
from discreet.learn.torch.layers.made_up_rows import bits
from discreet.learn.torch.layers.row_separation_probe import Probed
from discreet.learn.torch.layers.secret_draws import SecretFunctions
from discreet.learn.torch.noisy_step import NoisyStep
from discreet.learn.torch.progress import StepDone, StepsSpent, TrainingReport, progress_line
from discreet.learn.torch.row_losses import RowLosses, as_pair, check_losses
from discreet.learn.torch.run_guard import Guard, RunState, earlier_runs, remember_steps
from discreet.learn.training.sampling import RunSampler
from discreet.privacy import epsilon
from discreet.privacy.relation import Relation

__all__ = ["Callback", "Handed", "PrivateTraining", "Turns", "Witness"]

# --- turns: Whose turn it is: a batch is handed out, its losses come back once, and only then comes the next. ---


_LOOP = "for x, y in private.batches():\n             private.step(loss(model(x), y))"


@final
@dataclass(frozen=True, slots=True)
class Handed:
    """A physical batch that waits for its losses."""

    inside: Tensor  # which of its slots hold a record; private
    last: bool  # whether it completes the logical batch; private


@final
class Turns:
    """Refuse losses that nobody asked for, batches that are skipped, and two loops at once."""

    def __init__(self) -> None:
        self._loop = 0
        self._open: Handed | None = None

    def begin(self) -> int:
        """Start a loop; what an earlier one left open is dropped, and it cannot go on."""
        self._loop += 1
        self._open = None
        return self._loop

    def hand_out(self, loop: int, handed: Handed) -> None:
        """Wait for the losses of a batch."""
        self.check(loop)
        self._open = handed

    def check(self, loop: int) -> None:
        """Refuse to hand out a batch while another one waits, or for a loop that was left."""
        if loop != self._loop:
            raise Refused("another loop over private.batches() has begun: go on with that one")
        if self._open is not None:
            raise Refused(
                "a batch was skipped: its losses never came",
                reason="each batch that is handed out is part of one noisy step",
                way_out=f"give every batch to private.step, as in\n         {_LOOP}",
            )

    def take(self) -> Handed:
        """Return the batch whose losses come now."""
        if self._open is None:
            raise Refused(
                "there is no batch that waits for losses",
                reason="each batch is stepped once: a second time would count its rows twice",
                way_out=f"call private.step once for every batch, as in\n         {_LOOP}",
            )
        return self._open

    def close(self) -> None:
        """The losses have come."""
        self._open = None


Callback = Callable[[StepDone], object]


@final
class PrivateTraining:
    """A run that `make_private` has prepared and paid for.

    Guarantee   `plan.event`, for adding or removing one row, or one person with all their rows where the run has ids:
                all weights that this run ever shows together.
    Theorem     Every step is one release of the plan; what follows the noise is post-processing. A step is claimed
                before its noise is drawn and is never drawn again, so at most `plan.steps` are released, in however
                many processes. [ACGMMTZ16]

    Not private, and never shown or kept: the losses of rows, how many rows a batch has, and how many batches a step
    has. Whoever runs the loop sees them; they belong to whoever holds the data.

    Args:
        report: The plan and the layers.
        rows: The private rows.
        parts: What clips, adds noise and steps.
        sampler: Which rows take part in which step.
        losses: What computes one loss a row.
        probed: What is known of the model's layers.
        name: What the run is called.
        folder: Where checkpoints are, if there are any.
        every: After how many steps one is written.
        watch: Public rows, whose loss may be shown.
        callback: Called after every noisy step.
        is_paid: Whether a payer was charged for the run; then every failure of a step reads the same.

    Examples:
        >>> import torch
        >>> model = torch.nn.Linear(2, 2)
        >>> rows = torch.randn(256, 2), torch.randint(2, (256,))
        >>> private = dp.make_private(
        ...     model, torch.optim.SGD(model.parameters(), lr=0.1), rows,
        ...     loss=torch.nn.CrossEntropyLoss(reduction="none"),
        ...     epsilon=8, delta=1e-5, public_rows=256, batch_size=64, steps=2,
        ... )
        >>> for batch in private.batches():
        ...     private.step(private.losses(batch))
        >>> private.finished
        True
    """

    def __init__(
        self,
        *,
        report: TrainingReport,
        rows: TrainingRows,
        parts: NoisyStep,
        sampler: RunSampler,
        losses: RowLosses,
        probed: Probed,
        name: str,
        folder: RunFolder | None,
        every: int,
        watch: Tree | None,
        callback: Callback | None,
        is_paid: bool,
    ) -> None:
        self.plan = report.plan
        self.report = report
        self._rows, self._parts, self._losses, self._probed, self._name = rows, parts, losses, probed, name
        self._folder, self._every, self._watch, self._callback = folder, every, watch, callback
        self._sampler, self._turns = sampler, Turns()
        # Once it is paid, whatever fails in `fit` looks the same; whoever writes a loop has the rows in their hands.
        # Without a charge the words of torch and of data sets, which hold values of rows, are still hidden, and
        # refusals of ours say what is wrong with a loop.
        self._guarding = ConstantFailure() if is_paid else nullcontext()
        self._hiding = ConstantFailure(but=() if is_paid else (DiscreetError,))
        self._closed = self._lent = False
        self._standing = self._resumed()
        self._kept = self._standing.begun  # where the last checkpoint stands
        run: object = object() if folder is None else folder.run
        self._earlier = earlier_runs(losses.model, run, self.plan.unit)
        remember_steps(losses.model, run, self.plan, self._standing)
        self._guard = Guard(losses.model, parts.optimizer)
        self._witness, self._chance = Witness(losses), SecretFunctions(losses.model)
        self._process = os.getpid()
        self._end = weakref.finalize(self, _let_go, parts, self._guard, self._witness, self._chance, folder)
        self._free_model()

    @property
    def model(self) -> nn.Module:
        """The model that is trained."""
        return self._losses.model

    @property
    def epsilon(self) -> float:
        """What the whole run spends at the plan's delta: what the ledger was charged for, rounded up."""
        return self.plan.epsilon(self.plan.delta)

    @property
    def spent(self) -> StepsSpent:
        """What the steps so far have spent, lost ones included."""
        steps = self._standing.begun
        return StepsSpent(
            steps=steps, event=self.plan.after(steps), epsilon=self._epsilon_after(steps), delta=up(self.plan.delta)
        )

    @property
    def steps_taken(self) -> int:
        """How many steps the weights have learnt from; fewer than were spent if a crash lost some."""
        return self._standing.taken

    @property
    def finished(self) -> bool:
        """Whether all steps of the plan are spent."""
        return self._standing.begun >= self.plan.steps

    def batches(self) -> Iterator[Tree]:
        """Hand out physical batches until all steps are spent; every one goes to `step` before the next.

        A loop that is left in the middle loses the step at hand; another one goes on with the next.
        """
        self._check_open()
        loop = self._turns.begin()
        while not self.finished:
            self._begin_step()
            with self._guarding:
                pieces = self._sampler.draw(self._rows.size)
            for place, piece in enumerate(pieces):
                with self._hiding:
                    batch, inside = self._rows.batch(*piece)
                self._renew_chance()
                self._turns.hand_out(loop, Handed(torch.from_numpy(inside), place == len(pieces) - 1))
                self._witness.expect(batch)
                yield batch
                self._turns.check(loop)
            if not pieces:
                self._finish_step()

    def losses(self, batch: Tree) -> Tensor:
        """Return one loss for every row of a batch, averaged over its views if there is an augmentation."""
        with self._hiding:
            return self._witness.compute(batch)

    def step(self, losses: Tensor) -> None:
        """Take the losses of the batch at hand; with the last one of a logical batch comes the noisy step."""
        self._take(losses, hiding=nullcontext())

    def _take(self, losses: Tensor, *, hiding: AbstractContextManager[object]) -> None:
        """Take losses. Their shape and whether they have a gradient may depend on rows, so `hiding` is about both."""
        self._check_open()
        handed = self._turns.take()
        self._guard.check()
        self._probed.require(self.model)
        with hiding:
            losses = check_losses(losses, len(handed.inside))
            self._witness.check(losses)
        self._add(losses, handed)
        if handed.last:
            self._finish_step()

    def fit(self, *, progress: bool = True) -> Self:
        """Train until all steps are spent, with a line that shows how far it is."""
        done, total, shown = self._standing.begun, self.plan.steps, self._callback
        line = progress_line(done, total, self._epsilon_after, self.epsilon) if progress else nullcontext(None)
        try:
            with line as tell:
                self._callback = _both(shown, tell)
                for batch in self.batches():
                    self._take(self.losses(batch), hiding=self._hiding)
        except KeyboardInterrupt:
            if not self._guard.in_step:
                self.save()
            raise
        finally:
            self._callback = shown
        return self

    def save(self) -> None:
        """Write a checkpoint now; the run does so by itself at the end of every block of claimed steps."""
        self._check_own()
        if self._folder is not None:
            self._folder.save(self._standing.begun, self._standing.packed(self.model, self._parts))
            self._kept = self._standing.begun

    def export(self, path: str | Path) -> WeightsPromise:
        """Write the weights, averaged if there is an average, with what is promised about them."""
        self._check_own()
        averaged = self._parts.average is not None
        promise = WeightsPromise.of(self.plan, self._name, averaged=averaged, earlier=self._earlier)
        with self.averaged():
            export_weights(Path(path), self.model.state_dict(), promise)
        return promise

    @contextmanager
    def averaged(self) -> Iterator[nn.Module]:
        """Lend the model with its averaged weights; without an average as it is."""
        self._check_own()
        average, weights = self._parts.average, self._parts.weights
        if average is None:
            yield self.model
            return
        own = [weight.detach().clone() for weight in weights]
        self._lent = True
        with self._guard.stepping():
            _set(weights, average.averages)
        try:
            yield self.model
        finally:
            self._lent = False
            with self._guard.stepping():
                _set(weights, own)

    def close(self) -> None:
        """End the run: the model and the optimiser are free again, and another process may go on with its folder."""
        self._closed = True
        self._turns.begin()
        self._end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"PrivateTraining({self._name!r}, step {self._standing.begun:,} of {self.plan.steps:,})"

    def __reduce__(self) -> NoReturn:
        raise Refused(
            "a run cannot be copied or pickled: each copy would draw its own noise for the same steps",
            way_out="say checkpoint=… and go on from that folder",
        )

    def _renew_chance(self) -> None:
        """Views draw from torch's generator; layers that would are refused or replaced."""
        if self._losses.augment is not None:
            renew_torch_generator()

    def _begin_step(self) -> None:
        """Claim the next step, durably where there is a folder, and start an empty sum."""
        number = self._standing.begun
        if self._folder is not None and number >= self._folder.claimed:
            self._folder.claim(min(self.plan.steps, number + self._every))
        self._standing.begun = number + 1
        self._parts.sums.reset()

    def _add(self, losses: Tensor, handed: Handed) -> None:
        """Add a batch once, whatever happens: interrupted, the logical step is given up and its loop is over."""
        self._turns.close()
        try:
            with self._guarding:
                self._parts.sums.add(losses, handed.inside)
        except BaseException:
            self._turns.begin()
            self._parts.sums.reset()
            raise

    def _finish_step(self) -> None:
        self._guard.check()
        clip = self._parts.clip
        with self._guard.stepping(), self._guarding:
            self._parts.run()
        self._standing.taken += 1
        if self._folder is not None and self._is_block_done(self._folder):
            self.save()
        if self._callback is not None:
            self._callback(self._told(clip))
        self._free_model()

    def _free_model(self) -> None:
        """Take the hooks off the model once no step is left, so that it is saved and compiled like any other."""
        if self.finished:
            self._witness.close()
            self._chance.close()
            self._parts.sums.close()

    def _is_block_done(self, folder: RunFolder) -> bool:
        return self._standing.begun >= min(folder.claimed, self._kept + self._every)

    def _told(self, clip: float) -> StepDone:
        return StepDone(
            step=self._standing.begun,
            steps=self.plan.steps,
            learning_rate=float(self._parts.optimizer.param_groups[0]["lr"]),
            clip=clip,
            public_loss=self._public_loss(),
        )

    def _public_loss(self) -> float | None:
        if self._watch is None:
            return None
        with torch.no_grad(), _evaluating(self.model):
            return float(self._losses.of_view(self._watch).mean())

    def _epsilon_after(self, steps: int) -> float:
        return epsilon(self.plan.after(steps), self.plan.delta, relation=Relation.ADD_REMOVE)

    def _resumed(self) -> RunState:
        """Go on behind everything that was claimed, from the newest weights there are."""
        if self._folder is None:
            return RunState()
        content = self._folder.latest()
        standing = RunState() if content is None else RunState.restored(content, self.model, self._parts)
        standing.begun = self._folder.claimed
        return standing

    def _check_open(self) -> None:
        if self._closed:
            raise Refused(
                "this run is closed, or another one has taken its model over",
                way_out="call make_private again; with the same checkpoint folder it goes on where it was",
            )
        if os.getpid() != self._process:
            raise Refused(
                "this run belongs to the process that made it: a copy of it would draw other noise for the same steps",
                way_out="train in one process; with a checkpoint folder another one can go on after this one is closed",
            )
        self._check_lent()

    def _check_own(self) -> None:
        """Refuse to give away, or to keep, weights that are not what the run has made."""
        self._check_lent()
        self._guard.check()

    def _check_lent(self) -> None:
        if self._lent:
            raise Refused("the model has its averaged weights now: leave `with private.averaged()` before you go on")


def _let_go(
    parts: NoisyStep, guard: Guard, witness: Witness, chance: SecretFunctions, folder: RunFolder | None
) -> None:
    """Give model and optimiser back, and let another process train in the folder."""
    parts.noise.close()
    parts.sums.close()
    guard.close()
    witness.close()
    chance.close()
    if folder is not None:
        folder.close()


@contextmanager
def _evaluating(model: nn.Module) -> Iterator[None]:
    """Switch every layer to evaluation, and back to how it was."""
    training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        yield
    finally:
        for module in training:
            module.training = True


def _both(one: Callback | None, other: Callback | None) -> Callback | None:
    callbacks = [callback for callback in (one, other) if callback is not None]

    def call(done: StepDone) -> None:
        for callback in callbacks:
            callback(done)

    return call if callbacks else None


def _set(weights: tuple[nn.Parameter, ...], values: list[Tensor]) -> None:
    with torch.no_grad():
        for weight, value in zip(weights, values, strict=True):
            weight.copy_(value)


# --- witness ---
# Whether losses that come back are the loss of the model on the batch that was handed out, and nothing else.
#
# What was tried on made-up rows is `loss(model(x), y)`. A loop that mixes rows on the way (mix-up, a batch mean,
# another
# order, random changes from a seed that the world knows) would train on something that was never tried. So the model
# must
# have been called with the batch as it is, and the losses must be, bit for bit, what the given loss makes of its
# output.


@final
class Witness:
    """Remembers the batch at hand, what the model was called with since, and what it said."""

    def __init__(self, losses: RowLosses) -> None:
        self._losses = losses
        self._batch: Tree = ()
        self._versions: list[int] = []
        self._calls: list[tuple[list[Tensor], Any]] = []
        self._vouched: Tensor | None = None
        self._hook = losses.model.register_forward_hook(RunHook(self._see), with_kwargs=True)

    def expect(self, batch: Tree) -> None:
        """Forget what was; wait for the losses of this batch."""
        self._batch, self._versions = batch, _versions(batch)
        self._calls, self._vouched = [], None

    def compute(self, batch: Tree) -> Tensor:
        """Compute the losses of a batch, or of views of it, and vouch for them if it is the batch at hand."""
        found = self._losses.of(batch)
        if _same(leaves(batch), leaves(self._batch)):
            self._vouched = found
        return found

    def check(self, losses: Tensor) -> None:
        """Refuse losses of anything else than the batch at hand; then let go of what was seen."""
        self._check(losses)
        self._calls, self._vouched = [], None

    def _check(self, losses: Tensor) -> None:
        if self._versions != _versions(self._batch):
            raise _refused("the batch was changed in place")
        if losses is self._vouched:
            return
        if self._losses.augment is not None:
            raise _refused("these losses are not of views of the batch", "private.step(private.losses(batch))")
        x, y = as_pair(self._batch)
        said = [output for seen, output in self._calls if _same(seen, leaves(x))]
        if not said:
            raise _refused("the model was not called with the batch as it was handed out")
        if not any(_same([losses], [self._again(output, y)]) for output in said):
            raise _refused("these losses are not what the loss given to make_private makes of the model's output")

    def close(self) -> None:
        """Take the hook off the model."""
        self._hook.remove()
        self.expect(())

    def _see(self, model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        # A deep copy of the model has this hook too.
        if torch.is_grad_enabled() and model is self._losses.model:
            self._calls.append(([leaf for leaf in leaves((args, kwargs)) if isinstance(leaf, Tensor)], output))

    @torch.no_grad()
    def _again(self, output: Any, y: Tree) -> object:
        return self._losses.loss(output, y)


def _versions(batch: Tree) -> list[int]:
    return [leaf._version for leaf in leaves(batch) if isinstance(leaf, Tensor)]


def _same(one: list[Any], other: list[Any]) -> bool:
    """Whether two lists hold the same tensors, bit for bit."""
    return len(one) == len(other) and all(map(_equal, one, other))


def _equal(one: object, other: object) -> bool:
    if one is other:
        return True
    if not isinstance(one, Tensor) or not isinstance(other, Tensor) or one.shape != other.shape:
        return False
    return one.dtype == other.dtype and torch.equal(bits(one[None]), bits(other[None]))


def _refused(problem: str, instead: str = "private.step(loss(model(x), y))") -> Refused:
    return Refused(
        problem,
        reason="only loss(model(x), y) on the rows of the batch as they are was tried and keeps rows apart",
        way_out=f"write {instead} with the loss given to make_private; put what prepares a row into the data set or "
        "the model, what varies it into augment=…, and what weighs it into the loss",
    )
