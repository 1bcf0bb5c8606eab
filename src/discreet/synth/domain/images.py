"""Pictures: a public size and declared classes; the pixels are whole numbers from 0 to 255."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.exact import positive_integer
from discreet.formatting import record
from discreet.frames.column import as_column, reader_for
from discreet.mechanisms.parameters import settle
from discreet.synth.domain.category import Category, Value

__all__ = ["BRIGHTEST", "ImageRows", "Images"]

BRIGHTEST = 255
_LARGEST = 512  # Pixels on a side.


@final
@dataclass(frozen=True, slots=True)
class Images:
    """Grey pictures of one size, each of one of the declared classes.

    Args:
        height: The rows of pixels of a picture.
        width: The pixels of a row.
        classes: The public classes.

    Examples:
        >>> dp.synth.Images(28, 28, classes=range(10)).pixels
        784
    """

    height: int
    width: int
    classes: tuple[Value, ...]

    __repr__ = record

    def __init__(self, height: int, width: int, *, classes: Iterable[Value]) -> None:
        for name, side in (("height", height), ("width", width)):
            if positive_integer(side, name=name) > _LARGEST:
                raise InvalidParameter(f"{name} must be at most {_LARGEST} pixels")
        settle(self, height=int(height), width=int(width), classes=Category(classes).values)

    @property
    def pixels(self) -> int:
        """The number of pixels of a picture."""
        return self.height * self.width

    def rows(self, pictures: Any, labels: Any) -> ImageRows:
        """Take pictures (n, height, width) or (n, pixels) of 0 to 255 with a label each; no value is looked at."""
        shape: tuple[int, ...] = tuple(getattr(pictures, "shape", ()))
        kind = getattr(getattr(pictures, "dtype", None), "kind", "")
        if shape[1:] not in ((self.height, self.width), (self.pixels,)) or kind not in ("u", "i"):
            raise InvalidParameter(
                f"pictures must be an array of whole numbers from 0 to 255 with the shape (n, {self.height}, "
                f"{self.width}) or (n, {self.pixels}); fractions from 0 to 1 must be multiplied by 255 and rounded"
            )
        reader_for(labels)  # Refuses what is no column.
        if len(labels) != shape[0]:
            raise InvalidParameter("there must be one label for each picture")
        return ImageRows(self, pictures, labels)


@final
@dataclass(frozen=True, slots=True, eq=False)
class ImageRows:
    """Pictures with labels, once they are paid for: what a method reads. It never prints what it holds."""

    domain: Images
    _pictures: Any = field(repr=False)
    _labels: Any = field(repr=False)

    def __len__(self) -> int:
        """The number of pictures, which is private under add-remove."""
        return len(self._pictures)

    def pixels(self) -> NDArray[np.uint8]:
        """Return the pictures, (rows, pixels), clamped to 0 … 255. This is private."""
        flat = np.asarray(self._pictures).reshape(-1, self.domain.pixels)
        clamped: NDArray[np.uint8] = np.clip(flat, 0, BRIGHTEST).astype(np.uint8)
        return clamped

    def labels(self) -> NDArray[np.int32]:
        """Return the place of each label among the classes; what is none of them counts as the first. Private."""
        return Category(self.domain.classes).codes(as_column(self._labels))
