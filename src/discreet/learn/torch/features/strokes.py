"""Features of handwriting that a linear model learns from, fixed before any private picture is seen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, final

import torch
from torch import Tensor

from discreet.errors import InvalidParameter, Refused
from discreet.learn.torch.features.drawings import drawings
from discreet.learn.torch.features.scattering import CHANNELS, STRIDE, scattered

__all__ = ["StrokeFeatures"]

_DRAWINGS = 1000
_SLOTS = 64  # pictures that go through the filters together
_LEAST, _MOST = 16, 64  # pixels of a side
_DAMPING = 1e-4  # of the largest variance, so that what hardly varies is not blown up
# Powers of the covariances between channels and between places that are divided by; 1/2 would be whitening, which
# raises noise as much as it raises what is rare.
_CHANNEL_POWER, _PLACE_POWER = 0.25, 0.15


class _Lens(NamedTuple):
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


def _alone(lens: _Lens, pictures: Tensor) -> Tensor:
    """Fill up with blanks: with one shape for all, a row's last bit does not tell how many others there are."""
    full = pictures.new_zeros(_SLOTS, *pictures.shape[1:])
    full[: len(pictures)] = pictures
    return lens.features(full)[: len(pictures)]


@lru_cache(maxsize=8)
def _lens(made: StrokeFeatures) -> _Lens:
    """Learn from drawings what varies, separately between channels and between places."""
    with torch.no_grad():
        shown = torch.cat([scattered(some).flatten(2) for some in _pieces(drawings(_DRAWINGS, made.size))])
    middle = shown.mean(0)
    scale = (shown - middle).pow(2).mean((0, 2)).sqrt()[:, None]
    centred = (shown - middle) / scale
    between_channels = torch.einsum("ncp,ndp->cd", centred, centred) / centred[:, 0].numel()
    between_places = torch.einsum("ncp,ncq->pq", centred, centred) / centred[:, :, 0].numel()
    channels = _directions(between_channels, _CHANNEL_POWER, made.channels)
    return _Lens(middle, scale, channels.T.contiguous(), _directions(between_places, _PLACE_POWER, made.places))


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
