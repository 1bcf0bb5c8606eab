"""One loss for every row of a batch, averaged over the views of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import torch
from torch import Tensor, nn

from discreet.errors import InvalidParameter, Refused
from discreet.learn.torch.layers.watching import call_model
from discreet.learn.torch.trees import Tree, leaves, mapped, same_shape

__all__ = ["Augment", "Loss", "RowLosses", "as_pair", "check_losses", "count_views"]

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
        views = tuple(self.augment(batch))
        _check_views(views, batch, self.views)
        return torch.stack([self.of_view(view) for view in views]).mean(dim=0)

    def view(self, batch: Tree) -> Tree:
        """Return the first view of a batch, or the batch itself."""
        return batch if self.augment is None else self.augment(batch)[0]

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
    """Return how many views an augmentation gives, and refuse one that mixes the rows of a batch."""
    if augment is None:
        return 1
    filled = mapped(_counted_up, blank)
    state = torch.get_rng_state()
    plain = _views(augment, filled, state)
    _check_views(plain, blank, len(plain))
    others = _views(augment, mapped(_first_row_changed, filled), state)
    for one, again, other in zip(plain, _views(augment, filled, state), others, strict=True):
        if not _same_rows(one, again, 0):
            raise Refused(
                "the augmentation gives different views of the same batch",
                reason="its chance must come from torch's own generator, which every run seeds afresh in secret",
                way_out="draw with torch inside augment, not with random or numpy",
            )
        if not _same_rows(one, other, 1):
            raise Refused(
                "the augmentation mixes the rows of a batch",
                reason="a view of one row must not depend on other rows, or removing one changes many gradients",
                way_out="change every row by itself; mix-up and cut-mix cannot be used",
            )
    return len(plain)


def _views(augment: Augment, batch: Tree, state: Tensor) -> tuple[Tree, ...]:
    torch.set_rng_state(state)
    return tuple(augment(mapped(torch.clone, batch)))


def _check_views(views: tuple[Tree, ...], batch: Tree, count: int) -> None:
    if not views or len(views) != count:
        raise Refused("augment must return the same number of views of every batch, and at least one")
    if not all(same_shape(views[0], view) for view in views) or not _as_many_rows(views[0], batch):
        raise Refused("augment must return views that have one row for every row of the batch, all of one shape")


def _as_many_rows(view: Tree, batch: Tree) -> bool:
    rows = {len(leaf) for leaf in leaves(batch) if isinstance(leaf, Tensor)}
    return {len(leaf) for leaf in leaves(view) if isinstance(leaf, Tensor)} == rows


def _counted_up(tensor: Tensor) -> Tensor:
    """Rows that differ from each other, of a tensor that may hold classes."""
    if not tensor.is_floating_point():
        return tensor
    steps = torch.arange(tensor.numel(), dtype=torch.float64).mul_(0.618).frac_()
    return steps.reshape(tensor.shape).to(tensor.dtype)


def _first_row_changed(tensor: Tensor) -> Tensor:
    changed = tensor.clone()
    if tensor.is_floating_point():
        changed[0] = 1 - changed[0]
    return changed


def _same_rows(one: Tree, other: Tree, start: int) -> bool:
    pairs: list[tuple[Any, Any]] = list(zip(leaves(one), leaves(other), strict=True))
    return all(torch.equal(a[start:], b[start:]) for a, b in pairs)
