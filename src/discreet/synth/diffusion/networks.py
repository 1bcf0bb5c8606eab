"""Networks that guess what is under the noise."""

from __future__ import annotations

import math
from math import sqrt
from typing import final

import torch
from torch import Tensor, nn
from torch.nn.functional import group_norm, interpolate, silu

__all__ = ["ConvolutionalNetwork", "LinearNetwork", "Waves"]


# --- convolutional ---
# A U-net for pictures, of the kind that the paper uses, for K noisy copies of each row at once. [DCVK23]
#
# The draws of a row are its depth: a convolution of kernel 1 x 3 x 3 sees each of them by itself, and the first
# dimension
# stays the row, as private training needs it. Norms have no parameters of their own; noise level and class scale and
# shift what comes out of them.


@final
class ConvolutionalNetwork(nn.Module):
    """Residual blocks at falling and rising sizes, joined across; attention at the smallest size."""

    def __init__(
        self, *, height: int, width: int, classes: int, channels: int, factors: tuple[int, ...], blocks: int
    ) -> None:
        super().__init__()
        self.height, self.width = height, width
        told = 4 * channels
        self.waves = Waves(channels)
        self.told = nn.Sequential(nn.Linear(channels + classes, told), nn.SiLU(), nn.Linear(told, told), nn.SiLU())
        self.into = _conv(1, channels, 3)
        self.down, kept = _going_down(channels, factors, blocks, told)
        at = kept[-1]
        self.middle = nn.ModuleList(
            [_ConvolutionalBlock(at, at, told), _Attention(at), _ConvolutionalBlock(at, at, told)]
        )
        self.up = _going_up(channels, factors, blocks, told, kept)
        self.out = _conv(channels * factors[0], 1, 3)
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(self.out.bias)  # type: ignore[arg-type]

    def forward(self, pictures: Tensor, told: Tensor, classes: Tensor) -> Tensor:
        """Take (rows, draws, pixels), (rows, draws, 1) and (rows, draws, classes); return (rows, draws, pixels)."""
        rows, draws, _ = pictures.shape
        known = self.told(torch.cat([self.waves(told), classes], -1))
        hidden = self.into(pictures.reshape(rows, 1, draws, self.height, self.width))
        kept = [hidden]
        for block in self.down:
            hidden = block(hidden, known)
            kept.append(hidden)
        for block in self.middle:
            hidden = block(hidden, known)
        for block in self.up:
            joined = hidden if block.size == "double" else torch.cat([_fitted(hidden, kept[-1]), kept.pop()], 1)
            hidden = block(joined, known)
        shown: Tensor = self.out(silu(_normed(hidden)))
        return shown.reshape(rows, draws, -1)


def _going_down(channels: int, factors: tuple[int, ...], blocks: int, told: int) -> tuple[nn.ModuleList, list[int]]:
    """Blocks at each size and one that halves it, and how many channels each of them leaves for the way up."""
    found, kept = nn.ModuleList(), [channels]
    for place, factor in enumerate(factors):
        for turn in range(blocks + (place > 0)):
            size = "halve" if place and turn == 0 else ""
            after = kept[-1] if size else channels * factor
            found.append(_ConvolutionalBlock(kept[-1], after, told, size))
            kept.append(after)
    return found, kept


def _going_up(channels: int, factors: tuple[int, ...], blocks: int, told: int, kept: list[int]) -> nn.ModuleList:
    """One block more at each size than on the way down, each joined with what was kept, and one that doubles it."""
    found, at, left = nn.ModuleList(), kept[-1], list(kept)
    for place, factor in reversed(list(enumerate(factors))):
        for _ in range(blocks + 1):
            found.append(_ConvolutionalBlock(at + left.pop(), channels * factor, told))
            at = channels * factor
        if place:
            found.append(_ConvolutionalBlock(at, at, told, "double"))
    return found


@final
class _ConvolutionalBlock(nn.Module):
    """Two convolutions, the second scaled and shifted by what is told, added to what came in. [KAAL22]"""

    def __init__(self, before: int, after: int, told: int, size: str = "") -> None:
        super().__init__()
        self.size = size
        self.first, self.second = _conv(before, after, 3), _conv(after, after, 3)
        self.tell = nn.Linear(told, 2 * after)
        self.pass_by = _conv(before, after, 1)

    def forward(self, hidden: Tensor, known: Tensor) -> Tensor:
        hidden = _resized(hidden, "halve") if self.size == "halve" else hidden
        scale, shift = self.tell(known).transpose(1, 2)[..., None, None].chunk(2, 1)
        inner = _normed(self.first(silu(_normed(hidden)))) * (1 + scale) + shift
        changed = (self.pass_by(hidden) + self.second(silu(inner))) / sqrt(2)
        return _resized(changed, "double") if self.size == "double" else changed


