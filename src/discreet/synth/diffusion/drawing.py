"""Draw pictures from a learnt model. Nothing private is left here: it is post-processing, as often as one likes."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from discreet.errors import InvalidParameter
from discreet.learn.torch.layers import SecretNormal
from discreet.synth.diffusion.building import build, shapes, tensor
from discreet.synth.diffusion.options import Sampler
from discreet.synth.diffusion.samplers import HIGHEST, Guess, follow, guided
from discreet.synth.domain.images import BRIGHTEST

if TYPE_CHECKING:
    from discreet.synth.diffusion.model import DiffusionModel

__all__ = ["Drawing"]


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
