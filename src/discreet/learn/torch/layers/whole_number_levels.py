"""Numbers that a model or a loss may look for in a batch, such as padding, and batches full and free of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import nan, prod
from typing import Any, final

import torch
from torch import Tensor, nn

from discreet import noise
from discreet.learn.torch.layers.made_up_rows import Tree, mapped, tensors

__all__ = ["Level", "Levels", "Ways", "candidates", "float_levels", "found_levels"]

_ALWAYS = (0, 1, -1)  # Padding, what is there, and what is missing.
_ONE_EACH = (2, 3, -100)  # Where a row has one number: more classes, longer rows, and the label that losses leave out.
_WORDS = ("pad_token_id", "ignore_index", "ignore_id")

Level = int | float
Takes = Callable[[Tree], bool]


def candidates(model: nn.Module, loss: object) -> tuple[set[int], set[int]]:
    """Return the whole numbers that the model and its loss name, and the sizes of all tables of the model."""
    named: set[object] = set()
    sizes: set[int] = set()
    for module in [*model.modules(), *(loss.modules() if isinstance(loss, nn.Module) else ())]:
        if isinstance(module, nn.Embedding | nn.EmbeddingBag):
            sizes.add(module.num_embeddings)
        named |= {getattr(module, word, None) for word in ("padding_idx", "ignore_index")}
        named |= set(_told(getattr(module, "config", None)))
    return {value for value in named if type(value) is int}, sizes


def _told(config: Any, depth: int = 0) -> Iterator[object]:
    """What a configuration, and those inside of it, say of padding."""
    known = getattr(config, "__dict__", config if isinstance(config, dict) else {})
    for word, value in known.items():
        if word in _WORDS and isinstance(value, int):
            yield value
        elif depth < 3 and str(word).endswith("config"):
            yield from _told(value, depth + 1)


@final
@dataclass(frozen=True, slots=True)
class Levels:
    """What one tensor may hold."""

    values: tuple[Level, ...]  # numbers that something may look for
    size: int  # entries of the table that it picks from; 0 if it picks from none

    def all(self, like: Tensor, turn: int) -> Tensor:
        """Return rows that hold nothing but the level of this turn."""
        return torch.full_like(like, self._level(turn))

    def none(self, like: Tensor, turn: int) -> Tensor:
        """Return rows that hold the level of this turn nowhere; made-up floats do not."""
        if like.is_floating_point():
            return like
        drawn = like
        if self.size:
            drawn = torch.from_numpy(noise.uniform(self.size, prod(like.shape))).reshape(like.shape).to(like)
        level = self._level(turn)
        other = next((value for value in (*self.values, *like.flatten().tolist()) if value != level), level)
        return torch.where(drawn == level, torch.full_like(like, other), drawn)

    def ends(self, like: Tensor, turn: int, axis: int = 1) -> Tensor:
        """Return rows that end with the level of this turn, from a quarter or a half of their length on."""
        if like.dim() == 1:
            hidden = torch.arange(len(like)) % 2 == 0
        else:
            # Never all of a row: a mean over nothing would be no number, and there would be nothing to compare.
            kept = (like.shape[axis] // torch.where(torch.arange(len(like)) % 4 == 1, 4, 2)).clamp(min=1)
            hidden = torch.arange(like.shape[axis]) >= kept[:, None]
            hidden = hidden.reshape(len(like), *(-1 if at == axis else 1 for at in range(1, like.dim())))
        return torch.where(hidden, self.all(like, turn), self.none(like, turn))

    def starts(self, like: Tensor, turn: int) -> Tensor:
        """Return rows that start with the level of this turn, as writers of words are padded."""
        return self.ends(like, turn) if like.dim() == 1 else self.ends(like.flip(1), turn).flip(1)

    def last_ends(self, like: Tensor, turn: int) -> Tensor:
        """Return rows that end so along their last axis, where time may run."""
        return self.ends(like, turn, max(1, like.dim() - 1))

    def _level(self, turn: int) -> Level:
        return self.values[turn % len(self.values)]


# How rows are made, and companions that change them: twice what a tensor and a turn become.
Ways = tuple[tuple[Callable[[Levels, Tensor, int], Tensor], Callable[[Levels, Tensor, int], Tensor]], ...]


def found_levels(batch: Tree, named: set[int], sizes: set[int], takes: Takes, *, target: bool) -> list[Levels | None]:
    """Find for each tensor of a batch, by trying, which numbers the model takes there; nothing for floats.

    A table of n entries takes n - 1 and not n: so its size is known without a look at how the tensor gets there.
    """
    found: list[Levels | None] = []
    for place, leaf in enumerate(tensors(batch)):
        if leaf.is_floating_point():
            found.append(None)
            continue

        def taken(value: int, place: int = place, leaf: Tensor = leaf) -> bool:
            return _fits(value, leaf) and takes(_with(batch, place, value))

        size = next((size for size in sorted(sizes) if size > 1 and taken(size - 1) and not taken(size)), 0)
        more = _ONE_EACH if target or leaf.dim() == 1 else ()
        wished = dict.fromkeys([*sorted(named), *_ALWAYS, max(0, size - 1), *more])
        values = tuple(value for value in wished if value == 0 or taken(value))  # Empty slots are zeros.
        found.append(Levels(values, size))
    return found


def float_levels(batch: Tree, takes: Takes) -> Iterator[tuple[list[Levels | None], Ways]]:
    """Yield levels for one tensor of floats at a time: signals that end with zeros or gaps, masks that hide nothing.

    Made-up floats lie between 0 and 1, so nothing that looks for one of these numbers has met a batch of them.
    """
    leaves = tensors(batch)
    for place, leaf in enumerate(leaves):
        if not leaf.is_floating_point():
            continue
        padding: Ways = ((Levels.ends, Levels.none), (Levels.starts, Levels.none), (Levels.all, Levels.none))
        if leaf.dim() > 2:
            padding = ((Levels.last_ends, Levels.none), *padding)
        for value, ways in ((0, padding), (1, padding[-1:]), (nan, padding)):
            if takes(_with(batch, place, value)):
                yield [Levels((value,), 0) if at == place else None for at in range(len(leaves))], ways


def _fits(value: int, leaf: Tensor) -> bool:
    if leaf.is_complex():
        return False
    if leaf.dtype == torch.bool:
        return value in (0, 1)
    limits = torch.iinfo(leaf.dtype)
    return limits.min <= value <= limits.max


def _with(batch: Tree, place: int, value: Level) -> Tree:
    """The batch with the number in every second entry of one of its tensors, so that no row is without others."""
    places = iter(range(len(tensors(batch))))

    def changed(leaf: Tensor) -> Tensor:
        if next(places) != place:
            return leaf
        here = (torch.arange(leaf.numel()) % 2 == 0).reshape(leaf.shape)
        return torch.where(here, torch.full_like(leaf, value), leaf)

    return mapped(changed, batch)