@final
class _Attention(nn.Module):
    """Every place of a small picture looks at all others of the same picture."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.ask, self.answer = _conv(channels, 3 * channels, 1), _conv(channels, channels, 1)

    def forward(self, hidden: Tensor, known: Tensor) -> Tensor:
        asked = self.ask(_normed(hidden)).transpose(1, 2).flatten(3)  # (rows, draws, 3 channels, places)
        query, key, value = asked.chunk(3, 2)
        weights = torch.softmax(query.transpose(2, 3) @ key / sqrt(query.shape[2]), -1)
        seen = (value @ weights.transpose(2, 3)).transpose(1, 2).reshape(hidden.shape)
        changed: Tensor = (hidden + self.answer(seen)) / sqrt(2)
        return changed


def _conv(before: int, after: int, kernel: int) -> nn.Conv3d:
    """A convolution over each draw by itself."""
    return nn.Conv3d(before, after, (1, kernel, kernel), padding=(0, kernel // 2, kernel // 2))


def _normed(hidden: Tensor) -> Tensor:
    """Norm groups of four channels of one draw: statistics of several draws together would not be there to sample."""
    rows, channels, draws, height, width = hidden.shape
    each = hidden.transpose(1, 2).reshape(rows * draws, channels, height, width)
    normed = group_norm(each, min(32, channels // 4))
    return normed.reshape(rows, draws, channels, height, width).transpose(1, 2)


def _resized(hidden: Tensor, how: str) -> Tensor:
    factor = (1.0, 0.5, 0.5) if how == "halve" else (1.0, 2.0, 2.0)
    return interpolate(hidden, scale_factor=factor, mode="area" if how == "halve" else "nearest")


def _fitted(hidden: Tensor, like: Tensor) -> Tensor:
    """Cut what was doubled from a halved odd size, or repeat its edge, to the size that it had."""
    return hidden if hidden.shape[3:] == like.shape[3:] else interpolate(hidden, like.shape[2:], mode="nearest")


# --- linear: A denoiser of linear layers only: every step of learning is a matrix product, which a CPU is good at. ---


@final
class LinearNetwork(nn.Module):
    """Picture, class and noise level side by side, one layer in, residual blocks, one layer out that begins at zero."""

    def __init__(self, *, places: int, classes: int, hidden: int, blocks: int, waves: int = 16) -> None:
        super().__init__()
        self.waves = Waves(waves)
        self.into = nn.Linear(places + classes + waves, hidden)
        self.blocks = nn.ModuleList(_LinearBlock(hidden) for _ in range(blocks))
        self.out = nn.Linear(hidden, places)
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(self.out.bias)

    def forward(self, pictures: Tensor, told: Tensor, classes: Tensor) -> Tensor:
        """Take (…, places), (…, 1) and (…, classes); return (…, places)."""
        hidden = self.into(torch.cat([pictures, classes, self.waves(told)], -1))
        for block in self.blocks:
            hidden = block(hidden)
        shown: Tensor = self.out(nn.functional.silu(hidden))
        return shown


@final
class _LinearBlock(nn.Module):
    """What two layers make of a hidden state, added to it."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.first = nn.Linear(hidden, hidden)
        self.second = nn.Linear(hidden, hidden)

    def forward(self, hidden: Tensor) -> Tensor:
        inner = self.first(nn.functional.silu(hidden))
        changed: Tensor = hidden + self.second(nn.functional.silu(inner))
        return changed


# --- waves: A number as waves of growing frequency, so that a network can tell small differences. ---


@final
class Waves(nn.Module):
    """Cosines and sines of a number, of frequencies from 1 to `fastest`, evenly apart on a logarithmic scale."""

    turns: Tensor

    def __init__(self, count: int, fastest: float = 16.0) -> None:
        super().__init__()
        steps = torch.arange(count // 2) / max(1, count // 2 - 1)
        self.register_buffer("turns", torch.exp(steps * math.log(fastest)), persistent=False)

    def forward(self, number: Tensor) -> Tensor:
        """Take (…, 1), return (…, count)."""
        turned = number * self.turns
        return torch.cat([torch.cos(turned), torch.sin(turned)], -1)
