"""Match generated rows and pictures to released features."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from discreet.synth.domain.images import BRIGHTEST
from discreet.synth.merf.features import RADIUS, TURN, CellEmbedding, PictureEmbedding
from discreet.synth.merf.hermite import HermiteEmbedding, hermite_functions
from discreet.synth.merf.sensitivity import Embedding, NoisySums

__all__ = ["Canvas", "CellMatching", "HermiteMatching", "PictureMatching", "Targets"]

# --- cell_matching: Match rows of a table: the expected features of generated rows against the released ones. ---


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


# --- picture_matching: Match pictures: the features of generated ones against the released ones. ---


_PICTURE_MATCHING_PICKED = 500  # Waves that one step looks at.


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
        count = min(_PICTURE_MATCHING_PICKED, self._waves.shape[1])
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


# --- hermite_matching: Match pictures by Hermite features. ---


_HERMITE_MATCHING_PICKED = 100  # Pixels, and pairs of them, that one step looks at.
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
        self._picked = min(_HERMITE_MATCHING_PICKED, max(embedding.pixels, len(self._pairs)))
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


# --- canvas: Pictures from what a generator says: each pixel spread around it, and cut at black and white. ---


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


# --- targets ---
# Read released sums: the counts of the classes, the means of their features, and how far both can be trusted.


_LEAST = 0.25  # Of the rows that the noise is worth: fewer are not divided by.


@final
@dataclass(frozen=True, slots=True, eq=False)
class Targets:
    """Means of features by class. All of it is computed from released numbers."""

    counts: NDArray[np.float64]  # noisy, at least 0
    weights: NDArray[np.float32]  # from 0 for a class that drowns in noise to 1
    means: NDArray[np.float32]  # (classes, features without the constant), in whole steps

    @classmethod
    def of(cls, sums: NoisySums, embedding: Embedding) -> Targets:
        """Divide the sums by the noisy counts."""
        reach = embedding.reach
        counts = np.maximum(sums.values[:, 0] / reach.constant**0.5, 0)
        # The noise of all features together is as long as so many rows that point one way.
        worth = (float(sums.variance) * (embedding.width - 1) / (reach.squared - reach.constant)) ** 0.5
        means = sums.values[:, 1:] / np.maximum(counts, max(1.0, _LEAST * worth))[:, None]
        weights = counts**2 / (counts**2 + worth**2) + 1e-6
        return cls(counts, weights.astype(np.float32), means.astype(np.float32))
