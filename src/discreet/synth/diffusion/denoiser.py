"""The denoiser: a network between public scalings, around what is known of a class. [KAAL22]"""

from __future__ import annotations

import math
from math import sqrt
from typing import final

import torch
from torch import Tensor, nn
from torch.nn.functional import group_norm, interpolate, silu

from discreet.learn.secret_chance import secret_generator
from discreet.learn.torch.layers import SecretNormal
from discreet.synth.diffusion.diffusion_method import Linear, Network
from discreet.synth.diffusion.warm_up import PictureCoordinates
from discreet.synth.domain.images import Images

__all__ = [
    "ConvolutionalNetwork",
    "Denoiser",
    "DiffusionRowLosses",
    "LinearNetwork",
    "Waves",
    "build",
    "kept",
    "left",
    "scaled",
    "shapes",
    "tensor",
]

# --- networks: Networks that guess what is under the noise. ---


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
            [_ConvolutionalBlock(at, at, told), _TokenAttention(at), _ConvolutionalBlock(at, at, told)]
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
class _TokenAttention(nn.Module):
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


@final
class Denoiser(nn.Module):
    """Guess pictures from noisy ones: centre + believed(away) + left * network(scaled * away), away = noisy - centre.

    What is believed of a distance is the best linear guess for a normal law: along each axis of the class the part
    `kept`. There is one class more than were declared: the last means that none is told. Centres, frames and spreads
    are a public guess, or noisy averages that were paid for.
    """

    centres: Tensor
    scale: Tensor
    frames: Tensor
    spreads: Tensor

    def __init__(self, network: nn.Module, *, centres: Tensor, scale: Tensor, frames: Tensor, spreads: Tensor) -> None:
        super().__init__()
        self.network = network
        self.register_buffer("centres", centres)  # (classes + 1, places)
        self.register_buffer("scale", scale)  # (places,)
        self.register_buffer("frames", frames)  # (classes + 1, places, places), or empty
        self.register_buffer("spreads", spreads)  # (classes + 1, places)

    def forward(self, noisy: Tensor, level: Tensor, classes: Tensor) -> Tensor:
        """Take pictures (rows, draws, places), levels (rows, draws, 1), weights of classes (rows, 1, classes + 1)."""
        centre = classes @ self.centres
        away = noisy - centre
        told = classes.expand(-1, noisy.shape[1], -1)
        guess = self.network(scaled(level, self.scale) * away, torch.log(level) / 4, told)
        found: Tensor = centre + self._believed(away, level, classes) + left(level, self.scale) * guess
        return found

    def _believed(self, away: Tensor, level: Tensor, classes: Tensor) -> Tensor:
        part = kept(level, classes @ self.spreads)
        if not self.frames.numel():
            return part * away
        frames = (classes[:, 0] @ self.frames.flatten(1)).reshape(-1, *self.frames.shape[1:])
        return torch.bmm(part * torch.bmm(away, frames), frames.transpose(1, 2))


# --- scaling: How a denoiser scales what goes in and what comes out, by the noise level. [KAAL22] ---


# Theorem: for a pixel with deviation s around its centre, and noise of deviation t, the best linear guess of how far
# it is from the centre is kept(t, s) times how far the noisy one is, and the error of that guess has the deviation
# left(t, s). So with these scalings what the network sees and what it should say both have variance 1. [KAAL22]


def kept(level: Tensor, spread: Tensor) -> Tensor:
    """c_skip: the part of a noisy pixel's distance from its centre that is believed, s^2 / (t^2 + s^2)."""
    return spread.square() / (level.square() + spread.square())


def left(level: Tensor, spread: Tensor) -> Tensor:
    """c_out: what the network may add, s t / sqrt(t^2 + s^2)."""
    return level * spread * (level.square() + spread.square()).rsqrt()


def scaled(level: Tensor, spread: Tensor) -> Tensor:
    """c_in: brings what the network sees to variance 1, 1 / sqrt(t^2 + s^2)."""
    return (level.square() + spread.square()).rsqrt()


# --- row_losses ---
# One loss for each row: K noisy copies of a picture, how well each is seen through, on average. [DCVK23]


