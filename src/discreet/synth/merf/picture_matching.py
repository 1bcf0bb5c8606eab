"""Match pictures: the features of generated ones against the released ones."""

from __future__ import annotations

import math
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from discreet.synth.domain.images import BRIGHTEST
from discreet.synth.merf.canvas import Canvas
from discreet.synth.merf.circle import RADIUS, TURN
from discreet.synth.merf.pictures import PictureEmbedding
from discreet.synth.merf.summing import NoisySums
from discreet.synth.merf.targets import Targets

__all__ = ["PictureMatching"]

_PICKED = 500  # Waves that one step looks at.


@final
class PictureMatching:
    """Random waves over generated pictures, and the pictures themselves, as `PictureEmbedding` has them."""

    def __init__(self, embedding: PictureEmbedding, sums: NoisySums) -> None:
        self.targets = Targets.of(sums, embedding)
        self.weights = torch.from_numpy(self.targets.weights)
        self.canvas = Canvas(len(self.weights), embedding.pixels)
        self._darkest = embedding.darkest / BRIGHTEST
        self._waves = torch.from_numpy(embedding.waves).float() * (2 * math.pi * BRIGHTEST / TURN)
        parts = [embedding.pixels, self._waves.shape[1], self._waves.shape[1]]
        pixels, self._cosines, self._sines = torch.split(torch.from_numpy(self.targets.means), parts, dim=1)
        self._pixels = pixels / max(embedding.brightness, 1)

    @property
    def parameters(self) -> list[Tensor]:
        return [self.canvas.log_spread]

    @property
    def start(self) -> NDArray[np.float32]:
        """About the mean picture of each class, as far as it was released."""
        mean: NDArray[np.float32] = (self._pixels * self._darkest).clamp(0, 1).numpy()
        return mean

    def pick(self, chance: torch.Generator) -> tuple[Tensor, Tensor]:
        count = min(_PICKED, self._waves.shape[1])
        places = torch.empty(count, dtype=torch.int64).random_(self._waves.shape[1], generator=chance)
        turning = torch.cat([self._cosines[:, places], self._sines[:, places]], dim=1) / (RADIUS * count**0.5)
        return self._waves[:, places], torch.cat([turning, self._pixels], dim=1)

    def features(self, outputs: Tensor, picked: Tensor, chance: torch.Generator) -> Tensor:
        pictures = self.canvas.pictures(outputs, chance)
        angles = pictures @ picked
        lengths = pictures.norm(dim=1, keepdim=True).clamp(min=self._darkest)
        turning = torch.cat([angles.cos(), angles.sin()], dim=1) / picked.shape[1] ** 0.5
        found = torch.cat([turning, pictures / lengths], dim=1)
        return found.reshape(len(self.weights), -1, found.shape[1])
