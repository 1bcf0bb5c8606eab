"""The sheets of an evaluation of pictures."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.evaluation.pixels import Pictures, nearest_places
from discreet.evaluation.sheets import Sheets, sheet
from discreet.synth.domain import Images

__all__ = ["sheets"]

Grey: TypeAlias = NDArray[np.uint8]
_EACH = 10  # Pictures of a class.
_CLASSES = 20
_BESIDE = 12  # Synthetic pictures that are shown with their closest real ones.


def sheets(domain: Images, made: Pictures, real: Pictures) -> Sheets:
    """Lay out pictures of every class, their means, and the closest real ones."""
    classes = range(min(_CLASSES, len(domain.classes)))
    both = [_of_classes(domain, pictures, len(classes)) for pictures in (made, real)]
    means = [[_mean(domain, pictures, code) for code in classes] for pictures in (made, real)]
    some = made.take(slice(_BESIDE))
    twins = real.some(20_000)
    beside = twins.take(nearest_places(some, twins))
    return Sheets(
        classes=tuple(str(domain.classes[code]) for code in classes),
        synthetic=both[0],
        real=both[1],
        means=sheet(means),
        closest=sheet([_shaped(domain, some), _shaped(domain, beside)]),
    )


def _of_classes(domain: Images, pictures: Pictures, classes: int) -> Grey:
    rows = [_shaped(domain, pictures.take(np.flatnonzero(pictures.codes == code)[:_EACH])) for code in range(classes)]
    blank = np.zeros((domain.height, domain.width), np.uint8)
    return sheet([row or [blank] for row in rows])


def _mean(domain: Images, pictures: Pictures, code: int) -> Grey:
    own = pictures.pixels[pictures.codes == code]
    mean = own.mean(axis=0) if len(own) else np.zeros(domain.pixels)
    return np.rint(mean).astype(np.uint8).reshape(domain.height, domain.width)


def _shaped(domain: Images, pictures: Pictures) -> list[Grey]:
    return list(pictures.pixels.reshape(-1, domain.height, domain.width))
