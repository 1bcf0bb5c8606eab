"""One loss for every row of a batch, averaged over the views of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import torch
from torch import Tensor, nn

from discreet.errors import InvalidParameter, Refused
from discreet.learn.torch.batches import Tree, joined, leaves, mapped, same_shape
from discreet.learn.torch.layers.made_up_rows import call_model

__all__ = ["Augment", "Loss", "RowLosses", "as_pair", "check_losses", "count_views", "row_views"]

Loss: TypeAlias = Callable[..., Tensor]
Augment: TypeAlias = Callable[[Tree], Sequence[Tree]]


@final
@dataclass(frozen=True, slots=True)
class RowLosses:
    """Runs the model on a batch, or on views of it, and returns the loss of every row.

    The last part of a batch is the target, the others are what the model takes: `loss(model(x), y)`.
    The K losses of a row are averaged before anything is clipped, so K views of a row are still one row. [DBHSB22]
    """

    model: nn.Module
    loss: Loss
    augment: Augment | None
    views: int

    def of(self, batch: Tree) -> Tensor:
        """Return one loss a row."""
        if self.augment is None:
            return self.of_view(batch)
        first, *others = (self.of_view(view) for view in row_views(self.augment, batch, self.views))
        return sum(others, start=first) / self.views

    def view(self, batch: Tree) -> Tree:
        """Return the first view of a batch, or the batch itself."""
        return batch if self.augment is None else row_views(self.augment, batch, self.views)[0]

    def of_view(self, view: Tree) -> Tensor:
        """Return one loss a row, of rows as they are."""
        x, y = as_pair(view)
        return self.loss(call_model(self.model, x), y)


def as_pair(batch: Tree) -> tuple[Tree, Tree]:
    """Take a batch apart into what the model takes and what the loss compares it with."""
    if not isinstance(batch, tuple | list) or len(batch) < 2:
        raise Refused(
            "a row must have two parts: what the model takes, and what the loss compares it with",
            way_out="hand over tensors (x, y), or a data set of such pairs; (x, x) where there is no target",
        )
    *inputs, target = batch
    return inputs[0] if len(inputs) == 1 else tuple(inputs), target


def check_losses(losses: object, rows: int) -> Tensor:
    """Refuse anything but one number for each row of the batch that waits."""
    if not isinstance(losses, Tensor):
        raise InvalidParameter(f"private.step takes the losses of a batch as a tensor, not a {type(losses).__name__}")
    if losses.shape != (rows,):
        raise Refused(
            f"private.step needs one loss for each of the {rows} rows of a batch, "
            f"not a tensor of shape {tuple(losses.shape)}",
            reason="each row's gradient is clipped by itself; a mean has forgotten which row gave what",
            way_out='make the loss with reduction="none", and average what is left beside the rows, as in '
            "losses.flatten(1).mean(1)",
        )
    if not losses.requires_grad:
        raise Refused(
            "these losses have no gradient",
            reason="they were computed without the model, detached, or under torch.no_grad()",
            way_out="give private.step the losses of model(x) as they are",
        )
    return losses


def count_views(augment: Augment | None, blank: Tree) -> int:
    """Return how many views an augmentation gives of a row, and refuse one with a chance of its own."""
    if augment is None:
        return 1
    row = mapped(lambda part: _counted_up(part[:1]), blank)
    state = torch.get_rng_state()
    plain, again = _views(augment, row, state), _views(augment, row, state)
    _check_views(plain, row, max(1, len(plain)))
    if not all(_same(one, other) for one, other in zip(plain, again, strict=True)):
        raise Refused(
            "the augmentation gives different views of the same row",
            reason="its chance must come from torch's own generator, which every run seeds afresh in secret",
            way_out="draw with torch inside augment, not with random or numpy",
        )
    return len(plain)


def row_views(augment: Augment, batch: Tree, count: int) -> tuple[Tree, ...]:
    """Return views of a batch, made of one row at a time.

    So no row can get into the view of another one, rows share no coin, and no view depends on where a row stands: the
    proof moves a row to another slot, and its view, drawn in secret, goes with it.
    """
    rows = max(len(leaf) for leaf in leaves(batch) if isinstance(leaf, Tensor))
    each = []
    for at in range(rows):
        row = mapped(lambda part, at=at: part[at : at + 1].clone(), batch)  # type: ignore[misc]
        each.append(tuple(augment(row)))
        _check_views(each[-1], row, count)
    return tuple(joined(views) for views in zip(*each, strict=True))


def _views(augment: Augment, row: Tree, state: Tensor) -> tuple[Tree, ...]:
    torch.set_rng_state(state)
    return tuple(augment(mapped(torch.clone, row)))


def _check_views(views: tuple[Tree, ...], row: Tree, count: int) -> None:
    if len(views) != count:
        raise Refused("augment must return the same number of views of every row, and at least one")
    if not all(same_shape(views[0], view) for view in views) or not _as_many_rows(views[0], row):
        raise Refused(
            "augment must return views that have one row for every row of the batch, all of one shape",
            reason="it gets one row at a time, as a batch of one",
        )


def _as_many_rows(view: Tree, batch: Tree) -> bool:
    rows = {len(leaf) for leaf in leaves(batch) if isinstance(leaf, Tensor)}
    return {len(leaf) for leaf in leaves(view) if isinstance(leaf, Tensor)} == rows


def _counted_up(tensor: Tensor) -> Tensor:
    """Values that differ from each other, of a tensor that may hold classes."""
    if not tensor.is_floating_point():
        return tensor
    steps = torch.arange(tensor.numel(), dtype=torch.float64).mul_(0.618).frac_()
    return steps.reshape(tensor.shape).to(tensor.dtype)


def _same(one: Tree, other: Tree) -> bool:
    pairs: list[tuple[Any, Any]] = list(zip(leaves(one), leaves(other), strict=True))
    return all(torch.equal(a, b) for a, b in pairs)