@final
class DiffusionRowLosses(nn.Module):
    """What private training clips: the mean over K draws of a row's squared error, in units of what is to be learnt.

    Theorem     The K draws of a row go into one number, whose gradient is clipped once. So a row moves the sum by at
                most the clip whatever K is, and privacy does not depend on K. [DCVK23]
    """

    axes: Tensor
    typical: Tensor

    def __init__(
        self, denoiser: Denoiser, *, axes: Tensor, draws: int, drop: float, levels: tuple[float, float]
    ) -> None:
        super().__init__()
        self.denoiser = denoiser
        self.register_buffer("axes", axes, persistent=False)  # (pixels, places): where a picture lies along each axis
        self.register_buffer("typical", denoiser.scale.square().mean().sqrt(), persistent=False)
        self.classes = len(denoiser.centres) - 1
        self.middle, self.width = levels  # of the logarithm of the level, which is normal
        self.noise, self.levels = SecretNormal(draws, axes.shape[1]), SecretNormal(draws, 1)
        self.drop = nn.Dropout(drop)

    def forward(self, pictures: Tensor, labels: Tensor) -> Tensor:
        """Take pictures (rows, pixels) from -1 to 1 and labels (rows,); return (rows,)."""
        level = torch.exp(self.middle + self.width * self.levels(pictures))
        clean = (pictures @ self.axes)[:, None, :]
        noisy = clean + level * self.noise(pictures)
        wrong = self.denoiser(noisy, level, self._told(labels)) - clean
        losses: Tensor = (wrong / left(level, self.typical)).square().mean((1, 2))
        return losses

    def _told(self, labels: Tensor) -> Tensor:
        """The class of each row, or, by a secret coin a row, that none is told."""
        told = self.drop(torch.ones(len(labels), 1)) * (1 - self.drop.p)
        known = (labels[:, None] == torch.arange(self.classes)).to(told.dtype)  # Also where there is one class only.
        return torch.cat([told * known, 1 - told], 1)[:, None, :]


# --- building ---
# Put a denoiser together: the network that was asked for, with weights from our own source, around coordinates.


def build(network: Network, domain: Images, coordinates: PictureCoordinates) -> Denoiser:
    """Make a denoiser that has learnt nothing yet."""
    axes = tensor(coordinates.axes)
    return Denoiser(
        _begun(_network(network, domain, coordinates.places)),
        centres=tensor(coordinates.centres) @ axes,
        scale=tensor(coordinates.scale),
        frames=tensor(coordinates.frames),
        spreads=tensor(coordinates.spreads),
    )


def shapes(network: Network, domain: Images, coordinates: PictureCoordinates) -> dict[str, torch.Size]:
    """Return the shapes of all weights; no memory is taken for them."""
    with torch.device("meta"):
        return {name: value.shape for name, value in _network(network, domain, coordinates.places).state_dict().items()}


def tensor(values: object) -> Tensor:
    """A tensor with numbers of its own."""
    return torch.tensor(values, dtype=torch.float32)


def _network(network: Network, domain: Images, places: int) -> nn.Module:
    classes = len(domain.classes) + 1
    if isinstance(network, Linear):
        return LinearNetwork(places=places, classes=classes, hidden=network.hidden, blocks=network.blocks)
    return ConvolutionalNetwork(
        height=domain.height,
        width=domain.width,
        classes=classes,
        channels=network.channels,
        factors=network.factors,
        blocks=network.blocks,
    )


def _begun(network: nn.Module) -> nn.Module:
    """Draw first weights evenly within 1 / sqrt(inputs), as torch does, but leave layers that begin at zero."""
    chance = secret_generator()
    for layer in network.modules():
        if isinstance(layer, nn.Linear | nn.Conv3d) and bool(layer.weight.any()):
            bound = 1 / math.sqrt(layer.weight[0].numel())
            nn.init.uniform_(layer.weight, -bound, bound, generator=chance)
            if layer.bias is not None:
                nn.init.uniform_(layer.bias, -bound, bound, generator=chance)
    return network
