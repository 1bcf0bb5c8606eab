"""Sums of clipped gradients: one forward pass, one backward pass to the outputs of layers, no gradient twice."""

from __future__ import annotations

from fractions import Fraction
from math import frexp
from typing import final

import torch
from torch import Tensor, nn

from discreet.errors import InvalidParameter, Refused
from discreet.exact import Number
from discreet.learn.torch.clipping import bounds
from discreet.learn.torch.clipping.checks import check_arithmetic, check_losses, check_model, check_rows_apart
from discreet.learn.torch.clipping.factors import factors_down, share_down
from discreet.learn.torch.clipping.forms import Form
from discreet.learn.torch.clipping.graph import check_used_through_layers
from discreet.learn.torch.clipping.grouping import grouped
from discreet.learn.torch.clipping.keeping import keep_memory
from discreet.learn.torch.clipping.parts import Part, combine
from discreet.learn.torch.clipping.rules import parts_of
from discreet.learn.torch.clipping.slots import alike, check_slots
from discreet.learn.torch.clipping.tape import LayerCall, Tape
from discreet.learn.training.clips import AdaptiveClip, Clip, read_clip

__all__ = ["ClippedSums"]

Gradients = list[tuple[Tensor | None, ...]]


@final
class ClippedSums:
    """Sum the gradients of single records, each clipped, over the physical batches of a step.

    Use: an ordinary forward pass of `physical_batch` rows on the model; `add` with one loss a row; after the last
    batch of the step `take`. Rows with `inside` false contribute nothing, and neither do rows whose gradient is
    infinite or not a number.

    Guarantee   Let the records of a step stand in uniformly random order, cut into physical batches. One record more
                or less changes what `take` returns, times `grid`, by at most bound (1 + slack) + 2 grid sqrt(P) in
                the l2 norm, P the number of parameters, if what the model computes for a row does not depend on
                the slot and the companions of the row.
    Theorem     `bounds.py` has the derivation: norms are bounded from above including their own rounding, factors are
                rounded down, sums in floats are short, and what is added up over batches are whole grid steps, exactly.
    """

    def __init__(self, model: nn.Module, *, clip: Clip | Number, grid: Number, physical_batch: int) -> None:
        check_model(model, physical_batch)
        self.clip: Clip = read_clip(clip)
        self.grid = _power_of_two(grid)
        self.physical_batch = physical_batch
        self.parameters: tuple[nn.Parameter, ...] = tuple(each for each in model.parameters() if each.requires_grad)
        self.threshold = float(self.clip.initial) if isinstance(self.clip, AdaptiveClip) else float(self.clip.bound)
        self._names = {value: name for name, value in model.named_parameters() if value.requires_grad}
        self._groups = grouped(model, self.clip)
        self._share = share_down(self.clip, len(self._groups))
        self._tape = Tape(model, physical_batch)
        self._checked: set[object] = set()
        self._total: Tensor | None = None  # whole grid steps; none before the first batch
        self._batches = self._count = 0
        keep_memory()

    @property
    def slack(self) -> Fraction:
        """How much one record can change the sum beyond the clip by float errors, as a multiple of the clip."""
        return bounds.slack_of(self.physical_batch)

    @property
    def count(self) -> int:
        """Rows since `take` whose norm is at most `threshold`, less those where it is not. Not private."""
        return self._count

    @torch.no_grad()
    def add(self, losses: Tensor, inside: Tensor) -> None:
        """Add the clipped gradients of one physical batch, given the losses of its rows after a forward pass."""
        check_arithmetic()
        check_losses(losses, inside, self.physical_batch)
        with self._tape.paused(), torch.autocast("cpu", enabled=False):
            self._add(self._forms(*self._backward(losses)), inside)
        self._tape.clear()

    def take(self) -> Tensor:
        """Return the sum in whole grid steps, flat in the order of `parameters`, and begin anew."""
        total = self._zeros() if self._total is None else self._total
        self.reset()
        return total

    def reset(self) -> None:
        """Forget the tape, the sum and the count."""
        self._tape.clear()
        self._total = None
        self._batches = self._count = 0

    def close(self) -> None:
        """Take the hooks off the model."""
        self._tape.close()

    def _backward(self, losses: Tensor) -> tuple[list[LayerCall], Gradients]:
        """Return the calls that the losses depend on, with the gradients of their outputs."""
        calls = self._tape.calls
        key = (torch.get_num_threads(), *((call.name, *(out.shape for out in call.outputs)) for call in calls))
        checked = key in self._checked
        found = _outer_gradients(losses, calls, torch.ones_like(losses), keep=not checked)
        used = [at for at, row in enumerate(found) if any(each is not None for each in row)]
        if not used:
            raise _no_forward()
        calls, gradients = [calls[at] for at in used], [found[at] for at in used]
        for call in calls:
            call.check_unchanged()
        if not checked:
            self._check(losses, calls, gradients)
            self._checked.add(key)
        return calls, gradients

    def _check(self, losses: Tensor, calls: list[LayerCall], gradients: Gradients) -> None:
        """Check what depends on shapes only: rows come first, layers own what they use, slots are alike."""
        for call, found in zip(calls, gradients, strict=True):
            call.check_rows(self.physical_batch, found)
        last = torch.zeros_like(losses)
        last[-1] = 1.0
        check_rows_apart(calls, _outer_gradients(losses, calls, last, keep=True))
        check_used_through_layers(losses, calls, self._names)
        check_slots(self._forms(*alike(calls, gradients)).values())

    def _forms(self, calls: list[LayerCall], gradients: Gradients) -> dict[nn.Parameter, Form]:
        """Collect by parameter what its calls contribute, and join it."""
        parts: dict[nn.Parameter, list[Part]] = {}
        for call, outer in zip(calls, gradients, strict=True):
            for name, part in parts_of(call, outer).items():
                parts.setdefault(call.trained[name], []).append(part)
        return {parameter: combine(several) for parameter, several in parts.items()}

    def _add(self, forms: dict[nn.Parameter, Form], inside: Tensor) -> None:
        """Sum up one batch, round it to the grid, and add it to what is there: whole numbers, exactly."""
        self._make_room()
        batch = self._zeros()
        places = dict(zip(self.parameters, torch.split(batch, [p.numel() for p in self.parameters]), strict=True))
        for group in self._groups:
            mine = [(forms[parameter], places[parameter]) for parameter in group if parameter in forms]
            if mine:
                self._add_group(mine, inside)
        batch.mul_(1 / self.grid).round_()
        self._total = batch if self._total is None else self._total.add_(batch)

    def _zeros(self) -> Tensor:
        return torch.zeros(sum(each.numel() for each in self.parameters), dtype=torch.float64)

    def _add_group(self, places: list[tuple[Form, Tensor]], inside: Tensor) -> None:
        """Clip what belongs together, and add it in its place."""
        forms = [form for form, _ in places]
        squares = sum_of([form.squares_up() for form in forms])
        sizes = [size for form in forms if (size := form.sizes()) is not None]
        size = sum_of(sizes) if sizes else torch.zeros_like(squares)
        self._count_below(squares, inside)
        factors = factors_down(self.clip, self.threshold, self._share, squares, size).mul_(inside)
        dropped = ~torch.isfinite(squares)
        drop = bool(dropped.any())
        for form, place in places:
            clean = form.without(dropped) if drop else form
            clean.add_to(place, factors)

    def _count_below(self, squares: Tensor, inside: Tensor) -> None:
        if isinstance(self.clip, AdaptiveClip):
            below = int(((squares.sqrt() <= self.threshold) & inside).sum())
            self._count += 2 * below - int(inside.sum())

    def _make_room(self) -> None:
        """Whole numbers up to 2^53 add exactly in float64; refuse a sum that could leave them."""
        self._batches += 1
        most = (
            Fraction(self._batches * self.physical_batch)
            * (self.clip.bound * 2 + Fraction(self.grid))
            / Fraction(self.grid)
        )
        if most >= 1 << 53:
            raise Refused(
                "the step has too many records for an exact sum",
                reason="its sum could exceed 2^53 grid steps",
                way_out="choose a smaller batch_size",
            )


