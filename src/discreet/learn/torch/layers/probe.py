"""Whether rows stay apart: a model is tried on made-up rows, and compared bit for bit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor, nn

from discreet import noise
from discreet.errors import InvalidParameter, Refused
from discreet.learn.torch.layers import findings
from discreet.learn.torch.layers.made_up import KINDS, MadeUp, Tree, mapped
from discreet.learn.torch.layers.watching import Loss, WatchedRun, bits, watch

__all__ = ["Probed", "probe"]

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
    autocast: bool

    def require(self, model: nn.Module) -> None:
        """Refuse if the model would now run otherwise than it was tried."""
        now = Probed(self.layers, self.physical_batch, *_surroundings(model))
        if now != self:
            raise Refused(
                "the model would run otherwise than it was tried",
                reason="train() or eval(), the number of threads of torch, or autocast was changed since then",
                way_out="set them before make_private and leave them so while it trains",
            )


def _surroundings(model: nn.Module) -> tuple[tuple[bool, ...], int, bool]:
    modes = tuple(module.training for module in model.modules())
    return modes, torch.get_num_threads(), torch.is_autocast_enabled("cpu")


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

    def run(self, batch: Tree, masks: Tensor | None = None) -> WatchedRun:
        return watch(self.model, self.loss, batch, torch.ones(self.size) if masks is None else masks)

    def first(self) -> WatchedRun:
        """One loss a row, one row of each output a row of the batch, and nothing changed by running."""
        batch = self.made_up.rows(self.size)
        before, buffers = mapped(torch.clone, batch), [bits_of(b) for b in self.model.buffers()]
        versions = [p._version for p in self.model.parameters()]
        try:
            run = self.run(batch)
        except _FAILURES as error:
            raise findings.cannot_run(error) from error
        findings.require_losses(run.losses, self.size)
        findings.require_rows(run, self.size)
        findings.require_unwritten(run, before)
        kept = all(torch.equal(old, bits_of(new)) for old, new in zip(buffers, self.model.buffers(), strict=True))
        if not kept or versions != [p._version for p in self.model.parameters()]:
            raise findings.buffers_changed(self.model, buffers)
        return run

    def again(self, base: WatchedRun) -> None:
        """Other rows in between: nothing may be remembered."""
        self.run(self.made_up.rows(self.size))
        self._same(base, self.run(base.batch), findings.remembers)

    def gradients(self, base: WatchedRun) -> None:
        targets = [call.output for call in base.calls if call.output.requires_grad]
        paths = [call.path for call in base.calls if call.output.requires_grad]
        for chosen in self._halves():
            found = torch.autograd.grad(base.losses[chosen].sum(), targets, allow_unused=True, retain_graph=True)
            for path, gradient in zip(paths, found, strict=True):
                if gradient is not None and bool((gradient[~chosen] != 0).any()):
                    raise findings.coupled(path, "its gradient")

    def companions(self, base: WatchedRun) -> None:
        """Other companions, with other masks of dropout."""
        for kind, chosen in enumerate(self._halves_for_all_kinds()):
            others = self.made_up.others(self.size, kind)
            try:
                mixed = mapped(lambda row, other, keep=chosen: _mixed(row, other, keep), base.batch, others)
                run = self.run(mixed, masks=_masks(chosen))
            except _FAILURES as error:
                raise findings.stops() from error
            slots = chosen.nonzero().flatten()
            self._same(base, run, findings.coupled, slots, slots)

    def slots(self, base: WatchedRun) -> None:
        """The rows in other places, and one row in all places."""
        orders = [
            torch.arange(self.size).flip(0),
            torch.arange(self.size).roll(1),
            torch.from_numpy(noise.permutation(self.size)),
        ]
        for order in [*orders, torch.zeros(self.size, dtype=torch.int64)]:
            run = self.run(mapped(lambda leaf, order=order: leaf[order], base.batch))
            self._same(base, run, findings.by_place, order, torch.arange(self.size))

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
        refuse: findings.Finding,
        old: Tensor | None = None,
        new: Tensor | None = None,
    ) -> None:
        """The rows `new` of one run are, bit for bit, the rows `old` of the other."""
        findings.require_alike(base, run)
        for (path, what, before), (_, _, after) in zip(base.seen(), run.seen(), strict=True):
            if before.dim() == 0 or len(before) != self.size:
                same = torch.equal(bits_of(before), bits_of(after))
            else:
                first, second = (before, after) if old is None or new is None else (before[old], after[new])
                same = torch.equal(bits(first), bits(second))
                if not same and findings.only_rounding(first, second):
                    raise findings.rounding(path, self.size)
            if not same:
                raise refuse(path, what)


def _mixed(row: Tensor, other: Tensor, keep: Tensor) -> Tensor:
    return torch.where(keep.reshape(-1, *(1,) * (row.dim() - 1)), row, other)


def _masks(chosen: Tensor) -> Tensor:
    """One for the chosen slots, below and above it in turn for the others: neither a maximum nor a minimum hides."""
    turn = (~chosen).cumsum(0) % 2
    return torch.where(chosen, 1.0, torch.where(turn == 0, 2.0, 0.5))


def bits_of(values: Tensor) -> Tensor:
    """The bytes of a tensor that has no rows."""
    return bits(values.reshape(1, -1))
