"""Sample sheets: pictures of every class, synthetic beside real, and the mean of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

__all__ = ["Sheets", "sheet"]

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