def sum_of(tensors: list[Tensor]) -> Tensor:
    """Add up, in the order given."""
    total = tensors[0]
    for more in tensors[1:]:
        total = total + more
    return total


def _outer_gradients(losses: Tensor, calls: list[LayerCall], weights: Tensor, *, keep: bool) -> Gradients:
    """Differentiate the weighted losses with respect to the outputs of all calls; keep the graph for a second time."""
    outputs = [output for call in calls for output in call.outputs]
    if not outputs or not losses.requires_grad:
        return []
    with torch.enable_grad():
        found = iter(torch.autograd.grad(losses, outputs, weights, allow_unused=True, retain_graph=keep))
    return [tuple(next(found) for _ in call.outputs) for call in calls]


def _power_of_two(grid: Number) -> float:
    value = float(grid)
    if frexp(value)[0] != 0.5 or Fraction(value) != Fraction(grid) or not 2.0**-100 <= value <= 2.0**100:
        raise InvalidParameter("grid must be a power of two: dividing by any other number would round")
    return value


def _no_forward() -> Refused:
    return Refused(
        "these losses do not come from a forward pass of this model since the last call of add",
        reason="no layer of the model recorded a call that they depend on",
        way_out="compute the losses from model(x) on the batch at hand, once, with gradients on, and hand them to step",
    )
