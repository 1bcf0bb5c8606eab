"""The denoiser: a network between public scalings, around what is known of a class. [KAAL22]"""

from __future__ import annotations

from typing import final

import torch
from torch import Tensor, nn

from discreet.synth.diffusion.scaling import kept, left, scaled

__all__ = ["Denoiser"]


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
