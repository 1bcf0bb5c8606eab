"""Match pictures: the features of generated ones against the released ones."""

from __future__ import annotations

import math
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from discreet.synth.domain.images import BRIGHTEST
from discreet.synth.merf.circle import TURN
from discreet.synth.merf.pictures import PictureEmbedding
from discreet.synth.merf.summing import NoisySums
from discreet.synth.merf.targets import Targets

__all__ = ["PictureMatching"]

_PICKED = 500  # Waves that one step looks at.
_LEAK = 0.05  # Slope beyond black and white while learning, so that a pixel finds its way back.
_SPREAD = 0.3  # Deviation of a pixel around what the network says, at first.


@final
class PictureMatching:
    """Random waves over generated pictures, and the pictures themselves, as `PictureEmbedding` has them."""

    def __init__(self, embedding: PictureEmbedding, sums: NoisySums) -> None:
        waves = embedding.waves.shape[1]
        self.targets = Targets.of(sums, waves=waves, constant=embedding.constant, scale=embedding.brightness)
        self.weights = torch.from_numpy(self.targets.weights)
        self.log_spread = nn.Parameter(torch.full((len(self.weights), embedding.pixels), math.log(_SPREAD)))
        self._waves = torch.from_numpy(embedding.waves).float() * (2 * math.pi * BRIGHTEST / TURN)
        self._cells, self._cosines, self._sines = (
            torch.from_numpy(part) for part in (self.targets.cells, self.targets.cosines, self.targets.sines)
        )
        self._darkest = embedding.darkest / BRIGHTEST

    @property
    def parameters(self) -> list[Tensor]:
        return [self.log_spread]

    def spread(self) -> NDArray[np.float32]:
        """Return the deviations that were learnt, (classes, pixels)."""
        learnt: NDArray[np.float32] = self.log_spread.detach().exp().numpy()
        return learnt

    def pick(self, chance: torch.Generator) -> tuple[Tensor, Tensor]:
        count = min(_PICKED, self._waves.shape[1])
        places = torch.empty(count, dtype=torch.int64).random_(self._waves.shape[1], generator=chance)
        turning = torch.cat([self._cosines[:, places], self._sines[:, places]], dim=1) / count**0.5
        return self._waves[:, places], torch.cat([turning, self._cells], dim=1)

    def features(self, outputs: Tensor, picked: Tensor, chance: torch.Generator) -> Tensor:
        classes = len(self.weights)
        spread = self.log_spread.exp().repeat_interleave(len(outputs) // classes, dim=0)
        loose = outputs + spread * torch.empty_like(outputs).normal_(generator=chance)
        inside = loose.clamp(0, 1)
        pictures = inside + _LEAK * (loose - inside)
        angles = pictures @ picked
        lengths = pictures.norm(dim=1, keepdim=True).clamp(min=self._darkest)
        turning = torch.cat([angles.cos(), angles.sin()], dim=1) / picked.shape[1] ** 0.5
        found = torch.cat([turning, pictures / lengths], dim=1)
        return found.reshape(classes, -1, found.shape[1])
