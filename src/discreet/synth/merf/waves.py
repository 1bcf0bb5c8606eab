"""The random waves: drawn before any row is read, from public shapes alone.

Which lengths they have is a constant of this file. A length found in the rows, as the median of some distances, would
be a release of its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from discreet import noise
from discreet.synth.merf.chance import normals
from discreet.synth.merf.circle import TURN

__all__ = ["cell_waves", "picture_waves"]

_RADIAN = TURN / (2 * math.pi)
_BRIGHTEST = 255
_TYPICAL = 0.13  # Mean square of a pixel from 0 to 1 in a drawing, by which the turns of a wave are measured.
_WIDTHS = (1 / 18, 1 / 9, 2 / 9, 4 / 9, None)  # Of the windows, in parts of the longer side; None is all of it.
_TURNS = (0.5, 1.0, 2.0)  # By how many radians a typical picture turns a wave.
_STEEPEST = (1 << 24) // (_BRIGHTEST + 1)  # Sum of the steps of one wave, for exact sums.
_TINY = 1e-9
_SPANS = (1.5, 4.0)  # By how many radians a wave turns over a whole column of numbers.


def picture_waves(height: int, width: int, count: int) -> NDArray[np.int32]:
    """Draw waves over windows of several widths, for pictures of this size: (pixels, waves)."""
    drawn = normals(count, height, width)
    drawn[1::2] = _blurred(drawn[1::2])
    for wave, window in enumerate(_windows(height, width, count)):
        drawn[wave] *= window
    flat = drawn.reshape(count, -1)
    turns = np.array([_TURNS[wave // len(_WIDTHS) % len(_TURNS)] for wave in range(count)])
    lengths = turns / np.sqrt(_TYPICAL * np.square(flat).sum(axis=1) + _TINY) * _RADIAN / _BRIGHTEST
    steps = flat * np.minimum(lengths, _STEEPEST / 2 / (np.abs(flat).sum(axis=1) + _TINY))[:, None]
    return np.ascontiguousarray(np.rint(steps).astype(np.int32).T)


def _blurred(drawn: NDArray[np.float32]) -> NDArray[np.float32]:
    """Make neighbouring pixels alike: strokes are wider than a pixel."""
    height, width = drawn.shape[1:]
    found: NDArray[np.float32] = np.matmul(np.matmul(_near(height), drawn), _near(width), dtype=np.float32)
    return found


def _near(side: int) -> NDArray[np.float32]:
    apart = np.subtract.outer(np.arange(side), np.arange(side))
    return np.exp(-(apart**2) / 2).astype(np.float32)


def _windows(height: int, width: int, count: int) -> list[NDArray[np.float32]]:
    side = max(height, width)
    centres = (noise.uniform(1 << 20, (count, 2)) / (1 << 20) * 0.8 + 0.1) * (height, width)
    found = []
    for wave, (row, column) in enumerate(centres):
        part = _WIDTHS[wave % len(_WIDTHS)]
        wide = math.inf if part is None else max(part * side, 0.5)
        near = [
            np.exp(-((np.arange(size) + 0.5 - at) ** 2) / (2 * wide**2))
            for size, at in ((height, row), (width, column))
        ]
        found.append(np.outer(*near).astype(np.float32))
    return found


def cell_waves(sizes: Sequence[int], ordered: Sequence[int], count: int) -> NDArray[np.int32]:
    """Draw waves over two or three columns each: (cells of all columns, waves).

    The first `ordered` cells of a column are bins of numbers in their order, where a wave turns evenly; each other cell
    turns it by an angle of its own.
    """
    chosen = _chosen(len(sizes), count)
    return np.concatenate(
        [_column(size, bins, count) * own for size, bins, own in zip(sizes, ordered, chosen.T, strict=True)]
    )


def _chosen(columns: int, count: int) -> NDArray[np.int32]:
    """Choose which columns each wave sees: (waves, columns) of 0 and 1."""
    orders = np.argsort(noise.uniform(1 << 40, (count, columns)), axis=1)
    found = np.zeros((count, columns), dtype=np.int32)
    for wave, order in enumerate(orders):
        found[wave, order[: 2 + wave % 2]] = 1
    return found


def _column(size: int, bins: int, count: int) -> NDArray[np.int32]:
    turns = noise.uniform(TURN, (size, count)).astype(np.int32)
    if bins > 1:
        spans = normals(count) * np.resize(_SPANS, count) * _RADIAN
        turns[:bins] = np.rint(np.outer(np.arange(bins) / (bins - 1), spans))
    return turns
