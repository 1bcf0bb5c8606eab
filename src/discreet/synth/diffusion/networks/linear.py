"""A denoiser of linear layers only: every step of learning is a matrix product, which a CPU is good at."""

from __future__ import annotations

from typing import final

import torch
from torch import Tensor, nn

from discreet.synth.diffusion.networks.waves import Waves

__all__ = ["LinearNetwork"]


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
