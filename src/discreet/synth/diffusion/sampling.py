"""From noise to pictures: the ways to follow a denoiser down the levels. All of it is post-processing.

`guess(pictures, level)` is what a denoiser says the clean pictures are. Noise goes down from `highest` to `lowest` by
the levels of [KAAL22], which lie evenly on the scale of the seventh root.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from math import sqrt
from typing import TYPE_CHECKING, TypeAlias, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from discreet.errors import InvalidParameter
from discreet.learn.torch.layers import SecretNormal
from discreet.synth.diffusion.denoiser import build, shapes, tensor
from discreet.synth.diffusion.diffusion_method import Ddim, Heun, Sampler
from discreet.synth.domain.images import BRIGHTEST

if TYPE_CHECKING:
    from discreet.synth.diffusion.diffusion_model import DiffusionModel

__all__ = ["HIGHEST", "LOWEST", "Draw", "Drawing", "Guess", "follow", "guided", "levels"]

Guess: TypeAlias = Callable[[Tensor, float], Tensor]
Draw: TypeAlias = Callable[[], Tensor]  # fresh normal numbers, one for each of the pictures' places

HIGHEST, LOWEST = 80.0, 0.002
_ROOT = 7.0


def levels(steps: int, highest: float = HIGHEST, lowest: float = LOWEST) -> list[float]:
    """Return `steps` levels from the highest to the lowest."""
    high, low = highest ** (1 / _ROOT), lowest ** (1 / _ROOT)
    return [(high + place / max(1, steps - 1) * (low - high)) ** _ROOT for place in range(steps)]


def follow(sampler: Sampler, guess: Guess, start: Tensor, draw: Draw, *, highest: float = HIGHEST) -> Tensor:
    """Take pictures that are noisy at the highest level down to clean ones."""
    path = levels(sampler.steps, highest)
    return (
        _heun(sampler, guess, start, draw, path)
        if isinstance(sampler, Heun)
        else _ddim(sampler, guess, start, draw, path)
    )


def _heun(sampler: Heun, guess: Guess, pictures: Tensor, draw: Draw, path: list[float]) -> Tensor:
    """Follow the slope (pictures - guess) / level; correct each step by the slope at its end. [KAAL22]"""
    for level, following in zip(path, [*path[1:], 0.0], strict=True):
        churned = sampler.churn_from <= level <= sampler.churn_to
        risen = level * (1 + min(sampler.churn / sampler.steps, sqrt(2) - 1)) if churned else level
        if risen > level:
            pictures = pictures + sqrt(risen**2 - level**2) * draw()
        slope = (pictures - guess(pictures, risen)) / risen
        moved = pictures + (following - risen) * slope
        if following > 0:
            second = (moved - guess(moved, following)) / following
            moved = pictures + (following - risen) * (slope + second) / 2
        pictures = moved
    return pictures


def _ddim(sampler: Ddim, guess: Guess, pictures: Tensor, draw: Draw, path: list[float]) -> Tensor:
    """Follow the slope; or go twice as far and let noise bring half of it back. The last guess is the picture."""
    for level, following in pairwise(path):
        step = following - level
        slope = (pictures - guess(pictures, level)) / level
        if sampler.stochastic:
            pictures = pictures + 2 * step * slope + sqrt(2 * -step * level) * draw()
        else:
            pictures = pictures + step * slope
    return guess(pictures, path[-1])


def guided(told: Guess, untold: Guess, weight: float) -> Guess:
    """Go further where the class says so: (1 + w) of what is guessed with the class less w of that without. [HS21]"""
    if weight == 0:
        return told
    return lambda pictures, level: torch.lerp(untold(pictures, level), told(pictures, level), 1 + weight)


# --- drawing ---
# Draw pictures from a learnt model. Nothing private is left here: it is post-processing, as often as one likes.


@final
class Drawing:
    """A denoiser with the weights of a model, and a way down from noise."""

    def __init__(self, model: DiffusionModel, sampler: Sampler) -> None:
        self._sampler = sampler
        coordinates = model.start.coordinates
        self._axes, self._centres = tensor(coordinates.axes), tensor(coordinates.centres)
        self._rest = tensor(coordinates.rest)
        # Before anything is built: a file may name a network that is far larger than its weights.
        if shapes(model.network, model.domain, coordinates) != {name: w.shape for name, w in model.weights.items()}:
            raise InvalidParameter("its weights do not fit the network that it names")
        self._denoiser = build(model.network, model.domain, coordinates)
        self._denoiser.network.load_state_dict({name: tensor(value) for name, value in model.weights.items()})

    @torch.no_grad()
    def pictures(self, labels: NDArray[np.int32]) -> NDArray[np.uint8]:
        """Draw one picture for each label: (rows, pixels) of 0 to 255."""
        told = nn.functional.one_hot(torch.from_numpy(labels.astype(np.int64)), len(self._centres)).float()
        untold = torch.zeros_like(told)
        untold[:, -1] = 1.0
        draw = SecretNormal(self._axes.shape[1])
        start = told @ self._denoiser.centres + HIGHEST * draw(told)
        guess = guided(self._guess(told), self._guess(untold), self._sampler.guidance)
        found = follow(self._sampler, guess, start, lambda: draw(told))
        shown = found @ self._axes.T + self._beside(told)
        pixels: NDArray[np.uint8] = ((shown + 1) * (BRIGHTEST / 2)).round().clamp(0, BRIGHTEST).byte().numpy()
        return pixels

    def _guess(self, classes: Tensor) -> Guess:
        """What the denoiser says of one draw for each row."""

        def guess(pictures: Tensor, level: float) -> Tensor:
            levels = torch.full((len(pictures), 1, 1), level)
            found: Tensor = self._denoiser(pictures[:, None], levels, classes[:, None])[:, 0]
            return found

        return guess

    def _beside(self, told: Tensor) -> Tensor:
        """What is at right angles to all axes: the centre of the class, and a little noise."""
        away: Tensor = told @ self._centres + self._rest * SecretNormal(len(self._rest))(told)
        return away - (away @ self._axes) @ self._axes.T
