"""Fixed features of pictures: made from public drawings, never from the data that are learnt from."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from discreet.errors import InvalidParameter, Refused

__all__ = ["CHANNELS", "DIRECTIONS", "STRIDE", "StrokeFeatures", "drawings", "scattered"]


# --- drawings: Drawings of one or two pen strokes: pictures that belong to nobody. ---
#
# They look enough like handwriting for their means and covariances to stand in for those of private pictures, which
# would have to be paid for.


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


# --- scattering ---
# Scattering: how strong waves of two lengths and eight directions are in a picture, and waves within these.
#
# Two lengths, eight directions: 1 blurred picture, 16 of waves, and 64 of long waves in the strength of short ones.
# What
# is left of each are 7 by 7 numbers of a picture of 28 by 28. Little moves of a picture move them little. [Mal12]
# [BM13]


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


# --- strokes: Features of handwriting that a linear model learns from, fixed before any private picture is seen. ---


_DRAWINGS = 1000
_SLOTS = 64  # pictures that go through the filters together
_LEAST, _MOST = 16, 64  # pixels of a side
_DAMPING = 1e-4  # of the largest variance, so that what hardly varies is not blown up
# Powers of the covariances between channels and between places that are divided by; 1/2 would be whitening, which
# raises noise as much as it raises what is rare.
_CHANNEL_POWER, _PLACE_POWER = 0.25, 0.15


class _FeatureLens(NamedTuple):
    """What is done to scattered pictures: shifted, scaled, and turned to directions in which drawings differ."""

    middle: Tensor  # (81, places)
    scale: Tensor  # (81, 1)
    channels: Tensor  # (kept channels, 81)
    places: Tensor  # (places, kept places)

    def features(self, pictures: Tensor) -> Tensor:
        """Return rows of length one."""
        centred = (scattered(pictures).flatten(2) - self.middle) / self.scale
        turned = (self.channels @ centred @ self.places).flatten(1)
        return torch.nn.functional.normalize(turned, dim=1, eps=1e-6)


@final
@dataclass(frozen=True, slots=True)
class StrokeFeatures:
    """Turns small pictures of strokes into rows of length one.

    Guarantee   costs nothing: a row is a function of its picture. Middles, scales and directions come from drawings
                that belong to nobody, so no fact about private pictures is in them.
    Utility     40 × 40 numbers a picture; a linear model on them learns handwritten digits well, since drawings vary
                as handwriting does: each direction counts by what it tells and not by how large it is. [TB21]
    """

    size: int = 28  # pixels of a side, a multiple of 4
    channels: int = 40  # kept of 81
    places: int = 40  # kept of (size / 4) squared

    def __post_init__(self) -> None:
        if self.size not in range(_LEAST, _MOST + 1, STRIDE):
            raise InvalidParameter(f"size must be a multiple of {STRIDE} from {_LEAST} to {_MOST}")
        if self.channels not in range(1, CHANNELS + 1):
            raise InvalidParameter(f"channels must be a whole number from 1 to {CHANNELS}")
        if self.places not in range(1, (self.size // STRIDE) ** 2 + 1):
            raise InvalidParameter(f"places must be a whole number from 1 to {(self.size // STRIDE) ** 2}")

    @property
    def count(self) -> int:
        """How many numbers a picture gives."""
        return self.channels * self.places

    def __call__(self, pictures: Tensor) -> Tensor:
        """Return (n, count) of pictures (n, size, size): whole numbers from 0 to 255, or floats from 0 to 1.

        Floats outside are moved to the ends, and what is no number becomes 0, whatever the other pictures are.
        """
        lens, rows = _lens(self), self._read(pictures)
        _check_slots(self, torch.get_num_threads())
        with torch.no_grad():
            return torch.cat([torch.empty(0, self.count), *(_alone(lens, some) for some in _pieces(rows))])

    def _read(self, pictures: Tensor) -> Tensor:
        if not isinstance(pictures, Tensor) or pictures.shape[1:] != (self.size, self.size):
            raise InvalidParameter(f"pictures must be a tensor of shape (n, {self.size}, {self.size})")
        if pictures.dtype == torch.uint8:
            return pictures.float() / 255
        if not pictures.is_floating_point():
            raise InvalidParameter("pictures must be whole numbers from 0 to 255 (uint8), or floats from 0 to 1")
        return pictures.float().nan_to_num(nan=0.0).clamp(0.0, 1.0)


def _pieces(pictures: Tensor) -> Iterator[Tensor]:
    return (pictures[start : start + _SLOTS] for start in range(0, len(pictures), _SLOTS))


def _alone(lens: _FeatureLens, pictures: Tensor) -> Tensor:
    """Fill up with blanks: with one shape for all, a row's last bit does not tell how many others there are."""
    full = pictures.new_zeros(_SLOTS, *pictures.shape[1:])
    full[: len(pictures)] = pictures
    return lens.features(full)[: len(pictures)]


@lru_cache(maxsize=8)
def _lens(made: StrokeFeatures) -> _FeatureLens:
    """Learn from drawings what varies, separately between channels and between places."""
    with torch.no_grad():
        shown = torch.cat([scattered(some).flatten(2) for some in _pieces(drawings(_DRAWINGS, made.size))])
    middle = shown.mean(0)
    scale = (shown - middle).pow(2).mean((0, 2)).sqrt()[:, None]
    centred = (shown - middle) / scale
    between_channels = torch.einsum("ncp,ndp->cd", centred, centred) / centred[:, 0].numel()
    between_places = torch.einsum("ncp,ncq->pq", centred, centred) / centred[:, :, 0].numel()
    channels = _directions(between_channels, _CHANNEL_POWER, made.channels)
    return _FeatureLens(middle, scale, channels.T.contiguous(), _directions(between_places, _PLACE_POWER, made.places))


def _directions(covariance: Tensor, power: float, keep: int) -> Tensor:
    """Return the directions of largest variance as columns, each divided by a power of it."""
    variances, directions = torch.linalg.eigh(covariance)
    variances, directions = variances.flip(0)[:keep], directions.flip(1)[:, :keep]
    return torch.mul(directions, (variances + _DAMPING * variances[0]).pow(-power))


@lru_cache(maxsize=32)
def _check_slots(made: StrokeFeatures, threads: int) -> None:
    """Try on drawings whether a picture's features are the same to the last bit wherever it stands."""
    lens, shown = _lens(made), drawings(_SLOTS, made.size)
    with torch.no_grad():
        here, there = lens.features(shown), lens.features(shown.roll(1, 0)).roll(-1, 0)
    if not torch.equal(here, there):
        raise Refused(
            f"with {threads} threads the features of a picture depend on where it stands among others",
            reason="the last bit of a row would then tell about other rows",
            way_out="call torch.set_num_threads(1) first",
        )
