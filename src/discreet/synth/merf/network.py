"""The trained generator in plain arrays: two hidden layers, run without torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.synth.merf.chance import normals

__all__ = ["GeneratorNetwork"]

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
