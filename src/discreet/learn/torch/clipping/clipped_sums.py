"""Sums of clipped per-example gradients: one forward pass, one backward pass to the outputs of layers."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import groupby
from math import frexp
from typing import Any, TypeAlias, cast, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils._pytree import tree_map_only

from discreet.errors import InvalidParameter, Refused
from discreet.exact import Number
from discreet.learn.torch.clipping import float_error
from discreet.learn.torch.clipping.float_error import factors_down, share_down
from discreet.learn.torch.clipping.gradient_forms import (
    Form,
    Outer,
    Pairs,
    Part,
    RowGradients,
    add_short_rows,
    combine,
    digests,
    is_short,
    joint_squares_up,
    of_people,
)
from discreet.learn.torch.clipping.layer_rules import parts_of
from discreet.learn.torch.clipping.tape import LayerCall, Tape, owned
from discreet.learn.training.clip_rules import AdaptiveClip, Clip, PerLayer, read_clip
from discreet.learn.training.grid_sums import GridSum

__all__ = [
    "ClippedSums",
    "alike",
    "check_arithmetic",
    "check_losses",
    "check_model",
    "check_rows_apart",
    "check_slots",
    "check_used_through_layers",
    "grouped",
    "keep_memory",
]

Gradients = list[tuple[Tensor | None, ...]]
Pieces: TypeAlias = list[list[Tensor]]  # of coordinates one behind the other: tensors that are the sum there together


@final
class ClippedSums:
    """Sum the per-example gradients, each clipped, over the physical batches of a step.

    Use: an ordinary forward pass of `physical_batch` rows on the model; `add` with one loss a row; after the last
    batch of the step `take`. Rows with `inside` false contribute nothing, and neither do rows whose gradient is
    infinite or not a number.

    With `each` above one a record is a person of so many rows, one behind the other: a forward pass has `each` times
    as many rows, the loss of a person is the mean over the rows that are `inside`, and its gradient is what is clipped.

    Guarantee   Let the records of a step stand in uniformly random order, cut into physical batches. One record more
                or less changes what `take` returns, times `grid`, by at most bound (1 + slack) + 2 grid sqrt(P) in
                the l2 norm, P the number of parameters, if what the model computes for a row does not depend on
                the slot and the companions of the row.
    Theorem     `float_error.py` has the derivation: norms are bounded from above including their own rounding, factors
                are rounded down, sums in floats are short, and what is added up over batches are whole grid steps,
                exactly.
    """

    def __init__(
        self, model: nn.Module, *, clip: Clip | Number, grid: Number, physical_batch: int, each: int = 1
    ) -> None:
        check_model(model, physical_batch)
        self.clip: Clip = read_clip(clip)
        self.grid = _power_of_two(grid)
        self.physical_batch = physical_batch  # records
        self.each = each  # rows of a record
        self.parameters: tuple[nn.Parameter, ...] = tuple(each for each in model.parameters() if each.requires_grad)
        self.threshold = float(self.clip.initial) if isinstance(self.clip, AdaptiveClip) else float(self.clip.bound)
        self._names = {value: name for name, value in model.named_parameters() if value.requires_grad}
        self._groups = grouped(model, self.clip)
        self._share = share_down(self.clip, len(self._groups))
        self._tape = Tape(model, physical_batch * each)
        self._checked: set[object] = set()
        self._tried: frozenset[object] | None = None  # shapes of the layers; any until `seal`
        self._sizes = [each.numel() for each in self.parameters]
        self._last: Pieces | None = None  # the newest batch, not yet rounded; none before the first
        self._total: NDArray[np.float64] | None = (
            None  # whole grid steps of the batches before it; none if there are none
        )
        self._batches = self._count = 0
        # Whole numbers up to 2^53 add exactly in float64; so many batches surely stay below.
        self._most_batches = (1 << 53) / (physical_batch * (self.clip.bound * 2 / Fraction(self.grid) + 1))
        keep_memory()

    @property
    def slack(self) -> Fraction:
        """How much one record can change the sum beyond the clip by float errors, as a multiple of the clip."""
        return float_error.slack_of(self.physical_batch)

    @property
    def count(self) -> int:
        """Rows since `take` whose norm is at most `threshold`, less those where it is not. Not private."""
        return self._count

    @torch.no_grad()
    def add(self, losses: Tensor, inside: Tensor) -> None:
        """Add the clipped gradients of one physical batch, given the losses of its rows after a forward pass."""
        check_arithmetic()
        check_losses(losses, inside, self.physical_batch * self.each)
        with self._clipping():
            forms = self._forms(*self._backward(losses, _shares(inside, self.each).to(losses)), inside)
            self._add(forms, inside if self.each == 1 else inside.reshape(-1, self.each).any(1))

    @torch.no_grad()
    def formed(self, losses: Tensor) -> dict[str, Tensor]:
        """Return digests of what the gradient of each record is made of, by parameter, and add nothing."""
        everywhere = torch.ones(len(losses), dtype=torch.bool)
        with self._clipping():
            forms = self._forms(*self._backward(losses, _shares(everywhere, self.each).to(losses)), everywhere)
        return {self._names[parameter]: digests(form) for parameter, form in forms.items()}

    @contextmanager
    def _clipping(self) -> Iterator[None]:
        """Compute exactly as stated, from the calls on the tape, and forget these."""
        exactly = torch.autocast("cpu", enabled=False) if torch.is_autocast_enabled("cpu") else nullcontext()
        with self._tape.paused(), exactly:
            yield
        self._tape.clear()

    def take(self) -> GridSum:
        """Return the sum, which is whole grid steps, flat in the order of `parameters`, and begin anew."""
        total = self._sum()
        self.reset()
        return total

    def reset(self) -> None:
        """Forget the tape, the sum and the count."""
        self._tape.clear()
        self._last = self._total = None
        self._batches = self._count = 0

    def seal(self) -> None:
        """From here on take only what was tried: batches whose layers run as they did since this was made.

        Shapes that follow from the rows (a batch that is cut to its longest row) would let one record change what is
        computed for the others. The first batch is checked again: its losses come from the loop, which may mix
        gradients that the trial's losses did not.
        """
        self._tried, self._checked = frozenset(self._checked), set()

    def close(self) -> None:
        """Take the hooks off the model."""
        self._tape.close()

    def _backward(self, losses: Tensor, shares: Tensor) -> tuple[list[LayerCall], Gradients]:
        """Return the calls that the losses depend on, with the gradients of their outputs."""
        calls = self._tape.calls
        key = _shapes(calls)
        checked = key in self._checked
        found = _outer_gradients(losses, calls, shares, keep=not checked)
        used = [at for at, row in enumerate(found) if any(each is not None for each in row)]
        if not used:
            raise _no_forward()
        shapes = key
        if len(used) < len(calls):
            calls, found = [calls[at] for at in used], [found[at] for at in used]
            shapes = _shapes(calls)
        if self._tried is not None and shapes not in self._tried:
            raise _untried()
        for call in calls:
            call.check_unchanged()
        if not checked:
            self._check(losses, calls, found)
            self._checked |= {key, shapes}
        return calls, found

    def _check(self, losses: Tensor, calls: list[LayerCall], gradients: Gradients) -> None:
        """Check what depends on shapes only: rows come first, layers own what they use, slots are alike."""
        for call, found in zip(calls, gradients, strict=True):
            call.check_rows(self.physical_batch * self.each, found)
        last = torch.zeros_like(losses)
        last[-1] = 1.0
        check_rows_apart(calls, _outer_gradients(losses, calls, last, keep=True))
        check_used_through_layers(losses, calls, self._names)
        everywhere = torch.ones(len(losses), dtype=torch.bool)
        check_slots(list(self._forms(*alike(calls, gradients, self.each), everywhere).values()))

    def _forms(self, calls: list[LayerCall], gradients: Gradients, inside: Tensor) -> dict[nn.Parameter, Form]:
        """Collect by parameter what its calls contribute, person by person if there are several rows of each."""
        parts: dict[nn.Parameter, list[Part]] = {}
        for call, outer in zip(calls, gradients, strict=True):
            for name, part in parts_of(call, outer).items():
                whole = part if self.each == 1 else of_people(part, self.each, inside)
                parts.setdefault(call.trained[name], []).append(whole)
        return {parameter: combine(several) for parameter, several in parts.items()}

    def _add(self, forms: dict[nn.Parameter, Form], inside: Tensor) -> None:
        """Sum up one batch. What was there before is rounded to the grid and added up: whole numbers, exactly."""
        self._make_room()
        places, pieces = self._places(forms)
        for group in self._groups:
            mine = [(forms[parameter], places[parameter]) for parameter in group if parameter in forms]
            if mine:
                self._add_group(mine, inside)
        # Both at once: a step that is interrupted has this batch or has it not.
        self._total, self._last = None if self._last is None else self._sum().whole(), pieces

    def _sum(self) -> GridSum:
        pieces = [[torch.zeros(sum(self._sizes))]] if self._last is None else self._last
        return GridSum([[each.numpy() for each in part] for part in pieces], self.grid, self._total)

    def _places(self, forms: dict[nn.Parameter, Form]) -> tuple[dict[nn.Parameter, list[Tensor]], Pieces]:
        """Make a place for the sum of every parameter: an empty one for large sums, float64 zeros for the others.

        Places of small sums that are neighbours lie in one piece of memory, which is read at once.
        """
        places: dict[nn.Parameter, list[Tensor]] = {}
        pieces: Pieces = []
        for is_large, run in groupby(self.parameters, lambda parameter: _is_large(forms.get(parameter))):
            several = list(run)
            if is_large:
                places |= {parameter: [] for parameter in several}
                pieces.extend(places[parameter] for parameter in several)
            else:
                sizes = [parameter.numel() for parameter in several]
                zeros = torch.zeros(sum(sizes), dtype=torch.float64)
                places |= {each: [part] for each, part in zip(several, torch.split(zeros, sizes), strict=True)}
                pieces.append([zeros])
        return places, pieces

    def _add_group(self, places: list[tuple[Form, list[Tensor]]], inside: Tensor) -> None:
        """Clip what belongs together, and add it in its place."""
        forms = [form for form, _ in places]
        squares = joint_squares_up(forms)
        sizes = [size for form in forms if (size := form.sizes()) is not None]
        size = sum_of(sizes) if sizes else None
        self._count_below(squares, inside)
        factors = factors_down(self.clip, self.threshold, self._share, squares, size).mul_(inside)
        finite = np.isfinite(squares.numpy())
        if not finite.all():
            dropped = torch.from_numpy(~finite)
            places = [(form.without(dropped), place) for form, place in places]
        short: list[tuple[Tensor, Tensor]] = []
        for form, place in places:
            if isinstance(form, RowGradients) and is_short(form.values):
                short.append((place[0], form.values))
            elif place:
                form.add_to(place[0], factors)
            else:
                place.extend(cast(Outer, form).pieces(factors))
        if short:
            add_short_rows(short, factors)

    def _count_below(self, squares: Tensor, inside: Tensor) -> None:
        if isinstance(self.clip, AdaptiveClip):
            below = int(((squares.sqrt() <= self.threshold) & inside).sum())
            self._count += 2 * below - int(inside.sum())

    def _make_room(self) -> None:
        """Refuse a sum that could leave the whole numbers that float64 holds."""
        self._batches += 1
        if self._batches >= self._most_batches:
            raise Refused(
                "the step has too many records for an exact sum",
                reason="its sum could exceed 2^53 grid steps",
                way_out="choose a smaller batch_size",
            )


def _is_large(form: Form | None) -> bool:
    return isinstance(form, Outer) and form.is_large


def _shares(inside: Tensor, each: int) -> Tensor:
    """Return what a row counts for in the loss of its record: of a person, one over the rows that are there."""
    if each == 1:
        return torch.ones(len(inside))
    there = inside.reshape(-1, each)
    return (there / there.sum(1, keepdim=True).clamp(min=1)).flatten()


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


def _shapes(calls: list[LayerCall]) -> object:
    return torch.get_num_threads(), *((call.name, *(out.shape for out in call.outputs)) for call in calls)


def _untried() -> Refused:
    return Refused(
        "the layers of the model do not run as they did when it was tried",
        reason="which layers run, or on which shapes, depends on the values of rows; then one record changes what is "
        "computed for the others",
        way_out="run the same layers on the same shapes for every batch: cut to a public length, not to the longest "
        "row of the batch",
    )


# --- checks: What must hold before rows are clipped; nothing here looks at a value. ---


_MODES = ("ONEDNN_DEFAULT_FPMATH_MODE", "DNNL_DEFAULT_FPMATH_MODE")  # By these oneDNN computes in half precision.


def check_model(model: nn.Module, physical_batch: int) -> None:
    """Refuse a batch that is too large, and parameters that are not float32 on the CPU."""
    if not 1 <= physical_batch <= float_error.LARGEST_BATCH:
        raise InvalidParameter(f"physical_batch must lie between 1 and {float_error.LARGEST_BATCH}")
    trained = [(name, each) for name, each in model.named_parameters() if each.requires_grad]
    if not trained:
        raise Refused("the model has no trainable parameters", way_out="set requires_grad on what should be trained")
    for name, each in trained:
        if each.dtype != torch.float32 or each.device.type != "cpu":
            raise Refused(
                f"the parameter {name!r} is {each.dtype} on {each.device.type}",
                reason="the error of clipped sums is proven for float32 on the CPU",
                way_out="use model.float().cpu()",
            )


def check_losses(losses: Tensor, inside: Tensor, rows: int) -> None:
    """Refuse anything but one loss and one mark for each row."""
    if losses.shape != (rows,):
        raise InvalidParameter(
            f"expected one loss for each of {rows} rows, not the shape {tuple(losses.shape)}: use reduction='none' and "
            "add up what belongs to one row"
        )
    if inside.shape != (rows,) or inside.dtype != torch.bool:
        raise InvalidParameter(f"inside must hold one bool for each of {rows} rows")


def check_arithmetic() -> None:
    """Refuse settings under which torch multiplies float32 numbers less precisely than float32."""
    if not _multiplies_precisely():
        raise Refused(
            "torch is set to multiply float32 matrices with less precision",
            reason="the error of clipped sums is proven for float32",
            way_out='call torch.set_float32_matmul_precision("highest"), leave fp32_precision of torch.backends as it '
            f"was, and start Python without {' and '.join(_MODES)}",
        )


def _multiplies_precisely() -> bool:
    if any(os.environ.get(name, "STRICT").upper() != "STRICT" for name in _MODES):
        return False
    try:
        return torch.get_float32_matmul_precision() == "highest"
    except RuntimeError:  # Settings of the old and of the new kind disagree.
        return False


def check_rows_apart(calls: list[LayerCall], of_last_loss: list[tuple[Tensor | None, ...]]) -> None:
    """Refuse a layer where the loss of the last row has a gradient in the place of another row.

    So it is if the first dimension counts something else, time say. No number says nothing: it is 0 times infinity.
    """
    for call, gradients in zip(calls, of_last_loss, strict=True):
        if any(each is not None and bool(each[:-1].nan_to_num(0.0, 0.0, 0.0).any()) for each in gradients):
            raise Refused(
                f"the layer {call.name!r} ({type(call.module).__name__}) mixes records, or its first dimension is not "
                "the batch",
                reason="the loss of the last record has a gradient in the place of another one",
                way_out="put the batch first in every layer, and let no layer or loss look at other records",
            )


# --- graph ---
# Check on the graph of a loss that every parameter is used through the layers that own it, and by them only.


def check_used_through_layers(losses: Tensor, calls: Iterable[LayerCall], names: dict[nn.Parameter, str]) -> None:
    """Refuse a loss that reaches a parameter by another way than an output of a layer that owns it.

    Such a use, `functional.linear(x, other.weight)` say, is on no tape, and its gradient would silently be missing.
    """
    doors: dict[nn.Parameter, set[Any]] = {parameter: set() for parameter in names}
    for call in calls:
        for parameter in call.trained.values():
            doors[parameter].update(output.grad_fn for output in call.outputs)
    for shut in {frozenset(nodes) for nodes in doors.values()}:
        found = _parameters_reached(losses.grad_fn, shut)
        for parameter, nodes in doors.items():
            if frozenset(nodes) == shut and id(parameter) in found:
                raise _used_elsewhere(names[parameter])


def _parameters_reached(start: Any, shut: frozenset[Any]) -> set[int]:
    """Walk the graph of gradients from the loss, not through shut doors; return the ids of the leaves met."""
    seen, met, todo = {start}, set(), [start]
    while todo:
        node = todo.pop()
        if node is None or node in shut:
            continue
        if hasattr(node, "variable"):
            met.add(id(node.variable))
        fresh = {following for following, _ in node.next_functions} - seen
        seen |= fresh
        todo.extend(fresh)
    return met


def _used_elsewhere(name: str) -> Refused:
    return Refused(
        f"the parameter {name!r} is used outside of the layer that owns it",
        reason="gradients of single records are read off at the outputs of layers, and this use has none",
        way_out="call the layer itself; to share a weight, let a second layer own the same parameter "
        "(head.weight = embedding.weight)",
    )


# --- grouping: Which parameters are clipped together. ---


def grouped(model: nn.Module, clip: Clip) -> tuple[tuple[nn.Parameter, ...], ...]:
    """Return one group of all trainable parameters, or one for each layer; layers that share a parameter are one."""
    if not isinstance(clip, PerLayer):
        return (tuple(each for each in model.parameters() if each.requires_grad),)
    groups: list[dict[nn.Parameter, None]] = []
    for module in model.modules():
        mine = dict.fromkeys(owned(module).values())
        shared = [group for group in groups if not group.keys().isdisjoint(mine)]
        for group in shared:
            mine = group | mine
            groups.remove(group)
        if mine:
            groups.append(mine)
    return tuple(tuple(group) for group in groups)


# --- slots: Check that no row's numbers depend on the slot it stands in. ---
#
# A kernel may treat the last rows of a batch in another way than the first. Which way is chosen by shapes, alignment
# and
# the number of threads, never by values: so the same row is put into all slots, once for each set of shapes, and every
# bit of what clipping computes from it must agree. What the model itself computes is the probe's business.


def alike(
    calls: list[LayerCall], gradients: list[tuple[Tensor | None, ...]], each: int = 1
) -> tuple[list[LayerCall], Any]:
    """Return calls and gradients of the same shapes whose records are all the same."""
    same = [
        replace(call, args=_same_rows(call.args, call, each), kwargs=_same_rows(dict(call.kwargs), call, each))
        for call in calls
    ]
    return same, tree_map_only(Tensor, lambda leaf: _pattern(leaf, each), gradients)


def _same_rows(tree: Any, call: LayerCall, each: int) -> Any:
    rows = len(call.outputs[0])
    return tree_map_only(Tensor, lambda leaf: _pattern(leaf, each) if leaf.dim() and len(leaf) == rows else leaf, tree)


def _pattern(like: Tensor, each: int) -> Tensor:
    """Fill every record with the same uneven numbers; whole numbers, which pick rows of tables, with zeros."""
    if not like.is_floating_point():
        return torch.zeros_like(like)
    numbers = torch.arange(1, each * like[0].numel() + 1, dtype=torch.float64)
    values = torch.sin(numbers * 12.9898).mul_(3.7).to(like.dtype).reshape(each, *like.shape[1:])
    filled = torch.empty_like(like)
    filled.copy_(values.repeat(len(like) // each, *(1,) * (like.dim() - 1)))
    return filled


def check_slots(forms: Sequence[Form]) -> None:
    """Refuse a physical batch in which rows that are all the same get different gradients or norms."""
    together = joint_squares_up(forms)
    if not _rows_agree(together):
        raise _uneven(len(together))
    for form in forms:
        if isinstance(form, Pairs) and form.right.shape[1] > float_error.MOST_POSITIONS:
            raise _too_many_positions()
        formed = [form.values] if isinstance(form, RowGradients) else []
        for values in (*formed, form.squares_up(), form.sizes()):
            if values is not None and not _rows_agree(values):
                raise _uneven(len(values))


def _too_many_positions() -> Refused:
    return Refused(
        "a record has more positions than one exact sum may hold",
        reason="the float error of a clipped sum is proven for 2^24 positions at most",
        way_out="choose a smaller max_rows, or shorter sequences",
    )


def _rows_agree(values: Tensor) -> bool:
    bits = values.view(torch.int32 if values.dtype == torch.float32 else torch.int64)
    return bool((bits == bits[:1]).all())


def _uneven(rows: int) -> Refused:
    return Refused(
        f"with {rows} rows in a physical batch the arithmetic of this machine rounds differently from row to row",
        reason="the proof of privacy moves a record from one slot to another and needs the same number there",
        way_out="choose a physical_batch that is a multiple of 32, or one thread: torch.set_num_threads(1)",
    )


# --- keeping: Let the process keep the memory that it frees, since the next batch needs it again. ---


_TRIM, _MMAP = -1, -3  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of <malloc.h>
_LARGE = 1 << 30  # bytes


@cache
def keep_memory() -> bool:
    """Tell the C library not to give freed memory back to the system; return whether it understood.

    By default glibc returns large blocks at once, and the system hands them out again page by page, filled with zeros:
    a batch of gradients then costs more in page faults than in arithmetic. Other C libraries are left alone.
    """
    adjust = getattr(ctypes.CDLL(None), "mallopt", None)
    return adjust is not None and bool(adjust(_MMAP, _LARGE)) and bool(adjust(_TRIM, _LARGE))
