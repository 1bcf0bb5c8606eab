"""Whole numbers that a model or a loss may look for in a batch, such as padding, and batches full and free of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod
from typing import Any, final

import torch
from torch import Tensor, nn

from discreet import noise
from discreet.learn.torch.layers.made_up_rows import Tree, mapped, tensors

__all__ = ["Level", "Levels", "candidates", "found_levels"]

_ALWAYS = (0, 1, -1)  # Padding, what is there, and what is missing.
_OF_TARGETS = (2, 3, -100)  # More classes, and the label that torch's losses leave out.
_WORDS = ("pad_token_id", "ignore_index", "ignore_id")

Level = int
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
    """What one tensor of whole numbers may hold."""

    values: tuple[Level, ...]  # numbers that something may look for
    size: int  # entries of the table that it picks from; 0 if it picks from none

    def all(self, like: Tensor, turn: int) -> Tensor:
        """Return rows that hold nothing but the level of this turn."""
        return torch.full_like(like, self._level(turn))

    def none(self, like: Tensor, turn: int) -> Tensor:
        """Return rows that hold the level of this turn nowhere."""
        drawn = like
        if self.size:
            drawn = torch.from_numpy(noise.uniform(self.size, prod(like.shape))).reshape(like.shape).to(like)
        level = self._level(turn)
        other = next((value for value in (*self.values, *like.flatten().tolist()) if value != level), level)
        return torch.where(drawn == level, torch.full_like(like, other), drawn)

    def ends(self, like: Tensor, turn: int) -> Tensor:
        """Return rows that end with the level of this turn, from a quarter or a half of their length on."""
        if like.dim() == 1:
            hidden = torch.arange(len(like)) % 2 == 0
        else:
            # Never all of a row: a mean over nothing would be no number, and there would be nothing to compare.
            kept = (like.shape[1] // torch.where(torch.arange(len(like)) % 4 == 1, 4, 2)).clamp(min=1)
            hidden = torch.arange(like.shape[1]) >= kept[:, None]
            hidden = hidden.reshape(*hidden.shape, *(1,) * (like.dim() - 2))
        return torch.where(hidden, self.all(like, turn), self.none(like, turn))

    def _level(self, turn: int) -> Level:
        return self.values[turn % len(self.values)]


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
        wished = dict.fromkeys([*sorted(named), *_ALWAYS, max(0, size - 1), *(_OF_TARGETS if target else ())])
        values = tuple(value for value in wished if value == 0 or taken(value))  # Empty slots are zeros.
        found.append(Levels(values, size))
    return found


def _fits(value: int, leaf: Tensor) -> bool:
    if leaf.is_complex():
        return False
    if leaf.dtype == torch.bool:
        return value in (0, 1)
    limits = torch.iinfo(leaf.dtype)
    return limits.min <= value <= limits.max


def _with(batch: Tree, place: int, value: int) -> Tree:
    """The batch with the number in every second entry of one of its tensors, so that no row is without others."""
    places = iter(range(len(tensors(batch))))

    def changed(leaf: Tensor) -> Tensor:
        if next(places) != place:
            return leaf
        here = (torch.arange(leaf.numel()) % 2 == 0).reshape(leaf.shape)
        return torch.where(here, torch.full_like(leaf, value), leaf)

    return mapped(changed, batch)
