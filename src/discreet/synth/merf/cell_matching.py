"""Match rows of a table: the expected features of generated rows against the released ones."""

from __future__ import annotations

import math
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from discreet.synth.merf.cells import CellEmbedding
from discreet.synth.merf.circle import RADIUS, TURN
from discreet.synth.merf.summing import NoisySums
from discreet.synth.merf.targets import Targets

__all__ = ["CellMatching"]

_PICKED = 200  # Waves that one step looks at.
_RARE = 1e-3  # Shares below are raised to it where the generator starts.


@final
class CellMatching:
    """The generator gives each column's cells their chances; given its code, the columns are drawn independently.

    So the expected features of a row are exact: its chances, and for a wave the product over the columns of the means
    of their turns. No drawn cell has to be made smooth.
    """

    def __init__(self, embedding: CellEmbedding, sums: NoisySums) -> None:
        self._sizes, waves = list(embedding.sizes), embedding.turns.shape[1]
        self.targets = Targets.of(sums, embedding)
        self.weights = torch.from_numpy(self.targets.weights)
        self._angles = torch.from_numpy(embedding.turns).float() * (2 * math.pi / TURN)
        parts = [len(embedding.turns), waves, waves]
        cells, self._cosines, self._sines = torch.split(torch.from_numpy(self.targets.means), parts, dim=1)
        self._shares = cells / embedding.weight

    @property
    def parameters(self) -> list[Tensor]:
        return []

    @property
    def start(self) -> NDArray[np.float32]:
        """The logarithms of the released shares, for each class."""
        logarithms: NDArray[np.float32] = self._shares.clamp(_RARE, 1).log().numpy()
        return logarithms

    def pick(self, chance: torch.Generator) -> tuple[Tensor, Tensor]:
        count = min(_PICKED, self._angles.shape[1])
        places = torch.empty(count, dtype=torch.int64).random_(self._angles.shape[1], generator=chance)
        turning = torch.cat([self._cosines[:, places], self._sines[:, places]], dim=1) / (RADIUS * count**0.5)
        cells = self._shares / len(self._sizes) ** 0.5
        return self._angles[:, places], torch.cat([turning, cells], dim=1)

    def features(self, outputs: Tensor, picked: Tensor, chance: torch.Generator) -> Tensor:
        cosine, sine = torch.ones(1), torch.zeros(1)
        shares = [part.softmax(dim=1) for part in torch.split(outputs, self._sizes, dim=1)]
        for own, angles in zip(shares, torch.split(picked, self._sizes), strict=True):
            across, along = own @ angles.cos(), own @ angles.sin()
            cosine, sine = cosine * across - sine * along, cosine * along + sine * across
        turning = torch.cat([cosine, sine], dim=1) / picked.shape[1] ** 0.5
        cells = torch.cat(shares, dim=1) / len(self._sizes) ** 0.5
        found = torch.cat([turning, cells], dim=1)
        return found.reshape(len(self.weights), -1, found.shape[1])
