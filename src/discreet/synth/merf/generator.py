"""The trained generator in plain arrays: two hidden layers, run without torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, Self, final

import numpy as np
from numpy.typing import NDArray

from discreet import noise
from discreet.errors import InvalidParameter
from discreet.synth.domain.value_forms import fractions

__all__ = ["GeneratorNetwork", "Training", "TrainingOptions", "cells_of", "classes_of", "normals", "training_for"]

_PARTS = ("first", "first_start", "second", "second_start", "last", "last_start")


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class GeneratorNetwork:
    """What turns a secret code and a class into the numbers from which a row is drawn. All of it is released."""

    first: NDArray[np.float32]  # (codes, hidden)
    first_start: NDArray[np.float32]  # (classes, hidden)
    second: NDArray[np.float32]  # (hidden, hidden)
    second_start: NDArray[np.float32]  # (classes, hidden)
    last: NDArray[np.float32]  # (hidden, outputs)
    last_start: NDArray[np.float32]  # (classes, outputs)

    def __post_init__(self) -> None:
        if any(part.ndim != 2 for part in (self.first, self.second, self.last, self.last_start)):
            raise InvalidParameter("the layers of this generator do not fit together")
        hidden, (classes, outputs) = self.first.shape[1], self.last_start.shape
        layers = (self.second, (hidden, hidden)), (self.last, (hidden, outputs))
        starts = (self.first_start, (classes, hidden)), (self.second_start, (classes, hidden))
        if any(part.shape != shape for part, shape in (*layers, *starts)):
            raise InvalidParameter("the layers of this generator do not fit together")

    @property
    def outputs(self) -> int:
        """How many numbers it gives for each row."""
        return int(self.last.shape[1])

    @property
    def classes(self) -> int:
        """How many classes it knows."""
        return len(self.last_start)

    def drawn(self, labels: NDArray[np.int32]) -> NDArray[np.float32]:
        """Draw a code for each row and return the generator's numbers for it."""
        hidden = normals(len(labels), len(self.first)) @ self.first + self.first_start[labels]
        hidden = np.maximum(hidden, 0) @ self.second + self.second_start[labels]
        found: NDArray[np.float32] = np.maximum(hidden, 0) @ self.last + self.last_start[labels]
        return found

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what is to be saved."""
        return {part: getattr(self, part) for part in _PARTS}

    @classmethod
    def restored(cls, arrays: dict[str, NDArray[Any]], *, classes: int, outputs: int) -> Self:
        """Make a generator from what was saved, or refuse what does not fit."""
        if any(part not in arrays or arrays[part].dtype.kind != "f" for part in _PARTS):
            raise InvalidParameter("a part of this generator is missing or is of another kind")
        found = cls(*(arrays[part].astype(np.float32) for part in _PARTS))
        if (found.classes, found.outputs) != (classes, outputs):
            raise InvalidParameter("this generator does not fit its domain: it belongs to other data, or was changed")
        return found


# --- how: How a generator is trained. ---


_ROWS, _LEAST = 400, 8  # Rows of a training batch over all classes, and of one class.
_RATE = 5e-3


class TrainingOptions(Protocol):
    """What a user may choose of it."""

    @property
    def steps(self) -> int:
        """Steps of training."""

    @property
    def hidden(self) -> int:
        """Width of the generator."""

    @property
    def codes(self) -> int:
        """Normal numbers from which a row is made."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """How a generator is trained. All of it is public and free."""

    steps: int
    rows_per_class: int
    codes: int
    hidden: int
    learning_rate: float
    scale: float  # how unlike the rows of a class are before training


def training_for(options: TrainingOptions, classes: int) -> Training:
    """Return how a generator for so many classes is trained."""
    return Training(
        steps=options.steps,
        rows_per_class=max(_LEAST, _ROWS // classes),
        codes=options.codes,
        hidden=options.hidden,
        learning_rate=_RATE,
        scale=0.5,
    )


# --- chance: Draws that are no privacy noise: waves, codes from which a generator starts, which cell of a column. ---


_SCALE = 1 << 12


def normals(*shape: int) -> NDArray[np.float32]:
    """Draw standard normal numbers, to 12 bits after the point."""
    found: NDArray[np.float32] = noise.rounded_gaussian(_SCALE, size=shape).astype(np.float32) / np.float32(_SCALE)
    return found


def classes_of(counts: NDArray[np.float64], rows: int) -> NDArray[np.int32]:
    """Draw a class for each row, in proportion to counts."""
    reached = np.cumsum(counts)
    places: NDArray[np.int32] = np.searchsorted(reached, fractions(rows) * reached[-1], side="right").astype(np.int32)
    return np.minimum(places, len(counts) - 1)


def cells_of(weights: NDArray[Any]) -> NDArray[np.int32]:
    """Draw one place in each line, in proportion to its weights."""
    reached = np.cumsum(weights, axis=1, dtype=np.float64)
    drawn = fractions(len(reached)) * reached[:, -1]
    found = (reached <= drawn[:, None]).sum(axis=1)
    places: NDArray[np.int32] = np.minimum(found, reached.shape[1] - 1).astype(np.int32)
    return places
