"""Made-up rows with the shape and type of an example: no value of a private row is looked at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any, final

import torch
from torch import Tensor

from discreet import noise
from discreet.errors import InvalidParameter

__all__ = ["KINDS", "MadeUp", "mapped", "tensors"]

Tree = Any  # A tensor, or a tuple, list or dict of trees.


def mapped(change: Callable[..., Tensor], *trees: Tree) -> Tree:
    """The same tree with each tensor changed; several trees of one form go side by side."""
    first = trees[0]
    if isinstance(first, dict):
        return {key: mapped(change, *(tree[key] for tree in trees)) for key in first}
    if isinstance(first, tuple | list):
        return tuple(mapped(change, *parts) for parts in zip(*trees, strict=True))
    return change(*trees)


def tensors(tree: Tree) -> list[Tensor]:
    """All tensors of a tree, in order."""
    found: list[Tensor] = []
    mapped(lambda leaf: found.append(leaf) or leaf, tree)  # type: ignore[func-returns-value]
    return found


@final
@dataclass(frozen=True, slots=True)
class MadeUp:
    """Rows like an example: floats between 0 and 1, whole numbers 0 or 1; or drawn from public rows."""

    example: Tree
    public: Tree | None = None

    def rows(self, count: int) -> Tree:
        if self.public is None:
            return mapped(lambda leaf: _drawn(torch.as_tensor(leaf), count), self.example)
        sizes = {len(leaf) for leaf in tensors(self.public)}
        if len(sizes) != 1 or min(sizes) < 2:
            raise InvalidParameter("public rows must be a batch of at least two rows, the same number in each part")
        chosen = torch.from_numpy(noise.uniform(min(sizes), count))
        return mapped(lambda leaf: leaf[chosen].clone(), self.public)

    def others(self, count: int, kind: int) -> Tree:
        """Companions: made-up ones, zeros as padding is, large ones, not-a-number, and very large negative ones."""
        return mapped(_CHANGES[kind % KINDS], self.rows(count))


def _drawn(leaf: Tensor, count: int) -> Tensor:
    shape = (count, *leaf.shape)
    if not leaf.is_floating_point():
        return torch.from_numpy(noise.uniform(2, prod(shape))).reshape(shape).to(leaf)
    steps = torch.from_numpy(noise.uniform(1 << 23, prod(shape))).reshape(shape)
    return ((steps + 0.5) / (1 << 23)).to(leaf)


def _large(leaf: Tensor) -> Tensor:
    return leaf * 1e4 if leaf.is_floating_point() else leaf


def _hugely_negative(leaf: Tensor) -> Tensor:
    return leaf * -1e30 if leaf.is_floating_point() else leaf


def _not_a_number(leaf: Tensor) -> Tensor:
    return torch.full_like(leaf, float("nan")) if leaf.is_floating_point() else leaf


_CHANGES: tuple[Callable[[Tensor], Tensor], ...] = (
    torch.clone,
    torch.zeros_like,
    _large,
    _not_a_number,
    _hugely_negative,
)
KINDS = len(_CHANGES)
