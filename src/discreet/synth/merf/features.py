"""Features of DP-MERF in whole numbers: cells, pictures, the unit circle, and random waves drawn in advance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import final

import numpy as np
from numpy.typing import NDArray

from discreet import noise
from discreet.errors import InvalidParameter
from discreet.synth.domain.images import BRIGHTEST
from discreet.synth.merf.generator import normals
from discreet.synth.merf.sensitivity import SumSensitivity

__all__ = ["RADIUS", "TURN", "CellEmbedding", "PictureEmbedding", "cell_waves", "picture_waves", "points", "turned"]

# --- cells ---
# A row of a table as one vector of whole numbers: its class's count, its cells, and random waves over its columns.


@final
@dataclass(frozen=True, slots=True, eq=False)
class CellEmbedding:
    """The public rule by which a row of cells becomes whole numbers; a row's numbers depend on that row alone.

    `turns` holds for each cell of each column, one column below the other, by how many 65536ths of a turn it turns each
    wave. Numbers and categories make one vector with one bound: no part of it is 1 by itself.
    """

    sizes: tuple[int, ...]  # cells of each column
    turns: NDArray[np.int32] = field(repr=False)  # (cells of all columns, waves)
    constant: int  # what a row adds to the count of its class
    weight: int  # what a row adds to the count of its cell, in each column

    def __post_init__(self) -> None:
        if self.turns.ndim != 2 or self.turns.dtype != np.int32 or len(self.turns) != sum(self.sizes):
            raise InvalidParameter("turns must be 32-bit whole numbers with one line for each cell")
        if min(self.constant, self.weight, *self.sizes) < 1 or max(self.constant, self.weight) >= 1 << 30:
            raise InvalidParameter("the weights must be whole numbers from 1 to 2^30, and each column needs a cell")

    @property
    def width(self) -> int:
        """The number of coordinates in the place of one class."""
        return 1 + len(self.turns) + 2 * int(self.turns.shape[1])

    @property
    def reach(self) -> SumSensitivity:
        """The exact bounds on a row's vector: it has one cell in each column."""
        return SumSensitivity(
            constant=self.constant**2,
            positive=len(self.sizes) * self.weight**2,
            turning=int(self.turns.shape[1]) * RADIUS**2,
        )

    @property
    def starts(self) -> NDArray[np.int64]:
        """Where the cells of each column begin among all cells."""
        return np.cumsum((0, *self.sizes))[:-1]

    def vectors(self, codes: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the vector of every row: constant, cells, cosines, sines. This is private."""
        places = codes + self.starts
        found = np.zeros((len(codes), self.width), dtype=np.int32)
        found[:, 0] = self.constant
        np.put_along_axis(found, places + 1, self.weight, axis=1)
        middle = 1 + sum(self.turns.shape)
        found[:, 1 + len(self.turns) : middle], found[:, middle:] = turned(self._angles(places))
        return found

    def _angles(self, places: NDArray[np.int64]) -> NDArray[np.int32]:
        angles = np.zeros((len(places), self.turns.shape[1]), dtype=np.int32)
        for column in places.T:
            angles += self.turns[column] & (TURN - 1)  # At most 1000 columns of 16 bits: 32 bits are enough.
        return angles


# --- pictures ---
# A picture as one vector of whole numbers: its class's count, its pixels, and random waves over windows of it.


_EXACT = 1 << 24  # Whole numbers up to here are exact in 32-bit floats, and so are their sums in any order.


@final
@dataclass(frozen=True, slots=True, eq=False)
class PictureEmbedding:
    """The public rule by which a picture becomes whole numbers; a row's numbers depend on that row alone.

    `waves` holds, for each wave, by how many 65536ths of a turn one step of each pixel turns it.
    """

    waves: NDArray[np.int32] = field(repr=False)  # (pixels, waves)
    constant: int  # what a row adds to the count of its class
    brightness: int  # the greatest length of the part that holds the pixels
    darkest: int  # a picture at least so long, in steps of brightness, is scaled down; a darker one keeps its scale

    def __post_init__(self) -> None:
        if self.waves.ndim != 2 or self.waves.dtype != np.int32 or min(self.constant, self.darkest) < 1:
            raise InvalidParameter("waves must be 32-bit whole numbers, (pixels, waves), and the weights at least 1")
        if BRIGHTEST * int(np.abs(self.waves.astype(np.int64)).sum(axis=0).max(initial=0)) >= _EXACT:
            raise InvalidParameter("the waves are too steep to be summed exactly: choose longer ones")
        if not 0 <= self.brightness < 1 << 30:
            raise InvalidParameter("brightness must be a whole number from 0 to 2^30")

    @property
    def pixels(self) -> int:
        """The number of pixels."""
        return int(self.waves.shape[0])

    @property
    def width(self) -> int:
        """The number of coordinates in the place of one class."""
        return 1 + self.pixels + 2 * int(self.waves.shape[1])

    @property
    def reach(self) -> SumSensitivity:
        """The exact bounds on a row's vector."""
        return SumSensitivity(
            constant=self.constant**2,
            positive=self.brightness**2,
            turning=int(self.waves.shape[1]) * RADIUS**2,
        )

    def vectors(self, pictures: NDArray[np.uint8]) -> NDArray[np.int32]:
        """Return the vector of every picture: constant, pixels, cosines, sines. This is private."""
        found = np.empty((len(pictures), self.width), dtype=np.int32)
        found[:, 0] = self.constant
        found[:, 1 : 1 + self.pixels] = self._scaled(pictures)
        middle = 1 + self.pixels + self.waves.shape[1]
        found[:, 1 + self.pixels : middle], found[:, middle:] = turned(self._angles(pictures))
        return found

    def _angles(self, pictures: NDArray[np.uint8]) -> NDArray[np.int32]:
        # All partial sums are whole numbers below 2^24, so 32-bit floats add them exactly in any order.
        turns: NDArray[np.float32] = pictures.astype(np.float32) @ self.waves.astype(np.float32)
        return turns.astype(np.int32)

    def _scaled(self, pictures: NDArray[np.uint8]) -> NDArray[np.int64]:
        """Divide each picture by its own length where that is large, rounding down: at most brightness is left."""
        steps = pictures.astype(np.int64)
        squares = (steps * steps).sum(axis=1)
        # The root of a whole number below 2^52, rounded up: one more than the float's root, cut, is never below it.
        lengths = np.sqrt(squares.astype(np.float64)).astype(np.int64) + 1
        scaled: NDArray[np.int64] = steps * self.brightness // np.maximum(lengths, self.darkest)[:, None]
        return scaled


# --- circle ---
# The unit circle in whole numbers: cosine and sine of every 65536th of a turn, never longer than the radius.


TURN = 1 << 16  # Angles are whole numbers of this part of a turn.
RADIUS = 1 << 12  # What stands for 1. The noise is far coarser than a step of it.


@lru_cache(maxsize=1)
def points() -> NDArray[np.int16]:
    """Return (cos, sin) of each angle, both rounded towards zero: cos² + sin² <= RADIUS² exactly.

    Every entry is looked at, so the bound does not rest on the machine's cosine: one that stood too far out would
    count as nothing.
    """
    angles = np.arange(TURN) * (2 * np.pi / TURN)
    found = np.trunc(RADIUS * np.column_stack([np.cos(angles), np.sin(angles)])).astype(np.int64)
    found[(found * found).sum(axis=1) > RADIUS * RADIUS] = 0
    table: NDArray[np.int16] = found.astype(np.int16)
    table.setflags(write=False)
    return table


def turned(angles: NDArray[np.int32]) -> tuple[NDArray[np.int16], NDArray[np.int16]]:
    """Return the cosines and sines of whole angles; whole turns do not count."""
    # A conversion to 16 bits drops whole turns, also of negative angles, so that no place lies outside the table.
    places = angles.astype(np.uint16)
    return _column(0).take(places, mode="clip"), _column(1).take(places, mode="clip")


@lru_cache(maxsize=2)
def _column(which: int) -> NDArray[np.int16]:
    return np.ascontiguousarray(points()[:, which])


# --- waves: The random waves: drawn before any row is read, from public shapes alone. ---
#
# Which lengths they have is a constant of this file. A length found in the rows, as the median of some distances, would
# be a release of its own.


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
        [_waves_column(size, bins, count) * own for size, bins, own in zip(sizes, ordered, chosen.T, strict=True)]
    )


def _chosen(columns: int, count: int) -> NDArray[np.int32]:
    """Choose which columns each wave sees: (waves, columns) of 0 and 1."""
    orders = np.argsort(noise.uniform(1 << 40, (count, columns)), axis=1)
    found = np.zeros((count, columns), dtype=np.int32)
    for wave, order in enumerate(orders):
        found[wave, order[: 2 + wave % 2]] = 1
    return found


def _waves_column(size: int, bins: int, count: int) -> NDArray[np.int32]:
    turns = noise.uniform(TURN, (size, count)).astype(np.int32)
    if bins > 1:
        spans = normals(count) * np.resize(_SPANS, count) * _RADIAN
        turns[:bins] = np.rint(np.outer(np.arange(bins) / (bins - 1), spans))
    return turns
