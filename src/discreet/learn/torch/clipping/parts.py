"""What one call of a layer contributes to one parameter, and how the calls that share a parameter become one form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, final

import torch
from torch import Tensor

from discreet.learn.torch.clipping.forms import Form, Outer, Pairs, RowGradients

__all__ = ["Part", "Picks", "Positions", "combine"]

_ROOM = 1 << 26  # float32 numbers that the gradients of all rows may take for one parameter


@final
@dataclass(frozen=True, slots=True, eq=False)
class Positions:
    """Sum over positions of left times right transposed: linear layers, and convolutions once unfolded."""

    left: Tensor  # (rows, positions, p)
    right: Tensor  # (rows, positions, d)

    def formed(self) -> Tensor:
        """Return the gradient of each row, flat."""
        return torch.bmm(_aligned(self.left).transpose(1, 2), _aligned(self.right)).flatten(1)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Picks:
    """Sum over positions of the unit vector that an index names times right transposed: embeddings."""

    picked: Tensor  # (rows, positions), int64
    right: Tensor  # (rows, positions, d)
    height: int

    def formed(self) -> Tensor:
        """Return the gradient of each row, flat."""
        whole = self.right.new_zeros(len(self.right), self.height, self.right.shape[2])
        return whole.scatter_add_(1, self.picked[:, :, None].expand_as(self.right), self.right).flatten(1)


Part: TypeAlias = RowGradients | Positions | Picks


def combine(parts: list[Part]) -> Form:
    """Join all that one parameter gets: gradients of several calls add up, their norms do not.

    Positions of several calls are positions of one longer call; so weights that are used twice, unrolled in time or
    shared by an embedding and a linear layer cost no more than their calls.
    """
    if any(isinstance(part, RowGradients) for part in parts):
        return RowGradients(_added([_formed(part) for part in parts]))
    dense = [part for part in parts if isinstance(part, Positions)]
    picks = [part for part in parts if isinstance(part, Picks)]
    if not picks:
        return _dense_form(_joined([part.left for part in dense]), _joined([part.right for part in dense]))
    return _picked_form(dense, picks)


def _dense_form(left: Tensor, right: Tensor) -> Form:
    rows, positions, height = left.shape
    if positions == 1:
        return Outer(left[:, 0], right[:, 0])
    if _forming_is_cheaper(rows, positions, height, right.shape[2]):
        return RowGradients(Positions(left, right).formed())
    return Pairs(left, torch.zeros(rows, 0, dtype=torch.int64), right, height)


def _forming_is_cheaper(rows: int, positions: int, height: int, width: int) -> bool:
    """Compare multiplications: to form and pass three times, against inner products and one sum, both in float64."""
    formed = height * width * (positions + 40)
    paired = 2 * positions * (positions * (height + width) + height * width) + 8 * positions * (height + width)
    return formed <= paired and rows * height * width <= _ROOM


def _picked_form(dense: list[Positions], picks: list[Picks]) -> Pairs:
    height, rows = picks[0].height, len(picks[0].right)
    left = _joined([part.left for part in dense]) if dense else picks[0].right.new_zeros(rows, 0, height)
    right = _joined([*(part.right for part in dense), *(part.right for part in picks)])
    return Pairs(left, _joined([part.picked for part in picks]), right, height)


def _formed(part: Part) -> Tensor:
    return part.values if isinstance(part, RowGradients) else part.formed()


def _joined(tensors: list[Tensor]) -> Tensor:
    return tensors[0] if len(tensors) == 1 else torch.cat(tensors, 1)


def _added(tensors: list[Tensor]) -> Tensor:
    total = tensors[0]
    for more in tensors[1:]:
        total = total + more
    return total


def _aligned(values: Tensor) -> Tensor:
    """Copy what starts off a cache line: kernels may add in another order there, and `slots.py` checks aligned ones."""
    return values if values.data_ptr() % 64 == 0 else values.clone()
