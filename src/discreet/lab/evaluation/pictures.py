"""Pictures with their classes: sample sheets, and how far the closest ones are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet import noise
from discreet.errors import InvalidParameter
from discreet.synth.domain.images import Images
from discreet.synth.synthesis import asked_images

__all__ = ["Pictures", "Sheets", "closest_pictures", "nearest_places", "pictures_of", "sheet"]

# --- sheets: Sample sheets: pictures of every class, synthetic beside real, and the mean of each. ---


PictureArray: TypeAlias = NDArray[np.uint8]


@final
@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Sheets:
    """Sheets of pictures, one row a class."""

    classes: tuple[str, ...]
    synthetic: PictureArray
    real: PictureArray
    means: PictureArray  # the mean synthetic picture of each class above the mean real one
    closest: PictureArray  # synthetic pictures, and below each the real one that is nearest


def sheet(rows: list[list[PictureArray]], *, gap: int = 2) -> PictureArray:
    """Lay pictures of one size out as rows; what is missing stays dark."""
    height, width = next(picture.shape for row in rows for picture in row)
    across = max(len(row) for row in rows)
    whole = np.zeros((len(rows) * (height + gap) - gap, across * (width + gap) - gap), np.uint8)
    for down, row in enumerate(rows):
        for right, picture in enumerate(row):
            y, x = down * (height + gap), right * (width + gap)
            whole[y : y + height, x : x + width] = picture
    return whole


# --- pixels: Pictures with the places of their classes, and how far the closest ones are. ---


Floats: TypeAlias = NDArray[np.float32]
_BRIGHTEST = 255.0
_POOL = 20_000  # Pictures among which the closest is looked for.
_BLOCK = 256
_EQUAL = 1e-3  # Of full brightness; less is rounding.


@final
@dataclass(frozen=True, slots=True, eq=False)
class Pictures:
    """Pictures, one a row, and the place of each one's class."""

    pixels: NDArray[np.uint8]
    codes: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.pixels)

    def take(self, chosen: Any) -> Pictures:
        """Take some pictures."""
        return Pictures(self.pixels[chosen], self.codes[chosen])

    def some(self, most: int) -> Pictures:
        """Take at most so many, drawn at random."""
        return self if len(self) <= most else self.take(noise.permutation(len(self))[:most])

    def split(self, first: int) -> tuple[Pictures, Pictures]:
        """Take so many at random, and the rest."""
        order = noise.permutation(len(self))
        return self.take(order[:first]), self.take(order[first:])


def pictures_of(pair: Any, domain: Images) -> Pictures:
    """Read pictures with their labels. This is private if they are."""
    rows = asked_images(pair, domain)
    found = Pictures(rows.pixels(), rows.labels())
    if len(found) < 2:
        raise InvalidParameter("there must be at least two pictures to compare")
    return found


def closest_pictures(asked: Pictures, among: Pictures) -> Floats:
    """Return how far the closest picture is from each: the root of the mean square, from 0 to 1."""
    squares = [block.min(axis=1) for block in _blocks(asked, among.some(_POOL))]
    found: Floats = np.sqrt(np.maximum(np.concatenate(squares), 0.0)).astype(np.float32)
    found[found < _EQUAL] = 0.0
    return found


def nearest_places(asked: Pictures, among: Pictures) -> NDArray[np.int64]:
    """Return the place of the closest picture of each."""
    return np.concatenate([block.argmin(axis=1) for block in _blocks(asked, among)])


def _blocks(asked: Pictures, among: Pictures) -> list[Floats]:
    """Return mean squared distances, some pictures against all others at a time."""
    theirs = among.pixels.astype(np.float32) / _BRIGHTEST
    lengths = (theirs**2).sum(axis=1)
    found = []
    for start in range(0, len(asked), _BLOCK):
        ours = asked.pixels[start : start + _BLOCK].astype(np.float32) / _BRIGHTEST
        squares = (ours**2).sum(axis=1, keepdims=True) - 2 * ours @ theirs.T + lengths
        found.append((squares / ours.shape[1]).astype(np.float32))
    return found
