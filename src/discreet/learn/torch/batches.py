"""Rows of a data set as batches of one public shape, each row read by itself.

What a row gives must depend on that row alone, and a failure must not depend on data. So a data set of items is read
item by item, a collate function sees one item at a time, and an item of another shape than the others counts as a
blank one: it adds nothing, like a record whose gradient is not finite.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset, TensorDataset, default_collate

from discreet import noise
from discreet.adaptive.bounded_memberships import UnitRows, unit_codes
from discreet.errors import InvalidParameter, Refused
from discreet.learn.secret_chance import renew_generators
from discreet.learn.training.sampling import NOBODY

__all__ = [
    "Collate",
    "ItemRows",
    "PeopleRows",
    "TensorRows",
    "TrainingRows",
    "Tree",
    "joined",
    "leaves",
    "mapped",
    "read_rows",
    "retyped",
    "same_shape",
]

# --- trees: Batches: a tensor, or tuples, lists and dictionaries of them. ---


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


Collate = Callable[[list[Any]], Tree]


class TrainingRows(Protocol):
    """Where the rows of a training run come from."""

    @property
    def size(self) -> int:
        """How many records there are. Private: only the sampler may know."""

    @property
    def each(self) -> int:
        """How many rows a record has in a batch, always; public."""

    def blank(self, slots: int) -> Tree:
        """Return a batch of rows of zeros, whose shapes are public."""

    def batch(self, indices: NDArray[np.int64], inside: NDArray[np.bool_]) -> tuple[Tree, NDArray[np.bool_]]:
        """Return `each` rows of the records at `indices`, zeros where not `inside`, and which of the rows count."""


@final
@dataclass(frozen=True, slots=True)
class TensorRows:
    """Tensors whose first dimension are the rows."""

    tensors: Tree = field(repr=False)

    @property
    def size(self) -> int:
        return len(_tensors(self.tensors)[0])

    @property
    def each(self) -> int:
        return 1

    def blank(self, slots: int) -> Tree:
        return mapped(lambda tensor: tensor.new_zeros((slots, *tensor.shape[1:])), self.tensors)

    def batch(self, indices: NDArray[np.int64], inside: NDArray[np.bool_]) -> tuple[Tree, NDArray[np.bool_]]:
        chosen, slots = torch.from_numpy(indices[inside]), torch.from_numpy(np.flatnonzero(inside))
        in_front = bool(inside[: len(chosen)].all())

        def gather(tensor: Tensor) -> Tensor:
            if not in_front or tensor.requires_grad:
                return tensor.new_zeros((len(indices), *tensor.shape[1:])).index_copy_(0, slots, tensor[chosen])
            batch = tensor.new_empty((len(indices), *tensor.shape[1:]))
            torch.index_select(tensor, 0, chosen, out=batch[: len(chosen)])
            batch[len(chosen) :] = 0
            return batch

        return mapped(gather, self.tensors), inside


@final
@dataclass(frozen=True, slots=True)
class ItemRows:
    """A data set that is asked item by item. What varies its items must be as secret as who is in the batch."""

    dataset: Any = field(repr=False)
    collate: Collate
    zero: Tree = field(repr=False)  # One row of zeros; its shapes are public.

    @property
    def size(self) -> int:
        return len(self.dataset)

    @property
    def each(self) -> int:
        return 1

    def blank(self, slots: int) -> Tree:
        return joined([self.zero] * slots)

    def batch(self, indices: NDArray[np.int64], inside: NDArray[np.bool_]) -> tuple[Tree, NDArray[np.bool_]]:
        renew_generators()
        rows = [self._row(int(index)) if there else None for index, there in zip(indices, inside, strict=True)]
        return joined([self.zero if row is None else row for row in rows]), np.array([row is not None for row in rows])

    def _row(self, index: int) -> Tree | None:
        """Read one item, or None if it does not have the public shape."""
        row = retyped(self.collate([self.dataset[index]]), self.zero)
        return row if same_shape(self.zero, row) else None


@final
class PeopleRows:
    """People as records of exactly `each` slots, filled with a fresh secret choice of their rows and padded.

    Whoever has more rows than that is in a batch with `each` of them, drawn anew every time; whoever has fewer with all
    of them, and zeros that count for nothing. What is chosen for a person depends on nobody else, so that a person more
    or less changes one record. Ids are read when the first step is drawn, which is after the run was paid for. Rows
    without an id belong to nobody, and are never read.
    """

    def __init__(self, rows: TrainingRows, whom: UnitRows) -> None:
        whom.check(rows.size)
        self._rows, self._whom = rows, whom
        self._order: NDArray[np.int64] | None = None  # row numbers, those of a person side by side
        self._starts = np.zeros(1, np.int64)  # where each person begins in it, and the end

    @property
    def size(self) -> int:
        self._group()
        return len(self._starts) - 1

    @property
    def each(self) -> int:
        return self._whom.max_rows

    def blank(self, slots: int) -> Tree:
        return self._rows.blank(slots)

    def batch(self, indices: NDArray[np.int64], inside: NDArray[np.bool_]) -> tuple[Tree, NDArray[np.bool_]]:
        chosen = self._chosen(indices, inside).ravel()
        return self._rows.batch(chosen, chosen != NOBODY)

    def _chosen(self, indices: NDArray[np.int64], inside: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Give every row of the people in this batch a secret tag, and each person the rows with the smallest ones."""
        order, people = self._group(), indices[inside]
        counts = self._starts[people + 1] - self._starts[people]
        owner, first = np.repeat(np.arange(len(people)), counts), np.repeat(counts.cumsum() - counts, counts)
        place = np.arange(len(owner)) - first
        rows = order[self._starts[people][owner] + place]
        by_tag = np.lexsort((noise.uniform(1 << 62, len(rows)), owner))
        kept = place < self.each
        chosen = np.full((len(indices), self.each), NOBODY, np.int64)
        chosen[np.flatnonzero(inside)[owner[kept]], place[kept]] = rows[by_tag][kept]
        return chosen

    def _group(self) -> NDArray[np.int64]:
        if self._order is None:
            codes = unit_codes(self._whom.ids())
            order = np.argsort(codes, kind="stable")
            # Where each person begins, behind the rows of nobody; numbers that no row has are nobody's either.
            people = np.unique(codes[codes >= 0])
            self._starts = np.append(np.searchsorted(codes[order], people), len(codes))
            self._order = order
        return self._order


