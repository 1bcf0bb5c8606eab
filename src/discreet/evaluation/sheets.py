"""Sample sheets: pictures of every class, synthetic beside real, and the mean of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

__all__ = ["Sheets", "sheet"]

Pictures: TypeAlias = NDArray[np.uint8]


@final
@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Sheets:
    """Sheets of pictures, one row a class."""

    classes: tuple[str, ...]
    synthetic: Pictures
    real: Pictures
    means: Pictures  # the mean synthetic picture of each class above the mean real one
    closest: Pictures  # synthetic pictures, and below each the real one that is nearest


def sheet(rows: list[list[Pictures]], *, gap: int = 2) -> Pictures:
    """Lay pictures of one size out as rows; what is missing stays dark."""
    height, width = next(picture.shape for row in rows for picture in row)
    across = max(len(row) for row in rows)
    whole = np.zeros((len(rows) * (height + gap) - gap, across * (width + gap) - gap), np.uint8)
    for down, row in enumerate(rows):
        for right, picture in enumerate(row):
            y, x = down * (height + gap), right * (width + gap)
            whole[y : y + height, x : x + width] = picture
    return whole
