"""The denoiser: a network between public scalings, around what is known of a class. [KAAL22]"""

from __future__ import annotations

from typing import final

import torch
from torch import Tensor, nn

from discreet.synth.diffusion.scaling import kept, left, scaled

__all__ = ["Denoiser"]


@final
class Denoiser(nn.Module):
    """Guess pictures from noisy ones: centre + kept * away + left * network(scaled * away), away = noisy - centre.

    There is one class more than were declared: the last means that none is told. Centres and spreads are a public
    guess, or noisy averages that were paid for.
    """

    centres: Tensor
    spreads: Tensor

    def __init__(self, network: nn.Module, *, centres: Tensor, spreads: Tensor) -> None:
        super().__init__()
        self.network = network
        self.register_buffer("centres", centres)  # (classes + 1, places)
        self.register_buffer("spreads", spreads)  # (classes + 1, places)

    def forward(self, noisy: Tensor, level: Tensor, classes: Tensor) -> Tensor:
        """Take pictures (…, places), levels (…, 1) and weights of classes (…, classes + 1); return pictures."""
        centre, spread = classes @ self.centres, classes @ self.spreads
        away = noisy - centre
        guess = self.network(scaled(level, spread) * away, torch.log(level) / 4, classes)
        found: Tensor = centre + kept(level, spread) * away + left(level, spread) * guess
        return found
