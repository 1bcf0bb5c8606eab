"""Match pictures by Hermite features."""

from __future__ import annotations

from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from discreet.synth.merf.canvas import Canvas
from discreet.synth.merf.hermite import HermiteEmbedding, hermite_functions
from discreet.synth.merf.summing import NoisySums
from discreet.synth.merf.targets import Targets

__all__ = ["HermiteMatching"]

_PICKED = 100  # Pixels, and pairs of them, that one step looks at.
_GREY = 0.2


@final
class HermiteMatching:
    """Hermite functions of generated pixels, alone and in pairs, as `HermiteEmbedding` has them."""

    def __init__(
        self, embedding: HermiteEmbedding, sums: NoisySums, *, radii: tuple[int, int], lengths: tuple[float, float]
    ) -> None:
        self.targets = Targets.of(sums, embedding)
        self.weights = torch.from_numpy(self.targets.weights)
        self.canvas = Canvas(len(self.weights), embedding.pixels)
        self._pairs, self._lengths = torch.from_numpy(embedding.pairs), lengths
        self._orders = embedding.alone.shape[1] - 1, embedding.together.shape[1] - 1
        self._picked = min(_PICKED, max(embedding.pixels, len(self._pairs)))
        end = embedding.pixels * embedding.alone.shape[1]
        means = torch.from_numpy(self.targets.means)
        self._alone = means[:, :end].reshape(len(means), embedding.pixels, -1) / radii[0]
        self._together = means[:, end:].reshape(len(means), len(self._pairs), -1) / radii[1] ** 2

    @property
    def parameters(self) -> list[Tensor]:
        return [self.canvas.log_spread]

    @property
    def start(self) -> NDArray[np.float32]:
        """Dark pictures."""
        return np.full((len(self.weights), self._alone.shape[1]), _GREY, dtype=np.float32)

    def pick(self, chance: torch.Generator) -> tuple[Tensor, Tensor]:
        sizes = self._alone.shape[1], len(self._pairs)
        pixels, pairs = (torch.empty(self._picked, dtype=torch.int64).random_(size, generator=chance) for size in sizes)
        wanted = torch.cat([self._alone[:, pixels].flatten(1), self._together[:, pairs].flatten(1)], dim=1)
        return torch.cat([pixels[:, None], self._pairs[pairs]], dim=1), wanted / (2 * self._picked) ** 0.5

    def features(self, outputs: Tensor, picked: Tensor, chance: torch.Generator) -> Tensor:
        pictures = self.canvas.pictures(outputs, chance)
        alone = torch.stack(hermite_functions(pictures[:, picked[:, 0]], self._lengths[0], self._orders[0]), dim=2)
        left, right = (
            torch.stack(hermite_functions(pictures[:, picked[:, side]], self._lengths[1], self._orders[1]), dim=2)
            for side in (1, 2)
        )
        together = left[..., :, None] * right[..., None, :]
        found: Tensor = torch.cat([alone.flatten(1), together.flatten(1)], dim=1) / (2 * self._picked) ** 0.5
        return found.reshape(len(self.weights), -1, found.shape[1])
