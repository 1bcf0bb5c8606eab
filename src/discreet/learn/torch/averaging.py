"""A moving average of the weights: free, since it looks at nothing but weights that are private already."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import torch
from torch import Tensor

from discreet.errors import InvalidParameter

__all__ = ["WeightAverage"]


@final
class WeightAverage:
    """Weights averaged over steps, with a decay that grows to its final value as min(decay, (1 + t) / (10 + t))."""

    def __init__(self, weights: Sequence[Tensor], decay: float) -> None:
        if not 0 < decay < 1:
            raise InvalidParameter("ema must be a decay between 0 and 1, such as 0.999; None switches it off")
        self.decay = float(decay)
        self.updates = 0
        self.averages = [weight.detach().clone() for weight in weights]

    def update(self, weights: Sequence[Tensor]) -> None:
        """Take the weights after a step in."""
        decay = min(self.decay, (1 + self.updates) / (10 + self.updates))
        self.updates += 1
        with torch.no_grad():
            for average, weight in zip(self.averages, weights, strict=True):
                average.lerp_(weight, 1 - decay)
