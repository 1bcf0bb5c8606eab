"""Squared norms that are never below the true ones."""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor

from discreet.learn.torch.clipping import bounds
from discreet.learn.torch.clipping.lengths import even_length

__all__ = ["pairs_squares_up", "squares_up"]


def squares_up(values: Tensor) -> Tensor:
    """Bound the squared norm of each row of a matrix from above, in float64.

    float32 adds up at most CHUNK squares, float64 the chunks. A square below the range of float32 is counted as TINY.
    """
    size = values.shape[1]
    length = size if size <= bounds.CHUNK else even_length(size, bounds.CHUNK)
    if length:
        return _chunks_up(values, length)
    whole = size - size % bounds.CHUNK
    return _chunks_up(values[:, :whole], bounds.CHUNK).add_(_chunks_up(values[:, whole:], size - whole))


def _chunks_up(values: Tensor, length: int) -> Tensor:
    lengths: Tensor = torch.linalg.vector_norm(torch.unflatten(values, 1, (-1, length)), dim=2)
    return lengths.double().square_().sum(1).mul_(_up(length)).add_(values.shape[1] * bounds.TINY)


@cache
def _up(length: int) -> float:
    """Return a factor that makes up for all roundings of a chunk's squared norm.

    The square of a chunk's norm passes length + 1 roundings of float32: the square, the sum, twice that of the root.
    That an upper bound divides by 1 - gamma, and all of float64, is inside of four roundings more.
    """
    return 1 + float(bounds.gamma(length + 5))


def pairs_squares_up(left: Tensor, picked: Tensor, right: Tensor) -> Tensor:
    """Bound the squared norms of sums over positions of left_t right_t' by inner products of positions.

    An inner product of length n passes n roundings, their product one, and the two sums over positions 2 T: the error
    is at most gamma(p + d + 2 T + 1) sum_st |l_s||l_t||r_s||r_t|, which is at most gamma |L|^2 |R|^2.
    """
    left, right = left.double(), right.double()
    between = torch.bmm(right, right.transpose(1, 2))
    across = _left_products(left, picked)
    size = _trace(across) * _trace(between)
    depth = left.shape[2] + right.shape[2] + 2 * right.shape[1] + 8
    wrong = float(bounds.gamma(depth, bounds.DOUBLE))
    return across.mul_(between).sum(2).sum(1).clamp_(min=0.0).add_(size * (2 * wrong))


def _left_products(left: Tensor, picked: Tensor) -> Tensor:
    same = (picked[:, :, None] == picked[:, None, :]).double()
    if not left.shape[1]:
        return same
    dense = torch.bmm(left, left.transpose(1, 2))
    if not picked.shape[1]:
        return dense
    mixed = left.gather(2, picked[:, None, :].expand(-1, left.shape[1], -1))
    return torch.cat([torch.cat([dense, mixed], 2), torch.cat([mixed.transpose(1, 2), same], 2)], 1)


def _trace(products: Tensor) -> Tensor:
    return products.diagonal(dim1=1, dim2=2).sum(1)
