"""Drawings of one or two pen strokes: pictures that belong to nobody.

They look enough like handwriting for their means and covariances to stand in for those of private pictures, which
would have to be paid for.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

__all__ = ["drawings"]

Floats = NDArray[np.float64]

_NUMBERS = 13  # that one drawing takes: three points of two strokes, and the width of the pen
_SECOND = 0.65  # the share of drawings that have a second stroke
_INK = 17 / 28  # of a side, from the first to the last point of a drawing
_ALONG = np.linspace(0, 1, 24)[:, None]


def drawings(count: int, size: int) -> Tensor:
    """Return so many pictures of `size` by `size` pixels from 0 to 1; the same ones every time."""
    return torch.from_numpy(np.stack([_drawn(numbers, size) for numbers in _spread(count)]).astype(np.float32))


def _spread(count: int) -> Floats:
    """Spread points evenly over a cube: multiples of powers of the root g of g^(d+1) = g + 1. [Rob18]"""
    root = 2.0
    for _ in range(64):  # Each turn brings the root nearer by more than a factor of d.
        root = (1 + root) ** (1 / (_NUMBERS + 1))
    steps = root ** -np.arange(1.0, _NUMBERS + 1)
    return np.asarray((0.5 + np.outer(np.arange(1, count + 1), steps)) % 1.0)


def _drawn(numbers: Floats, size: int) -> Floats:
    """Draw the strokes around the middle, with a soft edge."""
    points = _placed(_strokes(numbers), size)
    pixels = np.arange(size)
    across, down = (pixels[:, None] - points[:, axis] for axis in (0, 1))
    distance = np.sqrt((across[None, :, :] ** 2 + down[:, None, :] ** 2).min(axis=2)) * 28 / size
    pen = 1.0 + 1.2 * numbers[-1]
    return np.asarray(np.clip(1.25 - 0.8 * (distance - pen + 0.6), 0.0, 1.0))


def _strokes(numbers: Floats) -> Floats:
    second = 2 * numbers[-1] % 1.0 < _SECOND
    ends = [numbers[:6], numbers[6:12]] if second else [numbers[:6]]
    return np.concatenate([_curve(*end.reshape(3, 2)) for end in ends])


def _curve(start: Floats, middle: Floats, end: Floats) -> Floats:
    """Return points of the parabola from start to end through the middle."""
    pull = 2 * middle - (start + end) / 2
    return (1 - _ALONG) ** 2 * start + 2 * _ALONG * (1 - _ALONG) * pull + _ALONG**2 * end


def _placed(points: Floats, size: int) -> Floats:
    """Bring a drawing to its size and into the middle, as scanned digits are."""
    extent = max(float(np.ptp(points, axis=0).max()), 1e-6)
    return np.asarray((points - points.mean(axis=0)) / extent * (_INK * size) + (size - 1) / 2)
