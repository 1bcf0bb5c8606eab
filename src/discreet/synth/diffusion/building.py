"""Put a denoiser together: the network that was asked for, with weights from our own source, around coordinates."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from discreet.learn.torch.secret_chance import secret_generator
from discreet.synth.diffusion.coordinates import PictureCoordinates
from discreet.synth.diffusion.denoiser import Denoiser
from discreet.synth.diffusion.networks.convolutional import ConvolutionalNetwork
from discreet.synth.diffusion.networks.linear import LinearNetwork
from discreet.synth.diffusion.options import Linear, Network
from discreet.synth.domain.images import Images

__all__ = ["build", "shapes", "tensor"]


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
