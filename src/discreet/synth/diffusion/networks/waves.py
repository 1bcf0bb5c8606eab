"""A number as waves of growing frequency, so that a network can tell small differences."""

from __future__ import annotations

import math
from typing import final

import torch
from torch import Tensor, nn

__all__ = ["Waves"]


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
