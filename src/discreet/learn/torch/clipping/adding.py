"""Sums over rows: short ones in float32, then float64, so that the rounding of one row touches one block only."""

from __future__ import annotations

import torch
from torch import Tensor

from discreet.learn.torch.clipping import bounds

__all__ = ["add_outer", "add_pairs", "add_rows"]

_AT_ONCE = 1 << 21  # Numbers that block sums may take before they are added up: they should stay in the cache.


def add_outer(left: Tensor, right: Tensor) -> Tensor:
    """Return the sum over rows of left_i right_i', flat, in float64: one small product for each block of rows."""
    total = torch.zeros(left.shape[1], right.shape[1], dtype=torch.float64)
    for some_left, some_right in _blocks(left, right, left.shape[1] * right.shape[1]):
        total += torch.bmm(some_left.transpose(1, 2), some_right).sum(0, dtype=torch.float64)
    return total.flatten()


def add_rows(values: Tensor, factors: Tensor) -> Tensor:
    """Return the sum over rows of factor_i values_i in float64."""
    total = torch.zeros(values.shape[1], dtype=torch.float64)
    for some_factors, some_values in _blocks(factors[:, None], values, values.shape[1]):
        total += torch.bmm(some_factors.transpose(1, 2), some_values).sum((0, 1), dtype=torch.float64)
    return total


def _blocks(left: Tensor, right: Tensor, size: int) -> list[tuple[Tensor, Tensor]]:
    """Cut rows into blocks of BLOCK, (blocks, BLOCK, columns), a few at a time; a last short block comes alone."""
    whole = len(left) - len(left) % bounds.BLOCK
    step = max(1, _AT_ONCE // size) * bounds.BLOCK
    starts = range(0, whole, step)
    parts = [(start, min(start + step, whole), bounds.BLOCK) for start in starts]
    if whole < len(left):
        parts.append((whole, len(left), len(left) - whole))
    return [(_cut(left[a:b], k), _cut(right[a:b], k)) for a, b, k in parts]


def _cut(values: Tensor, rows: int) -> Tensor:
    return torch.unflatten(values, 0, (-1, rows))


def add_pairs(left: Tensor, picked: Tensor, right: Tensor, factors: Tensor, height: int) -> Tensor:
    """Return the sum over rows and positions of factor left right' in float64, flat."""
    total = torch.zeros(height, right.shape[2], dtype=torch.float64)
    step = bounds.rows_exactly(right.shape[1])
    for start in range(0, len(right), step):
        rows = slice(start, start + step)
        total += _some_pairs(left[rows], picked[rows], right[rows], factors[rows], height)
    return total.flatten()


def _some_pairs(left: Tensor, picked: Tensor, right: Tensor, factors: Tensor, height: int) -> Tensor:
    scaled = right.double() * factors.double()[:, None, None]
    dense = left.shape[1]
    total = torch.zeros(height, right.shape[2], dtype=torch.float64)
    if dense:
        total.addmm_(left.double().flatten(0, 1).T, scaled[:, :dense].flatten(0, 1))
    if picked.shape[1]:
        total.index_add_(0, picked.flatten(), scaled[:, dense:].flatten(0, 1))
    return total
