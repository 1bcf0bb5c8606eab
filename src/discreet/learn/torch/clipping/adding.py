"""Sums over rows: short ones in float32, then float64, so that the rounding of one row touches one block only.

Each function adds scale times the sum to a flat float64 total; the scale is a power of two, so that it costs nothing.
"""

from __future__ import annotations

import torch
from torch import Tensor

from discreet.learn.torch.clipping import bounds

__all__ = ["add_outer", "add_pairs", "add_rows"]


def add_outer(total: Tensor, left: Tensor, right: Tensor, scale: float) -> None:
    """Add the sum over rows of left_i right_i': one small product for each block of rows."""
    whole = total.view(left.shape[1], right.shape[1])
    block = torch.empty(whole.shape)
    for rows in _blocks(len(left)):
        whole.add_(torch.mm(left[rows].T, right[rows], out=block), alpha=scale)


def add_rows(total: Tensor, values: Tensor, factors: Tensor, scale: float) -> None:
    """Add the sum over rows of factor_i values_i."""
    for rows in _blocks(len(values)):
        total.add_(torch.mv(values[rows].T, factors[rows]), alpha=scale)


def _blocks(rows: int) -> list[slice]:
    """Cut rows into as few blocks of at most BLOCK as there can be, and these as even as they can be."""
    length = -(-rows // -(-rows // bounds.BLOCK))
    return [slice(start, start + length) for start in range(0, rows, length)]


def add_pairs(total: Tensor, left: Tensor, picked: Tensor, right: Tensor, factors: Tensor, scale: float) -> None:
    """Add the sum over rows and positions of factor left right', with unit vectors as left sides where picked."""
    whole = total.view(-1, right.shape[2])
    step = bounds.rows_exactly(right.shape[1])
    for start in range(0, len(right), step):
        rows = slice(start, start + step)
        whole.add_(_some_pairs(whole, left[rows], picked[rows], right[rows], factors[rows]), alpha=scale)


def _some_pairs(like: Tensor, left: Tensor, picked: Tensor, right: Tensor, factors: Tensor) -> Tensor:
    scaled = right.double() * factors.double()[:, None, None]
    dense = left.shape[1]
    part = torch.zeros_like(like)
    if dense:
        part.addmm_(left.double().flatten(0, 1).T, scaled[:, :dense].flatten(0, 1))
    if picked.shape[1]:
        part.index_add_(0, picked.flatten(), scaled[:, dense:].flatten(0, 1))
    return part
