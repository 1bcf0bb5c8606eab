"""The denoiser: a network between public scalings, around what is known of a class. [KAAL22]"""

from __future__ import annotations

import math
from typing import final

import torch
from torch import Tensor, nn

from discreet.learn.torch.layers import SecretNormal
from discreet.learn.torch.secret_chance import secret_generator
from discreet.synth.diffusion.diffusion_method import Linear, Network
from discreet.synth.diffusion.networks import ConvolutionalNetwork, LinearNetwork
from discreet.synth.diffusion.warm_up import PictureCoordinates
from discreet.synth.domain.images import Images

__all__ = ["Denoiser", "DiffusionRowLosses", "build", "kept", "left", "scaled", "shapes", "tensor"]


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
