"""Sums over rows: short ones in float32, then float64, so that the rounding of one row touches one block only."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from discreet.learn.torch.clipping import bounds
from discreet.learn.torch.clipping.lengths import even_length

__all__ = ["add_outer", "add_pairs", "add_rows"]

_SMALL = 1 << 15  # Numbers; the sums of all blocks of so small a parameter are formed at once.


def add_outer(total: Tensor, left: Tensor, right: Tensor) -> None:
    """Add the sum over rows of left_i right_i' to a flat float64 total: one small product for each block of rows."""
    length = even_length(len(left), bounds.BLOCK)
    if total.numel() <= _SMALL and length:
        return _add_blocks(total, left.reshape(-1, length, left.shape[1]), right.reshape(-1, length, right.shape[1]))
    block = torch.empty(left.shape[1], right.shape[1])
    # NumPy adds float32 to float64 without a copy, a third faster than torch does.
    flat, whole = block.view(-1).numpy(), total.numpy()
    for rows in _blocks(len(left)):
        torch.mm(left[rows].T, right[rows], out=block)
        np.add(whole, flat, out=whole)


def add_rows(total: Tensor, values: Tensor, factors: Tensor) -> None:
    """Add the sum over rows of factor_i values_i to a flat float64 total."""
    if length := even_length(len(values), bounds.BLOCK):
        return _add_blocks(total, factors.reshape(-1, length, 1), values.reshape(-1, length, values.shape[1]))
    for rows in _blocks(len(values)):
        total.add_(torch.mv(values[rows].T, factors[rows]))


def _add_blocks(total: Tensor, left: Tensor, right: Tensor) -> None:
    """Add left' right for all blocks, (blocks, rows, columns) each."""
    total.add_(torch.bmm(left.transpose(1, 2), right).sum(0, dtype=torch.float64).flatten())


def _blocks(rows: int) -> list[slice]:
    """Cut rows into as few blocks of at most BLOCK as there can be, and these as even as they can be."""
    length = -(-rows // -(-rows // bounds.BLOCK))
    return [slice(start, start + length) for start in range(0, rows, length)]


def add_pairs(total: Tensor, left: Tensor, picked: Tensor, right: Tensor, factors: Tensor) -> None:
    """Add the sum over rows and positions of factor left right', with unit vectors as left sides where picked."""
    whole = total.view(-1, right.shape[2])
    step = bounds.rows_exactly(right.shape[1])
    for start in range(0, len(right), step):
        rows = slice(start, start + step)
        whole.add_(_some_pairs(whole, left[rows], picked[rows], right[rows], factors[rows]))


def _some_pairs(like: Tensor, left: Tensor, picked: Tensor, right: Tensor, factors: Tensor) -> Tensor:
    scaled = right.double() * factors.double()[:, None, None]
    dense = left.shape[1]
    part = torch.zeros_like(like)
    if dense:
        part.addmm_(left.double().flatten(0, 1).T, scaled[:, :dense].flatten(0, 1))
    if picked.shape[1]:
        part.index_add_(0, picked.flatten(), scaled[:, dense:].flatten(0, 1))
    return part
