"""Scattering: how strong waves of two lengths and eight directions are in a picture, and waves within these.

Two lengths, eight directions: 1 blurred picture, 16 of waves, and 64 of long waves in the strength of short ones. What
is left of each are 7 by 7 numbers of a picture of 28 by 28. Little moves of a picture move them little. [Mal12] [BM13]
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

__all__ = ["CHANNELS", "DIRECTIONS", "STRIDE", "scattered"]

DIRECTIONS = 8
CHANNELS = 1 + 2 * DIRECTIONS + DIRECTIONS**2
STRIDE = 4  # pixels from one number to the next, in both directions

_WIDTH = 0.8  # of the envelope of short waves, in pixels; long waves are twice as long and as wide
_FREQUENCY = 0.75 * math.pi  # of short waves, in radians a pixel
_ELONGATION = 2.0  # of the envelope along the crests
_REACHES = (4, 8)  # pixels from the middle of a filter to its edge


class _Filters(NamedTuple):
    """Real parts of all directions, then imaginary ones, as a convolution takes them; and two blurs."""

    short: Tensor
    long: Tensor
    blur: Tensor  # (size / 4, size)
    half_blur: Tensor  # (size / 4, size / 2)


def scattered(pictures: Tensor) -> Tensor:
    """Return (n, 81, size / 4, size / 4) of pictures (n, size, size); a row depends on its picture only."""
    short, long, blur, half_blur = _filters(pictures.shape[-1])
    n, size = len(pictures), pictures.shape[-1]
    pictures = pictures[:, None]
    fine = _strength(pictures, short, stride=1)
    coarse = _strength(pictures, long, stride=2)
    within = _strength(fine.reshape(-1, 1, size, size), long, stride=2).reshape(n, -1, size // 2, size // 2)
    whole, halved = torch.cat([pictures, fine], 1), torch.cat([coarse, within], 1)
    return torch.cat([blur @ whole @ blur.T, half_blur @ halved @ half_blur.T], 1)


def _strength(pictures: Tensor, waves: Tensor, *, stride: int) -> Tensor:
    """Return the moduli of a picture's waves; nothing is outside the picture."""
    found = functional.conv2d(pictures, waves, padding=waves.shape[-1] // 2, stride=stride)
    real, imaginary = found.chunk(2, dim=1)
    return torch.hypot(real, imaginary)


@lru_cache(maxsize=8)
def _filters(size: int) -> _Filters:
    short, long = (_waves(_WIDTH * 2**scale, _FREQUENCY / 2**scale, reach) for scale, reach in enumerate(_REACHES))
    return _Filters(short, long, _blur(size, 1), _blur(size, 2))


def _waves(width: float, frequency: float, reach: int) -> Tensor:
    """Return Morlet wavelets of all directions: waves under a bell, less as much of the bell as makes them sum to 0."""
    turned = [_wave(width, frequency, reach, direction * math.pi / DIRECTIONS) for direction in range(DIRECTIONS)]
    waves = np.stack(turned)
    return torch.from_numpy(np.concatenate([waves.real, waves.imag])[:, None].astype(np.float32))


def _wave(width: float, frequency: float, reach: int, angle: float) -> NDArray[np.complex128]:
    down, across = np.mgrid[-reach : reach + 1, -reach : reach + 1].astype(float)
    along = math.cos(angle) * across + math.sin(angle) * down
    beside = math.cos(angle) * down - math.sin(angle) * across
    bell = np.exp(-(along**2 + (beside / _ELONGATION) ** 2) / (2 * width**2)) / (2 * math.pi * _ELONGATION * width**2)
    wave = bell * np.exp(1j * frequency * along)
    return np.asarray(wave - bell * (wave.sum() / bell.sum()))


def _blur(size: int, step: int) -> Tensor:
    """Return the matrix that averages every `step`-th pixel around the middles of squares of four."""
    pixels, middles = np.arange(0, size, step), STRIDE * np.arange(size // STRIDE)[:, None] + (STRIDE - 1) / 2
    width = 2 * _WIDTH
    bell = np.exp(-((pixels - middles) ** 2) / (2 * width**2)) * step / (math.sqrt(2 * math.pi) * width)
    return torch.from_numpy(bell.astype(np.float32))
