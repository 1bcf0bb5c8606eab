"""Batches: a tensor, or tuples, lists and dictionaries of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor

__all__ = ["Tree", "joined", "leaves", "mapped", "retyped", "same_shape"]

Tree: TypeAlias = Any  # Tensor | tuple[Tree, ...] | list[Tree] | dict[str, Tree]; users unpack it as they know it.


def leaves(tree: Tree) -> list[object]:
    """List what stands at the ends of a tree, in a fixed order."""
    if isinstance(tree, dict):
        return [leaf for key in sorted(tree) for leaf in leaves(tree[key])]
    if isinstance(tree, tuple | list):
        return [leaf for part in tree for leaf in leaves(part)]
    return [tree]


def mapped(function: Callable[[Tensor], Tensor], tree: Tree) -> Tree:
    """Build a tree of the same form; lists become tuples."""
    if isinstance(tree, dict):
        return {key: mapped(function, part) for key, part in tree.items()}
    if isinstance(tree, tuple | list):
        return tuple(mapped(function, part) for part in tree)
    return function(tree)


def joined(trees: Sequence[Tree]) -> Tree:
    """Put trees of one form together along the first dimension."""
    first = trees[0]
    if isinstance(first, dict):
        return {key: joined([tree[key] for tree in trees]) for key in first}
    if isinstance(first, tuple | list):
        return tuple(joined(parts) for parts in zip(*trees, strict=True))
    return torch.cat(tuple(trees))


def retyped(tree: Tree, like: Tree) -> Tree:
    """Give tensors the types of another tree where nothing is cut off: any number becomes a float, no float an int."""
    if isinstance(tree, dict) and isinstance(like, dict) and tree.keys() == like.keys():
        return {key: retyped(part, like[key]) for key, part in tree.items()}
    if isinstance(tree, tuple | list) and isinstance(like, tuple | list) and len(tree) == len(like):
        return tuple(map(retyped, tree, like))
    if not isinstance(tree, Tensor) or not isinstance(like, Tensor) or tree.is_complex() or like.is_complex():
        return tree
    return tree.to(like.dtype) if like.is_floating_point() or not tree.is_floating_point() else tree


def same_shape(one: Tree, other: Tree) -> bool:
    """Tell whether two trees have the same form, and tensors of the same shapes and types at their ends."""
    if isinstance(one, dict):
        return isinstance(other, dict) and one.keys() == other.keys() and all(same_shape(one[k], other[k]) for k in one)
    if isinstance(one, tuple | list):
        alike = isinstance(other, tuple | list) and len(one) == len(other)
        return alike and all(same_shape(a, b) for a, b in zip(one, other, strict=True))
    if not isinstance(one, Tensor) or not isinstance(other, Tensor):
        return False
    return one.shape == other.shape and one.dtype == other.dtype and one.device == other.device