def read_rows(dataset: Any, *, collate: Collate | None = None, example: Any = None) -> TrainingRows:
    """Accept tensors, arrays, a tuple of them, a TensorDataset, or a data set with `len` and items.

    Nothing is read: tensors tell their shapes, and for a data set of items the made-up row `example` does.
    """
    if isinstance(dataset, DataLoader):
        raise Refused(
            "a DataLoader cannot be trained on privately",
            reason="which rows come together must be drawn by the run itself: the account assumes how",
            way_out="hand over loader.dataset, and say collate=… if the loader has one",
        )
    if isinstance(dataset, TensorDataset):
        dataset = dataset.tensors
    if collate is None and all(isinstance(leaf, Tensor | np.ndarray) for leaf in leaves(dataset)):
        return TensorRows(_aligned(_as_tensors(dataset)))
    _check_items(dataset)
    return ItemRows(dataset, collate or default_collate, _zero_row(collate or default_collate, example))


def _as_tensors(tree: Tree) -> Tree:
    if isinstance(tree, np.ndarray):
        return torch.from_numpy(tree)
    if isinstance(tree, dict):
        return {key: _as_tensors(part) for key, part in tree.items()}
    return tuple(map(_as_tensors, tree)) if isinstance(tree, tuple | list) else tree


def _tensors(tree: Tree) -> list[Tensor]:
    return [leaf for leaf in leaves(tree) if isinstance(leaf, Tensor)]


def _aligned(tree: Tree) -> Tree:
    """Refuse tensors that do not have one row each for every record."""
    tensors = _tensors(tree)
    if not tensors or any(tensor.ndim == 0 for tensor in tensors):
        raise InvalidParameter("dataset must hold at least one tensor, and the first dimension of each are the rows")
    if len({len(tensor) for tensor in tensors}) > 1:
        raise InvalidParameter("the tensors of the data set must have the same number of rows")
    return tree


def _check_items(dataset: Any) -> None:
    if isinstance(dataset, IterableDataset) or not (hasattr(dataset, "__getitem__") and hasattr(dataset, "__len__")):
        raise Refused(
            f"rows cannot be sampled from a {type(dataset).__name__}",
            reason="each row is drawn with a secret coin of its own in every step, so rows must have numbers",
            way_out="hand over tensors, a TensorDataset, or a data set with __len__ and __getitem__",
        )


def _zero_row(collate: Collate, example: Any) -> Tree:
    if example is None:
        raise Refused(
            "the shapes of a row are not known before it is paid for",
            way_out="say example=(torch.zeros(1, 28, 28), 0), or another row that you make up with the shapes of yours",
        )
    row = collate([example])
    found: Sequence[object] = leaves(row)
    if not all(isinstance(leaf, Tensor) and leaf.ndim and len(leaf) == 1 for leaf in found):
        raise Refused(
            "a row must be tensors or numbers, alone or in tuples, lists and dictionaries",
            way_out="turn texts and pictures into tensors in the data set, or by collate=…, which gets a row at a time",
        )
    return mapped(torch.zeros_like, row)
