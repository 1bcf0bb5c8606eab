"""Pictures from what a generator says: each pixel spread around it, and cut at black and white."""

from __future__ import annotations

import math
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

__all__ = ["Canvas"]

_LEAK = 0.05  # Slope beyond black and white while learning, so that a pixel finds its way back.
_SPREAD = 0.3  # Deviation of a pixel around what the network says, at first.


@final
class Canvas:
    """Learns how far the pixels of each class are spread. Without it, pixels would agree more than real ones do."""

    def __init__(self, classes: int, pixels: int) -> None:
        self.classes = classes
        self.log_spread = nn.Parameter(torch.full((classes, pixels), math.log(_SPREAD)))

    def pictures(self, outputs: Tensor, chance: torch.Generator) -> Tensor:
        """Return pictures of 0 to 1, nearly; rows come one class after the other, as many of each."""
        spread = self.log_spread.exp().repeat_interleave(len(outputs) // self.classes, dim=0)
        loose = outputs + spread * torch.empty_like(outputs).normal_(generator=chance)
        inside = loose.clamp(0, 1)
        return inside + _LEAK * (loose - inside)

    def spread(self) -> NDArray[np.float32]:
        """Return the deviations that were learnt, (classes, pixels)."""
        learnt: NDArray[np.float32] = self.log_spread.detach().exp().numpy()
        return learnt
