"""Whether rows stay apart: a model is tried on made-up rows, and compared bit for bit."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor, nn

from discreet import noise
from discreet.errors import InvalidParameter, Refused
from discreet.learn.torch.clipping.tape import all_modules, autocast_now, shared_by_rows
from discreet.learn.torch.layers.made_up_rows import (
    KINDS,
    Loss,
    MadeUp,
    Tree,
    WatchedRun,
    bits,
    losses_of,
    mapped,
    said_once,
    tensors,
    watch,
    watch_loss,
)
from discreet.learn.torch.layers.whole_number_levels import Levels, Ways, candidates, float_levels, found_levels

__all__ = [
    "MODE",
    "Finding",
    "Probed",
    "buffers_changed",
    "by_place",
    "cannot_run",
    "coupled",
    "not_shared",
    "only_rounding",
    "probe",
    "remembers",
    "require_alike",
    "require_losses",
    "require_rows",
    "require_unwritten",
    "rounding",
    "stops",
]

# --- findings: What the probe finds wrong: where, why, and the way out. ---


Finding = Callable[[str, str], Refused]

_PUBLIC_ROWS = (
    "if it needs other values, give two or more rows that are no secret: watch=(x, y) of make_private, or "
    "public=(x, y) of probe"
)


def cannot_run(error: BaseException) -> Refused:
    wide = (
        "your rows are 64-bit floats and the weights are not: hand in x.float(); or " if "ouble" in str(error) else ""
    )
    return Refused(
        "the model or its loss could not run on made-up rows",
        reason=f"it raised {type(error).__name__}: {_first_line(error)} (made-up floats are between 0 and 1, whole "
        "numbers 0 or 1 at first)",
        way_out=f"{wide}fix the model; {_PUBLIC_ROWS}",
    )


def _first_line(error: BaseException) -> str:
    """Return what the model said of rows that are made up, or public."""
    return (str(error).strip().splitlines() or ["no message"])[0].rstrip(".")


def stops() -> Refused:
    return Refused(
        "the model or its loss stops with an error when a row holds zeros, large numbers or not-a-number",
        reason="whether training stops would tell about a row",
        way_out="take such rows without an error: binary_cross_entropy_with_logits instead of BCELoss, no assertions "
        "on values, torch.nan_to_num at the start of forward",
    )


def require_losses(losses: Tensor, rows: int) -> None:
    """One finite loss for each row."""
    if losses.shape != (rows,):
        raise Refused(
            f"the loss has shape {tuple(losses.shape)} for a batch of {rows} rows",
            reason="there must be one loss for each row, so that each row's gradient can be clipped",
            way_out=_loss_way_out(losses, rows),
        )
    if not losses.requires_grad:
        raise Refused(
            "the loss does not depend on any trained parameter",
            reason="it was computed without gradients",
            way_out="compute it from the output of the model, outside of torch.no_grad and without detach",
        )
    if not bool(losses.isfinite().all()):
        raise Refused(
            "the loss is infinite or not a number on made-up rows",
            reason="rows cannot be compared there",
            way_out=_PUBLIC_ROWS,
        )


def _loss_way_out(losses: Tensor, rows: int) -> str:
    if losses.dim() == 0:
        return "use reduction='none', for example nn.CrossEntropyLoss(reduction='none')"
    if len(losses) == rows:
        return "average what belongs to one row: losses.flatten(1).mean(dim=1)"
    return "return losses with one number for each row, rows first"


def require_rows(run: WatchedRun, rows: int) -> None:
    """Each layer works on rows of the batch, and some layer is used at all."""
    for call in run.calls:
        if call.output.dim() == 0 or len(call.output) != rows:
            raise Refused(
                f"layer {call.path} gives shape {tuple(call.output.shape)} for a batch of {rows} rows",
                reason="the first dimension must be the batch, or a row's own gradient cannot be told from the others'",
                way_out="keep the batch first inside the model; give positions for each row: "
                "self.positions(torch.arange(T).expand(len(x), T)); send all rows through a layer, not some of them",
            )


def require_unwritten(run: WatchedRun, before: Tree) -> None:
    for call in run.calls:
        if call.output._version != call.version:
            raise Refused(
                f"the output of layer {call.path} was changed in place",
                reason="its gradient would be that of something else",
                way_out="write x = x + y instead of x += y, relu(x) instead of relu_(x), and so on",
            )
    for old, new in zip(tensors(before), tensors(run.batch), strict=True):
        if not torch.equal(bits(old), bits(new)):
            raise Refused(
                "the model or its loss changes the batch in place",
                reason="what one pass leaves behind would be seen by the next",
                way_out="work on a copy: x = x.clone(), or write x = x * 2 instead of x *= 2",
            )


def buffers_changed(model: nn.Module, before: list[Tensor]) -> Refused:
    after = [bits(buffer.reshape(1, -1)) for buffer in model.buffers()]
    names = [name for name, _ in model.named_buffers()]
    changed = [name for name, old, new in zip(names, before, after, strict=True) if not torch.equal(old, new)] or [
        "a parameter"
    ]
    return Refused(
        f"running the model changes {', '.join(changed)}",
        reason="what it keeps of the rows it saw leaves with the model, without noise",
        way_out="use layers without running statistics; change parameters by the optimizer only",
    )


def coupled(path: str, what: str) -> Refused:
    return Refused(
        f"rows of a batch are mixed at {path}: {what} depends on other rows",
        reason="then one record changes the gradients of others, and clipping does not bound what it can do",
        way_out="compute with one row at a time: no mean, softmax, sort or norm over dimension 0, no loss that "
        "compares rows, no scaling by the batch; GroupNorm or LayerNorm instead of statistics of the batch",
    )


def by_place(path: str, what: str) -> Refused:
    return Refused(
        f"a row is treated by its place in the batch at {path}: {what} differs",
        reason="one record more moves another one to another place, which must not change its gradient",
        way_out="treat all rows of a batch alike: nothing that depends on the index of a row",
    )


def remembers(path: str, what: str) -> Refused:
    return Refused(
        f"the same rows give something else the second time, at {path}: {what} differs",
        reason="the model remembers earlier rows, or draws random numbers outside of torch",
        way_out="keep nothing between batches (hidden states, counters), and leave chance to nn.Dropout",
    )


def not_shared(names: list[str]) -> Refused:
    return Refused(
        f"{', '.join(names)}: with one copy for each row of the batch the model computes something else",
        reason="a parameter of (1, …, …) is taken for one that is added to, multiplied with or put beside every row",
        way_out="use it so; or hold it in discreet.learn.torch.layers.Constant and call that with the batch",
    )


def only_rounding(first: Tensor, second: Tensor) -> bool:
    """Whether two tensors that should be equal differ by no more than rounding does."""
    if not first.is_floating_point():
        return False
    size = first.detach().abs().amax()
    return bool(((first - second).detach().abs() <= 1e-5 * size).all())


def rounding(path: str, rows: int) -> Refused:
    return Refused(
        f"at {path} the last bits of a row depend on its place in the batch of {rows}, or on its companions",
        reason="the kernels of this machine treat rows by their address, or split this size unevenly among threads",
        way_out=f"choose a physical_batch that is a multiple of 32; start Python with {MODE}=AUTO in its environment "
        "or import discreet.learn.torch before anything is multiplied; torch.set_num_threads(1)",
    )


def require_alike(first: WatchedRun, second: WatchedRun) -> None:
    """Both runs called the same layers on the same shapes."""
    if [(c.path, c.output.shape) for c in first.calls] != [(c.path, c.output.shape) for c in second.calls] or [
        g is None for g in first.gradients
    ] != [g is None for g in second.gradients]:
        raise Refused(
            "which layers run, or on which shapes, depends on the values of the rows",
            reason="what one row takes part in must not depend on the others",
            way_out="run the same layers for all rows and choose by torch.where",
        )


Run = Callable[[Tree], WatchedRun]

_OF_WHOLE_NUMBERS: Ways = (
    (Levels.ends, Levels.none),
    (Levels.none, Levels.ends),
    (Levels.starts, Levels.none),
    (Levels.all, Levels.none),
)

# What torch, a model or a loss raises when it cannot take some rows.
_FAILURES = (RuntimeError, IndexError, ValueError, TypeError, KeyError, AttributeError, AssertionError)


@final
@dataclass(frozen=True, slots=True)
class Probed:
    """What was tried and held. It holds for this size of batch, these modes and this number of threads only."""

    layers: tuple[str, ...]
    physical_batch: int
    modes: tuple[bool, ...]
    threads: int
    autocast: torch.dtype | None

    def require(self, model: nn.Module) -> None:
        """Refuse if the model would now run otherwise than it was tried."""
        now = Probed(self.layers, self.physical_batch, *_surroundings(model))
        if now != self:
            raise Refused(
                "the model would run otherwise than it was tried",
                reason="train() or eval(), the number of threads of torch, or autocast was changed since then",
                way_out="set them before make_private and leave them so while it trains",
            )


def _surroundings(model: nn.Module) -> tuple[tuple[bool, ...], int, torch.dtype | None]:
    modes = tuple(module.training for module in all_modules(model))
    return modes, torch.get_num_threads(), autocast_now()


def probe(model: nn.Module, loss: Loss, example: Tree, physical_batch: int, *, public: Tree | None = None) -> Probed:
    """Try whether each row's floats depend on that row alone, or refuse with the layer and the way out.

    `example` is (x, y) of one row; only its shapes and types are used. `public`, if given, is (x, y) of at least two
    rows that are nobody's secret, for models that cannot run on made-up ones. Checked, with the loss and all layers
    that have parameters: one loss a row; nothing written in place, no buffer changed; the same rows give the same bits
    again; the gradient of a row's loss is exactly zero on every other row; a row's bits stay the same whatever its
    companions are, and whatever its slot is. Each pair of slots is told apart in at least one of the runs.
    """
    if physical_batch < 1:
        raise InvalidParameter("physical_batch must be at least 1")
    trial = _ProbeTrial(model, loss, MadeUp(example, public), physical_batch)
    base = trial.first()
    trial.again(base)
    trial.companions(base)
    trial.blanks(base)
    trial.whole_numbers(base)
    trial.floats(base)
    trial.copies(base)
    trial.gradients(base)
    trial.slots(base)
    layers = tuple(dict.fromkeys(call.path for call in base.calls))
    return Probed(layers, physical_batch, *_surroundings(model))


@final
@dataclass(frozen=True, slots=True)
class _ProbeTrial:
    model: nn.Module
    loss: Loss
    made_up: MadeUp
    size: int

    def run(self, batch: Tree, masks: Tensor | None = None, blank: Tensor | None = None) -> WatchedRun:
        return watch(self.model, self.loss, batch, torch.ones(self.size) if masks is None else masks, blank=blank)

    def first(self) -> WatchedRun:
        """One loss a row, one row of each output a row of the batch, and nothing changed by running."""
        batch = self.made_up.rows(self.size)
        before, buffers = mapped(torch.clone, batch), [bits_of(b) for b in self.model.buffers()]
        versions = [p._version for p in self.model.parameters()]
        try:
            run = self.run(batch)
        except _FAILURES as error:
            raise cannot_run(error) from error
        require_losses(run.losses, self.size)
        require_rows(run, self.size)
        require_unwritten(run, before)
        kept = all(torch.equal(old, bits_of(new)) for old, new in zip(buffers, self.model.buffers(), strict=True))
        if not kept or versions != [p._version for p in self.model.parameters()]:
            raise buffers_changed(self.model, buffers)
        return run

    def again(self, base: WatchedRun) -> None:
        """Other rows in between: nothing may be remembered."""
        self.run(self.made_up.rows(self.size))
        self._same(base, self.run(base.batch), remembers)

    def gradients(self, base: WatchedRun) -> None:
        targets = [call.output for call in base.calls if call.output.requires_grad]
        paths = [call.path for call in base.calls if call.output.requires_grad]
        for chosen in self._halves():
            # Not a number passes where a one would be multiplied by a weight that is zero so far, as a new head's is.
            weights = torch.zeros_like(base.losses).masked_fill(chosen, float("nan"))
            with torch.autocast("cpu", enabled=False):
                found = torch.autograd.grad(base.losses, targets, weights, allow_unused=True, retain_graph=True)
            for path, gradient in zip(paths, found, strict=True):
                if gradient is not None and bool((gradient[~chosen] != 0).any()):
                    raise coupled(path, "its gradient")

    def companions(self, base: WatchedRun) -> None:
        """Other companions, with other masks of dropout."""
        for kind, chosen in enumerate(self._halves_for_all_kinds()):
            others = self.made_up.others(self.size, kind)
            try:
                mixed = mapped(lambda row, other, keep=chosen: _mixed(row, other, keep), base.batch, others)
                run = self.run(mixed, masks=_masks(chosen))
            except _FAILURES as error:
                raise stops() from error
            slots = chosen.nonzero().flatten()
            self._same(base, run, coupled, slots, slots)

    def blanks(self, base: WatchedRun) -> None:
        """Companions of whole numbers cannot be not a number themselves, so what is looked up for them is.

        So are their copies of what all rows share: a row that uses another one's copy would clip for both of them.
        """
        for chosen in self._halves():
            try:
                run = self.run(base.batch, blank=~chosen)
            except _FAILURES as error:
                raise stops() from error
            slots = chosen.nonzero().flatten()
            self._same(base, run, coupled, slots, slots)

    def whole_numbers(self, base: WatchedRun) -> None:
        """All rows as full of some number, or as free of it, as they come, and then companions that are not.

        `mask.all()`, a cut to the longest row and a mean over the rows that have a label look at the whole batch.
        """
        if self.made_up.public is not None:
            self._known_ends(base)
        named, sizes = candidates(self.model, self.loss)
        x, y = base.batch
        inputs = found_levels(x, named, sizes, lambda some: self._takes((some, y)), target=False)
        self._level_by_level(base, [*inputs, *(None for _ in tensors(y))], self.run)
        self._targets(base, named, sizes)

    def _targets(self, base: WatchedRun, named: set[int], sizes: set[int]) -> None:
        x, y = base.batch
        run = self._loss_run(base)
        targets = found_levels(y, named, sizes, lambda some: self._takes((x, some), run), target=True)
        self._level_by_level(base, [*(None for _ in tensors(x)), *targets], run)

    def floats(self, base: WatchedRun) -> None:
        """The same for floats: signals that all end with padding, and masks of floats that hide nothing."""
        x, y = base.batch
        for inputs, ways in float_levels(x, lambda some: self._takes((some, y))):
            self._level_by_level(base, [*inputs, *(None for _ in tensors(y))], self.run, ways)
        run = self._loss_run(base)
        for targets, ways in float_levels(y, lambda some: self._takes((x, some), run)):
            self._level_by_level(base, [*(None for _ in tensors(x)), *targets], run, ways)

    def _loss_run(self, base: WatchedRun) -> Run:
        """Run the loss alone, on what the model said of the same rows; all of it where the loss needs more."""
        try:
            said = said_once(self.model, base.batch[0], self.size)
            if watch_loss(self.loss, said, base.batch).calls:
                return lambda batch: watch_loss(self.loss, said, batch)
        except _FAILURES:
            pass
        return self.run

    def _level_by_level(
        self, base: WatchedRun, levels: list[Levels | None], run: Run, ways: Ways = _OF_WHOLE_NUMBERS
    ) -> None:
        for turn in range(max((len(each.values) for each in levels if each is not None), default=0)):
            for kinds in ways:
                rows, others = (_with_levels(base.batch, levels, turn, kind) for kind in kinds)
                try:
                    plain = run(rows)
                except _FAILURES:
                    continue  # Not all that it takes may be taken together.
                if bool(plain.losses.isfinite().all()):
                    self._mixed_alike(plain, others, run)

    def _known_ends(self, base: WatchedRun) -> None:
        """The highest and the lowest numbers of public rows."""
        for highest in (True, False):
            self._mixed_alike(self.run(self.made_up.alike(base.batch, highest=highest)), base.batch, self.run)

    def _mixed_alike(self, plain: WatchedRun, others: Tree, run: Run) -> None:
        """Half of the rows stay as they were, and the others change."""
        for chosen in list(self._halves())[:1]:
            slots = chosen.nonzero().flatten()
            try:
                mixed = run(mapped(lambda row, other, keep=chosen: _mixed(row, other, keep), plain.batch, others))
            except _FAILURES as error:
                raise stops() from error
            self._same(plain, mixed, coupled, slots, slots)

    def _takes(self, batch: Tree, run: Run | None = None) -> bool:
        """Whether model and loss run on these rows, and give numbers."""
        try:
            losses = losses_of(self.model, self.loss, batch, self.size) if run is None else run(batch).losses
        except _FAILURES:
            return False
        return bool(losses.isfinite().all())

    def copies(self, base: WatchedRun) -> None:
        """What all rows share must mean the same when each row has a copy of its own."""
        shared = [f"{path}.{name}" for path, part in self.model.named_modules() for name in shared_by_rows(part)]
        if shared:
            plain = watch(self.model, self.loss, base.batch, torch.ones(self.size), copied=False).losses
            if plain.shape != base.losses.shape or not only_rounding(base.losses, plain):
                raise not_shared(shared)

    def slots(self, base: WatchedRun) -> None:
        """The rows in other places, and one row in all places."""
        orders = [
            torch.arange(self.size).flip(0),
            torch.arange(self.size).roll(1),
            torch.from_numpy(noise.permutation(self.size)),
        ]
        for order in [*orders, torch.zeros(self.size, dtype=torch.int64)]:
            run = self.run(mapped(lambda leaf, order=order: leaf[order], base.batch))
            self._same(base, run, by_place, order, torch.arange(self.size))

    def _halves_for_all_kinds(self) -> list[Tensor]:
        """Each half at least once, and at least one for each kind of companions."""
        halves = list(self._halves())
        return [*halves, *halves[: max(0, KINDS - len(halves))], *halves[: max(0, KINDS - 2 * len(halves))]]

    def _halves(self) -> Iterator[Tensor]:
        """Sets of slots so that for each two slots one set has the first and not the second."""
        places = torch.arange(self.size)
        for place in range((self.size - 1).bit_length()):
            one = (places >> place) % 2 == 1
            yield from (one, ~one)

    def _same(
        self,
        base: WatchedRun,
        run: WatchedRun,
        refuse: Finding,
        old: Tensor | None = None,
        new: Tensor | None = None,
    ) -> None:
        """The rows `new` of one run are, bit for bit, the rows `old` of the other."""
        require_alike(base, run)
        for (path, what, before), (_, _, after) in zip(base.seen(), run.seen(), strict=True):
            if before.dim() == 0 or len(before) != self.size:
                same = torch.equal(bits_of(before), bits_of(after))
            else:
                first, second = (before, after) if old is None or new is None else (before[old], after[new])
                same = torch.equal(bits(first), bits(second))
                if not same and only_rounding(first, second):
                    raise rounding(path, self.size)
            if not same:
                raise refuse(path, what)


def _mixed(row: Tensor, other: Tensor, keep: Tensor) -> Tensor:
    return torch.where(keep.reshape(-1, *(1,) * (row.dim() - 1)), row, other)


def _with_levels(batch: Tree, levels: list[Levels | None], turn: int, kind: Callable[..., Tensor]) -> Tree:
    """The batch with other whole numbers where there are levels."""
    each = iter(levels)

    def changed(leaf: Tensor) -> Tensor:
        level = next(each)
        return leaf if level is None else kind(level, leaf, turn)

    return mapped(changed, batch)


def _masks(chosen: Tensor) -> Tensor:
    """One for the chosen slots, below and above it in turn for the others: neither a maximum nor a minimum hides."""
    turn = (~chosen).cumsum(0) % 2
    return torch.where(chosen, 1.0, torch.where(turn == 0, 2.0, 0.5))


def bits_of(values: Tensor) -> Tensor:
    """The bytes of a tensor that has no rows."""
    return bits(values.reshape(1, -1))


# --- even_kernels: Ask the matrix library for results that do not depend on where in memory a row begins. ---
#
# MKL peels vectors by the alignment of their address, so two equal rows of 6 floats in one batch get sums that differ
# in
# their last bits. In its reproducible mode they do not, at the same speed. It reads the mode from the environment when
# it
# first multiplies, so this is set as soon as this package is imported; where something was multiplied before, the probe
# finds what is uneven and says what to do.


MODE = "MKL_CBWR"
os.environ.setdefault(MODE, "AUTO")
